/* fuzz.h - what every fuzzing target has in common: checks, the input's bytes, random cuts.
 *
 * Door: a target is one file with a LLVMFuzzerTestOneInput(). libFuzzer makes inputs up (preset
 * fuzz); elsewhere replay.c feeds it the inputs that were kept.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold, whatever the input. The rest says with which values it does not. */
#define CHECK(condition, ...)                                                             \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                                 \
            fputc('\n', stderr);                                                          \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* Takes an input's first bytes, which choose how its rest is used; 0 once there are none. */
struct input {
    const uint8_t *data;
    size_t size;
};

static inline unsigned input_byte(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++;
}

/* Where a text is cut. Nothing is cut when the seed is 0. */
struct cuts {
    uint64_t seed;
};

/* The next of `left` bytes, at least one of them. Source: G. Marsaglia, "Xorshift RNGs", 2003. */
static inline size_t cuts_next(struct cuts *cuts, size_t left)
{
    if (cuts->seed == 0)
        return left;
    cuts->seed ^= cuts->seed << 13;
    cuts->seed ^= cuts->seed >> 7;
    cuts->seed ^= cuts->seed << 17;
    size_t most = cuts->seed % 3 == 0 ? left : 1 + (cuts->seed >> 8) % 24;
    size_t size = 1 + (cuts->seed >> 32) % most;
    return size < left ? size : left;
}

/* A copy of exact size, so that a sanitizer sees any read beyond it. */
static inline char *copy_of(const void *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    CHECK(copy != NULL, "no memory");
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* The same as text. */
static inline char *text_of(const void *data, size_t size)
{
    char *text = malloc(size + 1);
    CHECK(text != NULL, "no memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
