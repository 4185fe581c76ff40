/* cuda_tables.h - what the kernels of a round read and fill: the tasks, and the results on their way
 * to the values of jobs. Private to cuda_round.c.
 *
 * Door: cuda_tables_open() on the current device; cuda_round.c enters tasks and launches kernels;
 * cuda_tables_collect() once these are done, and split sums and totals copied; cuda_tables_clear()
 * for the next round. All memory is allocated by open.
 */
#ifndef GPU_CUDA_TABLES_H
#define GPU_CUDA_TABLES_H

#include <stdint.h>

#include "gpu/cuda_round.h"
#include "gpu/kernels/exact.h"
#include "gpu/kernels/grid.h"

enum {
    ROUND_TASKS = 4096,
    ROUND_BLOCKS = 65536,
    ROUND_VALUES = 2 * ROUND_ROWS, /* of complex rows there are two a row */
    ROUND_TOTALS = ROUND_TASKS,    /* exact rows of several blocks */
};

/* What a task is for. An exact job that wants its sum of absolute values gets a second task, of the
 * fast kernel, of which only that sum is used. */
enum purpose { PURPOSE_FAST, PURPOSE_ABS, PURPOSE_EXACT };

struct entry {
    struct piece piece;
    enum purpose purpose;
};

/* Everything belongs to the thread that computes. */
struct cuda_tables {
    struct grid_task *task, *d_task;           /* pinned and mapped, [ROUND_TASKS] */
    uint32_t *task_of_block, *d_task_of_block; /* pinned and mapped, [ROUND_BLOCKS] */
    struct entry *entry;                       /* heap, [ROUND_TASKS]: what each task is for */
    struct grid_sum *sum, *d_sum;      /* pinned and mapped, [ROUND_VALUES]: stored by kernels */
    struct grid_sum *split;            /* pinned, [ROUND_VALUES]: a copy of d_split */
    struct grid_sum *d_split;          /* device memory, [ROUND_VALUES]: sums of split rows */
    struct dot_value *value, *d_value; /* pinned and mapped, [ROUND_VALUES]: exact results */
    struct exact_row *row, *d_row;     /* pinned and mapped, [ROUND_VALUES]: those of tiles */
    struct exact_total *d_total;       /* device memory, [ROUND_TOTALS] */
    struct exact_total *total;         /* pinned: a copy of one of them */
    uint32_t task_count, block_count, sum_count, split_count, value_count, total_count;
};

/* On failure what was opened is the caller's to close. */
enum error cuda_tables_open(struct cuda_tables *tables, struct problem *problem);
void cuda_tables_close(struct cuda_tables *tables); /* zeroed is fine */

/* Nothing is entered any more. */
void cuda_tables_clear(struct cuda_tables *tables);

/* Every task's results, to the values of its job. */
void cuda_tables_collect(const struct cuda_tables *tables);

#endif
