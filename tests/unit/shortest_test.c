/* shortest_test.c - floats print as the shortest decimal that reads back to the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/numbers.h"
#include "proto/shortest.h"
#include "tests/random.h"

enum { RANDOM_COUNT = 250000 };

static uint64_t random_state = 2;

static double float64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Prints into exactly SHORTEST_BYTES, where a sanitizer sees any byte too much. */
static void print_float64(double value, char ret[static SHORTEST_BYTES + 1])
{
    char *room = malloc(SHORTEST_BYTES);
    assert_non_null(room);
    size_t size = shortest_float64(value, room);
    memcpy(ret, room, size);
    ret[size] = '\0';
    free(room);
}

static void print_float32(float value, char ret[static SHORTEST_BYTES + 1])
{
    ret[shortest_float32(value, ret)] = '\0';
}

/* What decimals.py found by trying, and compared with Python's repr. */
static void table_prints_as_repr_does(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%.*s/data/shortest.txt", (int)(strrchr(__FILE__, '/') - __FILE__),
             __FILE__);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char type[16], want[64], got[SHORTEST_BYTES + 1];
    unsigned long long bits;
    int count = 0;
    while (fscanf(file, "%15s %llx %63s", type, &bits, want) == 3) {
        if (strcmp(type, "float64") == 0)
            print_float64(float64_of(bits), got);
        else
            print_float32(float32_of((uint32_t)bits), got);
        assert_string_equal(got, want);
        count++;
    }
    fclose(file);
    assert_in_range(count, 700, 2000);
}

static void every_layout_is_json(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {32, "32.0"},
        {-1.5, "-1.5"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {0.00012345, "0.00012345"},
        {1e15, "1000000000000000.0"},
        {9999999999999998, "9999999999999998.0"},
        {1e16, "1e+16"},
        {12345678901234567e0, "1.2345678901234568e+16"},
        {1e100, "1e+100"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {-1.7976931348623157e308, "-1.7976931348623157e+308"},
        {7.6, "7.6"},
        {0.1 + 0.2, "0.30000000000000004"},
        {9007199254740993, "9007199254740992.0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[SHORTEST_BYTES + 1];
        print_float64(rows[i].value, got);
        assert_string_equal(got, rows[i].text);
    }
}

static int digits_of(const char *text)
{
    int count = 0;
    bool is_leading = true;
    int zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (is_leading && *text == '0'))
            continue;
        is_leading = false;
        zeros = *text == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

/* Reads back through our own reader and glibc's; and no %.*e with one digit less does. */
static void random_float64s_read_back_and_none_is_shorter(void **state)
{
    (void)state;
    for (int i = 0; i < RANDOM_COUNT; i++) {
        uint64_t bits = random_next();
        if (i % 4 == 0) /* few digits: the texts that people write */
            bits &= ~(uint64_t)0 << (random_next() % 53);
        double value = float64_of(bits), back;
        if (value - value != 0)
            continue;
        char text[SHORTEST_BYTES + 1], shorter[40];
        print_float64(value, text);
        assert_int_equal(numbers_parse(text, strlen(text), DTYPE_FLOAT64, &back), ERR_OK);
        assert_memory_equal(&back, &value, sizeof value);
        back = strtod(text, NULL);
        assert_memory_equal(&back, &value, sizeof value);
        int digits = digits_of(text);
        if (digits >= 2 && i % 8 == 0) {
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
            back = strtod(shorter, NULL);
            assert_memory_not_equal(&back, &value, sizeof value);
        }
    }
}

static void random_float32s_read_back_and_none_is_shorter(void **state)
{
    (void)state;
    for (int i = 0; i < RANDOM_COUNT; i++) {
        float value = float32_of((uint32_t)random_next()), back;
        if (value - value != 0)
            continue;
        char text[SHORTEST_BYTES + 1], shorter[40];
        print_float32(value, text);
        assert_int_equal(numbers_parse(text, strlen(text), DTYPE_FLOAT32, &back), ERR_OK);
        assert_memory_equal(&back, &value, sizeof value);
        int digits = digits_of(text);
        if (digits >= 2 && i % 8 == 0) {
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, (double)value);
            back = strtof(shorter, NULL);
            assert_memory_not_equal(&back, &value, sizeof value);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_prints_as_repr_does),
        cmocka_unit_test(every_layout_is_json),
        cmocka_unit_test(random_float64s_read_back_and_none_is_shorter),
        cmocka_unit_test(random_float32s_read_back_and_none_is_shorter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
