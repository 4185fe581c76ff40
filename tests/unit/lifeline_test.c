/* What ties a worker to its supervisor: found by the right process only, and heard word by word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/lifeline.h"

static const struct lineage lineage = {
    .generation = 7, .restarts_total = 3, .last_reason = "died of SIGKILL"};

static struct lifeline create(void)
{
    struct lifeline lifeline;
    const struct listen_set sockets = {.count = 0};
    assert_true(lifeline_create(&lifeline, &sockets, -1, &lineage));
    return lifeline;
}

/* Runs the worker's side in a child, as after an exec, and returns its exit status. */
static int in_child(const struct lifeline *lifeline, int (*run)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(lifeline_pass(lifeline) ? run() : 99);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int say_and_beat(void)
{
    struct lifeline mine;
    if (lifeline_adopt(&mine) != LIFELINE_ADOPTED || getenv("_DOTD_LIFELINE") != NULL)
        return 1;
    struct lineage got = lifeline_lineage(&mine);
    if (got.generation != 7 || got.restarts_total != 3 ||
        strcmp(got.last_reason, "died of SIGKILL"))
        return 2;
    if (lifeline_copy(&mine) != -1 || lifeline_is_orphan(&mine) || lifeline_is_last(&mine))
        return 3;
    lifeline_beat(&mine, 1234567890123, "a device");
    lifeline_say(&mine, LIFELINE_READY, "");
    lifeline_say(&mine, LIFELINE_REPLACE, "a device was lost");
    return 0;
}

static void worker_is_heard_and_seen(void **state)
{
    (void)state;
    struct lifeline lifeline = create();
    char text[LIFELINE_TEXT_BYTES];
    assert_int_equal(in_child(&lifeline, say_and_beat), 0);
    lifeline_passed(&lifeline);
    assert_int_equal(lifeline_well_ns(&lifeline, text), 1234567890123);
    assert_string_equal(text, "a device");
    assert_int_equal(lifeline_hear(&lifeline, text), LIFELINE_READY);
    assert_string_equal(text, "");
    assert_int_equal(lifeline_hear(&lifeline, text), LIFELINE_REPLACE);
    assert_string_equal(text, "a device was lost");
    assert_int_equal(lifeline_hear(&lifeline, text), 0);
    lifeline_close(&lifeline);
    lifeline_close(&lifeline);
}

static int say_too_much(void)
{
    struct lifeline mine;
    char text[2 * LIFELINE_TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    if (lifeline_adopt(&mine) != LIFELINE_ADOPTED)
        return 1;
    lifeline_say(&mine, LIFELINE_FAILED, text);
    return 0;
}

static void long_words_are_cut(void **state)
{
    (void)state;
    struct lifeline lifeline = create();
    char text[LIFELINE_TEXT_BYTES];
    assert_int_equal(in_child(&lifeline, say_too_much), 0);
    assert_int_equal(lifeline_hear(&lifeline, text), LIFELINE_FAILED);
    assert_int_equal(strlen(text), LIFELINE_TEXT_BYTES - 2);
    lifeline_close(&lifeline);
}

static int is_last(void)
{
    struct lifeline mine;
    return lifeline_adopt(&mine) == LIFELINE_ADOPTED && lifeline_is_last(&mine) ? 0 : 1;
}

static void last_worker_knows_it(void **state)
{
    (void)state;
    struct lifeline lifeline = create();
    lifeline_set_last(&lifeline);
    assert_int_equal(in_child(&lifeline, is_last), 0);
    lifeline_close(&lifeline);
}

static int grandchild_adopts(void)
{
    struct lifeline mine;
    pid_t pid = fork();
    if (pid == 0)
        _exit((int)lifeline_adopt(&mine));
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 98;
}

static void worker_without_its_supervisor_does_not_start(void **state)
{
    (void)state;
    struct lifeline lifeline = create();
    assert_int_equal(in_child(&lifeline, grandchild_adopts), LIFELINE_BROKEN);
    lifeline_close(&lifeline);
}

static enum lifeline_adoption adopt_from(const char *value)
{
    struct lifeline mine;
    assert_int_equal(setenv("_DOTD_LIFELINE", value, 1), 0);
    enum lifeline_adoption adoption = lifeline_adopt(&mine);
    assert_null(getenv("_DOTD_LIFELINE"));
    return adoption;
}

static enum lifeline_adoption adopt_memory_file(const char *data, size_t size, unsigned seals)
{
    char number[16];
    int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    (void)snprintf(number, sizeof number, "%d", fd);
    enum lifeline_adoption adoption = adopt_from(number);
    (void)close(fd);
    return adoption;
}

static void stray_variable_is_none(void **state)
{
    (void)state;
    static const char *const values[] = {"", "x", "0", "2", "-1", "999", "4294967299", "3x"};
    struct lifeline mine;
    assert_int_equal(lifeline_adopt(&mine), LIFELINE_NONE);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_int_equal(adopt_from(values[i]), LIFELINE_NONE);
    const unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    assert_int_equal(adopt_memory_file("dotd\0\r\n\1", 8, 0), LIFELINE_NONE);
    assert_int_equal(adopt_memory_file("", 0, seals), LIFELINE_NONE);
    assert_int_equal(adopt_memory_file("something", 9, seals), LIFELINE_NONE);
}

static void page_of_another_version_is_refused(void **state)
{
    (void)state;
    const unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    assert_int_equal(adopt_memory_file("dotd\0\r\n\1", 8, seals), LIFELINE_BROKEN);
    assert_int_equal(adopt_memory_file("dotd\0\r\n\2", 8, seals), LIFELINE_BROKEN);
}

static void beats_follow_the_timeout_within_bounds(void **state)
{
    (void)state;
    static const uint64_t ms[][2] = {{0, 500}, {8, 10}, {160, 20}, {4000, 500}, {3600000, 500}};
    for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
        assert_int_equal(lifeline_period_ms(ms[i][0]), ms[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_is_heard_and_seen),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(last_worker_knows_it),
        cmocka_unit_test(worker_without_its_supervisor_does_not_start),
        cmocka_unit_test(stray_variable_is_none),
        cmocka_unit_test(page_of_another_version_is_refused),
        cmocka_unit_test(beats_follow_the_timeout_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
