/* cuda_round.h - one round of a batch on a CUDA device: a table of tasks, launched and collected.
 *
 * Door: cuda_round_copy() queues operands; cuda_round_add() enters what is to be computed and
 * flushes when a table is full; cuda_round_flush() launches one kernel for each kind of task in the
 * table, waits, and writes the values. One thread at a time. All memory is allocated by create.
 */
#ifndef GPU_CUDA_ROUND_H
#define GPU_CUDA_ROUND_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/backend.h"
#include "gpu/exact/sum.h"

enum {
    ROUND_ROWS = 32768, /* most of one piece; a round has room for as many results */
};

/* A row that is computed in parts is settled by who cut it, unless it is exact: then its parts meet
 * on the device, and the last one brings the result; without a last one, cuda_round_take_sum()
 * takes what has met. One such row at a time. */
enum piece_kind { PIECE_ROWS, PIECE_PART, PIECE_LAST_PART };

/* Whole rows of a task, or a part of one row. */
struct piece {
    struct job *job;
    struct dot_task task;  /* as in gpu.h, cut down; first is the value of row (0, 0) */
    uint64_t value_stride; /* values from one outer row to the next */
    enum piece_kind kind;
};

struct cuda_round; /* layout in cuda_round.c */

/* On the current device. */
enum error cuda_round_create(struct cuda_round **ret, struct problem *problem);
void cuda_round_destroy(struct cuda_round *round); /* takes NULL */

/* Begins a batch: nothing is entered, no time spent. problem is used until the next one. */
void cuda_round_begin(struct cuda_round *round, struct problem *problem);

/* Queues a copy to the device, which the next flush waits for. */
enum error cuda_round_copy(struct cuda_round *round, void *d_to, const void *from, size_t size);

/* Enters a piece of at most ROUND_ROWS rows, whose operands begin at d_a and d_b on the device. */
enum error cuda_round_add(struct cuda_round *round, const struct piece *piece, const char *d_a,
                          const char *d_b);

/* Launches, waits, collects. The operands are free then. */
enum error cuda_round_flush(struct cuda_round *round);

/* Flushes, and takes what the parts of an exact row have added up to on the device, as a sum that
 * can be merged, but for sum_abs; the device's is empty then. *ret is an empty sum of the row's
 * type. */
enum error cuda_round_take_sum(struct cuda_round *round, struct exact_sum *ret);

/* After a failure that left the device in order (ERR_NOMEM): forgets what was entered, and begins
 * again. ERR_DEVICE: it is not in order. */
enum error cuda_round_recover(struct cuda_round *round);

/* Whether a piece's results are exact. */
bool piece_is_exact(const struct piece *piece);

/* Of the fast kernel: as grid_depth(), for a part of n elements of one row. */
uint64_t cuda_round_depth(const struct cuda_round *round, enum dtype dtype, uint64_t n);

/* Copies since cuda_round_begin(). */
struct backend_times cuda_round_times(const struct cuda_round *round);

#endif
