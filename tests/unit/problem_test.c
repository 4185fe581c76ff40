/* problem_test.c - problem documents: the fields that apply, and JSON that is always strict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "proto/result.h"

static int make_text(void **state)
{
    struct text *text = malloc(sizeof *text);
    assert_non_null(text);
    text_init(text);
    *state = text;
    return 0;
}

static int free_text(void **state)
{
    text_fini(*state);
    free(*state);
    return 0;
}

/* Compares and clears. */
static void check_text(struct text *text, const char *expected)
{
    assert_false(text->failed);
    assert_string_equal(text->data, expected);
    text_clear(text);
}

static void problem_has_the_fields_that_apply(void **state)
{
    struct text *text = *state;
    struct problem problem;
    problem_set(&problem, ERR_SHAPE, "a has %d and b \"4\"", 3);
    problem_encode_json(&problem, NULL, text);
    check_text(text, "{\"type\": \"/problems/length-mismatch\", \"title\": \"the operands' shapes "
                     "do not match\", \"status\": 422, \"detail\": \"a has 3 and b "
                     "\\\"4\\\"\"}");
    problem_set(&problem, ERR_TOO_LARGE, "too long");
    strcpy(problem.pointer, "/a/17");
    problem.offset = 0;
    problem.limit = 100;
    problem.setting = "max_body_bytes";
    problem_encode_json(&problem, "r-17", text);
    check_text(text, "{\"type\": \"/problems/too-large\", \"title\": \"the request is over a "
                     "limit\", \"status\": 413, \"detail\": \"too long\", \"pointer\": "
                     "\"/a/17\", \"offset\": 0, \"limit\": 100, \"setting\": "
                     "\"max_body_bytes\", \"id\": \"r-17\"}");
}

static void every_problem_is_strict_json(void **state)
{
    struct text *text = *state;
    for (enum error error = ERR_OK + 1; error < ERROR_COUNT; error++) {
        struct problem problem;
        problem_set(&problem, error, "%s", "\x01\"\\\xff\xe2\x82");
        strcpy(problem.pointer, "/\xc3");
        text_clear(text);
        problem_encode_json(&problem, "\x7f\xf0\x9f", text);
        json_t *json = json_loadb(text->data, text->size, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
        assert_int_equal(json_integer_value(json_object_get(json, "status")), error_status(error));
        const char *type = json_string_value(json_object_get(json, "type"));
        assert_int_equal(strncmp(type, "/problems/", 10), 0);
        assert_int_equal(error_from_name(type + 10), error);
        assert_string_equal(json_string_value(json_object_get(json, "title")), error_title(error));
        json_decref(json);
    }
}

#define TEXT_TEST(name) cmocka_unit_test_setup_teardown(name, make_text, free_text)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEXT_TEST(problem_has_the_fields_that_apply),
        TEXT_TEST(every_problem_is_strict_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
