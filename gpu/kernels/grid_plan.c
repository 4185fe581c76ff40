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

static bool has_tiles(const struct grid_task *task)
{
    const size_t size = dtype_size((enum dtype)task->dtype);
    return !dtype_is_complex((enum dtype)task->dtype) && task->inner_rows == task->rows &&
           task->n * size % GRID_LOAD_BYTES == 0 &&
           is_on_boundary(task->a, task->stride_a[1], size) &&
           is_on_boundary(task->b, task->stride_b[1], size);
}

/* Few rows are cut into low tiles, so that each warp has one. */
bool grid_tile(struct grid_task *task, uint32_t capacity)
{
    const uint64_t bytes = task->n * dtype_size((enum dtype)task->dtype);
    if (!has_tiles(task))
        return false;
    uint32_t team = GRID_TEAM, height = GRID_TILE;
    while (team < GRID_WARP && team * (uint64_t)(TEAM_VECTORS * GRID_LOAD_BYTES) < bytes)
        team *= 2;
    while (height > GRID_LOADS * GRID_WARP / team &&
           task->rows / height < GRID_TILE_WARPS * capacity)
        height /= 2;
    task->form = GRID_TILE_ROW;
    task->parts = 1;
    task->team = team;
    task->height = height;
    task->blocks = smaller((task->rows - 1) / height + 1, capacity);
    return true;
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
        if (!grid_tile(task, capacity))
            task->form = GRID_WARP_ROW;
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
    const bool is_tile = task->form == GRID_TILE_ROW;
    uint64_t chains = is_tile ? 1 : GRID_CHAINS;
    uint64_t chain = (places * terms + chains - 1) / chains; /* of a vector's */
    uint64_t whole = is_tile ? task->team : task->form == GRID_WARP_ROW ? GRID_WARP : GRID_THREADS;
    uint64_t lanes = whole * task->parts, tree = (uint64_t)__builtin_ctzll(whole);
    uint64_t vectors = task->n / (places * lanes) + 2;
    uint64_t depth = vectors * chain + 2 + tree + task->parts;
    uint64_t serial = terms * task->n - 1;
    return depth < serial ? depth : serial;
}
