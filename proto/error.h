/* error.h - the one table of errors, and what a client is told about one.
 *
 * Door: every function that can fail returns `enum error`; whoever knows the details fills a
 * `struct problem`. The problem+json answers, the pages under /problems/ and the tests are all
 * made from ERROR_MAP, so a new error is one row here and nothing else.
 * Source: RFC 9457 (problem details), RFC 9110 (status codes).
 */
#ifndef PROTO_ERROR_H
#define PROTO_ERROR_H

#include <stdint.h>

#include "proto/limits.h"

/*    code               http  name                     title, and one sentence for the page */
#define ERROR_MAP(X)                                                                               \
    X(ERR_OK, 200, "ok", "no error", "Nothing went wrong.")                                        \
    X(ERR_SYNTAX, 400, "bad-syntax", "the body is not well-formed",                                \
      "The body is not what its Content-Type says; offset names the byte where reading stopped.")  \
    X(ERR_LENGTH, 400, "bad-length", "the body's length does not fit its elements",                \
      "A binary body must hold exactly the elements that dtype and the shapes ask for. With curl " \
      "use --data-binary: -d strips line ends.")                                                   \
    X(ERR_OPTION, 400, "bad-option", "an option is unknown, repeated or contradicts another",      \
      "Options are read from the JSON body and the query string; each may be given once.")         \
    X(ERR_INFER, 400, "bad-inference", "not an inference request that this model takes",           \
      "The Open Inference Protocol has one status for all that is wrong with a request: the "      \
      "message names the tensor or the field.")                                                    \
    X(ERR_FRAMING, 400, "bad-framing", "the request's framing is not acceptable",                  \
      "The headers leave it unclear where the body ends (RFC 9112 section 6), or are malformed; "  \
      "the connection closes.")                                                                    \
    X(ERR_NOT_FOUND, 404, "not-found", "nothing is served at this path",                           \
      "GET / names a call that works.")                                                            \
    X(ERR_METHOD, 405, "method-not-allowed", "this path does not take that method",                \
      "The Allow header lists the methods that it takes.")                                         \
    X(ERR_ACCEPT, 406, "not-acceptable", "no representation matches Accept",                       \
      "Results come as application/json, application/octet-stream or application/x-npy.")          \
    X(ERR_RECEIVE, 408, "receive-timeout", "the request did not arrive in time",                   \
      "Head and body each have a total deadline, however steadily the bytes drip.")                \
    X(ERR_TOO_LARGE, 413, "too-large", "the request is over a limit",                              \
      "The limit and the setting behind it are in the answer and in GET /v1/limits.")              \
    X(ERR_MEDIA, 415, "unsupported-media-type", "the body's type is not one that is read here",    \
      "The detail lists the types that are.")                                                      \
    X(ERR_EXPECT, 417, "unknown-expectation", "only 100-continue is an expectation here",          \
      "RFC 9110 section 10.1.1.")                                                                  \
    X(ERR_SHAPE, 422, "length-mismatch", "the operands' shapes do not match",                      \
      "Both operands need the same last dimension, and leading dimensions that broadcast.")        \
    X(ERR_VALUE, 422, "bad-value", "a value is of the wrong type or out of range",                 \
      "The pointer names the field or the element.")                                               \
    X(ERR_DTYPE, 422, "unknown-dtype", "this element type is not computed here",                   \
      "The detail lists the element types that are.")                                              \
    X(ERR_KERNEL, 422, "unknown-kernel", "no kernel of that name takes this request",              \
      "The detail says which kernels there are.")                                                  \
    X(ERR_UNSUPPORTED, 422, "unsupported", "well-formed, but not offered by this server",          \
      "The detail says what is offered instead.")                                                  \
    X(ERR_DEVICE, 500, "device-fault", "the device reported an error",                             \
      "No result was produced; the request is named in the server's log.")                         \
    X(ERR_UNKNOWN_METHOD, 501, "unknown-method", "the method is not known here",                   \
      "RFC 9110 section 9.1.")                                                                     \
    X(ERR_CODING, 501, "unknown-coding", "the transfer coding is not known here",                  \
      "Only chunked is read (RFC 9112 section 6.1); the connection closes.")                       \
    X(ERR_BUSY, 503, "busy", "the queue is full, retry later",                                     \
      "Nothing was queued; Retry-After says when to come again.")                                  \
    X(ERR_NOMEM, 503, "out-of-memory", "the memory budget is full, retry later",                   \
      "Nothing was queued; Retry-After says when to come again.")                                  \
    X(ERR_CLOSED, 503, "draining", "the server is shutting down",                                  \
      "Work accepted earlier is still answered; send this to another server.")                     \
    X(ERR_STARTING, 503, "starting", "the server is not ready yet",                                \
      "It tests its devices before it uses them; GET /readyz says when that is done.")             \
    X(ERR_NO_DEVICE, 503, "no-device", "the device asked for is not there",                        \
      "GET /v1/devices lists those that are.")                                                     \
    X(ERR_DEADLINE, 504, "deadline", "the result was not ready in time",                           \
      "The job was dropped; nothing more will be computed for it. The limit and its name are in "  \
      "the answer.")

enum error {
#define X(code, status, name, title, text) code,
    ERROR_MAP(X)
#undef X
        ERROR_COUNT
};

/* What a client is told: the row of the table, and what was got, expected and can be done.
 * Fields that do not apply keep the values of problem_clear(). */
struct problem {
    enum error error;
    char detail[LIMIT_DETAIL_BYTES];   /* a sentence, UTF-8 */
    char pointer[LIMIT_POINTER_BYTES]; /* JSON pointer (RFC 6901) of the field, or empty */
    int64_t offset;                    /* byte in the body, or -1 */
    uint64_t limit;                    /* the limit that was passed, or 0 */
    const char *setting;               /* the setting behind limit, or NULL; static text */
};

int error_status(enum error error);
const char *error_name(enum error error);  /* "length-mismatch" */
const char *error_title(enum error error); /* "the operands' shapes do not match" */
const char *error_text(enum error error);  /* the sentence of the page */

/* ERR_OK when no error has that name: "ok" is not a problem. */
enum error error_from_name(const char *name);

void problem_clear(struct problem *problem);

/* Fills error and detail, clears the rest, and returns error, so that a reader of the code sees
 * `return problem_set(problem, ERR_SHAPE, "a has %zu ...", n);`. A longer detail is cut. */
enum error problem_set(struct problem *problem, enum error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the limit that was passed and its setting (static text; NULL: it is fixed). Returns the
 * problem's error. */
enum error problem_limit(struct problem *problem, uint64_t limit, const char *setting);

/* Adds the byte in the body. Returns the problem's error. */
enum error problem_at(struct problem *problem, uint64_t offset);

#endif
