/* numbers.c - the streaming reader of one array of numbers (see numbers.h).
 *
 * A piece is read up to its last byte that no number or word contains: before it every leaf is
 * whole, and the byte that ends it stops every loop, so that the hot path checks no bound for each
 * byte. What follows is the one leaf that the boundary may have cut; it waits in `carry`.
 *
 * run_of() is the hot path: leaves and commas at one depth, straight into the buffer. It finds the
 * commas of 64 bytes first, so that one number's length never delays the next. Whatever else comes,
 * a bracket, the last leaf of a row, a mistake, is left where it is for step(), which reads one
 * thing and knows how to complain. So a problem is found at the same byte however the text was cut.
 */
#include "proto/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "proto/brief.h"
#include "proto/leaf.h"
#include "proto/nest.h"
#include "proto/pointer.h"
#include "proto/shortest.h"
#include "proto/unsettled.h"

enum {
    GROW_BYTES = 4096,                    /* the least that the buffer grows by */
    CARRY_BYTES = LIMIT_NUMBER_BYTES + 1, /* one more than fits tells that a leaf is too long */
    CARRY_ROOM = CARRY_BYTES + 1,         /* and its terminator */
    BLOCK_BYTES = 64,                     /* searched for commas at a time */
    BLOCK_VALUES = 33, /* that a block may complete: each takes two bytes, the first one less */
    BLOCK_SLACK = BRIEF_READS, /* readable after a block */
    COPY_BYTES = 256,          /* read apart at a time, at either end of a piece */
};

enum expect {
    EXPECT_OPEN,  /* the array's '[' */
    EXPECT_FIRST, /* a value, or ']' for an empty row */
    EXPECT_VALUE, /* after a comma */
    EXPECT_COMMA, /* after a value: ',' or ']' */
    EXPECT_DONE   /* the array is closed */
};

struct numbers {
    struct buffer *buffer; /* borrowed */
    enum dtype dtype;      /* as asked for; DTYPE_UNKNOWN stores float64 */
    enum dtype part;       /* of the numbers: those of a complex element are two */
    size_t number_size;    /* bytes of each, as stored */
    size_t max_bytes;
    size_t start;   /* offset of element 0 in the buffer */
    uint64_t taken; /* bytes of the array fed in earlier pieces */
    enum expect expect;
    struct nest nest;
    struct shape shape; /* of the elements, once expect is DONE and dtype is known */
    struct unsettled unsettled;
    uint64_t carry_offset; /* of carry[0] in the array */
    size_t carry_size;     /* 0: no leaf was cut */
    char *carry;           /* owned, [CARRY_ROOM]; NULL unless a leaf was cut: a request may hold
                              65,536 pairs of arrays, most of which lie whole in one piece */
};

/* Text that is being read: a piece, or the carried leaf with its terminator. */
struct piece {
    const char *data, *end; /* all of it may be read */
    uint64_t offset;        /* of data[0] in the array */
};

static bool is_at_value(const struct numbers *n)
{
    return n->expect == EXPECT_FIRST || n->expect == EXPECT_VALUE;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const char *blank_skip(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* Where the problem is: the byte, and the path of the value that is being read, or of the open
 * array that `levels` leads to. */
static enum error problem_locate(const struct numbers *n, const struct piece *piece, const char *at,
                                 int levels, struct problem *problem)
{
    (void)problem_at(problem, piece->offset + (uint64_t)(at - piece->data));
    return nest_locate(&n->nest, levels, problem);
}

const char *byte_print(char byte, char text[static 16])
{
    if (byte > ' ' && byte < 0x7f)
        (void)snprintf(text, 16, byte == '\'' ? "\"%c\"" : "'%c'", byte);
    else
        (void)snprintf(text, 16, "byte 0x%02x", (unsigned char)byte);
    return text;
}

static enum error syntax_fail(const struct numbers *n, const struct piece *piece, const char *at,
                              const char *expected, struct problem *problem)
{
    char got[16];
    problem_set(problem, ERR_SYNTAX, "expected %s, got %s", expected, byte_print(*at, got));
    /* After a value it is the row that has a mistake, not a value. */
    return problem_locate(n, piece, at, is_at_value(n) ? n->nest.depth : n->nest.depth - 1,
                          problem);
}

/* Bytes for elements: up to the block's end, or where max_bytes ends. */
static size_t room_left(const struct numbers *n)
{
    size_t size = n->buffer->block.size, used = n->buffer->used;
    size_t end = size < n->max_bytes ? size : n->max_bytes;
    return used < end ? end - used : 0; /* aligning may have passed max_bytes */
}

static enum error room_make(struct numbers *n, struct problem *problem)
{
    size_t used = n->buffer->used;
    if (room_left(n) >= n->number_size)
        return ERR_OK;
    if (used > n->max_bytes || n->max_bytes - used < n->number_size)
        return operands_too_large(n->max_bytes, problem);
    size_t size = n->max_bytes - used < GROW_BYTES ? n->max_bytes : used + GROW_BYTES;
    enum error err = buffer_reserve(n->buffer, size);
    return err == ERR_OK ? err : problem_set(problem, err, "no memory for the operands");
}

/* Stores the leaf as the next number, at out. */
static enum error number_store(struct numbers *n, const struct leaf *leaf, char *out)
{
    enum error err = leaf_store(leaf, n->part, out);
    if (err != ERR_OK || n->part != DTYPE_UNKNOWN || leaf->is_word)
        return err;
    double value;
    memcpy(&value, out, sizeof value);
    const char *first = (const char *)n->buffer->block.data + n->start;
    return unsettled_note(&n->unsettled, (uint64_t)(out - first) / sizeof value, &leaf->decimal,
                          value);
}

/* Bit i tells that p[i] is a comma. */
static inline uint64_t commas64(const char *p)
{
    uint64_t commas = 0;
#ifdef __SSE2__
    for (int i = 0; i < 64; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i marks = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(','));
        commas |= (uint64_t)(unsigned)_mm_movemask_epi8(marks) << i;
    }
#else
    for (int i = 0; i < 64; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, p + i, sizeof bytes);
        bytes ^= BYTES8(',');
        uint64_t marks = ~(((bytes & BYTES8(0x7f)) + BYTES8(0x7f)) | bytes) & BYTES8(0x80);
        /* The product gathers bit 7 of byte j at bit 56 + j. */
        commas |= ((marks >> 7) * 0x0102040810204080u >> 56) << i;
    }
#endif
    return commas;
}

/* Stores [p, comma) when it is one leaf that the type can hold; else false. */
static __attribute__((noinline)) bool long_store(struct numbers *n, const char *p,
                                                 const char *comma, char *out)
{
    struct leaf leaf;
    return brief_store_scientific(p, comma, n->part, out) ||
           (leaf_read(p, &leaf) == ERR_OK && leaf.stop == comma &&
            number_store(n, &leaf, out) == ERR_OK);
}

/* Is a number to come, and has the buffer room for a block's? */
static bool run_is_possible(const struct numbers *n)
{
    return is_at_value(n) && n->nest.depth == n->nest.rank &&
           room_left(n) >= BLOCK_VALUES * n->number_size;
}

/* Does the piece hold a block from p on, and what is read around it? */
static bool is_amidst(const struct piece *piece, const char *p)
{
    return p - piece->data >= BRIEF_BEFORE && piece->end - p >= BLOCK_BYTES + BLOCK_SLACK;
}

/* Reads leaves, each followed by its comma, from p on, block by block. Returns the place of the
 * first value that it left: it may be a leaf all the same, at the end of a row or of the piece. One
 * copy a type: part and size are constants in each. */
static inline __attribute__((always_inline)) const char *
run_of(struct numbers *n, const struct piece *piece, const char *p, enum dtype part, size_t size)
{
    assert(n->number_size == size && run_is_possible(n) && is_amidst(piece, p));
    char *begin = (char *)n->buffer->block.data + n->buffer->used, *out = begin;
    const char *last = begin + room_left(n) - BLOCK_VALUES * size;
    const char *from = p, *end = piece->end;
    bool is_leaf = true;
    for (const char *block = p; is_leaf && end - block >= BLOCK_BYTES + BLOCK_SLACK && out <= last;
         block += BLOCK_BYTES) {
        for (uint64_t commas = commas64(block); commas != 0; commas &= commas - 1) {
            const char *comma = block + (unsigned)__builtin_ctzll(commas);
            if (__builtin_expect(!brief_store(p, comma, part, out), 0)) {
                is_leaf = long_store(n, p, comma, out);
                if (!is_leaf)
                    break;
            }
            out += size;
            p = comma + 1;
            if (__builtin_expect(is_blank(*p), 0))
                p = blank_skip(p, end);
        }
    }
    if (p != from)
        n->expect = EXPECT_VALUE;
    n->nest.count[n->nest.depth - 1] += (uint64_t)(out - begin) / size;
    n->buffer->used += (size_t)(out - begin);
    return p;
}

/* A function each: in one with all of them the compiler keeps less in registers, at a tenth of the
 * speed. */
#define RUN(name, part, type)                                                           \
    static __attribute__((noinline))                                                    \
    const char *run_##name(struct numbers *n, const struct piece *piece, const char *p) \
    {                                                                                   \
        return run_of(n, piece, p, part, sizeof(type));                                 \
    }
RUN(float16, DTYPE_FLOAT16, uint16_t)
RUN(bfloat16, DTYPE_BFLOAT16, uint16_t)
RUN(float32, DTYPE_FLOAT32, float)
RUN(float64, DTYPE_FLOAT64, double)
RUN(int8, DTYPE_INT8, int8_t)
RUN(uint8, DTYPE_UINT8, uint8_t)
RUN(int32, DTYPE_INT32, int32_t)
RUN(int64, DTYPE_INT64, int64_t)
RUN(unknown, DTYPE_UNKNOWN, double)
#undef RUN

static const char *run_read(struct numbers *n, const struct piece *piece, const char *p)
{
    static const char *(*const runs[])(struct numbers * n, const struct piece *piece,
                                       const char *p) = {
        [DTYPE_FLOAT16] = run_float16, [DTYPE_BFLOAT16] = run_bfloat16,
        [DTYPE_FLOAT32] = run_float32, [DTYPE_FLOAT64] = run_float64,
        [DTYPE_INT8] = run_int8,       [DTYPE_UINT8] = run_uint8,
        [DTYPE_INT32] = run_int32,     [DTYPE_INT64] = run_int64,
        [DTYPE_UNKNOWN] = run_unknown,
    };
    assert(runs[n->part] != NULL); /* a part is never complex */
    return runs[n->part](n, piece, p);
}

/* The same at either end of a piece: in a copy that has bytes around it. */
static const char *run_apart(struct numbers *n, const struct piece *piece, const char *p)
{
    char copy[BRIEF_BEFORE + COPY_BYTES + BLOCK_BYTES + BLOCK_SLACK] = {0};
    size_t left = (size_t)(piece->end - p);
    char *from = copy + BRIEF_BEFORE;
    memcpy(from, p, left < COPY_BYTES ? left : COPY_BYTES);
    const struct piece apart = {copy, copy + sizeof copy, 0};
    return p + (run_read(n, &apart, from) - from);
}

/* The type does not hold the number that the text writes; a long text is cut. */
static enum error range_fail(enum dtype dtype, const char *text, size_t size,
                             struct problem *problem)
{
    enum { SHOWN_BYTES = 40 };
    const char *more = size > SHOWN_BYTES ? "..." : "";
    int shown = size > SHOWN_BYTES ? SHOWN_BYTES : (int)size;
    static const char *const whole[DTYPE_COUNT] = {
        [DTYPE_INT8] = "-128 to 127",
        [DTYPE_UINT8] = "0 to 255",
        [DTYPE_INT32] = "-2147483648 to 2147483647",
        [DTYPE_INT64] = "-9223372036854775808 to 9223372036854775807",
    };
    if (whole[dtype] != NULL)
        return problem_set(problem, ERR_VALUE, "%s holds whole numbers from %s, not %.*s%s",
                           dtype_name(dtype), whole[dtype], shown, text, more);
    return problem_set(problem, ERR_VALUE, "%.*s%s is beyond the range of %s", shown, text, more,
                       dtype_name(dtype));
}

/* Makes the leaf, whose text begins at p, the next number, if the shape allows one here. */
static enum error value_append(struct numbers *n, const char *p, const struct leaf *leaf,
                               struct problem *problem)
{
    enum error err = nest_number(&n->nest, problem);
    if (err == ERR_OK)
        err = room_make(n, problem);
    if (err != ERR_OK)
        return err;
    err = number_store(n, leaf, (char *)n->buffer->block.data + n->buffer->used);
    if (err == ERR_VALUE)
        return range_fail(n->dtype == DTYPE_UNKNOWN ? DTYPE_FLOAT64 : n->dtype, p,
                          (size_t)(leaf->stop - p), problem);
    if (err != ERR_OK)
        return problem_set(problem, err, "no memory for the operands");
    n->buffer->used += n->number_size;
    n->nest.count[n->nest.depth - 1]++;
    n->expect = EXPECT_COMMA;
    return ERR_OK;
}

/* Reads the leaf at *p and moves *p behind it. */
static enum error value_read(struct numbers *n, const struct piece *piece, const char **p,
                             struct problem *problem)
{
    struct leaf leaf;
    enum error err = leaf_read(*p, &leaf);
    if (err == ERR_SYNTAX)
        return syntax_fail(n, piece, leaf.stop, leaf.what, problem);
    if (err == ERR_VALUE)
        problem_set(problem, err, "expected a number, got %s", leaf.what);
    else
        err = value_append(n, *p, &leaf, problem);
    if (err != ERR_OK)
        return problem_locate(n, piece, *p, n->nest.depth, problem);
    *p = leaf.stop;
    return ERR_OK;
}

static enum error row_open(struct numbers *n, const struct piece *piece, const char *p,
                           struct problem *problem)
{
    if (nest_open(&n->nest, problem) != ERR_OK)
        return problem_locate(n, piece, p, n->nest.depth, problem);
    n->expect = EXPECT_FIRST;
    return ERR_OK;
}

static enum error row_close(struct numbers *n, const struct piece *piece, const char *p,
                            struct problem *problem)
{
    if (nest_close(&n->nest, problem) != ERR_OK)
        return problem_locate(n, piece, p, n->nest.depth - 1, problem);
    if (n->nest.depth > 0) {
        n->expect = EXPECT_COMMA;
        return ERR_OK;
    }
    n->expect = EXPECT_DONE;
    return n->dtype == DTYPE_UNKNOWN ? ERR_OK : nest_settle(&n->nest, n->dtype, &n->shape, problem);
}

/* Reads the one thing at *p, which is not blank: a bracket, a comma, a leaf or a mistake. */
static enum error step(struct numbers *n, const struct piece *piece, const char **p,
                       struct problem *problem)
{
    char c = **p;
    bool is_value = n->expect == EXPECT_FIRST || n->expect == EXPECT_VALUE;
    if (c == '[' && (is_value || n->expect == EXPECT_OPEN))
        return row_open(n, piece, (*p)++, problem);
    if (c == ']' && (n->expect == EXPECT_FIRST || n->expect == EXPECT_COMMA))
        return row_close(n, piece, (*p)++, problem);
    if (c == ',' && n->expect == EXPECT_COMMA) {
        n->expect = EXPECT_VALUE;
        (*p)++;
        return ERR_OK;
    }
    if (is_value)
        return value_read(n, piece, p, problem);
    return syntax_fail(n, piece, *p, n->expect == EXPECT_OPEN ? "'['" : "',' or ']'", problem);
}

/* One past the last byte of [p, end) that no leaf contains; p when there is none. */
static const char *safe_end(const char *p, const char *end)
{
    while (end > p && is_leaf_byte(end[-1]))
        end--;
    return end;
}

/* Takes bytes into the carry until the leaf is whole or longer than any may be, and reads it then.
 * Returns how many bytes of [p, end) belong to it in *ret_taken. */
static enum error carry_read(struct numbers *n, const char *p, const char *end, size_t *ret_taken,
                             struct problem *problem)
{
    const char *from = p;
    while (p < end && n->carry_size < CARRY_BYTES && is_leaf_byte(*p))
        n->carry[n->carry_size++] = *p++;
    *ret_taken = (size_t)(p - from);
    bool is_full = n->carry_size == CARRY_BYTES;
    if (p == end && !is_full)
        return ERR_OK;
    /* Too long a leaf ends here as well: whatever follows, its first bytes decide. */
    char *stop = n->carry + n->carry_size;
    *stop = is_full ? ' ' : *p;
    struct piece piece = {n->carry, stop + 1, n->carry_offset};
    const char *leaf = n->carry;
    n->carry_size = 0;
    enum error err = value_read(n, &piece, &leaf, problem);
    if (err == ERR_OK && leaf != stop)
        err = syntax_fail(n, &piece, leaf, "',' or ']'", problem);
    return err;
}

static enum error carry_begin(struct numbers *n, const struct piece *piece, const char **p,
                              struct problem *problem)
{
    if (n->carry == NULL && (n->carry = malloc(CARRY_ROOM)) == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a number that was cut");
    size_t taken;
    n->carry_offset = piece->offset + (uint64_t)(*p - piece->data);
    enum error err = carry_read(n, *p, piece->end, &taken, problem);
    *p += taken;
    return err;
}

/* Reads [p, piece->end) up to the array's end or a leaf that may go on in the next piece, which it
 * puts into the carry. */
static enum error piece_read(struct numbers *n, const struct piece *piece, const char **p,
                             struct problem *problem)
{
    const char *safe = safe_end(*p, piece->end);
    enum error err = ERR_OK;
    while (err == ERR_OK && n->expect != EXPECT_DONE) {
        *p = blank_skip(*p, piece->end);
        if (*p == piece->end)
            break;
        const char *from = *p;
        if (run_is_possible(n))
            *p = is_amidst(piece, from) ? run_read(n, piece, from) : run_apart(n, piece, from);
        if (*p != from)
            continue;
        if (*p >= safe && is_at_value(n))
            err = carry_begin(n, piece, p, problem);
        else
            err = step(n, piece, p, problem);
    }
    return err;
}

enum error numbers_create(struct numbers **ret, struct buffer *buffer, enum dtype dtype,
                          size_t max_bytes)
{
    struct numbers *n = calloc(1, sizeof *n);
    if (n == NULL)
        return ERR_NOMEM;
    n->buffer = buffer;
    n->dtype = dtype;
    n->part = dtype_part(dtype);
    n->number_size = dtype_size(n->part == DTYPE_UNKNOWN ? DTYPE_FLOAT64 : n->part);
    n->max_bytes = max_bytes;
    n->expect = EXPECT_OPEN;
    nest_init(&n->nest, dtype);
    enum error err = buffer_align(buffer, &n->start);
    if (err != ERR_OK) {
        numbers_destroy(n);
        return err;
    }
    *ret = n;
    return ERR_OK;
}

void numbers_destroy(struct numbers *numbers)
{
    if (numbers == NULL)
        return;
    unsettled_fini(&numbers->unsettled);
    free(numbers->carry);
    free(numbers);
}

enum error numbers_feed(struct numbers *numbers, const char *data, size_t size, size_t *ret_used,
                        bool *ret_done, struct problem *problem)
{
    assert(numbers->expect != EXPECT_DONE);
    struct piece piece = {data, data + size, numbers->taken};
    const char *p = data;
    enum error err = ERR_OK;
    if (numbers->carry_size > 0) {
        size_t taken;
        err = carry_read(numbers, p, piece.end, &taken, problem);
        p += taken;
    }
    if (err == ERR_OK)
        err = piece_read(numbers, &piece, &p, problem);
    if (err != ERR_OK)
        return err;
    numbers->taken += (uint64_t)(p - data);
    *ret_used = (size_t)(p - data);
    *ret_done = numbers->expect == EXPECT_DONE;
    if (*ret_done) {
        free(numbers->carry);
        numbers->carry = NULL;
    }
    return ERR_OK;
}

struct tensor numbers_tensor(const struct numbers *numbers)
{
    assert(numbers->expect == EXPECT_DONE && numbers->dtype != DTYPE_UNKNOWN);
    return (struct tensor){
        .dtype = numbers->dtype, .shape = numbers->shape, .offset = numbers->start};
}

/* The same once the text is gone: the float64 that was stored, whole or in its shortest form. */
static enum error late_range_fail(const struct numbers *n, uint64_t index, double value,
                                  struct problem *problem)
{
    char text[8 + SHORTEST_BYTES] = "about ";
    size_t size = unsettled_has(&n->unsettled, index) ? strlen(text) : 0;
    if (isnan(value))
        size += (size_t)sprintf(text + size, "NaN");
    else if (isinf(value))
        size += (size_t)sprintf(text + size, "%sInfinity", value < 0 ? "-" : "");
    else if (value == trunc(value) && fabs(value) < 1e19)
        size += (size_t)sprintf(text + size, "%.0f", value);
    else
        size += shortest_float64(value, text + size);
    return range_fail(n->dtype, text, size, problem);
}

enum error numbers_convert(struct numbers *numbers, enum dtype dtype, struct problem *problem)
{
    assert(numbers->expect == EXPECT_DONE && dtype != DTYPE_UNKNOWN);
    if (numbers->dtype == dtype)
        return ERR_OK;
    assert(numbers->dtype == DTYPE_UNKNOWN);
    numbers->dtype = dtype;
    numbers->part = dtype_part(dtype);
    numbers->number_size = dtype_size(numbers->part);
    enum error err = nest_settle(&numbers->nest, dtype, &numbers->shape, problem);
    if (err != ERR_OK)
        return err;
    uint64_t count = nest_count(&numbers->nest);
    if (count == 0)
        return ERR_OK; /* the buffer may have no block yet */
    char *elements = (char *)numbers->buffer->block.data + numbers->start;
    uint64_t wrong = unsettled_convert(&numbers->unsettled, numbers->part, elements, count);
    if (wrong == count)
        return ERR_OK;
    double value; /* as it was stored: conversion writes behind what it has still to read */
    memcpy(&value, elements + wrong * sizeof value, sizeof value);
    late_range_fail(numbers, wrong, value, problem);
    return nest_locate_number(&numbers->nest, wrong, problem);
}

enum error numbers_parse(const char *text, size_t size, enum dtype dtype, void *ret_element)
{
    if (size > LIMIT_NUMBER_BYTES)
        return ERR_VALUE;
    char copy[CARRY_ROOM]; /* with the terminator that the reader needs */
    memcpy(copy, text, size);
    copy[size] = '\0';
    struct leaf leaf;
    enum error err = leaf_read(copy, &leaf);
    if (err == ERR_OK && leaf.stop != copy + size)
        err = ERR_SYNTAX;
    return err == ERR_OK ? leaf_store(&leaf, dtype, ret_element) : err;
}
