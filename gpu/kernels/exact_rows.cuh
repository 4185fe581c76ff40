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
 *           PTX ISA, memory consistency model (the last block to arrive).
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
template <typename Sum>
__device__ inline unsigned add_row(Sum &sum, const struct row &row, char *ring,
                                   const struct grid_task &task)
{
    adder<Sum> added(sum);
    finder<Sum::DTYPE> found(task);
    if constexpr (Sum::AHEAD > 0)
        visit_ahead<Sum::SIZE, Sum::AHEAD, Sum::WIDTH>(row, ring, added);
    else
        visit_row<Sum::SIZE, Sum::LOADS>(row, added);
    if (sum.is_odd())
        visit_row<Sum::SIZE, 1>(row, found);
    sum.fold();
    return __reduce_or_sync(ALL_LANES, found.special);
}

/* --- results --- */

/* A number in two's complement, in digits of 32 bits: a lane has lane, lane + 32, ... of them. set:
 * which ones are not zero. */
template <int COUNT> struct digits {
    unsigned digit[COUNT], set[COUNT];
};

/* What belongs to the digits below. first: to the lowest one. */
template <int COUNT, typename Value>
__device__ inline void bring_up(const Value (&value)[COUNT], Value first, Value (&ret)[COUNT])
{
    const unsigned lane = threadIdx.x % GRID_WARP;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const Value turned =
            __shfl_sync(ALL_LANES, value[k], (int)((lane + GRID_WARP - 1) % GRID_WARP));
        ret[k] = lane > 0 ? turned : first;
        first = turned; /* lane 0 has it from lane 31 */
    }
}

template <int COUNT> __device__ inline void mark_set(struct digits<COUNT> &number)
{
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        number.set[k] = __ballot_sync(ALL_LANES, number.digit[k] != 0);
}

/* The lower half of a limb is a digit, the upper one, of either sign, goes to the digit above. Each
 * gets 2^32 - 1 more, and the lowest one more than that: all in all a carry out of the top and no
 * more, but then none is negative. So after one round of carries only ones can follow, and adding
 * masks tells where they go, as in an adder. */
template <int COUNT>
__device__ inline struct digits<COUNT> digits_of(const int64_t (&limb)[COUNT]) {
    struct digits<COUNT> number;
    int high[COUNT], high_below[COUNT];
    unsigned carry[COUNT], carry_below[COUNT], carry_in = 0;
    uint64_t sum[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        high[k] = (int)(limb[k] >> 32);
    bring_up(high, 1, high_below);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        sum[k] = (uint64_t)((limb[k] & 0xffffffff) + 0xffffffff + high_below[k]);
        carry[k] = (unsigned)(sum[k] >> 32);
    }
    bring_up(carry, 0u, carry_below);
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const uint64_t digit = (sum[k] & 0xffffffff) + carry_below[k];
        const unsigned makes = __ballot_sync(ALL_LANES, digit >> 32 != 0);
        const unsigned passes = __ballot_sync(ALL_LANES, (unsigned)digit == ~0u);
        const uint64_t added = (uint64_t)(makes | passes) + makes + carry_in;
        const unsigned gets = (unsigned)added ^ passes;
        number.digit[k] = (unsigned)digit + (gets >> threadIdx.x % GRID_WARP & 1);
        carry_in = (unsigned)(added >> 32);
    }
    mark_set(number);
    return number;
}

/* In all lanes. index: the same in all. */
template <int COUNT>
__device__ inline unsigned digit_at(const struct digits<COUNT> &number, int index)
{
    unsigned digit = number.digit[0];
#pragma unroll
    for (int k = 1; k < COUNT; k++)
        digit = index / GRID_WARP == k ? number.digit[k] : digit;
    return __shfl_sync(ALL_LANES, digit, index % GRID_WARP);
}

/* The highest digit that is not zero; -1: there is none. */
template <int COUNT> __device__ inline int highest_digit(const struct digits<COUNT> &number)
{
    int highest = -1;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        highest = number.set[k] != 0 ? GRID_WARP * k + 31 - __clz((int)number.set[k]) : highest;
    return highest;
}

/* Whether any digit below that one is not zero. */
template <int COUNT>
__device__ inline bool is_set_below(const struct digits<COUNT> &number, int index)
{
    unsigned set = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const unsigned below = (1u << index % GRID_WARP) - 1;
        set |= number.set[k] & (k < index / GRID_WARP ? ~0u : k == index / GRID_WARP ? below : 0);
    }
    return set != 0;
}

/* True if the number was negative. */
template <int COUNT> __device__ inline bool make_absolute(struct digits<COUNT> &number)
{
    if (__shfl_sync(ALL_LANES, number.digit[COUNT - 1], GRID_WARP - 1) >> 31 == 0)
        return false;
    const int lane = (int)(threadIdx.x % GRID_WARP);
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        number.digit[k] =
            is_set_below(number, GRID_WARP * k + lane) ? ~number.digit[k] : 0 - number.digit[k];
    mark_set(number);
    return true;
}

/* What exact_round() finds in one limb after the other, from a number that is positive. */
template <int COUNT>
__device__ inline struct exact_cut cut_digits(const struct digits<COUNT> &number, int base,
                                              struct exact_format format)
{
    const int top = highest_digit(number);
    const int highest = 32 * top + exact_highest_bit(digit_at(number, top));
    const int drop = exact_drop(format, base, highest);
    const int at = min(drop, highest + 2), first = at / 32, shift = at % 32;
    const uint64_t low = digit_at(number, first), middle = digit_at(number, first + 1);
    const uint64_t high = digit_at(number, first + 2);
    struct exact_cut cut = {};
    cut.significand = (middle << 32 | low) >> shift | high << 32 << (32 - shift);
    cut.quantum = drop + base;
    if (drop > 0) {
        const int below = (at - 1) / 32, bit = (at - 1) % 32;
        const unsigned word = digit_at(number, below);
        cut.is_half = (word >> bit & 1) != 0;
        cut.is_below = (word & ((1u << bit) - 1)) != 0 || is_set_below(number, below);
    }
    return cut;
}

/* As exact_value() does it, by a whole warp; whatever the numbers, without a loop. */
template <typename Sum>
__device__ inline struct dot_value value_of(const int64_t *limb, unsigned special,
                                            enum dtype result_dtype)
{
    enum { COUNT = Sum::LIMBS / GRID_WARP + 1 };
    static_assert(COUNT * GRID_WARP > Sum::LIMBS + 3, "a sign, and what is read above the highest");
    struct dot_value value = {};
    if (special != 0) {
        exact_settle_special(special, &value);
        return value;
    }
    int64_t limbs[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const int index = GRID_WARP * k + (int)(threadIdx.x % GRID_WARP);
        limbs[k] = index < Sum::LIMBS ? limb[index] : 0;
    }
    struct digits<COUNT> number = digits_of(limbs);
    if ((int)Sum::BASE == (int)EXACT_INTEGER_BASE)
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const uint64_t upper = digit_at(number, 2 * i + 1);
            value.integer[i] = upper << 32 | digit_at(number, 2 * i);
        }
    const bool is_negative = make_absolute(number);
    if (highest_digit(number) >= 0) {
        const struct exact_format format = exact_format_of(result_dtype);
        struct exact_cut cut = cut_digits(number, Sum::BASE, format);
        cut.is_negative = is_negative;
        exact_round_cut(&cut, format, &value);
    }
    if (result_dtype == DTYPE_INT64) { /* integer[] is the result, and exact */
        value.error_bound = 0;
        value.flags = 0;
    }
    return value;
}

/* One warp rounds the row whose limbs lie at `limbs`, a part every PART_BYTES. */
template <typename Sum>
__device__ __attribute__((noinline)) void
settle(char *limbs, unsigned special, const struct grid_task &task, struct dot_value *ret)
{
    for (int part = 0; part < Sum::PARTS; part++) {
        const struct dot_value value =
            value_of<Sum>((const int64_t *)(limbs + part * Sum::PART_BYTES),
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

/* One more, after all that the block has added and before all that it reads. Not by a fence on
 * either side of a plain addition: those would be in one order with all other such fences, which
 * takes longer. */
__device__ inline unsigned count_arrival(uint32_t *arrived)
{
#ifdef DOTD_EMU
    return atomicAdd(arrived, 1u);
#else
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(arrived))
                 : "memory");
    return before;
#endif
}

/* True in every lane of the block's first warp if the block comes last; then all other blocks'
 * additions are seen. After a barrier, and before one of the warp: so one thread's order counts for
 * the block, and for the lanes that read. */
__device__ inline bool arrive(struct exact_total *total, uint32_t parts)
{
    const unsigned before = threadIdx.x == 0 ? count_arrival(&total->arrived) : 0;
    __syncwarp();
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
