/* Settings read again while dotd runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/reload.h"
#include "server/setting.h"

static struct config defaults(void)
{
    struct config config;
    setting_set_defaults(&config);
    return config;
}

static void live_settings_are_applied(void **state)
{
    (void)state;
    struct config read = defaults(), in_force = defaults(), again = defaults();
    struct reload what;
    again.access_log = 1;
    again.max_body_bytes = 5;
    reload_apply(&read, &in_force, &again, &what);
    assert_string_equal(what.applied, "max_body_bytes, access_log");
    assert_string_equal(what.waiting, "");
    assert_int_equal(in_force.max_body_bytes, 5);
    assert_int_equal(read.max_body_bytes, 5);
    reload_apply(&read, &in_force, &again, &what);
    assert_string_equal(what.applied, "");
}

static void other_settings_are_named_as_long_as_they_wait(void **state)
{
    (void)state;
    struct config read = defaults(), in_force = defaults(), again = defaults();
    struct reload what;
    in_force.http_threads = 16; /* settled from 0 */
    again.queue_jobs = 5;
    (void)snprintf(again.listen, sizeof again.listen, "127.0.0.1:1");
    for (int i = 0; i < 2; i++) {
        reload_apply(&read, &in_force, &again, &what);
        assert_string_equal(what.applied, "");
        assert_string_equal(what.waiting, "listen, queue_jobs");
    }
    assert_int_equal(in_force.http_threads, 16);
    assert_int_equal(in_force.queue_jobs, defaults().queue_jobs);
}

static void all_names_fit(void **state)
{
    (void)state;
    struct config read = defaults(), in_force = defaults(), again;
    struct reload what;
    memset(&again, 0x11, sizeof again); /* differs from every default */
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++)
        if (s->kind == SETTING_TEXT)
            ((char *)&again)[s->offset + CONFIG_STRING_BYTES - 1] = '\0';
    reload_apply(&read, &in_force, &again, &what);
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++)
        if (s->kind != SETTING_SECTION)
            assert_non_null(strstr(setting_is_live(s) ? what.applied : what.waiting, s->name));
}

static void live_settings_say_so(void **state)
{
    (void)state;
    char text[640];
    setting_describe(setting_find("log_level"), text, sizeof text);
    assert_non_null(strstr(text, "; live)"));
    setting_describe(setting_find("queue_jobs"), text, sizeof text);
    assert_null(strstr(text, "live"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_settings_are_applied),
        cmocka_unit_test(other_settings_are_named_as_long_as_they_wait),
        cmocka_unit_test(all_names_fit),
        cmocka_unit_test(live_settings_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
