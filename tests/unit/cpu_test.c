/* Dot products on the CPU: every instruction set against exact integers, the proved bound, and the
 * rows whose sum is not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/bound.h"
#include "gpu/cpu_dot.h"

typedef __int128 wide;

static uint64_t random_state = 1;

static uint64_t random_bits(unsigned bits)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state ^ random_state >> 29) >> (64 - bits);
}

/* A whole number of up to `bits` bits, of either sign, of widely varying magnitude. */
static int64_t random_whole(unsigned bits)
{
    int64_t whole = (int64_t)(random_bits(bits) >> random_bits(4));
    return random_bits(1) ? whole : -whole;
}

/* Operands that hold whole numbers, and their exact sums. 24 bits fill a float32; products of
 * 50-bit numbers do not fit a float64 and round. */
struct operands {
    enum dtype dtype;
    unsigned char *a, *b; /* heap; data begins `skew` elements in, so that vectors are misaligned */
    const void *row_a, *row_b;
    wide sum, sum_abs;
};

static void put(void *data, enum dtype dtype, size_t index, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

static struct operands operands_of(enum dtype dtype, size_t n, size_t skew_a, size_t skew_b)
{
    size_t size = dtype_size(dtype);
    unsigned bits = dtype == DTYPE_FLOAT32 ? 24 : 50;
    struct operands o = {
        .dtype = dtype, .a = malloc((n + skew_a) * size + 1), .b = malloc((n + skew_b) * size + 1)};
    assert_non_null(o.a);
    assert_non_null(o.b);
    o.row_a = o.a + skew_a * size;
    o.row_b = o.b + skew_b * size;
    for (size_t i = 0; i < n; i++) {
        int64_t x = random_whole(bits), y = random_whole(bits);
        put(o.a + skew_a * size, dtype, i, (double)x);
        put(o.b + skew_b * size, dtype, i, (double)y);
        wide product = (wide)x * y;
        o.sum += product;
        o.sum_abs += product < 0 ? -product : product;
    }
    return o;
}

static void operands_free(struct operands *o)
{
    free(o->a);
    free(o->b);
}

/* |value - exact|; value is a whole number because every product and partial sum is one. */
static double distance(double value, wide exact)
{
    wide difference = (wide)value - exact;
    return (double)(difference < 0 ? -difference : difference);
}

static void check(const struct cpu_kernel *kernel, enum dtype dtype, size_t n, size_t skew_a,
                  size_t skew_b)
{
    struct operands o = operands_of(dtype, n, skew_a, skew_b);
    struct cpu_sum sum = kernel->dot[dtype](o.row_a, o.row_b, n);
    struct dot_value value = {.sum = sum.sum, .sum_abs = sum.sum_abs};
    value_settle(&value, dtype, o.row_a, o.row_b, n, cpu_depth(kernel, dtype, n));
    if (distance(value.sum, o.sum) > value.error_bound)
        fail_msg("%s, dtype %d, n %zu: %.17g is off by %g, bound %g", kernel->name, (int)dtype, n,
                 value.sum, distance(value.sum, o.sum), value.error_bound);
    if (value.error_bound > ((double)n + 1) * 0x1p-52 * (double)o.sum_abs)
        fail_msg("%s, n %zu: bound %g is looser than adding in turn", kernel->name, n,
                 value.error_bound);
    if (distance(value.sum_abs, o.sum_abs) > (double)(n + 2) * 0x1p-53 * (double)o.sum_abs)
        fail_msg("%s, n %zu: sum_abs %.17g is wrong", kernel->name, n, value.sum_abs);
    assert_int_equal(value.flags, value.error_bound > 0 ? FLAG_INEXACT : 0);
    operands_free(&o);
}

static void every_kernel_is_within_its_bound_at_every_length(void **state)
{
    (void)state;
    static const size_t large[] = {255,   256,   257,   1023,  1024,  1025,
                                   32767, 32768, 32769, 65537, 100000};
    const struct cpu_kernel *kernel;
    size_t count = cpu_kernels(&kernel);
    assert_true(count >= 1);
    for (size_t k = 0; k < count; k++)
        for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++) {
            for (size_t n = 0; n <= 130; n++)
                check(&kernel[k], dtype, n, n % 3, n % 2);
            for (size_t i = 0; i < sizeof large / sizeof *large; i++)
                check(&kernel[k], dtype, large[i], i % 2, i % 3);
        }
}

/* Small whole numbers: every partial sum is exact, so one missing or doubled term shows at once. */
static void every_kernel_counts_every_term_once(void **state)
{
    (void)state;
    enum { N = 300 };
    float a[N], b[N];
    const struct cpu_kernel *kernel;
    size_t count = cpu_kernels(&kernel);
    for (size_t k = 0; k < count; k++)
        for (size_t n = 0; n <= N; n++) {
            double want = 0;
            for (size_t i = 0; i < n; i++) {
                a[i] = (float)(i % 7) + 1;
                b[i] = i % 2 ? 3.0F : -2.0F;
                want += (double)a[i] * b[i];
            }
            struct cpu_sum sum = kernel[k].dot[DTYPE_FLOAT32](a, b, n);
            if (sum.sum != want)
                fail_msg("%s, n %zu: %g, expected %g", kernel[k].name, n, sum.sum, want);
        }
}

static struct dot_value settle64(const double *a, const double *b, uint64_t n)
{
    const struct cpu_kernel *kernel;
    (void)cpu_kernels(&kernel);
    struct cpu_sum sum = kernel->dot[DTYPE_FLOAT64](a, b, n);
    struct dot_value value = {
        .sum = sum.sum, .sum_abs = sum.sum_abs, .error_bound = -1, .flags = ~0u};
    value_settle(&value, DTYPE_FLOAT64, a, b, n, cpu_depth(kernel, DTYPE_FLOAT64, n));
    return value;
}

static struct dot_value settle32(const float *a, const float *b, uint64_t n)
{
    const struct cpu_kernel *kernel;
    (void)cpu_kernels(&kernel);
    struct cpu_sum sum = kernel->dot[DTYPE_FLOAT32](a, b, n);
    struct dot_value value = {
        .sum = sum.sum, .sum_abs = sum.sum_abs, .error_bound = -1, .flags = ~0u};
    value_settle(&value, DTYPE_FLOAT32, a, b, n, cpu_depth(kernel, DTYPE_FLOAT32, n));
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_value(struct dot_value value, double sum, unsigned flags)
{
    if (bits_of(value.sum) != bits_of(sum))
        fail_msg("%.17g, expected %.17g", value.sum, sum);
    assert_int_equal(value.flags, flags);
    if (!(flags & FLAG_INEXACT) && value.error_bound != 0)
        fail_msg("exact, and yet a bound of %g", value.error_bound);
}

static void what_cannot_round_has_no_bound(void **state)
{
    (void)state;
    check_value(settle64(NULL, NULL, 0), 0.0, 0);
    check_value(settle32((float[]){3}, (float[]){-7}, 1), -21.0, 0);
    check_value(settle32((float[]){0, -0.0F}, (float[]){5, 7}, 2), 0.0, 0);
}

static void subnormal_products_of_float32_count_in_full(void **state)
{
    (void)state;
    float tiny[40];
    for (int i = 0; i < 40; i++)
        tiny[i] = 0x1p-149F;
    struct dot_value value = settle32(tiny, tiny, 40);
    assert_int_equal(bits_of(value.sum), bits_of(40 * 0x1p-298));
    struct dot_value wide_value = settle64((double[]){0x1p-1074}, (double[]){0.5}, 1);
    assert_true(wide_value.error_bound >= 0x1p-1074 / 2); /* the product fell below the range */
    assert_int_equal(bits_of(settle64((double[]){0x1p-1074}, (double[]){3}, 1).sum), 3);
}

static void an_exact_zero_is_positive(void **state)
{
    (void)state;
    const double a[] = {-1, 0, -0.0, 3, -3}, b[] = {0, -5, 5, 2, 2};
    const struct cpu_kernel *kernel;
    size_t count = cpu_kernels(&kernel);
    for (size_t k = 0; k < count; k++) {
        for (uint64_t n = 1; n <= 3; n++)
            assert_int_equal(bits_of(kernel[k].dot[DTYPE_FLOAT64](a, b, n).sum), 0);
        assert_int_equal(bits_of(kernel[k].dot[DTYPE_FLOAT64](a, b, 5).sum), 0);
    }
}

static void non_finite_operands_follow_the_exact_sum(void **state)
{
    (void)state;
    const double inf = INFINITY, nan_ = NAN;
    double canonical;
    memcpy(&canonical, &(uint64_t){0x7ff8000000000000}, sizeof canonical);
    check_value(settle64((double[]){0}, (double[]){nan_}, 1), canonical, FLAG_NAN_INPUT);
    check_value(settle64((double[]){0}, (double[]){-nan_}, 1), canonical, FLAG_NAN_INPUT);
    check_value(settle64((double[]){inf}, (double[]){-0.0}, 1), canonical, FLAG_INVALID);
    check_value(settle64((double[]){1, 1}, (double[]){-inf, inf}, 2), canonical, FLAG_INVALID);
    check_value(settle64((double[]){inf, 0}, (double[]){0, nan_}, 2), canonical,
                FLAG_INVALID | FLAG_NAN_INPUT);
    check_value(settle64((double[]){inf, 1}, (double[]){1, 1}, 2), inf, 0);
    check_value(settle64((double[]){-inf, DBL_MAX}, (double[]){2, DBL_MAX}, 2), -inf, 0);
    check_value(settle32((float[]){INFINITY, -3e38F}, (float[]){-1, 3e38F}, 2), -inf, 0);
    check_value(settle32((float[]){1, NAN}, (float[]){1, 1}, 2), canonical, FLAG_NAN_INPUT);
}

static void overflow_on_the_way_is_no_infinity(void **state)
{
    (void)state;
    check_value(settle64((double[]){DBL_MAX, DBL_MAX, 1}, (double[]){2, -2, 1}, 3), 1.0, 0);
    check_value(settle64((double[]){DBL_MAX, DBL_MAX, -DBL_MAX}, (double[]){1, 0.75, 1}, 3),
                0.75 * DBL_MAX, FLAG_INEXACT);
}

static void a_sum_beyond_float64_is_an_infinity(void **state)
{
    (void)state;
    struct dot_value value = settle64((double[]){DBL_MAX, -DBL_MAX}, (double[]){-2, 2}, 2);
    check_value(value, -INFINITY, FLAG_INEXACT | FLAG_OVERFLOW);
    assert_true(isinf(value.error_bound));
    value = settle64((double[]){1e200}, (double[]){1e200}, 1);
    check_value(value, INFINITY, FLAG_INEXACT | FLAG_OVERFLOW);
}

/* DBL_MAX + half an ulp is where rounding goes to infinity. */
static void a_sum_at_the_edge_is_rounded_from_its_exact_value(void **state)
{
    (void)state;
    struct dot_value value = settle64((double[]){DBL_MAX, 0x1p970}, (double[]){1, 1}, 2);
    check_value(value, INFINITY, FLAG_INEXACT | FLAG_OVERFLOW);
    value = settle64((double[]){DBL_MAX, DBL_MAX, -DBL_MAX, 0x1p970, -0x1p-1074},
                     (double[]){1, 1, 1, 1, 0x1p-1074}, 5);
    check_value(value, DBL_MAX, FLAG_INEXACT);
    assert_true(value.error_bound >= 0x1p970 && value.error_bound <= 0x1p971);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_is_within_its_bound_at_every_length),
        cmocka_unit_test(every_kernel_counts_every_term_once),
        cmocka_unit_test(what_cannot_round_has_no_bound),
        cmocka_unit_test(subnormal_products_of_float32_count_in_full),
        cmocka_unit_test(an_exact_zero_is_positive),
        cmocka_unit_test(non_finite_operands_follow_the_exact_sum),
        cmocka_unit_test(overflow_on_the_way_is_no_infinity),
        cmocka_unit_test(a_sum_beyond_float64_is_an_infinity),
        cmocka_unit_test(a_sum_at_the_edge_is_rounded_from_its_exact_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
