/* grid_atomic.cu - many blocks, one pair of float64 atomicAdd a block; a whole batch in one launch.
 *
 * Idea      a block looks up its task, strides over its rows or its part of a row, and folds its
 *           sums by halves in shared memory; a row that one block owns is stored, a row of several
 *           blocks gets one atomicAdd a block. Sums are float64 whatever the elements: the
 *           conversions hide behind the loads, and products of float32 are exact.
 * Cost      operands read once, 16 bytes a load and 4 loads of each in flight; 5 barriers and at
 *           most 2 atomics a block.
 * Order     atomics arrive in any order: the last bits of a split row may change from run to run.
 * Error     proved in bound.c; depth by grid_depth(): terms a thread + log2 block + blocks a row.
 * Needs     launch.split zero before the launch; any n, any element-aligned operands.
 * Source    M. Harris, Optimizing Parallel Reduction in CUDA; CUDA C++ Programming Guide, atomic
 *           functions; PTX ISA, atom: float64 additions do not flush subnormal numbers.
 * Measured  tests/bench/results.
 */
#include "gpu/kernels/grid_atomic.h"

namespace
{

template <typename T> struct vector_of;
template <> struct vector_of<float> {
    typedef float4 type;
};
template <> struct vector_of<double> {
    typedef double2 type;
};

/* A thread's sums: one accumulator a place of a vector, so that additions do not wait for each
 * other. Only the first 16 / sizeof(T) are used; the compiler drops the rest. */
struct sums {
    double sum[4], sum_abs[4];
};

__device__ inline void add(struct sums &s, int place, double x, double y)
{
    s.sum[place] = fma(x, y, s.sum[place]);
    s.sum_abs[place] = fma(fabs(x), fabs(y), s.sum_abs[place]);
}

__device__ inline void add(struct sums &s, float4 x, float4 y)
{
    add(s, 0, x.x, y.x);
    add(s, 1, x.y, y.y);
    add(s, 2, x.z, y.z);
    add(s, 3, x.w, y.w);
}

__device__ inline void add(struct sums &s, double2 x, double2 y)
{
    add(s, 0, x.x, y.x);
    add(s, 1, x.y, y.y);
}

/* Vectors `lane`, `lane + lanes`, ... of count: a round's loads are issued before any is used. */
template <typename V>
__device__ inline void add_vectors(struct sums &s, const V *a, const V *b, uint64_t count,
                                   uint64_t lane, uint64_t lanes)
{
    uint64_t i = lane;
    for (; i + (GRID_LOADS - 1) * lanes < count; i += GRID_LOADS * lanes) {
        V x[GRID_LOADS], y[GRID_LOADS];
#pragma unroll
        for (int k = 0; k < GRID_LOADS; k++) {
            x[k] = __ldg(a + i + k * lanes);
            y[k] = __ldg(b + i + k * lanes);
        }
#pragma unroll
        for (int k = 0; k < GRID_LOADS; k++)
            add(s, x[k], y[k]);
    }
    for (; i < count; i += lanes)
        add(s, __ldg(a + i), __ldg(b + i));
}

/* The same with single elements, for operands that are misaligned differently: still coalesced. */
template <typename T>
__device__ inline void add_elements(struct sums &s, const T *a, const T *b, uint64_t count,
                                    uint64_t lane, uint64_t lanes)
{
    const int places = GRID_LOAD_BYTES / sizeof(T);
    uint64_t i = lane;
    for (; i + (GRID_LOADS - 1) * lanes < count; i += GRID_LOADS * lanes) {
        T x[GRID_LOADS], y[GRID_LOADS];
#pragma unroll
        for (int k = 0; k < GRID_LOADS; k++) {
            x[k] = __ldg(a + i + k * lanes);
            y[k] = __ldg(b + i + k * lanes);
        }
#pragma unroll
        for (int k = 0; k < GRID_LOADS; k++)
            add(s, k % places, x[k], y[k]);
    }
    for (; i < count; i += lanes)
        add(s, 0, __ldg(a + i), __ldg(b + i));
}

/* The share of one of `lanes` threads in a row: single elements up to the first boundary of 16
 * bytes, vectors, single elements behind the last. */
template <typename T>
__device__ inline struct grid_sum add_row(const T *a, const T *b, uint64_t n, uint64_t lane,
                                          uint64_t lanes)
{
    typedef typename vector_of<T>::type vector;
    const uint64_t places = GRID_LOAD_BYTES / sizeof(T);
    const uint64_t over_a = (uintptr_t)a / sizeof(T) % places;
    const uint64_t over_b = (uintptr_t)b / sizeof(T) % places;
    struct sums s = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (over_a == over_b) {
        const uint64_t to_boundary = (places - over_a) % places;
        const uint64_t head = to_boundary < n ? to_boundary : n;
        const uint64_t vectors = (n - head) / places, tail = head + vectors * places;
        if (lane < head)
            add(s, 0, __ldg(a + lane), __ldg(b + lane));
        add_vectors(s, (const vector *)(a + head), (const vector *)(b + head), vectors, lane,
                    lanes);
        if (lane < n - tail)
            add(s, 0, __ldg(a + tail + lane), __ldg(b + tail + lane));
    } else {
        add_elements(s, a, b, n, lane, lanes);
    }
    struct grid_sum total = {(s.sum[0] + s.sum[1]) + (s.sum[2] + s.sum[3]),
                             (s.sum_abs[0] + s.sum_abs[1]) + (s.sum_abs[2] + s.sum_abs[3])};
    return total;
}

/* The warp's total, in its first thread. */
__device__ inline struct grid_sum fold_warp(struct grid_sum s)
{
    for (int half = GRID_WARP / 2; half > 0; half /= 2) {
        s.sum += __shfl_down_sync(0xffffffff, s.sum, half);
        s.sum_abs += __shfl_down_sync(0xffffffff, s.sum_abs, half);
    }
    return s;
}

/* The block's total, in its first thread: by halves in shared memory down to one warp. No barrier
 * at the end: when the next row comes, a thread overwrites only its own slot, and whoever read that
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

template <typename T>
__device__ inline struct grid_sum add_row_of(const struct grid_task &task, uint32_t row,
                                             uint64_t lane, uint64_t lanes)
{
    const uint32_t outer = row / task.inner_rows, inner = row % task.inner_rows;
    const T *a = (const T *)task.a + outer * task.stride_a[0] + inner * task.stride_a[1];
    const T *b = (const T *)task.b + outer * task.stride_b[0] + inner * task.stride_b[1];
    return add_row(a, b, task.n, lane, lanes);
}

/* Rows are dealt to blocks first and to their warps second, so that few rows use many
 * multiprocessors. */
template <typename T>
__device__ inline void warp_rows(const struct grid_task &task, uint32_t block,
                                 struct grid_sum *result)
{
    const uint32_t warp = threadIdx.x / GRID_WARP, lane = threadIdx.x % GRID_WARP;
    for (uint32_t row = warp * task.blocks + block; row < task.rows;
         row += GRID_WARPS * task.blocks) {
        struct grid_sum s = fold_warp(add_row_of<T>(task, row, lane, GRID_WARP));
        if (lane == 0)
            result[task.result + row] = s;
    }
}

template <typename T>
__device__ inline void block_rows(const struct grid_task &task, uint32_t block,
                                  struct grid_sum *result)
{
    for (uint32_t row = block; row < task.rows; row += task.blocks) {
        struct grid_sum s = fold_block(add_row_of<T>(task, row, threadIdx.x, GRID_THREADS));
        if (threadIdx.x == 0)
            result[task.result + row] = s;
    }
}

template <typename T>
__device__ inline void split_row(const struct grid_task &task, uint32_t block,
                                 struct grid_sum *split)
{
    const uint32_t row = block / task.parts, part = block % task.parts;
    const uint64_t lane = (uint64_t)part * GRID_THREADS + threadIdx.x;
    const uint64_t lanes = (uint64_t)task.parts * GRID_THREADS;
    struct grid_sum s = fold_block(add_row_of<T>(task, row, lane, lanes));
    if (threadIdx.x == 0) {
        atomicAdd(&split[task.result + row].sum, s.sum);
        atomicAdd(&split[task.result + row].sum_abs, s.sum_abs);
    }
}

template <typename T>
__device__ inline void run_task(const struct grid_task &task, const struct grid_launch &launch)
{
    const uint32_t block = blockIdx.x - task.first_block;
    if (task.form == GRID_WARP_ROW)
        warp_rows<T>(task, block, launch.result);
    else if (task.form == GRID_BLOCK_ROW)
        block_rows<T>(task, block, launch.result);
    else
        split_row<T>(task, block, launch.split);
}

/* The table may lie in host memory: one thread a word fetches the block's entry, once. */
__global__ void __launch_bounds__(GRID_THREADS, 2)
    grid_atomic(const __grid_constant__ struct grid_launch launch)
{
    __shared__ struct grid_task task;
    const struct grid_task *source = &launch.only;
    if (launch.task_of_block != NULL)
        source = &launch.task[launch.task_of_block[blockIdx.x]];
    if (threadIdx.x < sizeof task / sizeof(uint32_t))
        ((uint32_t *)&task)[threadIdx.x] = ((const uint32_t *)source)[threadIdx.x];
    __syncthreads();
    if (task.dtype == DTYPE_FLOAT32)
        run_task<float>(task, launch);
    else
        run_task<double>(task, launch);
}

static_assert(sizeof(struct grid_task) % sizeof(uint32_t) == 0, "copied word by word");
static_assert(sizeof(struct grid_task) / sizeof(uint32_t) <= GRID_THREADS, "a thread a word");

} // namespace

cudaError_t grid_atomic_blocks(int *ret)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(ret, grid_atomic, GRID_THREADS, 0);
}

cudaError_t grid_atomic_launch(const struct grid_launch *launch, uint32_t blocks,
                               cudaStream_t stream)
{
    void *arguments[] = {const_cast<struct grid_launch *>(launch)};
    return cudaLaunchKernel(grid_atomic, dim3(blocks), dim3(GRID_THREADS), arguments, 0, stream);
}
