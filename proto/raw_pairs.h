/* raw_pairs.h - raw elements of many pairs (layout=pairs): how many pairs there are, how long each
 * is, then a and b of each in turn. Private to proto/.
 *
 * Door: raw_pairs_create(), raw_pairs_feed() with pieces cut anywhere, raw_pairs_finish(). Numbers
 * are 64 bits in the byte order of the elements. Once the lengths are there, every place is known:
 * each operand begins aligned, and a byte is copied once, or received there. The buffer is sized
 * once where the body's length was announced. Else it grows as elements come: 16 bytes could claim
 * all memory.
 */
#ifndef PROTO_RAW_PAIRS_H
#define PROTO_RAW_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/request.h"

struct raw_pairs; /* layout in raw_pairs.c */

/* The request's dtype is known. As decoder_create() in encoding.h, with its failures. */
enum error raw_pairs_create(struct raw_pairs **ret, struct request *request, uint64_t body_bytes,
                            size_t max_bytes, struct problem *problem);
void raw_pairs_destroy(struct raw_pairs *pairs); /* takes NULL */

/* ERR_LENGTH: the body is shorter or longer than its lengths ask for; ERR_TOO_LARGE, ERR_NOMEM. */
enum error raw_pairs_feed(struct raw_pairs *pairs, const char *data, size_t size,
                          struct problem *problem);
enum error raw_pairs_finish(struct raw_pairs *pairs, struct problem *problem);

/* As decoder_place() in encoding.h. */
char *raw_pairs_place(const struct raw_pairs *pairs, size_t *ret_room);

#endif
