/* The exact accumulator: what is known of rounding, carries, signs, widths and merges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/exact/part.h"

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t random_state = 1;

static uint64_t random_bits(unsigned bits)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state ^ random_state >> 29) >> (64 - bits);
}

struct pair {
    double x, y;
};

static struct exact_part part_of(enum dtype dtype, const struct pair *pair, size_t count)
{
    struct exact_part part;
    exact_part_init(&part, dtype);
    for (size_t i = 0; i < count; i++) {
        exact_part_reserve(&part, 2);
        if (dtype == DTYPE_FLOAT64)
            exact_part_add_product64(&part, pair[i].x, pair[i].y);
        else
            exact_part_add_product32(&part, (float)pair[i].x, (float)pair[i].y);
    }
    return part;
}

static void check_value(const struct dot_value *value, double sum, double bound, unsigned flags)
{
    if (bits_of(value->sum) != bits_of(sum) || value->flags != flags || value->error_bound != bound)
        fail_msg("%a, bound %a, flags %x; expected %a, %a, %x", value->sum, value->error_bound,
                 value->flags, sum, bound, flags);
}

static void check(enum dtype dtype, enum dtype result_dtype, size_t count, const struct pair *pair,
                  double sum, double bound, unsigned flags)
{
    struct exact_part part = part_of(dtype, pair, count);
    struct dot_value value;
    exact_part_round(&part, dtype, result_dtype, &value);
    check_value(&value, sum, bound, flags);
}

#define CHECK(dtype, result, sum, bound, flags, ...)                        \
    check(DTYPE_##dtype, DTYPE_##result,                                    \
          sizeof((const struct pair[]){__VA_ARGS__}) / sizeof(struct pair), \
          (const struct pair[]){__VA_ARGS__}, sum, bound, flags)

static void a_tie_goes_to_the_even_number(void **state)
{
    (void)state;
    CHECK(FLOAT64, FLOAT64, 0x1p53, 1, FLAG_INEXACT, {0x1p53, 1}, {1, 1});
    CHECK(FLOAT64, FLOAT64, 0x1p53 + 4, 1, FLAG_INEXACT, {0x1p53 + 2, 1}, {1, 1});
    CHECK(FLOAT32, FLOAT32, 0x1p24, 1, FLAG_INEXACT, {0x1p24, 1}, {1, 1});
    CHECK(FLOAT32, FLOAT32, -0x1p24 - 4, 1, FLAG_INEXACT, {0x1p24 + 2, -1}, {1, -1});
    CHECK(FLOAT16, FLOAT16, 2048, 1, FLAG_INEXACT, {2048, 1}, {1, 1});
    CHECK(BFLOAT16, BFLOAT16, 256, 1, FLAG_INEXACT, {256, 1}, {1, 1});
    CHECK(FLOAT32, FLOAT64, 0x1p53, 1, FLAG_INEXACT, {0x1p53, 1}, {1, 1});
}

/* The smallest product there is decides beside the largest tie. */
static void dust_beside_a_tie_decides(void **state)
{
    (void)state;
    const double dust64 = 0x1p-1074, dust32 = 0x1p-149;
    CHECK(FLOAT64, FLOAT64, 0x1p53 + 2, 1, FLAG_INEXACT, {0x1p53, 1}, {1, 1}, {dust64, dust64});
    CHECK(FLOAT64, FLOAT64, 0x1p53, 1, FLAG_INEXACT, {0x1p53, 1}, {1, 1}, {dust64, -dust64});
    CHECK(FLOAT64, FLOAT64, 0x1p53, 1, FLAG_INEXACT, {0x1p53, 1}, {1, 1});
    CHECK(FLOAT32, FLOAT32, 0x1p24 + 2, 1, FLAG_INEXACT, {0x1p24, 1}, {1, 1}, {dust32, dust32});
    CHECK(FLOAT32, FLOAT32, -0x1p24 - 2, 1, FLAG_INEXACT, {-0x1p24, 1}, {1, -1}, {dust32, -dust32});
    CHECK(FLOAT64, FLOAT64, 1, 0x1p-54, FLAG_INEXACT, {1, 1}, {dust64, -dust64});
}

/* By way of float64 the dust would vanish, and the tie that is left would go the other way. */
static void a_result_is_rounded_once(void **state)
{
    (void)state;
    CHECK(FLOAT64, FLOAT32, 0x1p24 + 2, 1, FLAG_INEXACT, {0x1p24, 1}, {1, 1}, {1, 0x1p-60});
    CHECK(FLOAT64, FLOAT16, 2050, 1, FLAG_INEXACT, {2048, 1}, {1, 1}, {1, 0x1p-60});
    CHECK(FLOAT32, BFLOAT16, 258, 1, FLAG_INEXACT, {256, 1}, {1, 1}, {0x1p-149, 1});
}

static void overflow_begins_at_half_an_ulp_beyond_the_largest(void **state)
{
    (void)state;
    const unsigned over = FLAG_INEXACT | FLAG_OVERFLOW;
    CHECK(FLOAT64, FLOAT64, INFINITY, INFINITY, over, {DBL_MAX, 1}, {0x1p970, 1});
    CHECK(FLOAT64, FLOAT64, DBL_MAX, 0x1p970, FLAG_INEXACT, {DBL_MAX, 1}, {0x1p970, 1},
          {0x1p-1074, -0x1p-1074});
    CHECK(FLOAT64, FLOAT64, DBL_MAX, 0, 0, {DBL_MAX, 1});
    CHECK(FLOAT32, FLOAT32, -INFINITY, INFINITY, over, {-(double)FLT_MAX, 1}, {0x1p103, -1});
    CHECK(FLOAT32, FLOAT32, -(double)FLT_MAX, 0x1p103, FLAG_INEXACT, {-(double)FLT_MAX, 1},
          {0x1p103, -1}, {0x1p-149, 0x1p-149});
    CHECK(FLOAT32, FLOAT16, INFINITY, INFINITY, over, {65504, 1}, {16, 1});
    CHECK(FLOAT32, FLOAT16, 65504, 16, FLAG_INEXACT, {65504, 1}, {16, 1}, {-0x1p-149, 0x1p-149});
    CHECK(FLOAT64, BFLOAT16, INFINITY, INFINITY, over, {0x1.fep127, 1}, {0x1p119, 1});
    CHECK(FLOAT64, FLOAT64, 1, 0, 0, {DBL_MAX, DBL_MAX}, {-DBL_MAX, DBL_MAX}, {1, 1});
}

static void subnormal_results_round_like_others(void **state)
{
    (void)state;
    const unsigned under = FLAG_INEXACT | FLAG_UNDERFLOW;
    CHECK(FLOAT64, FLOAT64, 0x1p-1074, 0, 0, {0x1p-1074, 1});
    CHECK(FLOAT64, FLOAT64, 0x1p-1073, 0x1p-1074, under, {0x1p-1074, 1.5});
    CHECK(FLOAT64, FLOAT64, 0.0, 0x1p-1074, under, {0x1p-1074, 0.5});
    CHECK(FLOAT64, FLOAT64, -0.0, 0x1p-1074, under, {0x1p-1074, -0.5});
    CHECK(FLOAT64, FLOAT64, -0x1p-1074, 0x1p-1074, under, {0x1p-1074, -0.5},
          {-0x1p-1074, 0x1p-1074});
    CHECK(FLOAT64, FLOAT64, DBL_MIN, 0x1p-1074, FLAG_INEXACT, {DBL_MIN, 1}, {-0x1p-1074, 0.25});
    CHECK(FLOAT32, FLOAT32, 0x1p-149, 0x1p-150, under, {0x1p-149, 0.75});
    CHECK(FLOAT32, FLOAT32, -0.0, 0x1p-150, under, {-0x1p-149, 0x1p-149});
    CHECK(FLOAT32, FLOAT64, 0x1p-298, 0, 0, {0x1p-149, 0x1p-149});
    CHECK(FLOAT16, FLOAT16, 0x1p-24, 0, 0, {0x1p-12, 0x1p-12});
    CHECK(FLOAT16, FLOAT16, 0x1p-23, 0x1p-25, under, {0x1p-24, 1}, {0x1p-24, 0.5});
    CHECK(BFLOAT16, BFLOAT16, 0.0, 0x1p-134, under, {0x1p-133, 0.25});
}

static void an_exact_zero_is_positive(void **state)
{
    (void)state;
    check(DTYPE_FLOAT64, DTYPE_FLOAT64, 0, NULL, 0.0, 0, 0);
    CHECK(FLOAT64, FLOAT64, 0.0, 0, 0, {-0.0, 1}, {0, -1});
    CHECK(FLOAT64, FLOAT64, 0.0, 0, 0, {-3, 1}, {3, 1});
    CHECK(FLOAT32, FLOAT16, 0.0, 0, 0, {-0x1p-149, 0x1p-149}, {0x1p-149, 0x1p-149});
}

static void check_special(unsigned special, double sum, unsigned flags)
{
    struct exact_part part = part_of(DTYPE_FLOAT32, (const struct pair[]){{1, 2}}, 1);
    struct dot_value value;
    part.special = special;
    exact_part_round(&part, DTYPE_FLOAT32, DTYPE_FLOAT32, &value);
    check_value(&value, sum, 0, flags);
}

static void products_that_are_not_finite_decide(void **state)
{
    (void)state;
    double canonical;
    memcpy(&canonical, &(uint64_t){0x7ff8000000000000}, sizeof canonical);
    const double inf = INFINITY, nan_ = -canonical;
    assert_int_equal(exact_special_of(1, 0), 0);
    assert_int_equal(exact_special_of(nan_, 0), EXACT_NAN_INPUT);
    assert_int_equal(exact_special_of(inf, nan_), EXACT_NAN_INPUT);
    assert_int_equal(exact_special_of(-0.0, inf), EXACT_INVALID);
    assert_int_equal(exact_special_of(inf, -inf), EXACT_NEGATIVE);
    assert_int_equal(exact_special_of(-inf, -1), EXACT_POSITIVE);
    check_special(EXACT_POSITIVE, inf, 0);
    check_special(EXACT_NEGATIVE, -inf, 0);
    check_special(EXACT_POSITIVE | EXACT_NEGATIVE, canonical, FLAG_INVALID);
    check_special(EXACT_POSITIVE | EXACT_NAN_INPUT, canonical, FLAG_NAN_INPUT);
    check_special(EXACT_INVALID | EXACT_NAN_INPUT, canonical, FLAG_NAN_INPUT | FLAG_INVALID);
}

/* Limbs as far apart from carried as 2^30 deposits make them. */
static void limbs_bear_all_deposits_before_a_carry(void **state)
{
    (void)state;
    const int64_t full = (int64_t)EXACT_DEPOSITS * UINT32_MAX;
    for (int sign = -1; sign <= 1; sign += 2) {
        int64_t limb[EXACT_INTEGER_LIMBS] = {0};
        for (int i = 0; i < 4; i++)
            limb[i] = sign * full;
        exact_int128 low = (exact_int128)sign * full * (((exact_int128)1 << 32) + 1);
        uint64_t integer[3];
        exact_carry(limb, EXACT_INTEGER_LIMBS);
        exact_to_integer(limb, integer);
        /* low, and low again 64 bits higher */
        exact_int128 high = (low >> 64) + low;
        assert_int_equal(integer[0], (uint64_t)low);
        assert_int_equal(integer[1], (uint64_t)high);
        assert_int_equal(integer[2], (uint64_t)(high >> 64));
    }
}

static void the_top_limb_keeps_the_sign_and_what_is_above_it(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        int64_t limb[EXACT_FLOAT32_LIMBS] = {0};
        struct dot_value value;
        limb[EXACT_FLOAT32_LIMBS - 1] = sign * ((INT64_C(1) << 40) + 1);
        limb[EXACT_FLOAT32_LIMBS - 2] = -sign;
        exact_value(limb, EXACT_FLOAT32_LIMBS, EXACT_FLOAT32_BASE, 0, DTYPE_FLOAT32, DTYPE_FLOAT64,
                    &value);
        /* 2^258 (2^40 + 1) - 2^226 needs 73 bits: nearest is 2^258 (2^40 + 1) */
        check_value(&value, sign * ldexp(0x1p40 + 1, 258), 0x1p245, FLAG_INEXACT);
    }
}

/* Long enough that limbs carry many times: 2^22 products of the largest numbers, and as many that
 * take them away again but one. */
static void a_long_chain_carries_in_time(void **state)
{
    (void)state;
    enum { COUNT = 5000000 };
    struct exact_part part;
    struct dot_value value;
    exact_part_init(&part, DTYPE_FLOAT32);
    for (int i = 0; i < COUNT; i++) {
        exact_part_reserve(&part, 1);
        exact_part_add_product32(&part, FLT_MAX, -FLT_MAX);
        if (i % 1000 == 0)
            exact_part_carry(&part);
    }
    struct exact_part copy = part;
    exact_part_round(&copy, DTYPE_FLOAT32, DTYPE_FLOAT64, &value);
    assert_true(value.sum == -(double)COUNT * ((double)FLT_MAX * (double)FLT_MAX));
    for (int i = 0; i + 1 < COUNT; i++) {
        exact_part_reserve(&part, 1);
        exact_part_add_product32(&part, FLT_MAX, FLT_MAX);
    }
    exact_part_round(&part, DTYPE_FLOAT32, DTYPE_FLOAT64, &value);
    check_value(&value, -(double)FLT_MAX * (double)FLT_MAX, 0, 0);
}

static double random_double(void)
{
    for (;;) {
        uint64_t bits = random_bits(64);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            return value;
    }
}

/* Whether either side was carried before, and how many deposits are open, makes no difference. */
static void parts_merge_in_any_state(void **state)
{
    (void)state;
    enum { COUNT = 24 };
    for (int round = 0; round < 500; round++) {
        struct pair pair[COUNT];
        for (int i = 0; i < COUNT; i++)
            pair[i] = (struct pair){random_double(), random_double()};
        size_t cut = random_bits(8) % (COUNT + 1);
        struct exact_part whole = part_of(DTYPE_FLOAT64, pair, COUNT);
        struct exact_part left = part_of(DTYPE_FLOAT64, pair, cut);
        struct exact_part right = part_of(DTYPE_FLOAT64, pair + cut, COUNT - cut);
        if (round & 1)
            exact_part_carry(&left);
        if (round & 2)
            exact_part_carry(&right);
        if (round & 4)
            left.deposits = EXACT_PART_DEPOSITS;
        exact_part_merge(&left, &right);
        struct dot_value want, got;
        exact_part_round(&whole, DTYPE_FLOAT64, DTYPE_FLOAT64, &want);
        exact_part_round(&left, DTYPE_FLOAT64, DTYPE_FLOAT64, &got);
        check_value(&got, want.sum, want.error_bound, want.flags);
    }
}

/* Rounding a window of limbs, as a part does, and all of them, as a device may. */
static void a_window_rounds_like_the_whole(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct pair pair[3];
        int64_t limb[EXACT_FLOAT64_LIMBS] = {0};
        for (int i = 0; i < 3; i++) {
            pair[i] = (struct pair){random_double(), random_double()};
            exact_add_product64(limb, pair[i].x, pair[i].y);
        }
        struct exact_part part = part_of(DTYPE_FLOAT64, pair, 3);
        struct dot_value want, got;
        exact_part_round(&part, DTYPE_FLOAT64, DTYPE_FLOAT32, &got);
        exact_value(limb, EXACT_FLOAT64_LIMBS, EXACT_FLOAT64_BASE, 0, DTYPE_FLOAT64, DTYPE_FLOAT32,
                    &want);
        check_value(&got, want.sum, want.error_bound, want.flags);
    }
}

static void integers_are_exact_to_192_bits(void **state)
{
    (void)state;
    struct exact_part part;
    struct dot_value value;
    const exact_int128 square = (exact_int128)INT64_MIN * INT64_MIN; /* 2^126 */
    for (int sign = -1; sign <= 1; sign += 2) {
        exact_part_init(&part, DTYPE_INT64);
        for (int i = 0; i < 40; i++) { /* doubled, and one more */
            struct exact_part copy = part;
            exact_part_merge(&part, &copy);
            exact_part_reserve(&part, 2);
            exact_part_add_integer(&part, sign * square, 0);
        }
        /* 2^126 (2^40 - 1) */
        struct exact_part copy = part;
        exact_part_round(&part, DTYPE_INT64, DTYPE_INT64, &value);
        check_value(&value, sign * ldexp(0x1p40 - 1, 126), 0, 0);
        assert_int_equal(value.integer[0], 0);
        assert_int_equal(value.integer[1], sign > 0 ? UINT64_C(3) << 62 : UINT64_C(1) << 62);
        assert_int_equal(value.integer[2],
                         sign > 0 ? (UINT64_C(1) << 38) - 1 : 0 - (UINT64_C(1) << 38));
        exact_part_round(&copy, DTYPE_INT64, DTYPE_FLOAT32, &value);
        check_value(&value, sign * INFINITY, INFINITY, FLAG_INEXACT | FLAG_OVERFLOW);
    }
}

static void integers_round_once_to_a_float_type(void **state)
{
    (void)state;
    static const struct {
        int64_t sum;
        enum dtype result;
        double want, bound;
        unsigned flags;
    } cases[] = {
        {(INT64_C(1) << 53) + 1, DTYPE_INT64, 0x1p53, 0, 0},
        {(INT64_C(1) << 53) + 1, DTYPE_FLOAT64, 0x1p53, 1, FLAG_INEXACT},
        {-(INT64_C(1) << 53) - 3, DTYPE_FLOAT64, -0x1p53 - 4, 1, FLAG_INEXACT},
        {(INT64_C(1) << 24) + 1, DTYPE_FLOAT32, 0x1p24, 1, FLAG_INEXACT},
        {65519, DTYPE_FLOAT16, 65504, 16, FLAG_INEXACT},
        {65520, DTYPE_FLOAT16, INFINITY, INFINITY, FLAG_INEXACT | FLAG_OVERFLOW},
        {-257, DTYPE_BFLOAT16, -256, 1, FLAG_INEXACT},
        {0, DTYPE_FLOAT32, 0.0, 0, 0},
        {-1, DTYPE_FLOAT32, -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exact_part part;
        struct dot_value value;
        exact_part_init(&part, DTYPE_INT32);
        exact_part_reserve(&part, 2);
        exact_part_add_integer(&part, cases[i].sum, 0);
        exact_part_round(&part, DTYPE_INT32, cases[i].result, &value);
        check_value(&value, cases[i].want, cases[i].bound, cases[i].flags);
        assert_int_equal(value.integer[0], (uint64_t)cases[i].sum);
        assert_int_equal(value.integer[2], cases[i].sum < 0 ? UINT64_MAX : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tie_goes_to_the_even_number),
        cmocka_unit_test(dust_beside_a_tie_decides),
        cmocka_unit_test(a_result_is_rounded_once),
        cmocka_unit_test(overflow_begins_at_half_an_ulp_beyond_the_largest),
        cmocka_unit_test(subnormal_results_round_like_others),
        cmocka_unit_test(an_exact_zero_is_positive),
        cmocka_unit_test(products_that_are_not_finite_decide),
        cmocka_unit_test(limbs_bear_all_deposits_before_a_carry),
        cmocka_unit_test(the_top_limb_keeps_the_sign_and_what_is_above_it),
        cmocka_unit_test(a_long_chain_carries_in_time),
        cmocka_unit_test(parts_merge_in_any_state),
        cmocka_unit_test(a_window_rounds_like_the_whole),
        cmocka_unit_test(integers_are_exact_to_192_bits),
        cmocka_unit_test(integers_round_once_to_a_float_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
