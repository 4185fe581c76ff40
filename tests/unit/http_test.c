/* http_test.c - which libmicrohttpd dotd starts with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <microhttpd.h>
#include <stdio.h>

#include "server/http_priv.h"

static void the_library_that_it_was_built_with_fits(void **state)
{
    (void)state;
    assert_true(http_library_fits(MHD_get_version()));
}

static void a_later_release_of_it_fits(void **state)
{
    char version[32];
    (void)state;
    (void)snprintf(version, sizeof version, "%u.99.12-rc1", MHD_VERSION >> 24);
    assert_true(http_library_fits(version));
}

/* Debian 12 has 0.9, Ubuntu 24.04 has 1.0, and the loader gives a program either. */
static void one_that_reads_heads_otherwise_does_not(void **state)
{
    (void)state;
    assert_int_equal(http_library_fits("0.9.75") + http_library_fits("1.0.1"), 1);
    assert_false(http_library_fits("2.0.0"));
    assert_false(http_library_fits("10.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_that_it_was_built_with_fits),
        cmocka_unit_test(a_later_release_of_it_fits),
        cmocka_unit_test(one_that_reads_heads_otherwise_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
