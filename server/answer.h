/* answer.h - the one way an answer leaves: status, type, body and the headers every answer has. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include <jansson.h>

#include "proto/error.h"
#include "server/connection.h"

struct exchange;

enum { ANSWER_HEADERS = 10 };

struct answer {
    int status;
    const char *content_type;
    struct {
        const char *name, *value; /* borrowed until answer_send() returns */
    } header[ANSWER_HEADERS];
    int header_count;
};

void answer_header(struct answer *answer, const char *name, const char *value);

/* An answer up to this size comes with its exchange; memory for more is charged to the budget. */
enum { ANSWER_BYTES_KEPT = 64 << 10 };

/* Sends exchange->out under answer. ERR_NOMEM: nothing was queued, and out is empty. */
enum error answer_send(struct exchange *exchange, const struct answer *answer);

/* Gives back what a large answer was charged. */
void answer_uncharge(struct exchange *exchange);

/* Sends a document and drops its reference. document NULL (no memory): ERR_NOMEM. */
enum error answer_send_json(struct exchange *exchange, int status, json_t *document);

/* The same under an answer that has its status, and headers of its own. */
enum error answer_send_json_as(struct exchange *exchange, struct answer *answer, json_t *document);

/* Sends exchange->problem as problem+json, with Retry-After and the connection's end where they
 * belong. ERR_NOMEM: no memory even for that. */
enum error answer_send_problem(struct exchange *exchange);

/* The same in the middle of the body, past libmicrohttpd; the connection must then close. */
void answer_send_problem_early(struct exchange *exchange);

/* Likewise for a request whose head or body did not come in time; it may not have an exchange. One
 * that was refused already hears that. */
void answer_send_late(struct connection *connection, enum phase phase, uint64_t limit_ms);

#endif
