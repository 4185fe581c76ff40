/* numbers_test.c - arrays read alike at every split; mistakes are found at their byte. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/decimal.h"
#include "proto/numbers.h"
#include "tests/random.h"
#include "tests/unit/reading.h"

enum { SUMMARY_BYTES = 16384 };

static uint64_t random_state = 3;

/* Everything that a reading says, as text that two readings can be compared by. A type that nobody
 * has told is float64. */
static void reading_summarize(struct reading *reading, char summary[static SUMMARY_BYTES])
{
    char *p = summary, *end = summary + SUMMARY_BYTES;
    if (reading->error != ERR_OK) {
        snprintf(p, SUMMARY_BYTES, "%s at %lld, '%s': %s", error_name(reading->error),
                 (long long)reading->problem.offset, reading->problem.pointer,
                 reading->problem.detail);
        return;
    }
    if (!reading->is_done) {
        snprintf(p, SUMMARY_BYTES, "open");
        return;
    }
    if (reading->dtype == DTYPE_UNKNOWN)
        assert_int_equal(numbers_convert(reading->numbers, DTYPE_FLOAT64, &reading->problem),
                         ERR_OK);
    struct tensor tensor = numbers_tensor(reading->numbers);
    char shape[128];
    uint64_t count;
    assert_int_equal(shape_count(&tensor.shape, &count), ERR_OK);
    p += snprintf(p, SUMMARY_BYTES, "%s %s used %zu:", dtype_name(tensor.dtype),
                  shape_print(&tensor.shape, shape, sizeof shape), reading->used);
    const unsigned char *data = reading->buffer.block.data;
    for (size_t i = 0; i < count * dtype_size(tensor.dtype) && end - p > 4; i++)
        p += snprintf(p, (size_t)(end - p), "%s%02x", i % dtype_size(tensor.dtype) ? "" : " ",
                      data[tensor.offset + i]);
}

static void read_in_three(enum dtype dtype, const char *text, size_t size, size_t first,
                          size_t second, char summary[static SUMMARY_BYTES])
{
    struct reading reading;
    reading_begin(&reading, dtype, MAX_BYTES);
    reading_feed(&reading, text, first);
    reading_feed(&reading, text + first, second - first);
    reading_feed(&reading, text + second, size - second);
    reading_summarize(&reading, summary);
    reading_end(&reading);
}

static void read_in_steps(enum dtype dtype, const char *text, size_t size, size_t step,
                          char summary[static SUMMARY_BYTES])
{
    struct reading reading;
    reading_begin(&reading, dtype, MAX_BYTES);
    for (size_t at = 0; at < size; at += step)
        reading_feed(&reading, text + at, size - at < step ? size - at : step);
    reading_summarize(&reading, summary);
    reading_end(&reading);
}

#define WORDS "expected a number, or one of NaN, Infinity and -Infinity, written so, got "

static const struct {
    const char *text;
    const char *summary;
} arrays[] = {
    {"[]", "float32 (0,) used 2:"},
    {"[1]", "float32 (1,) used 3: 0000803f"},
    {"[1]  ,", "float32 (1,) used 3: 0000803f"},
    {"[ 1\t,\n-2\r, 0.5 ]", "float32 (3,) used 16: 0000803f 000000c0 0000003f"},
    {"[1 ,2 , 3]", "float32 (3,) used 10: 0000803f 00000040 00004040"},
    {"[-0,0,-0.0,0e5,-0E-5]", "float32 (5,) used 21: 00000080 00000000 00000080 00000000 00000080"},
    {"[NaN,Infinity,-Infinity]", "float32 (3,) used 24: 0000c07f 0000807f 000080ff"},
    {"[\"NaN\",\"Infinity\",\"-Infinity\"]", "float32 (3,) used 30: 0000c07f 0000807f 000080ff"},
    {"[1e2,1E+2,1.0e-0,100E-2]", "float32 (4,) used 24: 0000c842 0000c842 0000803f 0000803f"},
    {"[[1,2],[3,4]]", "float32 (2,2) used 13: 0000803f 00000040 00004040 00008040"},
    {"[[[1],[2]],[[3],[4]]]", "float32 (2,2,1) used 21: 0000803f 00000040 00004040 00008040"},
    {"[ [ 1 ] , [ 2 ] ]", "float32 (2,1) used 17: 0000803f 00000040"},
    {"[[]]", "float32 (1,0) used 4:"},
    {"[[],[]]", "float32 (2,0) used 7:"},
    {"[[[],[]],[[],[]]]", "float32 (2,2,0) used 17:"},
    {"[[[[[[[[1]]]]]]]]", "float32 (1,1,1,1,1,1,1,1) used 17: 0000803f"},
    {"[[[[[[[[[1]]]]]]]]]", "bad-value at 8, '/0/0/0/0/0/0/0/0': more than 8 dimensions"},
    {"[[],[1]]", "length-mismatch at 6, '/1': a row has 1 values, the first one at this depth 0"},
    {"[[1],[]]", "length-mismatch at 6, '/1': a row has 0 values, the first one at this depth 1"},
    {"[[1,2],[3]]",
     "length-mismatch at 9, '/1': a row has 1 values, the first one at this depth 2"},
    {"[[1],[2,3]]",
     "length-mismatch at 9, '/1': a row has 2 values, the first one at this depth 1"},
    {"[[[1],[2]],[[3]]]",
     "length-mismatch at 15, '/1': a row has 1 values, the first one at this depth 2"},
    {"[[[]],[]]", "length-mismatch at 7, '/1': a row has 0 values, the first one at this depth 1"},
    {"[1,[2]]", "length-mismatch at 3, '/1': expected a number, because others at this depth are"},
    {"[[1],2]",
     "length-mismatch at 5, '/1': expected a row, because others at this depth are rows"},
    {"[[],[[]]]",
     "length-mismatch at 5, '/1/0': expected a number, because others at this depth are"},
    {"[[],1]", "length-mismatch at 4, '/1': expected a row, because others at this depth are rows"},
    {"[1,]", "bad-syntax at 3, '/1': expected a number, got ']'"},
    {"[[1],]", "bad-syntax at 5, '/1': expected a number, got ']'"},
    {"[,1]", "bad-syntax at 1, '/0': expected a number, got ','"},
    {"[1,,2]", "bad-syntax at 3, '/1': expected a number, got ','"},
    {"[1 2]", "bad-syntax at 3, '': expected ',' or ']', got '2'"},
    {"[[1 2]]", "bad-syntax at 4, '/0': expected ',' or ']', got '2'"},
    {"[[1][2]]", "bad-syntax at 4, '': expected ',' or ']', got '['"},
    {"[01]", "bad-syntax at 2, '': expected ',' or ']', got '1'"},
    {"[-01.5]", "bad-syntax at 3, '': expected ',' or ']', got '1'"},
    {"[00]", "bad-syntax at 2, '': expected ',' or ']', got '0'"},
    {"[+1]", "bad-syntax at 1, '/0': expected a number, got '+'"},
    {"[.5]", "bad-syntax at 1, '/0': expected a number, got '.'"},
    {"[-.5]", "bad-syntax at 2, '/0': expected a digit, got '.'"},
    {"[1.]", "bad-syntax at 3, '/0': expected a digit, got ']'"},
    {"[1.e5]", "bad-syntax at 3, '/0': expected a digit, got 'e'"},
    {"[1e]", "bad-syntax at 3, '/0': expected a digit, got ']'"},
    {"[1,2e+]", "bad-syntax at 6, '/1': expected a digit, got ']'"},
    {"[1e-,2]", "bad-syntax at 4, '/0': expected a digit, got ','"},
    {"[-]", "bad-syntax at 2, '/0': expected a digit, got ']'"},
    {"[--1]", "bad-syntax at 2, '/0': expected a digit, got '-'"},
    {"[1.2.3]", "bad-syntax at 4, '': expected ',' or ']', got '.'"},
    {"[12345678901234567890.5.5]", "bad-syntax at 23, '': expected ',' or ']', got '.'"},
    {"[0x10]", "bad-syntax at 2, '': expected ',' or ']', got 'x'"},
    {"[1_000]", "bad-syntax at 2, '': expected ',' or ']', got '_'"},
    {"[1'000]", "bad-syntax at 2, '': expected ',' or ']', got \"'\""},
    {"[1}", "bad-syntax at 2, '': expected ',' or ']', got '}'"},
    {"[1:2]", "bad-syntax at 2, '': expected ',' or ']', got ':'"},
    {"[1\f]", "bad-syntax at 2, '': expected ',' or ']', got byte 0x0c"},
    {"[\xc2\xa0"
     "1]",
     "bad-syntax at 1, '/0': expected a number, got byte 0xc2"},
    {"[nan]", "bad-syntax at 1, '/0': " WORDS "'n'"},
    {"[1,inf]", "bad-syntax at 3, '/1': " WORDS "'i'"},
    {"[-inf]", "bad-syntax at 1, '/0': " WORDS "'-'"},
    {"[+Infinity]", "bad-syntax at 1, '/0': " WORDS "'+'"},
    {"[NaNs]", "bad-syntax at 4, '': expected ',' or ']', got 's'"},
    {"[NaN1]", "bad-syntax at 4, '': expected ',' or ']', got '1'"},
    {"[Infinit]", "bad-syntax at 1, '/0': " WORDS "'I'"},
    {"[-Inf]", "bad-syntax at 1, '/0': " WORDS "'-'"},
    {"[-NaN]", "bad-syntax at 1, '/0': " WORDS "'-'"},
    {"[na]", "bad-syntax at 2, '/0': expected a number, got 'a'"},
    {"[nul]", "bad-syntax at 4, '/0': expected a number, got ']'"},
    {"[1,null]", "bad-value at 3, '/1': expected a number, got null"},
    {"[true]", "bad-value at 1, '/0': expected a number, got true"},
    {"[false]", "bad-value at 1, '/0': expected a number, got false"},
    {"[{}]", "bad-value at 1, '/0': expected a number, got an object"},
    {"[1,\"2\"]", "bad-value at 3, '/1': expected a number, got a string"},
    {"[\"NaN ,1\"]", "bad-value at 1, '/0': expected a number, got a string"},
    {"[\"\"]", "bad-value at 1, '/0': expected a number, got a string"},
    {"[[1],[1e999]]", "bad-value at 6, '/1/0': 1e999 is beyond the range of float32"},
    {"[1,-3.5e38,2]", "bad-value at 3, '/1': -3.5e38 is beyond the range of float32"},
    {"[3.4028235677973366e38]", "float32 (1,) used 23: ffff7f7f"},
    {"[3.40282356779733661637539395458142568448e38]",
     "bad-value at 1, '/0': 3.40282356779733661637539395458142568448... is beyond the range of "
     "float32"},
    {"{", "bad-syntax at 0, '': expected '[', got '{'"},
    {"1", "bad-syntax at 0, '': expected '[', got '1'"},
    {"[1,2", "open"},
    {"[", "open"},
};

static void arrays_read_alike_at_every_split(void **state)
{
    (void)state;
    static char want[SUMMARY_BYTES], got[SUMMARY_BYTES];
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        const char *text = arrays[i].text;
        size_t size = strlen(text);
        read_in_three(DTYPE_FLOAT32, text, size, 0, 0, want);
        assert_string_equal(want, arrays[i].summary);
        read_in_steps(DTYPE_FLOAT32, text, size, 1, got);
        assert_string_equal(got, want);
        for (size_t first = 1; first < size; first++)
            for (size_t second = first; second < size; second++) {
                read_in_three(DTYPE_FLOAT32, text, size, first, second, got);
                assert_string_equal(got, want);
            }
    }
}

/* Long enough for runs of blocks, with every kind of number, rows and blanks; ends with `tail`. */
static size_t long_array(char *text, size_t capacity, const char *tail)
{
    static const char *const kinds[] = {
        "0.1234",
        "-0.5",
        "12",
        "-7.25",
        "3.14159265358979",
        "1e-7",
        "NaN",
        "123456.75",
        "-Infinity",
        "1234567.1",
        "0.00000000000000000001",
        "0",
        "98765432109876543210.5",
        "-0.0",
        "2.5000000000000001",
    };
    size_t used = 0, count = sizeof kinds / sizeof kinds[0];
    text[used++] = '[';
    for (size_t row = 0; row < 4; row++) {
        text[used++] = '[';
        for (size_t i = 0; i < count; i++)
            used +=
                (size_t)snprintf(text + used, capacity - used, "%s%s", kinds[(i * 7 + row) % count],
                                 i + 1 == count ? "]"
                                 : row % 2      ? ", "
                                                : ",");
        text[used++] = ',';
    }
    used += (size_t)snprintf(text + used, capacity - used, "%s", tail);
    assert_true(used < capacity);
    return used;
}

static void long_arrays_read_alike_at_every_split(void **state)
{
    (void)state;
    static const char *const tails[] = {"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]]", "[1,2]]",
                                        "[1,x,"};
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_UNKNOWN};
    static char text[2048], want[SUMMARY_BYTES], got[SUMMARY_BYTES];
    for (size_t i = 0; i < 9; i++) {
        enum dtype dtype = dtypes[i / 3];
        size_t size = long_array(text, sizeof text, tails[i % 3]);
        read_in_three(dtype, text, size, 0, 0, want);
        assert_string_not_equal(want, "open");
        for (size_t step = 1; step < 200; step += step < 70 ? 1 : 13) {
            read_in_steps(dtype, text, size, step, got);
            assert_string_equal(got, want);
        }
        for (size_t first = 1; first < size; first++) {
            read_in_three(dtype, text, size, first, first, got);
            assert_string_equal(got, want);
        }
    }
}

static double random_unit(void)
{
    return (double)(random_next() >> 11) * 0x1p-53;
}

/* A number that is easily rounded wrongly when its digits are many: beside the middle of two
 * float64s or of two float32s, or beside a whole number. */
static size_t hard_write(char *text)
{
    double value = ldexp(random_unit() + 0x1p-10, (int)(random_next() % 24));
    float narrow = (float)value;
    int places = 8 + (int)(random_next() % 11);
    switch (random_next() % 3) {
    case 0:
        return (size_t)sprintf(text, "%.*Lf", places,
                               ((long double)value + (long double)nextafter(value, INFINITY)) / 2);
    case 1:
        return (size_t)sprintf(text, "%.*f", places,
                               ((double)narrow + (double)nextafterf(narrow, INFINITY)) / 2);
    default:
        return (size_t)sprintf(text, "%.0f.%0*d", value, places, (int)(random_next() % 2));
    }
}

static size_t number_write(char *text)
{
    double value = (random_unit() - 0.5) * (random_next() % 3 ? 2 : 1e6);
    if (random_next() % 3 == 0)
        return hard_write(text);
    return (size_t)sprintf(text, random_next() % 8 ? "%.*f" : "%.*e", (int)(random_next() % 20),
                           value);
}

/* Numbers with exponents where one reader hands over to the other, or one rounding ends. */
static const char *const scientific[] = {"0e0",
                                         "-0e0",
                                         "-0.000E+10",
                                         "0e400",
                                         "-0e-99999",
                                         "1e3",
                                         "1E+5",
                                         "5e-1",
                                         "-1.5e1",
                                         "1e-05",
                                         "1e00015",
                                         "1e-00015",
                                         "1e000000005",
                                         "1e-16",
                                         "1e22",
                                         "1e23",
                                         "9007199254740993e0",
                                         "9.007199254740993e15",
                                         "4.5035996273704965e15",
                                         "9.223372036854775807e18",
                                         "-9.223372036854775808e18",
                                         "-4.611686018427387905e18",
                                         "1.6777217e7",
                                         "1.0000000596046447754e0",
                                         "1.00000005960464477539e0",
                                         "2.98023223876953125e-8",
                                         "123456789.123456789e-5",
                                         "12345678901234567890e-3",
                                         "0.0012345678901234567e5",
                                         "7.006492321624085e-46",
                                         "7.0064923216240862e-46",
                                         "3.4028235677973366e38",
                                         "-3.4028234663852886e38",
                                         "2.2250738585072014e-308",
                                         "2.2250738585072011e-308",
                                         "4.9406564584124654e-324",
                                         "2.4703282292062327e-324",
                                         "1.7976931348623157e308",
                                         "8.98846567431158e307"};

static size_t scientific_write(char *text)
{
    if (random_next() % 2)
        return (size_t)sprintf(
            text, "%s", scientific[random_next() % (sizeof scientific / sizeof *scientific)]);
    double value = ldexp(random_unit() - 0.5, (int)(random_next() % 200) - 100);
    return (size_t)sprintf(text, random_next() % 2 ? "%.*e" : "%.*E", (int)(random_next() % 21),
                           value);
}

enum { RUN_COUNT = 4096 };

/* The hot path and the one-number path are different code: for what the type holds they must agree,
 * whether the type is told before the array or after it. */
static void check_run(enum dtype dtype, bool is_told, size_t (*write)(char *text))
{
    static char text[1 << 16], elements[RUN_COUNT][8];
    size_t used = 0, count = 0;
    text[used++] = '[';
    while (used < sizeof text - 64 && count < RUN_COUNT) {
        size_t size = write(text + used);
        if (numbers_parse(text + used, size, dtype, elements[count]) != ERR_OK)
            continue;
        used += size;
        text[used++] = ',';
        count++;
    }
    text[used - 1] = ']';
    struct reading reading;
    reading_begin(&reading, is_told ? dtype : DTYPE_UNKNOWN, MAX_BYTES);
    reading_feed(&reading, text, used);
    assert_true(reading.is_done);
    assert_int_equal(numbers_convert(reading.numbers, dtype, &reading.problem), ERR_OK);
    assert_int_equal(numbers_tensor(reading.numbers).shape.dim[0], count);
    const char *data = reading.buffer.block.data;
    size_t size = dtype_size(dtype);
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(data + i * size, elements[i], size);
    reading_end(&reading);
}

static void runs_read_what_single_numbers_read(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_BFLOAT16};
    for (int round = 0; round < 60; round++)
        check_run(dtypes[round % 3], true, number_write);
}

static void runs_read_exponents_as_single_numbers_do(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64,
                                        DTYPE_INT8,    DTYPE_UINT8,    DTYPE_INT32,   DTYPE_INT64};
    for (size_t i = 0; i < 2 * sizeof dtypes / sizeof *dtypes; i++)
        check_run(dtypes[i / 2], i % 2 == 0, scientific_write);
}

/* No whole numbers that int64 holds, and most of them no numbers. */
static const char *const spoilt[] = {"",
                                     "-",
                                     "1.",
                                     ".5",
                                     "01",
                                     "00.5",
                                     "-01.25",
                                     "--1",
                                     "1-",
                                     "1.2.3",
                                     "0.12:4",
                                     "0.1234567890123\xb1",
                                     "0.x234567890123456789",
                                     "0.12.4567890123456789",
                                     "0.0\xba"
                                     "34567890123456789",
                                     "123.",
                                     "1234567890123456789.",
                                     "3.00000000000000001",
                                     "-3369.000000000000005",
                                     "99999999.99999999999",
                                     "0.99999999999999999",
                                     "33554433.000000001",
                                     "12345678901234.000123",
                                     "9223372036854775808",
                                     "9.223372036854775808e18",
                                     "1.2345678901234567e10",
                                     "1.5e400",
                                     "1e",
                                     "1e+",
                                     "1e-+5",
                                     "1e5.5",
                                     "1.e5",
                                     "-.5e3",
                                     "e5",
                                     "-e5",
                                     "01e5",
                                     "0x1e5",
                                     "1e5e3",
                                     "1d5",
                                     "1e0:5"};

/* Whole numbers enough for a run, and text where the twenty-first of them would be. */
static size_t spoilt_array(char text[static 512], const char *other)
{
    char *p = text;
    *p++ = '[';
    for (int i = 0; i < 60; i++)
        p += sprintf(p, "%s,", i == 20 ? other : "12");
    p[-1] = ']';
    return (size_t)(p - text);
}

/* Byte by byte no run is possible. */
static void runs_refuse_what_single_numbers_refuse(void **state)
{
    (void)state;
    static char want[SUMMARY_BYTES], got[SUMMARY_BYTES];
    for (size_t i = 0; i < sizeof spoilt / sizeof spoilt[0]; i++) {
        char text[512];
        size_t size = spoilt_array(text, spoilt[i]);
        for (int j = 0; j < 2; j++) {
            read_in_steps(j == 0 ? DTYPE_INT64 : DTYPE_FLOAT64, text, size, 1, want);
            assert_true(j > 0 || strstr(want, " at ") != NULL);
            read_in_steps(j == 0 ? DTYPE_INT64 : DTYPE_FLOAT64, text, size, size, got);
            assert_string_equal(got, want);
        }
    }
}

/* As float64s they are whole. */
static void fractions_beside_whole_numbers_are_refused_after_the_array(void **state)
{
    (void)state;
    static const char *const fractions[] = {"3.00000000000000001", "-3369.000000000000005",
                                            "33554433.000000001", "12345678901234.000123"};
    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
        char text[512];
        struct reading reading;
        reading_begin(&reading, DTYPE_UNKNOWN, MAX_BYTES);
        reading_feed(&reading, text, spoilt_array(text, fractions[i]));
        assert_true(reading.is_done);
        assert_int_equal(numbers_convert(reading.numbers, DTYPE_INT64, &reading.problem),
                         ERR_VALUE);
        assert_string_equal(reading.problem.pointer, "/20");
        reading_end(&reading);
    }
}

static void number_text_has_a_limit_at_every_split(void **state)
{
    (void)state;
    static char text[LIMIT_NUMBER_BYTES + 8], want[SUMMARY_BYTES], got[SUMMARY_BYTES];
    for (size_t extra = 0; extra < 2; extra++) {
        size_t size = LIMIT_NUMBER_BYTES + extra;
        text[0] = '[';
        memset(text + 1, '0', size);
        memcpy(text + 1, "0.", 2);
        text[1 + size] = ']';
        read_in_three(DTYPE_FLOAT64, text, size + 2, 0, 0, want);
        assert_string_equal(
            want, extra == 0 ? "float64 (1,) used 4098: 0000000000000000"
                             : "bad-value at 1, '/0': expected a number, got a longer text "
                               "than a number may have");
        for (size_t first = 1; first < size + 2; first += first < 10 || first > 4085 ? 1 : 101) {
            read_in_three(DTYPE_FLOAT64, text, size + 2, first, first, got);
            assert_string_equal(got, want);
        }
    }
}

static void limit_of_memory_is_kept_and_named(void **state)
{
    (void)state;
    struct reading reading;
    reading_begin(&reading, DTYPE_FLOAT32, 8);
    reading_feed(&reading, "[1,2]", 5);
    assert_true(reading.is_done);
    reading_end(&reading);
    reading_begin(&reading, DTYPE_FLOAT32, 11);
    reading_feed(&reading, "[1,2,3]", 7);
    assert_int_equal(reading.error, ERR_TOO_LARGE);
    assert_int_equal(reading.problem.offset, 5);
    assert_int_equal(reading.problem.limit, 11);
    assert_string_equal(reading.problem.pointer, "/2");
    assert_true(reading.buffer.used <= 11);
    reading_end(&reading);
}

/* Runs of blocks stop before the limit too: 1,000 elements do not fit into 2,000 bytes. */
static void limit_of_memory_holds_in_long_runs(void **state)
{
    (void)state;
    static char text[2 + 2 * 1000];
    text[0] = '[';
    for (size_t i = 0; i < 1000; i++)
        memcpy(text + 1 + 2 * i, "7,", 2);
    text[2000] = ']';
    struct reading reading;
    reading_begin(&reading, DTYPE_FLOAT64, 2000);
    reading_feed(&reading, text, 2001);
    assert_int_equal(reading.error, ERR_TOO_LARGE);
    assert_int_equal(reading.problem.offset, 1 + 2 * 250);
    assert_string_equal(reading.problem.pointer, "/250");
    reading_end(&reading);
}

static enum error refuse_acquire(void *context, size_t size, struct block *ret)
{
    (void)context;
    (void)size;
    (void)ret;
    return ERR_NOMEM;
}

static void missing_memory_is_told(void **state)
{
    (void)state;
    const struct buffer_source refuse = {refuse_acquire, buffer_heap.release, NULL, NULL};
    struct reading reading;
    reading_begin(&reading, DTYPE_FLOAT32, MAX_BYTES);
    reading.buffer.source = &refuse;
    reading_feed(&reading, "[1]", 3);
    assert_int_equal(reading.error, ERR_NOMEM);
    assert_string_equal(reading.problem.pointer, "/0");
    reading_end(&reading);
}

static void second_array_starts_aligned_behind_the_first(void **state)
{
    (void)state;
    struct reading a, b;
    reading_begin(&a, DTYPE_FLOAT32, MAX_BYTES);
    reading_feed(&a, "[1,2,3]", 7);
    b = (struct reading){.buffer = a.buffer};
    assert_int_equal(numbers_create(&b.numbers, &b.buffer, DTYPE_FLOAT32, MAX_BYTES), ERR_OK);
    reading_feed(&b, "[4]", 3);
    struct tensor tensor = numbers_tensor(b.numbers);
    assert_int_equal(tensor.offset, LIMIT_OPERAND_ALIGN);
    float first[3], second;
    memcpy(first, b.buffer.block.data, sizeof first);
    memcpy(&second, (char *)b.buffer.block.data + tensor.offset, sizeof second);
    assert_true(first[0] == 1 && first[1] == 2 && first[2] == 3 && second == 4);
    numbers_destroy(a.numbers);
    reading_end(&b);
}

static void one_number_is_read_whole_or_refused(void **state)
{
    (void)state;
    double value = 5;
    assert_int_equal(numbers_parse("1.5", 3, DTYPE_FLOAT64, &value), ERR_OK);
    assert_true(value == 1.5);
    assert_int_equal(numbers_parse("-Infinity", 9, DTYPE_FLOAT64, &value), ERR_OK);
    assert_true(value == -INFINITY);
    value = 5;
    static const char *const wrong[] = {"", " 1", "1 ", "1,2", "[1]", "0x1", "1.", "+1", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(numbers_parse(wrong[i], strlen(wrong[i]), DTYPE_FLOAT64, &value),
                         ERR_SYNTAX);
    assert_int_equal(numbers_parse("1e999", 5, DTYPE_FLOAT64, &value), ERR_VALUE);
    assert_int_equal(numbers_parse("null", 4, DTYPE_FLOAT64, &value), ERR_VALUE);
    assert_true(value == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_read_alike_at_every_split),
        cmocka_unit_test(long_arrays_read_alike_at_every_split),
        cmocka_unit_test(runs_read_what_single_numbers_read),
        cmocka_unit_test(runs_read_exponents_as_single_numbers_do),
        cmocka_unit_test(runs_refuse_what_single_numbers_refuse),
        cmocka_unit_test(fractions_beside_whole_numbers_are_refused_after_the_array),
        cmocka_unit_test(number_text_has_a_limit_at_every_split),
        cmocka_unit_test(limit_of_memory_is_kept_and_named),
        cmocka_unit_test(limit_of_memory_holds_in_long_runs),
        cmocka_unit_test(missing_memory_is_told),
        cmocka_unit_test(second_array_starts_aligned_behind_the_first),
        cmocka_unit_test(one_number_is_read_whole_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
