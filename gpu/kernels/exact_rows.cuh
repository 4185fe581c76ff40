/* exact_rows.cuh - what the exact kernels have in common: tasks, rows, loads, and the way from the
 * threads' sums to a rounded result.
 *
 * Door: exact_rows<Sum>, the kernel, over a type's accumulator:
 *   struct Sum {
 *       enum { THREADS, BLOCKS };      of a block at most; that a multiprocessor should hold
 *       enum { LOADS };                vectors of each operand in flight a thread
 *       enum { SIZE, PARTS };          bytes of an element; real sums: 2 of complex types
 *       enum { LIMBS, BASE };          of a part: the layout of gpu/exact/limbs.h
 *       enum { PART_BYTES };           shared memory of a warp for a part, at least LIMBS int64
 *       static const enum dtype DTYPE;
 *       Sum(char *region, const grid_task &task);    region: the warp's shared memory
 *       void begin();                  the empty sum
 *       void add(uint4 x, uint4 y);    the products of two vectors of 16 bytes
 *       void pause();                  after at most LOADS of them: carries, when it is time
 *       bool is_odd();                 some operand was not finite: what was added is of no use
 *       void fold();                   the warp's limbs to the start of each part's memory
 *   };
 *
 * Idea      a thread keeps a private exact sum, in registers or in its own column of shared memory,
 *           so that its deposits meet nobody's. A warp folds its threads' sums, the block its
 *           warps', and a row of several blocks is added up with one integer atomicAdd a limb that
 *           is not zero; the last block to arrive rounds. Integer additions in any order give the
 *           same bits.
 * Cost      operands read once; the rest is each accumulator's.
 * Order     none matters.
 * Error     half an ulp of the result, and none where the sum is a number of the result's type.
 * Needs     launch.total zero where a row begins; any n, any alignment of 4 bytes or of an element.
 * Source    S. Collange, D. Defour, S. Graillat, R. Iakymchuk, Numerical reproducibility for the
 *           parallel reduction on multi- and many-core architectures, Parallel Computing 49, 2015;
 *           CUDA C++ Programming Guide, memory fence functions (the last block to arrive).
 * Measured  tests/bench/results.
 */
#ifndef GPU_KERNELS_EXACT_ROWS_CUH
#define GPU_KERNELS_EXACT_ROWS_CUH

#include "gpu/kernels/elements.cuh"
#include "gpu/kernels/exact.h"
#include "gpu/kernels/rows.cuh"

namespace
{

#ifdef DOTD_EMU
__device__ inline char *dynamic_shared()
{
    return (char *)emu_shared();
}
#else
extern __shared__ uint4 exact_shared[];
__device__ inline char *dynamic_shared()
{
    return (char *)exact_shared;
}
#endif

/* --- sums --- */

template <typename Sum> struct adder {
    enum { STARTS_SLOWLY = Sum::PART_BYTES > 8192 };
    Sum &sum;
    __device__ adder(Sum &s) : sum(s)
    {
    }
    __device__ void start()
    {
        sum.begin();
    }
    __device__ void visit(uint4 x, uint4 y)
    {
        sum.add(x, y);
    }
    __device__ void pause()
    {
        sum.pause();
    }
};

/* Looks for what is not finite. */
template <enum dtype DTYPE> struct finder {
    enum { STARTS_SLOWLY = 0 };
    const struct grid_task &task;
    unsigned special;
    __device__ finder(const struct grid_task &t) : task(t), special(0)
    {
    }
    __device__ void start()
    {
    }
    __device__ void visit(uint4 x, uint4 y)
    {
        special |= special_of<DTYPE>(x, y, task.conjugate != 0);
    }
    __device__ void pause()
    {
    }
};

/* Adds the thread's share and folds the warp's. Returns the warp's special bits: only where
 * something was not finite are the operands read again to tell what. */
template <typename Sum>
__device__ inline unsigned add_row(Sum &sum, const struct row &row, const struct grid_task &task)
{
    adder<Sum> added(sum);
    finder<Sum::DTYPE> found(task);
    visit_row<Sum::SIZE, Sum::LOADS>(row, added);
    if (sum.is_odd())
        visit_row<Sum::SIZE, 1>(row, found);
    sum.fold();
    return __reduce_or_sync(ALL_LANES, found.special);
}

/* --- results --- */

/* One warp rounds the row whose limbs lie at `limbs`, a part every PART_BYTES. Only the span
 * between the lowest and the highest limb that is not zero is looked at closer. */
template <typename Sum>
__device__ __attribute__((noinline)) void
settle(char *limbs, unsigned special, const struct grid_task &task, struct dot_value *ret)
{
    const unsigned lane = threadIdx.x % GRID_WARP;
    int low = 0, high = Sum::LIMBS - 1;
    for (int part = 0; part < Sum::PARTS && (int)Sum::BASE != (int)EXACT_INTEGER_BASE; part++) {
        const int64_t *limb = (const int64_t *)(limbs + part * Sum::PART_BYTES);
        int first = Sum::LIMBS, last = 0;
        for (int i = 0; i < Sum::LIMBS; i += GRID_WARP) {
            const bool is_set = i + lane < Sum::LIMBS && limb[i + lane] != 0;
            const unsigned set = __ballot_sync(ALL_LANES, is_set);
            if (set != 0) {
                first = min(first, i + __ffs((int)set) - 1);
                last = i + 31 - __clz((int)set);
            }
        }
        if (lane == (unsigned)part) {
            low = min(first, last);
            high = last;
        }
    }
    if (lane < Sum::PARTS) {
        int64_t *limb = (int64_t *)(limbs + lane * Sum::PART_BYTES);
        struct dot_value value = {};
        exact_value(limb + low, high - low + 1, Sum::BASE + 32 * low,
                    special >> (lane * EXACT_PART_BITS) & ((1 << EXACT_PART_BITS) - 1), Sum::DTYPE,
                    (enum dtype)task.result_dtype, &value);
        ret[lane] = value;
    }
    __syncwarp();
}

/* Of a block: everything but the accumulators. */
struct desk {
    struct grid_task task;
    unsigned special[GRID_WARP]; /* by warp */
    bool is_last;                /* the block is the row's last to arrive */
};

/* After each warp has folded: thread i adds up limb i of all warps and passes it on. Only it
 * touches limb i of the first warp, so that may be overwritten. */
template <typename Sum, typename Take> __device__ inline void fold_block(char *shared, Take take)
{
    const int warps = blockDim.x / GRID_WARP, step = Sum::PARTS * Sum::PART_BYTES;
    __syncthreads();
    for (int i = threadIdx.x; i < Sum::PARTS * Sum::LIMBS; i += blockDim.x) {
        const int part = i / Sum::LIMBS, index = i % Sum::LIMBS;
        char *at = shared + part * Sum::PART_BYTES + index * sizeof(int64_t);
        uint64_t total = 0; /* what is not finite may overflow */
#pragma unroll 4
        for (int warp = 0; warp < warps; warp++)
            total += *(const uint64_t *)(at + warp * step);
        take(part, index, (int64_t)total, (int64_t *)at);
    }
    __syncthreads();
}

template <typename Sum> __device__ inline unsigned block_special(const struct desk &desk)
{
    unsigned special = 0;
    for (unsigned warp = 0; warp < blockDim.x / GRID_WARP; warp++)
        special |= desk.special[warp];
    return special;
}

/* --- the rows of a block --- */

/* True in every thread of the block that comes last; then all other blocks' additions are seen. */
__device__ inline bool arrive(struct exact_total *total, struct desk &desk)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        desk.is_last = atomicAdd(&total->arrived, 1u) == desk.task.parts - 1;
    __syncthreads();
    __threadfence();
    return desk.is_last;
}

/* Takes the row's total and leaves zeros. */
template <typename Sum>
__device__ inline void take_total(char *shared, struct exact_total *total, struct desk &desk)
{
    for (int i = threadIdx.x; i < Sum::PARTS * Sum::LIMBS; i += blockDim.x) {
        const int part = i / Sum::LIMBS, index = i % Sum::LIMBS;
        int64_t *limb = (int64_t *)(shared + part * Sum::PART_BYTES);
        limb[index] = (int64_t)__ldcg(&total->limb[part][index]);
        total->limb[part][index] = 0;
    }
    if (threadIdx.x == 0) {
        desk.special[0] = __ldcg(&total->special);
        total->special = 0;
        total->arrived = 0;
    }
    __syncthreads();
}

/* The block's sum goes to the row's total. True if this block is to round it. */
template <typename Sum>
__device__ inline bool add_to_total(char *shared, struct exact_total *total, struct desk &desk)
{
    fold_block<Sum>(shared, [&](int part, int index, int64_t limb, int64_t *) {
        if (limb != 0)
            atomicAdd((unsigned long long *)&total->limb[part][index], (unsigned long long)limb);
    });
    const unsigned special = block_special<Sum>(desk);
    if (threadIdx.x == 0 && special != 0)
        atomicOr(&total->special, special);
    if (!desk.task.is_final || !arrive(total, desk))
        return false;
    take_total<Sum>(shared, total, desk);
    return true;
}

template <typename Sum>
__device__ inline void run_task(Sum &sum, char *shared, struct desk &desk,
                                const struct exact_launch &launch)
{
    const struct grid_task &task = desk.task;
    const uint32_t warp = threadIdx.x / GRID_WARP, lane = threadIdx.x % GRID_WARP;
    const struct place place = place_of(task, blockIdx.x - task.first_block);
    for (uint32_t row = place.row; row < task.rows; row += place.row_step) {
        struct dot_value *result = launch.result + task.result + row * Sum::PARTS;
        const unsigned special =
            add_row(sum, row_of<Sum::SIZE>(task, row, place.lane, place.lanes), task);
        if (task.form == GRID_WARP_ROW) {
            settle<Sum>(shared + warp * Sum::PARTS * Sum::PART_BYTES, special, task, result);
            continue;
        }
        if (lane == 0)
            desk.special[warp] = special;
        bool rounds = true;
        if (task.form == GRID_BLOCK_ROW)
            fold_block<Sum>(shared, [](int, int, int64_t limb, int64_t *at) { *at = limb; });
        else
            rounds = add_to_total<Sum>(shared, &launch.total[task.total + row], desk);
        if (rounds && warp == 0)
            settle<Sum>(shared, block_special<Sum>(desk), task, result);
        __syncthreads();
    }
}

template <typename Sum>
__global__ void __launch_bounds__(Sum::THREADS, Sum::BLOCKS)
    exact_rows(const __grid_constant__ struct exact_launch launch)
{
    static_assert(Sum::PART_BYTES >= Sum::LIMBS * sizeof(int64_t), "limbs lie there");
    __shared__ struct desk desk;
    fetch_task(&desk.task, launch.task, launch.task_of_block, &launch.only);
    char *shared = dynamic_shared();
    Sum sum(shared + threadIdx.x / GRID_WARP * (Sum::PARTS * Sum::PART_BYTES), desk.task);
    run_task(sum, shared, desk, launch);
}

/* --- the host's side --- */

/* A device with little shared memory runs smaller blocks. */
template <typename Sum> cudaError_t fit_block(uint32_t *ret_threads, int *ret_bytes)
{
    const int warp_bytes = Sum::PARTS * Sum::PART_BYTES;
    int device = 0, most = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (status != cudaSuccess)
        return status;
    const int fitting = (most - (int)sizeof(struct desk)) / warp_bytes;
    const int warps = min(fitting, (int)Sum::THREADS / GRID_WARP);
    if (warps < 1)
        return cudaErrorInvalidValue;
    *ret_threads = (uint32_t)(warps * GRID_WARP);
    *ret_bytes = warps * warp_bytes;
    return cudaSuccess;
}

template <typename Sum> cudaError_t open_rows(uint32_t multiprocessors, struct exact_shape *ret)
{
    int bytes = 0, blocks = 0;
    uint32_t threads = 0;
    cudaError_t status = fit_block<Sum>(&threads, &bytes);
    if (status == cudaSuccess)
        status = cudaFuncSetAttribute(exact_rows<Sum>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      bytes);
    if (status == cudaSuccess)
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, exact_rows<Sum>,
                                                               (int)threads, bytes);
    if (status != cudaSuccess)
        return status;
    ret->threads = threads;
    ret->capacity = (uint32_t)blocks * multiprocessors;
    return cudaSuccess;
}

template <typename Sum>
cudaError_t launch_rows(const struct exact_shape *shape, const struct exact_launch *launch,
                        uint32_t blocks, cudaStream_t stream)
{
    const size_t bytes = shape->threads / GRID_WARP * Sum::PARTS * Sum::PART_BYTES;
    void *arguments[] = {const_cast<struct exact_launch *>(launch)};
    return cudaLaunchKernel(exact_rows<Sum>, dim3(blocks), dim3(shape->threads), arguments, bytes,
                            stream);
}

} // namespace

#endif
