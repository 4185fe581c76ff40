/* numbers.c - how fast arrays of numbers and base64 are read and numbers are written, on one core.
 *
 *     bench_numbers [TEXT_MIB]
 *
 * Text of each kind is fed in pieces of 32 KiB, as the network brings it, into a buffer that is
 * already there, so that page faults are not what is measured. MB/s is of text, median of 15, by
 * the time of the processor: other programs on the same core are not measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base64.h"
#include "proto/numbers.h"
#include "proto/shortest.h"
#include "tests/bench/arguments.h"
#include "tests/random.h"

enum { PIECE_BYTES = 32 * 1024, ROUNDS = 15, SHORTEST_COUNT = 1 << 20 };

static uint64_t random_state = 1;

static double random_unit(void)
{
    return (double)(random_next() >> 11) * 0x1p-53;
}

static double random_bits64(void)
{
    uint64_t bits = random_next() & 0xbfffffffffffffffu; /* finite, up to 2 in magnitude */
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double random_bits32(void)
{
    uint32_t bits = (uint32_t)random_next() & 0xbfffffffu;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static const char *random_sign(void)
{
    return random_next() % 2 ? "-" : "";
}

static int write_1024ths(char *text)
{
    return sprintf(text, "%s%.10g,", random_sign(), (double)(random_next() % 1024) / 1024);
}

/* As JSON writers have them. */
static int write_shortest(char *text)
{
    size_t size = shortest_float64(random_unit() * 2 - 1, text);
    text[size] = ',';
    return (int)size + 1;
}

static int write_short(char *text)
{
    return sprintf(text, "0.%04u,", (unsigned)(random_next() % 10000));
}

static int write_mixed(char *text)
{
    int digits = 1 + (int)(random_next() % 6);
    return sprintf(text, "%.*f, ", digits, (random_unit() - 0.5) * 2000);
}

static int write_integers(char *text)
{
    return sprintf(text, "%u,", (unsigned)(random_next() >> 44 >> random_next() % 20));
}

static int write_9_digits(char *text)
{
    return sprintf(text, "%.9g,", random_unit());
}

static int write_17_digits(char *text)
{
    return sprintf(text, "%.17g,", random_unit());
}

static int write_e(char *text)
{
    return sprintf(text, "%e,", random_unit());
}

static int write_16e(char *text)
{
    return sprintf(text, "%.16e,", random_unit());
}

static int write_small(char *text)
{
    size_t size = shortest_float64(random_unit() * 1e-5, text);
    text[size] = ',';
    return (int)size + 1;
}

static int write_bits32(char *text)
{
    return sprintf(text, "%.9g,", random_bits32());
}

static int write_bits64(char *text)
{
    return sprintf(text, "%.17g,", random_bits64());
}

static const struct kind {
    const char *name;
    int (*write)(char *text);
} kinds[] = {
    {"0.1234", write_short},
    {"1024ths in (-1,1)", write_1024ths},
    {"mixed, 1 to 6 decimals", write_mixed},
    {"integers", write_integers},
    {"%.9g in (0,1)", write_9_digits},
    {"%.17g in (0,1)", write_17_digits},
    {"shortest in (-1,1)", write_shortest},
    {"%e in (0,1)", write_e},
    {"%.16e in (0,1)", write_16e},
    {"shortest in (0,1e-5)", write_small},
    {"%.9g of any float32", write_bits32},
    {"%.17g of any float64", write_bits64},
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t text_write(const struct kind *kind, char *text, size_t size)
{
    size_t used = 0;
    text[used++] = '[';
    while (used + 64 < size)
        used += (size_t)kind->write(text + used);
    while (text[used - 1] != ',')
        used--;
    text[used - 1] = ']';
    return used;
}

static void read_once(struct buffer *buffer, enum dtype dtype, const char *text, size_t size)
{
    struct numbers *numbers = NULL;
    struct problem problem;
    buffer->used = 0;
    enum error err = numbers_create(&numbers, buffer, dtype, SIZE_MAX);
    bool is_done = false;
    for (size_t at = 0; err == ERR_OK && !is_done;) {
        size_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES, used;
        err = numbers_feed(numbers, text + at, piece, &used, &is_done, &problem);
        at += piece;
    }
    numbers_destroy(numbers);
    if (err != ERR_OK) {
        fprintf(stderr, "%s\n", problem.detail);
        exit(1);
    }
}

static void base64_write(char *text, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i + 1 < size; i++)
        text[i] = digits[random_next() >> 58];
    text[size - 1] = '"';
}

static void base64_read(struct buffer *buffer, const char *text, size_t size)
{
    struct base64 base64 = {0};
    struct problem problem;
    char *out = buffer->block.data;
    enum error err = ERR_OK;
    bool is_done = false;
    for (size_t at = 0; err == ERR_OK && !is_done;) {
        size_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES, used, written;
        err = base64_feed(&base64, text + at, piece, &used, out, &written, &is_done, &problem);
        at += piece;
        out += written;
    }
    if (err != ERR_OK) {
        fprintf(stderr, "%s\n", problem.detail);
        exit(1);
    }
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, double_compare);
    return values[count / 2];
}

static double read_rate(struct buffer *buffer, enum dtype dtype, const char *text, size_t size)
{
    double rate[ROUNDS];
    read_once(buffer, dtype, text, size);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_s();
        read_once(buffer, dtype, text, size);
        rate[i] = (double)size / (now_s() - begin) * 1e-6;
    }
    return median(rate, ROUNDS);
}

static double base64_rate(struct buffer *buffer, char *text, size_t size)
{
    size -= size % 4 - 1; /* whole groups and the quote */
    double rate[ROUNDS];
    base64_write(text, size);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_s();
        base64_read(buffer, text, size);
        rate[i] = (double)size / (now_s() - begin) * 1e-6;
    }
    return median(rate, ROUNDS);
}

/* Prints millions of numbers a second, and of their characters. */
static void print_write_rate(const char *name, double (*next)(void), bool is_float32)
{
    static double values[SHORTEST_COUNT];
    for (size_t i = 0; i < SHORTEST_COUNT; i++)
        values[i] = next();
    double rate[ROUNDS];
    size_t bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_s();
        char text[SHORTEST_BYTES];
        for (size_t i = 0; i < SHORTEST_COUNT; i++)
            bytes += is_float32 ? shortest_float32((float)values[i], text)
                                : shortest_float64(values[i], text);
        rate[round] = SHORTEST_COUNT / (now_s() - begin) * 1e-6;
    }
    const double length = (double)bytes / ROUNDS / SHORTEST_COUNT, numbers = median(rate, ROUNDS);
    printf("%-24s %10.1f %10.0f\n", name, numbers, numbers * length);
}

int main(int argc, char **argv)
{
    struct argument text_mib = {"TEXT_MIB", 8, 1, 4096};
    arguments_read(argc, argv, &text_mib, 1);
    size_t size = (size_t)text_mib.value << 20;
    char *text = malloc(size);
    if (text == NULL)
        return 1;
    struct buffer buffer;
    buffer_init(&buffer, &buffer_heap);
    printf("%-24s %10s %10s %10s   MB/s of text\n", "read", "float32", "float64", "unknown");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t used = text_write(&kinds[i], text, size);
        printf("%-24s %10.0f %10.0f %10.0f\n", kinds[i].name,
               read_rate(&buffer, DTYPE_FLOAT32, text, used),
               read_rate(&buffer, DTYPE_FLOAT64, text, used),
               read_rate(&buffer, DTYPE_UNKNOWN, text, used));
    }
    printf("%-24s %10.0f\n", "base64", base64_rate(&buffer, text, size - 4));
    buffer_fini(&buffer);
    free(text);
    printf("%-24s %10s %10s   millions a second\n", "write, shortest", "numbers", "characters");
    print_write_rate("float64 in (0,1)", random_unit, false);
    print_write_rate("any float64", random_bits64, false);
    print_write_rate("any float32", random_bits32, true);
    return 0;
}
