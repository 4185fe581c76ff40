/* exchanges.h - the exchanges of one loop: those that are kept for reuse, and their ids.
 *
 * Door: exchange_new() and exchange_free(), on the loop's thread only. An answer's memory stays
 * with the exchange, so that the next request writes into memory that is there and warm.
 */
#ifndef SERVER_EXCHANGES_H
#define SERVER_EXCHANGES_H

#include <stdatomic.h>
#include <stdint.h>

#include "proto/text.h"
#include "server/head_memory.h"

struct exchange;

struct exchanges {
    atomic_uint count;     /* begun and not yet completed; the loop writes, any thread reads */
    struct exchange *kept; /* chained by next_kept */
    unsigned kept_count;
    uint64_t id_seed, id_count;
    struct text scratch;
    struct head_memory memory[HEAD_MEMORIES];
};

void exchanges_init(struct exchanges *all);
void exchanges_fini(struct exchanges *all);

struct exchange *exchange_new(struct exchanges *all); /* a cleared one, or NULL */
void exchange_free(struct exchanges *all, struct exchange *exchange);
void exchange_make_id(struct exchanges *all, char ret[static 17]); /* 16 digits and a NUL */

/* An empty text to put an answer's headers together in; it is the caller's until the next call. */
struct text *exchanges_scratch(struct exchanges *all);

#endif
