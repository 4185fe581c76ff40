/* rare.c - rows whose float64 sum is not finite (see rare.h). */
#include "gpu/rare.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Products of two float64 and sums of 2^64 of them stay within a 15-bit exponent: 80-bit extended
 * on x86-64, binary128 on aarch64. Neither end of that range can be reached. */
static_assert(LDBL_MAX_EXP >= 16384 && LDBL_MIN_EXP <= -16381 && LDBL_MANT_DIG >= 64,
              "long double must have a 15-bit exponent and 64 bits of precision");

/* What decides a result that is not finite; each is true or false of the row in any order. */
struct signs {
    bool nan_input, invalid, positive, negative;
};

static double element(enum dtype dtype, const void *data, uint64_t index)
{
    if (dtype == DTYPE_FLOAT32)
        return ((const float *)data)[index];
    assert(dtype == DTYPE_FLOAT64);
    return ((const double *)data)[index];
}

static void signs_of_product(struct signs *signs, double x, double y)
{
    if (isnan(x) || isnan(y))
        signs->nan_input = true;
    else if (x == 0 || y == 0)
        signs->invalid = true; /* the other one is infinite */
    else if (signbit(x) == signbit(y))
        signs->positive = true;
    else
        signs->negative = true;
}

static struct signs signs_of_row(enum dtype dtype, const void *a, const void *b, uint64_t n)
{
    struct signs signs = {0};
    for (uint64_t i = 0; i < n; i++) {
        double x = element(dtype, a, i), y = element(dtype, b, i);
        if (!isfinite(x) || !isfinite(y))
            signs_of_product(&signs, x, y);
    }
    return signs;
}

static void settle_nan(struct dot_value *value, const struct signs *signs)
{
    bool invalid = signs->invalid || (signs->positive && signs->negative);
    *value = (struct dot_value){
        .sum = NAN, /* quiet, positive, no payload: the canonical one */
        .sum_abs = NAN,
        .flags = (signs->nan_input ? FLAG_NAN_INPUT : 0) | (invalid ? FLAG_INVALID : 0),
    };
}

/* Rounds up: a bound may be larger than needed, never smaller. */
static double bound_to_double(long double bound)
{
    return nextafter((double)bound, INFINITY);
}

/* Rounds once. What only may be beyond float64, within `bound`, becomes the largest number. */
static void settle_rounded(struct dot_value *value, long double sum, long double bound)
{
    const long double beyond = (long double)DBL_MAX + 0x1p970L; /* from here on: infinity */
    double rounded = (double)sum;
    value->flags = FLAG_INEXACT;
    if (isinf(rounded) && fabsl(sum) - bound >= beyond) {
        value->sum = rounded;
        value->error_bound = INFINITY;
        value->flags |= FLAG_OVERFLOW;
        return;
    }
    value->sum = isinf(rounded) ? copysign(DBL_MAX, rounded) : rounded;
    value->error_bound = bound_to_double(bound + fabsl(sum - (long double)value->sum));
}

/* Depth n, unit roundoff u of long double, no underflow: gamma / (1 - gamma) S~ as in bound.c, with
 * 3 n u above it while n u < 1/8. */
static void settle_finite(struct dot_value *value, enum dtype dtype, const void *a, const void *b,
                          uint64_t n)
{
    long double sum = 0, sum_abs = 0;
    for (uint64_t i = 0; i < n; i++) {
        long double product = (long double)element(dtype, a, i) * element(dtype, b, i);
        sum += product;
        sum_abs += fabsl(product);
    }
    long double nu = (long double)n * (LDBL_EPSILON / 2);
    assert(nu < 0.125L);
    value->sum_abs = (double)sum_abs;
    settle_rounded(value, sum, 3 * nu * sum_abs);
}

void rare_settle(struct dot_value *value, enum dtype dtype, const void *a, const void *b,
                 uint64_t n)
{
    struct signs signs = signs_of_row(dtype, a, b, n);
    if (signs.nan_input || signs.invalid || (signs.positive && signs.negative))
        settle_nan(value, &signs);
    else if (signs.positive || signs.negative)
        *value =
            (struct dot_value){.sum = signs.positive ? INFINITY : -INFINITY, .sum_abs = INFINITY};
    else
        settle_finite(value, dtype, a, b, n);
}
