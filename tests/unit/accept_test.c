/* accept_test.c - an Accept header's most specific range decides, by its weight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/accept.h"

static const char json[] = "application/json", raw[] = "application/octet-stream";

static void no_header_accepts_everything(void **state)
{
    (void)state;
    assert_int_equal(accept_quality(NULL, json), 1000);
    assert_int_equal(accept_quality("", raw), 1000);
    assert_int_equal(accept_quality(" , ", raw), 1000);
}

static void ranges_match_by_type_family_and_all(void **state)
{
    (void)state;
    assert_int_equal(accept_quality("*/*", json), 1000);
    assert_int_equal(accept_quality("application/*", raw), 1000);
    assert_int_equal(accept_quality("Application/JSON", json), 1000);
    assert_int_equal(accept_quality("text/*, text/html", json), 0);
    assert_int_equal(accept_quality("application/jsonx", json), 0);
    assert_int_equal(accept_quality("application", json), 0);
}

static void weights_are_read_in_thousandths(void **state)
{
    (void)state;
    assert_int_equal(accept_quality("application/json;q=0.125", json), 125);
    assert_int_equal(accept_quality("application/json ; Q=0.5", json), 500);
    assert_int_equal(accept_quality("application/json;charset=utf-8;q=0.2", json), 200);
    assert_int_equal(accept_quality("application/json;q=1.000", json), 1000);
    assert_int_equal(accept_quality("application/json;q=0", json), 0);
    assert_int_equal(accept_quality("text/html;q=0.1, application/json", json), 1000);
}

static void the_most_specific_range_decides(void **state)
{
    (void)state;
    const char *accept = "*/*;q=0.1, application/*;q=0.5, application/json;q=0";
    assert_int_equal(accept_quality(accept, json), 0);
    assert_int_equal(accept_quality(accept, raw), 500);
    assert_int_equal(accept_quality(accept, "text/plain"), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_header_accepts_everything),
        cmocka_unit_test(ranges_match_by_type_family_and_all),
        cmocka_unit_test(weights_are_read_in_thousandths),
        cmocka_unit_test(the_most_specific_range_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
