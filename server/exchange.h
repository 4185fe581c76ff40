/* exchange.h - one request and its answer.
 *
 * Door: the loop registers the exchange_on_*() callbacks with libmicrohttpd; a route's handlers
 * (route.h) do the work. The states are a line, walked once:
 *
 *   HEAD ─▶ BODY ─▶ WORK ─▶ DONE ─▶ ANSWERED   a job that needs a device waits in WORK, its
 *     │      ├───────┬────────────────▲          connection held, then suspended, and is back in
 *     └──────┴───────┴─▶ REFUSED ─────┘          DONE; a refused body is drained first
 *
 * One that is refused, or whose client leaves, while devices still have jobs of it is kept as an
 * orphan, without a connection, until they are back.
 * Everything is touched by the loop's own thread only; while it is out a worker has exchange->job,
 * and the lab job_problem and lab_call as well, and reads dot.rung.
 */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "proto/error.h"
#include "proto/oip.h"
#include "proto/text.h"
#include "server/connection.h"
#include "server/deadlines.h"
#include "server/dot.h"
#include "server/framing.h"
#include "server/lab_call.h"
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
    struct connection *connection; /* NULL: an orphan */
    struct MHD_Connection *mhd;
    struct exchange *next_kept; /* exchanges.h, while unused */
    enum exchange_state state;
    struct head head;
    enum method method;           /* 0: not known */
    const struct route *route;    /* NULL until found */
    char *target;                 /* request_target's: the path as it came, NUL, the query string */
    const char *query;            /* in target; NULL when there is no '?' */
    const char *head_start;       /* where libmicrohttpd has the head; until the body comes */
    size_t head_size;             /* with the empty line */
    const struct dot_head *known; /* head_memory.h, in begin(): what the head says; NULL: read it */
    bool must_close;              /* the connection ends after this answer */
    bool is_paused;               /* in BODY: no more of it for now, the connection is suspended */
    bool is_held;                 /* in WORK: the connection is not suspended, being asked again */
    int status;                   /* of the answer, or STATUS_LEFT; 0 before */
    int64_t begun_ns;             /* request line seen */
    int64_t first_byte_ns;        /* of the body; without one: the round that read the head */
    int64_t piece_ns;             /* when the latest piece of the body came */
    int64_t held_until_ns;        /* while is_held */
    uint64_t body_bytes;          /* so far */
    struct job job;               /* in WORK a device's, or the lab's */
    unsigned jobs_out;            /* that devices have: job, and others of the handler's own */
    struct deadline deadline;     /* loop_deadlines() */
    struct dot_exchange dot;      /* of /v1/dot, and of what computes as it does */
    struct oip_call oip;          /* of an inference below /v2; its model NULL: it is none */
    struct lab_call *lab_call;    /* of /v1/lab/, owned; NULL before its body */
    uint64_t charged_bytes;       /* of out, in http->answer_bytes */
    struct text out;              /* the answer's body, until the client has it */
    struct text request_target;   /* target and query */
    /* Begun empty, but not cleared as what is above: it is as much again. */
    char id[LIMIT_ID_BYTES + 1]; /* of the log and X-Request-Id */
    char allow[64];              /* the header's value, when problem is ERR_METHOD */
    struct problem problem;      /* why, in REFUSED; answered already if there is a status */
    struct problem job_problem;  /* the lab's, which says why its job has no result */
};

/* libmicrohttpd's callbacks; loop is their closure. */
void *exchange_on_target(void *loop, const char *target, struct MHD_Connection *mhd);
enum MHD_Result exchange_on_request(void *loop, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *data_size, void **exchange);
void exchange_on_completed(void *loop, struct MHD_Connection *mhd, void **exchange,
                           enum MHD_RequestTerminationCode code);

/* For upload.h: a piece of the body that libmicrohttpd has not seen. */
void exchange_on_read(struct exchange *exchange, const char *data, size_t size);

/* No status of HTTP: the client left before its answer, as web servers write it in their logs. */
enum { STATUS_LEFT = 499 };

/* Whose exchange->job it is. Any thread that has the job. */
struct exchange *exchange_of_job(struct job *job);

/* What became of the job that is back: its error, or ERR_DEADLINE when it was begun in time but
 * took too long. */
enum error exchange_job_error(const struct exchange *exchange);

/* For the loop. A job is back: with the last one the connection wakes and the handler answers on
 * the next run. A deadline has passed: 504 at once, whatever the device does. */
void exchange_on_job(struct exchange *exchange, struct job *job);
void exchange_on_deadline(struct deadline *deadline);
void exchange_on_left(struct connection *connection);
void exchange_on_cancel(struct connection *connection);

/* For handlers. */
void exchange_suspend(struct exchange *exchange); /* after exchange->job was submitted */
void exchange_wait(struct exchange *exchange);    /* likewise, after jobs counted in jobs_out */
void exchange_pause(struct exchange *exchange);   /* body handlers: until exchange_unpause() */
void exchange_unpause(struct exchange *exchange);

/* Outside of handlers: exchange->problem says why. */
void exchange_refuse(struct exchange *exchange);

/* For handlers of a route with late(): when that is to be called, in place of an earlier choice.
 * INT64_MAX: not at all. */
void exchange_set_deadline(struct exchange *exchange, int64_t at_ns);
bool exchange_is_draining(const struct exchange *exchange);
bool exchange_must_close(const struct exchange *exchange); /* its connection ends with its answer */

#endif
