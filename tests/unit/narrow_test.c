/* narrow_test.c - float16, bfloat16, integers: every pattern, every midpoint, and a table. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/narrow.h"
#include "proto/numbers.h"
#include "proto/shortest.h"
#include "tests/random.h"

enum { MAX_BYTES = 1 << 20, LINE_BYTES = 4096, RANDOM_COUNT = 1000000 };

static uint64_t random_state = 4;

static const struct kind {
    enum dtype dtype;
    size_t (*print)(uint16_t bits, char *ret);
    double (*value)(uint16_t bits);
    uint16_t (*bits)(double value);
    uint16_t infinity, nan;
    int digits, lowest,
        top; /* of the significand; exponents of the last bit and beyond the range */
} kinds[] = {
    {DTYPE_FLOAT16, shortest_float16, float16_value, float16_bits, 0x7c00, 0x7e00, 11, -24, 16},
    {DTYPE_BFLOAT16, shortest_bfloat16, bfloat16_value, bfloat16_bits, 0x7f80, 0x7fc0, 8, -133,
     128},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Reads an array whose type is known before it, or only after it; *ret is the element at index. */
static enum error array_read(const char *text, enum dtype dtype, bool is_late, size_t index,
                             void *ret)
{
    struct buffer buffer;
    struct numbers *numbers;
    struct problem problem;
    size_t used;
    bool done;
    buffer_init(&buffer, &buffer_heap);
    assert_int_equal(numbers_create(&numbers, &buffer, is_late ? DTYPE_UNKNOWN : dtype, MAX_BYTES),
                     ERR_OK);
    enum error err = numbers_feed(numbers, text, strlen(text), &used, &done, &problem);
    if (err == ERR_OK) {
        assert_true(done);
        err = numbers_convert(numbers, dtype, &problem);
    }
    if (err == ERR_OK)
        memcpy(ret, (char *)buffer.block.data + index * dtype_size(dtype), dtype_size(dtype));
    numbers_destroy(numbers);
    buffer_fini(&buffer);
    return err;
}

/* Reads one number in each way that there is; all must agree. */
static enum error number_read(const char *text, enum dtype dtype, uint64_t *ret)
{
    static char array[LINE_BYTES + 256];
    uint64_t bits[5] = {0};
    enum error err[5];
    err[0] = numbers_parse(text, strlen(text), dtype, &bits[0]);
    for (int i = 1; i < 5; i++) {
        /* Blocks are read from the second number on, and where more text follows. */
        bool is_alone = i < 3;
        char *end = array + snprintf(array, sizeof array, is_alone ? "[%s" : "[0,%s", text);
        for (int zeros = is_alone ? 0 : 50; zeros > 0; zeros--)
            end = stpcpy(end, ",0");
        strcpy(end, "]");
        err[i] = array_read(array, dtype, i % 2 == 0, is_alone ? 0 : 1, &bits[i]);
    }
    for (int i = 1; i < 5; i++) {
        if (err[i] != err[0] || bits[i] != bits[0])
            print_error("%s as %s, way %d\n", text, dtype_name(dtype), i);
        assert_int_equal(err[i], err[0]);
        assert_true(bits[i] == bits[0]);
    }
    *ret = bits[0];
    return err[0];
}

static void every_pattern_prints_and_reads_back(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const struct kind *kind = &kinds[k];
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            double value = kind->value((uint16_t)bits);
            if ((bits & 0x7fff) > kind->infinity) {
                assert_true(isnan(value));
                assert_int_equal(kind->bits(value), kind->nan);
                continue;
            }
            assert_int_equal(kind->bits(value), bits);
            if ((bits & 0x7fff) == kind->infinity) {
                assert_true(isinf(value));
                continue;
            }
            char text[SHORTEST_BYTES + 1];
            uint16_t back = 0;
            text[kind->print((uint16_t)bits, text)] = '\0';
            assert_int_equal(numbers_parse(text, strlen(text), kind->dtype, &back), ERR_OK);
            assert_int_equal(back, bits);
            assert_int_equal(kind->bits(strtod(text, NULL)), bits); /* 17 digits settle it */
        }
    }
}

/* One digit less does not read back. */
static void no_pattern_has_a_shorter_text(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t bits = 1; bits < kinds[k].infinity; bits++) {
            char text[SHORTEST_BYTES + 1], shorter[40];
            text[kinds[k].print((uint16_t)bits, text)] = '\0';
            int digits = 0, zeros = 0;
            for (const char *p = text; *p != '\0' && *p != 'e'; p++) {
                bool is_significant = *p >= '1' && *p <= '9';
                zeros = is_significant ? 0 : zeros + (*p == '0' && digits > 0);
                digits += is_significant || (*p == '0' && digits > 0);
            }
            digits -= zeros;
            if (digits < 2)
                continue;
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, kinds[k].value((uint16_t)bits));
            assert_int_not_equal(kinds[k].bits(strtod(shorter, NULL)), bits);
        }
}

/* Makes the number's last digit, a zero, a one; or takes one unit of it, by borrowing. */
static void text_move(char *text, bool is_up)
{
    char *p = strchr(text, 'e') - 1;
    assert_int_equal(*p, '0');
    if (is_up) {
        *p = '1';
        return;
    }
    for (; *p == '0' || *p == '.'; p--)
        if (*p == '0')
            *p = '9';
    *p -= 1;
}

static void check_read(const char *text, const struct kind *kind, uint32_t want)
{
    uint64_t got;
    enum error err = number_read(text, kind->dtype, &got);
    if (err != (want == kind->infinity ? ERR_VALUE : ERR_OK) || (err == ERR_OK && got != want))
        print_error("%s\n", text);
    assert_int_equal(err, want == kind->infinity ? ERR_VALUE : ERR_OK);
    if (err == ERR_OK)
        assert_int_equal(got, want);
}

/* 120 digits hold every midpoint of both types; the last of them is a zero. */
static void every_midpoint_and_a_hair_beside_it_rounds_right(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const struct kind *kind = &kinds[k];
        for (uint32_t bits = 0; bits < kind->infinity; bits++) {
            double above = bits + 1u == kind->infinity ? ldexp(1, kind->top)
                                                       : kind->value((uint16_t)(bits + 1));
            double middle = (kind->value((uint16_t)bits) + above) / 2; /* exact */
            char tie[160], up[160], down[160];
            snprintf(tie, sizeof tie, "%.120e", middle);
            strcpy(up, tie);
            strcpy(down, tie);
            text_move(up, true);
            text_move(down, false);
            check_read(tie, kind, bits + bits % 2);
            check_read(up, kind, bits + 1);
            check_read(down, kind, bits);
        }
    }
}

static void table_reads_and_prints_as_rationals_do(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%.*s/data/narrow.txt", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    static char verb[16], type[16], first[LINE_BYTES], second[LINE_BYTES];
    int count = 0;
    for (; fscanf(file, "%15s %15s %4095s %4095s", verb, type, first, second) == 4; count++) {
        enum dtype dtype;
        enum byte_order order;
        assert_int_equal(dtype_parse(type, &dtype, &order), ERR_OK);
        if (strcmp(verb, "print") == 0) {
            char text[SHORTEST_BYTES + 1];
            uint16_t bits = (uint16_t)strtoul(first, NULL, 16);
            size_t size = dtype == DTYPE_FLOAT16 ? shortest_float16(bits, text)
                                                 : shortest_bfloat16(bits, text);
            text[size] = '\0';
            assert_string_equal(text, second);
            continue;
        }
        uint64_t bits;
        enum error err = number_read(first, dtype, &bits);
        char got[24] = "refused";
        if (err == ERR_OK)
            snprintf(got, sizeof got, "%0*llx", (int)(2 * dtype_size(dtype)),
                     (unsigned long long)bits);
        if (strcmp(got, second) != 0)
            print_error("%s as %s\n", first, type);
        assert_string_equal(got, second);
    }
    fclose(file);
    assert_in_range(count, 2000, 4000);
}

/* By scaling, in libm's arithmetic and not in ours. */
static double rounded(double value, const struct kind *kind)
{
    int exponent;
    (void)frexp(value, &exponent);
    int last = exponent - kind->digits > kind->lowest ? exponent - kind->digits : kind->lowest;
    double whole = ldexp(nearbyint(ldexp(value, -last)), last);
    return fabs(whole) < ldexp(1, kind->top) ? whole : copysign(INFINITY, value);
}

static void float64s_round_to_nearest_even(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (int i = 0; i < RANDOM_COUNT; i++) {
            uint64_t bits = random_next();
            int range = kinds[k].top - kinds[k].lowest + 8;
            double value = ldexp(1 + (double)(bits >> 12) * 0x1p-52,
                                 kinds[k].lowest - 4 + (int)(random_next() % (unsigned)range));
            if (i % 2 != 0) { /* few bits: ties are common */
                memcpy(&bits, &value, sizeof bits);
                bits &= ~(uint64_t)0 << (38 + random_next() % 10);
                memcpy(&value, &bits, sizeof value);
            }
            value = i % 3 == 0 ? -value : value;
            double got = kinds[k].value(kinds[k].bits(value)), want = rounded(value, &kinds[k]);
            assert_true(got == want && signbit(got) == signbit(want));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_prints_and_reads_back),
        cmocka_unit_test(no_pattern_has_a_shorter_text),
        cmocka_unit_test(every_midpoint_and_a_hair_beside_it_rounds_right),
        cmocka_unit_test(table_reads_and_prints_as_rationals_do),
        cmocka_unit_test(float64s_round_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
