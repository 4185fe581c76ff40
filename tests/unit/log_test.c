/* The log: both formats read back, no value can forge a line, and threads do not mix theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "server/log.h"

enum { CAPTURE_BYTES = 1 << 20 };

/* stderr, led to a file in memory; asserts speak again after capture_end(). */
struct capture {
    int fd, saved;
    char text[CAPTURE_BYTES];
};

static struct capture capture;

static void capture_begin(int fd)
{
    capture.fd = fd;
    capture.saved = dup(STDERR_FILENO);
    assert_true(capture.saved >= 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
}

static void capture_stop(void)
{
    (void)dup2(capture.saved, STDERR_FILENO);
    (void)close(capture.saved);
}

static const char *capture_end(void)
{
    capture_stop();
    ssize_t size = pread(capture.fd, capture.text, sizeof capture.text - 1, 0);
    (void)close(capture.fd);
    assert_in_range(size, 0, sizeof capture.text - 1);
    capture.text[size] = '\0';
    return capture.text;
}

static void capture_file(void)
{
    int fd = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(fd >= 0);
    capture_begin(fd);
}

/* What follows "2026-11-29T20:15:34.123Z " in the one line of the text. */
static const char *after_time(const char *text)
{
    regex_t pattern;
    const char *expected = "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
                           "\\.[0-9]{3}Z [^\n]*\n$";
    assert_int_equal(regcomp(&pattern, expected, REG_EXTENDED | REG_NOSUB), 0);
    int mismatch = regexec(&pattern, text, 0, NULL, 0);
    regfree(&pattern);
    if (mismatch != 0)
        fail_msg("not one line behind a time: %s", text);
    return text + strlen("2026-11-29T20:15:34.123Z ");
}

static const char *text_of(const char *value)
{
    capture_file();
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, NULL);
    log_event(LOG_LEVEL_INFO, "event", LOG_S("key", value));
    return after_time(capture_end());
}

/* The one JSON line of a value; the caller releases it. */
static json_t *json_of(const char *value)
{
    capture_file();
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_JSON, NULL);
    log_event(LOG_LEVEL_WARNING, "event", LOG_S("key", value), LOG_N("number", -5));
    const char *text = capture_end();
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    json_error_t error;
    json_t *line = json_loads(text, 0, &error);
    if (line == NULL)
        fail_msg("%s: %s", error.text, text);
    return line;
}

static void text_line_reads_as_documented(void **state)
{
    (void)state;
    capture_file();
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, NULL);
    log_event(LOG_LEVEL_INFO, "listening", LOG_S("address", "127.0.0.1"), LOG_N("port", 8080));
    assert_string_equal(after_time(capture_end()), "info listening address=127.0.0.1 port=8080\n");
}

static void event_without_fields_is_a_line(void **state)
{
    (void)state;
    capture_file();
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_TEXT, NULL);
    log_event(LOG_LEVEL_ERROR, "stalled");
    assert_string_equal(after_time(capture_end()), "error stalled\n");
}

static void json_line_holds_the_same(void **state)
{
    (void)state;
    json_t *line = json_of("127.0.0.1");
    assert_int_equal(json_object_size(line), 5);
    assert_string_equal(json_string_value(json_object_get(line, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(line, "event")), "event");
    assert_string_equal(json_string_value(json_object_get(line, "key")), "127.0.0.1");
    assert_int_equal(json_integer_value(json_object_get(line, "number")), -5);
    assert_int_equal(json_string_length(json_object_get(line, "time")), 24);
    json_decref(line);
}

static void text_values_are_quoted_where_they_could_mislead(void **state)
{
    (void)state;
    static const struct {
        const char *value, *line;
    } cases[] = {
        {"plain/value:1", "info event key=plain/value:1\n"},
        {"", "info event key=\"\"\n"},
        {"two words", "info event key=\"two words\"\n"},
        {"a=b", "info event key=\"a=b\"\n"},
        {"say \"x\"", "info event key=\"say \\\"x\\\"\"\n"},
        {"back\\slash", "info event key=\"back\\\\slash\"\n"},
        {"x\n2026-11-29T20:15:34.123Z info forged",
         "info event key=\"x\\n2026-11-29T20:15:34.123Z info forged\"\n"},
        {"\033[2J", "info event key=\"\\u001b[2J\"\n"},
        {"\r\t\x7f", "info event key=\"\\u000d\\u0009\\u007f\"\n"},
        {"\xe2\x80\xae", "info event key=\"\\u202e\"\n"}, /* right-to-left override */
        {"\xff", "info event key=\"\\ufffd\"\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(text_of(cases[i].value), cases[i].line);
}

static void json_values_read_back(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",
        "plain",
        "\"\\/\b\f\n\r\t",
        "\x01\x1f\x7f",
        "gr\xc3\xbc\xc3\x9f",
        "\xe2\x82\xac\xef\xbf\xbf",
        "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", /* beyond 16 bits, up to U+10FFFF */
        "\"} \n{\"level\":\"error\"}",
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        json_t *line = json_of(values[i]);
        assert_string_equal(json_string_value(json_object_get(line, "key")), values[i]);
        json_decref(line);
    }
}

static void json_replaces_what_is_not_utf_8(void **state)
{
    (void)state;
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *value, *read;
    } cases[] = {
        {"\x80", BAD},                         /* stray */
        {"a\xc3", "a" BAD},                    /* cut short */
        {"\xc3(", BAD "("},                    /* not continued */
        {"\xc0\xaf", BAD BAD},                 /* overlong */
        {"\xe0\x80\xaf", BAD BAD BAD},         /* overlong */
        {"\xed\xa0\x80", BAD BAD BAD},         /* surrogate */
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* beyond U+10FFFF */
        {"\xff\xfe", BAD BAD},
    };
#undef BAD
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *line = json_of(cases[i].value);
        assert_string_equal(json_string_value(json_object_get(line, "key")), cases[i].read);
        json_decref(line);
    }
}

static void overlong_values_are_shortened(void **state)
{
    (void)state;
    char value[3000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    json_t *line = json_of(value);
    assert_int_equal(json_string_length(json_object_get(line, "key")), 1024);
    assert_int_equal(json_integer_value(json_object_get(line, "number")), -5);
    json_decref(line);
}

static void fields_that_do_not_fit_are_left_out_and_said(void **state)
{
    (void)state;
    char value[1025]; /* each byte becomes 6 */
    memset(value, '\x01', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    json_t *line = json_of(value);
    assert_null(json_object_get(line, "key"));
    assert_true(json_is_true(json_object_get(line, "cut")));
    json_decref(line);
    assert_string_equal(text_of(value), "info event cut=true\n");
    assert_in_range(strlen(capture.text), 1, PIPE_BUF);
}

static void levels_below_the_least_are_silent(void **state)
{
    (void)state;
    capture_file();
    log_open(LOG_LEVEL_WARNING, LOG_FORMAT_TEXT, NULL);
    log_event(LOG_LEVEL_INFO, "quiet");
    log_event(LOG_LEVEL_WARNING, "loud");
    assert_string_equal(after_time(capture_end()), "warning loud\n");
}

static void automatic_format_is_json_beside_a_terminal(void **state)
{
    (void)state;
    capture_file();
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_AUTO, NULL);
    log_event(LOG_LEVEL_INFO, "event");
    assert_int_equal(capture_end()[0], '{');
}

/* Both ends of a new pseudo-terminal; *ret_end is where programs write. -1: this system has none,
 * as some sandboxes do. */
static int terminal_open(int *ret_end)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return -1;
    bool is_unlocked = grantpt(terminal) == 0 && unlockpt(terminal) == 0;
    const char *name = is_unlocked ? ptsname(terminal) : NULL;
    int end = name != NULL ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (end < 0 || ttyname(end) == NULL) {
        if (end >= 0)
            (void)close(end);
        (void)close(terminal);
        return -1;
    }
    *ret_end = end;
    return terminal;
}

/* The line that a terminal shows, with the colour of its level; raw: line ends as they come.
 * Without a terminal the test is skipped. */
static const char *terminal_line(void)
{
    struct termios mode;
    int end = -1, terminal = terminal_open(&end);
    if (terminal < 0) {
        print_message("no pseudo-terminal\n");
        skip();
    }
    assert_int_equal(tcgetattr(end, &mode), 0);
    cfmakeraw(&mode);
    assert_int_equal(tcsetattr(end, TCSANOW, &mode), 0);
    capture_begin(end);
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_AUTO, NULL);
    log_event(LOG_LEVEL_ERROR, "event", LOG_N("key", 1));
    capture_stop();
    ssize_t size = read(terminal, capture.text, sizeof capture.text - 1);
    assert_true(size > 0);
    capture.text[size] = '\0';
    (void)close(end);
    (void)close(terminal);
    return after_time(capture.text);
}

static void terminal_gets_text_in_colour(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_string_equal(terminal_line(), "\033[31merror\033[0m event key=1\n");
}

static void no_color_is_respected(void **state)
{
    (void)state;
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    const char *line = terminal_line(); /* skipped or not, no later test looks at NO_COLOR */
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_string_equal(line, "error event key=1\n");
}

enum { THREADS = 4, LINES_A_THREAD = 200 };

static void *write_lines(void *unused)
{
    (void)unused;
    for (int i = 0; i < LINES_A_THREAD; i++)
        log_event(LOG_LEVEL_INFO, "event", LOG_S("key", "some value\nof two lines"));
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    int fd = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
    capture_begin(fd);
    log_open(LOG_LEVEL_INFO, LOG_FORMAT_JSON, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, write_lines, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    int lines = 0;
    char *rest = (char *)capture_end();
    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n"), lines++) {
        json_t *value = json_loads(line, 0, NULL);
        assert_non_null(value);
        json_decref(value);
    }
    assert_int_equal(lines, THREADS * LINES_A_THREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_line_reads_as_documented),
        cmocka_unit_test(event_without_fields_is_a_line),
        cmocka_unit_test(json_line_holds_the_same),
        cmocka_unit_test(text_values_are_quoted_where_they_could_mislead),
        cmocka_unit_test(json_values_read_back),
        cmocka_unit_test(json_replaces_what_is_not_utf_8),
        cmocka_unit_test(overlong_values_are_shortened),
        cmocka_unit_test(fields_that_do_not_fit_are_left_out_and_said),
        cmocka_unit_test(levels_below_the_least_are_silent),
        cmocka_unit_test(automatic_format_is_json_beside_a_terminal),
        cmocka_unit_test(terminal_gets_text_in_colour),
        cmocka_unit_test(no_color_is_respected),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
