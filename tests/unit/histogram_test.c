/* Durations in buckets: where each is counted, how tallies add up, and what quantiles they give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/histogram.h"

static struct histogram_tally tally_of(const struct histogram *histogram)
{
    struct histogram_tally tally = {.count = 0};
    histogram_collect(histogram, &tally);
    return tally;
}

static void bounds_grow_from_a_microsecond_to_a_minute(void **state)
{
    (void)state;
    assert_int_equal(histogram_bound_us(0), 1);
    assert_int_equal(histogram_bound_us(HISTOGRAM_BUCKETS - 1), 60000000);
    for (unsigned i = 1; i < HISTOGRAM_BUCKETS; i++)
        assert_true(histogram_bound_us(i) > histogram_bound_us(i - 1));
}

static void a_bound_belongs_to_its_own_bucket(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        struct histogram histogram = {.sum_ns = 0};
        int64_t bound_ns = (int64_t)histogram_bound_us(i) * 1000;
        histogram_add(&histogram, bound_ns);
        histogram_add(&histogram, bound_ns + 1);
        struct histogram_tally tally = tally_of(&histogram);
        assert_int_equal(tally.bucket[i], 1);
        assert_int_equal(tally.bucket[i + 1], 1);
        assert_int_equal(tally.count, 2);
        assert_int_equal(tally.sum_ns, 2 * bound_ns + 1);
    }
}

static void no_time_and_less_count_as_none(void **state)
{
    (void)state;
    struct histogram histogram = {.sum_ns = 0};
    histogram_add(&histogram, 0);
    histogram_add(&histogram, -5);
    struct histogram_tally tally = tally_of(&histogram);
    assert_int_equal(tally.bucket[0], 2);
    assert_int_equal(tally.sum_ns, 0);
}

static void tallies_add_histograms_up(void **state)
{
    (void)state;
    struct histogram one = {.sum_ns = 0}, other = {.sum_ns = 0};
    struct histogram_tally tally = {.count = 0};
    histogram_add(&one, 1500);
    histogram_add(&other, 1700);
    histogram_add(&other, INT64_C(3600) * 1000000000);
    histogram_collect(&one, &tally);
    histogram_collect(&other, &tally);
    assert_int_equal(tally.count, 3);
    assert_int_equal(tally.bucket[1], 2);
    assert_int_equal(tally.bucket[HISTOGRAM_BUCKETS], 1);
    assert_int_equal(tally.sum_ns, 3200 + INT64_C(3600) * 1000000000);
}

static void quantiles_lie_evenly_within_a_bucket(void **state)
{
    (void)state;
    struct histogram histogram = {.sum_ns = 0};
    for (int i = 0; i < 80; i++)
        histogram_add(&histogram, 150000); /* between 100 and 200 us */
    for (int i = 0; i < 20; i++)
        histogram_add(&histogram, 3000000); /* between 2 and 5 ms */
    struct histogram_tally tally = tally_of(&histogram);
    assert_int_equal(histogram_quantile_ns(&tally, 0), 100000);
    assert_int_equal(histogram_quantile_ns(&tally, 40), 150000);
    assert_int_equal(histogram_quantile_ns(&tally, 80), 200000);
    assert_int_equal(histogram_quantile_ns(&tally, 90), 3500000);
    assert_int_equal(histogram_quantile_ns(&tally, 100), 5000000);
}

static void quantiles_of_nothing_and_of_no_end_have_values(void **state)
{
    (void)state;
    struct histogram histogram = {.sum_ns = 0};
    struct histogram_tally none = tally_of(&histogram);
    assert_int_equal(histogram_quantile_ns(&none, 99), 0);
    histogram_add(&histogram, INT64_MAX);
    struct histogram_tally endless = tally_of(&histogram);
    assert_int_equal(histogram_quantile_ns(&endless, 99), INT64_C(60) * 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_grow_from_a_microsecond_to_a_minute),
        cmocka_unit_test(a_bound_belongs_to_its_own_bucket),
        cmocka_unit_test(no_time_and_less_count_as_none),
        cmocka_unit_test(tallies_add_histograms_up),
        cmocka_unit_test(quantiles_lie_evenly_within_a_bucket),
        cmocka_unit_test(quantiles_of_nothing_and_of_no_end_have_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
