/* Settings: which place wins, what is refused and in which words, and what is printed reads
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/config.h"
#include "server/setting.h"

enum { MESSAGE_BYTES = 512, ARGUMENTS_MAX = 8 };

/* What config_load() made of a file, an environment and a command line. */
struct outcome {
    bool loaded;
    struct config config;
    enum config_action action;
    char message[MESSAGE_BYTES];
};

static char file_path[] = "/tmp/dotd-config-XXXXXX";

static int file_make(void **state)
{
    (void)state;
    int fd = mkstemp(file_path);
    return fd < 0 ? -1 : close(fd);
}

static int file_remove(void **state)
{
    (void)state;
    return unlink(file_path);
}

static void file_write(const char *text)
{
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define load(...) load_arguments((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static struct outcome load_arguments(const char *const *arguments)
{
    struct outcome o = {.message = ""};
    char *argv[ARGUMENTS_MAX + 1] = {(char *)"dotd"};
    int argc = 1;
    for (; *arguments != NULL; arguments++) {
        assert_in_range(argc, 1, ARGUMENTS_MAX);
        argv[argc++] = (char *)*arguments;
    }
    o.loaded = config_load(&o.config, &o.action, argc, argv, o.message, sizeof o.message);
    return o;
}

static struct outcome load_text(const char *text)
{
    file_write(text);
    return load("--config", file_path);
}

/* The message without the path of the temporary file: ":3: ..." */
static void assert_file_refused(const char *text, const char *message)
{
    struct outcome o = load_text(text);
    assert_false(o.loaded);
    assert_int_equal(o.action, CONFIG_RUN);
    assert_memory_equal(o.message, file_path, strlen(file_path));
    assert_string_equal(o.message + strlen(file_path), message);
}

static void assert_flag_refused(const char *flag, const char *message)
{
    struct outcome o = load(flag);
    assert_false(o.loaded);
    assert_int_equal(o.action, CONFIG_USAGE);
    assert_string_equal(o.message, message);
}

static void assert_variable_refused(const char *name, const char *value, const char *message)
{
    assert_int_equal(setenv(name, value, 1), 0);
    struct outcome o = load();
    assert_int_equal(unsetenv(name), 0);
    assert_false(o.loaded);
    assert_int_equal(o.action, CONFIG_RUN);
    assert_string_equal(o.message, message);
}

static void defaults_need_nothing(void **state)
{
    (void)state;
    struct outcome o = load();
    assert_true(o.loaded);
    assert_int_equal(o.action, CONFIG_RUN);
    assert_string_equal(o.config.listen, "127.0.0.1:8080");
    assert_int_equal(o.config.queue_jobs, 4096);
    assert_int_equal(o.config.max_body_bytes, 1 << 30);
    assert_int_equal(o.config.log_level, 1);
}

static void file_then_environment_then_flag_win(void **state)
{
    (void)state;
    file_write("[devices]\nqueue_jobs = 11\nbatch_jobs = 12\ncuda = off\n");
    assert_int_equal(setenv("DOTD_BATCH_JOBS", "22", 1), 0);
    assert_int_equal(setenv("DOTD_CUDA", "auto", 1), 0);
    struct outcome o = load("--batch-jobs=33", "--config", file_path);
    assert_int_equal(unsetenv("DOTD_BATCH_JOBS"), 0);
    assert_int_equal(unsetenv("DOTD_CUDA"), 0);
    assert_true(o.loaded);
    assert_int_equal(o.config.queue_jobs, 11);
    assert_int_equal(o.config.cuda, 1);
    assert_int_equal(o.config.batch_jobs, 33);
}

static void file_may_come_from_the_environment(void **state)
{
    (void)state;
    file_write("[devices]\nqueue_jobs = 77\n");
    assert_int_equal(setenv("DOTD_CONFIG", file_path, 1), 0);
    struct outcome o = load();
    assert_int_equal(unsetenv("DOTD_CONFIG"), 0);
    assert_true(o.loaded);
    assert_int_equal(o.config.queue_jobs, 77);
}

static void flags_take_either_sign_and_either_form(void **state)
{
    (void)state;
    struct outcome o = load("--queue-jobs=5", "--batch_jobs", "6", "--max-body_bytes", "7KiB");
    assert_true(o.loaded);
    assert_int_equal(o.config.queue_jobs, 5);
    assert_int_equal(o.config.batch_jobs, 6);
    assert_int_equal(o.config.max_body_bytes, 7 << 10);
}

static void last_of_a_repeated_flag_wins(void **state)
{
    (void)state;
    struct outcome o = load("--queue-jobs=5", "--queue-jobs=6");
    assert_true(o.loaded);
    assert_int_equal(o.config.queue_jobs, 6);
}

static void sizes_take_binary_suffixes(void **state)
{
    (void)state;
    static const struct {
        const char *flag;
        uint64_t bytes;
    } cases[] = {
        {"--max-body-bytes=4096", 4096},
        {"--max-body-bytes=3KiB", 3 << 10},
        {"--max-body-bytes=5MiB", 5 << 20},
        {"--max-body-bytes=1024GiB", UINT64_C(1) << 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome o = load(cases[i].flag);
        assert_true(o.loaded);
        assert_int_equal(o.config.max_body_bytes, cases[i].bytes);
    }
}

static void numbers_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",
        " 5",
        "5 ",
        "+5",
        "-1",
        "0x10",
        "5.0",
        "1e3",
        "5k",
        "5KB",
        "5KiBs",
        "1025GiB",
        "17179869184GiB" /* 2^64 bytes */,
        "18446744073709551616",
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char flag[64], message[MESSAGE_BYTES];
        (void)snprintf(flag, sizeof flag, "--max-body-bytes=%s", values[i]);
        (void)snprintf(message, sizeof message,
                       "command line: --max-body-bytes = %s: it must be a whole number or one with "
                       "KiB, MiB or GiB, 1 to 1024GiB",
                       values[i]);
        assert_flag_refused(flag, message);
    }
    assert_flag_refused("--queue-jobs=1KiB", "command line: --queue-jobs = 1KiB: it must be a "
                                             "whole number, 1 to 1048576");
}

static void bounds_belong_to_the_range(void **state)
{
    (void)state;
    assert_true(load("--batch-jobs=1").loaded);
    assert_true(load("--batch-jobs=65536").loaded);
    assert_flag_refused("--batch-jobs=0",
                        "command line: --batch-jobs = 0: it must be a whole number, 1 to 65536");
    assert_flag_refused("--batch-jobs=65537", "command line: --batch-jobs = 65537: it must be a "
                                              "whole number, 1 to 65536");
}

static void words_outside_the_list_are_refused(void **state)
{
    (void)state;
    struct outcome o = load("--log-level=error");
    assert_true(o.loaded);
    assert_int_equal(o.config.log_level, 3);
    assert_flag_refused("--log-level=err", "command line: --log-level = err: it must be one of "
                                           "debug|info|warning|error");
    assert_flag_refused("--cuda=off|auto",
                        "command line: --cuda = off|auto: it must be one of off|auto");
}

static void unknown_keys_are_refused_with_place_and_hint(void **state)
{
    (void)state;
    assert_file_refused("# first\n[limits]\n\nmax_body_byte = 1\n",
                        ":4: there is no setting max_body_byte; did you mean max_body_bytes?");
    assert_file_refused("[limits]\ntemperature = 1\n", ":2: there is no setting temperature");
    assert_flag_refused(
        "--queue-job=3",
        "command line: there is no setting --queue-job; did you mean --queue-jobs?");
    assert_flag_refused("--hepl", "command line: there is no setting --hepl; did you mean --help?");
    assert_variable_refused("DOTD_LOGLEVEL", "info",
                            "environment: there is no setting DOTD_LOGLEVEL; did you mean "
                            "DOTD_LOG_LEVEL?");
    assert_variable_refused("DOTD_log_level", "info",
                            "environment: there is no setting DOTD_log_level; did you mean "
                            "DOTD_LOG_LEVEL?");
}

static void overlong_unknown_names_are_refused(void **state)
{
    (void)state;
    char flag[1024] = "--";
    memset(flag + 2, 'q', sizeof flag - 3);
    struct outcome o = load(flag);
    assert_false(o.loaded);
    assert_non_null(strstr(o.message, "there is no setting --qqq"));
}

static void sections_must_fit(void **state)
{
    (void)state;
    assert_file_refused("[limits]\nqueue_jobs = 5\n",
                        ":2: queue_jobs belongs in [devices], not in [limits]");
    assert_file_refused("[device]\nqueue_jobs = 5\n",
                        ":2: there is no section [device]; did you mean [devices]?");
    assert_file_refused("queue_jobs = 5\n", ":1: queue_jobs stands before the first [section]");
}

static void lines_that_are_neither_are_refused(void **state)
{
    (void)state;
    assert_file_refused("[log]\nlog_level\n", ":2: neither [section] nor name = value");
    assert_file_refused("[log\n", ":1: neither [section] nor name = value");
}

static void key_given_twice_is_refused(void **state)
{
    (void)state;
    assert_file_refused("[devices]\nqueue_jobs = 5\nqueue_jobs = 6\n",
                        ":3: queue_jobs was given in line 2 already");
}

static void indentation_and_long_comments_mean_nothing(void **state)
{
    (void)state;
    char text[1024] = "[devices]\n  queue_jobs = 5 ; five\n\tbatch_jobs = 6\n# ";
    memset(text + strlen(text), 'x', 600);
    strcat(text, "\n[log]\nlog_level = debug\n");
    struct outcome o = load_text(text);
    assert_string_equal(o.message, "");
    assert_true(o.loaded);
    assert_int_equal(o.config.queue_jobs, 5);
    assert_int_equal(o.config.batch_jobs, 6);
    assert_int_equal(o.config.log_level, 0);
}

static void overlong_line_is_refused_by_its_number(void **state)
{
    (void)state;
    char text[1024] = "[devices]\nqueue_jobs = ";
    memset(text + strlen(text), '1', 600);
    assert_file_refused(text, ":2: the line is longer than 198 bytes");
}

static void texts_that_a_file_cannot_hold_are_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"", " a:1", "a:1 ", "a\nb:1", "a;b:1"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char flag[64];
        (void)snprintf(flag, sizeof flag, "--listen=%s", values[i]);
        assert_false(load(flag).loaded);
    }
}

static void message_is_one_line_whatever_the_value(void **state)
{
    (void)state;
    assert_variable_refused("DOTD_QUEUE_JOBS", "1\n2\033[31m",
                            "environment: DOTD_QUEUE_JOBS = 1?2?[31m: it must be a whole number, 1 "
                            "to 1048576");
}

static void listen_address_needs_a_port(void **state)
{
    (void)state;
    assert_true(load("--listen=[::1]:0").loaded);
    assert_flag_refused("--listen=localhost",
                        "listen = localhost: it must be host:port, [v6]:port or :port");
    assert_flag_refused("--listen=:99999", "listen = :99999: its port is out of range; it must be "
                                           "0 to 65535, or a service's name");
    assert_file_refused("[listen]\nlisten =\n", ":2: listen = : it must be 1 to 159 bytes without "
                                                "control characters or ;");
}

static void foreign_variables_are_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"DOTD_URL", "DOTD_PORT", "DOTD_PORT_8080_TCP",
                                        "DOTD_SERVICE_HOST", "DOTDX"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(setenv(names[i], "tcp://10.0.0.1:8080", 1), 0);
    struct outcome o = load();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(unsetenv(names[i]), 0);
    assert_string_equal(o.message, "");
    assert_true(o.loaded);
    assert_variable_refused("DOTD_PORTS", "1", "environment: there is no setting DOTD_PORTS");
}

static void actions_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(load("--help").action, CONFIG_HELP);
    assert_int_equal(load("-h").action, CONFIG_HELP);
    assert_int_equal(load("--version").action, CONFIG_VERSION);
    assert_int_equal(load("--print-config", "--queue-jobs=5").action, CONFIG_PRINT);
}

static void help_works_beside_anything_wrong(void **state)
{
    (void)state;
    struct outcome o = load("--config=/nonexistent", "--help", "--queue-jobs=0");
    assert_true(o.loaded);
    assert_int_equal(o.action, CONFIG_HELP);
}

static void check_reads_the_file_alone(void **state)
{
    (void)state;
    char expected[MESSAGE_BYTES];
    file_write("[devices]\nqueue_jobs = 5\n");
    assert_int_equal(setenv("DOTD_QUEUE_JOBS", "wrong", 1), 0);
    struct outcome o = load("--check-config", file_path);
    assert_int_equal(unsetenv("DOTD_QUEUE_JOBS"), 0);
    assert_true(o.loaded);
    assert_int_equal(o.action, CONFIG_CHECK);
    (void)snprintf(expected, sizeof expected, "%s: ok", file_path);
    assert_string_equal(o.message, expected);
}

static void missing_values_and_files_are_refused(void **state)
{
    (void)state;
    assert_flag_refused("--queue-jobs", "command line: --queue-jobs needs a value");
    assert_flag_refused("--check-config", "command line: --check-config needs a value");
    assert_flag_refused("--help=yes", "command line: --help takes no value");
    assert_flag_refused("queue_jobs",
                        "command line: queue_jobs is not a flag; dotd --help lists them");
    assert_flag_refused("--", "command line: -- is not a flag; dotd --help lists them");
    struct outcome o = load("--config=/nonexistent/dotd.ini");
    assert_false(o.loaded);
    assert_int_equal(o.action, CONFIG_RUN);
    assert_string_equal(o.message,
                        "/nonexistent/dotd.ini: cannot be opened: No such file or directory");
}

static void failure_leaves_the_config_untouched(void **state)
{
    (void)state;
    struct config config, before;
    enum config_action action;
    char message[MESSAGE_BYTES];
    char *argv[] = {(char *)"dotd", (char *)"--batch-jobs=7", (char *)"--queue-jobs=0"};
    memset(&config, 0x5a, sizeof config);
    memcpy(&before, &config, sizeof config);
    assert_false(config_load(&config, &action, 3, argv, message, sizeof message));
    assert_memory_equal(&config, &before, sizeof config);
}

/* Every setting at another value than its default, where it has one. */
static void config_move(struct config *config)
{
    setting_set_defaults(config);
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++) {
        char value[CONFIG_STRING_BYTES];
        if (s->kind == SETTING_SECTION)
            continue;
        if (s->kind == SETTING_NUMBER)
            (void)snprintf(value, sizeof value, "%llu",
                           (unsigned long long)(s->number == s->max ? s->min : s->max));
        else if (s->kind == SETTING_WORD)
            (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(s->words, "|"), s->words);
        else
            (void)snprintf(value, sizeof value, "%s", "[::1]:1");
        assert_true(setting_set(config, s, value));
    }
}

static void printed_config_reads_back(void **state)
{
    (void)state;
    struct config moved;
    config_move(&moved);
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    config_print(file, &moved);
    assert_int_equal(fclose(file), 0);
    struct outcome o = load("--config", file_path);
    assert_string_equal(o.message, "");
    assert_true(o.loaded);
    assert_memory_equal(&o.config, &moved, sizeof moved);
}

/* The text that a printer writes; overwritten by the next call. */
static char *printed(void (*print)(FILE *out))
{
    static char text[32768];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    print(out);
    assert_int_equal(fclose(out), 0);
    assert_in_range(strlen(text), 1, sizeof text - 2);
    return text;
}

static void print_defaults(FILE *out)
{
    struct config config;
    setting_set_defaults(&config);
    config_print(out, &config);
}

static void printed_lines_fit_80_columns(void **state)
{
    (void)state;
    void (*const printers[])(FILE *) = {config_help, print_defaults};
    for (size_t i = 0; i < 2; i++) {
        char *text = printed(printers[i]);
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            assert_in_range(strlen(line), 1, 80);
    }
}

static void help_names_every_setting_once(void **state)
{
    (void)state;
    char *text = printed(config_help);
    for (const struct setting *s = settings; s < settings + SETTING_COUNT; s++) {
        char flag[SETTING_NAME_BYTES + 8];
        if (s->kind == SETTING_SECTION)
            continue;
        (void)snprintf(flag, sizeof flag, "\n  --%s=", s->name);
        for (char *c = flag + 5; *c != '\0'; c++)
            *c = *c == '_' ? '-' : *c;
        char *first = strstr(text, flag);
        assert_non_null(first);
        assert_null(strstr(first + 1, flag));
    }
}

struct tally {
    size_t count;
    uint64_t queue_jobs;
};

static void tally_add(void *context, const char *name, uint64_t value)
{
    struct tally *tally = context;
    tally->count++;
    if (strcmp(name, "queue_jobs") == 0)
        tally->queue_jobs = value;
}

static void each_number_is_called_back_once(void **state)
{
    (void)state;
    size_t numbers = 0;
    for (size_t i = 0; i < SETTING_COUNT; i++)
        numbers += settings[i].kind == SETTING_NUMBER;
    struct tally tally = {0};
    struct outcome o = load("--queue-jobs=9");
    config_each_number(&o.config, tally_add, &tally);
    assert_int_equal(tally.count, numbers);
    assert_int_equal(tally.queue_jobs, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_need_nothing),
        cmocka_unit_test(file_then_environment_then_flag_win),
        cmocka_unit_test(file_may_come_from_the_environment),
        cmocka_unit_test(flags_take_either_sign_and_either_form),
        cmocka_unit_test(last_of_a_repeated_flag_wins),
        cmocka_unit_test(sizes_take_binary_suffixes),
        cmocka_unit_test(numbers_that_are_none_are_refused),
        cmocka_unit_test(bounds_belong_to_the_range),
        cmocka_unit_test(words_outside_the_list_are_refused),
        cmocka_unit_test(unknown_keys_are_refused_with_place_and_hint),
        cmocka_unit_test(overlong_unknown_names_are_refused),
        cmocka_unit_test(sections_must_fit),
        cmocka_unit_test(lines_that_are_neither_are_refused),
        cmocka_unit_test(key_given_twice_is_refused),
        cmocka_unit_test(indentation_and_long_comments_mean_nothing),
        cmocka_unit_test(overlong_line_is_refused_by_its_number),
        cmocka_unit_test(texts_that_a_file_cannot_hold_are_refused),
        cmocka_unit_test(message_is_one_line_whatever_the_value),
        cmocka_unit_test(listen_address_needs_a_port),
        cmocka_unit_test(foreign_variables_are_left_alone),
        cmocka_unit_test(actions_are_told_apart),
        cmocka_unit_test(help_works_beside_anything_wrong),
        cmocka_unit_test(check_reads_the_file_alone),
        cmocka_unit_test(missing_values_and_files_are_refused),
        cmocka_unit_test(failure_leaves_the_config_untouched),
        cmocka_unit_test(printed_config_reads_back),
        cmocka_unit_test(printed_lines_fit_80_columns),
        cmocka_unit_test(help_names_every_setting_once),
        cmocka_unit_test(each_number_is_called_back_once),
    };
    return cmocka_run_group_tests(tests, file_make, file_remove);
}
