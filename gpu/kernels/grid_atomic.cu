/* grid_atomic.cu - many blocks, one pair of float64 atomicAdd a block; a whole batch in one launch.
 *
 * Idea      a block looks up its task, strides over its rows or its part of a row, and folds its
 *           sums by halves in shared memory; a row that one block owns is stored, a row of several
 *           blocks gets such a pair a block. Sums are float64 whatever the elements: the
 *           conversions hide behind the loads, and products of narrower floats are exact.
 *           Many short rows are read by tiles (tiles.cuh), which a kernel of its own does.
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
#include "gpu/kernels/tiles.cuh"

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

/* The warp's total, in its first lane. */
__device__ inline struct grid_sum fold_warp(struct grid_sum s)
{
    for (unsigned half = GRID_WARP / 2; half > 0; half /= 2) {
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
    return fold_warp(s);
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

/* --- many short rows --- */

/* Of a lane: one accumulator a row, for there are several rows. */
template <enum dtype DTYPE, typename Reading> struct tile_sums {
    enum { SIDE = Reading::SIDE, REALS = GRID_LOAD_BYTES / element<DTYPE>::BYTES };
    struct grid_sum *result; /* of row 0 */
    double *cell;            /* of the warp: of the sums, then of the absolute ones */
    double sum[SIDE], sum_abs[SIDE];

    __device__ void add(bool is_first, const uint4 (&x)[SIDE], const uint4 (&y)[Reading::SIDE_B])
    {
        if (is_first)
#pragma unroll
            for (int k = 0; k < SIDE; k++)
                sum[k] = sum_abs[k] = 0;
#pragma unroll
        for (int i = 0; i < REALS; i++)
#pragma unroll
            for (int k = 0; k < SIDE; k++) {
                const double a = real_of<DTYPE>(x[k], i);
                const double b = real_of<DTYPE>(y[Reading::ONE_B ? 0 : k], i);
                sum[k] = fma(a, b, sum[k]);
                sum_abs[k] = fma(fabs(a), fabs(b), sum_abs[k]);
            }
    }

    __device__ void end_rows(uint32_t row)
    {
        put_partials<Reading>(cell, row, sum);
        put_partials<Reading>(cell + CELL_COUNT, row, sum_abs);
    }

    __device__ void finish(uint32_t row, uint32_t count)
    {
        const uint32_t lane = threadIdx.x % GRID_WARP;
        __syncwarp();
        const struct grid_sum total = {total_of(cell, lane), total_of(cell + CELL_COUNT, lane)};
        if (lane < count)
            store_whole(&result[row + lane], total);
        __syncwarp();
    }
};

enum { TILE_BYTES = RING_BYTES + 2 * CELL_COUNT * sizeof(double) }; /* of a warp */

template <enum dtype DTYPE>
__global__ void __launch_bounds__(GRID_TILE_WARPS *GRID_WARP, 2)
    grid_tiles(const __grid_constant__ struct grid_launch launch)
{
    __shared__ struct grid_task task;
    fetch_task(&task, launch.task, launch.task_of_block, &launch.only);
    const struct tiles tiles = tiles_of<element<DTYPE>::BYTES>(task);
    char *shared = dynamic_shared() + threadIdx.x / GRID_WARP * TILE_BYTES;
    struct grid_sum *result = launch.result + task.result;
    by_team(task.team, tiles.stride_b == 0, [&](auto way) {
        typedef decltype(way) Reading;
        struct tile_sums<DTYPE, Reading> sums;
        sums.result = result;
        sums.cell = (double *)(shared + RING_BYTES);
        run_tiles<Reading>(tiles, shared, sums);
    });
}

template <enum dtype DTYPE>
__global__ void __launch_bounds__(GRID_THREADS, 2)
    grid_atomic(const __grid_constant__ struct grid_launch launch)
{
    const int parts = element<DTYPE>::PARTS, size = parts * element<DTYPE>::BYTES;
    __shared__ struct grid_task task;
    fetch_task(&task, launch.task, launch.task_of_block, &launch.only);
    const struct place place = place_of(task, blockIdx.x - task.first_block);
    const bool is_warp = task.form == GRID_WARP_ROW;
    for (uint32_t row = place.row; row < task.rows; row += place.row_step) {
        struct share<DTYPE> share;
        share.conjugate = task.conjugate != 0;
        visit_row<size, GRID_LOADS>(row_of<size>(task, row, place.lane, place.lanes), share);
        for (int part = 0; part < parts; part++) {
            const struct grid_sum mine = total_of(share.part[part]);
            const struct grid_sum total = is_warp ? fold_warp(mine) : fold_block(mine);
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

/* Complex rows are not read by tiles. */
template <enum dtype DTYPE> constexpr kernel tile_kernel()
{
    if constexpr (element<DTYPE>::PARTS == 1)
        return grid_tiles<DTYPE>;
    return NULL;
}

const kernel tile_kernels[DTYPE_COUNT] = {
#define X(code, size, name, alias, numpy, oip) tile_kernel<code>(),
    DTYPE_MAP(X)
#undef X
};

enum { TILE_BLOCK_BYTES = GRID_TILE_WARPS * TILE_BYTES };

} // namespace

cudaError_t grid_atomic_blocks(enum dtype dtype, int *ret)
{
    cudaError_t status = cudaSuccess;
    if (tile_kernels[dtype] != NULL)
        status = cudaFuncSetAttribute(
            tile_kernels[dtype], cudaFuncAttributeMaxDynamicSharedMemorySize, TILE_BLOCK_BYTES);
    if (status != cudaSuccess)
        return status;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(ret, kernels[dtype], GRID_THREADS, 0);
}

cudaError_t grid_atomic_launch(enum dtype dtype, const struct grid_launch *launch, uint32_t blocks,
                               cudaStream_t stream)
{
    void *arguments[] = {const_cast<struct grid_launch *>(launch)};
    if (launch->has_tiles)
        return cudaLaunchKernel(tile_kernels[dtype], dim3(blocks),
                                dim3(GRID_TILE_WARPS * GRID_WARP), arguments, TILE_BLOCK_BYTES,
                                stream);
    return cudaLaunchKernel(kernels[dtype], dim3(blocks), dim3(GRID_THREADS), arguments, 0, stream);
}
