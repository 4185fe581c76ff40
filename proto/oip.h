/* oip.h - an inference request of the Open Inference Protocol, and its answer.
 *
 * Door: oip_model_find() by the name in the path; oip_decoder_create() makes a decoder
 * (encoding.h) that fills the request and the call; oip_encode() writes the answer.
 * A request is a JSON object. The elements of an input stand in it as `data`, or follow it as
 * bytes, in the order of the inputs; then a header tells the length of the JSON.
 * Source: the Open Inference Protocol's REST part, version 2, and its binary tensor data extension.
 */
#ifndef PROTO_OIP_H
#define PROTO_OIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/encoding.h"
#include "proto/result.h"

#define OIP_VERSION       "1" /* of every model */
#define OIP_LENGTH_HEADER "Inference-Header-Content-Length"

/* A tensor has one type in a model's metadata, so there is a model for each type of operands. */
struct oip_model {
    const char *name;
    enum dtype dtype;        /* of the inputs a and b */
    enum dtype result_dtype; /* of the output: the exact sum, rounded once to it */
};

enum { OIP_MODELS = 5 };
const struct oip_model *oip_model(unsigned index); /* below OIP_MODELS */
unsigned oip_model_index(const struct oip_model *model);
const struct oip_model *oip_model_find(const char *name, size_t size); /* NULL: there is none */

/* One inference, beside its request. */
struct oip_call {
    const struct oip_model *model; /* set before its decoder is made */
    bool wants_binary;             /* the result as bytes behind the answer's JSON */
};

/* Starts decoding a body of body_bytes (BODY_CHUNKED: not known) for call->model. length is the
 * value of OIP_LENGTH_HEADER; NULL: there is none, and the body is JSON to its end. Of the
 * request's options the body may say accuracy, kernel, device and timeout_ms, as parameters, and
 * id. ERR_VALUE: length is no length of a part of this body. The decoder borrows call and
 * request. */
enum error oip_decoder_create(struct decoder **ret, struct oip_call *call, struct request *request,
                              const char *length, uint64_t body_bytes, size_t max_bytes,
                              struct problem *problem);

/* Writes the answer's body; the first *ret_json_bytes of it are JSON. Numbers that are not finite
 * are the words NaN, Infinity and -Infinity there, as the protocol's clients have them. */
enum error oip_encode(const struct result *result, const struct oip_call *call, struct text *text,
                      size_t *ret_json_bytes, struct problem *problem);

/* {"error": "..."}: the detail, where the problem lies, and the setting behind a limit. */
void oip_encode_problem(const struct problem *problem, struct text *text);

#endif
