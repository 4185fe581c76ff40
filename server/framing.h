/* framing.h - what a request's head says, and whether its framing can be trusted.
 *
 * libmicrohttpd 0.9.75 lets through heads that RFC 9112 refuses and that another server on the way
 * may read differently (request smuggling). The exchange gathers every header here and asks
 * head_check() before anything else. Pure functions: no sockets, no library.
 */
#ifndef SERVER_FRAMING_H
#define SERVER_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct head {
    /* values that handlers read; borrowed, NULL when absent */
    const char *accept, *content_encoding, *content_type, *request_id, *timeout_ms;
    bool repeats_timeout;    /* more than one X-Timeout-Ms */
    bool repeats_encoding;   /* likewise Content-Encoding */
    uint64_t content_length; /* valid when length_count is 1 */
    bool expects_continue;
    bool is_last; /* the client wants the connection to end with the answer */
    /* what head_check() judges */
    unsigned length_count, coding_count, host_count;
    bool is_chunked;    /* the one Transfer-Encoding is exactly "chunked" */
    bool length_is_bad; /* not a plain decimal below 2^63 */
    bool expects_other; /* an Expect that is not 100-continue */
    const char *flaw;   /* a header name or value that no HTTP parser should accept, or NULL */
};

/* Takes in one header field. name and value are NUL-terminated and outlive the head. Blanks behind
 * a value are no part of it (RFC 9110 section 5.5): of those that handlers read they are cut
 * off. */
void head_add(struct head *head, const char *name, size_t name_size, char *value,
              size_t value_size);

/* ERR_OK, or why this head is refused; then the connection must close after the answer. */
enum error head_check(const struct head *head, const char *version, struct problem *problem);

#endif
