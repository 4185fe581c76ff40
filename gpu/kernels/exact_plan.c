/* exact_plan.c - how an exact task is spread over blocks (exact_plan in grid.h).
 *
 * Folding a block's accumulators costs about as much as some thousand products, and a row of
 * several blocks one more round of memory: as much as a block takes for 32 KB.
 */
#include <assert.h>

#include "gpu/kernels/grid.h"

enum {
    WARP_ROW_BYTES = 64 << 10,  /* of both operands: of many rows one up to here is a warp's */
    BLOCK_ROW_BYTES = 32 << 10, /* of few rows one up to here is a block's */
    FEW_THREADS = 256,          /* of a block, where a vector a thread is enough */
};

static const uint64_t THREAD_BYTES = 2 * GRID_LOAD_BYTES; /* a vector of each operand */

static uint32_t smaller(uint64_t x, uint64_t y)
{
    return (uint32_t)(x < y ? x : y);
}

static uint64_t row_bytes_of(const struct grid_task *task)
{
    return 2 * task->n * dtype_size((enum dtype)task->dtype);
}

void exact_plan(struct grid_task *task, const struct exact_shape *shape, bool must_split)
{
    assert(task->n > 0 && task->rows > 0 && shape->capacity > 0);
    const uint64_t row_bytes = row_bytes_of(task);
    const uint64_t part_bytes = smaller(shape->threads, FEW_THREADS) * THREAD_BYTES;
    task->parts = 1;
    task->blocks = smaller(task->rows, shape->capacity);
    task->form = GRID_BLOCK_ROW;
    if (must_split || (task->rows <= shape->capacity / 2 && row_bytes > BLOCK_ROW_BYTES)) {
        uint64_t most = shape->capacity > task->rows ? shape->capacity / task->rows : 1;
        task->form = GRID_SPLIT_ROW;
        task->parts = smaller((row_bytes + part_bytes - 1) / part_bytes, most);
        task->blocks = task->rows * task->parts;
    } else if (task->rows > shape->capacity && row_bytes <= WARP_ROW_BYTES) {
        if (shape->tile_capacity == 0 || !grid_tile(task, shape->tile_capacity))
            task->form = GRID_WARP_ROW;
    }
}

uint32_t exact_threads(const struct grid_task *task, const struct exact_shape *shape)
{
    const uint64_t enough = task->parts * FEW_THREADS * THREAD_BYTES;
    const bool is_short = task->form != GRID_WARP_ROW && row_bytes_of(task) <= enough;
    return is_short ? smaller(shape->threads, FEW_THREADS) : shape->threads;
}
