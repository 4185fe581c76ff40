/* query_test.c - query strings: percent-encoding, options, and operands as comma lists. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/encoding.h"

enum { MAX_BYTES = 1 << 20 };

static enum error decode(struct request *request, const char *query, struct problem *problem)
{
    request_init(request, &buffer_heap);
    problem_clear(problem);
    enum error err = query_decode(request, query, MAX_BYTES, problem);
    assert_int_equal(problem->error, err);
    return err;
}

static double element(const struct request *request, const struct tensor *tensor, size_t index)
{
    const char *data = (const char *)request->buffer.block.data + tensor->offset;
    float narrow;
    double value;
    if (tensor->dtype == DTYPE_FLOAT32) {
        memcpy(&narrow, data + 4 * index, 4);
        return (double)narrow;
    }
    memcpy(&value, data + 8 * index, 8);
    return value;
}

static void check(const char *query, enum dtype dtype, size_t count, const double *a,
                  const double *b)
{
    struct request request;
    struct problem problem;
    assert_int_equal(decode(&request, query, &problem), ERR_OK);
    assert_int_equal(request.pair_count, 1);
    const struct tensor_pair *pair = &request.pair[0];
    assert_int_equal(pair->a.dtype, dtype);
    assert_int_equal(pair->b.dtype, dtype);
    assert_int_equal(pair->a.shape.rank, 1);
    assert_int_equal(pair->a.shape.dim[0], count);
    assert_int_equal(pair->b.shape.dim[0], count);
    assert_int_equal(pair->a.offset % LIMIT_OPERAND_ALIGN, 0);
    assert_int_equal(pair->b.offset % LIMIT_OPERAND_ALIGN, 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(element(&request, &pair->a, i) == a[i]);
        assert_true(element(&request, &pair->b, i) == b[i]);
    }
    assert_int_equal(request_check(&request, 1, &problem), ERR_OK);
    assert_int_equal(request.term_count, count);
    request_fini(&request);
}

static void operands_are_read_from_comma_lists(void **state)
{
    (void)state;
    check("a=1,2,3&b=4,5,6", DTYPE_FLOAT64, 3, (double[]){1, 2, 3}, (double[]){4, 5, 6});
    check("b=-4.5&a=7", DTYPE_FLOAT64, 1, (double[]){7}, (double[]){-4.5});
    check("a=&b=", DTYPE_FLOAT64, 0, NULL, NULL);
    check("&&a=1%2C2&b=%33,4&", DTYPE_FLOAT64, 2, (double[]){1, 2}, (double[]){3, 4});
    check("%61=1&b=2&dtype=f4", DTYPE_FLOAT32, 1, (double[]){1}, (double[]){2});
}

static void plus_stands_for_itself(void **state)
{
    (void)state;
    check("a=1e+5,2E%2B1&b=1,1", DTYPE_FLOAT64, 2, (double[]){1e5, 20}, (double[]){1, 1});
    struct options options = {.device_index = -1};
    struct problem problem;
    assert_int_equal(options_from_query(&options, "id=a+b%20c", NULL, NULL, &problem), ERR_OK);
    assert_string_equal(options.id, "a+b c");
}

static void dtype_rounds_once_before_or_after_the_operands(void **state)
{
    (void)state;
    /* 1 + 2^-24 + 2^-60, which float64 alone would round to a tie. */
    double up = 0x1.000002p0;
    check("dtype=float32&a=1.0000000596046447762644&b=1", DTYPE_FLOAT32, 1, &up, (double[]){1});
    check("a=1.0000000596046447762644&b=1&dtype=float32", DTYPE_FLOAT32, 1, &up, (double[]){1});
}

/* The bits of a's elements, one type after the other, beside one b of as many ones. */
static void lists_of_every_real_type_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *query, *bits;
    } cases[] = {
        {"dtype=f16&a=1,0.1,-65504&b=1,1,1", "3c00 2e66 fbff"},
        {"dtype=bf16&a=1,0.1,-3e38&b=1,1,1", "3f80 3dcd ff62"},
        {"dtype=i8&a=1e2,-128,3.0&b=1,1,1", "64 80 03"},
        {"a=255,0&b=1,1&dtype=uint8", "ff 00"},
        {"dtype=i32&a=-2147483648&b=1", "80000000"},
        {"dtype=i64&a=9007199254740993,-1&b=1,1", "0020000000000001 ffffffffffffffff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, cases[i].query, &problem), ERR_OK);
        const struct tensor *a = &request.pair[0].a;
        size_t size = dtype_size(a->dtype);
        char text[128] = "";
        for (uint64_t k = 0; k < a->shape.dim[0]; k++) {
            uint64_t bits = 0;
            memcpy(&bits, (char *)request.buffer.block.data + a->offset + k * size, size);
            sprintf(strchr(text, '\0'), "%s%0*llx", k > 0 ? " " : "", (int)(2 * size),
                    (unsigned long long)bits);
        }
        assert_string_equal(text, cases[i].bits);
        request_fini(&request);
    }
}

static void non_finite_words_are_numbers(void **state)
{
    (void)state;
    struct request request;
    struct problem problem;
    assert_int_equal(decode(&request, "a=NaN,-Infinity&b=Infinity,1", &problem), ERR_OK);
    assert_true(isnan(element(&request, &request.pair[0].a, 0)));
    assert_true(element(&request, &request.pair[0].a, 1) == -INFINITY);
    assert_true(element(&request, &request.pair[0].b, 0) == INFINITY);
    request_fini(&request);
}

static void wrong_queries_are_refused_and_the_element_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        enum error error;
        const char *pointer;
    } cases[] = {
        {"", ERR_VALUE, "/a"},
        {"a=1", ERR_VALUE, "/b"},
        {"b=1", ERR_VALUE, "/a"},
        {"a=1,2,x&b=1,2,3", ERR_VALUE, "/a/2"},
        {"a=1,2,3&b=1,,3", ERR_VALUE, "/b/1"},
        {"a=1,2,&b=1,2,3", ERR_VALUE, "/a/2"},
        {"a=,&b=1", ERR_VALUE, "/a/0"},
        {"a=1,%202&b=1,2", ERR_VALUE, "/a/1"},
        {"a=+1&b=1", ERR_VALUE, "/a/0"},
        {"a=1e999&b=1", ERR_VALUE, "/a/0"},
        {"a=1&b=1e39&dtype=f4", ERR_VALUE, "/b/0"},
        {"a=[1]&b=1", ERR_VALUE, "/a/0"},
        {"a=1&a=1&b=1", ERR_OPTION, "/a"},
        {"a=1&b=1&c=2", ERR_OPTION, "/c"},
        {"a=1&b=1&dtype=f4&dtype=f4", ERR_OPTION, "/dtype"},
        {"a=1&b=1&dtype=q", ERR_DTYPE, "/dtype"},
        {"a=1&b=1&dtype=c64", ERR_UNSUPPORTED, "/dtype"},
        {"a=1,0.5&b=1,1&dtype=i64", ERR_VALUE, "/a/1"},
        {"a=1&b=-1&dtype=u8", ERR_VALUE, "/b/0"},
        {"a=65520&b=1&dtype=f16", ERR_VALUE, "/a/0"},
        {"a=1&b=1&timeout_ms", ERR_VALUE, "/timeout_ms"},
        {"a=1&b=1&shape_a=1", ERR_OPTION, ""},
        {"a=1%&b=1", ERR_OPTION, ""},
        {"a=1%2&b=1", ERR_OPTION, ""},
        {"a=1%2g&b=1", ERR_OPTION, ""},
        {"a=1%g2&b=1", ERR_OPTION, ""},
        {"a=1%00&b=1", ERR_OPTION, ""},
        {"%=1", ERR_OPTION, ""},
        {"=1", ERR_OPTION, "/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        enum error err = decode(&request, cases[i].query, &problem);
        assert_string_equal(error_name(err), error_name(cases[i].error));
        assert_string_equal(problem.pointer, cases[i].pointer);
        assert_true(problem.detail[0] != '\0');
        request_fini(&request);
    }
}

static void query_without_operands_takes_options_only(void **state)
{
    (void)state;
    struct options options = {.dtype = DTYPE_UNKNOWN, .device_index = -1};
    struct problem problem;
    assert_int_equal(options_from_query(&options, NULL, NULL, NULL, &problem), ERR_OK);
    assert_int_equal(options_from_query(&options, "", NULL, NULL, &problem), ERR_OK);
    assert_int_equal(options.given, 0);
    assert_int_equal(
        options_from_query(&options, "dtype=%66%34&shape_a=2%2c3", NULL, NULL, &problem), ERR_OK);
    assert_int_equal(options.dtype, DTYPE_FLOAT32);
    assert_int_equal(options.shape_a.dim[1], 3);
    assert_int_equal(options_from_query(&options, "a=1", NULL, NULL, &problem), ERR_OPTION);
}

static void query_beyond_the_limits_is_refused(void **state)
{
    (void)state;
    static char query[LIMIT_QUERY_BYTES + 2];
    struct options options = {.device_index = -1};
    struct request request;
    struct problem problem;
    memset(query, '&', LIMIT_QUERY_BYTES);
    assert_int_equal(options_from_query(&options, query, NULL, NULL, &problem), ERR_OK);
    query[LIMIT_QUERY_BYTES] = '&';
    assert_int_equal(options_from_query(&options, query, NULL, NULL, &problem), ERR_TOO_LARGE);
    assert_int_equal(problem.limit, LIMIT_QUERY_BYTES);

    request_init(&request, &buffer_heap);
    assert_int_equal(query_decode(&request, "a=1,2,3&b=1,2,3", 80, &problem), ERR_TOO_LARGE);
    assert_int_equal(problem.limit, 80);
    assert_string_equal(problem.setting, "memory_budget_bytes");
    request_fini(&request);
}

static void longest_query_is_read(void **state)
{
    (void)state;
    static char query[LIMIT_QUERY_BYTES + 1];
    struct request request;
    struct problem problem;
    strcpy(query, "b=7&a=1");
    for (size_t used = strlen(query); used + 2 <= LIMIT_QUERY_BYTES; used += 2)
        strcpy(query + used, ",1");
    assert_int_equal(decode(&request, query, &problem), ERR_OK);
    assert_int_equal(request.pair[0].a.shape.dim[0], (strlen(query) - 5) / 2);
    request_fini(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_read_from_comma_lists),
        cmocka_unit_test(plus_stands_for_itself),
        cmocka_unit_test(dtype_rounds_once_before_or_after_the_operands),
        cmocka_unit_test(lists_of_every_real_type_are_read),
        cmocka_unit_test(non_finite_words_are_numbers),
        cmocka_unit_test(wrong_queries_are_refused_and_the_element_is_named),
        cmocka_unit_test(query_without_operands_takes_options_only),
        cmocka_unit_test(query_beyond_the_limits_is_refused),
        cmocka_unit_test(longest_query_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
