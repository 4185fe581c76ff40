/* rows.cuh - how a kernel's threads share the rows of a task, and read them.
 *
 * Door: fetch_task() once a block; place_of() says which rows a thread works on and as which of how
 * many threads; row_of() where a row lies; visit_row() shows a visitor every product of the
 * thread's share:
 *   struct Visitor {
 *       enum { STARTS_SLOWLY };        start() takes as long as a load from memory
 *       void start();                  once, before the rest
 *       void visit(uint4 x, uint4 y);  two vectors of 16 bytes
 *       void pause();                  after at most LOADS of them
 *   };
 */
#ifndef GPU_KERNELS_ROWS_CUH
#define GPU_KERNELS_ROWS_CUH

#include <cuda_runtime_api.h>

#include "gpu/kernels/grid.h"

namespace
{

const unsigned ALL_LANES = 0xffffffff;

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

/* Asks for memory that will be read soon; there is nothing to wait for. */
__device__ inline void prefetch(const void *data)
{
#ifdef DOTD_EMU
    (void)data;
#else
    asm volatile("prefetch.global.L2 [%0];" ::"l"(data));
#endif
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

/* A visitor that starts slowly, by clearing much memory, does so while the first vectors arrive; and
 * what is left behind the rounds is loaded at once too. Measured on float32 sums: 0.93 of cuBLAS at
 * n = 10^8 instead of 0.86. */
template <int LOADS, typename Visitor>
__device__ inline void visit_slowly(const uint4 *a, const uint4 *b, uint64_t count, uint64_t lane,
                                    uint64_t lanes, Visitor &visitor)
{
#pragma unroll
    for (int k = 0; k < LOADS; k++)
        if (lane + k * lanes < count) {
            prefetch(a + lane + k * lanes);
            prefetch(b + lane + k * lanes);
        }
    visitor.start();
    const uint64_t i = visit_rounds<LOADS>(a, b, count, lane, lanes, visitor);
    uint4 x[LOADS], y[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS - 1; k++)
        if (i + k * lanes < count) {
            x[k] = __ldg(a + i + k * lanes);
            y[k] = __ldg(b + i + k * lanes);
        }
#pragma unroll
    for (int k = 0; k < LOADS - 1; k++)
        if (i + k * lanes < count)
            visitor.visit(x[k], y[k]);
}

/* Vectors lane, lane + lanes, ... of count. Where starting is cheap the plain form wins: the other's
 * registers cost the fast kernel a fifth of its bandwidth. */
template <int LOADS, typename Visitor>
__device__ inline void visit_aligned(const uint4 *a, const uint4 *b, uint64_t count, uint64_t lane,
                                     uint64_t lanes, Visitor &visitor)
{
    if constexpr (Visitor::STARTS_SLOWLY) {
        visit_slowly<LOADS>(a, b, count, lane, lanes, visitor);
    } else {
        uint64_t i = visit_rounds<LOADS>(a, b, count, lane, lanes, visitor);
        for (; i < count; i += lanes)
            visitor.visit(__ldg(a + i), __ldg(b + i));
    }
}

/* Operands that are misaligned differently: correct, and coalesced, but with four loads a
 * vector. */
template <typename Visitor>
__device__ inline void visit_unaligned(const char *a, const char *b, uint64_t count, uint64_t lane,
                                       uint64_t lanes, Visitor &visitor)
{
    if constexpr (Visitor::STARTS_SLOWLY)
        visitor.start();
    for (uint64_t i = lane; i < count; i += lanes) {
        visitor.visit(load_words(a + GRID_LOAD_BYTES * i), load_words(b + GRID_LOAD_BYTES * i));
        visitor.pause();
    }
}

/* One element a lane of those before `head` and from `tail` on. */
template <int SIZE, typename Visitor>
__device__ inline void visit_ends(const struct row &row, uint64_t head, uint64_t tail,
                                  Visitor &visitor)
{
    if (row.lane >= head + (row.n - tail))
        return;
    const uint64_t i = row.lane < head ? row.lane : tail + (row.lane - head);
    visitor.visit(load_element<SIZE>(row.a + i * SIZE), load_element<SIZE>(row.b + i * SIZE));
}

/* Shows the visitor every product of the thread's share in exactly one pair of vectors, and pauses
 * after LOADS of them; LOADS more at most are not counted. Operands that reach a boundary of 16
 * bytes together are read by vectors between it and the last one; what is left over at both ends,
 * at most 30 elements, goes one to a lane. */
template <int SIZE, int LOADS, typename Visitor>
__device__ inline void visit_row(const struct row &row, Visitor &visitor)
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
    if constexpr (!Visitor::STARTS_SLOWLY) { /* first: then their registers are free again */
        visitor.start();
        visit_ends<SIZE>(row, head, tail, visitor);
    }
    if (is_aligned)
        visit_aligned<LOADS>((const uint4 *)a, (const uint4 *)b, vectors, row.lane, row.lanes,
                             visitor);
    else
        visit_unaligned(a, b, vectors, row.lane, row.lanes, visitor);
    if constexpr (Visitor::STARTS_SLOWLY)
        visit_ends<SIZE>(row, head, tail, visitor);
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

} // namespace

#endif
