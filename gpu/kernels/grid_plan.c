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
};

static uint32_t smaller(uint64_t x, uint64_t y)
{
    return (uint32_t)(x < y ? x : y);
}

void grid_plan(struct grid_task *task, uint32_t capacity)
{
    assert(task->n > 0 && task->rows > 0 && capacity > 0);
    uint64_t row_bytes = 2 * task->n * dtype_size((enum dtype)task->dtype);
    uint64_t parts = (row_bytes + PART_BYTES - 1) / PART_BYTES;
    task->parts = 1;
    task->blocks = smaller(task->rows, capacity);
    task->form = GRID_BLOCK_ROW;
    if (task->rows > capacity && row_bytes <= WARP_ROW_BYTES) {
        task->form = GRID_WARP_ROW;
    } else if (task->rows <= capacity / 2 && row_bytes > BLOCK_ROW_BYTES) {
        task->form = GRID_SPLIT_ROW;
        task->parts = smaller(parts, capacity / task->rows);
        task->blocks = task->rows * task->parts;
    }
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
    uint64_t chain = (places * terms + GRID_CHAINS - 1) / GRID_CHAINS; /* of a vector's */
    uint64_t lanes = task->form == GRID_WARP_ROW ? GRID_WARP : GRID_THREADS * (uint64_t)task->parts;
    uint64_t tree = (uint64_t)__builtin_ctz(task->form == GRID_WARP_ROW ? GRID_WARP : GRID_THREADS);
    uint64_t vectors = task->n / (places * lanes) + 2;
    uint64_t depth = vectors * chain + 2 + tree + task->parts;
    uint64_t serial = terms * task->n - 1;
    return depth < serial ? depth : serial;
}
