/* admit.h - what every call with a body is refused for, before anything is read of it. */
#ifndef SERVER_ADMIT_H
#define SERVER_ADMIT_H

#include <stdint.h>

#include "proto/encoding.h"

struct exchange;

/* ERR_CLOSED: the server drains. ERR_STARTING: no device is known to be right yet. */
enum error admit_open(const struct exchange *exchange, struct problem *problem);

/* How the body is compressed. ERR_MEDIA: in a way that is not read, or in several. */
enum error admit_coding(const struct exchange *exchange, enum coding *ret, struct problem *problem);
/* ERR_MEDIA: it is compressed, where that is not read. */
enum error admit_plain(const struct exchange *exchange, struct problem *problem);

/* What a decoder is told: BODY_CHUNKED when nobody knows how long the body is, decompressed. */
uint64_t admit_body_bytes(const struct exchange *exchange, enum coding coding);

/* ERR_TOO_LARGE: the body has more than limit bytes, or its head says that it will. A chunked one
 * tells as it comes: call again with every piece. setting NULL: the limit is fixed. */
enum error admit_size(const struct exchange *exchange, uint64_t limit, const char *setting,
                      struct problem *problem);

#endif
