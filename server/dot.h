/* dot.h - /v1/dot: from a body, or a query string, to the answer. */
#ifndef SERVER_DOT_H
#define SERVER_DOT_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "gpu/kernels/ladder.h"
#include "proto/encoding.h"
#include "proto/request.h"
#include "proto/result.h"

struct exchange;

/* What Accept asked for. */
enum form { FORM_JSON, FORM_RAW, FORM_NPY };

/* What the head alone says. */
struct dot_head {
    const struct encoding *encoding;
    enum coding coding;
    enum form form;
    struct options options;
};

struct dot_exchange {
    struct request request;  /* zeroed until begin */
    struct decoder *decoder; /* owned; NULL before and after the body */
    struct sink sink;        /* where a streamed body's elements go */
    struct stream *stream;   /* owned; NULL: the body is not streamed */
    const struct rung *rung; /* of the ladder, that computes on the lab's thread; NULL: none */
    int rung_device;         /* where, as gpu/lab.h counts */
    enum form form;          /* of the answer */
    /* writes the answer of a call that is not /v1/dot itself; NULL: as form says */
    enum error (*send)(struct exchange *exchange, const struct result *result,
                       struct problem *problem);
    int64_t decode_ns;  /* spent in the decoder so far */
    int64_t ending_ns;  /* when its end began, less what a stream had added by then; 0: not yet */
    int64_t decoded_ns; /* when the request was complete */
};

enum error dot_begin(struct exchange *exchange, struct problem *problem);
enum error dot_body(struct exchange *exchange, const char *data, size_t size,
                    struct problem *problem);
enum error dot_finish(struct exchange *exchange, struct problem *problem);
enum error dot_finish_query(struct exchange *exchange, struct problem *problem);
enum error dot_resume(struct exchange *exchange, struct problem *problem);
enum error dot_late(struct exchange *exchange, struct problem *problem);

/* For exchange.c: a job of the stream is back; no job need be begun any more. */
void dot_on_slice(struct exchange *exchange, struct job *slice);
void dot_cancel(struct dot_exchange *dot);

/* For calls that compute as /v1/dot does: what the header X-Timeout-Ms says becomes an option. */
enum error dot_take_header(struct exchange *exchange, struct problem *problem);

/* Likewise: a body of one row may be reduced while it arrives. */
void dot_offer_stream(struct exchange *exchange);

/* For stream.c. */
enum accuracy dot_accuracy(const struct options *options);           /* settled: exact or fast */
void dot_fill_job(const struct exchange *exchange, struct job *job); /* all but its operands */
void dot_set_deadline(struct exchange *exchange); /* anew: devices are waited for, or no more */
enum error dot_refuse(struct exchange *exchange, enum error error, struct problem *problem);

void dot_fini(struct dot_exchange *dot); /* zeroed is fine; may be called again */

#endif
