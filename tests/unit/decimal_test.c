/* decimal_test.c - decimals round once, to nearest even, to float64 and float32. */
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
#include "proto/pow10.h"
#include "tests/random.h"

enum { LINE_BYTES = 4096, RANDOM_COUNT = 300000 };

static uint64_t random_state = 1;

static uint64_t bits64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t bits32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Both roundings of text as the table writes them. A copy of exact size lets a sanitizer see any
 * read beyond the text. */
static void round_print(const char *text, char ret64[static 24], char ret32[static 24])
{
    size_t size = strlen(text);
    char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, text, size);
    double wide;
    float narrow;
    enum error err = numbers_parse(copy, size, DTYPE_FLOAT64, &wide);
    snprintf(ret64, 24,
             err == ERR_OK      ? "%016llx"
             : err == ERR_VALUE ? "inf"
                                : "refused",
             (unsigned long long)bits64(wide));
    err = numbers_parse(copy, size, DTYPE_FLOAT32, &narrow);
    snprintf(ret32, 24,
             err == ERR_OK      ? "%08x"
             : err == ERR_VALUE ? "inf"
                                : "refused",
             bits32(narrow));
    free(copy);
}

/* What decimals.py computed with rationals. */
static void hard_decimals_round_as_rationals_do(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%.*s/data/decimals.txt", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    static char text[LINE_BYTES];
    char want64[24], want32[24], got64[24], got32[24];
    int count = 0;
    while (fscanf(file, "%4095s %23s %23s", text, want64, want32) == 3) {
        round_print(text, got64, got32);
        if (strcmp(got64, want64) != 0 || strcmp(got32, want32) != 0)
            print_error("%s\n", text);
        assert_string_equal(got64, want64);
        assert_string_equal(got32, want32);
        count++;
    }
    fclose(file);
    assert_in_range(count, 800, 2000);
}

/* A number in one of many shapes: short, long, with leading zeros, with and without an exponent. */
static void text_make(char *text)
{
    char *p = text;
    if (random_next() % 2)
        *p++ = '-';
    unsigned before = (unsigned)(random_next() % 6 == 0 ? random_next() % 25 : random_next() % 4);
    unsigned after = (unsigned)(random_next() % 6 == 0 ? random_next() % 40 : random_next() % 9);
    if (before == 0)
        *p++ = '0';
    for (unsigned i = 0; i < before; i++)
        *p++ = (char)(i == 0 ? '1' + random_next() % 9 : '0' + random_next() % 10);
    if (after > 0)
        *p++ = '.';
    unsigned zeros = (unsigned)(random_next() % 4 == 0 ? random_next() % 12 : 0);
    for (unsigned i = 0; i < after; i++)
        *p++ = (char)(i < zeros ? '0' : '0' + random_next() % 10);
    if (random_next() % 3 == 0) {
        int range = random_next() % 2 ? 340 : 45;
        p += sprintf(p, random_next() % 2 ? "e%+d" : "E%d",
                     (int)(random_next() % (unsigned)(2 * range)) - range);
    }
    *p = '\0';
}

/* No test sets a locale, so that strtod reads as the C locale does. */
static void random_decimals_round_as_strtod_does(void **state)
{
    (void)state;
    for (int i = 0; i < RANDOM_COUNT; i++) {
        char text[128], want64[24], want32[24], got64[24], got32[24];
        text_make(text);
        double wide = strtod(text, NULL);
        float narrow = strtof(text, NULL);
        snprintf(want64, sizeof want64, isinf(wide) ? "inf" : "%016llx",
                 (unsigned long long)bits64(wide));
        snprintf(want32, sizeof want32, isinf(narrow) ? "inf" : "%08x", bits32(narrow));
        round_print(text, got64, got32);
        if (strcmp(got64, want64) != 0 || strcmp(got32, want32) != 0)
            print_error("%s\n", text);
        assert_string_equal(got64, want64);
        assert_string_equal(got32, want32);
    }
}

static struct decimal decimal_of(const char *text)
{
    struct decimal decimal;
    const char *stop;
    assert_true(decimal_scan(text, &decimal, &stop));
    assert_int_equal(*stop, '\0');
    return decimal;
}

static int side_of(const char *text)
{
    struct decimal decimal = decimal_of(text);
    double value;
    assert_int_equal(decimal_float64(&decimal, &value), ERR_OK);
    return decimal_side(&decimal, value);
}

static void side_tells_where_the_decimal_lies(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int side;
    } rows[] = {
        {"0", 0},
        {"-0.000e7", 0},
        {"1", 0},
        {"-0.5", 0},
        {"12345678.25", 0},
        {"1e22", 0},
        {"1e23", 1}, /* 9.999999999999999161e22 */
        {"0.1", -1}, /* 0.1000000000000000055 */
        {"-0.1", -1},
        {"0.3", 1}, /* 0.2999999999999999889 */
        {"1.00000000000000000001", 1},
        {"0.99999999999999999999", -1},
        {"-0.99999999999999999999", -1},
        {"9007199254740993", 1},
        {"9007199254740995", -1},
        {"1e-400", 1},
        {"5e-324", 1},
        {"2.5000000000000000000000000000000000000e-1", 0},
        {"1.00000005960464477539062500000000000000000000000000001", 1},
        {"1.00000005960464477539062499999999999999999999999999999", -1},
        {"1.000000059604644775390625", 0},
        {"1000000059604644775390625e-24", 0},
        {"1.7976931348623157e308", -1},
        {"1797693134862315708145274237317043567980705675258449965989174768031572607800285387605895"
         "5863276687817154045895351438246423432132688946418276846754670353751698604991057655128207"
         "6245490090389328944075868508455133942304583236903222948165808559332123348274797826204144"
         "723168738177180919299881250404026184124858368",
         0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (side_of(rows[i].text) != rows[i].side)
            print_error("%s\n", rows[i].text);
        assert_int_equal(side_of(rows[i].text), rows[i].side);
    }
}

static void nudge_moves_one_unit_in_magnitude(void **state)
{
    (void)state;
    assert_int_equal(bits64(decimal_nudge(1.0, 1)), bits64(0x1.0000000000001p0));
    assert_int_equal(bits64(decimal_nudge(1.0, -1)), bits64(0x1.fffffffffffffp-1));
    assert_int_equal(bits64(decimal_nudge(-1.0, 1)), bits64(-0x1.0000000000001p0));
    assert_int_equal(bits64(decimal_nudge(0.0, 1)), bits64(0x1p-1074));
    assert_int_equal(bits64(decimal_nudge(1.0, 0)), bits64(1.0));
}

/* The longest texts that are read: the comparison's integers are at their longest. */
static void longest_numbers_round(void **state)
{
    (void)state;
    static const struct {
        const char *head, *tail;
        char fill;
        double value;
    } rows[] = {
        {"0.", "", '0', 0},
        {"1.", "", '0', 1},
        {"0.", "", '9', 1},
        {"1", "e-4000", '0', 1e89},
        {"4.9", "e-324", '4', 0x1p-1074},
        {"2.470328229206232720882843964341106861825299013071623822127928412503377536351043",
         "e-324", '9', 0x1p-1074},
        {"9007199254740993.", "", '0', 0x1p53},
        {"9007199254740993.", "1", '0', 0x1p53 + 2},
        {"17976931348623157", "e-3790", '9', 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[LIMIT_NUMBER_BYTES + 1];
        size_t head = strlen(rows[i].head), tail = strlen(rows[i].tail);
        memcpy(text, rows[i].head, head);
        memset(text + head, rows[i].fill, LIMIT_NUMBER_BYTES - head - tail);
        memcpy(text + LIMIT_NUMBER_BYTES - tail, rows[i].tail, tail + 1);
        double value, want = rows[i].value != 0 ? rows[i].value : strtod(text, NULL);
        assert_int_equal(numbers_parse(text, LIMIT_NUMBER_BYTES, DTYPE_FLOAT64, &value), ERR_OK);
        assert_int_equal(bits64(value), bits64(want));
    }
}

static void digits_beyond_nineteen_are_cut_and_counted(void **state)
{
    (void)state;
    struct decimal decimal = decimal_of("-0.00012345678901234567891e5");
    assert_int_equal(decimal.digits, 1234567890123456789u);
    assert_int_equal(decimal.exponent, 5 - 22);
    assert_true(decimal.is_cut && decimal.is_negative);
    decimal = decimal_of("12345678901234567890000");
    assert_int_equal(decimal.digits, 1234567890123456789u);
    assert_int_equal(decimal.exponent, 4);
    assert_false(decimal.is_cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_decimals_round_as_rationals_do),
        cmocka_unit_test(random_decimals_round_as_strtod_does),
        cmocka_unit_test(side_tells_where_the_decimal_lies),
        cmocka_unit_test(nudge_moves_one_unit_in_magnitude),
        cmocka_unit_test(longest_numbers_round),
        cmocka_unit_test(digits_beyond_nineteen_are_cut_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
