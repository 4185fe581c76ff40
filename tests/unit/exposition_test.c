/* Prometheus' text: families, labels that hold anything, plain decimals, histograms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "server/exposition.h"

static void assert_text(struct text *text, const char *expected)
{
    assert_false(text->failed);
    assert_string_equal(text->data, expected);
    text_fini(text);
}

static struct exposition family_of(struct text *text, const char *name)
{
    text_init(text);
    return (struct exposition){.text = text, .name = name};
}

static void families_are_helped_and_typed(void **state)
{
    (void)state;
    struct text text;
    struct exposition out = family_of(&text, NULL);
    expose_family(&out, "jobs_total", FAMILY_COUNTER, "Jobs.");
    expose_count(&out, LABELS(), UINT64_MAX);
    assert_text(&text, "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\n"
                       "jobs_total 18446744073709551615\n");
}

static void labels_escape_what_would_end_them(void **state)
{
    (void)state;
    struct text text;
    struct exposition out = family_of(&text, "x");
    expose_count(&out, LABELS({"a", "one"}, {"b", "\"quoted\" back\\slash\nline"}), 1);
    expose_count(&out, LABELS({"a", ""}, {"b", "\\\\"}), 2);
    expose_count(&out, LABELS({"a", "\xc3\xa4"}), 3);
    assert_text(&text, "x{a=\"one\",b=\"\\\"quoted\\\" back\\\\slash\\nline\"} 1\n"
                       "x{a=\"\",b=\"\\\\\\\\\"} 2\n"
                       "x{a=\"\xc3\xa4\"} 3\n");
}

static void fractions_are_plain_decimals(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        int decimals;
        const char *expected;
    } cases[] = {
        {0, 9, "x 0\n"},
        {1, 9, "x 0.000000001\n"},
        {500000000, 9, "x 0.5\n"},
        {1000000000, 9, "x 1\n"},
        {1000000001, 9, "x 1.000000001\n"},
        {37, 2, "x 0.37\n"},
        {100, 2, "x 1\n"},
        {700, 0, "x 700\n"},
        {UINT64_MAX, 9, "x 18446744073.709551615\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text;
        struct exposition out = family_of(&text, "x");
        expose_fixed(&out, LABELS(), cases[i].value, cases[i].decimals);
        assert_text(&text, cases[i].expected);
    }
}

static void durations_are_cumulative_seconds(void **state)
{
    (void)state;
    struct histogram histogram = {.sum_ns = 0};
    struct histogram_tally tally = {.count = 0};
    histogram_add(&histogram, 1000);
    histogram_add(&histogram, 1001);
    histogram_add(&histogram, INT64_C(61) * 1000000000);
    histogram_collect(&histogram, &tally);
    struct text text;
    struct exposition out = family_of(&text, "t");
    expose_durations(&out, &tally);
    assert_non_null(strstr(text.data, "t_bucket{le=\"0.000001\"} 1\n"
                                      "t_bucket{le=\"0.000002\"} 2\n"));
    assert_non_null(strstr(text.data, "t_bucket{le=\"50\"} 2\n"
                                      "t_bucket{le=\"60\"} 2\n"
                                      "t_bucket{le=\"+Inf\"} 3\n"
                                      "t_sum 61.000002001\n"
                                      "t_count 3\n"));
    text_fini(&text);
}

static void sizes_are_cumulative_powers_of_two(void **state)
{
    (void)state;
    const uint64_t bucket[] = {5, 0, 2, 1};
    struct text text;
    struct exposition out = family_of(&text, "n");
    expose_sizes(&out, (struct label){"device", "cpu"}, bucket, 3, 29);
    assert_text(&text, "n_bucket{device=\"cpu\",le=\"1\"} 5\n"
                       "n_bucket{device=\"cpu\",le=\"2\"} 5\n"
                       "n_bucket{device=\"cpu\",le=\"4\"} 7\n"
                       "n_bucket{device=\"cpu\",le=\"+Inf\"} 8\n"
                       "n_sum{device=\"cpu\"} 29\n"
                       "n_count{device=\"cpu\"} 8\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_are_helped_and_typed),
        cmocka_unit_test(labels_escape_what_would_end_them),
        cmocka_unit_test(fractions_are_plain_decimals),
        cmocka_unit_test(durations_are_cumulative_seconds),
        cmocka_unit_test(sizes_are_cumulative_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
