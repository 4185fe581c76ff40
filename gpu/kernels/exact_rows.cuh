/* exact_rows.cuh - what the exact kernels have in common: tasks, rows, loads, and the way from the
 * threads' sums to a rounded result.
 *
 * Door: exact_rows<Sum>, the kernel, over a type's accumulator:
 *   struct Sum {
 *       enum { THREADS, BLOCKS };      of a block at most; that a multiprocessor should hold
 *       enum { LOADS };                vectors of each operand in flight a thread; 0: see AHEAD
 *       enum { AHEAD, WIDTH };         AHEAD times WIDTH pairs of vectors are on their way through
 *                                      shared memory, WIDTH are added at once; or 0
 *       enum { SIZE, PARTS };          bytes of an element; real sums: 2 of complex types
 *       enum { LIMBS, BASE };          of a part: the layout of gpu/exact/limbs.h
 *       enum { PART_BYTES };           shared memory of a warp for a part, at least LIMBS int64
 *       static const enum dtype DTYPE;
 *       Sum(char *region, const grid_task &task);    region: the warp's shared memory
 *       void begin();                  the empty sum; or, by whole warps, begin(x, y) with each
 *                                      lane's first vectors, if they are read ahead
 *       void add(uint4 x, uint4 y);    the products of two vectors of 16 bytes; or, of those that
 *                                      are read ahead, of WIDTH times two, add(x[], y[]), of which
 *                                      all but the first ones may be zeros
 *       void pause();                  after at most LOADS of them, or one: carries, if it is time
 *       void lap(uint4 x, uint4 y);    by whole warps, each with its last vectors, after so many as
 *                                      are ahead
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

/* --- sums --- */

template <typename Sum> struct adder {
    Sum &sum;
    __device__ adder(Sum &s) : sum(s)
    {
    }
    __device__ void start()
    {
        sum.begin();
    }
    __device__ void start(const uint4 &x, const uint4 &y)
    {
        sum.begin(x, y);
    }
    __device__ void visit(const uint4 &x, const uint4 &y)
    {
        sum.add(x, y);
    }
    template <int WIDTH> __device__ void visit(const uint4 (&x)[WIDTH], const uint4 (&y)[WIDTH])
    {
        sum.add(x, y);
    }
    __device__ void pause()
    {
        sum.pause();
    }
    __device__ void lap(const uint4 &x, const uint4 &y)
    {
        sum.lap(x, y);
    }
};

/* Looks for what is not finite. */
template <enum dtype DTYPE> struct finder {
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
template <typename Sum, int AHEAD = Sum::AHEAD>
__device__ inline unsigned add_row(Sum &sum, const struct row &row, char *ring,
                                   const struct grid_task &task)
{
    adder<Sum> added(sum);
    finder<Sum::DTYPE> found(task);
    if constexpr (AHEAD > 0)
        visit_ahead<Sum::SIZE, AHEAD, Sum::WIDTH>(row, ring, added);
    else
        visit_row<Sum::SIZE, Sum::LOADS>(row, added);
    if (sum.is_odd())
        visit_row<Sum::SIZE, 1>(row, found);
    sum.fold();
    return __reduce_or_sync(ALL_LANES, found.special);
}

/* --- results --- */

/* Limbs that a warp rounds at once, one to a lane: there is room for what is carried out of them
 * and for the two limbs that are read above the highest. */
enum { SETTLE_LIMBS = 28 };

/* Leaves the limbs of lanes below `count` in [0, 2^32); lane `count` takes the rest. Nearly always
 * three rounds. */
__device__ inline int64_t carry_lanes(int64_t limb, int count)
{
    const int lane = (int)(threadIdx.x % GRID_WARP);
    for (;;) {
        const int64_t carry = lane < count ? limb >> 32 : 0;
        if (!__any_sync(ALL_LANES, carry != 0))
            return limb;
        const int64_t from_below = __shfl_up_sync(ALL_LANES, carry, 1);
        limb = (lane < count ? limb & 0xffffffff : limb) + (lane > 0 ? from_below : 0);
    }
}

/* What exact_round() finds in one limb after the other, from limbs that are carried and not
 * negative, of which `set` are not zero. */
__device__ inline struct exact_cut cut_lanes(int64_t limb, unsigned set, int base,
                                             struct exact_format format)
{
    const int top = 31 - __clz((int)set);
    const int highest = 32 * top + exact_highest_bit((uint64_t)__shfl_sync(ALL_LANES, limb, top));
    const int drop = exact_drop(format, base, highest);
    const int at = min(drop, highest + 2), first = at / 32, shift = at % 32;
    const uint64_t low = (uint64_t)__shfl_sync(ALL_LANES, limb, first);
    const uint64_t middle = (uint64_t)__shfl_sync(ALL_LANES, limb, first + 1);
    const uint64_t high = (uint64_t)__shfl_sync(ALL_LANES, limb, first + 2);
    struct exact_cut cut = {};
    cut.significand = (middle << 32 | low) >> shift | high << 32 << (32 - shift);
    cut.quantum = drop + base;
    if (drop > 0) {
        const int below = (at - 1) / 32, bit = (at - 1) % 32;
        const uint64_t word = (uint64_t)__shfl_sync(ALL_LANES, limb, below);
        cut.is_half = (word >> bit & 1) != 0;
        cut.is_below = (word & (((uint64_t)1 << bit) - 1)) != 0 || (set & ((1u << below) - 1)) != 0;
    }
    return cut;
}

/* As exact_value() does it, by a whole warp: `count` limbs from `base` on, the lowest in lane 0. */
template <typename Sum>
__device__ inline void round_lanes(int64_t limb, int count, int base, enum dtype result_dtype,
                                   struct dot_value *ret)
{
    const struct exact_format format = exact_format_of(result_dtype);
    limb = carry_lanes(limb, count);
    if ((int)Sum::BASE == (int)EXACT_INTEGER_BASE)
        for (int i = 0; i < 3; i++)
            ret->integer[i] = (uint64_t)__shfl_sync(ALL_LANES, limb, 2 * i) |
                              (uint64_t)__shfl_sync(ALL_LANES, limb, 2 * i + 1) << 32;
    const bool is_negative = __shfl_sync(ALL_LANES, limb, count) < 0;
    if (is_negative)
        limb = carry_lanes(-limb, count);
    const unsigned set = __ballot_sync(ALL_LANES, limb != 0);
    if (set != 0) {
        struct exact_cut cut = cut_lanes(limb, set, base, format);
        cut.is_negative = is_negative;
        exact_round_cut(&cut, format, ret);
    }
    if (result_dtype == DTYPE_INT64) { /* integer[] is the result, and exact */
        ret->error_bound = 0;
        ret->flags = 0;
    }
}

/* From the lowest to the highest limb that is not zero; all of an integer. */
struct extent {
    int low, count;
};

template <typename Sum> __device__ inline struct extent extent_of(const int64_t *limb)
{
    if ((int)Sum::BASE == (int)EXACT_INTEGER_BASE)
        return {0, Sum::LIMBS};
    const int lane = (int)(threadIdx.x % GRID_WARP);
    int first = Sum::LIMBS - 1, last = 0;
#pragma unroll
    for (int i = 0; i < Sum::LIMBS; i += GRID_WARP) {
        const bool is_set = i + lane < Sum::LIMBS && limb[i + lane] != 0;
        const unsigned set = __ballot_sync(ALL_LANES, is_set);
        if (set != 0) {
            first = min(first, i + __ffs((int)set) - 1);
            last = i + 31 - __clz((int)set);
        }
    }
    first = min(first, last);
    return {first, last - first + 1};
}

/* One warp rounds a real sum. A number of more limbs is left to one lane. */
template <typename Sum>
__device__ inline struct dot_value value_of(int64_t *limb, unsigned special,
                                            enum dtype result_dtype)
{
    const int lane = (int)(threadIdx.x % GRID_WARP);
    struct dot_value value = {};
    const struct extent extent = extent_of<Sum>(limb);
    const int base = Sum::BASE + 32 * extent.low;
    if (special != 0)
        exact_settle_special(special, &value);
    else if ((int)Sum::LIMBS <= (int)SETTLE_LIMBS || extent.count <= SETTLE_LIMBS)
        round_lanes<Sum>(lane < extent.count ? limb[extent.low + lane] : 0, extent.count, base,
                         result_dtype, &value);
    else if (lane == 0)
        exact_value(limb + extent.low, extent.count, base, 0, Sum::DTYPE, result_dtype, &value);
    return value;
}

/* One warp rounds the row whose limbs lie at `limbs`, a part every PART_BYTES. */
template <typename Sum>
__device__ __attribute__((noinline)) void
settle(char *limbs, unsigned special, const struct grid_task &task, struct dot_value *ret)
{
    for (int part = 0; part < Sum::PARTS; part++) {
        const struct dot_value value =
            value_of<Sum>((int64_t *)(limbs + part * Sum::PART_BYTES),
                          special >> (part * EXACT_PART_BITS) & ((1 << EXACT_PART_BITS) - 1),
                          (enum dtype)task.result_dtype);
        if (threadIdx.x % GRID_WARP == 0)
            ret[part] = value;
    }
    __syncwarp();
}

/* Of a block: everything but the accumulators. */
struct desk {
    struct grid_task task;
    unsigned special[GRID_WARP]; /* by warp */
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
#pragma unroll 8
        for (int warp = 0; warp < warps; warp++)
            total += *(const uint64_t *)(at + warp * step);
        take(part, index, (int64_t)total, (int64_t *)at);
    }
    __syncthreads();
}

/* By a whole warp. */
__device__ inline unsigned block_special(const struct desk &desk)
{
    const unsigned lane = threadIdx.x % GRID_WARP;
    return __reduce_or_sync(ALL_LANES, lane < blockDim.x / GRID_WARP ? desk.special[lane] : 0);
}

/* --- the rows of a block --- */

/* A warp's vectors on their way. */
template <typename Sum> __host__ __device__ constexpr int ring_bytes()
{
    if constexpr (Sum::AHEAD > 0)
        return Sum::AHEAD * Sum::WIDTH * PAIR_BYTES;
    return 0;
}

/* True in every lane of the block's first warp if the block comes last; then all other blocks'
 * additions are seen. After a barrier: so one thread's fences count for the block. */
__device__ inline bool arrive(struct exact_total *total, uint32_t parts)
{
    unsigned before = 0;
    if (threadIdx.x == 0) {
        __threadfence();
        before = atomicAdd(&total->arrived, 1u);
        __threadfence();
    }
    return __shfl_sync(ALL_LANES, before, 0) == parts - 1;
}

/* One warp takes the row's total and leaves zeros. Returns its special bits. All of it is on its
 * way before any is used, which would wait for a trip to L2 each time. */
template <typename Sum>
__device__ inline unsigned take_total(char *shared, struct exact_total *total)
{
    enum { ROUNDS = (Sum::LIMBS + GRID_WARP - 1) / GRID_WARP };
    const int lane = (int)(threadIdx.x % GRID_WARP);
    const unsigned special = __ldcg(&total->special);
    uint64_t limb[Sum::PARTS][ROUNDS];
#pragma unroll
    for (int i = 0; i < Sum::PARTS * ROUNDS; i++) {
        const int part = i / ROUNDS, index = i % ROUNDS * GRID_WARP + lane;
        limb[part][i % ROUNDS] = index < Sum::LIMBS ? __ldcg(&total->limb[part][index]) : 0;
    }
#pragma unroll
    for (int i = 0; i < Sum::PARTS * ROUNDS; i++) {
        const int part = i / ROUNDS, index = i % ROUNDS * GRID_WARP + lane;
        if (index < Sum::LIMBS) {
            ((uint64_t *)(shared + part * Sum::PART_BYTES))[index] = limb[part][i % ROUNDS];
            total->limb[part][index] = 0;
        }
    }
    __syncwarp();
    if (lane == 0) {
        total->special = 0;
        total->arrived = 0;
    }
    return special;
}

/* The block's sum goes to the row's total, and the last block rounds it. */
template <typename Sum>
__device__ inline void add_to_total(char *shared, struct exact_total *total,
                                    const struct desk &desk, struct dot_value *result)
{
    fold_block<Sum>(shared, [&](int part, int index, int64_t limb, int64_t *) {
        if (limb != 0)
            atomicAdd((unsigned long long *)&total->limb[part][index], (unsigned long long)limb);
    });
    if (threadIdx.x >= GRID_WARP)
        return;
    const unsigned special = block_special(desk);
    if (threadIdx.x == 0 && special != 0)
        atomicOr(&total->special, special);
    if (!desk.task.is_final || !arrive(total, desk.task.parts))
        return;
    const unsigned all = take_total<Sum>(shared, total);
    settle<Sum>(shared, all, desk.task, result);
}

template <typename Sum>
__device__ inline void run_task(Sum &sum, char *shared, char *ring, struct desk &desk,
                                const struct exact_launch &launch)
{
    const struct grid_task &task = desk.task;
    const uint32_t warp = threadIdx.x / GRID_WARP, lane = threadIdx.x % GRID_WARP;
    const struct place place = place_of(task, blockIdx.x - task.first_block);
    for (uint32_t row = place.row; row < task.rows; row += place.row_step) {
        struct dot_value *result = launch.result + task.result + row * Sum::PARTS;
        const unsigned special =
            add_row(sum, row_of<Sum::SIZE>(task, row, place.lane, place.lanes), ring, task);
        if (task.form == GRID_WARP_ROW) {
            settle<Sum>(shared + warp * Sum::PARTS * Sum::PART_BYTES, special, task, result);
            continue;
        }
        if (lane == 0)
            desk.special[warp] = special;
        if (task.form == GRID_SPLIT_ROW) { /* the block's only row */
            add_to_total<Sum>(shared, &launch.total[task.total + row], desk, result);
            return;
        }
        fold_block<Sum>(shared, [](int, int, int64_t limb, int64_t *at) { *at = limb; });
        if (warp == 0)
            settle<Sum>(shared, block_special(desk), task, result);
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
    const unsigned warp = threadIdx.x / GRID_WARP, lane = threadIdx.x % GRID_WARP;
    char *shared = dynamic_shared();
    char *rings = shared + blockDim.x / GRID_WARP * (Sum::PARTS * Sum::PART_BYTES);
    Sum sum(shared + warp * (Sum::PARTS * Sum::PART_BYTES), desk.task);
    run_task(sum, shared, rings + warp * ring_bytes<Sum>() + lane * GRID_LOAD_BYTES, desk, launch);
}

/* --- the host's side --- */

/* Shared memory of a warp. */
template <typename Sum> constexpr int warp_bytes()
{
    return Sum::PARTS * Sum::PART_BYTES + ring_bytes<Sum>();
}

template <typename Sum> cudaError_t open_rows(uint32_t multiprocessors, struct exact_shape *ret)
{
    ret->tile_threads = ret->tile_capacity = 0;
    return open_kernel(exact_rows<Sum>, warp_bytes<Sum>(), (int)sizeof(struct desk), Sum::THREADS,
                       multiprocessors, &ret->threads, &ret->capacity);
}

template <typename Sum>
cudaError_t launch_rows(const struct exact_shape *shape, const struct exact_launch *launch,
                        uint32_t blocks, cudaStream_t stream)
{
    const uint32_t threads =
        launch->task_of_block == NULL ? exact_threads(&launch->only, shape) : shape->threads;
    const size_t bytes = (size_t)(threads / GRID_WARP) * warp_bytes<Sum>();
    void *arguments[] = {const_cast<struct exact_launch *>(launch)};
    return cudaLaunchKernel(exact_rows<Sum>, dim3(blocks), dim3(threads), arguments, bytes, stream);
}

} // namespace

#endif
