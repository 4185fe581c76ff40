/* npy.c - application/x-npy: two .npy arrays, one after the other (see encoding.h, npy.h). */
#include "proto/npy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "proto/encoding.h"
#include "proto/npy_head.h"
#include "proto/pointer.h"

/* ---- one array ----------------------------------------------------------------------------- */

void npy_init(struct npy *npy)
{
    *npy = (struct npy){0};
    text_init(&npy->head);
}

void npy_fini(struct npy *npy)
{
    text_fini(&npy->head);
}

/* The header is whole. */
static enum error head_end(struct npy *npy, struct operands *operands, bool is_b,
                           struct problem *problem)
{
    struct npy_head head;
    enum error err = npy_head_parse(npy->head.data, npy->head.size,
                                    operands->request->options.dtype, &head, problem);
    if (err != ERR_OK)
        return err;
    const struct elements elements = {head.dtype, head.order, true, head.shape};
    err = operands_begin(operands, is_b, &elements, problem);
    npy->has_head = true;
    npy->left_bytes = operands->size_bytes;
    text_fini(&npy->head);
    return err;
}

static enum error head_feed(struct npy *npy, struct operands *operands, bool is_b, const char *data,
                            size_t size, size_t *ret_used, struct problem *problem)
{
    size_t used = 0;
    for (;;) {
        enum error err = npy_head_size(npy->head.data, npy->head.size, &npy->head_bytes, problem);
        if (err != ERR_OK)
            return err;
        size_t wanted = npy->head_bytes - npy->head.size;
        if (wanted == 0)
            break;
        size_t piece = wanted < size - used ? wanted : size - used;
        *ret_used = used;
        if (piece == 0)
            return ERR_OK;
        text_append(&npy->head, data + used, piece);
        if (npy->head.failed)
            return problem_set(problem, ERR_NOMEM, "no memory for a header");
        used += piece;
    }
    *ret_used = used;
    return head_end(npy, operands, is_b, problem);
}

enum error npy_feed(struct npy *npy, struct operands *operands, bool is_b, const char *data,
                    size_t size, size_t *ret_used, bool *ret_done, struct problem *problem)
{
    size_t used = 0;
    enum error err = ERR_OK;
    if (!npy->has_head)
        err = head_feed(npy, operands, is_b, data, size, &used, problem);
    if (err == ERR_OK && npy->has_head) {
        size_t piece = npy->left_bytes < size - used ? (size_t)npy->left_bytes : size - used;
        err = operands_feed(operands, data + used, piece, problem);
        npy->left_bytes -= piece;
        used += piece;
    }
    if (err != ERR_OK)
        return err;
    *ret_used = used;
    *ret_done = npy->has_head && npy->left_bytes == 0;
    return *ret_done ? operands_end(operands, problem) : ERR_OK;
}

/* ---- the body ------------------------------------------------------------------------------ */

struct npy_body {
    const struct encoding *encoding; /* first: see encoding.h */
    struct request *request;
    struct operands operands;
    struct npy array;        /* in hand */
    unsigned done;           /* arrays that are whole */
    uint64_t announced;      /* BODY_CHUNKED: not known */
    uint64_t received_bytes; /* of the body */
    uint64_t array_start;    /* in the body */
};

static enum error body_create(struct decoder **ret, struct request *request, uint64_t body_bytes,
                              size_t max_bytes, struct problem *problem)
{
    if (request->options.given & OPTIONS_OF_RAW)
        return problem_set(problem, ERR_OPTION,
                           "shape_a, shape_b and layout are for application/octet-stream bodies; a "
                           ".npy array tells its shape");
    struct npy_body *body = malloc(sizeof *body);
    if (body == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a decoder");
    *body =
        (struct npy_body){.encoding = &encoding_npy, .request = request, .announced = body_bytes};
    operands_init(&body->operands, request, body_bytes, max_bytes);
    npy_init(&body->array);
    *ret = (struct decoder *)body;
    return ERR_OK;
}

static const char *pointer_of(const struct npy_body *body)
{
    return body->done == 0 ? "/a" : "/b";
}

static enum error ends_early(const struct npy_body *body, uint64_t end, struct problem *problem)
{
    problem_set(problem, ERR_LENGTH, "the body ends after %" PRIu64 " bytes, inside %s%s", end,
                pointer_of(body) + 1,
                body->done == 1 && end == body->array_start
                    ? ": it holds two .npy arrays, one after the other"
                    : "");
    (void)problem_at(problem, end);
    return pointer_set(problem, "%s", pointer_of(body));
}

/* What the announced length does not hold is not waited for. */
static enum error check_announced(const struct npy_body *body, bool had_head,
                                  struct problem *problem)
{
    if (had_head || !body->array.has_head || body->announced == BODY_CHUNKED ||
        body->array.left_bytes <= body->announced - body->received_bytes)
        return ERR_OK;
    return ends_early(body, body->announced, problem);
}

static enum error array_feed(struct npy_body *body, const char *data, size_t size, size_t *ret_used,
                             struct problem *problem)
{
    bool done, had_head = body->array.has_head;
    enum error err = npy_feed(&body->array, &body->operands, body->done == 1, data, size, ret_used,
                              &done, problem);
    if (err != ERR_OK) {
        if (problem->offset >= 0)
            problem->offset += (int64_t)body->array_start;
        return problem->pointer[0] != '\0' ? err : pointer_set(problem, "%s", pointer_of(body));
    }
    body->received_bytes += *ret_used;
    err = check_announced(body, had_head, problem);
    if (err != ERR_OK || !done)
        return err;
    body->done++;
    body->array_start = body->received_bytes;
    npy_fini(&body->array);
    npy_init(&body->array);
    return ERR_OK;
}

static enum error body_feed(struct decoder *decoder, const char *data, size_t size,
                            struct problem *problem)
{
    struct npy_body *body = (struct npy_body *)decoder;
    enum error err = ERR_OK;
    while (size > 0 && body->done < 2 && err == ERR_OK) {
        size_t used;
        err = array_feed(body, data, size, &used, problem);
        if (err == ERR_OK) {
            data += used;
            size -= used;
        }
    }
    if (err != ERR_OK || size == 0)
        return err;
    problem_set(problem, ERR_LENGTH, "the body goes on after two .npy arrays");
    return problem_at(problem, body->received_bytes);
}

static enum error body_finish(struct decoder *decoder, struct problem *problem)
{
    struct npy_body *body = (struct npy_body *)decoder;
    if (body->done < 2)
        return ends_early(body, body->received_bytes, problem);
    enum error err = request_pairs(body->request, 1, problem);
    if (err == ERR_OK)
        *body->request->pair = body->operands.pair;
    return err;
}

static void body_destroy(struct decoder *decoder)
{
    struct npy_body *body = (struct npy_body *)decoder;
    npy_fini(&body->array);
    operands_fini(&body->operands);
    free(body);
}

const struct encoding encoding_npy = {
    .create = body_create,
    .feed = body_feed,
    .finish = body_finish,
    .destroy = body_destroy,
};
