/* grid_plan.c - how a task is spread over blocks (see grid.h).
 *
 * The figures were chosen on an H200: one block reads some 60 GB/s, and a split row costs a memset
 * and a copy more, about 5 us.
 */
#include "gpu/kernels/grid.h"

#include <assert.h>

enum {
    WARP_ROW_BYTES = 64 << 10,   /* of both operands: up to here a warp is enough for a row */
    BLOCK_ROW_BYTES = 256 << 10, /* up to here a block is, and splitting would cost more */
    PART_BYTES = 2 * GRID_THREADS * GRID_LOAD_BYTES, /* a vector of each operand for each thread */
    LEAST_TEAM = 8,   /* lanes a row: what they read at once is a line of 128 bytes */
    TEAM_VECTORS = 4, /* of a row and lane: fewer would not be worth folding the lanes' sums */
};

static uint32_t smaller(uint64_t x, uint64_t y)
{
    return (uint32_t)(x < y ? x : y);
}

static bool is_on_boundary(const void *data, uint64_t stride, size_t size)
{
    return (uintptr_t)data % GRID_LOAD_BYTES == 0 && stride * size % GRID_LOAD_BYTES == 0;
}

/* How many lanes share a row of vectors, if rows are to be read several at a time: of real numbers,
 * in one loop, each a whole number of vectors. 0: they are not. */
static uint32_t team_of(const struct grid_task *task)
{
    const size_t size = dtype_size((enum dtype)task->dtype);
    const uint64_t bytes = task->n * size;
    uint32_t team = LEAST_TEAM;
    if (dtype_is_complex((enum dtype)task->dtype) || task->inner_rows < task->rows ||
        bytes % GRID_LOAD_BYTES != 0 || !is_on_boundary(task->a, task->stride_a[1], size) ||
        !is_on_boundary(task->b, task->stride_b[1], size))
        return 0;
    while (team < GRID_WARP && team * (uint64_t)(TEAM_VECTORS * GRID_LOAD_BYTES) < bytes)
        team *= 2;
    return team;
}

void grid_plan(struct grid_task *task, uint32_t capacity)
{
    assert(task->n > 0 && task->rows > 0 && capacity > 0);
    uint64_t row_bytes = 2 * task->n * dtype_size((enum dtype)task->dtype);
    uint64_t parts = (row_bytes + PART_BYTES - 1) / PART_BYTES;
    task->parts = 1;
    task->team = 0;
    task->blocks = smaller(task->rows, capacity);
    task->form = GRID_BLOCK_ROW;
    if (task->rows > capacity && row_bytes <= WARP_ROW_BYTES) {
        task->form = GRID_WARP_ROW;
        task->team = team_of(task);
    } else if (task->rows <= capacity / 2 && row_bytes > BLOCK_ROW_BYTES) {
        task->form = GRID_SPLIT_ROW;
        task->parts = smaller(parts, capacity / task->rows);
        task->blocks = task->rows * task->parts;
    }
}

uint32_t grid_share(uint64_t task_bytes, uint64_t all_bytes, uint32_t capacity)
{
    assert(task_bytes > 0 && task_bytes <= all_bytes && capacity > 0);
    uint64_t part = all_bytes / ((uint64_t)GRID_FULL * capacity);
    part = part < PART_BYTES ? PART_BYTES : smaller(part, GRID_SHARE_BYTES);
    return smaller((task_bytes + part - 1) / part, capacity);
}

/* In a thread: its share of the vectors, whose products are dealt to the accumulators in turn, and
 * one vector more of what is left over at the ends. Then the accumulators are folded (2), then the
 * block or warp, then the parts arrive one after the other. Adding to nothing but zeros does not
 * round. */
uint64_t grid_depth(const struct grid_task *task)
{
    const enum dtype dtype = (enum dtype)task->dtype;
    uint64_t places = GRID_LOAD_BYTES / dtype_size(dtype);
    uint64_t terms = dtype_is_complex(dtype) ? 2 : 1; /* products an element, in each part */
    uint64_t chains = task->team > 0 ? 1 : GRID_CHAINS;
    uint64_t chain = (places * terms + chains - 1) / chains; /* of a vector's */
    uint64_t whole = task->form == GRID_WARP_ROW ? GRID_WARP : GRID_THREADS;
    uint64_t lanes = task->team > 0 ? task->team : whole * task->parts;
    uint64_t tree = (uint64_t)__builtin_ctzll(task->team > 0 ? task->team : whole);
    uint64_t vectors = task->n / (places * lanes) + 2;
    uint64_t depth = vectors * chain + 2 + tree + task->parts;
    uint64_t serial = terms * task->n - 1;
    return depth < serial ? depth : serial;
}
