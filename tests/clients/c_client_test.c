/* The C client against a server: c_client_test URL [NAME]; test_c.py starts the server and says
 * which.
 */
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "dotd.h"

static const char *url;

/* ---- helpers ---- */

static struct dotd *opened(struct dotd_config config)
{
    struct dotd *client = NULL;
    struct dotd_error error;
    config.size = sizeof config;
    config.url = url;
    assert_int_equal(dotd_open(&client, &config, &error), DOTD_OK);
    return client;
}

static struct dotd_options of_type(enum dotd_dtype dtype)
{
    return (struct dotd_options){.size = sizeof(struct dotd_options), .dtype = dtype};
}

/* One call on a client of its own; fails the test when it fails. */
static struct dotd_result computed(const void *a, const void *b, size_t n,
                                   const struct dotd_options *options)
{
    struct dotd *client = opened((struct dotd_config){0});
    struct dotd_error error = {.code = DOTD_OK};
    struct dotd_result result = {0};
    if (dotd_dot(client, a, b, n, options, &result, &error) != DOTD_OK)
        fail_msg("%d %s: %s", error.status, error.name, error.detail);
    dotd_close(client);
    return result;
}

/* Likewise one that must fail. */
static struct dotd_error refused(const void *a, const void *b, size_t n,
                                 const struct dotd_options *options, struct dotd_config config)
{
    struct dotd *client = opened(config);
    struct dotd_error error = {.code = DOTD_OK};
    struct dotd_result untouched = {.count = 77};
    enum dotd_code code = dotd_dot(client, a, b, n, options, &untouched, &error);
    assert_int_not_equal(code, DOTD_OK);
    assert_int_equal(code, error.code);
    assert_int_equal(untouched.count, 77);
    dotd_close(client);
    return error;
}

static const double ones[4] = {1, 1, 1, 1};

static double dot_of_ones(struct dotd *client)
{
    struct dotd_error error;
    struct dotd_result result;
    if (dotd_dot(client, ones, ones, 1, NULL, &result, &error) != DOTD_OK)
        fail_msg("%d %s: %s", error.status, error.name, error.detail);
    double value = result.number[0].value;
    dotd_result_clear(&result);
    return value;
}

/* ---- against dotd ---- */

/* 1, 2, 3 and 4, 5, 6 in every type: 32. */
static void every_type_is_exact(void **state)
{
    static const uint16_t half[2][3] = {{0x3c00, 0x4000, 0x4200}, {0x4400, 0x4500, 0x4600}};
    static const uint16_t brain[2][3] = {{0x3f80, 0x4000, 0x4040}, {0x4080, 0x40a0, 0x40c0}};
    static const float single[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const double wide[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const int8_t tiny[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const int32_t word[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const int64_t large[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const struct {
        enum dotd_dtype dtype;
        const void *a, *b;
    } cases[] = {
        {DOTD_FLOAT16, half[0], half[1]},     {DOTD_BFLOAT16, brain[0], brain[1]},
        {DOTD_FLOAT32, single[0], single[1]}, {DOTD_FLOAT64, wide[0], wide[1]},
        {DOTD_DEFAULT, wide[0], wide[1]},     {DOTD_INT8, tiny[0], tiny[1]},
        {DOTD_UINT8, tiny[0], tiny[1]},       {DOTD_INT32, word[0], word[1]},
        {DOTD_INT64, large[0], large[1]},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dotd_options options = of_type(cases[i].dtype);
        struct dotd_result result = computed(cases[i].a, cases[i].b, 3, &options);
        bool is_integer = cases[i].dtype >= DOTD_INT8;
        assert_int_equal(result.dtype, is_integer ? DOTD_INT64 : DOTD_FLOAT64);
        assert_int_equal(result.count, 1);
        assert_int_equal(result.shape.rank, 0);
        assert_true(result.number[0].value == 32);
        assert_true(result.number[0].bits[0] == (is_integer ? 32 : 0x4040000000000000));
        assert_true(result.number[0].error_bound == 0);
        assert_int_equal(result.flags, 0);
        assert_string_equal(result.kernel, "exact");
        assert_string_equal(result.device, "cpu");
        assert_true(result.device_name[0] != '\0' && result.batch_size >= 1);
        assert_true(isnan(result.number[0].sum_abs) && isnan(result.number[0].condition));
        dotd_result_clear(&result);
    }
}

static void complex_numbers_are_two(void **state)
{
    static const float a[] = {1, 2, 0, -1}, b[] = {3, 4, 5, 0}; /* (1+2i)(3+4i) + (-i)(5) */
    static const double expected[2][2] = {{-5, 5}, {11, 3}};
    (void)state;
    for (int conjugate = 0; conjugate < 2; conjugate++) {
        struct dotd_options options = of_type(DOTD_COMPLEX64);
        options.conjugate = conjugate;
        struct dotd_result result = computed(a, b, 2, &options);
        assert_int_equal(result.dtype, DOTD_COMPLEX128);
        assert_int_equal(result.count, 2);
        assert_true(result.number[0].value == expected[conjugate][0]);
        assert_true(result.number[1].value == expected[conjugate][1]);
        dotd_result_clear(&result);
    }
}

static void integers_beyond_64_bits_have_all_of_them(void **state)
{
    static const int64_t a[] = {INT64_MAX, 1}, b[] = {INT64_MAX, 2}, c[] = {INT64_MIN, 0};
    struct dotd_options options = of_type(DOTD_INT64);
    (void)state;
    struct dotd_result result = computed(a, b, 2, &options); /* 2^126 - 2^64 + 3 */
    assert_true(result.number[0].bits[0] == 3);
    assert_true(result.number[0].bits[1] == 0x3fffffffffffffff);
    assert_true(result.number[0].bits[2] == 0);
    assert_true(result.number[0].value == 0x1p126);
    dotd_result_clear(&result);
    result = computed(c, a, 2, &options); /* -2^126 + 2^63 */
    assert_true(result.number[0].bits[0] == 0x8000000000000000);
    assert_true(result.number[0].bits[1] == 0xc000000000000000);
    assert_true(result.number[0].bits[2] == UINT64_MAX);
    dotd_result_clear(&result);
    result = computed(c, b + 1, 1, &options); /* -2^64 */
    assert_true(result.number[0].bits[0] == 0 && result.number[0].bits[1] == UINT64_MAX);
    assert_true(result.number[0].value == -0x1p64);
    dotd_result_clear(&result);
    result = computed(c + 1, b, 1, &options);
    assert_true(result.number[0].bits[0] == 0 && result.number[0].bits[2] == 0);
    dotd_result_clear(&result);
}

static void a_small_negative_integer_is_extended_to_192_bits(void **state)
{
    static const int8_t a[] = {-1}, b[] = {5};
    struct dotd_options options = of_type(DOTD_INT8);
    (void)state;
    struct dotd_result result = computed(a, b, 1, &options);
    assert_true(result.number[0].value == -5);
    assert_true(result.number[0].bits[0] == (uint64_t)-5);
    assert_true(result.number[0].bits[1] == UINT64_MAX && result.number[0].bits[2] == UINT64_MAX);
    dotd_result_clear(&result);
}

static void results_of_every_type_are_what_their_bits_say(void **state)
{
    static const double a[] = {0.1, 1e-7, 65519, -0.0}, b[] = {1};
    static const struct {
        enum dotd_dtype dtype;
        uint64_t bits;
        double value;
    } cases[] = {
        {DOTD_FLOAT16, 0x2e66, 0.0999755859375},
        {DOTD_BFLOAT16, 0x3dcd, 0.10009765625},
        {DOTD_FLOAT32, 0x3dcccccd, 0.100000001490116119384765625},
        {DOTD_FLOAT64, 0x3fb999999999999a, 0.1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dotd_options options = of_type(DOTD_FLOAT64);
        options.result_dtype = cases[i].dtype;
        options.shape_a = (struct dotd_shape){.rank = 2, .dim = {4, 1}};
        options.shape_b = (struct dotd_shape){.rank = 1, .dim = {1}};
        struct dotd_result result = computed(a, b, 0, &options);
        assert_int_equal(result.dtype, cases[i].dtype);
        assert_int_equal(result.count, 4);
        assert_true(result.number[0].bits[0] == cases[i].bits);
        assert_true(result.number[0].value == cases[i].value);
        assert_true(fabs(result.number[1].value - 1e-7) <= 1e-7);
        assert_true(result.number[0].error_bound >= fabs(0.1 - cases[i].value));
        assert_int_equal(result.flags & DOTD_OVERFLOW, 0);
        dotd_result_clear(&result);
    }
}

static void shapes_broadcast(void **state)
{
    static const float a[] = {1, 2, 3, 4}, b[] = {10, 1, 1, 10, 1, 1}; /* (2,1,2) with (3,2) */
    static const double expected[] = {12, 21, 3, 34, 43, 7};
    struct dotd_options options = of_type(DOTD_FLOAT32);
    (void)state;
    options.shape_a = (struct dotd_shape){.rank = 3, .dim = {2, 1, 2}};
    options.shape_b = (struct dotd_shape){.rank = 2, .dim = {3, 2}};
    struct dotd_result result = computed(a, b, 0, &options);
    assert_int_equal(result.count, 6);
    assert_int_equal(result.shape.rank, 2);
    assert_true(result.shape.dim[0] == 2 && result.shape.dim[1] == 3);
    for (int i = 0; i < 6; i++)
        assert_true(result.number[i].value == expected[i]);
    dotd_result_clear(&result);
}

static void empty_vectors_are_zero(void **state)
{
    (void)state;
    struct dotd_result result = computed(NULL, NULL, 0, NULL);
    assert_true(result.count == 1 && result.number[0].value == 0);
    dotd_result_clear(&result);
    struct dotd_options options = of_type(DOTD_FLOAT64);
    options.shape_a = (struct dotd_shape){.rank = 2, .dim = {0, 1}};
    options.shape_b = (struct dotd_shape){.rank = 1, .dim = {1}};
    result = computed(NULL, ones, 0, &options);
    assert_int_equal(result.count, 0);
    dotd_result_clear(&result);
}

static void what_is_not_finite_says_so(void **state)
{
    static const double a[] = {1e300, 1e300}, b[] = {1e300, 1e300};
    const double c[] = {INFINITY}, zero[] = {0};
    (void)state;
    struct dotd_result result = computed(a, b, 2, NULL);
    assert_true(isinf(result.number[0].value) && isinf(result.number[0].error_bound));
    assert_int_equal(result.flags, DOTD_INEXACT | DOTD_OVERFLOW);
    dotd_result_clear(&result);
    result = computed(c, zero, 1, NULL);
    assert_true(isnan(result.number[0].value));
    assert_int_equal(result.flags, DOTD_INVALID);
    dotd_result_clear(&result);
}

static void options_reach_the_service(void **state)
{
    static const float a[] = {3, -1}, b[] = {1, 1};
    struct dotd_options options = of_type(DOTD_FLOAT32);
    (void)state;
    options.id = "r 17/\"\xc3\xa4";
    options.diagnostics = 1;
    options.accuracy = "fast";
    options.device = "cpu";
    struct dotd_result result = computed(a, b, 2, &options);
    assert_string_equal(result.id, options.id);
    assert_true(result.number[0].sum_abs == 4 && result.number[0].condition == 2);
    assert_string_not_equal(result.kernel, "exact");
    dotd_result_clear(&result);
    options.accuracy = NULL;
    options.kernel = "tree";
    result = computed(a, b, 2, &options);
    assert_string_equal(result.kernel, "tree");
    dotd_result_clear(&result);
}

static void timing_adds_up(void **state)
{
    (void)state;
    struct dotd_result result = computed(ones, ones, 4, NULL);
    struct dotd_timing t = result.timing_us;
    double sum = t.receive + t.decode + t.queue + t.copy_in + t.compute + t.copy_out;
    assert_true(t.total > 0 && fabs(sum - t.total) < 0.01);
    dotd_result_clear(&result);
}

static void a_problem_is_told_in_full(void **state)
{
    struct dotd_options options = of_type(DOTD_FLOAT64);
    (void)state;
    options.id = "r-18";
    options.shape_a = (struct dotd_shape){.rank = 1, .dim = {2}};
    options.shape_b = (struct dotd_shape){.rank = 1, .dim = {3}};
    struct dotd_error error = refused(ones, ones, 0, &options, (struct dotd_config){0});
    assert_int_equal(error.code, DOTD_REFUSED);
    assert_int_equal(error.status, 422);
    assert_string_equal(error.name, "length-mismatch");
    assert_true(error.title[0] != '\0' && strstr(error.detail, "(2,)") != NULL);
    assert_true(error.offset == -1 && error.limit == -1 && error.retry_after_s == -1);
    assert_string_equal(error.id, "r-18");
}

static void wrong_arguments_are_refused_unsent(void **state)
{
    struct dotd_options options = of_type((enum dotd_dtype)99);
    struct dotd_config config = {0};
    (void)state;
    assert_int_equal(refused(ones, ones, 1, &options, config).code, DOTD_BAD_ARGUMENT);
    options = of_type(DOTD_FLOAT64);
    assert_int_equal(refused(NULL, ones, 1, &options, config).code, DOTD_BAD_ARGUMENT);
    assert_int_equal(refused(ones, ones, SIZE_MAX, &options, config).code, DOTD_BAD_ARGUMENT);
    options.shape_a.rank = 1;
    assert_int_equal(refused(ones, ones, 1, &options, config).code, DOTD_BAD_ARGUMENT);
    options.shape_b.rank = DOTD_RANK_MAX + 1;
    assert_int_equal(refused(ones, ones, 1, &options, config).code, DOTD_BAD_ARGUMENT);
}

static void wrong_addresses_and_tokens_open_nothing(void **state)
{
    static const char *const bad[] = {"127.0.0.1:80", "ftp://x", "http://x?y", "http://x y", NULL};
    struct dotd_config config = {.size = sizeof config};
    struct dotd_error error;
    struct dotd *client = NULL;
    (void)state;
    for (int i = 0; i < 5; i++) {
        config.url = bad[i];
        assert_int_equal(dotd_open(&client, &config, &error), DOTD_BAD_ARGUMENT);
        assert_true(error.code == DOTD_BAD_ARGUMENT && error.detail[0] != '\0');
    }
    config.url = url;
    config.token = "a\r\nb";
    assert_int_equal(dotd_open(&client, &config, NULL), DOTD_BAD_ARGUMENT);
    assert_null(client);
    dotd_close(NULL);
}

static void callers_that_know_fewer_fields_are_served(void **state)
{
    struct dotd_options options = of_type(DOTD_FLOAT64);
    (void)state;
    options.size = offsetof(struct dotd_options, accuracy);
    options.accuracy = "beyond what this caller knows";
    struct dotd_result result = computed(ones, ones, 4, &options);
    assert_true(result.number[0].value == 4);
    dotd_result_clear(&result);
}

static void large_operands_stream(void **state)
{
    size_t n = 4 << 20;
    float *a = malloc(n * sizeof *a);
    struct dotd_options options = of_type(DOTD_FLOAT32);
    (void)state;
    assert_non_null(a);
    for (size_t i = 0; i < n; i++)
        a[i] = 0.5f;
    struct dotd *client = opened((struct dotd_config){0});
    for (int i = 0; i < 2; i++) {
        struct dotd_result result;
        assert_int_equal(dotd_dot(client, a, a, n, &options, &result, NULL), DOTD_OK);
        assert_true(result.number[0].value == 0.25 * (double)n);
        dotd_result_clear(&result);
    }
    dotd_close(client);
    free(a);
}

static void many_calls_at_once_are_each_answered(void **state)
{
    enum { CALLS = 200 };
    static float a[CALLS][2];
    static const float b[] = {2, 3};
    struct dotd_config config = {.size = sizeof config, .url = url};
    struct dotd_options options = of_type(DOTD_FLOAT32);
    struct dotd_multi *multi;
    int seen = 0;
    (void)state;
    assert_int_equal(dotd_multi_open(&multi, &config, NULL), DOTD_OK);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CALLS; i++) {
            a[i][0] = (float)i;
            a[i][1] = 1;
            options.shape_a.rank = options.shape_b.rank = 0;
            if (i % 10 == 9) /* one in ten is refused */
                options.shape_a = options.shape_b = (struct dotd_shape){.rank = 1, .dim = {2}};
            if (i % 10 == 9)
                options.shape_b.dim[0] = 1;
            assert_int_equal(dotd_multi_add(multi, a[i], b, 2, &options, a[i], NULL), DOTD_OK);
        }
        assert_int_equal(dotd_multi_pending(multi), CALLS);
        while (dotd_multi_pending(multi) > 0) {
            struct pollfd ready = {.fd = dotd_multi_fd(multi), .events = POLLIN};
            struct dotd_result result;
            struct dotd_error error;
            enum dotd_code code;
            void *tag;
            assert_int_equal(poll(&ready, 1, 60000), 1);
            dotd_multi_step(multi);
            while (dotd_multi_next(multi, &tag, &code, &result, &error)) {
                float *row = tag;
                seen++;
                if ((int)row[0] % 10 == 9) {
                    assert_int_equal(code, DOTD_REFUSED);
                    assert_int_equal(error.status, 422);
                    continue;
                }
                assert_int_equal(code, DOTD_OK);
                assert_true(result.number[0].value == 2.0 * (double)row[0] + 3);
                dotd_result_clear(&result);
            }
        }
    }
    assert_int_equal(seen, 2 * CALLS);
    dotd_multi_close(multi);
}

static void calls_that_are_given_up_leave_nothing(void **state)
{
    struct dotd_config config = {.size = sizeof config, .url = url};
    struct dotd_multi *multi;
    (void)state;
    assert_int_equal(dotd_multi_open(&multi, &config, NULL), DOTD_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(dotd_multi_add(multi, ones, ones, 4, NULL, NULL, NULL), DOTD_OK);
    dotd_multi_step(multi);
    assert_int_equal(dotd_multi_add(multi, NULL, ones, 4, NULL, NULL, NULL), DOTD_BAD_ARGUMENT);
    dotd_multi_close(multi);
    dotd_multi_close(NULL);
}

/* ---- against planted answers; test_c.py plants those of each name ---- */

static void planted_retries_come_when_they_are_told(void **state)
{
    (void)state;
    struct dotd *client = opened((struct dotd_config){.token = "s3cr.et"});
    assert_true(dot_of_ones(client) == 3);
    dotd_close(client);
}

static void planted_retries_end(void **state)
{
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, (struct dotd_config){.retries = 1});
    assert_int_equal(error.status, 503);
    assert_string_equal(error.name, "busy");
}

static void planted_retries_may_be_forbidden(void **state)
{
    struct dotd_config config = {.retries = DOTD_NO_RETRY};
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, config);
    assert_int_equal(error.status, 503);
    assert_int_equal(error.retry_after_s, 1);
}

static void planted_retries_that_would_come_too_late_are_not_made(void **state)
{
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, (struct dotd_config){0});
    assert_int_equal(error.retry_after_s, 3600);
}

static void planted_ends_before_an_answer_are_tried_again(void **state)
{
    (void)state;
    struct dotd *client = opened((struct dotd_config){0});
    assert_true(dot_of_ones(client) == 3);
    dotd_close(client);
}

static void planted_calls_share_a_connection(void **state)
{
    (void)state;
    struct dotd *client = opened((struct dotd_config){0});
    for (int i = 0; i < 5; i++)
        assert_true(dot_of_ones(client) == i);
    dotd_close(client);
}

static void planted_silence_ends_with_the_timeout(void **state)
{
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, (struct dotd_config){.timeout_ms = 200});
    assert_int_equal(error.code, DOTD_LATE);
    assert_int_equal(error.status, 0);
}

static void planted_silence_ends_with_the_timeout_of_each(void **state)
{
    struct dotd_config config = {.size = sizeof config, .url = url, .timeout_ms = 200};
    struct dotd_multi *multi;
    struct dotd_result result;
    struct dotd_error error;
    enum dotd_code code;
    void *tag = NULL;
    (void)state;
    assert_int_equal(dotd_multi_open(&multi, &config, NULL), DOTD_OK);
    assert_int_equal(dotd_multi_add(multi, ones, ones, 1, NULL, &config, NULL), DOTD_OK);
    while (!dotd_multi_next(multi, &tag, &code, &result, &error))
        dotd_multi_wait(multi, -1);
    assert_int_equal(code, DOTD_LATE);
    assert_ptr_equal(tag, &config);
    dotd_multi_close(multi);
}

static void planted_deadlines_of_the_service_are_late(void **state)
{
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, (struct dotd_config){0});
    assert_int_equal(error.code, DOTD_LATE);
    assert_int_equal(error.status, 504);
    assert_string_equal(error.detail, "not ready \xc3\xa4\n\"\\");
}

static void planted_nonsense_is_a_bad_answer(void **state)
{
    struct dotd *client = opened((struct dotd_config){0});
    (void)state;
    for (int i = 0; i < 15; i++) {
        struct dotd_error error;
        struct dotd_result result;
        enum dotd_code code = dotd_dot(client, ones, ones, 1, NULL, &result, &error);
        if (code != DOTD_BAD_ANSWER)
            fail_msg("answer %d: %d %s", i, code, code != DOTD_OK ? error.detail : "was taken");
    }
    dotd_close(client);
}

static void planted_words_of_a_proxy_are_told(void **state)
{
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, (struct dotd_config){0});
    assert_int_equal(error.code, DOTD_REFUSED);
    assert_int_equal(error.status, 502);
    assert_string_equal(error.detail, "<h1>Bad Gateway</h1>");
}

static void planted_nobody_is_unreachable(void **state)
{
    (void)state;
    struct dotd_error error = refused(ones, ones, 1, NULL, (struct dotd_config){0});
    assert_int_equal(error.code, DOTD_UNREACHABLE);
    assert_true(error.detail[0] != '\0');
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_exact),
        cmocka_unit_test(complex_numbers_are_two),
        cmocka_unit_test(integers_beyond_64_bits_have_all_of_them),
        cmocka_unit_test(a_small_negative_integer_is_extended_to_192_bits),
        cmocka_unit_test(results_of_every_type_are_what_their_bits_say),
        cmocka_unit_test(shapes_broadcast),
        cmocka_unit_test(empty_vectors_are_zero),
        cmocka_unit_test(what_is_not_finite_says_so),
        cmocka_unit_test(options_reach_the_service),
        cmocka_unit_test(timing_adds_up),
        cmocka_unit_test(a_problem_is_told_in_full),
        cmocka_unit_test(wrong_arguments_are_refused_unsent),
        cmocka_unit_test(wrong_addresses_and_tokens_open_nothing),
        cmocka_unit_test(callers_that_know_fewer_fields_are_served),
        cmocka_unit_test(large_operands_stream),
        cmocka_unit_test(many_calls_at_once_are_each_answered),
        cmocka_unit_test(calls_that_are_given_up_leave_nothing),
        cmocka_unit_test(planted_retries_come_when_they_are_told),
        cmocka_unit_test(planted_retries_end),
        cmocka_unit_test(planted_retries_may_be_forbidden),
        cmocka_unit_test(planted_retries_that_would_come_too_late_are_not_made),
        cmocka_unit_test(planted_ends_before_an_answer_are_tried_again),
        cmocka_unit_test(planted_calls_share_a_connection),
        cmocka_unit_test(planted_silence_ends_with_the_timeout),
        cmocka_unit_test(planted_silence_ends_with_the_timeout_of_each),
        cmocka_unit_test(planted_deadlines_of_the_service_are_late),
        cmocka_unit_test(planted_nonsense_is_a_bad_answer),
        cmocka_unit_test(planted_words_of_a_proxy_are_told),
        cmocka_unit_test(planted_nobody_is_unreachable),
    };
    if (argc < 2)
        return 2;
    url = argv[1];
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
