/* grid.h - the table of tasks that one launch computes, as host and kernel see it.
 *
 * Door: grid_plan() decides how a task is spread over blocks and grid_depth() how deep its sums are
 * (grid_plan.c, plain arithmetic that is tested without a device); grid_atomic_launch() runs a
 * table (grid_atomic.cu). A task is rows of one length; every row gives one pair of sums.
 */
#ifndef GPU_KERNELS_GRID_H
#define GPU_KERNELS_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GRID_THREADS = 512, /* of a block; a power of two: sums are folded by halves */
    GRID_WARP = 32,
    GRID_WARPS = GRID_THREADS / GRID_WARP,
    GRID_LOAD_BYTES = 16, /* of one vector load */
    GRID_LOADS = 4,       /* of each operand in flight a thread */
    GRID_TEAM = 8,        /* lanes a row at least: what they read at once is a line of 128 bytes */
    GRID_TILE = 32,       /* rows of a tile at most: a lane each when they end */
    GRID_TILE_WARPS = 8,  /* of a block that reads tiles */
    GRID_CHAINS = 4,      /* accumulators of a thread's sum in the fast kernel */
};

/* Who computes a row. */
enum grid_form {
    GRID_WARP_ROW,  /* one warp: many short rows */
    GRID_BLOCK_ROW, /* one block: its sums go straight to the results */
    GRID_SPLIT_ROW, /* several blocks: each adds its part atomically */
    GRID_TILE_ROW,  /* one warp several: many short rows of vectors; a kernel of its own */
};

struct grid_sum {
    double sum, sum_abs;
};

struct grid_task {
    const void *a, *b;                 /* row 0, in the device's eyes; element-aligned */
    uint64_t n;                        /* elements of a row, > 0 */
    uint64_t stride_a[2], stride_b[2]; /* elements; row r is (r / inner_rows, r % inner_rows) */
    uint32_t rows, inner_rows;         /* rows in all; of the inner loop */
    uint32_t result;                   /* row 0's place among the results */
    uint32_t total;                    /* row 0's place among the split sums, if GRID_SPLIT_ROW */
    uint32_t first_block;              /* set by who builds the table */
    uint32_t blocks;                   /* grid_plan(): that work on this task */
    uint32_t parts;                    /* grid_plan(): blocks a row, 1 unless GRID_SPLIT_ROW */
    uint32_t form;                     /* grid_plan(): enum grid_form */
    uint32_t dtype;                    /* enum dtype, of the operands */
    uint32_t result_dtype;             /* enum dtype; of exact tasks */
    uint32_t conjugate;                /* a's elements, if complex: 1 */
    uint32_t is_final;                 /* of exact split rows: these are the row's last products */
    uint32_t team;                     /* grid_tile(): lanes a row of GRID_TILE_ROW */
    uint32_t height;                   /* grid_tile(): rows of a tile */
};

/* Sets blocks, parts and form, team and height. capacity: blocks that the device holds at once. */
void grid_plan(struct grid_task *task, uint32_t capacity);

/* Plans a task for tiles, if its rows can be read so: they are of real numbers, in one loop, and
 * each is a whole number of vectors, on boundaries of that. capacity: as above, of blocks of
 * GRID_TILE_WARPS. */
bool grid_tile(struct grid_task *task, uint32_t capacity);

enum {
    GRID_FULL = 2,                /* times a device is filled before tasks get a share only */
    GRID_SHARE_BYTES = 512 << 10, /* a block's at most: the last ones must not take long */
};

/* Of a launch whose tasks, each planned for the whole device, would fill it more than GRID_FULL
 * times: the capacity to plan one of them with instead, so that no block has less to do than its
 * beginning and end cost. task_bytes and all_bytes: operands of the task, and of all. */
uint32_t grid_share(uint64_t task_bytes, uint64_t all_bytes, uint32_t capacity);

/* How an exact kernel fills a device. */
struct exact_shape {
    uint32_t threads;                     /* of a block at most */
    uint32_t capacity;                    /* blocks of them that the device holds at once */
    uint32_t tile_threads, tile_capacity; /* of GRID_TILE_ROW; 0: the type has none */
};

/* The same for the exact kernel of the task's type. A row of several launches must be split: its
 * blocks meet in memory that outlasts a launch. */
void exact_plan(struct grid_task *task, const struct exact_shape *shape, bool must_split);

/* Threads of a block in a launch of this task alone: warps that have nothing to do would still be
 * waited for. */
uint32_t exact_threads(const struct grid_task *task, const struct exact_shape *shape);

/* Of the fast kernel: roundings between a product and a row's total at most, the product's own not
 * counted. */
uint64_t grid_depth(const struct grid_task *task);

/* All pointers in the device's eyes. */
struct grid_launch {
    const struct grid_task *task;  /* the table */
    const uint32_t *task_of_block; /* [blocks]; NULL: every block works on `only` */
    struct grid_sum *result;       /* rows of whole blocks and warps: stored */
    struct grid_sum *split;        /* split rows: added to, zero before the launch */
    struct grid_task only;         /* a table of one travels with the launch: one round trip less */
    uint32_t has_tiles;            /* 1: all tasks are of GRID_TILE_ROW; 0: none is */
};

#ifdef __cplusplus
}
#endif

#endif
