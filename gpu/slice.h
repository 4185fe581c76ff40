/* slice.h - how much a device takes at once, and how a long job is cut up for it.
 *
 * Door: slice_share() weighs work against a device's limit; slice_begin() and slice_next() cut a
 * job into slices: whole tasks, rows of a task, or products of one row, which add up in a partial
 * sum (partial.h). Every slice is a job of its own for a backend; its operands stay where they are.
 */
#ifndef GPU_SLICE_H
#define GPU_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

/* Either bound fills a slice; of both, their shares add up. A device has one of some
 * milliseconds. */
struct slice_limit {
    uint64_t bytes; /* operands that must be copied; UINT64_MAX where none are */
    uint64_t terms; /* products */
};

/* 1: a whole slice. */
double slice_share(const struct slice_limit *limit, uint64_t bytes, uint64_t terms);

/* Whether a job goes to the small ones, which are computed together and between slices. One that
 * adds to a partial sum never does: it is computed alone. */
bool slice_is_small(const struct slice_limit *limit, const struct job *job);

struct slice_cursor {
    const struct job *job;
    size_t task;   /* the next */
    uint64_t row;  /* of it, the next: its (row / rows[1], row % rows[1]) */
    uint64_t done; /* products of that row */
};

struct slice {
    struct job job; /* computed by a backend; its values are the whole job's unless is_part */
    bool is_part;   /* products of one row, for a partial sum that the worker sets in job.partial */
    bool begins_row, ends_row; /* of a part: it is the row's first, last */
    size_t value;              /* of a part: where the row's value is */
};

void slice_begin(struct slice_cursor *cursor, const struct job *job);

/* Sets *ret to what comes next, about as much as the limit and at least one product or row. False
 * when nothing is left; *ret is untouched then. */
bool slice_next(struct slice_cursor *cursor, const struct slice_limit *limit, struct slice *ret);

bool slice_is_over(const struct slice_cursor *cursor); /* nothing is left */

#endif
