/* result_test.c - answers: rounding, every field, and JSON that is always strict. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "proto/result.h"

enum { VALUES = 12 };

/* An answer with everything that it borrows. */
struct answer {
    struct request request;
    struct tensor_pair pair[VALUES];
    struct dot_value value[VALUES];
    struct result result;
    struct text text;
};

/* One dot product of three float32 elements, 32, computed in known times. */
static int make_answer(void **state)
{
    struct answer *answer = calloc(1, sizeof *answer);
    assert_non_null(answer);
    request_init(&answer->request, &buffer_heap);
    answer->request.options.dtype = DTYPE_FLOAT32;
    answer->request.options.result_dtype = DTYPE_FLOAT64;
    answer->request.pair = answer->pair;
    answer->request.pair_count = 1;
    answer->request.result_count = 1;
    answer->pair[0].a.shape = answer->pair[0].b.shape = (struct shape){1, {3}};
    answer->value[0] = (struct dot_value){.sum = 32, .sum_abs = 32};
    answer->result = (struct result){
        .request = &answer->request,
        .value = answer->value,
        .accuracy = ACCURACY_FAST,
        .kernel = "cpu-avx512",
        .device = "cpu",
        .device_name = "A \"CPU\"",
        .batch_size = 1,
        .timing = {11000, 2100, 3900, 0, 601, 0},
    };
    text_init(&answer->text);
    *state = answer;
    return 0;
}

static int free_answer(void **state)
{
    struct answer *answer = *state;
    answer->request.pair = NULL; /* not from the heap */
    request_fini(&answer->request);
    text_fini(&answer->text);
    free(answer);
    return 0;
}

/* Makes it (rows, cols) results of values first, first + 1, ... */
static void make_matrix(struct answer *answer, uint64_t rows, uint64_t cols, double first)
{
    answer->pair[0].a.shape = (struct shape){3, {rows, 1, 3}};
    answer->pair[0].b.shape = (struct shape){2, {cols, 3}};
    answer->pair[0].result = (struct shape){2, {rows, cols}};
    answer->request.result_count = rows * cols;
    for (uint64_t i = 0; i < rows * cols; i++)
        answer->value[i] = (struct dot_value){.sum = first + (double)i};
}

/* Strict JSON whatever the flags say: they tell how jansson holds a number. */
static json_t *encode_flags(struct answer *answer, size_t flags)
{
    json_error_t error;
    text_clear(&answer->text);
    result_encode_json(&answer->result, &answer->text);
    assert_false(answer->text.failed);
    json_t *json =
        json_loadb(answer->text.data, answer->text.size, JSON_REJECT_DUPLICATES | flags, &error);
    if (json == NULL)
        print_error("%s\n%s\n", error.text, answer->text.data);
    assert_non_null(json);
    return json;
}

static json_t *encode(struct answer *answer)
{
    return encode_flags(answer, 0);
}

static void encode_raw(struct answer *answer)
{
    struct problem problem;
    assert_int_equal(result_encode_raw(&answer->result, &answer->text, &problem), ERR_OK);
}

/* The field, as jansson prints it. */
static void check_field(struct answer *answer, const char *name, const char *expected)
{
    json_t *json = encode(answer);
    json_t *field = json_object_get(json, name);
    if (expected == NULL) {
        assert_null(field);
    } else {
        assert_non_null(field);
        char *text = json_dumps(field, JSON_ENCODE_ANY | JSON_COMPACT);
        assert_non_null(text);
        assert_string_equal(text, expected);
        free(text);
    }
    json_decref(json);
}

static void check_text(struct answer *answer, const char *expected)
{
    text_append(&answer->text, "", 0); /* so that there is a NUL when nothing was written */
    assert_string_equal(answer->text.data, expected);
    text_clear(&answer->text);
}

static void scalar_answer_has_every_field_in_order(void **state)
{
    struct answer *answer = *state;
    answer->value[0].error_bound = 0.25;
    answer->value[0].flags = FLAG_INEXACT;
    answer->request.options.given |= OPTION_ID;
    strcpy(answer->request.options.id, "r-17");
    json_decref(encode(answer));
    check_text(answer,
               "{\"result\": 32.0, \"bits\": \"0x4040000000000000\", \"shape\": [], \"n\": 3, "
               "\"dtype\": \"float32\", \"result_dtype\": \"float64\", \"accuracy\": \"fast\", "
               "\"error_bound\": 0.25, \"flags\": [\"inexact\"], \"kernel\": \"cpu-avx512\", "
               "\"device\": \"cpu\", \"device_name\": \"A \\\"CPU\\\"\", \"batch_size\": 1, "
               "\"timing_us\": {\"receive\": 11.000, \"decode\": 2.100, \"queue\": 3.900, "
               "\"copy_in\": 0.000, \"compute\": 0.601, \"copy_out\": 0.000, \"total\": 17.601}, "
               "\"id\": \"r-17\"}");
}

static void id_is_echoed_only_when_given(void **state)
{
    struct answer *answer = *state;
    check_field(answer, "id", NULL);
    answer->request.options.given |= OPTION_ID;
    check_field(answer, "id", "\"\"");
    strcpy(answer->request.options.id, "\"\\\n\xff");
    check_field(answer, "id", "\"\\\"\\\\\\n\xef\xbf\xbd\"");
}

static void results_nest_as_their_shape(void **state)
{
    struct answer *answer = *state;
    make_matrix(answer, 2, 3, 1);
    answer->value[4].error_bound = 0.5;
    check_field(answer, "result", "[[1.0,2.0,3.0],[4.0,5.0,6.0]]");
    check_field(answer, "bits",
                "[[\"0x3ff0000000000000\",\"0x4000000000000000\",\"0x4008000000000000\"],"
                "[\"0x4010000000000000\",\"0x4014000000000000\",\"0x4018000000000000\"]]");
    check_field(answer, "shape", "[2,3]");
    check_field(answer, "n", "3");
    check_field(answer, "error_bound", "[[0.0,0.0,0.0],[0.0,0.5,0.0]]");
    check_field(answer, "result_text", NULL);
}

static void empty_shapes_nest_too(void **state)
{
    struct answer *answer = *state;
    make_matrix(answer, 2, 0, 1);
    check_field(answer, "result", "[[],[]]");
    check_field(answer, "shape", "[2,0]");
    check_field(answer, "flags", "[]");
    make_matrix(answer, 0, 2, 1);
    check_field(answer, "result", "[]");
    check_field(answer, "error_bound", "[]");
}

static void pairs_answer_lists_one_result_each(void **state)
{
    struct answer *answer = *state;
    answer->request.is_pairs = true;
    answer->request.pair_count = answer->request.result_count = 2;
    answer->pair[1].a.shape = answer->pair[1].b.shape = (struct shape){1, {0}};
    check_field(answer, "result", "[32.0,0.0]");
    check_field(answer, "n", "[3,0]");
    check_field(answer, "shape", "[2]");
    check_field(answer, "bits", "[\"0x4040000000000000\",\"0x0000000000000000\"]");
    text_clear(&answer->text);
    result_header_shape(&answer->result, &answer->text);
    check_text(answer, "2");
    answer->request.pair_count = answer->request.result_count = 0;
    check_field(answer, "result", "[]");
    check_field(answer, "n", "[]");
}

static void non_finite_results_are_null_with_a_text(void **state)
{
    struct answer *answer = *state;
    answer->value[0].sum = -INFINITY;
    answer->value[0].error_bound = INFINITY;
    check_field(answer, "result", "null");
    check_field(answer, "result_text", "\"-Infinity\"");
    check_field(answer, "bits", "\"0xfff0000000000000\"");
    check_field(answer, "error_bound", "null");
    answer->value[0].sum = -(double)NAN;
    answer->value[0].error_bound = (double)NAN;
    check_field(answer, "result", "null");
    check_field(answer, "result_text", "\"NaN\"");
    check_field(answer, "bits", "\"0x7ff8000000000000\"");
    check_field(answer, "error_bound", "null");
    make_matrix(answer, 1, 3, 1);
    answer->value[1].sum = INFINITY;
    check_field(answer, "result", "[[1.0,null,3.0]]");
    check_field(answer, "result_text", "[[null,\"Infinity\",null]]");
}

static void diagnostics_add_two_fields(void **state)
{
    struct answer *answer = *state;
    check_field(answer, "sum_abs", NULL);
    check_field(answer, "condition", NULL);
    answer->request.options.diagnostics = true;
    make_matrix(answer, 1, 5, -2);
    for (int i = 0; i < 5; i++)
        answer->value[i].sum_abs = 3;
    answer->value[3].sum_abs = INFINITY;
    answer->value[4].sum = (double)NAN;
    check_field(answer, "sum_abs", "[[3.0,3.0,3.0,null,3.0]]");
    check_field(answer, "condition", "[[1.5,3.0,null,null,null]]");
    answer->value[2].sum_abs = 0; /* 0/0 */
    check_field(answer, "condition", "[[1.5,3.0,null,null,null]]");
}

static void flags_are_the_union_in_alphabetical_order(void **state)
{
    struct answer *answer = *state;
    make_matrix(answer, 1, 3, 1);
    answer->value[0].flags = FLAG_UNDERFLOW | FLAG_NAN_INPUT;
    answer->value[1].flags = FLAG_OVERFLOW | FLAG_INEXACT;
    answer->value[2].flags = FLAG_INVALID;
    check_field(answer, "flags",
                "[\"inexact\",\"invalid\",\"nan_input\",\"overflow\",\"underflow\"]");
    text_clear(&answer->text);
    result_header_flags(&answer->result, &answer->text);
    check_text(answer, "inexact,invalid,nan_input,overflow,underflow");
    answer->value[1].flags = answer->value[2].flags = 0;
    result_header_flags(&answer->result, &answer->text);
    check_text(answer, "nan_input,underflow");
    answer->value[0].flags = 0;
    result_header_flags(&answer->result, &answer->text);
    check_text(answer, "");
}

static void float32_results_print_in_their_own_shortest_form(void **state)
{
    struct answer *answer = *state;
    answer->request.options.result_dtype = DTYPE_FLOAT32;
    answer->value[0].sum = 0.1;
    result_round(&answer->result);
    json_decref(encode(answer));
    assert_non_null(strstr(answer->text.data, "\"result\": 0.1, \"bits\": \"0x3dcccccd\","));
    answer->value[0].sum = (double)NAN;
    check_field(answer, "bits", "\"0x7fc00000\"");
    answer->value[0].sum = -0.0;
    check_field(answer, "bits", "\"0x80000000\"");
    check_field(answer, "result", "-0.0");
}

/* Rounds one value to float32. */
static struct dot_value rounded(struct answer *answer, double sum, double bound, unsigned flags)
{
    answer->request.options.result_dtype = DTYPE_FLOAT32;
    answer->value[0] = (struct dot_value){.sum = sum, .error_bound = bound, .flags = flags};
    result_round(&answer->result);
    return answer->value[0];
}

static void sixteen_bit_results_print_in_their_own_shortest_form(void **state)
{
    struct answer *answer = *state;
    static const struct {
        enum dtype dtype;
        double sum;
        const char *result, *bits;
    } cases[] = {
        {DTYPE_FLOAT16, 0.1, "0.1", "0x2e66"},         {DTYPE_FLOAT16, 65504, "65500.0", "0x7bff"},
        {DTYPE_FLOAT16, -0x1p-24, "-6e-08", "0x8001"}, {DTYPE_BFLOAT16, 0.1, "0.1", "0x3dcd"},
        {DTYPE_BFLOAT16, 3e38, "3e+38", "0x7f62"},     {DTYPE_BFLOAT16, -0.0, "-0.0", "0x8000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[64];
        answer->request.options.result_dtype = cases[i].dtype;
        answer->value[0] = (struct dot_value){.sum = cases[i].sum};
        result_round(&answer->result);
        json_decref(encode(answer));
        snprintf(want, sizeof want, "{\"result\": %s, \"bits\": \"%s\",", cases[i].result,
                 cases[i].bits);
        assert_int_equal(strncmp(answer->text.data, want, strlen(want)), 0);
    }
    answer->value[0].sum = -(double)NAN;
    check_field(answer, "bits", "\"0x7fc0\"");
    answer->request.options.result_dtype = DTYPE_FLOAT16;
    check_field(answer, "bits", "\"0x7e00\"");
}

static void complex_results_are_pairs(void **state)
{
    struct answer *answer = *state;
    answer->request.options.dtype = answer->request.options.result_dtype = DTYPE_COMPLEX64;
    make_matrix(answer, 1, 2, 1);
    for (int i = 0; i < 4; i++) /* two values a result */
        answer->value[i] = (struct dot_value){.sum = i - 2, .error_bound = i * 0.25};
    check_field(answer, "result", "[[[-2.0,-1.0],[0.0,1.0]]]");
    check_field(answer, "bits",
                "[[[\"0xc0000000\",\"0xbf800000\"],[\"0x00000000\",\"0x3f800000\"]]]");
    check_field(answer, "error_bound", "[[[0.0,0.25],[0.5,0.75]]]");
    check_field(answer, "shape", "[1,2]");
    answer->value[2].sum = INFINITY;
    answer->value[3].flags = FLAG_INEXACT;
    check_field(answer, "result", "[[[-2.0,-1.0],[null,1.0]]]");
    check_field(answer, "result_text", "[[[null,null],[\"Infinity\",null]]]");
    check_field(answer, "flags", "[\"inexact\"]");
    text_clear(&answer->text);
    result_header_error_bound(&answer->result, &answer->text);
    check_text(answer, "0.75");
    encode_raw(answer);
    assert_int_equal(answer->text.size, 16);
    assert_memory_equal(answer->text.data, "\0\0\0\xc0\0\0\x80\xbf\0\0\x80\x7f\0\0\x80\x3f", 16);
    answer->value[0].sum = 0.1;
    result_round(&answer->result); /* both parts of every result */
    answer->value[3].sum = 1e39;
    result_round(&answer->result);
    assert_true(answer->value[0].sum == (double)0.1f);
    assert_true(isinf(answer->value[3].sum));
}

/* An integer of three words, lowest first. */
static void set_integer(struct answer *answer, uint64_t low, uint64_t middle, uint64_t high)
{
    answer->request.options.dtype = DTYPE_INT32;
    answer->request.options.result_dtype = DTYPE_INT64;
    answer->value[0] = (struct dot_value){.integer = {low, middle, high}};
}

static void check_integer(struct answer *answer, const char *result, const char *bits,
                          bool has_text)
{
    char want[256];
    result_round(&answer->result); /* leaves them as they are, whatever the accuracy */
    json_decref(encode_flags(answer, JSON_DECODE_INT_AS_REAL)); /* else it takes 64 bits at most */
    int used = snprintf(want, sizeof want, "{\"result\": %s, ", result);
    if (has_text)
        used +=
            snprintf(want + used, sizeof want - (size_t)used, "\"result_text\": \"%s\", ", result);
    snprintf(want + used, sizeof want - (size_t)used, "\"bits\": \"%s\",", bits);
    if (strncmp(answer->text.data, want, strlen(want)) != 0)
        assert_string_equal(answer->text.data, want);
}

static void integers_print_exactly_at_any_length(void **state)
{
    struct answer *answer = *state;
    const uint64_t ones = UINT64_MAX, top = (uint64_t)1 << 63;
    set_integer(answer, 0, 0, 0);
    check_integer(answer, "0", "0x0000000000000000", false);
    set_integer(answer, 60902003240, 0, 0);
    check_integer(answer, "60902003240", "0x0000000e2e0ad228", false);
    set_integer(answer, ones, ones, ones);
    check_integer(answer, "-1", "0xffffffffffffffff", false);
    set_integer(answer, (uint64_t)1 << 53, 0, 0);
    check_integer(answer, "9007199254740992", "0x0020000000000000", false);
    set_integer(answer, ((uint64_t)1 << 53) + 1, 0, 0);
    check_integer(answer, "9007199254740993", "0x0020000000000001", true);
    set_integer(answer, -((uint64_t)1 << 53) - 1, ones, ones);
    check_integer(answer, "-9007199254740993", "0xffdfffffffffffff", true);
    set_integer(answer, top - 1, 0, 0);
    check_integer(answer, "9223372036854775807", "0x7fffffffffffffff", true);
    set_integer(answer, top, ones, ones);
    check_integer(answer, "-9223372036854775808", "0x8000000000000000", true);
    set_integer(answer, top, 0, 0);
    check_integer(answer, "9223372036854775808",
                  "0x000000000000000000000000000000008000000000000000", true);
    set_integer(answer, 1000000000000000000, 0, 0);
    check_integer(answer, "1000000000000000000", "0x0de0b6b3a7640000", true);
    set_integer(answer, 0, 1, 0);
    check_integer(answer, "18446744073709551616",
                  "0x000000000000000000000000000000010000000000000000", true);
    set_integer(answer, 0, 0, top);
    check_integer(answer, "-3138550867693340381917894711603833208051177722232017256448",
                  "0x800000000000000000000000000000000000000000000000", true);
    set_integer(answer, ones, ones, top - 1);
    check_integer(answer, "3138550867693340381917894711603833208051177722232017256447",
                  "0x7fffffffffffffffffffffffffffffffffffffffffffffff", true);
}

static void integers_may_come_as_floats(void **state)
{
    struct answer *answer = *state;
    set_integer(answer, 16777217, 0, 0);
    answer->request.options.result_dtype = DTYPE_FLOAT32;
    answer->value[0].sum = 16777216;
    answer->value[0].error_bound = 1;
    result_round(&answer->result); /* has been rounded already, whatever the accuracy */
    check_field(answer, "result", "16777216.0");
    check_field(answer, "error_bound", "1.0");
}

static void raw_integers_beyond_64_bits_are_refused_and_never_wrapped(void **state)
{
    struct answer *answer = *state;
    struct problem problem;
    set_integer(answer, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX);
    encode_raw(answer);
    assert_int_equal(answer->text.size, 8);
    assert_memory_equal(answer->text.data, "\0\0\0\0\0\0\0\x80", 8);
    text_clear(&answer->text);
    set_integer(answer, (uint64_t)1 << 63, 0, 0);
    assert_int_equal(result_encode_raw(&answer->result, &answer->text, &problem), ERR_VALUE);
    assert_non_null(strstr(problem.detail, "application/json"));
    assert_string_equal(problem.pointer, "/result_dtype");
    assert_int_equal(answer->text.size, 0);
}

static void exact_values_are_not_rounded_again(void **state)
{
    struct answer *answer = *state;
    answer->result.accuracy = ACCURACY_EXACT;
    answer->request.options.result_dtype = DTYPE_FLOAT32;
    answer->value[0] = (struct dot_value){.sum = 1, .error_bound = 0x1p-24, .flags = FLAG_INEXACT};
    result_round(&answer->result);
    assert_true(answer->value[0].error_bound == 0x1p-24);
}

static void rounding_to_float64_changes_nothing(void **state)
{
    struct answer *answer = *state;
    answer->value[0] = (struct dot_value){.sum = 0.1, .error_bound = 1e-20, .flags = FLAG_INEXACT};
    result_round(&answer->result);
    assert_true(answer->value[0].sum == 0.1);
    assert_true(answer->value[0].error_bound == 1e-20);
    assert_int_equal(answer->value[0].flags, FLAG_INEXACT);
}

static void rounding_to_float32_is_to_nearest_even_and_flagged(void **state)
{
    struct answer *answer = *state;
    static const struct {
        double sum, result;
        unsigned flags;
        double bound;
    } cases[] = {
        {32, 32, 0, 0},
        {-0.0, -0.0, 0, 0},
        {0x1.000001p0, 1, FLAG_INEXACT, 0x1p-24},            /* a tie, to even */
        {0x1.000003p0, 0x1.000004p0, FLAG_INEXACT, 0x1p-24}, /* a tie, to even */
        {0x1.0000010000001p0, 0x1.000002p0, FLAG_INEXACT, 0x1.ffffffep-25},
        {0x1.fffffefp127, 0x1.fffffep127, FLAG_INEXACT, 0x1.ep102}, /* the largest that stays */
        {0x1.ffffffp127, INFINITY, FLAG_INEXACT | FLAG_OVERFLOW, INFINITY},
        {-1e300, -INFINITY, FLAG_INEXACT | FLAG_OVERFLOW, INFINITY},
        {0x1p-149, 0x1p-149, 0, 0}, /* subnormal but exact */
        {0x1.8p-149, 0x1p-148, FLAG_INEXACT | FLAG_UNDERFLOW, 0x1p-150},
        {0x1p-150, 0, FLAG_INEXACT | FLAG_UNDERFLOW, 0x1p-150},
        {-1e-300, -0.0, FLAG_INEXACT | FLAG_UNDERFLOW, 1e-300},
        {0x1.fffffffp-127, 0x1p-126, FLAG_INEXACT, 0x1p-155}, /* rounds up to a normal number */
        {INFINITY, INFINITY, 0, 0},
        {-INFINITY, -INFINITY, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dot_value value = rounded(answer, cases[i].sum, 0, 0);
        assert_true(value.sum == cases[i].result);
        assert_int_equal(!!signbit(value.sum), !!signbit(cases[i].result));
        assert_int_equal(value.flags, cases[i].flags);
        assert_true(value.error_bound == cases[i].bound);
    }
    assert_true(isnan(rounded(answer, (double)NAN, 0, FLAG_NAN_INPUT).sum));
    assert_int_equal(answer->value[0].flags, FLAG_NAN_INPUT);
}

static void rounding_to_sixteen_bits_is_to_nearest_even_and_flagged(void **state)
{
    struct answer *answer = *state;
    static const struct {
        enum dtype dtype;
        double sum, result;
        unsigned flags;
        double bound;
    } cases[] = {
        {DTYPE_FLOAT16, 2048, 2048, 0, 0},
        {DTYPE_FLOAT16, 2049, 2048, FLAG_INEXACT, 1}, /* a tie, to even */
        {DTYPE_FLOAT16, 2051, 2052, FLAG_INEXACT, 1},
        {DTYPE_FLOAT16, 65519, 65504, FLAG_INEXACT, 15},
        {DTYPE_FLOAT16, -65520, -INFINITY, FLAG_INEXACT | FLAG_OVERFLOW, INFINITY},
        {DTYPE_FLOAT16, 0x1p-25, 0, FLAG_INEXACT | FLAG_UNDERFLOW, 0x1p-25},
        {DTYPE_FLOAT16, 0x1.fffp-15, 0x1p-14, FLAG_INEXACT, 0x1p-27},
        {DTYPE_FLOAT16, 0x1.ff9p-15, 0x1.ff8p-15, FLAG_INEXACT | FLAG_UNDERFLOW, 0x1p-27},
        {DTYPE_BFLOAT16, 257, 256, FLAG_INEXACT, 1},
        {DTYPE_BFLOAT16, 259, 260, FLAG_INEXACT, 1},
        {DTYPE_BFLOAT16, 0x1.ffp127, INFINITY, FLAG_INEXACT | FLAG_OVERFLOW, INFINITY},
        {DTYPE_BFLOAT16, -0x1p-133, -0x1p-133, 0, 0},
        {DTYPE_BFLOAT16, -0x1p-134, -0.0, FLAG_INEXACT | FLAG_UNDERFLOW, 0x1p-134},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer->request.options.result_dtype = cases[i].dtype;
        answer->value[0] = (struct dot_value){.sum = cases[i].sum};
        result_round(&answer->result);
        assert_true(answer->value[0].sum == cases[i].result);
        assert_int_equal(!!signbit(answer->value[0].sum), !!signbit(cases[i].result));
        assert_int_equal(answer->value[0].flags, cases[i].flags);
        assert_true(answer->value[0].error_bound == cases[i].bound);
    }
}

static void inexact_sums_below_the_normal_numbers_underflow(void **state)
{
    struct answer *answer = *state;
    /* The rounding is exact, but the sum that it rounds was not. */
    assert_int_equal(rounded(answer, 0x1p-149, 1e-60, FLAG_INEXACT).flags,
                     FLAG_INEXACT | FLAG_UNDERFLOW);
    answer->request.options.result_dtype = DTYPE_FLOAT64;
    answer->value[0] =
        (struct dot_value){.sum = -0x1p-1023, .error_bound = 0x1p-1074, .flags = FLAG_INEXACT};
    result_round(&answer->result);
    assert_int_equal(answer->value[0].flags, FLAG_INEXACT | FLAG_UNDERFLOW);
    assert_true(answer->value[0].error_bound == 0x1p-1074);
    answer->value[0] = (struct dot_value){.sum = 0x1p-1022, .flags = FLAG_INEXACT};
    result_round(&answer->result);
    assert_int_equal(answer->value[0].flags, FLAG_INEXACT);
    /* Cancellation to zero is not too small a number. */
    assert_int_equal(rounded(answer, 0, 1e-60, FLAG_INEXACT).flags, FLAG_INEXACT);
}

static double random_double(int exponent_low, int exponent_high)
{
    double fraction = 1 + (double)rand() / ((double)RAND_MAX + 1) + ldexp((double)rand(), -53);
    return ldexp(fraction, exponent_low + rand() % (exponent_high - exponent_low + 1));
}

static void error_bound_stays_proved_when_rounded(void **state)
{
    struct answer *answer = *state;
    srand(5); /* any seed serves: the property holds for every value */
    for (int i = 0; i < 200000; i++) {
        double sum = random_double(-160, 127), bound = ldexp(sum, -(rand() % 60)) * 0.3;
        struct dot_value value = rounded(answer, i % 2 == 0 ? sum : -sum, bound, FLAG_INEXACT);
        if (!isfinite(value.sum))
            continue;
        /* Exact in 113 bits: all three lie within 60 binary places and their 53 bits of width. */
        __float128 moved = (__float128)value.sum - (i % 2 == 0 ? sum : -sum);
        __float128 needed = (moved < 0 ? -moved : moved) + (__float128)bound;
        assert_true((__float128)value.error_bound >= needed);
        assert_true((__float128)value.error_bound <= needed * (1 + 4 * (__float128)DBL_EPSILON));
    }
}

static void raw_results_are_little_endian_bits(void **state)
{
    struct answer *answer = *state;
    static const unsigned char doubles[] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f,
                                            0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    static const unsigned char singles[] = {0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f};
    make_matrix(answer, 1, 2, 1);
    answer->value[1].sum = -(double)NAN;
    encode_raw(answer);
    assert_int_equal(answer->text.size, sizeof doubles);
    assert_memory_equal(answer->text.data, doubles, sizeof doubles);
    text_clear(&answer->text);
    answer->request.options.result_dtype = DTYPE_FLOAT32;
    encode_raw(answer);
    assert_int_equal(answer->text.size, sizeof singles);
    assert_memory_equal(answer->text.data, singles, sizeof singles);
    text_clear(&answer->text);
    make_matrix(answer, 0, 2, 1);
    encode_raw(answer);
    assert_false(answer->text.failed);
    assert_int_equal(answer->text.size, 0);
}

static void headers_tell_the_rest(void **state)
{
    struct answer *answer = *state;
    result_header_shape(&answer->result, &answer->text);
    check_text(answer, "");
    result_header_server_timing(&answer->result, &answer->text);
    check_text(answer, "receive;dur=0.011000, decode;dur=0.002100, queue;dur=0.003900, "
                       "copy_in;dur=0.000000, compute;dur=0.000601, copy_out;dur=0.000000, "
                       "total;dur=0.017601");
    make_matrix(answer, 3, 4, 1);
    result_header_shape(&answer->result, &answer->text);
    check_text(answer, "3,4");
    result_header_error_bound(&answer->result, &answer->text);
    check_text(answer, "0.0");
    answer->value[7].error_bound = 0.1;
    answer->value[8].error_bound = 0.05;
    result_header_error_bound(&answer->result, &answer->text);
    check_text(answer, "0.1");
    answer->value[2].error_bound = (double)NAN;
    result_header_error_bound(&answer->result, &answer->text);
    check_text(answer, "Infinity");
}

static void timing_adds_up(void **state)
{
    struct answer *answer = *state;
    answer->result.timing = (struct timing){1, 20, 300, 4000, 50000, 600000};
    assert_int_equal(timing_total_ns(&answer->result.timing), 654321);
    json_decref(encode(answer));
    assert_non_null(strstr(answer->text.data, "\"total\": 654.321}"));
}

static void every_answer_is_strict_json(void **state)
{
    struct answer *answer = *state;
    srand(3); /* any seed serves: the property holds for every bit pattern */
    for (int round = 0; round < 5000; round++) {
        make_matrix(answer, 3, 4, 0);
        answer->request.options.diagnostics = round % 2 == 0;
        answer->request.options.result_dtype = round % 3 == 0 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
        for (int i = 0; i < VALUES; i++) {
            double part[3];
            for (int k = 0; k < 3; k++) {
                uint64_t bits = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
                memcpy(&part[k], &bits, sizeof bits);
            }
            answer->value[i] = (struct dot_value){.sum = part[0],
                                                  .sum_abs = fabs(part[1]),
                                                  .error_bound = fabs(part[2]),
                                                  .flags = (unsigned)rand() % 32};
        }
        result_round(&answer->result);
        json_t *json = encode(answer);
        json_t *row = json_array_get(json_object_get(json, "result"), 1);
        for (size_t i = 0; i < 4; i++) {
            const json_t *number = json_array_get(row, i);
            double sum = answer->value[4 + i].sum;
            if (!isfinite(sum))
                assert_true(json_is_null(number));
            else if (round % 3 == 0)
                assert_true((float)json_real_value(number) == (float)sum);
            else
                assert_true(json_real_value(number) == sum);
        }
        json_decref(json);
    }
}

#define ANSWER_TEST(name) cmocka_unit_test_setup_teardown(name, make_answer, free_answer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ANSWER_TEST(scalar_answer_has_every_field_in_order),
        ANSWER_TEST(id_is_echoed_only_when_given),
        ANSWER_TEST(results_nest_as_their_shape),
        ANSWER_TEST(empty_shapes_nest_too),
        ANSWER_TEST(pairs_answer_lists_one_result_each),
        ANSWER_TEST(non_finite_results_are_null_with_a_text),
        ANSWER_TEST(diagnostics_add_two_fields),
        ANSWER_TEST(flags_are_the_union_in_alphabetical_order),
        ANSWER_TEST(float32_results_print_in_their_own_shortest_form),
        ANSWER_TEST(sixteen_bit_results_print_in_their_own_shortest_form),
        ANSWER_TEST(complex_results_are_pairs),
        ANSWER_TEST(integers_print_exactly_at_any_length),
        ANSWER_TEST(integers_may_come_as_floats),
        ANSWER_TEST(raw_integers_beyond_64_bits_are_refused_and_never_wrapped),
        ANSWER_TEST(exact_values_are_not_rounded_again),
        ANSWER_TEST(rounding_to_float64_changes_nothing),
        ANSWER_TEST(rounding_to_float32_is_to_nearest_even_and_flagged),
        ANSWER_TEST(rounding_to_sixteen_bits_is_to_nearest_even_and_flagged),
        ANSWER_TEST(inexact_sums_below_the_normal_numbers_underflow),
        ANSWER_TEST(error_bound_stays_proved_when_rounded),
        ANSWER_TEST(raw_results_are_little_endian_bits),
        ANSWER_TEST(headers_tell_the_rest),
        ANSWER_TEST(timing_adds_up),
        ANSWER_TEST(every_answer_is_strict_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
