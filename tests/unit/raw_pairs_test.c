/* raw_pairs_test.c - raw bodies of many pairs: where their elements land, and the lengths that are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/bytes.h"
#include "tests/unit/feed.h"

enum { MAX_BYTES = 4096, BODY_MAX = 4096 };

/* A body in the making. */
struct body {
    char data[BODY_MAX];
    size_t size;
    bool is_big;
};

static void put(struct body *body, const void *number, size_t size)
{
    assert_in_range(body->size + size, 1, BODY_MAX);
    memcpy(body->data + body->size, number, size);
    if (body->is_big)
        swap_numbers(body->data + body->size, size, size);
    body->size += size;
}

static void put_numbers(struct body *body, const uint64_t *number, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(body, &number[i], sizeof number[i]);
}

/* Pairs whose elements are 0, 1, 2, ... through the whole body. */
static void lay_out(struct body *body, const uint64_t *lengths, uint64_t count)
{
    double element = 0;
    body->size = 0;
    put_numbers(body, &count, 1);
    put_numbers(body, lengths, count);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t j = 0; j < 2 * lengths[i]; j++, element++)
            put(body, &element, sizeof element);
}

static enum error decode(struct request *request, const char *query, const struct body *body,
                         uint64_t announced, size_t most, struct problem *problem)
{
    const struct feed_how how = {
        .encoding = &encoding_raw, .query = query, .announced = announced, .max_bytes = MAX_BYTES};
    return feed_request(request, &how, body->data, body->size, most, problem);
}

static void check_operand(const struct request *request, const struct tensor *tensor, uint64_t n,
                          double *element)
{
    assert_int_equal(tensor->offset % LIMIT_OPERAND_ALIGN, 0);
    assert_int_equal(tensor->shape.rank, 1);
    assert_int_equal(tensor_length(tensor), n);
    for (uint64_t j = 0; j < n; j++, ++*element) {
        double got;
        memcpy(&got, (char *)request->buffer.block.data + tensor->offset + j * sizeof got,
               sizeof got);
        assert_true(got == *element);
    }
}

static void pairs_land_however_their_body_is_cut(void **state)
{
    (void)state;
    static const uint64_t lengths[][5] = {{3, 1, 0, 8, 2}, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 9}, {4}};
    static const uint64_t counts[] = {5, 5, 5, 1};
    for (size_t i = 0; i < 2 * 2 * 4 * 40; i++) {
        const size_t which = i / 4 % 4;
        struct body body = {.is_big = i & 1};
        struct request request;
        struct problem problem;
        double element = 0;
        lay_out(&body, lengths[which], counts[which]);
        assert_int_equal(decode(&request,
                                body.is_big ? "dtype=>f8&layout=pairs" : "dtype=f8&layout=pairs",
                                &body, i & 2 ? BODY_CHUNKED : body.size, 1 + i / 16, &problem),
                         ERR_OK);
        assert_true(request.is_pairs);
        assert_int_equal(request.pair_count, counts[which]);
        for (size_t pair = 0; pair < counts[which]; pair++) {
            check_operand(&request, &request.pair[pair].a, lengths[which][pair], &element);
            check_operand(&request, &request.pair[pair].b, lengths[which][pair], &element);
        }
        assert_int_equal(request_check(&request, 5, &problem), ERR_OK);
        assert_int_equal(request.result_count, counts[which]);
        request_fini(&request);
    }
}

static void no_pairs_are_no_results(void **state)
{
    (void)state;
    struct body body = {.size = 0};
    struct request request;
    struct problem problem;
    lay_out(&body, NULL, 0);
    assert_int_equal(decode(&request, "dtype=f4&layout=pairs", &body, 8, 3, &problem), ERR_OK);
    assert_int_equal(request_check(&request, 5, &problem), ERR_OK);
    assert_int_equal(request.result_count, 0);
    request_fini(&request);
}

static void lengths_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t number[4]; /* count, lengths */
        size_t numbers, more_bytes;
        uint64_t announced;
        enum error error;
        const char *detail;
    } cases[] = {
        {{0}, 0, 0, 0, ERR_LENGTH, "ends after 0 bytes; its count and lengths ask for 8 at least"},
        {{0}, 0, 7, 7, ERR_LENGTH, "ends after 7"},
        {{2, 1}, 2, 0, 24, ERR_LENGTH, "ends after 16"},
        {{2, 1}, 2, 0, 16, ERR_LENGTH, "has 16 bytes; its count and lengths ask for 24 at least"},
        {{2, 1, 2}, 3, 23, 48, ERR_LENGTH, "ends after 47"},
        {{2, 1, 2}, 3, 24, 49, ERR_LENGTH, "has 49 bytes; its count and lengths ask for 48"},
        {{2, 1, 2}, 3, 24, 47, ERR_LENGTH, "has 47"},
        {{2, 1, 2}, 3, 25, BODY_CHUNKED, ERR_LENGTH, "goes on after 48"},
        {{2, 1, 2}, 3, 23, BODY_CHUNKED, ERR_LENGTH, "ends after 47"},
        {{0}, 1, 1, BODY_CHUNKED, ERR_LENGTH, "goes on after 8"},
        {{65537}, 1, 0, BODY_CHUNKED, ERR_TOO_LARGE, "65537"},
        {{UINT64_MAX}, 1, 0, BODY_CHUNKED, ERR_TOO_LARGE, "18446744073709551615"},
        {{1, UINT64_MAX}, 2, 0, BODY_CHUNKED, ERR_TOO_LARGE, "4096"},
        {{1, MAX_BYTES / 8 + 1}, 2, 0, BODY_CHUNKED, ERR_TOO_LARGE, "4096"},
        {{3, 500, 10, 1}, 4, 0, BODY_CHUNKED, ERR_TOO_LARGE, "4096"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t most = 1; most < 70; most += 7) {
            struct body body = {.size = 0};
            struct request request;
            struct problem problem;
            put_numbers(&body, cases[i].number, cases[i].numbers);
            body.size += cases[i].more_bytes;
            assert_int_equal(decode(&request, "dtype=f4&layout=pairs", &body, cases[i].announced,
                                    most, &problem),
                             cases[i].error);
            if (strstr(problem.detail, cases[i].detail) == NULL)
                assert_string_equal(problem.detail, cases[i].detail);
            request_fini(&request);
        }
}

static void lengths_alone_take_no_memory(void **state)
{
    (void)state;
    const uint64_t numbers[] = {1, 500};
    for (size_t bytes = 0; bytes <= 40; bytes += 40) {
        struct body body = {.size = 0};
        struct request request;
        struct problem problem;
        put_numbers(&body, numbers, 2);
        body.size += bytes;
        assert_int_equal(
            decode(&request, "dtype=f4&layout=pairs", &body, BODY_CHUNKED, BODY_MAX, &problem),
            ERR_LENGTH);
        assert_in_range(request.buffer.block.size, bytes, 2 * bytes);
        request_fini(&request);
    }
}

static void shapes_are_not_given_twice(void **state)
{
    (void)state;
    struct body body = {.size = 8};
    struct request request;
    struct problem problem;
    assert_int_equal(
        decode(&request, "dtype=f4&layout=pairs&shape_a=3", &body, body.size, 8, &problem),
        ERR_OPTION);
    assert_string_equal(problem.pointer, "/layout");
    request_fini(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_land_however_their_body_is_cut),
        cmocka_unit_test(no_pairs_are_no_results),
        cmocka_unit_test(lengths_that_do_not_fit_are_refused),
        cmocka_unit_test(lengths_alone_take_no_memory),
        cmocka_unit_test(shapes_are_not_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
