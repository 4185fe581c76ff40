/* raw_pairs.c - raw elements of many pairs (see raw_pairs.h). */
#include "proto/raw_pairs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bytes.h"
#include "proto/encoding.h"
#include "proto/pointer.h"

enum { LARGE_BYTES = 32 << 20 }; /* of all operands: more than a core's share of any cache */

struct raw_pairs {
    struct request *request; /* borrowed */
    size_t element_size;     /* fixed */
    size_t max_bytes;        /* fixed: of the operands */
    uint64_t announced;      /* fixed: bytes of the body, or BODY_CHUNKED */
    uint64_t received_bytes; /* of the body */
    char number[8];          /* the next of count and lengths, as far as it has come */
    size_t number_bytes;
    bool has_count, has_lengths;
    size_t lengths;         /* that have come */
    uint64_t body_bytes;    /* that the numbers so far ask for */
    size_t used;            /* bytes of the buffer for the operands so far */
    size_t operand;         /* in hand: a of pair operand / 2, or its b */
    uint64_t operand_bytes; /* of it that have come */
};

static enum error no_shapes(struct problem *problem)
{
    problem_set(
        problem, ERR_OPTION,
        "shape_a and shape_b are not for layout=pairs: its body tells how long each pair is");
    return pointer_set(problem, "/layout");
}

enum error raw_pairs_create(struct raw_pairs **ret, struct request *request, uint64_t body_bytes,
                            size_t max_bytes, struct problem *problem)
{
    if (request->options.given & (OPTION_SHAPE_A | OPTION_SHAPE_B))
        return no_shapes(problem);
    struct raw_pairs *pairs = malloc(sizeof *pairs);
    if (pairs == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a decoder");
    *pairs = (struct raw_pairs){.request = request,
                                .element_size = dtype_size(request->options.dtype),
                                .max_bytes = max_bytes,
                                .announced = body_bytes,
                                .body_bytes = sizeof pairs->number};
    *ret = pairs;
    return ERR_OK;
}

void raw_pairs_destroy(struct raw_pairs *pairs)
{
    free(pairs);
}

/* ---- how many, and how long ---------------------------------------------------------------- */

static enum error wrong_length(const struct raw_pairs *pairs, const char *what, uint64_t bytes,
                               struct problem *problem)
{
    problem_set(problem, ERR_LENGTH,
                "the body %s %" PRIu64 " bytes; its count and lengths ask for %" PRIu64 "%s", what,
                bytes, pairs->body_bytes, pairs->has_lengths ? "" : " at least");
    return problem_at(problem, bytes);
}

static bool is_announced(const struct raw_pairs *pairs)
{
    return pairs->announced != BODY_CHUNKED;
}

/* What the announced length does not hold is not waited for. */
static enum error check_announced(const struct raw_pairs *pairs, struct problem *problem)
{
    if (!is_announced(pairs) || (pairs->has_lengths ? pairs->announced == pairs->body_bytes
                                                    : pairs->announced >= pairs->body_bytes))
        return ERR_OK;
    return wrong_length(pairs, "has", pairs->announced, problem);
}

static enum error reserve(struct raw_pairs *pairs, size_t size, struct problem *problem)
{
    enum error err = buffer_reserve(&pairs->request->buffer, size);
    return err == ERR_OK
               ? err
               : problem_set(problem, err, "no memory for %zu bytes of operands", pairs->used);
}

static enum error lengths_end(struct raw_pairs *pairs, struct problem *problem)
{
    pairs->has_lengths = true;
    pairs->request->result_count = pairs->request->pair_count;
    enum error err = check_announced(pairs, problem);
    return err == ERR_OK && is_announced(pairs) ? reserve(pairs, pairs->used, problem) : err;
}

static enum error take_count(struct raw_pairs *pairs, uint64_t count, struct problem *problem)
{
    pairs->has_count = true;
    if (count > LIMIT_PAIRS) {
        problem_set(problem, ERR_TOO_LARGE,
                    "the body begins with the number of its pairs, %" PRIu64
                    ", which is more than %d",
                    count, LIMIT_PAIRS);
        return problem_limit(problem, LIMIT_PAIRS, NULL);
    }
    pairs->body_bytes += count * sizeof pairs->number;
    enum error err = check_announced(pairs, problem);
    if (err == ERR_OK)
        err = request_pairs(pairs->request, count, problem);
    pairs->request->is_pairs = true;
    return err == ERR_OK && count == 0 ? lengths_end(pairs, problem) : err;
}

/* Each operand begins aligned. */
static void place(struct raw_pairs *pairs, struct tensor *tensor, uint64_t n)
{
    *tensor = (struct tensor){pairs->request->options.dtype, {1, {n}}, pairs->used};
    pairs->used = size_align(pairs->used + n * pairs->element_size);
}

static enum error take_length(struct raw_pairs *pairs, uint64_t n, struct problem *problem)
{
    struct tensor_pair *pair = &pairs->request->pair[pairs->lengths++];
    if (n > (pairs->max_bytes - pairs->used) / 2 / pairs->element_size)
        return operands_too_large(pairs->max_bytes, problem);
    place(pairs, &pair->a, n);
    place(pairs, &pair->b, n);
    pairs->body_bytes += 2 * n * pairs->element_size;
    if (pairs->used > pairs->max_bytes)
        return operands_too_large(pairs->max_bytes, problem);
    return pairs->lengths == pairs->request->pair_count ? lengths_end(pairs, problem) : ERR_OK;
}

/* Returns in *ret_used how much it took. */
static enum error feed_number(struct raw_pairs *pairs, const char *data, size_t size,
                              size_t *ret_used, struct problem *problem)
{
    const size_t missing = sizeof pairs->number - pairs->number_bytes;
    const size_t piece = size < missing ? size : missing;
    memcpy(pairs->number + pairs->number_bytes, data, piece);
    pairs->number_bytes += piece;
    *ret_used = piece;
    if (pairs->number_bytes < sizeof pairs->number)
        return ERR_OK;
    uint64_t number;
    if (pairs->request->options.order == ORDER_BIG)
        swap_numbers(pairs->number, sizeof pairs->number, sizeof pairs->number);
    memcpy(&number, pairs->number, sizeof number);
    pairs->number_bytes = 0;
    return pairs->has_count ? take_length(pairs, number, problem)
                            : take_count(pairs, number, problem);
}

/* ---- elements ------------------------------------------------------------------------------ */

static struct tensor *tensor_at(const struct raw_pairs *pairs, size_t operand)
{
    struct tensor_pair *pair = &pairs->request->pair[operand / 2];
    return operand % 2 == 0 ? &pair->a : &pair->b;
}

static size_t tensor_bytes(const struct raw_pairs *pairs, const struct tensor *tensor)
{
    return tensor_length(tensor) * pairs->element_size;
}

static bool is_whole(const struct raw_pairs *pairs)
{
    return pairs->has_lengths && pairs->operand == 2 * pairs->request->pair_count;
}

/* Past operands that are whole, as empty ones are at once. */
static void go_on(struct raw_pairs *pairs)
{
    while (!is_whole(pairs) &&
           pairs->operand_bytes == tensor_bytes(pairs, tensor_at(pairs, pairs->operand))) {
        pairs->operand++;
        pairs->operand_bytes = 0;
    }
}

/* Of the operand in hand. Returns in *ret_used how much it took. */
static enum error feed_elements(struct raw_pairs *pairs, const char *data, size_t size,
                                size_t *ret_used, struct problem *problem)
{
    struct buffer *buffer = &pairs->request->buffer;
    const struct tensor *tensor = tensor_at(pairs, pairs->operand);
    const size_t left = tensor_bytes(pairs, tensor) - pairs->operand_bytes;
    const size_t piece = size < left ? size : left, at = tensor->offset + pairs->operand_bytes;
    enum error err = reserve(pairs, at + piece, problem);
    if (err != ERR_OK)
        return err;
    bytes_place((char *)buffer->block.data + at, data, piece, pairs->used >= LARGE_BYTES);
    buffer->used = at + piece;
    pairs->operand_bytes += piece;
    *ret_used = piece;
    return ERR_OK;
}

char *raw_pairs_place(const struct raw_pairs *pairs, size_t *ret_room)
{
    if (!is_announced(pairs) || !pairs->has_lengths || is_whole(pairs))
        return NULL;
    const struct tensor *tensor = tensor_at(pairs, pairs->operand);
    *ret_room = tensor_bytes(pairs, tensor) - pairs->operand_bytes;
    return (char *)pairs->request->buffer.block.data + tensor->offset + pairs->operand_bytes;
}

enum error raw_pairs_feed(struct raw_pairs *pairs, const char *data, size_t size,
                          struct problem *problem)
{
    enum error err = ERR_OK;
    while (err == ERR_OK && size > 0) {
        size_t taken = 0;
        if (is_whole(pairs))
            return wrong_length(pairs, "goes on after", pairs->received_bytes, problem);
        if (!pairs->has_lengths)
            err = feed_number(pairs, data, size, &taken, problem);
        else
            err = feed_elements(pairs, data, size, &taken, problem);
        if (pairs->has_lengths)
            go_on(pairs);
        pairs->received_bytes += taken;
        data += taken;
        size -= taken;
    }
    return err;
}

enum error raw_pairs_finish(struct raw_pairs *pairs, struct problem *problem)
{
    if (!is_whole(pairs))
        return wrong_length(pairs, "ends after", pairs->received_bytes, problem);
    struct request *request = pairs->request;
    enum error err = reserve(pairs, pairs->used, problem);
    if (err != ERR_OK)
        return err;
    request->buffer.used = pairs->used;
    if (request->options.order != ORDER_BIG)
        return ERR_OK;
    const size_t number_size = dtype_size(dtype_part(request->options.dtype));
    for (size_t i = 0; i < 2 * request->pair_count; i++) {
        const struct tensor *tensor = tensor_at(pairs, i);
        if (tensor_length(tensor) > 0)
            swap_numbers((char *)request->buffer.block.data + tensor->offset,
                         tensor_bytes(pairs, tensor), number_size);
    }
    return ERR_OK;
}
