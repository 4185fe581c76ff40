/* framing_test.c - heads that two servers could read differently are refused, others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/framing.h"

enum { FIELDS_MAX = 4, VALUE_BYTES = 64 };

struct field {
    const char *name, *value;
};

#define FIELDS(...) ((const struct field[]){__VA_ARGS__, {NULL, NULL}})

static enum error check(const char *version, const struct field *field)
{
    struct head head = {0};
    struct problem problem;
    char value[FIELDS_MAX][VALUE_BYTES];
    for (size_t i = 0; field[i].name != NULL; i++) {
        assert_true(i < FIELDS_MAX && strlen(field[i].value) < VALUE_BYTES);
        head_add(&head, field[i].name, strlen(field[i].name), strcpy(value[i], field[i].value),
                 strlen(field[i].value));
    }
    enum error error = head_check(&head, version, &problem);
    if (error != ERR_OK)
        assert_int_equal(problem.error, error);
    return error;
}

static void plain_heads_pass(void **state)
{
    (void)state;
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"})), ERR_OK);
    assert_int_equal(check("HTTP/1.1", FIELDS({"host", "a"}, {"content-length", "12"})), ERR_OK);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Transfer-Encoding", "Chunked"})),
                     ERR_OK);
    assert_int_equal(check("HTTP/1.0", FIELDS({"X-Any", "a"})), ERR_OK);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Content-Length", "0"})), ERR_OK);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"X", "tab\tand \xc3\xa9"})), ERR_OK);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Expect", "100-Continue"})), ERR_OK);
}

static bool is_last(const char *connection)
{
    struct head head = {0};
    char value[VALUE_BYTES];
    head_add(&head, "connection", strlen("connection"), strcpy(value, connection),
             strlen(connection));
    assert_null(head.flaw);
    return head.is_last;
}

static void a_request_may_be_the_last_of_its_connection(void **state)
{
    (void)state;
    assert_true(is_last("close") && is_last("Close ") && is_last("TE,\tclose"));
    assert_true(is_last("close, TE") && is_last(",close,"));
    assert_false(is_last("") || is_last("keep-alive") || is_last("closed") ||
                 is_last("en close-d"));
}

static void two_lengths_are_refused_even_when_equal(void **state)
{
    (void)state;
    assert_int_equal(
        check("HTTP/1.1", FIELDS({"Host", "a"}, {"Content-Length", "5"}, {"Content-Length", "5"})),
        ERR_FRAMING);
    assert_int_equal(
        check("HTTP/1.1", FIELDS({"Host", "a"}, {"Content-Length", "5"}, {"content-length", "6"})),
        ERR_FRAMING);
}

static void length_together_with_chunked_is_refused_in_either_order(void **state)
{
    (void)state;
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Content-Length", "5"},
                                              {"Transfer-Encoding", "chunked"})),
                     ERR_FRAMING);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Transfer-Encoding", "chunked"},
                                              {"Content-Length", "5"})),
                     ERR_FRAMING);
}

static void other_codings_are_refused(void **state)
{
    (void)state;
    static const char *const codings[] = {"gzip, chunked", "identity",         "xchunked",
                                          "chunked,",      "chunked, chunked", ""};
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        assert_int_equal(
            check("HTTP/1.1", FIELDS({"Host", "a"}, {"Transfer-Encoding", codings[i]})),
            ERR_CODING);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Transfer-Encoding", "chunked"},
                                              {"Transfer-Encoding", "chunked"})),
                     ERR_FRAMING);
}

static void lengths_that_cannot_be_met_are_refused(void **state)
{
    (void)state;
    static const char *const lengths[] = {"18446744073709551615",
                                          "9223372036854775807",
                                          "99999999999999999999999999",
                                          "-1",
                                          "+5",
                                          "5x",
                                          ""};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Content-Length", lengths[i]})),
                         ERR_TOO_LARGE);
}

static void names_with_white_space_or_controls_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Content-Length ", " Content-Length", "Transfer Encoding", "X\t", "X\x01", "X(", "",
        "X\xc3\xa9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {names[i], "1"})), ERR_FRAMING);
}

static void values_with_controls_are_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"a\rb", "a\nb", "a\r\n b", "\x01", "a\x7f"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"X", values[i]})), ERR_FRAMING);
    struct head head = {0};
    struct problem problem;
    char host[] = "a", cut[] = "a\0b";
    head_add(&head, "Host", 4, host, 1);
    head_add(&head, "X", 1, cut, 3);
    assert_int_equal(head_check(&head, "HTTP/1.1", &problem), ERR_FRAMING);
}

static void exactly_one_host_is_needed(void **state)
{
    (void)state;
    assert_int_equal(check("HTTP/1.1", FIELDS({"Accept", "*/*"})), ERR_FRAMING);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Host", "a"})), ERR_FRAMING);
}

static void unknown_expectations_are_refused(void **state)
{
    (void)state;
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Expect", "200-ok"})), ERR_EXPECT);
}

static void blanks_behind_a_value_are_no_part_of_it(void **state)
{
    (void)state;
    struct head head = {0};
    char timeout[] = "100 ", type[] = "text/plain; a=\"b \" \t ", accept[] = " \t", id[] = "";
    head_add(&head, "X-Timeout-Ms", 12, timeout, 4);
    head_add(&head, "Content-Type", 12, type, strlen(type));
    head_add(&head, "Accept", 6, accept, 2);
    head_add(&head, "X-Request-Id", 12, id, 0);
    assert_string_equal(head.timeout_ms, "100");
    assert_string_equal(head.content_type, "text/plain; a=\"b \"");
    assert_string_equal(head.accept, "");
    assert_string_equal(head.request_id, "");
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a "}, {"Expect", "100-continue \t"})),
                     ERR_OK);
}

/* The library does not cut them off, and goes by these two itself. */
static void blanks_behind_framing_are_refused(void **state)
{
    (void)state;
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Transfer-Encoding", "chunked "})),
                     ERR_CODING);
    assert_int_equal(check("HTTP/1.1", FIELDS({"Host", "a"}, {"Content-Length", "5 "})),
                     ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_heads_pass),
        cmocka_unit_test(a_request_may_be_the_last_of_its_connection),
        cmocka_unit_test(blanks_behind_a_value_are_no_part_of_it),
        cmocka_unit_test(blanks_behind_framing_are_refused),
        cmocka_unit_test(two_lengths_are_refused_even_when_equal),
        cmocka_unit_test(length_together_with_chunked_is_refused_in_either_order),
        cmocka_unit_test(other_codings_are_refused),
        cmocka_unit_test(lengths_that_cannot_be_met_are_refused),
        cmocka_unit_test(names_with_white_space_or_controls_are_refused),
        cmocka_unit_test(values_with_controls_are_refused),
        cmocka_unit_test(exactly_one_host_is_needed),
        cmocka_unit_test(unknown_expectations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
