/* partial.h - one dot product in the making: what pieces of a row have added up to so far.
 *
 * Door: partial_init(); partial_add() with pieces on the caller's own thread, and jobs whose
 * `partial` is set with pieces on a device; partial_merge() of sums that were made anywhere;
 * partial_settle() at the end. However a row is cut, ordered or shared out, an exact result has the
 * same bits; a fast one stays within its bound. Not shared between threads: merge instead.
 *
 * A fast piece is summed in float64 and its rounded sum then added exactly, so that only rounding
 * within pieces is lost; a piece whose sum is not finite is added exactly instead.
 */
#ifndef GPU_PARTIAL_H
#define GPU_PARTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/exact/sum.h"
#include "proto/value.h"

struct partial {
    enum accuracy accuracy; /* fixed after init; of integers it makes no difference */
    uint64_t n;             /* products so far */
    double error_bound[2];  /* of fast pieces together, for either part; rounded up */
    struct exact_sum sum;
};

void partial_init(struct partial *partial, enum dtype dtype, enum accuracy accuracy, bool conjugate,
                  bool wants_abs);

/* Adds n products now. a and b are aligned to their parts' own size only. */
void partial_add(struct partial *partial, const void *a, const void *b, uint64_t n);

/* Adds other, a sum of the same dtype and accuracy. */
void partial_merge(struct partial *partial, const struct partial *other);

/* For devices. A fast piece: sum and sum_abs of piece[0], and of piece[1] if complex, were
 * accumulated over n products of a and b as bound_of_sum() says (bound.h). */
void partial_add_fast(struct partial *partial, const struct dot_value piece[2], uint64_t depth,
                      const void *a, const void *b, uint64_t n);

/* An exact piece of n products, of the partial's dtype. */
void partial_add_exact(struct partial *partial, const struct exact_sum *piece, uint64_t n);

/* Sets value[0], and value[1] of a complex sum, as a job's backend would. Used up. */
void partial_settle(struct partial *partial, enum dtype result_dtype, struct dot_value *value);

#endif
