/* oip_document.h - the JSON of an inference request. Private to proto/.
 *
 * Door: oip_document_read() once the splitter (splitter.h) has taken all of it, with oip_form. It
 * sets options, operands and the call, and lists the tensors that follow as bytes.
 */
#ifndef PROTO_OIP_DOCUMENT_H
#define PROTO_OIP_DOCUMENT_H

#include "proto/oip.h"
#include "proto/splitter.h"

enum { OIP_INPUTS = 2 };

extern const struct splitter_form oip_form;

/* A tensor that follows the JSON. */
struct oip_blob {
    struct tensor *tensor; /* of the request; its offset is not set */
    uint64_t bytes;
};

struct oip_document {
    struct oip_call *call;   /* borrowed */
    struct request *request; /* borrowed */
    struct splitter splitter;
    size_t max_bytes; /* of all operands */
    bool has_length;  /* a header tells where the JSON ends, so that bytes may follow it */
    struct oip_blob blob[OIP_INPUTS]; /* in the order in which they follow */
    int blob_count;
};

enum error oip_document_read(struct oip_document *document, struct problem *problem);

/* The splitter has failed: says so, or that the cause are bytes that stand where JSON is read. */
enum error oip_document_fail(const struct oip_document *document, struct problem *problem);

#endif
