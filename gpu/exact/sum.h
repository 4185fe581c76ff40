/* sum.h - one exact dot product in the making, on the CPU: a partial sum that can be merged.
 *
 * Door: exact_sum_init(), exact_sum_add() with any number of pieces, exact_sum_merge() of sums that
 * were made anywhere, exact_sum_round() at the end. However a row is cut, ordered or shared out,
 * the result has the same bits. Not shared between threads: merge instead.
 */
#ifndef GPU_EXACT_SUM_H
#define GPU_EXACT_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/exact/part.h"

struct cpu_kernel; /* cpu_dot.h: which instructions compute */

struct exact_sum {
    const struct cpu_kernel *kernel; /* fixed after init, as the next three */
    enum dtype dtype;                /* of the operands */
    bool conjugate;                  /* a's elements, if complex */
    bool wants_abs;                  /* costs a second reading of float operands */
    struct exact_part part[2];       /* [1], the imaginary part, only of complex types */
};

/* The empty sum. kernel NULL: the quickest of this machine. */
void exact_sum_init(struct exact_sum *sum, const struct cpu_kernel *kernel, enum dtype dtype,
                    bool conjugate, bool wants_abs);

/* Adds n products. a and b are aligned to their parts' own size only; they may overlap or be
 * equal. */
void exact_sum_add(struct exact_sum *sum, const void *a, const void *b, uint64_t n);

/* Adds other, a sum of the same dtype. */
void exact_sum_merge(struct exact_sum *sum, const struct exact_sum *other);

/* Sets value[0], and value[1] of a complex sum, rounded once to result_dtype (see struct job). The
 * sum is used up. */
void exact_sum_round(struct exact_sum *sum, enum dtype result_dtype, struct dot_value *value);

#endif
