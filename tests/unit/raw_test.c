/* raw_test.c - bodies of raw elements: where the bytes land, and the lengths that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/encoding.h"

enum { MAX_BYTES = 4096 };

/* Decodes body in pieces; announced says how long it is. The caller finishes the request. */
static enum error decode(struct request *request, const char *query, const void *body, size_t size,
                         uint64_t announced, size_t piece, struct problem *problem)
{
    struct decoder *decoder = NULL;
    request_init(request, &buffer_heap);
    problem_clear(problem);
    enum error err = options_from_query(&request->options, query, NULL, NULL, problem);
    if (err == ERR_OK)
        err = decoder_create(&decoder, &encoding_raw, request, announced, MAX_BYTES, problem);
    for (size_t at = 0; err == ERR_OK && at < size; at += piece)
        err = decoder_feed(decoder, (const char *)body + at, piece < size - at ? piece : size - at,
                           problem);
    if (err == ERR_OK)
        err = decoder_finish(decoder, problem);
    decoder_destroy(decoder);
    assert_int_equal(problem->error, err);
    return err;
}

static float element(const struct request *request, const struct tensor *tensor, size_t index)
{
    float value;
    memcpy(&value, (const char *)request->buffer.block.data + tensor->offset + 4 * index, 4);
    return value;
}

static const float ten[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

/* Expects the elements 1, 2, ... in a, and then on in b. */
static void check_elements(const struct request *request, const char *shape_a, const char *shape_b)
{
    char text[64];
    uint64_t count_a, count_b;
    assert_int_equal(request->pair_count, 1);
    const struct tensor_pair *pair = &request->pair[0];
    assert_string_equal(shape_print(&pair->a.shape, text, sizeof text), shape_a);
    assert_string_equal(shape_print(&pair->b.shape, text, sizeof text), shape_b);
    assert_int_equal(shape_count(&pair->a.shape, &count_a), ERR_OK);
    assert_int_equal(shape_count(&pair->b.shape, &count_b), ERR_OK);
    for (size_t i = 0; i < count_a; i++)
        assert_true(element(request, &pair->a, i) == ten[i]);
    for (size_t i = 0; i < count_b; i++)
        assert_true(element(request, &pair->b, i) == ten[count_a + i]);
}

static const struct {
    const char *query;
    size_t count;
    const char *shape_a, *shape_b;
} bodies[] = {
    {"dtype=f4", 10, "(5,)", "(5,)"},
    {"dtype=f4", 0, "(0,)", "(0,)"},
    {"dtype=f4&shape_a=2,2", 6, "(2,2)", "(2,)"},
    {"dtype=f4&shape_a=2", 4, "(2,)", "(2,)"},
    {"dtype=f4&shape_b=3,2", 8, "(2,)", "(3,2)"},
    {"dtype=f4&shape_a=4,1,1&shape_b=6,1", 10, "(4,1,1)", "(6,1)"},
    {"dtype=f4&shape_a=0&shape_b=0", 0, "(0,)", "(0,)"},
    {"dtype=f4&shape_a=0", 0, "(0,)", "(0,)"},
    {"dtype=f4&shape_a=0,3&shape_b=3", 3, "(0,3)", "(3,)"},
    {"dtype=f4&shape_a=3&shape_b=0,3", 3, "(3,)", "(0,3)"},
};

static void elements_land_at_every_split_of_known_and_chunked_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        size_t size = 4 * bodies[i].count;
        for (size_t piece = 1; piece <= size + 1; piece++) {
            struct request request;
            struct problem problem;
            assert_int_equal(decode(&request, bodies[i].query, ten, size, size, piece, &problem),
                             ERR_OK);
            check_elements(&request, bodies[i].shape_a, bodies[i].shape_b);
            request_fini(&request);
            assert_int_equal(
                decode(&request, bodies[i].query, ten, size, BODY_CHUNKED, piece, &problem),
                ERR_OK);
            check_elements(&request, bodies[i].shape_a, bodies[i].shape_b);
            request_fini(&request);
        }
    }
}

static void b_starts_aligned_when_its_place_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        uint64_t announced;
        size_t offset;
    } cases[] = {
        {"dtype=f4", 40, 64},
        {"dtype=f4", BODY_CHUNKED, 20},
        {"dtype=f4&shape_a=5", BODY_CHUNKED, 64},
        {"dtype=f4&shape_b=5", BODY_CHUNKED, 20},
        {"dtype=f4&shape_a=5&shape_b=5", BODY_CHUNKED, 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, cases[i].query, ten, 40, cases[i].announced, 7, &problem),
                         ERR_OK);
        check_elements(&request, "(5,)", "(5,)");
        assert_int_equal(request.pair[0].a.offset, 0);
        assert_int_equal(request.pair[0].b.offset, cases[i].offset);
        assert_int_equal(request.buffer.used, cases[i].offset + 20);
        request_fini(&request);
    }
}

static void big_endian_elements_are_turned(void **state)
{
    (void)state;
    static const unsigned char singles[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0};
    static const unsigned char doubles[] = {0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
                                            0x40, 0,    0, 0, 0, 0, 0, 1};
    struct request request;
    struct problem problem;
    assert_int_equal(decode(&request, "dtype=%3Ef4", singles, 8, 8, 3, &problem), ERR_OK);
    assert_true(element(&request, &request.pair[0].a, 0) == 1);
    assert_true(element(&request, &request.pair[0].b, 0) == 2);
    request_fini(&request);

    double b;
    assert_int_equal(decode(&request, "dtype=>f8", doubles, 16, BODY_CHUNKED, 5, &problem), ERR_OK);
    assert_int_equal(request.pair[0].b.dtype, DTYPE_FLOAT64);
    memcpy(&b, (char *)request.buffer.block.data + request.pair[0].b.offset, sizeof b);
    assert_true(b == 0x1.0000000000001p1);
    request_fini(&request);
    assert_int_equal(decode(&request, "dtype=>f4", "", 0, 0, 1, &problem), ERR_OK);
    request_fini(&request);
}

/* Sixteen bytes that tell where each of them went; both operands hold half of them. */
static void bytes_turn_within_each_number(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        unsigned char order[16];
    } cases[] = {
        {"dtype=>i1", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {"dtype=%7Cu1", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {"dtype=bf16", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {"dtype=>f2", {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14}},
        {"dtype=>i4", {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12}},
        {"dtype=>i8", {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}},
        {"dtype=>c8", {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12}},
        {"dtype=<c8", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {"dtype=>c16&shape_a=1&shape_b=0,1",
         {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}},
    };
    static const unsigned char body[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, cases[i].query, body, 16, 16, 3, &problem), ERR_OK);
        const struct tensor_pair *pair = &request.pair[0];
        const char *data = request.buffer.block.data;
        uint64_t count;
        assert_int_equal(shape_count(&pair->a.shape, &count), ERR_OK);
        size_t size = count * dtype_size(pair->a.dtype);
        assert_memory_equal(data + pair->a.offset, cases[i].order, size);
        assert_memory_equal(data + pair->b.offset, cases[i].order + size, 16 - size);
        request_fini(&request);
    }
}

static void wrong_bodies_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        size_t size;
        uint64_t announced;
        enum error error;
        const char *detail;
    } cases[] = {
        {"", 8, 8, ERR_OPTION, "dtype=float32"},
        {"result_dtype=f4", 8, BODY_CHUNKED, ERR_OPTION, "dtype=float32"},
        {"dtype=f4", 7, 7, ERR_LENGTH, "--data-binary"},
        {"dtype=f4", 7, BODY_CHUNKED, ERR_LENGTH, "--data-binary"},
        {"dtype=f4", 12, 12, ERR_LENGTH, "odd"},
        {"dtype=f4", 12, BODY_CHUNKED, ERR_LENGTH, "odd"},
        {"dtype=f4", 16, 24, ERR_LENGTH, "ends after 16"},
        {"dtype=f4", 16, 8, ERR_LENGTH, "goes on after 8"},
        {"dtype=f4", 1, 0, ERR_LENGTH, "goes on after 0"},
        {"dtype=f4&shape_a=2&shape_b=2", 12, 12, ERR_LENGTH, "ask for 16"},
        {"dtype=f4&shape_a=2&shape_b=2", 12, BODY_CHUNKED, ERR_LENGTH, "ends after 12"},
        {"dtype=f4&shape_a=2&shape_b=2", 20, BODY_CHUNKED, ERR_LENGTH, "goes on after 16"},
        {"dtype=f4&shape_a=5", 12, 12, ERR_LENGTH, "ask for 20"},
        {"dtype=f4&shape_a=5", 12, BODY_CHUNKED, ERR_LENGTH, "ask for 20"},
        {"dtype=f4&shape_b=5", 12, BODY_CHUNKED, ERR_LENGTH, "ask for 20"},
        {"dtype=f4&shape_a=2&shape_b=3", 20, 20, ERR_SHAPE, "(3,)"},
        {"dtype=f4&shape_a=2&shape_b=3", 20, BODY_CHUNKED, ERR_SHAPE, "(3,)"},
        {"dtype=f4&shape_a=9223372036854775807&shape_b=2", 12, 12, ERR_LENGTH, "ask for"},
        {"dtype=f4&shape_a=9223372036854775807,9223372036854775807", 12, BODY_CHUNKED,
         ERR_TOO_LARGE, "4096"},
        {"dtype=f4&shape_a=2000&shape_b=2000", 12, BODY_CHUNKED, ERR_TOO_LARGE, "4096"},
        {"dtype=f4", 0, MAX_BYTES + 8, ERR_TOO_LARGE, "4096"},
        {"dtype=f8", 0, UINT64_MAX - 15, ERR_TOO_LARGE, "4096"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(
            decode(&request, cases[i].query, ten, cases[i].size, cases[i].announced, 40, &problem),
            cases[i].error);
        if (strstr(problem.detail, cases[i].detail) == NULL)
            assert_string_equal(problem.detail, cases[i].detail);
        if (cases[i].error == ERR_TOO_LARGE) {
            assert_int_equal(problem.limit, MAX_BYTES);
            assert_string_equal(problem.setting, "memory_budget_bytes");
        }
        request_fini(&request);
    }
}

static void what_the_length_tells_is_refused_before_a_byte(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        uint64_t announced;
        enum error error;
    } cases[] = {
        {"dtype=f4", 6, ERR_LENGTH},
        {"dtype=f4&shape_a=3&shape_b=3", 20, ERR_LENGTH},
        {"dtype=f4&shape_a=3", 16, ERR_SHAPE},
        {"dtype=f4", UINT64_C(1) << 40, ERR_TOO_LARGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        struct decoder *decoder = NULL;
        request_init(&request, &buffer_heap);
        assert_int_equal(options_from_query(&request.options, cases[i].query, NULL, NULL, &problem),
                         ERR_OK);
        assert_int_equal(decoder_create(&decoder, &encoding_raw, &request, cases[i].announced,
                                        MAX_BYTES, &problem),
                         cases[i].error);
        assert_null(decoder);
        request_fini(&request);
    }
}

static void chunked_body_beyond_the_memory_is_refused_when_it_gets_there(void **state)
{
    (void)state;
    static char zeros[MAX_BYTES + 8];
    struct request request;
    struct problem problem;
    assert_int_equal(decode(&request, "dtype=f4", zeros, MAX_BYTES, BODY_CHUNKED, 100, &problem),
                     ERR_OK);
    request_fini(&request);
    assert_int_equal(
        decode(&request, "dtype=f4", zeros, MAX_BYTES + 8, BODY_CHUNKED, 100, &problem),
        ERR_TOO_LARGE);
    assert_in_range(request.buffer.used, MAX_BYTES - 100, MAX_BYTES);
    request_fini(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_land_at_every_split_of_known_and_chunked_bodies),
        cmocka_unit_test(b_starts_aligned_when_its_place_is_known),
        cmocka_unit_test(big_endian_elements_are_turned),
        cmocka_unit_test(bytes_turn_within_each_number),
        cmocka_unit_test(wrong_bodies_are_refused),
        cmocka_unit_test(what_the_length_tells_is_refused_before_a_byte),
        cmocka_unit_test(chunked_body_beyond_the_memory_is_refused_when_it_gets_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
