/* bound.h - how far a floating-point sum can be from the exact one, proved.
 *
 * Door: bound_of_sum() for a finite result; value_settle() turns the raw sums of one row into what
 * is promised to the client. No estimates: every bound holds for every input.
 */
#ifndef GPU_BOUND_H
#define GPU_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/tensor.h"
#include "proto/value.h"

/* A bound of |sum - exact|, where sum and sum_abs were accumulated in float64 over trees in which a
 * product passes through at most `depth` roundings besides its own. sum_abs is finite. 0 only when
 * nothing can have been rounded. */
double bound_of_sum(enum dtype dtype, uint64_t n, uint64_t depth, double sum_abs);

/* value->sum and sum_abs hold what was accumulated over the n products of a and b, of a real float
 * type: sets bound and flags. A sum that is not finite is worked out again from the operands,
 * exactly (gpu/exact): its answer follows the exact sum, not the order in which a kernel happened
 * to add. */
void value_settle(struct dot_value *value, enum dtype dtype, const void *a, const void *b,
                  uint64_t n, uint64_t depth);

/* The same for complex operands: value[0] and value[1], and either is a sum of 2 n products. */
void value_settle_complex(struct dot_value *value, enum dtype dtype, bool conjugate, const void *a,
                          const void *b, uint64_t n, uint64_t depth);

#endif
