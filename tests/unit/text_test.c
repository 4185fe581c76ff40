/* text_test.c - growing output text, JSON strings, and times that add up. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "proto/text.h"

static int make_text(void **state)
{
    static struct text text;
    text_init(&text);
    *state = &text;
    return 0;
}

static int free_text(void **state)
{
    text_fini(*state);
    return 0;
}

static void text_grows_and_keeps_what_it_holds(void **state)
{
    struct text *text = *state;
    for (int i = 0; i < 10000; i++) {
        text_uint(text, (uint64_t)i % 10);
        text_string(text, ".");
    }
    assert_int_equal(text->size, 20000);
    assert_int_equal(text->data[text->size], '\0');
    for (size_t i = 0; i < 10000; i++) {
        assert_int_equal(text->data[2 * i], '0' + i % 10);
        assert_int_equal(text->data[2 * i + 1], '.');
    }
}

static void text_cleared_is_empty_and_keeps_its_memory(void **state)
{
    struct text *text = *state;
    text_string(text, "something");
    size_t capacity = text->capacity;
    text_clear(text);
    assert_int_equal(text->size, 0);
    text_string(text, "x");
    assert_string_equal(text->data, "x");
    assert_int_equal(text->capacity, capacity);
}

static void text_remembers_that_memory_ran_out(void **state)
{
    struct text *text = *state;
    text_string(text, "kept");
    assert_null(text_room(text, SIZE_MAX - 2));
    assert_true(text->failed);
    text_string(text, " not appended");
    assert_string_equal(text->data, "kept");
    text_clear(text);
    assert_false(text->failed);
}

static void numbers_and_formats_are_written(void **state)
{
    struct text *text = *state;
    text_uint(text, 0);
    text_string(text, " ");
    text_uint(text, UINT64_MAX);
    text_printf(text, " %s=%d", "x", -3);
    assert_string_equal(text->data, "0 18446744073709551615 x=-3");
    text_printf(text, "%*s", 5000, "end");
    assert_int_equal(text->size, 27 + 5000);
    assert_string_equal(text->data + text->size - 4, " end");
}

static void times_are_exact(void **state)
{
    struct text *text = *state;
    static const struct {
        int64_t ns;
        const char *us, *ms;
    } cases[] = {
        {0, "0.000", "0.000000"},
        {7, "0.007", "0.000007"},
        {1000, "1.000", "0.001000"},
        {12345, "12.345", "0.012345"},
        {1000000, "1000.000", "1.000000"},
        {99999999, "99999.999", "99.999999"},
        {100000000, "100000.000", "100.000000"},
        {-1500, "-1.500", "-0.001500"},
        {INT64_MAX, "9223372036854775.807", "9223372036854.775807"},
        {INT64_MIN, "-9223372036854775.808", "-9223372036854.775808"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_clear(text);
        text_end(text, text_put_us(text_room(text, TEXT_DURATION_BYTES), cases[i].ns));
        assert_string_equal(text->data, cases[i].us);
        text_clear(text);
        text_end(text, text_put_ms(text_room(text, TEXT_DURATION_BYTES), cases[i].ns));
        assert_string_equal(text->data, cases[i].ms);
    }
}

static void hexadecimal_digits_are_those_of_printf(void **state)
{
    (void)state;
    uint64_t value = 0;
    for (unsigned i = 0; i < 64; i++, value = value * 7 + 0x9abcdef) {
        char written[17] = "", expected[17];
        text_put_hex(written, value);
        (void)snprintf(expected, sizeof expected, "%016" PRIx64, value);
        assert_string_equal(written, expected);
    }
}

static void json_string_escapes_what_it_must(void **state)
{
    struct text *text = *state;
    text_json_string(text, "a\"b\\c\b\f\n\r\t\v\x01\x1f/\x7f");
    assert_string_equal(text->data, "\"a\\\"b\\\\c\\b\\f\\n\\r\\t\\u000b\\u0001\\u001f/\x7f\"");
    text_clear(text);
    text_json_string(text, "");
    assert_string_equal(text->data, "\"\"");
}

static void json_string_keeps_utf8_and_replaces_what_is_not(void **state)
{
    struct text *text = *state;
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"\xc3\xa9", "\xc3\xa9"},                 /* two bytes */
        {"\xe2\x82\xac", "\xe2\x82\xac"},         /* three */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}, /* four */
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, /* the last code point */
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD},    /* beyond it */
        {"\xc0\xaf", BAD BAD},                    /* overlong */
        {"\xe0\x9f\xbf", BAD BAD BAD},            /* overlong */
        {"\xed\xa0\x80", BAD BAD BAD},            /* a surrogate */
        {"x\x80y", "x" BAD "y"},                  /* a continuation alone */
        {"x\xc3", "x" BAD},                       /* cut at the end */
        {"x\xf0\x9f\x98", "x" BAD BAD BAD},       /* cut at the end */
        {"\xe2\x82"
         "a",
         BAD BAD "a"},         /* cut in the middle */
        {"\xff\xfe", BAD BAD}, /* never UTF-8 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_clear(text);
        text_json_string(text, cases[i].in);
        assert_int_equal(text->size, strlen(cases[i].out) + 2);
        assert_memory_equal(text->data + 1, cases[i].out, strlen(cases[i].out));
    }
}

static void json_string_of_any_bytes_is_strict_json(void **state)
{
    struct text *text = *state;
    srand(7); /* any seed serves: the property holds for every string */
    for (int round = 0; round < 3000; round++) {
        char bytes[12] = "";
        for (size_t i = 0; i + 1 < sizeof bytes; i++)
            bytes[i] = (char)(rand() % 255 + 1);
        text_clear(text);
        text_json_string(text, bytes);
        json_t *json = json_loadb(text->data, text->size, JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        assert_true(json_is_string(json));
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_grows_and_keeps_what_it_holds, make_text, free_text),
        cmocka_unit_test_setup_teardown(text_cleared_is_empty_and_keeps_its_memory, make_text,
                                        free_text),
        cmocka_unit_test_setup_teardown(text_remembers_that_memory_ran_out, make_text, free_text),
        cmocka_unit_test_setup_teardown(numbers_and_formats_are_written, make_text, free_text),
        cmocka_unit_test_setup_teardown(times_are_exact, make_text, free_text),
        cmocka_unit_test(hexadecimal_digits_are_those_of_printf),
        cmocka_unit_test_setup_teardown(json_string_escapes_what_it_must, make_text, free_text),
        cmocka_unit_test_setup_teardown(json_string_keeps_utf8_and_replaces_what_is_not, make_text,
                                        free_text),
        cmocka_unit_test_setup_teardown(json_string_of_any_bytes_is_strict_json, make_text,
                                        free_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
