/* options_test.c - the options of a request, their rules, and what request_check() settles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/request.h"

static struct options fresh_options(void)
{
    struct request request;
    request_init(&request, &buffer_heap);
    struct options options = request.options;
    request_fini(&request);
    return options;
}

/* Sets one option of fresh ones. */
static enum error set(struct options *options, const char *name, const char *value,
                      struct problem *problem)
{
    unsigned seen = 0;
    *options = fresh_options();
    problem_clear(problem);
    return options_set(options, &seen, name, value, problem);
}

static void fresh_options_say_nothing(void **state)
{
    (void)state;
    struct options options = fresh_options();
    assert_int_equal(options.given, 0);
    assert_int_equal(options.dtype, DTYPE_UNKNOWN);
    assert_int_equal(options.result_dtype, DTYPE_UNKNOWN);
    assert_int_equal(options.accuracy, ACCURACY_DEFAULT);
    assert_int_equal(options.placement, PLACE_AUTO);
    assert_int_equal(options.device_index, -1);
    assert_int_equal(options.timeout_ms, 0);
    assert_string_equal(options.id, "");
}

static void every_option_is_read(void **state)
{
    (void)state;
    struct options o;
    struct problem problem;
    assert_int_equal(set(&o, "dtype", ">f4", &problem), ERR_OK);
    assert_int_equal(o.dtype, DTYPE_FLOAT32);
    assert_int_equal(o.order, ORDER_BIG);
    assert_int_equal(o.given, OPTION_DTYPE);
    assert_int_equal(set(&o, "accuracy", "exact", &problem), ERR_OK);
    assert_int_equal(o.accuracy, ACCURACY_EXACT);
    assert_int_equal(o.given, OPTION_ACCURACY);
    assert_int_equal(set(&o, "kernel", "grid-atomic", &problem), ERR_OK);
    assert_string_equal(o.kernel, "grid-atomic");
    assert_int_equal(set(&o, "result_dtype", "FP32", &problem), ERR_OK);
    assert_int_equal(o.result_dtype, DTYPE_FLOAT32);
    assert_int_equal(set(&o, "timeout_ms", "250", &problem), ERR_OK);
    assert_int_equal(o.timeout_ms, 250);
    assert_int_equal(set(&o, "timeout_ms", "9223372036854775807", &problem), ERR_OK);
    assert_true(o.timeout_ms == INT64_MAX);
    assert_int_equal(set(&o, "id", "r-17", &problem), ERR_OK);
    assert_string_equal(o.id, "r-17");
    assert_int_equal(set(&o, "diagnostics", "true", &problem), ERR_OK);
    assert_true(o.diagnostics);
    assert_int_equal(set(&o, "conjugate", "true", &problem), ERR_OK);
    assert_true(o.conjugate);
    assert_int_equal(set(&o, "conjugate", "false", &problem), ERR_OK);
    assert_false(o.conjugate);
    assert_int_equal(o.given, OPTION_CONJUGATE);
    assert_int_equal(set(&o, "shape_a", "3,4", &problem), ERR_OK);
    assert_int_equal(o.shape_a.rank, 2);
    assert_int_equal(set(&o, "shape_b", "4", &problem), ERR_OK);
    assert_int_equal(o.shape_b.dim[0], 4);
    assert_int_equal(o.given, OPTION_SHAPE_B);
}

static void device_words_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        enum placement placement;
        int index;
    } words[] = {
        {"auto", PLACE_AUTO, -1},  {"cpu", PLACE_CPU, -1},      {"cuda", PLACE_CUDA, -1},
        {"cuda:0", PLACE_CUDA, 0}, {"cuda:17", PLACE_CUDA, 17},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct options options;
        struct problem problem;
        assert_int_equal(set(&options, "device", words[i].word, &problem), ERR_OK);
        assert_int_equal(options.placement, words[i].placement);
        assert_int_equal(options.device_index, words[i].index);
    }
}

static void wrong_values_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        enum error error;
    } cases[] = {
        {"dtype", "uint64", ERR_DTYPE},
        {"dtype", "", ERR_DTYPE},
        {"result_dtype", "int", ERR_DTYPE},
        {"result_dtype", ">f4", ERR_VALUE},
        {"accuracy", "Exact", ERR_VALUE},
        {"accuracy", "default", ERR_VALUE},
        {"kernel", "", ERR_KERNEL},
        {"kernel", "a-name-of-more-than-sixty-three-bytes-that-no-kernel-can-have-at-all",
         ERR_KERNEL},
        {"device", "gpu", ERR_VALUE},
        {"device", "cuda:", ERR_VALUE},
        {"device", "cuda:-1", ERR_VALUE},
        {"device", "cuda:1x", ERR_VALUE},
        {"device", "cuda:99999999999", ERR_VALUE},
        {"timeout_ms", "0", ERR_VALUE},
        {"timeout_ms", "", ERR_VALUE},
        {"timeout_ms", "-1", ERR_VALUE},
        {"timeout_ms", "1.5", ERR_VALUE},
        {"timeout_ms", "1e3", ERR_VALUE},
        {"timeout_ms", "9223372036854775808", ERR_VALUE},
        {"timeout_ms", "18446744073709551617", ERR_VALUE},
        {"diagnostics", "1", ERR_VALUE},
        {"conjugate", "True", ERR_VALUE},
        {"shape_a", "3,", ERR_VALUE},
        {"shape_b", "x", ERR_VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options;
        struct problem problem;
        char pointer[32] = "/";
        assert_int_equal(set(&options, cases[i].name, cases[i].value, &problem), cases[i].error);
        assert_int_equal(problem.error, cases[i].error);
        assert_string_equal(problem.pointer, strcat(pointer, cases[i].name));
        assert_non_null(strstr(problem.detail, cases[i].name));
        assert_int_equal(options.given, 0);
        assert_int_equal(options.device_index, -1);
        assert_string_equal(options.kernel, "");
    }
}

static void id_may_have_128_bytes_and_no_more(void **state)
{
    (void)state;
    struct options options;
    struct problem problem;
    char id[LIMIT_ID_BYTES + 2] = "";
    memset(id, 'x', LIMIT_ID_BYTES);
    assert_int_equal(set(&options, "id", id, &problem), ERR_OK);
    assert_string_equal(options.id, id);
    id[LIMIT_ID_BYTES] = 'x';
    assert_int_equal(set(&options, "id", id, &problem), ERR_VALUE);
    assert_string_equal(problem.detail, "id has 129 bytes, more than 128");
}

static void unknown_option_is_named_with_the_known_ones(void **state)
{
    (void)state;
    struct options options;
    struct problem problem;
    assert_int_equal(set(&options, "dtpye", "float32", &problem), ERR_OPTION);
    assert_non_null(strstr(problem.detail, "dtpye"));
    assert_non_null(strstr(problem.detail, "dtype, accuracy, kernel, result_dtype, device, "
                                           "timeout_ms, id, diagnostics, conjugate, shape_a, "
                                           "shape_b"));
    assert_string_equal(problem.pointer, "/dtpye");
}

static void option_given_twice_in_one_place_is_refused(void **state)
{
    (void)state;
    struct options options = fresh_options();
    struct problem problem;
    unsigned seen = 0;
    assert_int_equal(options_set(&options, &seen, "dtype", "f4", &problem), ERR_OK);
    assert_int_equal(options_set(&options, &seen, "dtype", "f4", &problem), ERR_OPTION);
    assert_non_null(strstr(problem.detail, "twice"));
}

static void two_places_may_agree_but_not_contradict(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *same, *other;
    } cases[] = {
        {"dtype", "f4", "float32", "float64"},
        {"dtype", "<f4", "FP32", ">f4"},
        {"accuracy", "fast", "fast", "exact"},
        {"kernel", "tree", "tree", "tre"},
        {"result_dtype", "f8", "FP64", "f4"},
        {"device", "cuda:1", "cuda:01", "cuda"},
        {"device", "cpu", "cpu", "auto"},
        {"timeout_ms", "5", "05", "6"},
        {"id", "x", "x", "xy"},
        {"diagnostics", "false", "false", "true"},
        {"conjugate", "true", "true", "false"},
        {"shape_a", "3,4", "3,4", "3"},
        {"shape_b", "3,4", "3,4", "4,3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options;
        struct problem problem;
        unsigned body = 0;
        assert_int_equal(set(&options, cases[i].name, cases[i].value, &problem), ERR_OK);
        assert_int_equal(options_set(&options, &body, cases[i].name, cases[i].other, &problem),
                         ERR_OPTION);
        assert_non_null(strstr(problem.detail, "contradicts"));
        assert_int_equal(body, 0);
        assert_int_equal(options_set(&options, &body, cases[i].name, cases[i].same, &problem),
                         ERR_OK);
    }
}

/* A request of pairs of these shapes, checked. The caller finishes it. */
static enum error check_shapes(struct request *request, size_t count,
                               const char *const (*shapes)[2], bool is_pairs, uint64_t max_results,
                               struct problem *problem)
{
    request_init(request, &buffer_heap);
    problem_clear(problem);
    assert_int_equal(request_pairs(request, count, problem), ERR_OK);
    request->is_pairs = is_pairs;
    for (size_t i = 0; i < count; i++) {
        struct tensor_pair *pair = &request->pair[i];
        pair->a.dtype = pair->b.dtype = DTYPE_FLOAT64;
        assert_int_equal(shape_parse(shapes[i][0], &pair->a.shape), ERR_OK);
        assert_int_equal(shape_parse(shapes[i][1], &pair->b.shape), ERR_OK);
    }
    return request_check(request, max_results, problem);
}

static void check_settles_defaults_and_counts(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"4,1,3", "5,3"}};
    struct request request;
    struct problem problem;
    assert_int_equal(check_shapes(&request, 1, shapes, false, 20, &problem), ERR_OK);
    assert_int_equal(request.options.dtype, DTYPE_FLOAT64);
    assert_int_equal(request.options.result_dtype, DTYPE_FLOAT64);
    assert_int_equal(request.result_count, 20);
    assert_int_equal(request.term_count, 60);
    assert_int_equal(request.pair[0].result.rank, 2);
    assert_int_equal(request.pair[0].result.dim[0], 4);
    assert_int_equal(request.pair[0].result.dim[1], 5);
    request_fini(&request);
}

/* Checks a request of one pair of these types, given as dtype or as operands of their own. */
static enum error check_types(enum dtype a, enum dtype b, enum dtype *result,
                              struct problem *problem)
{
    struct request request;
    request_init(&request, &buffer_heap);
    problem_clear(problem);
    request.options.dtype = a;
    request.options.result_dtype = *result;
    assert_int_equal(request_pairs(&request, 1, problem), ERR_OK);
    request.pair->a = (struct tensor){.dtype = a, .shape = {1, {3}}};
    request.pair->b = (struct tensor){.dtype = b, .shape = {1, {3}}};
    enum error err = request_check(&request, 1, problem);
    *result = request.options.result_dtype;
    request_fini(&request);
    return err;
}

static void check_gives_each_type_its_widest_result(void **state)
{
    (void)state;
    struct problem problem;
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        enum dtype result = DTYPE_UNKNOWN;
        assert_int_equal(check_types(dtype, dtype, &result, &problem), ERR_OK);
        assert_int_equal(result, dtype_is_integer(dtype)   ? DTYPE_INT64
                                 : dtype_is_complex(dtype) ? DTYPE_COMPLEX128
                                                           : DTYPE_FLOAT64);
    }
}

static void check_refuses_results_of_another_kind(void **state)
{
    (void)state;
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (enum dtype result = 0; result < DTYPE_COUNT; result++) {
            struct problem problem;
            enum dtype got = result;
            bool is_possible =
                dtype_is_complex(dtype) == dtype_is_complex(result) &&
                (!dtype_is_integer(result) || (result == DTYPE_INT64 && dtype_is_integer(dtype)));
            assert_int_equal(check_types(dtype, dtype, &got, &problem),
                             is_possible ? ERR_OK : ERR_VALUE);
            assert_string_equal(problem.pointer, is_possible ? "" : "/result_dtype");
            if (!is_possible)
                assert_non_null(strstr(problem.detail, dtype_name(result)));
        }
}

static void check_names_both_types_when_they_differ(void **state)
{
    (void)state;
    struct problem problem;
    enum dtype result = DTYPE_UNKNOWN;
    assert_int_equal(check_types(DTYPE_INT8, DTYPE_UINT8, &result, &problem), ERR_VALUE);
    assert_non_null(strstr(problem.detail, "a is int8 and b is uint8"));
}

static void check_numbers_the_results_of_pairs(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"3", "3"}, {"0", "0"}, {"5", "5"}};
    struct request request;
    struct problem problem;
    assert_int_equal(check_shapes(&request, 3, shapes, true, 3, &problem), ERR_OK);
    assert_int_equal(request.result_count, 3);
    assert_int_equal(request.term_count, 8);
    request_fini(&request);
    assert_int_equal(check_shapes(&request, 3, shapes, true, 2, &problem), ERR_TOO_LARGE);
    assert_string_equal(problem.detail, "the request asks for 3 results, more than 2");
    request_fini(&request);
}

static void check_refuses_more_results_than_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *const shapes[1][2];
        const char *asked; /* NULL: they are not too many */
    } cases[] = {
        {{{"19,3", "3"}}, NULL},
        {{{"20,3", "3"}}, "asks for 20 results, more than 19"},
        {{{"2147483648,1,3", "2147483648,3"}}, "asks for 4611686018427387904 results"},
        {{{"4294967296,1,3", "4294967296,3"}}, "asks for more than 2^63 results"},
        {{{"4294967296,1,1,3", "4294967296,4294967296,3"}}, "asks for more than 2^63 results"},
        /* No result at all, but a million lists would be written. */
        {{{"1000000,0,3", "3"}}, "asks for 1000000 results"},
        {{{"0,1000000,3", "3"}}, "asks for 1000000 results"},
        {{{"4294967296,4294967296,0,4294967296,3", "3"}}, "asks for more than 2^63 results"},
        {{{"19,0,3", "3"}}, NULL},
        {{{"2,0", "0"}}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(check_shapes(&request, 1, cases[i].shapes, false, 19, &problem),
                         cases[i].asked != NULL ? ERR_TOO_LARGE : ERR_OK);
        if (cases[i].asked != NULL) {
            assert_non_null(strstr(problem.detail, cases[i].asked));
            assert_int_equal(problem.limit, 19);
            assert_string_equal(problem.setting, "max_results");
        }
        request_fini(&request);
    }
}

static void check_refuses_more_terms_than_can_be_counted(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"4,9223372036854775807", "9223372036854775807"}};
    struct request request;
    struct problem problem;
    assert_int_equal(check_shapes(&request, 1, shapes, false, 100, &problem), ERR_TOO_LARGE);
    request_fini(&request);
}

static void check_names_the_pair_that_does_not_match(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"3", "3"}, {"2,3", "3"}, {"3", "4"}};
    struct request request;
    struct problem problem;
    assert_int_equal(check_shapes(&request, 1, shapes + 2, false, 100, &problem), ERR_SHAPE);
    assert_string_equal(problem.pointer, "");
    assert_non_null(strstr(problem.detail, "(3,)"));
    assert_non_null(strstr(problem.detail, "(4,)"));
    request_fini(&request);
    assert_int_equal(check_shapes(&request, 1, shapes + 2, true, 100, &problem), ERR_SHAPE);
    assert_string_equal(problem.pointer, "/pairs/0");
    request_fini(&request);
    assert_int_equal(check_shapes(&request, 2, shapes, true, 100, &problem), ERR_SHAPE);
    assert_string_equal(problem.pointer, "/pairs/1");
    request_fini(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_options_say_nothing),
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(device_words_are_read),
        cmocka_unit_test(wrong_values_are_refused_and_change_nothing),
        cmocka_unit_test(id_may_have_128_bytes_and_no_more),
        cmocka_unit_test(unknown_option_is_named_with_the_known_ones),
        cmocka_unit_test(option_given_twice_in_one_place_is_refused),
        cmocka_unit_test(two_places_may_agree_but_not_contradict),
        cmocka_unit_test(check_settles_defaults_and_counts),
        cmocka_unit_test(check_gives_each_type_its_widest_result),
        cmocka_unit_test(check_refuses_results_of_another_kind),
        cmocka_unit_test(check_names_both_types_when_they_differ),
        cmocka_unit_test(check_numbers_the_results_of_pairs),
        cmocka_unit_test(check_refuses_more_results_than_allowed),
        cmocka_unit_test(check_refuses_more_terms_than_can_be_counted),
        cmocka_unit_test(check_names_the_pair_that_does_not_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
