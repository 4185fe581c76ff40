/* elements_test.c - arrays of every element type read alike at every split, and alike whether the
 * type is known before the array or after it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/numbers.h"
#include "tests/random.h"

enum { MAX_BYTES = 1 << 20, SUMMARY_BYTES = 16384 };

static uint64_t random_state = 6;

/* "<problem>, '<pointer>': <detail>", or the shape and every element in hexadecimal digits. */
static void summarize(enum error err, const struct problem *problem, const struct numbers *numbers,
                      const struct buffer *buffer, char summary[static SUMMARY_BYTES])
{
    if (err != ERR_OK) {
        assert_int_equal(problem->error, err);
        snprintf(summary, SUMMARY_BYTES, "%s, '%s': %s", error_name(err), problem->pointer,
                 problem->detail);
        return;
    }
    struct tensor tensor = numbers_tensor(numbers);
    uint64_t count;
    assert_int_equal(shape_count(&tensor.shape, &count), ERR_OK);
    size_t number = dtype_size(dtype_part(tensor.dtype));
    size_t bytes = count * dtype_size(tensor.dtype);
    shape_print(&tensor.shape, summary, SUMMARY_BYTES);
    char *p = strchr(summary, '\0'), *end = summary + SUMMARY_BYTES;
    const unsigned char *data = buffer->block.data;
    for (size_t i = 0; i < bytes && end - p > 2 + 2 * (ptrdiff_t)number; i += number) {
        *p++ = ' ';
        for (size_t byte = number; byte > 0; byte--)
            p += snprintf(p, (size_t)(end - p), "%02x", data[tensor.offset + i + byte - 1]);
    }
    *p = '\0';
}

/* Reads text cut at two places; dtype is told before the array or after it. */
static void read_cut(enum dtype dtype, bool is_late, const char *text, size_t first, size_t second,
                     char summary[static SUMMARY_BYTES])
{
    struct buffer buffer;
    struct numbers *numbers;
    struct problem problem;
    size_t cuts[] = {0, first, second, strlen(text)}, used;
    bool done = false;
    buffer_init(&buffer, &buffer_heap);
    problem_clear(&problem);
    enum error err = numbers_create(&numbers, &buffer, is_late ? DTYPE_UNKNOWN : dtype, MAX_BYTES);
    assert_int_equal(err, ERR_OK);
    for (int i = 0; i < 3 && err == ERR_OK; i++)
        if (cuts[i] < cuts[i + 1])
            err = numbers_feed(numbers, text + cuts[i], cuts[i + 1] - cuts[i], &used, &done,
                               &problem);
    if (err == ERR_OK) {
        assert_true(done);
        err = numbers_convert(numbers, dtype, &problem);
    }
    summarize(err, &problem, numbers, &buffer, summary);
    numbers_destroy(numbers);
    buffer_fini(&buffer);
}

#define INT8_RANGE "int8 holds whole numbers from -128 to 127, not "
#define INT64_RANGE \
    "int64 holds whole numbers from -9223372036854775808 to 9223372036854775807, not "
#define PAIR64        "expected a pair [re, im] for complex64, got "
#define RAGGED_NUMBER "expected a number, because others at this depth are"

/* late: what is said instead when the type comes after the array; NULL: the same. */
static const struct {
    const char *dtype, *text, *summary, *late;
} arrays[] = {
    {"float16", "[1,-2,0.1,65504,6e-8,NaN,-Infinity]", "(7,) 3c00 c000 2e66 7bff 0001 7e00 fc00",
     NULL},
    {"float16", "[[1],[65520]]", "bad-value, '/1/0': 65520 is beyond the range of float16", NULL},
    {"bfloat16", "[1,-2,0.1,3.3e38,1e-40,\"NaN\"]", "(6,) 3f80 c000 3dcd 7f78 0001 7fc0", NULL},
    {"bfloat16", "[3.4e38]", "bad-value, '/0': 3.4e38 is beyond the range of bfloat16",
     "bad-value, '/0': 3.4e+38 is beyond the range of bfloat16"},
    {"int8", "[0,-0,127,-128,1e2,3.0,-12e-0]", "(7,) 00 00 7f 80 64 03 f4", NULL},
    {"int8", "[1,128]", "bad-value, '/1': " INT8_RANGE "128", NULL},
    {"int8", "[[1,-129]]", "bad-value, '/0/1': " INT8_RANGE "-129", NULL},
    {"int8", "[0.5]", "bad-value, '/0': " INT8_RANGE "0.5", NULL},
    {"int8", "[3.00000000000000000001]", "bad-value, '/0': " INT8_RANGE "3.00000000000000000001",
     "bad-value, '/0': " INT8_RANGE "about 3"},
    {"int8", "[2.9999999999999999999]", "bad-value, '/0': " INT8_RANGE "2.9999999999999999999",
     "bad-value, '/0': " INT8_RANGE "about 3"},
    {"int8", "[NaN]", "bad-value, '/0': " INT8_RANGE "NaN", NULL},
    {"int8", "[1e999]", "bad-value, '/0': " INT8_RANGE "1e999",
     "bad-value, '/0': 1e999 is beyond the range of float64"},
    {"uint8", "[0,255,-0.0]", "(3,) 00 ff 00", NULL},
    {"uint8", "[-1]", "bad-value, '/0': uint8 holds whole numbers from 0 to 255, not -1", NULL},
    {"int32", "[2147483647,-2147483648]", "(2,) 7fffffff 80000000", NULL},
    {"int32", "[2147483648]",
     "bad-value, '/0': int32 holds whole numbers from -2147483648 to 2147483647, not 2147483648",
     NULL},
    {"int64", "[9223372036854775807,-9223372036854775808,9007199254740993]",
     "(3,) 7fffffffffffffff 8000000000000000 0020000000000001", NULL},
    {"int64", "[4611686018427387905,1,-9223372036854775807,9223372036854775296]",
     "(4,) 4000000000000001 0000000000000001 8000000000000001 7ffffffffffffe00", NULL},
    {"int64", "[9223372036854775808]", "bad-value, '/0': " INT64_RANGE "9223372036854775808", NULL},
    {"int64", "[9223372036854776508]", "bad-value, '/0': " INT64_RANGE "9223372036854776508",
     "bad-value, '/0': " INT64_RANGE "about 9223372036854775808"},
    /* The float64 is whole and beside a midpoint: a step towards the decimal would end on it. */
    {"float32", "[1729382463068700466,-1729382463068700466]", "(2,) 5dc00001 ddc00001", NULL},
    {"bfloat16", "[1742893055792381746]", "(1,) 5dc1", NULL},
    {"int64", "[1,4503599627370497.5]", "bad-value, '/1': " INT64_RANGE "4503599627370497.5",
     "bad-value, '/1': " INT64_RANGE "about 4503599627370498"},
    {"int64", "[1,9007199254740993.5]", "bad-value, '/1': " INT64_RANGE "9007199254740993.5",
     "bad-value, '/1': " INT64_RANGE "about 9007199254740994"},
    {"int64", "[1e-400]", "bad-value, '/0': " INT64_RANGE "1e-400",
     "bad-value, '/0': " INT64_RANGE "about 0"},
    {"complex64", "[[1,-2]]", "(1,) 3f800000 c0000000", NULL},
    {"complex64", "[[1,2],[NaN,0.1]]", "(2,) 3f800000 40000000 7fc00000 3dcccccd", NULL},
    {"complex128", "[[[1,2]],[[3,4]]]",
     "(2,1) 3ff0000000000000 4000000000000000 4008000000000000 4010000000000000", NULL},
    {"complex64", "[]", "(0,)", NULL},
    {"complex64", "[[],[]]", "(2,0)", NULL},
    {"complex64", "[[[[[[[[[1,2]]]]]]]]]", "(1,1,1,1,1,1,1,1) 3f800000 40000000", NULL},
    {"complex64", "[[[[[[[[[]]]]]]]]]", "bad-value, '/0/0/0/0/0/0/0/0': more than 8 dimensions",
     NULL},
    {"float64", "[[[[[[[[[1]]]]]]]]]", "bad-value, '/0/0/0/0/0/0/0/0': more than 8 dimensions",
     NULL},
    {"complex64", "[[[[[[[[[[1,2]]]]]]]]]]",
     "bad-value, '/0/0/0/0/0/0/0/0/0': more than 8 dimensions", NULL},
    {"complex64", "[1,2]", "bad-value, '/0': " PAIR64 "one number", NULL},
    {"complex64", "[1,2,3]", "bad-value, '/0': " PAIR64 "one number", NULL},
    {"complex64", "[[1],[2]]", "bad-value, '/0': " PAIR64 "an array of 1", NULL},
    {"complex64", "[[[1,2,3],[4,5,6]]]", "bad-value, '/0/0': " PAIR64 "an array of 3", NULL},
    {"complex64", "[[1,2],[3]]", "bad-value, '/1': " PAIR64 "an array of 1",
     "length-mismatch, '/1': a row has 1 values, the first one at this depth 2"},
    {"complex64", "[[1,2],3]", "bad-value, '/1': " PAIR64 "one number",
     "length-mismatch, '/1': expected a row, because others at this depth are rows"},
    {"complex64", "[[1,2],[]]", "bad-value, '/1': " PAIR64 "an array of 0",
     "length-mismatch, '/1': a row has 0 values, the first one at this depth 2"},
    {"complex64", "[[[1,2],[3,4]],[[5,6]]]",
     "length-mismatch, '/1': a row has 1 values, the first one at this depth 2", NULL},
    {"complex64", "[[1,[2,3]]]", "length-mismatch, '/0/1': " RAGGED_NUMBER, NULL},
    {"complex64", "[[],[[1,2]]]", "length-mismatch, '/1/0': " RAGGED_NUMBER, NULL},
    {"complex64", "[[1,3.5e38]]", "bad-value, '/0/1': 3.5e38 is beyond the range of complex64",
     "bad-value, '/0/1': 3.5e+38 is beyond the range of complex64"},
    {"complex64", "[[1,\"i\"]]", "bad-value, '/0/1': expected a number, got a string", NULL},
};

static void arrays_of_every_type_read_alike_at_every_split(void **state)
{
    (void)state;
    static char want[SUMMARY_BYTES], got[SUMMARY_BYTES];
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        const char *text = arrays[i].text;
        enum dtype dtype;
        enum byte_order order;
        assert_int_equal(dtype_parse(arrays[i].dtype, &dtype, &order), ERR_OK);
        read_cut(dtype, false, text, 0, 0, want);
        if (strcmp(want, arrays[i].summary) != 0)
            print_error("%s as %s\n", text, arrays[i].dtype);
        assert_string_equal(want, arrays[i].summary);
        for (size_t first = 1; first < strlen(text); first++)
            for (size_t second = first; second < strlen(text); second++) {
                read_cut(dtype, false, text, first, second, got);
                assert_string_equal(got, want);
            }
    }
}

static void a_type_after_the_array_reads_as_one_before_it(void **state)
{
    (void)state;
    static char got[SUMMARY_BYTES];
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        const char *text = arrays[i].text;
        enum dtype dtype;
        enum byte_order order;
        assert_int_equal(dtype_parse(arrays[i].dtype, &dtype, &order), ERR_OK);
        for (size_t cut = 0; cut < strlen(text); cut++) {
            read_cut(dtype, true, text, cut, cut, got);
            assert_string_equal(got, arrays[i].late != NULL ? arrays[i].late : arrays[i].summary);
        }
    }
}

/* A number of which some types hold many and some few, written in one of many ways. */
static int number_write(char *text)
{
    int64_t whole = (int64_t)random_next() >> random_next() % 64;
    double real = ldexp((double)(int64_t)random_next(), -(int)(random_next() % 110));
    switch (random_next() % 8) {
    case 0:
        return sprintf(text, "%lld", (long long)whole);
    case 1:
        return sprintf(text, "%lld.%0*d", (long long)whole, 1 + (int)(random_next() % 20), 0);
    case 2:
        return sprintf(text, "%lld%s", (long long)whole, whole != 0 ? "000e-3" : "e9");
    case 3:
        return sprintf(text, "%lld.%020d1", (long long)whole, 0);
    case 4:
        return sprintf(text, "%lld", (long long)(random_next() % 256) - 128);
    case 5:
        return sprintf(text, "%.*g", 1 + (int)(random_next() % 20), real);
    case 6:
        return sprintf(text, "%.*f", (int)(random_next() % 30), real);
    default:
        return sprintf(text, "%.*e", (int)(random_next() % 100), real);
    }
}

/* One number of the array alone, in the way of query strings. */
static void number_check(const char *text, enum dtype dtype)
{
    static char array[1024], got[SUMMARY_BYTES], want[SUMMARY_BYTES];
    uint64_t bits = 0;
    enum error err = numbers_parse(text, strlen(text), dtype, &bits);
    snprintf(want, sizeof want, "(1,) %0*llx", (int)(2 * dtype_size(dtype)),
             (unsigned long long)bits);
    assert_true(err == ERR_OK || err == ERR_VALUE);
    snprintf(array, sizeof array, "[%s]", text);
    for (int is_late = 0; is_late < 2; is_late++) {
        read_cut(dtype, is_late, array, 1, 1, got);
        bool agrees =
            err == ERR_OK ? strcmp(got, want) == 0 : strncmp(got, "bad-value, '/0': ", 17) == 0;
        if (!agrees)
            print_error("%s as %s: %s, alone %s\n", text, dtype_name(dtype), got, want);
        assert_true(agrees);
    }
}

static void random_numbers_read_alike_alone_early_and_late(void **state)
{
    (void)state;
    for (int i = 0; i < 8000; i++) {
        char text[256];
        number_write(text);
        for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
            if (!dtype_is_complex(dtype))
                number_check(text, dtype);
    }
}

/* Blocks and single steps are different code, and so is the conversion. */
static void long_arrays_of_every_type_read_alike(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static char text[COUNT * 8], want[SUMMARY_BYTES], got[SUMMARY_BYTES];
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        char *p = text;
        *p++ = '[';
        for (int i = 0; i < COUNT; i++) {
            const char *comma = i + 1 < COUNT ? "," : "]";
            p += dtype_is_complex(dtype) ? sprintf(p, "[%d,%d]%s", i % 100, i % 27, comma)
                                         : sprintf(p, "%d%s", i % 100, comma);
        }
        read_cut(dtype, false, text, 0, 0, want);
        assert_int_equal(strncmp(want, "(200,) ", 7), 0);
        for (size_t cut = 0; cut < strlen(text); cut++)
            for (int is_late = 0; is_late < 2; is_late++) {
                read_cut(dtype, is_late, text, cut, cut, got);
                assert_string_equal(got, want);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_every_type_read_alike_at_every_split),
        cmocka_unit_test(a_type_after_the_array_reads_as_one_before_it),
        cmocka_unit_test(random_numbers_read_alike_alone_early_and_late),
        cmocka_unit_test(long_arrays_of_every_type_read_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
