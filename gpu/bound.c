/* bound.c - the proved bound of a floating-point sum (see bound.h). */
#include "gpu/bound.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "gpu/exact/sum.h"

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
    bool product_rounds = dtype_part(dtype) == DTYPE_FLOAT64;
    double h = (double)depth + (product_rounds ? 1 : 0);
    double underflow = product_rounds ? ((double)n + 4) * 0x1p-1074 : 0;
    double hu = h * (DBL_EPSILON / 2);
    assert(hu < 0.25);
    double gamma = hu / (1 - hu);
    return (gamma / (1 - gamma) * (sum_abs + underflow) + underflow) * (1 + 1e-12);
}

static bool is_rare(const struct dot_value *value)
{
    return !isfinite(value->sum) || !isfinite(value->sum_abs);
}

static void settle_bound(struct dot_value *value, enum dtype dtype, uint64_t terms, uint64_t depth)
{
    value->error_bound = bound_of_sum(dtype, terms, depth, value->sum_abs);
    value->flags = value->error_bound > 0 ? FLAG_INEXACT : 0;
}

/* sum_abs: the exact sum may be finite where this one is not. */
static void settle_exactly(struct dot_value *value, enum dtype dtype, bool conjugate, const void *a,
                           const void *b, uint64_t n)
{
    struct exact_sum sum;
    exact_sum_init(&sum, NULL, dtype, conjugate, true);
    exact_sum_add(&sum, a, b, n);
    exact_sum_round(&sum, DTYPE_FLOAT64, value);
}

void value_settle(struct dot_value *value, enum dtype dtype, const void *a, const void *b,
                  uint64_t n, uint64_t depth)
{
    assert(dtype_is_float(dtype));
    if (is_rare(value))
        settle_exactly(value, dtype, false, a, b, n);
    else
        settle_bound(value, dtype, n, depth);
}

void value_settle_complex(struct dot_value *value, enum dtype dtype, bool conjugate, const void *a,
                          const void *b, uint64_t n, uint64_t depth)
{
    assert(dtype_is_complex(dtype));
    if (is_rare(&value[0]) || is_rare(&value[1])) {
        settle_exactly(value, dtype, conjugate, a, b, n);
        return;
    }
    for (int i = 0; i < 2; i++)
        settle_bound(&value[i], dtype, 2 * n, depth);
}
