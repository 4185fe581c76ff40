/* numbers_convert_test.c - a type that is told after the array rounds as one told before it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/numbers.h"
#include "tests/random.h"
#include "tests/unit/reading.h"

enum { TRAP_COUNT = 20000 };

static uint64_t random_state = 3;

static void read_and_convert(struct reading *reading, const char *text, size_t size)
{
    reading_begin(reading, DTYPE_UNKNOWN, MAX_BYTES);
    reading_feed(reading, text, size);
    if (reading->error == ERR_OK)
        reading->error = numbers_convert(reading->numbers, DTYPE_FLOAT32, &reading->problem);
}

/* Decimals beside the midpoints of float32, near enough that float64 cannot tell the side. */
static size_t trap_write(char *text)
{
    uint32_t bits = (uint32_t)(random_next() % 0x7f7fffff);
    float value;
    memcpy(&value, &bits, sizeof value);
    uint32_t next_bits = bits + 1;
    float next;
    memcpy(&next, &next_bits, sizeof next);
    double middle = ((double)value + (double)next) / 2;
    size_t size = (size_t)sprintf(text, "%s%.170e", random_next() % 2 ? "-" : "", middle);
    char *exponent = strchr(text, 'e');
    /* 170 digits hold every midpoint of float32; the last of them are zeros. */
    switch (random_next() % 4) {
    case 0:
        exponent[-1] = '1';
        break;
    case 1: /* one unit below, by borrowing */
        for (char *p = exponent - 1;; p--) {
            if (*p == '.')
                continue;
            if (*p != '0') {
                *p -= 1;
                break;
            }
            *p = '9';
        }
        break;
    default:
        break;
    }
    return size;
}

static void dtype_after_the_array_rounds_as_dtype_before_it(void **state)
{
    (void)state;
    enum { BATCH = 200 };
    static char text[BATCH * 256];
    static const char *const plain[] = {"0.1",
                                        "1e-400",
                                        "16777217",
                                        "3.4028235677973366e38",
                                        "1e-45",
                                        "7e-46",
                                        "NaN",
                                        "-Infinity",
                                        "0",
                                        "-0",
                                        "0.5",
                                        "1.00000000000000000001",
                                        "16777219.00000000000000000000000000000001"};
    for (int round = 0; round < TRAP_COUNT / BATCH; round++) {
        size_t used = 1;
        text[0] = '[';
        for (size_t i = 0; i < BATCH; i++) {
            if (i % 4 == 3)
                used += (size_t)sprintf(text + used, "%s", plain[random_next() % 13]);
            else
                used += trap_write(text + used);
            text[used++] = i + 1 < BATCH ? ',' : ']';
        }
        struct reading before, after;
        reading_begin(&before, DTYPE_FLOAT32, MAX_BYTES);
        reading_feed(&before, text, used);
        read_and_convert(&after, text, used);
        assert_true(before.is_done && after.is_done);
        assert_int_equal(after.error, ERR_OK);
        assert_int_equal(numbers_tensor(after.numbers).dtype, DTYPE_FLOAT32);
        assert_memory_equal(after.buffer.block.data, before.buffer.block.data,
                            BATCH * sizeof(float));
        const char *p = text + 1;
        for (size_t i = 0; i < BATCH; i++, p++) {
            char *stop;
            float want = strtof(p, &stop), got;
            memcpy(&got, (float *)before.buffer.block.data + i, sizeof got);
            if (want == want)
                assert_memory_equal(&got, &want, sizeof got);
            p = stop;
        }
        reading_end(&before);
        reading_end(&after);
    }
}

static void conversion_beyond_the_range_names_the_element(void **state)
{
    (void)state;
    struct reading reading;
    const char *text = "[[1,2],[Infinity,3.5e38],[4,5]]";
    read_and_convert(&reading, text, strlen(text));
    assert_int_equal(reading.error, ERR_VALUE);
    assert_string_equal(reading.problem.pointer, "/1/1");
    reading_end(&reading);
    /* Its float64 is the midpoint, which would round up; the decimal is below it. */
    text = "[3.4028235677973366163753939545814256844799999e38]";
    read_and_convert(&reading, text, strlen(text));
    assert_int_equal(reading.error, ERR_OK);
    float value;
    memcpy(&value, reading.buffer.block.data, sizeof value);
    assert_true(value == 0x1.fffffep127f);
    reading_end(&reading);
}

static void unknown_dtype_stays_float64_when_asked(void **state)
{
    (void)state;
    struct reading reading;
    reading_begin(&reading, DTYPE_UNKNOWN, MAX_BYTES);
    reading_feed(&reading, "[0.1,1e300]", 11);
    assert_int_equal(numbers_convert(reading.numbers, DTYPE_FLOAT64, &reading.problem), ERR_OK);
    assert_int_equal(numbers_convert(reading.numbers, DTYPE_FLOAT64, &reading.problem), ERR_OK);
    double value[2];
    memcpy(value, reading.buffer.block.data, sizeof value);
    assert_true(value[0] == 0.1 && value[1] == 1e300);
    reading_end(&reading);
    reading_begin(&reading, DTYPE_UNKNOWN, MAX_BYTES);
    reading_feed(&reading, "[[],[]]", 7);
    assert_int_equal(numbers_convert(reading.numbers, DTYPE_FLOAT32, &reading.problem), ERR_OK);
    assert_int_equal(numbers_tensor(reading.numbers).dtype, DTYPE_FLOAT32);
    reading_end(&reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtype_after_the_array_rounds_as_dtype_before_it),
        cmocka_unit_test(conversion_beyond_the_range_names_the_element),
        cmocka_unit_test(unknown_dtype_stays_float64_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
