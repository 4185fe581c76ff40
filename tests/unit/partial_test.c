/* Sums in the making: however a row is cut, ordered, merged and shared out, an exact result has the
 * same bits, and a fast one stays within its bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/partial.h"
#include "tests/gpu/operands.h"

enum { N = 30011, CUTS = 12, TRIALS = 6 };

static struct {
    void *a, *b; /* N of the widest elements */
} room;

static int room_open(void **state)
{
    (void)state;
    room.a = aligned_alloc(64, N * 16 + 64 - N * 16 % 64);
    room.b = aligned_alloc(64, N * 16 + 64 - N * 16 % 64);
    return room.a == NULL || room.b == NULL;
}

static int room_close(void **state)
{
    (void)state;
    free(room.a);
    free(room.b);
    return 0;
}

static const void *at(const void *data, enum dtype dtype, uint64_t index)
{
    return (const char *)data + index * dtype_size(dtype);
}

static enum dtype result_of(enum dtype dtype)
{
    return dtype_is_integer(dtype) ? DTYPE_INT64 : dtype;
}

static int values_of(enum dtype dtype)
{
    return dtype_is_complex(dtype) ? 2 : 1;
}

/* The oracle: one exact sum over the whole row. */
static void sum_whole(enum dtype dtype, bool conjugate, enum dtype result_dtype,
                      struct dot_value value[2])
{
    struct exact_sum sum;
    exact_sum_init(&sum, NULL, dtype, conjugate, true);
    exact_sum_add(&sum, room.a, room.b, N);
    exact_sum_round(&sum, result_dtype, value);
}

static uint64_t random_below(uint64_t bound)
{
    return random_bits(40) % bound;
}

/* Ascending places to cut at, 0 and N among them; some pieces are empty, some of one element. */
static void random_cuts(uint64_t cut[CUTS + 1])
{
    cut[0] = 0;
    for (int i = 1; i < CUTS; i++) {
        uint64_t left = N - cut[i - 1];
        uint64_t step = random_bits(1) ? random_below(4) : random_below(left + 1);
        cut[i] = cut[i - 1] + (step < left ? step : left);
    }
    cut[CUTS] = N;
}

/* Adds the pieces in a random order to two partials, which are merged; either may stay empty. */
static void sum_pieces(struct partial *ret, enum dtype dtype, enum accuracy accuracy,
                       bool conjugate)
{
    uint64_t cut[CUTS + 1];
    struct partial half[2];
    random_cuts(cut);
    for (int i = 0; i < 2; i++)
        partial_init(&half[i], dtype, accuracy, conjugate, true);
    uint64_t first = random_below(CUTS), sharing = random_bits(2);
    for (uint64_t i = 0; i < CUTS; i++) {
        uint64_t piece = (first + 5 * i) % CUTS; /* 5 and CUTS have no common divisor */
        partial_add(&half[sharing == 0 ? 0 : random_bits(1)], at(room.a, dtype, cut[piece]),
                    at(room.b, dtype, cut[piece]), cut[piece + 1] - cut[piece]);
    }
    partial_merge(&half[0], &half[1]);
    *ret = half[0];
}

static void check_same(const struct dot_value *want, const struct dot_value *got, enum dtype dtype,
                       int kind)
{
    if (memcmp(&want->sum, &got->sum, sizeof want->sum) != 0 ||
        memcmp(&want->error_bound, &got->error_bound, sizeof want->error_bound) != 0 ||
        want->flags != got->flags || memcmp(want->integer, got->integer, sizeof want->integer) != 0)
        fail_msg("%s, kind %d: %a, bound %a, flags %#x; the whole row has %a, %a, %#x",
                 dtype_name(dtype), kind, got->sum, got->error_bound, got->flags, want->sum,
                 want->error_bound, want->flags);
}

static void exact_bits_do_not_depend_on_how_a_row_is_cut(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPE_COUNT * KIND_COUNT * TRIALS; i++) {
        enum dtype dtype = (enum dtype)(i % DTYPE_COUNT);
        int kind = i / DTYPE_COUNT % KIND_COUNT;
        bool conjugate = random_bits(1) != 0;
        struct dot_value want[2] = {0}, got[2] = {0};
        struct partial partial;
        operands_fill(room.a, room.b, dtype, (enum kind)kind, N);
        sum_whole(dtype, conjugate, result_of(dtype), want);
        sum_pieces(&partial, dtype, ACCURACY_EXACT, conjugate);
        assert_int_equal(partial.n, N);
        partial_settle(&partial, result_of(dtype), got);
        for (int part = 0; part < values_of(dtype); part++)
            check_same(&want[part], &got[part], dtype, kind);
    }
}

/* The oracle's own rounding to float64 is in its bound. */
static void check_close(const struct dot_value *want, const struct dot_value *got, enum dtype dtype,
                        int kind)
{
    bool is_close = isfinite(want->sum) && isfinite(got->sum)
                        ? fabs(got->sum - want->sum) <= got->error_bound + want->error_bound
                        : got->sum == want->sum || (isnan(got->sum) && isnan(want->sum));
    if (!is_close)
        fail_msg("%s, kind %d: %.17g, bound %g, where the exact sum is %.17g", dtype_name(dtype),
                 kind, got->sum, got->error_bound, want->sum);
    if (isfinite(got->sum) && isfinite(got->sum_abs) &&
        got->error_bound > 1e-9 * got->sum_abs + 1e-300)
        fail_msg("%s, kind %d: a bound of %g is useless beside %g", dtype_name(dtype), kind,
                 got->error_bound, got->sum_abs);
    if (isfinite(got->sum))
        assert_int_equal((got->flags & FLAG_INEXACT) != 0, got->error_bound > 0);
    else
        assert_int_equal(got->flags, want->flags);
}

static void fast_sums_stay_within_their_bounds_however_cut(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPE_COUNT * KIND_COUNT * TRIALS; i++) {
        enum dtype dtype = (enum dtype)(i % DTYPE_COUNT);
        int kind = i / DTYPE_COUNT % KIND_COUNT;
        bool conjugate = random_bits(1) != 0;
        struct dot_value want[2] = {0}, got[2] = {0};
        struct partial partial;
        if (dtype_is_integer(dtype))
            continue;
        operands_fill(room.a, room.b, dtype, (enum kind)kind, N);
        sum_whole(dtype, conjugate, DTYPE_FLOAT64, want);
        sum_pieces(&partial, dtype, ACCURACY_FAST, conjugate);
        partial_settle(&partial, DTYPE_FLOAT64, got);
        for (int part = 0; part < values_of(dtype); part++)
            check_close(&want[part], &got[part], dtype, kind);
    }
}

static void fast_integers_are_exact(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        struct dot_value want[2] = {0}, got[2] = {0};
        struct partial partial;
        if (!dtype_is_integer((enum dtype)dtype))
            continue;
        operands_fill(room.a, room.b, (enum dtype)dtype, KIND_FULL, N);
        sum_whole((enum dtype)dtype, false, DTYPE_INT64, want);
        sum_pieces(&partial, (enum dtype)dtype, ACCURACY_FAST, false);
        partial_settle(&partial, DTYPE_INT64, got);
        check_same(&want[0], &got[0], (enum dtype)dtype, KIND_FULL);
    }
}

/* Each piece overflows float64, their sum does not. */
static void fast_pieces_beyond_the_range_are_added_exactly(void **state)
{
    (void)state;
    static const double a[] = {0x1p1000, 0x1p1000, -0x1p1000, -0x1p1000, 3},
                        b[] = {0x1p1000, 0x1p1000, 0x1p1000, 0x1p1000, 5};
    struct partial partial;
    struct dot_value value = {0};
    partial_init(&partial, DTYPE_FLOAT64, ACCURACY_FAST, false, false);
    partial_add(&partial, a, b, 2);
    partial_add(&partial, a + 2, b + 2, 3);
    partial_settle(&partial, DTYPE_FLOAT64, &value);
    if (value.sum != 15 || value.error_bound != 0 || value.flags != 0)
        fail_msg("%g, bound %g, flags %#x; expected 15", value.sum, value.error_bound, value.flags);
}

/* A device may hand over sums of more products than limbs of float32 can take at once. */
static void a_fast_sum_too_large_for_the_limbs_is_added_exactly(void **state)
{
    (void)state;
    static const float a[] = {2}, b[] = {3};
    const struct dot_value piece[2] = {{.sum = 0x1p278, .sum_abs = 0x1p278}};
    struct partial partial;
    struct dot_value value = {0};
    partial_init(&partial, DTYPE_FLOAT32, ACCURACY_FAST, false, false);
    partial_add_fast(&partial, piece, 0, a, b, 1);
    partial_settle(&partial, DTYPE_FLOAT64, &value);
    assert_true(value.sum == 6);
}

static void an_empty_sum_is_zero(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int fast = 0; fast < 2; fast++) {
            struct partial partial;
            struct dot_value value[2] = {{.sum = 1}, {.sum = 1}};
            partial_init(&partial, (enum dtype)dtype, fast ? ACCURACY_FAST : ACCURACY_EXACT, false,
                         false);
            partial_add(&partial, room.a, room.b, 0);
            partial_settle(&partial, result_of((enum dtype)dtype), value);
            for (int part = 0; part < values_of((enum dtype)dtype); part++)
                assert_true(value[part].sum == 0 && !signbit(value[part].sum) &&
                            value[part].error_bound == 0 && value[part].flags == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_bits_do_not_depend_on_how_a_row_is_cut),
        cmocka_unit_test(fast_sums_stay_within_their_bounds_however_cut),
        cmocka_unit_test(fast_integers_are_exact),
        cmocka_unit_test(fast_pieces_beyond_the_range_are_added_exactly),
        cmocka_unit_test(a_fast_sum_too_large_for_the_limbs_is_added_exactly),
        cmocka_unit_test(an_empty_sum_is_zero),
    };
    return cmocka_run_group_tests(tests, room_open, room_close);
}
