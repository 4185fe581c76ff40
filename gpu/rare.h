/* rare.h - the rows whose float64 sum is not finite: NaN, infinity, or an overflow on the way.
 *
 * Door: rare_settle(). It reads the operands again and serially (some ns a term): such rows are
 * few, and their answer follows the exact sum, not the order in which a kernel happened to add.
 */
#ifndef GPU_RARE_H
#define GPU_RARE_H

#include <stdint.h>

#include "proto/tensor.h"
#include "proto/value.h"

/* Sets every field of *value:
 *   a NaN operand, infinity times zero, infinities of both signs: the canonical NaN, flagged;
 *   otherwise an infinite product: that infinity, exact;
 *   all operands finite: the sum in a wider exponent range, rounded once to float64. Only a sum
 *   that is provably beyond float64 becomes an infinity, with FLAG_OVERFLOW and no bound. */
void rare_settle(struct dot_value *value, enum dtype dtype, const void *a, const void *b,
                 uint64_t n);

#endif
