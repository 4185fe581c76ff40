/* exchange.h - one request and its answer.
 *
 * Door: the loop registers the exchange_on_*() callbacks with libmicrohttpd; a route's handlers
 * (route.h) do the work. The states are a line, walked once:
 *
 *   HEAD ─▶ BODY ─▶ WORK ─▶ DONE ─▶ ANSWERED   a job that needs a device sleeps in WORK, its
 *     │      ├────────────────────────▲          connection suspended, and is back in DONE;
 *     └──────┴─▶ REFUSED ─────────────┘          a refused body is drained first
 *
 * Everything is touched by the loop's own thread only; a worker has exchange->job in WORK.
 */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "proto/error.h"
#include "proto/text.h"
#include "server/connection.h"
#include "server/dot.h"
#include "server/framing.h"
#include "server/route.h"

enum exchange_state {
    EXCHANGE_HEAD,
    EXCHANGE_BODY,
    EXCHANGE_WORK,
    EXCHANGE_DONE,
    EXCHANGE_REFUSED,
    EXCHANGE_ANSWERED
};

struct exchange {
    struct loop *loop;
    struct connection *connection;
    struct MHD_Connection *mhd;
    struct exchange *next_kept; /* exchanges.h, while unused */
    enum exchange_state state;
    struct head head;
    const struct route *route;   /* NULL until found */
    char *target;                /* owned: the path as it came, NUL, the query string */
    const char *query;           /* in target; NULL when there is no '?' */
    char id[LIMIT_ID_BYTES + 1]; /* of the log and X-Request-Id */
    struct problem problem;      /* why, in REFUSED */
    char allow[64];              /* the header's value, when that is ERR_METHOD */
    bool must_close;             /* the connection ends after this answer */
    int status;                  /* of the answer; 0 before */
    int64_t begun_ns;            /* request line seen */
    int64_t first_byte_ns;       /* of the body, or the end of the head when there is none */
    uint64_t body_bytes;         /* so far */
    struct job job;              /* in WORK a device's, or the lab's */
    struct dot_exchange dot;     /* of /v1/dot */
    uint64_t charged_bytes;      /* of out, in http->answer_bytes */
    struct text out;             /* the answer's body, until the client has it */
};

/* libmicrohttpd's callbacks; loop is their closure. */
void *exchange_on_target(void *loop, const char *target, struct MHD_Connection *mhd);
enum MHD_Result exchange_on_request(void *loop, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *data_size, void **exchange);
void exchange_on_completed(void *loop, struct MHD_Connection *mhd, void **exchange,
                           enum MHD_RequestTerminationCode code);

/* The job is done: the connection wakes and the handler answers on the next run. */
void exchange_resume(struct exchange *exchange);

/* For handlers. */
void exchange_suspend(struct exchange *exchange); /* after a job was submitted */
bool exchange_is_draining(const struct exchange *exchange);
bool exchange_must_close(const struct exchange *exchange); /* its connection ends with its answer */

#endif
