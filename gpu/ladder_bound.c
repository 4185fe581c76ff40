/* ladder_bound.c - how far a rung's sum can be from the exact one, proved (see ladder.h). */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "gpu/bound.h"
#include "gpu/cpu_dot.h"
#include "gpu/exact/sum.h"
#include "gpu/ladder.h"

/* An upper bound of S, the exact sum of |a_i b_i|, from the computed one S~ of depth d in float64:
 * with u = 2^-53 and products that lose at most eta = 2^-1074 each to underflow,
 *   S <= (S~ + n eta) / (1 - gamma), gamma = (d + 1) u / (1 - (d + 1) u),
 * as in bound.c. (d + 1) u is below 2^-10 for any row that fits memory, so that 1 / (1 - gamma) is
 * below 1 + 2 (d + 1) 2^-53 (1 + 2^-9) < 1 + 4 (d + 1) u. */
static double sum_abs_above(enum dtype dtype, uint64_t n, double sum_abs)
{
    const struct cpu_kernel *kernel = NULL;
    (void)cpu_kernels(&kernel);
    const double hu = (double)(cpu_depth(kernel, dtype, n) + 1) * (DBL_EPSILON / 2);
    assert(hu < 0x1p-10);
    return (sum_abs + (double)n * 0x1p-1074) * (1 + 4 * hu);
}

/* In the element type, of unit roundoff u, least number eta and least normal number lambda, the
 * sum of n products in a tree in which each passes h roundings at most:
 *   sum = sum of (a_i b_i (1 + d_0) + e_i) times its h factors (1 + d), |d| <= u, |e_i| <= eta / 2.
 * The factors of a product make |prod - 1| <= (1 + u)^(h + 1) - 1 <= expm1((h + 1) u) =: g, for
 * every h; hence
 *   |sum - exact| <= g S + n eta / 2 (1 + g).
 * Additions lose nothing to underflow, but atomicAdd of float32 takes each subnormal operand, and a
 * subnormal result, for zero: less than 2 lambda an addition, for what lies in memory is never
 * subnormal itself, and that passes later roundings: (1 + g) 2 lambda for each of the atomics.
 * A sum that is finite met no infinity on its way, so no addition overflowed.
 * Underflow is counted twice as high as proved; the last factor covers the roundings of this
 * evaluation itself, expm1 included, below 10 ulp.
 * Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1, 4.2. */
static double bound_in(enum dtype dtype, const struct rung_takes *takes, uint64_t n, bool flushes,
                       double sum_abs)
{
    const bool is_narrow = dtype == DTYPE_FLOAT32;
    const double u = is_narrow ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
    const double eta = is_narrow ? 0x1p-149 : 0x1p-1074;
    const double g = expm1((double)(takes->depth + 1) * u);
    const double flushed = flushes && is_narrow ? 4 * (double)FLT_MIN * (double)takes->atomics : 0;
    return (g * sum_abs + ((double)n * eta + flushed) * (1 + g)) * (1 + 1e-12);
}

/* The exact sum says whether infinity or NaN is right. */
static void settle_not_finite(const struct ladder_ask *ask, struct dot_value *value)
{
    struct exact_sum sum;
    struct dot_value exact;
    exact_sum_init(&sum, NULL, ask->dtype, false, true);
    exact_sum_add(&sum, ask->a, ask->b, ask->n);
    exact_sum_round(&sum, ask->dtype, &exact);
    const bool is_special = !isfinite(exact.sum) && (exact.flags & FLAG_OVERFLOW) == 0;
    const bool is_right =
        is_special && (isnan(exact.sum) ? isnan(value->sum) : value->sum == exact.sum);
    value->sum_abs = exact.sum_abs;
    value->flags = is_special ? exact.flags : FLAG_INEXACT | FLAG_OVERFLOW;
    value->error_bound = is_right ? 0 : (double)INFINITY;
    if (is_right)
        value->sum = exact.sum; /* the one NaN */
    else if (isnan(value->sum))
        value->sum = (double)NAN;
}

void ladder_settle(const struct ladder_ask *ask, const struct rung_takes *takes,
                   struct dot_value *value)
{
    const struct rung *rung = ask->rung;
    if (!isfinite(value->sum) && !rung->is_exact) {
        settle_not_finite(ask, value);
        return;
    }
    const struct cpu_kernel *kernel = NULL;
    (void)cpu_kernels(&kernel);
    const double sum_abs = kernel->dot[ask->dtype](ask->a, ask->b, ask->n).sum_abs;
    if (rung->is_exact) {
        if (isfinite(value->sum) || (value->flags & FLAG_OVERFLOW) != 0)
            value->sum_abs = sum_abs;
        return;
    }
    value->sum_abs = sum_abs;
    if (rung->is_lab_only || !isfinite(sum_abs))
        value->error_bound = (double)INFINITY;
    else if (rung->is_float64)
        value->error_bound = ask->n > 0 ? bound_of_sum(ask->dtype, ask->n, takes->depth,
                                                       sum_abs_above(ask->dtype, ask->n, sum_abs))
                                        : 0;
    else
        value->error_bound = ask->n > 0 ? bound_in(ask->dtype, takes, ask->n, rung->is_atomic,
                                                   sum_abs_above(ask->dtype, ask->n, sum_abs))
                                        : 0;
    value->flags = value->error_bound > 0 ? FLAG_INEXACT : 0;
}
