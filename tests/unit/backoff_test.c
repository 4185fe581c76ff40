/* The pauses between processes that keep failing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/backoff.h"

static void pauses_double_up_to_the_limit(void **state)
{
    (void)state;
    static const uint64_t expected[] = {0, 100, 200, 400, 800, 1000, 1000};
    struct backoff backoff = {0};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(backoff_fail_ms(&backoff, BACKOFF_HEALTHY_MS - 1, 1000), expected[i]);
    for (int i = 0; i < 1000; i++)
        (void)backoff_fail_ms(&backoff, 0, 1000);
    assert_int_equal(backoff_fail_ms(&backoff, 0, 1000), 1000); /* the doubling has no overflow */
}

static void good_while_is_a_new_beginning(void **state)
{
    (void)state;
    struct backoff backoff = {0};
    for (int i = 0; i < 5; i++)
        (void)backoff_fail_ms(&backoff, 0, 5000);
    assert_int_equal(backoff_fail_ms(&backoff, BACKOFF_HEALTHY_MS, 5000), 0);
    assert_int_equal(backoff_fail_ms(&backoff, 0, 5000), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_up_to_the_limit),
        cmocka_unit_test(good_while_is_a_new_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
