/* operands.h - two operands whose elements arrive as bytes, one operand after the other. Private to
 * proto/.
 *
 * Door: for each operand operands_begin() with what is known of it, operands_feed() with pieces cut
 * anywhere, operands_end(). The first is kept in the request's buffer. So is the second, unless it
 * is b, a is one row of as many elements, and the request's sink takes them: then b is handed on as
 * it arrives.
 */
#ifndef PROTO_OPERANDS_H
#define PROTO_OPERANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/request.h"
#include "proto/rounds.h"

/* What is known of an operand before its elements come. */
struct elements {
    enum dtype dtype;
    enum byte_order order;
    bool has_shape;
    struct shape shape; /* without one: a vector of whatever comes */
};

struct operands {
    struct request *request; /* borrowed */
    size_t max_bytes;        /* of memory, for both */
    uint64_t
        announced; /* bytes of the whole body, or BODY_CHUNKED: memory is taken once for both */
    struct tensor_pair pair; /* of those that have ended */
    unsigned begun;          /* bit 0: a, bit 1: b */

    /* of the one in hand */
    struct tensor *tensor;
    struct elements elements;
    uint64_t size_bytes; /* UINT64_MAX: not known */
    uint64_t received_bytes;
    bool is_large;    /* leaves the cache before it is computed with */
    bool is_streamed; /* through rounds */
    struct rounds rounds;
};

void operands_init(struct operands *operands, struct request *request, uint64_t announced,
                   size_t max_bytes);
void operands_fini(struct operands *operands);

/* The next operand, a or b, each once. What is known by now is refused by now: ERR_VALUE or
 * ERR_OPTION (another type than the other operand's, or than the request says), ERR_SHAPE,
 * ERR_TOO_LARGE, ERR_NOMEM. The request's dtype is settled by the first. */
enum error operands_begin(struct operands *operands, bool is_b, const struct elements *elements,
                          struct problem *problem);
/* The next operand, instead: one that was read in another way, is of the request's type, and lies
 * in the request's buffer. */
void operands_set(struct operands *operands, bool is_b, struct tensor tensor);

/* ERR_LENGTH: more than the shape asks for. */
enum error operands_feed(struct operands *operands, const char *data, size_t size,
                         struct problem *problem);
/* ERR_LENGTH: fewer, or no whole number of elements. */
enum error operands_end(struct operands *operands, struct problem *problem);

#endif
