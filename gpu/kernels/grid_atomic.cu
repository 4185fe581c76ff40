/* grid_atomic.cu - many blocks, one pair of float64 atomicAdd a block; a whole batch in one launch.
 *
 * Idea      a block looks up its task, strides over its rows or its part of a row, and folds its
 *           sums by halves in shared memory; a row that one block owns is stored, a row of several
 *           blocks gets such a pair a block. Sums are float64 whatever the elements: the
 *           conversions hide behind the loads, and products of narrower floats are exact.
 *           Many short rows are dealt to teams of 8 to 32 lanes, four rows at a time.
 * Cost      operands read once, 16 bytes a load and 4 loads of each in flight; 5 barriers and at
 *           most 2 atomics a block and real sum.
 * Order     atomics arrive in any order: the last bits of a split row may change from run to run.
 * Error     proved in bound.c; depth by grid_depth(): terms a thread + log2 block + blocks a row.
 * Needs     launch.split zero before the launch; any n, any element-aligned operands.
 * Source    M. Harris, Optimizing Parallel Reduction in CUDA; CUDA C++ Programming Guide, atomic
 *           functions; PTX ISA, atom: float64 additions do not flush subnormal numbers.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/grid_atomic.h"
#include "gpu/kernels/rows.cuh"

namespace
{

/* One real sum of a thread. A vector's products go to the accumulators in turn, so that additions
 * do not wait for each other; the compiler drops those that are not used. */
struct sums {
    double sum[GRID_CHAINS], sum_abs[GRID_CHAINS];
};

__device__ inline void clear(struct sums &s)
{
#pragma unroll
    for (int i = 0; i < GRID_CHAINS; i++)
        s.sum[i] = s.sum_abs[i] = 0;
}

__device__ inline void add(struct sums &s, int index, double x, double y)
{
    s.sum[index % GRID_CHAINS] = fma(x, y, s.sum[index % GRID_CHAINS]);
    s.sum_abs[index % GRID_CHAINS] = fma(fabs(x), fabs(y), s.sum_abs[index % GRID_CHAINS]);
}

__device__ inline struct grid_sum total_of(const struct sums &s)
{
    struct grid_sum total = {(s.sum[0] + s.sum[1]) + (s.sum[2] + s.sum[3]),
                             (s.sum_abs[0] + s.sum_abs[1]) + (s.sum_abs[2] + s.sum_abs[3])};
    return total;
}

/* A thread's share of a row. Complex: (a + i b)(c + i d) = (a c - b d) + i (a d + b c). */
template <enum dtype DTYPE> struct share {
    enum { PARTS = element<DTYPE>::PARTS, REALS = GRID_LOAD_BYTES / element<DTYPE>::BYTES };
    struct sums part[PARTS];
    bool conjugate;

    __device__ void start()
    {
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            clear(part[p]);
    }

    __device__ void visit(const uint4 &x, const uint4 &y)
    {
#pragma unroll
        for (int i = 0; i < REALS; i += PARTS) {
            const double a = real_of<DTYPE>(x, i), c = real_of<DTYPE>(y, i);
            add(part[0], i, a, c);
            if (PARTS == 2) {
                const double b = real_of<DTYPE>(x, i + 1), d = real_of<DTYPE>(y, i + 1);
                const double s = conjugate ? -b : b;
                add(part[0], i + 1, -s, d);
                add(part[PARTS - 1], i, a, d);
                add(part[PARTS - 1], i + 1, s, c);
            }
        }
    }

    __device__ void pause()
    {
    }
};

/* The total of a warp, or of each team of so many of its lanes, in the first one. */
__device__ inline struct grid_sum fold_lanes(struct grid_sum s, unsigned lanes)
{
    for (unsigned half = lanes / 2; half > 0; half /= 2) {
        s.sum += __shfl_down_sync(ALL_LANES, s.sum, half);
        s.sum_abs += __shfl_down_sync(ALL_LANES, s.sum_abs, half);
    }
    return s;
}

/* The block's total, in its first thread: by halves in shared memory down to one warp. No barrier
 * at the end: when the next sum comes, a thread overwrites only its own slot, and whoever read that
 * slot did so before the last barrier here. */
__device__ inline struct grid_sum fold_block(struct grid_sum s)
{
    __shared__ double sum[GRID_THREADS], sum_abs[GRID_THREADS];
    const unsigned thread = threadIdx.x;
    sum[thread] = s.sum;
    sum_abs[thread] = s.sum_abs;
    __syncthreads();
    for (unsigned half = GRID_THREADS / 2; half >= GRID_WARP; half /= 2) {
        if (thread < half) {
            sum[thread] += sum[thread + half];
            sum_abs[thread] += sum_abs[thread + half];
        }
        __syncthreads();
    }
    if (thread >= GRID_WARP)
        return s;
    s.sum = sum[thread];
    s.sum_abs = sum_abs[thread];
    return fold_lanes(s, GRID_WARP);
}

__device__ inline void put_total(const struct grid_task &task, const struct grid_launch &launch,
                                 uint32_t index, const struct grid_sum &s)
{
    if (task.form != GRID_SPLIT_ROW) {
        launch.result[task.result + index] = s;
        return;
    }
    atomicAdd(&launch.split[task.total + index].sum, s.sum);
    atomicAdd(&launch.split[task.total + index].sum_abs, s.sum_abs);
}

/* --- rows by teams --- */

/* Rows first, first + step, ... of a task, GRID_LOADS at most: where they begin, and how far the
 * next one is. */
struct few_rows {
    const char *a, *b;
    uint64_t step_a, step_b; /* bytes */
    unsigned count;
};

/* A lane's share of a few rows at once, an accumulator each: short rows are not enough by
 * themselves to keep loads on their way. ONE_B: they have one and the same b, which is read
 * once. */
template <enum dtype DTYPE, bool ONE_B>
__device__ inline void add_few(const struct few_rows &rows, unsigned lane, unsigned team,
                               uint32_t vectors, struct sums &s)
{
    const int reals = GRID_LOAD_BYTES / element<DTYPE>::BYTES;
    for (uint32_t i = lane; i < vectors; i += team) {
        uint4 x[GRID_LOADS] = {}, y[ONE_B ? 1 : GRID_LOADS] = {};
#pragma unroll
        for (int k = 0; k < GRID_LOADS; k++)
            if (k < (int)rows.count) {
                x[k] = __ldg((const uint4 *)(rows.a + k * rows.step_a) + i);
                if (!ONE_B || k == 0)
                    y[ONE_B ? 0 : k] = __ldg((const uint4 *)(rows.b + k * rows.step_b) + i);
            }
#pragma unroll
        for (int j = 0; j < reals; j++)
#pragma unroll
            for (int k = 0; k < GRID_LOADS; k++)
                add(s, k, real_of<DTYPE>(x[k], j), real_of<DTYPE>(y[ONE_B ? 0 : k], j));
    }
}

/* Teams of lanes, a few rows each at a time; dealt to blocks first, as rows of warps are. */
template <enum dtype DTYPE>
__device__ inline void run_teams(const struct grid_task &task, const struct grid_launch &launch)
{
    const unsigned size = element<DTYPE>::BYTES, team = task.team, teams = GRID_WARP / team;
    const unsigned lane = threadIdx.x % team, mine = threadIdx.x % GRID_WARP / team;
    const uint32_t warp = threadIdx.x / GRID_WARP * task.blocks + (blockIdx.x - task.first_block);
    const uint32_t warps = GRID_WARPS * task.blocks, rows_a_warp = GRID_LOADS * teams;
    const uint64_t stride_a = task.stride_a[1] * size, stride_b = task.stride_b[1] * size;
    for (uint64_t first = (uint64_t)warp * rows_a_warp; first < task.rows;
         first += (uint64_t)warps * rows_a_warp) {
        const uint64_t row = first + mine;
        const uint64_t left = row < task.rows ? (task.rows - row + teams - 1) / teams : 0;
        const struct few_rows rows = {(const char *)task.a + row * stride_a,
                                      (const char *)task.b + row * stride_b, teams * stride_a,
                                      teams * stride_b, (unsigned)min(left, (uint64_t)GRID_LOADS)};
        const uint32_t vectors = (uint32_t)(task.n * size / GRID_LOAD_BYTES);
        struct sums s;
        clear(s);
        if (stride_b == 0)
            add_few<DTYPE, true>(rows, lane, team, vectors, s);
        else
            add_few<DTYPE, false>(rows, lane, team, vectors, s);
#pragma unroll
        for (int k = 0; k < GRID_LOADS; k++) {
            const struct grid_sum total = fold_lanes({s.sum[k], s.sum_abs[k]}, team);
            if (lane == 0 && k < (int)rows.count)
                put_total(task, launch, (uint32_t)(row + k * teams), total);
        }
    }
}

template <enum dtype DTYPE>
__global__ void __launch_bounds__(GRID_THREADS, 2)
    grid_atomic(const __grid_constant__ struct grid_launch launch)
{
    const int parts = element<DTYPE>::PARTS, size = parts * element<DTYPE>::BYTES;
    __shared__ struct grid_task task;
    fetch_task(&task, launch.task, launch.task_of_block, &launch.only);
    if constexpr (parts == 1)
        if (task.team > 0) {
            run_teams<DTYPE>(task, launch);
            return;
        }
    const struct place place = place_of(task, blockIdx.x - task.first_block);
    const bool is_warp = task.form == GRID_WARP_ROW;
    for (uint32_t row = place.row; row < task.rows; row += place.row_step) {
        struct share<DTYPE> share;
        share.conjugate = task.conjugate != 0;
        visit_row<size, GRID_LOADS>(row_of<size>(task, row, place.lane, place.lanes), share);
        for (int part = 0; part < parts; part++) {
            const struct grid_sum mine = total_of(share.part[part]);
            const struct grid_sum total = is_warp ? fold_lanes(mine, GRID_WARP) : fold_block(mine);
            if (threadIdx.x % (is_warp ? GRID_WARP : GRID_THREADS) == 0)
                put_total(task, launch, row * parts + part, total);
        }
    }
}

typedef void (*kernel)(const struct grid_launch launch);

const kernel kernels[DTYPE_COUNT] = {
#define X(code, size, name, alias, numpy, oip) grid_atomic<code>,
    DTYPE_MAP(X)
#undef X
};

} // namespace

cudaError_t grid_atomic_blocks(enum dtype dtype, int *ret)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(ret, kernels[dtype], GRID_THREADS, 0);
}

cudaError_t grid_atomic_launch(enum dtype dtype, const struct grid_launch *launch, uint32_t blocks,
                               cudaStream_t stream)
{
    void *arguments[] = {const_cast<struct grid_launch *>(launch)};
    return cudaLaunchKernel(kernels[dtype], dim3(blocks), dim3(GRID_THREADS), arguments, 0, stream);
}
