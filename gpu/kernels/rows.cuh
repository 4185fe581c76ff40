/* rows.cuh - how a kernel's threads share the rows of a task, and read them.
 *
 * Door: fetch_task() once a block; place_of() says which rows a thread works on and as which of how
 * many threads; row_of() where a row lies; visit_row() shows a visitor every product of the
 * thread's share:
 *   struct Visitor {
 *       void start();                  once, before the rest
 *       void visit(uint4 x, uint4 y);  two vectors of 16 bytes
 *       void pause();                  after at most LOADS of them
 *   };
 * visit_ahead() does the same through shared memory, for visitors that branch: it shows WIDTH pairs
 * of vectors at once, visit(x[], y[]), and pauses after these. start(x, y) is called by whole warps
 * with the first two vectors; whenever all lanes have used a ring of them, lap(x, y) is called by
 * whole warps with two of the last.
 */
#ifndef GPU_KERNELS_ROWS_CUH
#define GPU_KERNELS_ROWS_CUH

#include <cuda_runtime_api.h>

#include "gpu/kernels/grid.h"

namespace
{

const unsigned ALL_LANES = 0xffffffff;

#ifdef DOTD_EMU
__device__ inline char *dynamic_shared()
{
    return (char *)emu_shared();
}
#else
extern __shared__ __align__(128) char block_shared[]; /* or copies ahead take twice the bandwidth */
__device__ inline char *dynamic_shared()
{
    return block_shared;
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

/* 16 bytes at once: two stores would be two for the memory as well. */
template <typename Value> __device__ inline void store_whole(Value *to, const Value &value)
{
    static_assert(sizeof value == sizeof(uint4), "on boundaries of that");
    uint4 words;
    memcpy(&words, &value, sizeof words);
    *(uint4 *)to = words;
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

/* All loads of a round are issued before any is used. Returns the first vector of none. */
template <int LOADS, typename Visitor>
__device__ inline uint64_t visit_rounds(const uint4 *a, const uint4 *b, uint64_t count,
                                        uint64_t lane, uint64_t lanes, Visitor &visitor)
{
    uint64_t i = lane;
    for (; i + (LOADS - 1) * lanes < count; i += LOADS * lanes) {
        uint4 x[LOADS], y[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            x[k] = __ldg(a + i + k * lanes);
            y[k] = __ldg(b + i + k * lanes);
        }
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            visitor.visit(x[k], y[k]);
        visitor.pause();
    }
    return i;
}

/* Vectors lane, lane + lanes, ... of count. */
template <int LOADS, typename Visitor>
__device__ inline void visit_aligned(const uint4 *a, const uint4 *b, uint64_t count, uint64_t lane,
                                     uint64_t lanes, Visitor &visitor)
{
    uint64_t i = visit_rounds<LOADS>(a, b, count, lane, lanes, visitor);
    for (; i < count; i += lanes)
        visitor.visit(__ldg(a + i), __ldg(b + i));
}

/* Operands that are misaligned differently: correct, and coalesced, but with four loads a
 * vector. */
template <typename Visitor>
__device__ inline void visit_unaligned(const char *a, const char *b, uint64_t count, uint64_t lane,
                                       uint64_t lanes, Visitor &visitor)
{
    for (uint64_t i = lane; i < count; i += lanes) {
        visitor.visit(load_words(a + GRID_LOAD_BYTES * i), load_words(b + GRID_LOAD_BYTES * i));
        visitor.pause();
    }
}

/* How a row is read: operands that reach a boundary of 16 bytes together by vectors between it and
 * the last one, others by as many from their beginning; what is left over at both ends, at most 30
 * elements, goes one to a lane. */
struct cut {
    bool is_aligned;
    uint64_t head, vectors, tail; /* vectors lie between elements head and tail */
};

template <int SIZE> __device__ inline struct cut cut_of(const struct row &row)
{
    const uint64_t places = GRID_LOAD_BYTES / SIZE;
    const unsigned over_a = (uintptr_t)row.a % GRID_LOAD_BYTES;
    const unsigned over_b = (uintptr_t)row.b % GRID_LOAD_BYTES;
    struct cut cut;
    cut.is_aligned = over_a == over_b && over_a % SIZE == 0;
    const uint64_t to_boundary =
        cut.is_aligned ? (GRID_LOAD_BYTES - over_a) % GRID_LOAD_BYTES / SIZE : 0;
    cut.head = to_boundary < row.n ? to_boundary : row.n;
    cut.vectors = (row.n - cut.head) / places;
    cut.tail = cut.head + cut.vectors * places;
    return cut;
}

/* Of the elements at the ends, the lane's. */
__device__ inline bool has_end(const struct row &row, const struct cut &cut)
{
    return row.lane < cut.head + (row.n - cut.tail);
}

__device__ inline uint64_t end_of(const struct row &row, const struct cut &cut)
{
    return row.lane < cut.head ? row.lane : cut.tail + (row.lane - cut.head);
}

/* --- reading ahead --- */

/* Of two vectors on their way, in a warp's shared memory. */
enum { PAIR_BYTES = 2 * GRID_WARP * GRID_LOAD_BYTES };

/* 16 bytes to shared memory, without registers and without waiting; both on boundaries of that. Or
 * zeros, and then nothing is read. */
__device__ inline void copy_ahead(char *to, const char *from, bool is_there)
{
#ifdef DOTD_EMU
    *(uint4 *)to = is_there ? *(const uint4 *)from : uint4{0, 0, 0, 0};
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(is_there ? GRID_LOAD_BYTES : 0)
                 : "memory");
#endif
}

/* Ends a pair, or several that arrive together, or none. */
__device__ inline void end_pair()
{
#ifndef DOTD_EMU
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until all of them but the youngest COUNT have arrived, of this thread. */
template <int COUNT> __device__ inline void await_pairs()
{
#ifndef DOTD_EMU
    asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
#endif
}

/* One element a lane of those in front of the row's vectors and behind them; and vectors that are
 * not on boundaries, which must be waited for. */
template <int SIZE, int WIDTH, typename Visitor>
__device__ inline void visit_rest(const struct row &row, const struct cut &cut, Visitor &visitor)
{
    const uint64_t vectors = cut.is_aligned ? 0 : cut.vectors;
    uint64_t i = row.lane;
#pragma unroll 1
    for (bool has_more = has_end(row, cut); i < vectors || has_more; i += row.lanes) {
        uint64_t at = (cut.head * SIZE) + GRID_LOAD_BYTES * i;
        uint4 x[WIDTH] = {}, y[WIDTH] = {};
        if (i < vectors) {
            x[0] = load_words(row.a + at);
            y[0] = load_words(row.b + at);
        } else {
            at = end_of(row, cut) * SIZE;
            x[0] = load_element<SIZE>(row.a + at);
            y[0] = load_element<SIZE>(row.b + at);
            has_more = false;
        }
        visitor.visit(x, y);
        visitor.pause();
    }
}

/* AHEAD times WIDTH pairs are on their way while WIDTH are used, whatever branches that takes: the
 * compiler cannot keep as many loads apart in registers. ring: the lane's places, PAIR_BYTES apart.
 * Nothing is unrolled, for a short row waits for every instruction that it is the first to use. */
template <int SIZE, int AHEAD, int WIDTH, typename Visitor>
__device__ inline void visit_ahead(const struct row &row, char *ring, Visitor &visitor)
{
    const struct cut cut = cut_of<SIZE>(row);
    const uint64_t step = row.lanes * GRID_LOAD_BYTES;
    const char *a = row.a + cut.head * SIZE + row.lane * GRID_LOAD_BYTES;
    const char *b = row.b + cut.head * SIZE + row.lane * GRID_LOAD_BYTES;
    uint32_t to_send = 0; /* pairs; 2^32 in one lane would be 4 TB of operands */
    if (cut.is_aligned && row.lane < cut.vectors)
        to_send = (uint32_t)((cut.vectors - row.lane + (row.lanes - 1)) / row.lanes);
    uint32_t to_use = (to_send + (WIDTH - 1)) / WIDTH;
    const auto send = [&](char *to) {
        if (to_send > 0)
#pragma unroll
            for (int i = 0; i < WIDTH; i++, to += PAIR_BYTES) {
                const bool is_there = i == 0 || to_send > 0; /* or zeros follow the last one */
                copy_ahead(to, a, is_there);
                copy_ahead(to + PAIR_BYTES / 2, b, is_there);
                a += step;
                b += step;
                to_send -= is_there;
            }
        end_pair();
    };
#pragma unroll 1
    for (int k = 0; k < AHEAD; k++)
        send(ring + k * (WIDTH * PAIR_BYTES));
    uint4 x[WIDTH] = {}, y[WIDTH] = {};
    await_pairs<AHEAD - 1>();
    if (to_use > 0) {
        x[0] = *(const uint4 *)ring;
        y[0] = *(const uint4 *)(ring + PAIR_BYTES / 2);
    } else if (row.lane < row.n) {
        x[0] = load_element<SIZE>(row.a + row.lane * SIZE);
        y[0] = load_element<SIZE>(row.b + row.lane * SIZE);
    }
    visitor.start(x[0], y[0]);
    const uint32_t own = to_use - __shfl_sync(ALL_LANES, to_use, GRID_WARP - 1); /* 1 or none */
    int place = 0;
#pragma unroll 1
    for (; to_use > 0; to_use--) {
        char *at = ring + place * (WIDTH * PAIR_BYTES);
        await_pairs<AHEAD - 1>();
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            x[i] = *(const uint4 *)(at + i * PAIR_BYTES);
            y[i] = *(const uint4 *)(at + i * PAIR_BYTES + PAIR_BYTES / 2);
        }
        visitor.visit(x, y);
        visitor.pause();
        send(at);
        if (++place == AHEAD) {
            place = 0;
            if (to_use > own)
                visitor.lap(x[0], y[0]);
        }
    }
    visit_rest<SIZE, WIDTH>(row, cut, visitor);
}

/* --- a row --- */

/* Shows the visitor every product of the thread's share in exactly one pair of vectors, and pauses
 * after LOADS of them; LOADS more at most are not counted. visit_ahead() does so for others. */
template <int SIZE, int LOADS, typename Visitor>
__device__ inline void visit_row(const struct row &row, Visitor &visitor)
{
    const struct cut cut = cut_of<SIZE>(row);
    const char *a = row.a + cut.head * SIZE, *b = row.b + cut.head * SIZE;
    visitor.start();
    if (has_end(row, cut)) /* first: then its registers are free again */
        visitor.visit(load_element<SIZE>(row.a + end_of(row, cut) * SIZE),
                      load_element<SIZE>(row.b + end_of(row, cut) * SIZE));
    if (cut.is_aligned)
        visit_aligned<LOADS>((const uint4 *)a, (const uint4 *)b, cut.vectors, row.lane, row.lanes,
                             visitor);
    else
        visit_unaligned(a, b, cut.vectors, row.lane, row.lanes, visitor);
}

/* --- the rows of a block --- */

/* The table may lie in host memory: one thread a word fetches the block's entry, once. */
__device__ inline void fetch_task(struct grid_task *ret, const struct grid_task *table,
                                  const uint32_t *task_of_block, const struct grid_task *only)
{
    static_assert(sizeof(struct grid_task) % sizeof(uint32_t) == 0, "copied word by word");
    static_assert(sizeof(struct grid_task) / sizeof(uint32_t) <= 2 * GRID_WARP, "a thread a word");
    const struct grid_task *source = only;
    if (task_of_block != NULL)
        source = &table[task_of_block[blockIdx.x]];
    if (threadIdx.x < sizeof *ret / sizeof(uint32_t))
        ((uint32_t *)ret)[threadIdx.x] = ((const uint32_t *)source)[threadIdx.x];
    __syncthreads();
}

/* Where a thread stands: which rows it works on, and as which of how many threads. */
struct place {
    uint32_t row, row_step;
    uint64_t lane, lanes;
};

/* Rows of warps are dealt to blocks first and to their warps second, so that few rows use many
 * multiprocessors. */
__device__ inline struct place place_of(const struct grid_task &task, uint32_t block)
{
    const uint32_t threads = blockDim.x, warps = threads / GRID_WARP,
                   warp = threadIdx.x / GRID_WARP;
    struct place place = {block, task.blocks, threadIdx.x, threads};
    if (task.form == GRID_WARP_ROW) {
        place.row = warp * task.blocks + block;
        place.row_step = warps * task.blocks;
        place.lane = threadIdx.x % GRID_WARP;
        place.lanes = GRID_WARP;
    } else if (task.form == GRID_SPLIT_ROW) {
        place.row = block / task.parts;
        place.row_step = task.rows; /* a block has one */
        place.lane += (uint64_t)(block % task.parts) * threads;
        place.lanes *= task.parts;
    }
    return place;
}

/* --- the host's side --- */

/* Readies a kernel of at most so many threads a block and so many bytes of shared memory a warp,
 * `other` ones already taken: a device with little of it runs smaller blocks. capacity: of the
 * device. */
template <typename Kernel>
cudaError_t open_kernel(Kernel kernel, int warp_bytes, int other, int most_threads,
                        uint32_t multiprocessors, uint32_t *ret_threads, uint32_t *ret_capacity)
{
    int device = 0, most = 0, blocks = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (status != cudaSuccess)
        return status;
    const int warps = min((most - other) / warp_bytes, most_threads / GRID_WARP);
    if (warps < 1)
        return cudaErrorInvalidValue;
    status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  warps * warp_bytes);
    if (status == cudaSuccess)
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, warps * GRID_WARP,
                                                               warps * warp_bytes);
    if (status != cudaSuccess)
        return status;
    *ret_threads = (uint32_t)(warps * GRID_WARP);
    *ret_capacity = (uint32_t)blocks * multiprocessors;
    return cudaSuccess;
}

} // namespace

#endif
