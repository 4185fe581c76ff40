/* reading.h - one array of numbers being read, piece by piece, for the tests of numbers.h. Included
 * once, by a cmocka program. */
#ifndef TESTS_UNIT_READING_H
#define TESTS_UNIT_READING_H

#include <stdlib.h>
#include <string.h>

#include "proto/numbers.h"

enum { MAX_BYTES = 1 << 20 };

/* One array being read, and all that came of it. */
struct reading {
    struct buffer buffer;
    struct numbers *numbers;
    enum dtype dtype;
    size_t used; /* bytes that were taken */
    bool is_done;
    enum error error;
    struct problem problem;
};

static inline void reading_begin(struct reading *reading, enum dtype dtype, size_t max_bytes)
{
    memset(reading, 0, sizeof *reading);
    reading->dtype = dtype;
    buffer_init(&reading->buffer, &buffer_heap);
    problem_clear(&reading->problem);
    reading->error = numbers_create(&reading->numbers, &reading->buffer, dtype, max_bytes);
    assert_int_equal(reading->error, ERR_OK);
}

static inline void reading_end(struct reading *reading)
{
    numbers_destroy(reading->numbers);
    buffer_fini(&reading->buffer);
}

/* Feeds a copy of exact size, so that a sanitizer sees any read beyond the piece. */
static inline void reading_feed(struct reading *reading, const char *text, size_t size)
{
    if (reading->error != ERR_OK || reading->is_done || size == 0)
        return;
    char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, text, size);
    size_t used = SIZE_MAX;
    bool is_done = false;
    reading->error = numbers_feed(reading->numbers, copy, size, &used, &is_done, &reading->problem);
    free(copy);
    if (reading->error != ERR_OK) {
        assert_int_equal(used, SIZE_MAX);
        assert_int_equal(reading->problem.error, reading->error);
        return;
    }
    assert_true(used <= size && (is_done || used == size));
    reading->used += used;
    reading->is_done = is_done;
}

#endif
