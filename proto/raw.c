/* raw.c - application/octet-stream: all elements of a, then all of b, or blocks of them in turn, or
 * many pairs (raw_pairs.h). See encoding.h.
 *
 * The bytes are the operands. A body that is one row goes to the request's sink as it arrives
 * (rounds.h), if there is one: interleaved always, concatenated when its length is known and worth
 * it. Otherwise a piece is copied once, to its place in the request's buffer, or received there.
 * With the length or the shapes known the places are known before the first byte, the buffer is
 * sized once and b starts aligned. A chunked body without shapes grows, and b follows a directly.
 */
#include "proto/encoding.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bytes.h"
#include "proto/pointer.h"
#include "proto/raw_pairs.h"
#include "proto/rounds.h"

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
    struct rounds rounds;    /* of a request that is_streamed */
    struct raw_pairs *pairs; /* owned; not NULL: it reads the body, and nothing else here matters */
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

/* One dot product of all the elements. */
static bool is_one_row(const struct raw *raw, const struct shape *result)
{
    uint64_t results, a, b;
    return shape_count(result, &results) == ERR_OK && results == 1 &&
           shape_count(&raw->request->options.shape_a, &a) == ERR_OK &&
           shape_count(&raw->request->options.shape_b, &b) == ERR_OK && a == b;
}

static enum error not_one_row(struct problem *problem)
{
    problem_set(problem, ERR_UNSUPPORTED,
                "an interleaved body is two vectors of one length; more rows are sent as "
                "layout=concat");
    return pointer_set(problem, "/layout");
}

static enum error not_taken(struct problem *problem)
{
    problem_set(problem, ERR_UNSUPPORTED, "interleaved bodies are not read by this call");
    return pointer_set(problem, "/layout");
}

/* n elements of each operand, or ROUNDS_UNKNOWN. Blocks in turn are kept by nobody. */
static enum error raw_stream(struct raw *raw, uint64_t block, uint64_t n, struct problem *problem)
{
    uint64_t held = (block < n ? block : n) * raw->element_size;
    if (n == ROUNDS_UNKNOWN)
        held *= 2; /* of both operands: see rounds.h */
    if (held > raw->max_bytes)
        return operands_too_large(raw->max_bytes, problem);
    enum error err = request_stream(raw->request, problem);
    if (err == ERR_OK && !raw->request->is_streamed && raw->request->options.block > 0)
        return not_taken(problem);
    if (err != ERR_OK || !raw->request->is_streamed)
        return err;
    if (rounds_init(&raw->rounds, raw->request, block, n) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for %" PRIu64 " bytes of operands", held);
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
    bool has_one_row = is_one_row(raw, &result);
    if (options->block > 0 && !has_one_row)
        return not_one_row(problem);
    uint64_t n = raw->a_bytes / raw->element_size;
    if (options->block > 0)
        return raw_stream(raw, options->block, n, problem);
    const struct sink *sink = raw->request->sink;
    if (has_one_row && n > 0 && sink != NULL && raw->expected_bytes >= sink->min_bytes) {
        err = raw_stream(raw, n, n, problem);
        if (err != ERR_OK || raw->request->is_streamed)
            return err;
    }
    if (raw->expected_bytes > raw->max_bytes)
        return operands_too_large(raw->max_bytes, problem);
    (void)shape_count(&result, &raw->request->result_count); /* request_check() refuses too many */
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
    bool has_a = is_given(raw, OPTION_SHAPE_A), has_b = is_given(raw, OPTION_SHAPE_B);
    uint64_t a_bytes = has_a ? shape_bytes(raw, &options->shape_a) : 0;
    raw->a_bytes = UINT64_MAX;
    if (has_a && has_b) {
        uint64_t b_bytes = shape_bytes(raw, &options->shape_b);
        if (a_bytes == INT64_MAX || b_bytes == INT64_MAX)
            return operands_too_large(raw->max_bytes, problem);
        raw->expected_bytes = a_bytes + b_bytes;
        return raw_plan(raw, problem);
    }
    if (options->block > 0)
        return raw_stream(raw, options->block, ROUNDS_UNKNOWN, problem);
    if (!has_a)
        return ERR_OK;
    if (a_bytes > raw->max_bytes)
        return operands_too_large(raw->max_bytes, problem);
    raw->a_bytes = a_bytes;
    raw->b_offset = size_align(a_bytes);
    return ERR_OK;
}

/* A block of a is held, so it has a bound. */
static enum error check_layout(const struct raw *raw, struct problem *problem)
{
    uint64_t block = raw->request->options.block;
    if (block > 0 && raw->request->sink == NULL)
        return not_taken(problem);
    if (block <= LIMIT_BLOCK_BYTES / raw->element_size)
        return ERR_OK;
    problem_set(problem, ERR_TOO_LARGE,
                "blocks of %" PRIu64 " %s elements have more than %d bytes each", block,
                dtype_name(raw->request->options.dtype), LIMIT_BLOCK_BYTES);
    (void)problem_limit(problem, LIMIT_BLOCK_BYTES, NULL);
    return pointer_set(problem, "/layout");
}

static void raw_destroy(struct decoder *decoder)
{
    struct raw *raw = (struct raw *)decoder;
    raw_pairs_destroy(raw->pairs);
    rounds_fini(&raw->rounds);
    free(raw);
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
    enum error err = check_layout(raw, problem);
    if (err == ERR_OK && request->options.holds_pairs)
        err = raw_pairs_create(&raw->pairs, request, body_bytes, max_bytes, problem);
    else if (err == ERR_OK)
        err = body_bytes == BODY_CHUNKED ? raw_plan_chunked(raw, problem) : raw_plan(raw, problem);
    if (err != ERR_OK) {
        raw_destroy((struct decoder *)raw);
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
    return problem_at(problem, offset);
}

/* Where the next byte goes, and how many after it go there in one piece. */
static size_t raw_offset(const struct raw *raw, size_t *ret_room)
{
    if (raw->received_bytes < raw->a_bytes) {
        *ret_room = raw->a_bytes - raw->received_bytes;
        return raw->received_bytes;
    }
    *ret_room = raw->expected_bytes - raw->received_bytes;
    return raw->b_offset + (raw->received_bytes - raw->a_bytes);
}

static enum error raw_feed(struct decoder *decoder, const char *data, size_t size,
                           struct problem *problem)
{
    struct raw *raw = (struct raw *)decoder;
    if (raw->pairs != NULL)
        return raw_pairs_feed(raw->pairs, data, size, problem);
    struct buffer *buffer = &raw->request->buffer;
    if (size > raw->expected_bytes - raw->received_bytes)
        return wrong_length(raw, raw->expected_bytes, "goes on", problem);
    if (raw->request->is_streamed) {
        rounds_feed(&raw->rounds, data, size);
        raw->received_bytes += size;
        return ERR_OK;
    }
    while (size > 0) {
        size_t room, offset = raw_offset(raw, &room);
        size_t piece = size < room ? size : room;
        if (offset > raw->max_bytes || piece > raw->max_bytes - offset)
            return operands_too_large(raw->max_bytes, problem);
        if (buffer_reserve(buffer, offset + piece) != ERR_OK)
            return problem_set(problem, ERR_NOMEM, "no memory for more operands");
        bytes_place((char *)buffer->block.data + offset, data, piece, raw->is_large);
        buffer->used = offset + piece;
        raw->received_bytes += piece;
        data += piece;
        size -= piece;
    }
    return ERR_OK;
}

static char *raw_place(struct decoder *decoder, size_t *ret_room)
{
    struct raw *raw = (struct raw *)decoder;
    if (raw->pairs != NULL)
        return raw_pairs_place(raw->pairs, ret_room);
    if (raw->request->is_streamed)
        return rounds_place(&raw->rounds, ret_room);
    if (raw->expected_bytes == BODY_CHUNKED || raw->received_bytes == raw->expected_bytes)
        return NULL;
    return (char *)raw->request->buffer.block.data + raw_offset(raw, ret_room);
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

/* Of a body whose length was not known, the shapes are by now. */
static enum error raw_end_stream(struct raw *raw, struct problem *problem)
{
    const struct options *options = &raw->request->options;
    struct shape result;
    enum error err = shape_dot(&options->shape_a, &options->shape_b, &result, problem);
    if (err != ERR_OK)
        return err;
    if (!is_one_row(raw, &result))
        return not_one_row(problem);
    rounds_finish(&raw->rounds);
    return ERR_OK;
}

static enum error raw_finish(struct decoder *decoder, struct problem *problem)
{
    struct raw *raw = (struct raw *)decoder;
    if (raw->pairs != NULL)
        return raw_pairs_finish(raw->pairs, problem);
    struct request *request = raw->request;
    const struct options *options = &request->options;
    enum error err = raw_settle(raw, problem);
    if (err == ERR_OK && request->is_streamed)
        err = raw_end_stream(raw, problem);
    if (err == ERR_OK)
        err = request_pairs(request, 1, problem);
    if (err != ERR_OK)
        return err;
    if (options->order == ORDER_BIG && !request->is_streamed)
        raw_swap(raw);
    request->pair->a = (struct tensor){.dtype = options->dtype, .shape = options->shape_a};
    request->pair->b = (struct tensor){
        .dtype = options->dtype, .shape = options->shape_b, .offset = raw->b_offset};
    return ERR_OK;
}

const struct encoding encoding_raw = {
    .create = raw_create,
    .feed = raw_feed,
    .finish = raw_finish,
    .destroy = raw_destroy,
    .place = raw_place,
};
