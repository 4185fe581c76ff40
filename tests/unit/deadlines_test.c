/* deadlines_test.c - deadlines in any order, beside a plain list of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/deadlines.h"
#include "tests/random.h"

static void earliest_comes_first_whatever_is_set_moved_and_cleared(void **state)
{
    (void)state;
    enum { COUNT = 200, STEPS = 20000 };
    static struct deadline deadline[COUNT];
    static int64_t at_ns[COUNT]; /* 0: not set */
    struct deadlines all = {0};
    for (int step = 0; step < STEPS; step++) {
        size_t i = random_next() % COUNT;
        int64_t least = INT64_MAX;
        if (random_next() % 3 == 0) {
            deadlines_clear(&all, &deadline[i]);
            at_ns[i] = 0;
        } else {
            at_ns[i] = 1 + (int64_t)(random_next() % 1000); /* many are equal */
            deadlines_set(&all, &deadline[i], at_ns[i]);
        }
        for (size_t k = 0; k < COUNT; k++)
            if (at_ns[k] > 0 && at_ns[k] < least)
                least = at_ns[k];
        assert_int_equal(deadlines_next_ns(&all), least);
        if (least == INT64_MAX || random_next() % 4 != 0)
            continue;
        assert_null(deadlines_take(&all, least - 1));
        struct deadline *taken = deadlines_take(&all, least);
        assert_non_null(taken);
        assert_int_equal(at_ns[taken - deadline], least);
        assert_int_equal(taken->at_ns, 0);
        at_ns[taken - deadline] = 0;
    }
}

static void an_empty_heap_has_no_next(void **state)
{
    (void)state;
    struct deadlines all = {0};
    struct deadline one = {0};
    assert_null(deadlines_take(&all, INT64_MAX));
    assert_true(deadlines_next_ns(&all) == INT64_MAX);
    deadlines_clear(&all, &one);
    deadlines_set(&all, &one, 5);
    assert_ptr_equal(deadlines_take(&all, 5), &one);
    assert_null(deadlines_take(&all, INT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earliest_comes_first_whatever_is_set_moved_and_cleared),
        cmocka_unit_test(an_empty_heap_has_no_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
