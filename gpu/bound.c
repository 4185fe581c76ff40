/* bound.c - the proved bound of a floating-point sum (see bound.h). */
#include "gpu/bound.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "gpu/rare.h"

/* With u = 2^-53, gamma = h u / (1 - h u), S = the exact sum of |a_i b_i| and S~ the computed one:
 *   |sum - exact| <= gamma S + n eta  and  S <= (S~ + n eta) / (1 - gamma), so
 *   |sum - exact| <= gamma / (1 - gamma) (S~ + n eta) + n eta.
 * eta covers products below the normal range: 2^-1074 a product for float64; a product of two
 * float32 is exact in float64 (48 bits, exponents -298 to 255), so there it costs nothing.
 * The 4 eta and the factor cover the roundings of this evaluation itself, below 8 ulp.
 * Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1, 4.2. */
double bound_of_sum(enum dtype dtype, uint64_t n, uint64_t depth, double sum_abs)
{
    assert(sum_abs >= 0 && isfinite(sum_abs));
    if (n == 0)
        return 0;
    bool product_rounds = dtype == DTYPE_FLOAT64;
    double h = (double)depth + (product_rounds ? 1 : 0);
    double underflow = product_rounds ? ((double)n + 4) * 0x1p-1074 : 0;
    double hu = h * (DBL_EPSILON / 2);
    assert(hu < 0.25);
    double gamma = hu / (1 - hu);
    return (gamma / (1 - gamma) * (sum_abs + underflow) + underflow) * (1 + 1e-12);
}

void value_settle(struct dot_value *value, enum dtype dtype, const void *a, const void *b,
                  uint64_t n, uint64_t depth)
{
    if (!isfinite(value->sum) || !isfinite(value->sum_abs)) {
        rare_settle(value, dtype, a, b, n);
        return;
    }
    value->error_bound = bound_of_sum(dtype, n, depth, value->sum_abs);
    value->flags = value->error_bound > 0 ? FLAG_INEXACT : 0;
}
