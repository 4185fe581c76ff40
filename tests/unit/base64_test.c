/* base64_test.c - operands of base64 in JSON: both alphabets, padding, cuts, types and shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base64.h"
#include "proto/encoding.h"
#include "tests/random.h"
#include "tests/unit/feed.h"

enum { MAX_BYTES = 1 << 12 };

/* Reads text, which ends with the closing quote, in random pieces. */
static enum error read_text(const char *text, size_t size, size_t most, char *out, size_t *ret_size,
                            size_t *ret_used, struct problem *problem)
{
    struct base64 base64 = {0};
    bool done = false;
    enum error err = ERR_OK;
    problem_clear(problem);
    *ret_size = *ret_used = 0;
    while (*ret_used < size && !done && err == ERR_OK) {
        size_t piece = 1 + random_next() % most, used, written;
        piece = piece < size - *ret_used ? piece : size - *ret_used;
        char *copy = malloc(piece), *room = malloc(base64_room(piece));
        assert_non_null(copy);
        assert_non_null(room);
        memcpy(copy, text + *ret_used, piece);
        err = base64_feed(&base64, copy, piece, &used, room, &written, &done, problem);
        memcpy(out + *ret_size, room, written);
        *ret_size += written;
        *ret_used += used;
        free(copy);
        free(room);
    }
    assert_true(done || err != ERR_OK || *ret_used == size);
    return err == ERR_OK && !done ? ERR_SYNTAX : err;
}

static const size_t pieces[] = {1, 2, 5, 1000};

/* Source: RFC 4648 section 10, and what other writers of JSON make of such texts. */
static void texts_are_the_bytes_they_stand_for(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes;
        size_t size;
    } cases[] = {
        {"\"", "", 0},
        {"Zg==\"", "f", 1},
        {"Zm8=\"", "fo", 2},
        {"Zm9v\"", "foo", 3},
        {"Zm9vYg==\"", "foob", 4},
        {"Zm9vYmE=\"", "fooba", 5},
        {"Zm9vYmFy\"", "foobar", 6},
        {"Zg\"", "f", 1},
        {"Zm9vYmE\"", "fooba", 5},
        {"AAAA\"", "\0\0\0", 3},
        {"+/+/\"", "\xfb\xff\xbf", 3},
        {"-_-_\"", "\xfb\xff\xbf", 3},
        {"\\/\\/\\/\\/\"", "\xff\xff\xff", 3},
        {"\\u002b\\u002F\\u002B/\"", "\xfb\xff\xbf", 3},
        {"Zg\\u003d\\u003D\"", "f", 1},
        {"\\u005a\\u0067==\"", "f", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < 4; j++) {
            char out[64];
            size_t size, used;
            struct problem problem;
            assert_int_equal(read_text(cases[i].text, strlen(cases[i].text), pieces[j], out, &size,
                                       &used, &problem),
                             ERR_OK);
            assert_int_equal(size, cases[i].size);
            assert_int_equal(used, strlen(cases[i].text));
            assert_memory_equal(out, cases[i].bytes, size);
        }
    }
}

static void texts_that_are_none_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size, used;
    } cases[] = {
        {"Z\"", 2, 1},       {"Zm9vY\"", 6, 5},   {"Zg=\"", 4, 3},     {"Zg===\"", 6, 4},
        {"Zm9v=\"", 6, 4},   {"=\"", 2, 0},       {"Z===\"", 5, 1},    {"Zg==Zg==\"", 9, 4},
        {"Zh==\"", 5, 4},    {"Zh\"", 3, 2},      {"Zm9=\"", 5, 4},    {"Zm 9v\"", 6, 2},
        {"Zm9v\n\"", 6, 4},  {"Z*==\"", 5, 1},    {"Zm\x00v\"", 5, 2}, {"\xc3\xa9\"", 3, 0},
        {"\\n\"", 3, 1},     {"\\u0100\"", 7, 3}, {"\\u1000\"", 7, 2}, {"\\u002x\"", 7, 5},
        {"\\u0000\"", 7, 5}, {"\\u0022\"", 7, 5}, {"\\\\\"", 3, 1},    {"\\\"\"", 3, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < 4; j++) {
            char out[64];
            size_t size, used;
            struct problem problem;
            enum error err =
                read_text(cases[i].text, cases[i].size, pieces[j], out, &size, &used, &problem);
            if (err != ERR_VALUE || used != cases[i].used)
                fail_msg("%s: %s at %zu", cases[i].text, error_name(err), used);
        }
    }
}

/* Digits are read in groups, and groups in blocks. */
static void a_byte_that_is_no_digit_is_found_wherever_it_stands(void **state)
{
    (void)state;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "+/-_\"\\="; /* these three have a meaning of their own */
    char text[80], out[80];
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            if (memchr(digits, byte, sizeof digits - 1) != NULL)
                continue;
            size_t size, used;
            struct problem problem;
            memset(text, 'x', sizeof text);
            text[at] = (char)byte;
            enum error err = read_text(text, sizeof text, sizeof text, out, &size, &used, &problem);
            if (err != ERR_VALUE || used != at)
                fail_msg("byte %d at %zu: %s at %zu", byte, at, error_name(err), used);
        }
    }
}

static size_t print_base64(const unsigned char *data, size_t size, bool is_url, bool is_padded,
                           char *text)
{
    static const char standard[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= i + 2 < size ? data[i + 2] : 0;
        size_t digits = size - i < 3 ? size - i + 1 : 4;
        for (size_t j = 0; j < 4; j++) {
            char digit = standard[bits >> (18 - 6 * j) & 63];
            if (is_url)
                digit = digit == '+' ? '-' : digit == '/' ? '_' : digit;
            if (j < digits || is_padded)
                text[used++] = j < digits ? digit : '=';
        }
    }
    text[used++] = '"';
    return used;
}

static void random_bytes_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        unsigned char data[200];
        char text[300], out[220];
        size_t size = random_next() % sizeof data, got, used;
        struct problem problem;
        for (size_t j = 0; j < size; j++)
            data[j] = (unsigned char)random_next();
        size_t length = print_base64(data, size, i & 1, i & 2, text);
        assert_int_equal(read_text(text, length, pieces[i / 4 % 4], out, &got, &used, &problem),
                         ERR_OK);
        assert_int_equal(got, size);
        assert_memory_equal(out, data, size);
    }
}

/* ---- bodies -------------------------------------------------------------------------------- */

static enum error decode(struct request *request, const char *query, const char *body, size_t most,
                         struct problem *problem)
{
    const size_t size = strlen(body);
    const struct feed_how how = {
        .encoding = &encoding_json, .query = query, .announced = size, .max_bytes = MAX_BYTES};
    return feed_request(request, &how, body, size, most, problem);
}

/* (1, 2) as float32, little- and big-endian, and 3 as float64. */
#define TWO     "\"base64\":\"AACAPwAAAEA=\""
#define TWO_BIG "\"base64\":\"P4AAAEAAAAA\""

/* Whoever says the type first says it for both operands. */
static void operands_mix_and_types_settle(void **state)
{
    (void)state;
    static const struct {
        const char *query, *body;
    } cases[] = {
        {NULL, "{\"a\":{" TWO ",\"dtype\":\"f4\"},\"b\":{" TWO ",\"dtype\":\"float32\"}}"},
        {NULL, "{\"a\":{\"dtype\":\"f4\"," TWO "},\"b\":[1,2]}"},
        {NULL, "{\"a\":[1,2],\"b\":{" TWO ",\"dtype\":\"FP32\",\"shape\":[2]}}"},
        {NULL, "{\"dtype\":\"f4\",\"a\":[1,2],\"b\":{" TWO "}}"},
        {NULL, "{\"b\":{" TWO "},\"a\":{" TWO "},\"dtype\":\"f4\"}"},
        {"dtype=f4", "{\"a\":{" TWO "},\"b\":{" TWO_BIG ",\"dtype\":\">f4\"}}"},
        {"dtype=>f4", "{\"a\":{" TWO_BIG "},\"b\":[1,2]}"},
        {NULL,
         "{\"a\":{" TWO "},\"b\":{ \"shape\" : [ 2 ] , " TWO_BIG " , \"dtype\" : \">f4\" } }"},
        {NULL, "{\"a\":{\"\\u0062ase64\":\"AACAPwAAAEA\",\"dtype\":\"f4\"},\"b\":[1,2]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < 4; j++) {
            static const float expected[] = {1, 2};
            struct request request;
            struct problem problem;
            enum error err = decode(&request, cases[i].query, cases[i].body, pieces[j], &problem);
            if (err != ERR_OK)
                fail_msg("%s: %s", cases[i].body, problem.detail);
            assert_int_equal(request_check(&request, 10, &problem), ERR_OK);
            assert_int_equal(request.options.dtype, DTYPE_FLOAT32);
            const struct tensor *tensors[] = {&request.pair->a, &request.pair->b};
            for (int k = 0; k < 2; k++) {
                assert_int_equal(tensors[k]->offset % LIMIT_OPERAND_ALIGN, 0);
                assert_int_equal(tensor_length(tensors[k]), 2);
                assert_memory_equal((char *)request.buffer.block.data + tensors[k]->offset,
                                    expected, sizeof expected);
            }
            request_fini(&request);
        }
    }
}

static void pairs_take_base64_too(void **state)
{
    (void)state;
    static const char body[] =
        "{\"pairs\":[{\"a\":[3],\"b\":[4]},{\"a\":{" TWO
        ",\"dtype\":\"f4\"},\"b\":[5,6]},{\"a\":{\"base64\":\"\"},\"b\":[]}]}";
    for (size_t j = 0; j < 4; j++) {
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, NULL, body, pieces[j], &problem), ERR_OK);
        assert_int_equal(request.pair_count, 3);
        assert_int_equal(request.options.dtype, DTYPE_FLOAT32);
        assert_int_equal(request_check(&request, 10, &problem), ERR_OK);
        assert_int_equal(tensor_length(&request.pair[1].a), 2);
        assert_int_equal(tensor_length(&request.pair[2].a), 0);
        request_fini(&request);
    }
}

static void shapes_are_said_beside_the_bytes(void **state)
{
    (void)state;
    struct request request;
    struct problem problem;
    char text[64];
    assert_int_equal(decode(&request, NULL,
                            "{\"a\":{\"base64\":\"AQIDBAUG\",\"dtype\":\"i1\",\"shape\":[3,2]},"
                            "\"b\":[1,2]}",
                            3, &problem),
                     ERR_OK);
    assert_string_equal(shape_print(&request.pair->a.shape, text, sizeof text), "(3,2)");
    assert_int_equal(request_check(&request, 10, &problem), ERR_OK);
    assert_int_equal(request.result_count, 3);
    request_fini(&request);
}

static void wrong_objects_are_refused_and_the_place_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *body, *error, *pointer;
        int64_t offset;
    } cases[] = {
        {"{\"a\":{\"base64\":\"AAA*\",\"dtype\":\"i1\"}", "bad-value", "/a/base64", 19},
        {"{\"pairs\":[{},{\"a\":{\"base64\":\"A\"}}]}", "bad-value", "/pairs/1/a/base64", 30},
        {"{\"a\":{\"base64\":\"AAAA", "bad-syntax", "/a/base64", 20},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\"},}", "bad-syntax", "", 45},
        {"{\"a\":{" TWO "},\"b\":[1]}", "bad-option", "/a/dtype", -1},
        {"{\"a\":[1,2],\"b\":{" TWO "}}", "bad-option", "/b/dtype", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f9\"},\"b\":[1]}", "unknown-dtype", "/a/dtype", -1},
        {"{\"a\":{" TWO ",\"dtype\":4},\"b\":[1]}", "bad-value", "/a/dtype", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\"},\"b\":[1,2],\"dtype\":\"f8\"}", "bad-option",
         "/a/dtype", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\"},\"b\":{" TWO ",\"dtype\":\"i4\"}}", "bad-option",
         "/b/dtype", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"c16\"},\"b\":[]}", "bad-length", "/a/base64", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"shape\":[3]},\"b\":[]}", "bad-length", "/a/base64",
         -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"shape\":[4611686018427387904,4]},\"b\":[]}",
         "bad-length", "/a/base64", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"shape\":2},\"b\":[]}", "bad-value", "/a/shape", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"shape\":[-2]},\"b\":[]}", "bad-value", "/a/shape", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"shape\":[2.0]},\"b\":[]}", "bad-value", "/a/shape",
         -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"shape\":[1,1,1,1,1,1,1,1,2]},\"b\":[]}", "bad-value",
         "/a/shape", -1},
        {"{\"a\":{" TWO ",\"dtype\":\"f4\",\"order\":\"C\"},\"b\":[]}", "bad-option", "/a/order",
         -1},
        {"{\"a\":{\"base64\":4,\"dtype\":\"f4\"},\"b\":[]}", "bad-value", "/a/base64", -1},
        {"{\"a\":{\"base64\":[0],\"dtype\":\"f4\"},\"b\":[]}", "bad-value", "/a/base64", -1},
        {"{\"a\":{\"base64\":{\"base64\":\"0\"},\"dtype\":\"f4\"},\"b\":[]}", "bad-value",
         "/a/base64", -1},
        {"{\"a\":{" TWO "," TWO "},\"b\":[]}", "bad-option", "", 38},
        {"{\"a\":[1],\"b\":{\"dtype\":\"f4\",\"shape\":[1]}}", "bad-value", "/b", -1},
        {"{\"a\":[1],\"b\":{\"ref\":\"docs\"}}", "unsupported", "/b", -1},
        {"{\"base64\":\"0\",\"a\":[1],\"b\":[2]}", "bad-option", "/base64", -1},
        {"{\"x\":{\"base64\":\"0\"},\"a\":[1],\"b\":[2]}", "bad-option", "/x", -1},
        {"{\"a\":[{\"base64\":\"0\"}],\"b\":[2]}", "bad-value", "/a/0", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t j = 0; j < 4; j++) {
            struct request request;
            struct problem problem;
            enum error err = decode(&request, NULL, cases[i].body, pieces[j], &problem);
            if (strcmp(error_name(err), cases[i].error) != 0 ||
                strcmp(problem.pointer, cases[i].pointer) != 0 || problem.offset != cases[i].offset)
                fail_msg("%s: %s, %s, %d, %s", cases[i].body, error_name(err), problem.pointer,
                         (int)problem.offset, problem.detail);
            request_fini(&request);
        }
    }
}

static void bytes_beyond_the_memory_are_refused(void **state)
{
    (void)state;
    char *body = malloc(3 * MAX_BYTES);
    assert_non_null(body);
    for (int extra = 0; extra < 2; extra++) {
        size_t digits = (MAX_BYTES + 2) / 3 * 4 + (extra ? 4 : 0) - 2; /* 4095 + 1 bytes */
        size_t used = (size_t)sprintf(body, "{\"a\":{\"dtype\":\"i1\",\"base64\":\"");
        memset(body + used, 'A', digits);
        strcpy(body + used + digits, "\"},\"b\":[1]}");
        struct request request;
        struct problem problem;
        for (size_t j = 0; j < 4; j++) {
            enum error err = decode(&request, NULL, body, pieces[j], &problem);
            assert_int_equal(err, ERR_TOO_LARGE); /* b finds no room either */
            assert_string_equal(problem.pointer, extra ? "/a/base64" : "/b/0");
            assert_in_range(request.buffer.used, MAX_BYTES - 1000, MAX_BYTES);
            request_fini(&request);
        }
    }
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_bytes_they_stand_for),
        cmocka_unit_test(texts_that_are_none_are_refused_at_their_place),
        cmocka_unit_test(a_byte_that_is_no_digit_is_found_wherever_it_stands),
        cmocka_unit_test(random_bytes_come_back),
        cmocka_unit_test(operands_mix_and_types_settle),
        cmocka_unit_test(pairs_take_base64_too),
        cmocka_unit_test(shapes_are_said_beside_the_bytes),
        cmocka_unit_test(wrong_objects_are_refused_and_the_place_is_named),
        cmocka_unit_test(bytes_beyond_the_memory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
