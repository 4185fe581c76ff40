/* oip_request.c - the body of an inference request (see oip.h).
 *
 * The JSON is read as that of json.c is: arrays of numbers go into the operands' buffer while they
 * arrive, jansson reads what is left. By then the tensors that follow as bytes are known, and each
 * of their bytes is copied once, to its place.
 */
#include "proto/oip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bytes.h"
#include "proto/oip_document.h"

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
};

static const struct encoding encoding_oip;

/* ---- the body ------------------------------------------------------------------------------ */

/* The JSON has come whole. */
static enum error json_end(struct oip *oip, struct problem *problem)
{
    oip->is_read = true;
    return oip_document_read(&oip->document, problem);
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
    problem->offset = (int64_t)oip->received_bytes;
    return problem->error;
}

/* Takes what data has of the tensor that is due. */
static size_t blob_feed(struct oip *oip, const char *data, size_t size)
{
    const struct oip_blob *blob = &oip->document.blob[oip->blob_index];
    uint64_t room = blob->bytes - oip->blob_bytes;
    size_t piece = size < room ? size : room;
    char *place = (char *)oip->document.request->buffer.block.data + blob->offset + oip->blob_bytes;
    if (oip->is_large)
        copy_past_cache(place, data, piece);
    else
        memcpy(place, data, piece);
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
    problem->offset = (int64_t)oip->received_bytes;
    return problem->error;
}

static enum error oip_finish(struct decoder *decoder, struct problem *problem)
{
    struct oip *oip = (struct oip *)decoder;
    if (!oip->document.has_length && json_end(oip, problem) != ERR_OK)
        return problem->error;
    blob_skip(oip);
    if (oip->is_read && oip->blob_index == oip->document.blob_count)
        return ERR_OK;
    return ends_early(oip, problem);
}

static void oip_destroy(struct decoder *decoder)
{
    struct oip *oip = (struct oip *)decoder;
    splitter_fini(&oip->document.splitter);
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
