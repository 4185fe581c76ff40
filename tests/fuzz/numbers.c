/* numbers.c - arrays of numbers are read alike however they are cut, and whether their type is
 * known before them or only after. */
#include <inttypes.h>

#include "proto/numbers.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_BYTES = 1 << 21, SIZE_MAX_BYTES = 1 << 16 };

struct reading {
    struct buffer buffer;
    struct numbers *numbers;
    size_t used;
    bool is_done;
    enum error error;
    struct problem problem;
};

static void feed(struct reading *reading, const char *text, size_t size)
{
    char *copy = copy_of(text, size);
    size_t used = 0;
    reading->error =
        numbers_feed(reading->numbers, copy, size, &used, &reading->is_done, &reading->problem);
    free(copy);
    CHECK(reading->error != ERR_OK || reading->is_done || used == size, "%zu of %zu", used, size);
    reading->used += used;
}

static void read_array(struct reading *ret, enum dtype dtype, size_t max_bytes, const char *text,
                       size_t size, struct cuts cuts)
{
    memset(ret, 0, sizeof *ret);
    buffer_init(&ret->buffer, &buffer_heap);
    problem_clear(&ret->problem);
    ret->error = numbers_create(&ret->numbers, &ret->buffer, dtype, max_bytes);
    CHECK(ret->error == ERR_OK, "error %d", ret->error);
    for (size_t at = 0; at < size && ret->error == ERR_OK && !ret->is_done;) {
        size_t piece = cuts_next(&cuts, size - at);
        feed(ret, text + at, piece);
        at += piece;
    }
    CHECK(ret->buffer.used <= max_bytes, "%zu of %zu bytes", ret->buffer.used, max_bytes);
}

static void reading_fini(struct reading *reading)
{
    numbers_destroy(reading->numbers);
    buffer_fini(&reading->buffer);
}

static void check_same_elements(const struct reading *a, const struct reading *b)
{
    struct tensor x = numbers_tensor(a->numbers), y = numbers_tensor(b->numbers);
    uint64_t count, other;
    CHECK(x.dtype == y.dtype && x.shape.rank == y.shape.rank, "%d, %d", x.dtype, y.dtype);
    CHECK(shape_count(&x.shape, &count) == ERR_OK && shape_count(&y.shape, &other) == ERR_OK &&
              count == other,
          "%" PRIu64, count);
    for (int i = 0; i < x.shape.rank; i++)
        CHECK(x.shape.dim[i] == y.shape.dim[i], "axis %d", i);
    CHECK(count == 0 ||
              memcmp((char *)a->buffer.block.data + x.offset,
                     (char *)b->buffer.block.data + y.offset, count * dtype_size(x.dtype)) == 0,
          "elements of %s", dtype_name(x.dtype));
}

static void check_same(const struct reading *a, const struct reading *b)
{
    const struct problem *p = &a->problem, *q = &b->problem;
    CHECK(a->error == b->error && a->is_done == b->is_done, "%s, %s", p->detail, q->detail);
    CHECK(strcmp(p->detail, q->detail) == 0 && strcmp(p->pointer, q->pointer) == 0 &&
              p->offset == q->offset && p->limit == q->limit,
          "%s at %s %" PRId64 ", %s at %s %" PRId64, p->detail, p->pointer, p->offset, q->detail,
          q->pointer, q->offset);
    if (a->error == ERR_OK)
        CHECK(a->used == b->used, "%zu, %zu", a->used, b->used);
}

static void convert(struct reading *reading, enum dtype dtype)
{
    if (reading->error == ERR_OK && reading->is_done)
        reading->error = numbers_convert(reading->numbers, dtype, &reading->problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    enum dtype dtype = (enum dtype)(choice % DTYPE_COUNT);
    bool is_tight = choice >= 128; /* float64s that wait take more room than their type will */
    struct reading whole, pieces, later;
    if (input.size > SIZE_MAX_BYTES)
        return 0;
    char *text = text_of(input.data, input.size);
    memmove(text + 1, text, input.size);
    text[0] = '['; /* as the door wants it; the NUL's place is taken */
    size_t text_size = input.size + 1, max_bytes = is_tight ? 256 : MAX_BYTES;
    read_array(&whole, dtype, max_bytes, text, text_size, (struct cuts){0});
    read_array(&pieces, dtype, max_bytes, text, text_size, cuts);
    check_same(&whole, &pieces);
    read_array(&later, DTYPE_UNKNOWN, max_bytes, text, text_size, cuts);
    convert(&later, dtype);
    if (whole.error == ERR_OK && whole.is_done) {
        check_same_elements(&whole, &pieces);
        CHECK(is_tight || later.error == ERR_OK, "%s", later.problem.detail);
        if (later.error == ERR_OK)
            check_same_elements(&whole, &later);
    } else if (whole.error != ERR_OK && later.is_done) {
        CHECK(later.error != ERR_OK, "%s as %s", whole.problem.detail, dtype_name(dtype));
    }
    reading_fini(&whole);
    reading_fini(&pieces);
    reading_fini(&later);
    free(text);
    return 0;
}
