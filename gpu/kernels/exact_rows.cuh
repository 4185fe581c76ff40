/* exact_rows.cuh - what the exact kernels have in common: tasks, rows, loads, and the way from the
 * threads' sums to a rounded result.
 *
 * Door: exact_rows<Sum>, the kernel, over a type's accumulator:
 *   struct Sum {
 *       enum { THREADS, BLOCKS };      of a block; that a multiprocessor should hold
 *       enum { LOADS };                vectors of each operand in flight a thread
 *       enum { SIZE, PARTS };          bytes of an element; real sums: 2 of complex types
 *       enum { LIMBS, BASE };          of a part: the layout of gpu/exact/limbs.h
 *       enum { PART_BYTES };           shared memory of a warp for a part, at least LIMBS int64
 *       static const enum dtype DTYPE;
 *       Sum(char *region, const grid_task &task)  region: the warp's shared memory, PARTS * PART_BYTES
 *       void begin();                  the empty sum
 *       void add(uint4 x, uint4 y);    the products of two vectors of 16 bytes
 *       bool is_odd();                 some operand was not finite: what was added is of no use
 *       void fold();                   the warp's limbs to the start of each part's memory
 *       static unsigned special(uint4 x, uint4 y, const grid_task &task);
 *   };
 *
 * Idea      a thread keeps a private exact sum, in registers or in its own column of shared memory, so
 *           that its deposits meet nobody's. A warp folds its threads' sums, the block its warps', and
 *           a row of several blocks is added up with one integer atomicAdd a limb that is not zero;
 *           the last block to arrive rounds. Integer additions in any order give the same bits.
 * Cost      operands read once; the rest is each accumulator's.
 * Order     none matters.
 * Error     half an ulp of the result, and none where the sum is a number of the result's type.
 * Needs     launch.total zero where a row begins; any n, any alignment of 4 bytes or of an element.
 * Source    S. Collange, D. Defour, S. Graillat, R. Iakymchuk, Numerical reproducibility for the
 *           parallel reduction on multi- and many-core architectures, Parallel Computing 49, 2015;
 *           CUDA C++ Programming Guide, memory fence functions (the last block to arrive).
 */
#ifndef GPU_KERNELS_EXACT_ROWS_CUH
#define GPU_KERNELS_EXACT_ROWS_CUH

#include "gpu/kernels/exact.h"

namespace
{

const unsigned ALL_LANES = 0xffffffff;

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

/* --- loads --- */

/* 16 bytes at any address: the words that hold them, shifted. A word is read only if it holds at
 * least one of the bytes. */
__device__ inline uint4 load_words(const char *data)
{
    const unsigned shift = 8 * (unsigned)((uintptr_t)data % 4);
    const unsigned *word = (const unsigned *)(data - shift / 8);
    uint4 v = {__ldg(word), __ldg(word + 1), __ldg(word + 2), __ldg(word + 3)};
    if (shift > 0) {
        v.x = __funnelshift_r(v.x, v.y, shift);
        v.y = __funnelshift_r(v.y, v.z, shift);
        v.z = __funnelshift_r(v.z, v.w, shift);
        v.w = __funnelshift_r(v.w, __ldg(word + 4), shift);
    }
    return v;
}

template <bool IS_ALIGNED> __device__ inline uint4 load_vector(const char *data)
{
    return IS_ALIGNED ? __ldg((const uint4 *)data) : load_words(data);
}

/* One element in a vector of zeros, whose products add nothing. */
template <int SIZE> __device__ inline uint4 load_element(const char *data)
{
    uint4 v = {0, 0, 0, 0};
    if (SIZE == 1) {
        v.x = __ldg((const unsigned char *)data);
    } else if (SIZE == 2) {
        v.x = __ldg((const unsigned short *)data);
    } else {
        const unsigned *word = (const unsigned *)data;
        v.x = __ldg(word);
        if (SIZE >= 8)
            v.y = __ldg(word + 1);
        if (SIZE >= 16) {
            v.z = __ldg(word + 2);
            v.w = __ldg(word + 3);
        }
    }
    return v;
}

/* --- rows --- */

struct row {
    const char *a, *b;
    uint64_t n;
    uint64_t lane, lanes; /* this thread, among those that share the row */
};

template <int SIZE>
__device__ inline struct row row_of(const struct grid_task &task, uint32_t index, uint64_t lane,
                                    uint64_t lanes)
{
    const uint32_t outer = index / task.inner_rows, inner = index % task.inner_rows;
    struct row row;
    row.a = (const char *)task.a + (outer * task.stride_a[0] + inner * task.stride_a[1]) * SIZE;
    row.b = (const char *)task.b + (outer * task.stride_b[0] + inner * task.stride_b[1]) * SIZE;
    row.n = task.n;
    row.lane = lane;
    row.lanes = lanes;
    return row;
}

/* Vectors lane, lane + lanes, ... of count; all loads of a round are issued before any is used. */
template <bool IS_ALIGNED, int LOADS, typename Visit>
__device__ inline void visit_vectors(const char *a, const char *b, uint64_t count, uint64_t lane,
                                     uint64_t lanes, Visit &visit)
{
    uint64_t i = lane;
    for (; i + (LOADS - 1) * lanes < count; i += LOADS * lanes) {
        uint4 x[LOADS], y[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            x[k] = load_vector<IS_ALIGNED>(a + GRID_LOAD_BYTES * (i + k * lanes));
            y[k] = load_vector<IS_ALIGNED>(b + GRID_LOAD_BYTES * (i + k * lanes));
        }
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            visit(x[k], y[k]);
    }
    for (; LOADS > 1 && i < count; i += lanes)
        visit(load_vector<IS_ALIGNED>(a + GRID_LOAD_BYTES * i),
              load_vector<IS_ALIGNED>(b + GRID_LOAD_BYTES * i));
}

/* Calls visit(x, y) with every product of the thread's share in exactly one pair of vectors. Operands
 * that reach a boundary of 16 bytes together are read by vectors between it and the last one; what is
 * left over at both ends, at most 30 elements, goes one to a lane. */
template <int SIZE, int LOADS, typename Visit>
__device__ inline void visit_row(const struct row &row, Visit visit)
{
    const uint64_t places = GRID_LOAD_BYTES / SIZE;
    const unsigned over_a = (uintptr_t)row.a % GRID_LOAD_BYTES;
    const unsigned over_b = (uintptr_t)row.b % GRID_LOAD_BYTES;
    const bool is_aligned = over_a == over_b && over_a % SIZE == 0;
    const uint64_t to_boundary =
        is_aligned ? (GRID_LOAD_BYTES - over_a) % GRID_LOAD_BYTES / SIZE : 0;
    const uint64_t head = to_boundary < row.n ? to_boundary : row.n;
    const uint64_t vectors = (row.n - head) / places, tail = head + vectors * places;
    const char *a = row.a + head * SIZE, *b = row.b + head * SIZE;
    if (row.lane < head + (row.n - tail)) {
        const uint64_t i = row.lane < head ? row.lane : tail + (row.lane - head);
        visit(load_element<SIZE>(row.a + i * SIZE), load_element<SIZE>(row.b + i * SIZE));
    }
    if (is_aligned)
        visit_vectors<true, LOADS>(a, b, vectors, row.lane, row.lanes, visit);
    else
        visit_vectors<false, 1>(a, b, vectors, row.lane, row.lanes, visit);
}

/* Adds the thread's share and folds the warp's. Returns the warp's special bits. */
template <typename Sum>
__device__ inline unsigned add_row(Sum &sum, const struct row &row, const struct grid_task &task)
{
    sum.begin();
    visit_row<Sum::SIZE, Sum::LOADS>(row, [&](uint4 x, uint4 y) { sum.add(x, y); });
    unsigned special = 0;
    if (sum.is_odd())
        visit_row<Sum::SIZE, 1>(row,
                                [&](uint4 x, uint4 y) { special |= Sum::special(x, y, task); });
    sum.fold();
    return __reduce_or_sync(ALL_LANES, special);
}

/* --- results --- */

/* One warp rounds the row whose limbs lie at `limbs`, a part every PART_BYTES. Only the span between
 * the lowest and the highest limb that is not zero is looked at closer. */
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

/* After each warp has folded: thread i adds up limb i of all warps and passes it on. Only it touches
 * limb i of the first warp, so that may be overwritten. */
template <typename Sum, typename Take> __device__ inline void fold_block(char *shared, Take take)
{
    const int warps = Sum::THREADS / GRID_WARP, step = Sum::PARTS * Sum::PART_BYTES;
    __syncthreads();
    for (int i = threadIdx.x; i < Sum::PARTS * Sum::LIMBS; i += Sum::THREADS) {
        const int part = i / Sum::LIMBS, index = i % Sum::LIMBS;
        char *at = shared + part * Sum::PART_BYTES + index * sizeof(int64_t);
        int64_t total = 0;
#pragma unroll 4
        for (int warp = 0; warp < warps; warp++)
            total += *(const int64_t *)(at + warp * step);
        take(part, index, total, (int64_t *)at);
    }
    __syncthreads();
}

template <typename Sum> __device__ inline unsigned block_special(const struct desk &desk)
{
    unsigned special = 0;
    for (int warp = 0; warp < Sum::THREADS / GRID_WARP; warp++)
        special |= desk.special[warp];
    return special;
}

/* --- the three forms of a task --- */

template <typename Sum>
__device__ inline void warp_rows(Sum &sum, char *region, const struct grid_task &task,
                                 uint32_t block, struct dot_value *result)
{
    const uint32_t warps = Sum::THREADS / GRID_WARP;
    const uint32_t warp = threadIdx.x / GRID_WARP, lane = threadIdx.x % GRID_WARP;
    for (uint32_t row = warp * task.blocks + block; row < task.rows; row += warps * task.blocks) {
        unsigned special = add_row(sum, row_of<Sum::SIZE>(task, row, lane, GRID_WARP), task);
        settle<Sum>(region, special, task, result + task.result + row * Sum::PARTS);
    }
}

template <typename Sum>
__device__ inline void block_rows(Sum &sum, char *shared, struct desk &desk, uint32_t block,
                                  struct dot_value *result)
{
    const struct grid_task &task = desk.task;
    for (uint32_t row = block; row < task.rows; row += task.blocks) {
        unsigned special =
            add_row(sum, row_of<Sum::SIZE>(task, row, threadIdx.x, Sum::THREADS), task);
        if (threadIdx.x % GRID_WARP == 0)
            desk.special[threadIdx.x / GRID_WARP] = special;
        fold_block<Sum>(shared, [](int, int, int64_t total, int64_t *at) { *at = total; });
        if (threadIdx.x < GRID_WARP)
            settle<Sum>(shared, block_special<Sum>(desk), task,
                        result + task.result + row * Sum::PARTS);
    }
}

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
__device__ inline void settle_total(char *shared, struct exact_total *total,
                                    const struct grid_task &task, struct dot_value *ret)
{
    for (int i = threadIdx.x; i < Sum::PARTS * Sum::LIMBS; i += Sum::THREADS) {
        const int part = i / Sum::LIMBS, index = i % Sum::LIMBS;
        int64_t *limb = (int64_t *)(shared + part * Sum::PART_BYTES);
        limb[index] = (int64_t)__ldcg(&total->limb[part][index]);
        total->limb[part][index] = 0;
    }
    __syncthreads();
    if (threadIdx.x >= GRID_WARP)
        return;
    settle<Sum>(shared, __ldcg(&total->special), task, ret);
    if (threadIdx.x == 0) {
        total->special = 0;
        total->arrived = 0;
    }
}

template <typename Sum>
__device__ inline void split_row(Sum &sum, char *shared, struct desk &desk, uint32_t block,
                                 const struct exact_launch &launch)
{
    const struct grid_task &task = desk.task;
    const uint32_t row = block / task.parts, part = block % task.parts;
    struct exact_total *total = &launch.total[task.total + row];
    unsigned special =
        add_row(sum,
                row_of<Sum::SIZE>(task, row, (uint64_t)part * Sum::THREADS + threadIdx.x,
                                  (uint64_t)task.parts * Sum::THREADS),
                task);
    if (threadIdx.x % GRID_WARP == 0 && special != 0)
        atomicOr(&total->special, special);
    fold_block<Sum>(shared, [&](int p, int index, int64_t limb, int64_t *) {
        if (limb != 0)
            atomicAdd((unsigned long long *)&total->limb[p][index], (unsigned long long)limb);
    });
    if (task.is_final && arrive(total, desk))
        settle_total<Sum>(shared, total, task, launch.result + task.result + row * Sum::PARTS);
}

/* The table may lie in host memory: one thread a word fetches the block's entry, once. */
template <typename Sum>
__global__ void __launch_bounds__(Sum::THREADS, Sum::BLOCKS)
    exact_rows(const __grid_constant__ struct exact_launch launch)
{
    static_assert(sizeof(struct grid_task) % sizeof(uint32_t) == 0, "copied word by word");
    static_assert(sizeof(struct grid_task) / sizeof(uint32_t) <= Sum::THREADS, "a thread a word");
    static_assert(Sum::PART_BYTES >= Sum::LIMBS * sizeof(int64_t), "limbs lie there");
    __shared__ struct desk desk;
    const struct grid_task *source = &launch.only;
    if (launch.task_of_block != NULL)
        source = &launch.task[launch.task_of_block[blockIdx.x]];
    if (threadIdx.x < sizeof desk.task / sizeof(uint32_t))
        ((uint32_t *)&desk.task)[threadIdx.x] = ((const uint32_t *)source)[threadIdx.x];
    __syncthreads();
    char *shared = dynamic_shared();
    char *region = shared + threadIdx.x / GRID_WARP * (Sum::PARTS * Sum::PART_BYTES);
    const uint32_t block = blockIdx.x - desk.task.first_block;
    Sum sum(region, desk.task);
    if (desk.task.form == GRID_WARP_ROW)
        warp_rows(sum, region, desk.task, block, launch.result);
    else if (desk.task.form == GRID_BLOCK_ROW)
        block_rows(sum, shared, desk, block, launch.result);
    else
        split_row(sum, shared, desk, block, launch);
}

/* --- the host's side --- */

template <typename Sum> cudaError_t open_rows(uint32_t multiprocessors, struct exact_shape *ret)
{
    const int bytes = Sum::THREADS / GRID_WARP * Sum::PARTS * Sum::PART_BYTES;
    int blocks = 0;
    cudaError_t status =
        cudaFuncSetAttribute(exact_rows<Sum>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (status == cudaSuccess)
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, exact_rows<Sum>,
                                                               Sum::THREADS, bytes);
    if (status != cudaSuccess)
        return status;
    ret->threads = Sum::THREADS;
    ret->capacity = (uint32_t)blocks * multiprocessors;
    return cudaSuccess;
}

template <typename Sum>
cudaError_t launch_rows(const struct exact_launch *launch, uint32_t blocks, cudaStream_t stream)
{
    const int bytes = Sum::THREADS / GRID_WARP * Sum::PARTS * Sum::PART_BYTES;
    void *arguments[] = {const_cast<struct exact_launch *>(launch)};
    return cudaLaunchKernel(exact_rows<Sum>, dim3(blocks), dim3(Sum::THREADS), arguments, bytes,
                            stream);
}

} // namespace

#endif
