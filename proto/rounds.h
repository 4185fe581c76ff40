/* rounds.h - two vectors that arrive in rounds, handed on to a sink as they come.
 *
 * Door: rounds_init(), rounds_feed() with pieces cut anywhere, rounds_finish(). A round is a block
 * of a, then as many elements of b; the last one may be shorter. Vectors that are concatenated are
 * one round of all their elements. What is held is a's part of the round in hand; b is handed on
 * from where it arrived, when that is aligned, and otherwise through a small scratch. Of a body
 * whose length is not known a whole round is held, because where its last round is cut in two is
 * only known at its end.
 */
#ifndef PROTO_ROUNDS_H
#define PROTO_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/request.h"

#define ROUNDS_UNKNOWN UINT64_MAX /* n of vectors whose length is only known at their end */

struct rounds {
    const struct sink *sink; /* borrowed */
    struct buffer *held;     /* borrowed: the request's */
    size_t element_size;     /* fixed, as the next five */
    size_t number_size;      /* of an element's parts */
    bool is_a_big, is_b_big; /* big-endian */
    bool is_large;           /* a round leaves the cache before its b comes */
    bool is_known;           /* its length */
    uint64_t block_bytes;    /* of either operand in a full round */
    uint64_t left_bytes;     /* of either operand in the rounds after this one, if known */
    uint64_t half_bytes;     /* of either operand in this round */
    uint64_t at;             /* bytes of this round that have come */
    size_t scratch_used;     /* bytes of b that wait for the rest of their element */
    char *scratch;           /* owned */
};

/* Takes what memory it needs: ERR_NOMEM. n elements of each operand, block > 0 of them in a
 * round. */
enum error rounds_init(struct rounds *rounds, struct request *request, uint64_t block, uint64_t n);

/* The same for vectors of which a lies in the buffer already, from its start and in native order: b
 * is to come. */
enum error rounds_init_held(struct rounds *rounds, struct request *request, uint64_t n,
                            enum byte_order b_order);
void rounds_fini(struct rounds *rounds); /* zeroed is fine */

/* Where the next *ret_room bytes will be held, or the sink wants them; NULL: nowhere. */
char *rounds_place(const struct rounds *rounds, size_t *ret_room);

/* size is at most what is still to come, where that is known. data may be rounds_place(). */
void rounds_feed(struct rounds *rounds, const char *data, size_t size);

/* Once everything is fed, a whole and even number of elements. */
void rounds_finish(struct rounds *rounds);

#endif
