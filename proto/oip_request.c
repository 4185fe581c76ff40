/* oip_request.c - the body of an inference request (see oip.h).
 *
 * The JSON is read as that of json.c is: arrays of numbers go into the operands' buffer while they
 * arrive, jansson reads what is left. By then the tensors that follow as bytes are known. Two that
 * are one row go to the request's sink as they arrive (rounds.h), if there is one and they are
 * worth it; of others each byte is copied once, to its place.
 */
#include "proto/oip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bytes.h"
#include "proto/oip_document.h"
#include "proto/rounds.h"

enum { LARGE_BYTES = 32 << 20 }; /* of a body: more than a core's share of any cache */

struct oip {
    const struct encoding *encoding; /* first: see encoding.h */
    struct oip_document document;
    bool is_large;           /* its elements leave the cache before they are computed with */
    uint64_t json_bytes;     /* UINT64_MAX: all */
    uint64_t received_bytes; /* of the whole body */
    bool is_read;            /* the JSON, whole */
    int blob_index;          /* of the document's, the one that is due */
    uint64_t blob_bytes;     /* of it, so far */
    struct rounds rounds;    /* of a request that is_streamed */
};

static const struct encoding encoding_oip;

/* ---- the body ------------------------------------------------------------------------------ */

/* A place for a tensor that is kept. */
static enum error blob_reserve(struct oip *oip, const struct oip_blob *blob,
                               struct problem *problem)
{
    struct buffer *buffer = &oip->document.request->buffer;
    size_t max_bytes = oip->document.max_bytes;
    if (blob->bytes > max_bytes || size_align(buffer->used) > max_bytes - blob->bytes)
        return operands_too_large(max_bytes, problem);
    if (buffer_align(buffer, &blob->tensor->offset) != ERR_OK ||
        buffer_reserve(buffer, blob->tensor->offset + blob->bytes) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for %" PRIu64 " bytes of operands",
                           blob->bytes);
    buffer->used = blob->tensor->offset + blob->bytes;
    return ERR_OK;
}

/* Both operands follow, and are one dot product of all their elements. */
static bool is_one_row(const struct oip *oip, const struct shape *result)
{
    const struct oip_blob *blob = oip->document.blob;
    uint64_t results;
    return oip->document.blob_count == 2 && shape_count(result, &results) == ERR_OK &&
           results == 1 && blob[0].bytes == blob[1].bytes && blob[0].bytes > 0;
}

/* The sink is told of the first one as a, whichever it is: the models' products commute. */
static enum error blobs_stream(struct oip *oip, struct problem *problem)
{
    struct request *request = oip->document.request;
    uint64_t bytes = oip->document.blob[0].bytes;
    uint64_t n = bytes / dtype_size(request->options.dtype);
    enum error err = request_stream(request, problem);
    if (err != ERR_OK || !request->is_streamed)
        return err;
    if (bytes > oip->document.max_bytes)
        return operands_too_large(oip->document.max_bytes, problem);
    if (rounds_init(&oip->rounds, request, n, n) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for %" PRIu64 " bytes of operands",
                           bytes);
    return ERR_OK;
}

/* What the shapes alone decide is decided before the tensors come. */
static enum error blobs_begin(struct oip *oip, struct problem *problem)
{
    const struct oip_document *document = &oip->document;
    struct request *request = document->request;
    struct shape result;
    enum error err = shape_dot(&request->pair->a.shape, &request->pair->b.shape, &result, problem);
    if (err == ERR_OK && request->sink != NULL && is_one_row(oip, &result) &&
        2 * document->blob[0].bytes >= request->sink->min_bytes)
        err = blobs_stream(oip, problem);
    for (int i = 0; err == ERR_OK && !request->is_streamed && i < document->blob_count; i++)
        err = blob_reserve(oip, &document->blob[i], problem);
    return err;
}

/* The JSON has come whole. */
static enum error json_end(struct oip *oip, struct problem *problem)
{
    enum error err = oip_document_read(&oip->document, problem);
    oip->is_read = true;
    return err == ERR_OK ? blobs_begin(oip, problem) : err;
}

static enum error json_feed(struct oip *oip, const char *data, size_t size, struct problem *problem)
{
    enum error err = splitter_feed(&oip->document.splitter, data, size, problem);
    if (err != ERR_OK)
        return oip_document_fail(&oip->document, problem);
    oip->received_bytes += size;
    return oip->received_bytes == oip->json_bytes ? json_end(oip, problem) : ERR_OK;
}

static enum error goes_on(const struct oip *oip, struct problem *problem)
{
    problem_set(problem, ERR_LENGTH,
                "the body goes on after the %" PRIu64
                " bytes of its JSON and its tensors' binary_data_size",
                oip->received_bytes);
    return problem_at(problem, oip->received_bytes);
}

/* Takes what data has of the tensor that is due. */
static size_t blob_feed(struct oip *oip, const char *data, size_t size)
{
    const struct request *request = oip->document.request;
    const struct oip_blob *blob = &oip->document.blob[oip->blob_index];
    uint64_t room = blob->bytes - oip->blob_bytes;
    size_t piece = size < room ? size : room;
    if (request->is_streamed) {
        rounds_feed(&oip->rounds, data, piece);
    } else {
        char *place = (char *)request->buffer.block.data + blob->tensor->offset + oip->blob_bytes;
        bytes_place(place, data, piece, oip->is_large);
    }
    oip->blob_bytes += piece;
    oip->received_bytes += piece;
    return piece;
}

/* Moves to the next tensor of which bytes are due. */
static void blob_skip(struct oip *oip)
{
    while (oip->blob_index < oip->document.blob_count &&
           oip->blob_bytes == oip->document.blob[oip->blob_index].bytes) {
        oip->blob_index++;
        oip->blob_bytes = 0;
    }
}

static enum error oip_feed(struct decoder *decoder, const char *data, size_t size,
                           struct problem *problem)
{
    struct oip *oip = (struct oip *)decoder;
    if (!oip->is_read) {
        uint64_t room = oip->json_bytes - oip->received_bytes;
        size_t piece = size < room ? size : room;
        enum error err = json_feed(oip, data, piece, problem);
        if (err != ERR_OK)
            return err;
        data += piece;
        size -= piece;
    }
    for (blob_skip(oip); size > 0; blob_skip(oip)) {
        if (oip->blob_index == oip->document.blob_count)
            return goes_on(oip, problem);
        size_t piece = blob_feed(oip, data, size);
        data += piece;
        size -= piece;
    }
    return ERR_OK;
}

static enum error ends_early(const struct oip *oip, struct problem *problem)
{
    if (!oip->is_read)
        problem_set(problem, ERR_LENGTH,
                    OIP_LENGTH_HEADER " is %" PRIu64 ", and the body has only %" PRIu64 " bytes",
                    oip->json_bytes, oip->received_bytes);
    else
        problem_set(problem, ERR_LENGTH,
                    "the body ends %" PRIu64 " bytes short of a tensor's binary_data_size",
                    oip->document.blob[oip->blob_index].bytes - oip->blob_bytes);
    return problem_at(problem, oip->received_bytes);
}

static enum error oip_finish(struct decoder *decoder, struct problem *problem)
{
    struct oip *oip = (struct oip *)decoder;
    if (!oip->document.has_length && json_end(oip, problem) != ERR_OK)
        return problem->error;
    blob_skip(oip);
    if (!oip->is_read || oip->blob_index < oip->document.blob_count)
        return ends_early(oip, problem);
    if (oip->document.request->is_streamed)
        rounds_finish(&oip->rounds);
    return ERR_OK;
}

static void oip_destroy(struct decoder *decoder)
{
    struct oip *oip = (struct oip *)decoder;
    splitter_fini(&oip->document.splitter);
    rounds_fini(&oip->rounds);
    free(oip);
}

/* No create(): no Content-Type asks for it, and it wants to know more. */
static const struct encoding encoding_oip = {
    .feed = oip_feed, .finish = oip_finish, .destroy = oip_destroy};

/* ---- before the body ----------------------------------------------------------------------- */

static enum error length_read(const char *length, uint64_t body_bytes, uint64_t *ret,
                              struct problem *problem)
{
    uint64_t value = 0;
    bool is_number = *length != '\0';
    for (const char *at = length; is_number && *at != '\0'; at++)
        is_number = *at >= '0' && *at <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
                    !__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value);
    if (!is_number)
        return problem_set(problem, ERR_VALUE,
                           OIP_LENGTH_HEADER " is \"%.32s\", not a number of "
                                             "bytes",
                           length);
    if (value == 0)
        return problem_set(problem, ERR_VALUE,
                           OIP_LENGTH_HEADER
                           " is 0, which is for models of one "
                           "input: here the JSON must say which bytes are a and which are b");
    if (value > body_bytes || value == UINT64_MAX)
        return problem_set(problem, ERR_VALUE,
                           OIP_LENGTH_HEADER " is %" PRIu64 ", and the body has only %" PRIu64
                                             " bytes",
                           value, body_bytes);
    *ret = value;
    return ERR_OK;
}

enum error oip_decoder_create(struct decoder **ret, struct oip_call *call, struct request *request,
                              const char *length, uint64_t body_bytes, size_t max_bytes,
                              struct problem *problem)
{
    uint64_t json_bytes = UINT64_MAX;
    if (length != NULL && length_read(length, body_bytes, &json_bytes, problem) != ERR_OK)
        return problem->error;
    struct oip *oip = malloc(sizeof *oip);
    if (oip == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a decoder");
    *oip = (struct oip){.encoding = &encoding_oip,
                        .document = {.call = call,
                                     .request = request,
                                     .max_bytes = max_bytes,
                                     .has_length = length != NULL},
                        .is_large = body_bytes >= LARGE_BYTES && body_bytes != BODY_CHUNKED,
                        .json_bytes = json_bytes};
    splitter_init(&oip->document.splitter, &oip_form, &request->buffer, call->model->dtype,
                  max_bytes);
    request->options.dtype = call->model->dtype;
    request->options.result_dtype = call->model->result_dtype;
    *ret = (struct decoder *)oip;
    return ERR_OK;
}
