/* raw.c - application/octet-stream: all elements of a, then all of b (see encoding.h).
 *
 * The bytes are the operands: a piece is copied once, to its place in the request's buffer. With
 * the length or the shapes known the places are known before the first byte, the buffer is sized
 * once and b starts aligned. A chunked body without shapes grows, and b follows a directly.
 */
#include "proto/encoding.h"

#include <byteswap.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "proto/pointer.h"

enum { LARGE_BYTES = 32 << 20 }; /* of a body: more than a core's share of any cache */

struct raw {
    const struct encoding *encoding; /* first: see encoding.h */
    struct request *request;
    size_t element_size;
    size_t max_bytes;
    bool is_announced; /* the body's length was, in a header */
    bool is_large;     /* its elements leave the cache before they are computed with */
    uint64_t received_bytes;
    uint64_t expected_bytes; /* BODY_CHUNKED: not known before finish */
    uint64_t a_bytes;        /* UINT64_MAX: not known before finish */
    size_t b_offset;         /* where b starts, once a_bytes is known */
};

#define BINARY_HINT "; with curl use --data-binary, because -d strips line ends"

static bool is_given(const struct raw *raw, enum option bit)
{
    return (raw->request->options.given & bit) != 0;
}

/* The bytes that shape asks for; INT64_MAX stands for any more than that. */
static uint64_t shape_bytes(const struct raw *raw, const struct shape *shape)
{
    uint64_t count;
    if (shape_count(shape, &count) != ERR_OK || count > INT64_MAX / raw->element_size)
        return INT64_MAX;
    return count * raw->element_size;
}

static enum error odd_length(const struct raw *raw, uint64_t body_bytes, struct problem *problem)
{
    const char *name = dtype_name(raw->request->options.dtype);
    if (body_bytes % raw->element_size != 0)
        return problem_set(problem, ERR_LENGTH,
                           "%" PRIu64 " bytes are not a whole number of %s elements of %zu "
                           "bytes" BINARY_HINT,
                           body_bytes, name, raw->element_size);
    return problem_set(problem, ERR_LENGTH,
                       "%" PRIu64
                       " %s elements are an odd number: a and b have as many each unless "
                       "shape_a and shape_b say otherwise" BINARY_HINT,
                       body_bytes / raw->element_size, name);
}

/* Splits a body of so many bytes into a and b, and makes the shapes that were not given: the two
 * halves, or one dimension with what the other operand leaves. */
static enum error raw_split(struct raw *raw, uint64_t body_bytes, struct problem *problem)
{
    struct options *options = &raw->request->options;
    bool has_a = is_given(raw, OPTION_SHAPE_A), has_b = is_given(raw, OPTION_SHAPE_B);
    if (body_bytes % raw->element_size != 0 ||
        (!has_a && !has_b && body_bytes / raw->element_size % 2 != 0))
        return odd_length(raw, body_bytes, problem);

    uint64_t a_bytes = has_a ? shape_bytes(raw, &options->shape_a) : 0;
    uint64_t b_bytes = has_b ? shape_bytes(raw, &options->shape_b) : 0;
    uint64_t rest = body_bytes >= a_bytes + b_bytes ? body_bytes - a_bytes - b_bytes : 0;
    if (!has_a && !has_b)
        a_bytes = b_bytes = body_bytes / 2;
    else if (!has_a)
        a_bytes = rest;
    else if (!has_b)
        b_bytes = rest;
    if (a_bytes + b_bytes != body_bytes)
        return problem_set(problem, ERR_LENGTH,
                           "the body has %" PRIu64 " bytes, dtype and the shapes ask for %" PRIu64,
                           body_bytes, a_bytes + b_bytes);
    if (!has_a)
        options->shape_a = (struct shape){.rank = 1, .dim = {a_bytes / raw->element_size}};
    if (!has_b)
        options->shape_b = (struct shape){.rank = 1, .dim = {b_bytes / raw->element_size}};
    raw->a_bytes = a_bytes;
    return ERR_OK;
}

/* Everything that the length alone decides. */
static enum error raw_plan(struct raw *raw, struct problem *problem)
{
    const struct options *options = &raw->request->options;
    enum error err = raw_split(raw, raw->expected_bytes, problem);
    if (err != ERR_OK)
        return err;
    struct shape result;
    err = shape_dot(&options->shape_a, &options->shape_b, &result, problem);
    if (err != ERR_OK)
        return err;
    if (raw->expected_bytes > raw->max_bytes)
        return operands_too_large(raw->max_bytes, problem);
    raw->b_offset = size_align(raw->a_bytes);
    uint64_t bytes = raw->b_offset + (raw->expected_bytes - raw->a_bytes);
    if (bytes > raw->max_bytes)
        return operands_too_large(raw->max_bytes, problem);
    if (buffer_reserve(&raw->request->buffer, bytes) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for %" PRIu64 " bytes of operands",
                           bytes);
    return ERR_OK;
}

/* What is known of a body whose length is not. */
static enum error raw_plan_chunked(struct raw *raw, struct problem *problem)
{
    const struct options *options = &raw->request->options;
    raw->a_bytes = UINT64_MAX;
    if (!is_given(raw, OPTION_SHAPE_A))
        return ERR_OK;
    uint64_t a_bytes = shape_bytes(raw, &options->shape_a);
    if (is_given(raw, OPTION_SHAPE_B)) {
        raw->expected_bytes = a_bytes + shape_bytes(raw, &options->shape_b);
        return raw->expected_bytes > raw->max_bytes ? operands_too_large(raw->max_bytes, problem)
                                                    : raw_plan(raw, problem);
    }
    if (a_bytes > raw->max_bytes)
        return operands_too_large(raw->max_bytes, problem);
    raw->a_bytes = a_bytes;
    raw->b_offset = size_align(a_bytes);
    return ERR_OK;
}

static enum error raw_create(struct decoder **ret, struct request *request, uint64_t body_bytes,
                             size_t max_bytes, struct problem *problem)
{
    if (request->options.dtype == DTYPE_UNKNOWN) {
        problem_set(problem, ERR_OPTION,
                    "bytes do not tell their type: say so in the query string, for example "
                    "?dtype=float32; known are %s",
                    dtype_list());
        return pointer_set(problem, "/dtype");
    }
    struct raw *raw = malloc(sizeof *raw);
    if (raw == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a decoder");
    *raw = (struct raw){.encoding = &encoding_raw,
                        .request = request,
                        .element_size = dtype_size(request->options.dtype),
                        .max_bytes = max_bytes,
                        .is_announced = body_bytes != BODY_CHUNKED,
                        .is_large = body_bytes >= LARGE_BYTES && body_bytes != BODY_CHUNKED,
                        .expected_bytes = body_bytes};
    enum error err =
        body_bytes == BODY_CHUNKED ? raw_plan_chunked(raw, problem) : raw_plan(raw, problem);
    if (err != ERR_OK) {
        free(raw);
        return err;
    }
    *ret = (struct decoder *)raw;
    return ERR_OK;
}

static enum error wrong_length(const struct raw *raw, uint64_t offset, const char *what,
                               struct problem *problem)
{
    bool is_whole = offset % raw->element_size == 0; /* nothing was stripped, it seems */
    problem_set(problem, ERR_LENGTH, "the body %s after %" PRIu64 " bytes, %" PRIu64 " were %s%s",
                what, offset, raw->expected_bytes,
                raw->is_announced ? "announced" : "asked for by dtype and the shapes",
                is_whole ? "" : BINARY_HINT);
    problem->offset = (int64_t)offset;
    return problem->error;
}

/* Where the next byte goes, and how many after it go there in one piece. */
static size_t raw_place(const struct raw *raw, size_t *ret_room)
{
    if (raw->received_bytes < raw->a_bytes) {
        uint64_t room = raw->a_bytes - raw->received_bytes;
        *ret_room = room < SIZE_MAX ? room : SIZE_MAX;
        return raw->received_bytes;
    }
    *ret_room = SIZE_MAX;
    return raw->b_offset + (raw->received_bytes - raw->a_bytes);
}

/* Copies a piece of a body that is larger than the caches. Ordinary stores would first read the lines
 * that they are about to overwrite, and push out what is of use: measured 19 to 31 ms against 11 to
 * 18 for 256 MiB. Readers in other threads are ordered by the fence. */
static void copy_past_cache(char *to, const char *from, size_t size)
{
#ifdef __SSE2__
    size_t head = -(uintptr_t)to % sizeof(__m128i);
    if (head > size)
        head = size;
    memcpy(to, from, head);
    size_t whole = head + (size - head) / sizeof(__m128i) * sizeof(__m128i);
    for (size_t i = head; i < whole; i += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
    memcpy(to + whole, from + whole, size - whole);
    _mm_sfence();
#else
    memcpy(to, from, size);
#endif
}

static enum error raw_feed(struct decoder *decoder, const char *data, size_t size,
                           struct problem *problem)
{
    struct raw *raw = (struct raw *)decoder;
    struct buffer *buffer = &raw->request->buffer;
    if (size > raw->expected_bytes - raw->received_bytes)
        return wrong_length(raw, raw->expected_bytes, "goes on", problem);
    while (size > 0) {
        size_t room, offset = raw_place(raw, &room);
        size_t piece = size < room ? size : room;
        if (offset > raw->max_bytes || piece > raw->max_bytes - offset)
            return operands_too_large(raw->max_bytes, problem);
        if (buffer_reserve(buffer, offset + piece) != ERR_OK)
            return problem_set(problem, ERR_NOMEM, "no memory for more operands");
        char *place = (char *)buffer->block.data + offset;
        if (raw->is_large)
            copy_past_cache(place, data, piece);
        else
            memcpy(place, data, piece);
        buffer->used = offset + piece;
        raw->received_bytes += piece;
        data += piece;
        size -= piece;
    }
    return ERR_OK;
}

/* Through memcpy, as the bytes are neither integers nor floats yet; it costs nothing. */
static void swap16(char *number)
{
    uint16_t bits;
    memcpy(&bits, number, sizeof bits);
    bits = bswap_16(bits);
    memcpy(number, &bits, sizeof bits);
}

static void swap32(char *number)
{
    uint32_t bits;
    memcpy(&bits, number, sizeof bits);
    bits = bswap_32(bits);
    memcpy(number, &bits, sizeof bits);
}

static void swap64(char *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    bits = bswap_64(bits);
    memcpy(number, &bits, sizeof bits);
}

/* Each number on its own: the two parts of a complex element keep their places. */
static void swap_numbers(char *data, size_t size, size_t number_size)
{
    for (size_t i = 0; i < size; i += number_size) {
        if (number_size == sizeof(uint64_t))
            swap64(data + i);
        else if (number_size == sizeof(uint32_t))
            swap32(data + i);
        else if (number_size == sizeof(uint16_t))
            swap16(data + i);
    }
}

static void raw_swap(const struct raw *raw)
{
    char *data = raw->request->buffer.block.data;
    size_t number_size = dtype_size(dtype_part(raw->request->options.dtype));
    uint64_t b_bytes = raw->received_bytes - raw->a_bytes;
    if (raw->a_bytes > 0)
        swap_numbers(data, raw->a_bytes, number_size);
    if (b_bytes > 0)
        swap_numbers(data + raw->b_offset, b_bytes, number_size);
}

static enum error raw_settle(struct raw *raw, struct problem *problem)
{
    if (raw->expected_bytes == BODY_CHUNKED) {
        bool is_dense = raw->a_bytes == UINT64_MAX;
        enum error err = raw_split(raw, raw->received_bytes, problem);
        if (err == ERR_OK && is_dense)
            raw->b_offset = raw->a_bytes;
        return err;
    }
    if (raw->received_bytes == raw->expected_bytes)
        return ERR_OK;
    return wrong_length(raw, raw->received_bytes, "ends", problem);
}

static enum error raw_finish(struct decoder *decoder, struct problem *problem)
{
    struct raw *raw = (struct raw *)decoder;
    struct request *request = raw->request;
    const struct options *options = &request->options;
    enum error err = raw_settle(raw, problem);
    if (err == ERR_OK)
        err = request_pairs(request, 1, problem);
    if (err != ERR_OK)
        return err;
    if (options->order == ORDER_BIG)
        raw_swap(raw);
    request->pair->a = (struct tensor){.dtype = options->dtype, .shape = options->shape_a};
    request->pair->b = (struct tensor){
        .dtype = options->dtype, .shape = options->shape_b, .offset = raw->b_offset};
    return ERR_OK;
}

static void raw_destroy(struct decoder *decoder)
{
    free(decoder);
}

const struct encoding encoding_raw = {
    .create = raw_create,
    .feed = raw_feed,
    .finish = raw_finish,
    .destroy = raw_destroy,
};
