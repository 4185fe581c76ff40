/* tensor_test.c - names of element types, and shapes: reading, printing, counting, matching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/tensor.h"

static void dtype_is_read_by_every_alias(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum dtype dtype;
        enum byte_order order;
    } names[] = {
        {"float32", DTYPE_FLOAT32, ORDER_LITTLE},
        {"f32", DTYPE_FLOAT32, ORDER_LITTLE},
        {"f4", DTYPE_FLOAT32, ORDER_LITTLE},
        {"<f4", DTYPE_FLOAT32, ORDER_LITTLE},
        {">f4", DTYPE_FLOAT32, ORDER_BIG},
        {"FP32", DTYPE_FLOAT32, ORDER_LITTLE},
        {"float64", DTYPE_FLOAT64, ORDER_LITTLE},
        {"f64", DTYPE_FLOAT64, ORDER_LITTLE},
        {"f8", DTYPE_FLOAT64, ORDER_LITTLE},
        {"<f8", DTYPE_FLOAT64, ORDER_LITTLE},
        {">f8", DTYPE_FLOAT64, ORDER_BIG},
        {"FP64", DTYPE_FLOAT64, ORDER_LITTLE},
        {"f16", DTYPE_FLOAT16, ORDER_LITTLE},
        {"f2", DTYPE_FLOAT16, ORDER_LITTLE},
        {">f2", DTYPE_FLOAT16, ORDER_BIG},
        {"FP16", DTYPE_FLOAT16, ORDER_LITTLE},
        {"bfloat16", DTYPE_BFLOAT16, ORDER_LITTLE},
        {"bf16", DTYPE_BFLOAT16, ORDER_LITTLE},
        {"BF16", DTYPE_BFLOAT16, ORDER_LITTLE},
        {"int8", DTYPE_INT8, ORDER_LITTLE},
        {"i8", DTYPE_INT8, ORDER_LITTLE},
        {"i1", DTYPE_INT8, ORDER_LITTLE},
        {"|i1", DTYPE_INT8, ORDER_LITTLE},
        {"<i8", DTYPE_INT64, ORDER_LITTLE},
        {">i8", DTYPE_INT64, ORDER_BIG},
        {"i64", DTYPE_INT64, ORDER_LITTLE},
        {"u8", DTYPE_UINT8, ORDER_LITTLE},
        {"|u1", DTYPE_UINT8, ORDER_LITTLE},
        {"UINT8", DTYPE_UINT8, ORDER_LITTLE},
        {"i32", DTYPE_INT32, ORDER_LITTLE},
        {"<i4", DTYPE_INT32, ORDER_LITTLE},
        {"INT32", DTYPE_INT32, ORDER_LITTLE},
        {"c64", DTYPE_COMPLEX64, ORDER_LITTLE},
        {"<c8", DTYPE_COMPLEX64, ORDER_LITTLE},
        {">c16", DTYPE_COMPLEX128, ORDER_BIG},
        {"c128", DTYPE_COMPLEX128, ORDER_LITTLE},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum dtype dtype = DTYPE_UNKNOWN;
        enum byte_order order = ORDER_BIG;
        assert_int_equal(dtype_parse(names[i].name, &dtype, &order), ERR_OK);
        assert_int_equal(dtype, names[i].dtype);
        assert_int_equal(order, names[i].order);
    }
}

static void dtype_refuses_other_names_and_leaves_outputs(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",         "float", "Float32", "<float32", ">", "<f4 ", ">FP32", "<<f4", "f17",     "=f4",
        "float32 ", "<u8",   "|f4",     "<bf16",    "<", "|",    "<i64",  "C64",  "BFLOAT16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum dtype dtype = DTYPE_UNKNOWN;
        enum byte_order order = ORDER_BIG;
        assert_int_equal(dtype_parse(names[i], &dtype, &order), ERR_DTYPE);
        assert_int_equal(dtype, DTYPE_UNKNOWN);
        assert_int_equal(order, ORDER_BIG);
    }
}

static void dtype_list_names_every_type(void **state)
{
    (void)state;
    assert_string_equal(dtype_list(), "float32, float64, float16, bfloat16, int8, uint8, int32, "
                                      "int64, complex64, complex128");
    assert_int_equal(dtype_size(DTYPE_FLOAT32), 4);
    assert_int_equal(dtype_size(DTYPE_FLOAT64), 8);
    assert_string_equal(dtype_name(DTYPE_FLOAT64), "float64");
}

static void every_type_is_of_one_kind(void **state)
{
    (void)state;
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const char *name = dtype_name(dtype);
        assert_int_equal(dtype_is_integer(dtype), strstr(name, "int") != NULL);
        assert_int_equal(dtype_is_float(dtype), strstr(name, "float") != NULL);
        assert_int_equal(dtype_is_complex(dtype), strstr(name, "complex") != NULL);
        assert_int_equal(dtype_size(dtype),
                         dtype_size(dtype_part(dtype)) * (dtype_is_complex(dtype) ? 2 : 1));
        assert_int_equal(dtype_part(dtype) == dtype, !dtype_is_complex(dtype));
    }
    assert_int_equal(dtype_part(DTYPE_COMPLEX64), DTYPE_FLOAT32);
    assert_int_equal(dtype_part(DTYPE_UNKNOWN), DTYPE_UNKNOWN);
}

static void shape_text_is_read(void **state)
{
    (void)state;
    struct shape shape;
    assert_int_equal(shape_parse("3,4", &shape), ERR_OK);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.dim[0], 3);
    assert_int_equal(shape.dim[1], 4);
    assert_int_equal(shape_parse("0", &shape), ERR_OK);
    assert_int_equal(shape.rank, 1);
    assert_int_equal(shape.dim[0], 0);
    assert_int_equal(shape.dim[1], 0); /* nothing of the first call is left */
    assert_int_equal(shape_parse("1,2,3,4,5,6,7,8", &shape), ERR_OK);
    assert_int_equal(shape.rank, 8);
    assert_int_equal(shape_parse("9223372036854775807", &shape), ERR_OK);
    assert_true(shape.dim[0] == INT64_MAX);
}

static void shape_text_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        ",",
                                        "3,",
                                        ",3",
                                        "3,,4",
                                        "-1",
                                        "+3",
                                        " 3",
                                        "3 ",
                                        "3.0",
                                        "0x3",
                                        "1,2,3,4,5,6,7,8,9",
                                        "3, 4",
                                        "(3,)",
                                        "3;4",
                                        "9223372036854775808",
                                        "18446744073709551617"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct shape shape = {.rank = 5};
        assert_int_equal(shape_parse(texts[i], &shape), ERR_VALUE);
        assert_int_equal(shape.rank, 5);
    }
}

static void shape_prints_as_numpy_does(void **state)
{
    (void)state;
    char text[200];
    struct shape shape = {0};
    assert_string_equal(shape_print(&shape, text, sizeof text), "()");
    shape = (struct shape){1, {3}};
    assert_string_equal(shape_print(&shape, text, sizeof text), "(3,)");
    shape = (struct shape){3, {3, 0, 12}};
    assert_string_equal(shape_print(&shape, text, sizeof text), "(3,0,12)");
    assert_string_equal(shape_print(&shape, text, 5), "(3,0");
    shape.rank = 8;
    for (int i = 0; i < 8; i++)
        shape.dim[i] = UINT64_MAX;
    assert_int_equal(strlen(shape_print(&shape, text, sizeof text)), 8 * 21 + 1);
}

static void shape_count_multiplies_and_finds_overflow(void **state)
{
    (void)state;
    uint64_t count = 77;
    struct shape shape = {0};
    assert_int_equal(shape_count(&shape, &count), ERR_OK);
    assert_int_equal(count, 1);
    shape = (struct shape){3, {2, 3, 4}};
    assert_int_equal(shape_count(&shape, &count), ERR_OK);
    assert_int_equal(count, 24);
    shape = (struct shape){2, {UINT64_C(1) << 32, UINT64_C(1) << 31}};
    assert_int_equal(shape_count(&shape, &count), ERR_TOO_LARGE);
    assert_int_equal(count, 24);
    shape = (struct shape){3, {UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 32}};
    assert_int_equal(shape_count(&shape, &count), ERR_TOO_LARGE);
    shape = (struct shape){4, {UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 32, 0}};
    assert_int_equal(shape_count(&shape, &count), ERR_OK);
    assert_int_equal(count, 0);
}

static void dot_shapes_broadcast_as_numpy_vecdot(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *result;
    } cases[] = {
        {"3", "3", "()"},
        {"0", "0", "()"},
        {"2,3", "2,3", "(2,)"},
        {"2,3", "3", "(2,)"},
        {"3", "2,3", "(2,)"},
        {"4,1,3", "5,3", "(4,5)"},
        {"1,3", "7,3", "(7,)"},
        {"1,3", "0,3", "(0,)"},
        {"0,3", "3", "(0,)"},
        {"2,0", "0", "(2,)"},
        {"2,1,5,3", "4,1,3", "(2,4,5)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shape a, b, result;
        struct problem problem;
        char text[64];
        assert_int_equal(shape_parse(cases[i].a, &a), ERR_OK);
        assert_int_equal(shape_parse(cases[i].b, &b), ERR_OK);
        assert_int_equal(shape_dot(&a, &b, &result, &problem), ERR_OK);
        assert_string_equal(shape_print(&result, text, sizeof text), cases[i].result);
    }
}

static void dot_shapes_that_do_not_match_are_both_named(void **state)
{
    (void)state;
    static const struct {
        struct shape a, b;
        const char *a_text, *b_text;
    } cases[] = {
        {{1, {3}}, {1, {4}}, "(3,)", "(4,)"}, {{2, {2, 3}}, {2, {4, 3}}, "(2,3)", "(4,3)"},
        {{1, {1}}, {1, {3}}, "(1,)", "(3,)"}, {{2, {0, 3}}, {2, {2, 3}}, "(0,3)", "(2,3)"},
        {{0, {0}}, {1, {1}}, "()", "(1,)"},   {{1, {1}}, {0, {0}}, "(1,)", "()"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shape result = {.rank = 6};
        struct problem problem;
        assert_int_equal(shape_dot(&cases[i].a, &cases[i].b, &result, &problem), ERR_SHAPE);
        assert_int_equal(problem.error, ERR_SHAPE);
        assert_non_null(strstr(problem.detail, cases[i].a_text));
        assert_non_null(strstr(problem.detail, cases[i].b_text));
        assert_int_equal(result.rank, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtype_is_read_by_every_alias),
        cmocka_unit_test(dtype_refuses_other_names_and_leaves_outputs),
        cmocka_unit_test(dtype_list_names_every_type),
        cmocka_unit_test(every_type_is_of_one_kind),
        cmocka_unit_test(shape_text_is_read),
        cmocka_unit_test(shape_text_that_is_none_is_refused),
        cmocka_unit_test(shape_prints_as_numpy_does),
        cmocka_unit_test(shape_count_multiplies_and_finds_overflow),
        cmocka_unit_test(dot_shapes_broadcast_as_numpy_vecdot),
        cmocka_unit_test(dot_shapes_that_do_not_match_are_both_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
