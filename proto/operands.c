/* operands.c - two operands whose elements arrive as bytes (see operands.h). */
#include "proto/operands.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "proto/bytes.h"
#include "proto/encoding.h"
#include "proto/pointer.h"

enum { LARGE_BYTES = 16 << 20 }; /* of one operand: more than a core's share of any cache */

void operands_init(struct operands *operands, struct request *request, uint64_t announced,
                   size_t max_bytes)
{
    *operands =
        (struct operands){.request = request, .max_bytes = max_bytes, .announced = announced};
}

void operands_fini(struct operands *operands)
{
    rounds_fini(&operands->rounds);
}

static const char *name_of(const struct operands *operands)
{
    return operands->tensor == &operands->pair.b ? "b" : "a";
}

/* The operand that has ended, while the other one is in hand; NULL while there is none. */
static const struct tensor *other_of(const struct operands *operands)
{
    if (operands->begun != 3)
        return NULL;
    return operands->tensor == &operands->pair.b ? &operands->pair.a : &operands->pair.b;
}

/* Both operands are of the type that the request has said, or that the first of them has. */
static enum error settle_type(struct operands *operands, struct problem *problem)
{
    struct options *options = &operands->request->options;
    const enum dtype dtype = operands->elements.dtype;
    if (options->dtype == DTYPE_UNKNOWN)
        options->dtype = dtype;
    if (options->dtype == dtype)
        return ERR_OK;
    if (options->given & OPTION_DTYPE)
        return problem_set(problem, ERR_OPTION, "%s is %s, and dtype says %s", name_of(operands),
                           dtype_name(dtype), dtype_name(options->dtype));
    return problem_set(problem, ERR_VALUE,
                       "%s is %s and the other operand %s: both must be of one type",
                       name_of(operands), dtype_name(dtype), dtype_name(options->dtype));
}

/* All its elements are one row. */
static bool is_row(const struct shape *shape, uint64_t *ret_n)
{
    uint64_t count;
    if (shape->rank == 0 || shape_count(shape, &count) != ERR_OK ||
        count != shape->dim[shape->rank - 1])
        return false;
    *ret_n = count;
    return true;
}

/* Shapes that do not match are refused before the second operand comes. One that has no shape is a
 * vector: beside one row it has that many elements, or does not match. */
static enum error settle_shape(struct operands *operands, struct problem *problem)
{
    struct elements *elements = &operands->elements;
    const struct tensor *other = other_of(operands);
    uint64_t n;
    if (other == NULL)
        return ERR_OK;
    if (!elements->has_shape) {
        elements->has_shape = is_row(&other->shape, &n);
        if (elements->has_shape)
            elements->shape = (struct shape){1, {n}};
        return ERR_OK;
    }
    const bool is_b = operands->tensor == &operands->pair.b;
    struct shape result;
    return shape_dot(is_b ? &other->shape : &elements->shape,
                     is_b ? &elements->shape : &other->shape, &result, problem);
}

static enum error settle_size(struct operands *operands, struct problem *problem)
{
    const struct elements *elements = &operands->elements;
    uint64_t count;
    operands->size_bytes = UINT64_MAX;
    if (!elements->has_shape) { /* likely as long as the other one */
        const uint64_t announced = operands->announced;
        operands->is_large = announced != BODY_CHUNKED && announced / 2 >= LARGE_BYTES;
        return ERR_OK;
    }
    if (shape_count(&elements->shape, &count) != ERR_OK ||
        __builtin_mul_overflow(count, dtype_size(elements->dtype), &operands->size_bytes))
        return operands_too_large(operands->max_bytes, problem);
    operands->is_large = operands->size_bytes >= LARGE_BYTES;
    return ERR_OK;
}

/* May the second operand be handed on as it comes? a must lie where rounds look for it. */
static bool may_stream(const struct operands *operands, uint64_t *ret_n)
{
    const struct sink *sink = operands->request->sink;
    const struct tensor *a = other_of(operands);
    uint64_t n;
    if (sink == NULL || a != &operands->pair.a || a->offset != 0 || !operands->elements.has_shape ||
        !is_row(&a->shape, ret_n) || !is_row(&operands->elements.shape, &n))
        return false;
    assert(n == *ret_n);
    return n > 0 && 2 * operands->size_bytes >= sink->min_bytes;
}

/* How far the buffer is likely to be filled in the end, so that it need not grow: with the operand
 * in hand; with the other one too, if that is not to be handed on. Without a shape two vectors are
 * likely, which share what the body has. */
static uint64_t wanted_end(const struct operands *operands, size_t offset)
{
    const uint64_t announced = operands->announced == BODY_CHUNKED ? 0 : operands->announced;
    const bool is_first = operands->begun != 3, has_sink = operands->request->sink != NULL;
    uint64_t n, end = offset;
    if (operands->size_bytes != UINT64_MAX)
        end += operands->size_bytes;
    else if (is_first && has_sink)
        return offset + announced / 2;
    bool is_all = operands->size_bytes != UINT64_MAX &&
                  (!is_first || (has_sink && is_row(&operands->elements.shape, &n)));
    return is_all || announced <= end ? end : size_align(end) + (announced - end);
}

static enum error keep(struct operands *operands, struct problem *problem)
{
    struct buffer *buffer = &operands->request->buffer;
    const size_t offset = size_align(buffer->used), max_bytes = operands->max_bytes;
    const uint64_t size = operands->size_bytes == UINT64_MAX ? 0 : operands->size_bytes;
    operands->tensor->offset = offset;
    if (offset > max_bytes || size > max_bytes - offset)
        return operands_too_large(max_bytes, problem);
    uint64_t end = wanted_end(operands, offset);
    if (end > max_bytes)
        end = offset + size;
    if (end > offset && buffer_reserve(buffer, end) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for %" PRIu64 " bytes of operands",
                           end - offset);
    return ERR_OK;
}

static enum error begin_elements(struct operands *operands, struct problem *problem)
{
    uint64_t n;
    if (!may_stream(operands, &n))
        return keep(operands, problem);
    enum error err = request_stream(operands->request, problem);
    operands->is_streamed = operands->request->is_streamed;
    if (err != ERR_OK)
        return err;
    if (!operands->is_streamed)
        return keep(operands, problem);
    err = rounds_init_held(&operands->rounds, operands->request, n, operands->elements.order);
    return err == ERR_OK ? err : problem_set(problem, err, "no memory for a decoder");
}

enum error operands_begin(struct operands *operands, bool is_b, const struct elements *elements,
                          struct problem *problem)
{
    assert(!(operands->begun >> is_b & 1) && elements->dtype != DTYPE_UNKNOWN);
    operands->begun |= 1U << is_b;
    operands->tensor = is_b ? &operands->pair.b : &operands->pair.a;
    operands->elements = *elements;
    operands->received_bytes = 0;
    operands->is_large = false;
    enum error err = settle_type(operands, problem);
    if (err == ERR_OK)
        err = settle_shape(operands, problem);
    if (err == ERR_OK)
        err = settle_size(operands, problem);
    return err == ERR_OK ? begin_elements(operands, problem) : err;
}

void operands_set(struct operands *operands, bool is_b, struct tensor tensor)
{
    assert(!(operands->begun >> is_b & 1) && tensor.dtype == operands->request->options.dtype);
    operands->begun |= 1U << is_b;
    *(is_b ? &operands->pair.b : &operands->pair.a) = tensor;
}

static enum error wrong_length(const struct operands *operands, const char *what,
                               struct problem *problem)
{
    char shape[100];
    return problem_set(
        problem, ERR_LENGTH, "%s has %s %" PRIu64 " bytes, which %s elements of shape %s take",
        name_of(operands), what, operands->size_bytes, dtype_name(operands->elements.dtype),
        shape_print(&operands->elements.shape, shape, sizeof shape));
}

enum error operands_feed(struct operands *operands, const char *data, size_t size,
                         struct problem *problem)
{
    struct buffer *buffer = &operands->request->buffer;
    if (size == 0)
        return ERR_OK;
    if (operands->size_bytes != UINT64_MAX &&
        size > operands->size_bytes - operands->received_bytes)
        return wrong_length(operands, "more than the", problem);
    if (operands->is_streamed) {
        rounds_feed(&operands->rounds, data, size);
        operands->received_bytes += size;
        return ERR_OK;
    }
    const size_t offset = operands->tensor->offset + operands->received_bytes;
    if (offset > operands->max_bytes || size > operands->max_bytes - offset)
        return operands_too_large(operands->max_bytes, problem);
    if (buffer_reserve(buffer, offset + size) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for more operands");
    bytes_place((char *)buffer->block.data + offset, data, size, operands->is_large);
    operands->received_bytes += size;
    buffer->used = offset + size;
    return ERR_OK;
}

static enum error settle_received(struct operands *operands, struct problem *problem)
{
    const struct elements *elements = &operands->elements;
    const size_t size = dtype_size(elements->dtype);
    if (operands->size_bytes != UINT64_MAX)
        return operands->received_bytes == operands->size_bytes
                   ? ERR_OK
                   : wrong_length(operands, "fewer than the", problem);
    if (operands->received_bytes % size != 0)
        return problem_set(problem, ERR_LENGTH,
                           "the %" PRIu64 " bytes of %s are not a whole number of %s elements of "
                           "%zu bytes",
                           operands->received_bytes, name_of(operands), dtype_name(elements->dtype),
                           size);
    operands->elements.shape = (struct shape){1, {operands->received_bytes / size}};
    return ERR_OK;
}

enum error operands_end(struct operands *operands, struct problem *problem)
{
    const struct elements *elements = &operands->elements;
    enum error err = settle_received(operands, problem);
    if (err != ERR_OK)
        return err;
    if (operands->is_streamed)
        rounds_finish(&operands->rounds);
    else if (elements->order == ORDER_BIG && operands->received_bytes > 0)
        swap_numbers((char *)operands->request->buffer.block.data + operands->tensor->offset,
                     operands->received_bytes, dtype_size(dtype_part(elements->dtype)));
    operands->tensor->dtype = elements->dtype;
    operands->tensor->shape = elements->shape;
    return ERR_OK;
}
