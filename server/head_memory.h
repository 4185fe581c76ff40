/* head_memory.h - the head that a client sent last, so that the same one need not be read again.
 *
 * Door: head_memory_recall() before a head is read, head_memory_learn() once it has been, on the
 * loop's thread. Who keeps a connection sends the same head again and again, and reading one is a
 * tenth of what a small request costs. What a head is taken for depends on three things: the bytes
 * that libmicrohttpd has left of it, where its fields lie in them, and the target as it came. Where
 * all three are what they were, so is what was made of them. Only heads that were accepted are
 * kept, those of /v1/dot. What may change meanwhile (draining, a limit) is no part of it.
 */
#ifndef SERVER_HEAD_MEMORY_H
#define SERVER_HEAD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/dot.h"
#include "server/framing.h"
#include "server/route.h"

enum {
    HEAD_MEMORIES = 8, /* of a loop; clients share them by their numbers */
    /* Longer ones are read anew. */
    HEAD_MEMORY_BYTES = 1024,
    HEAD_MEMORY_TARGET_BYTES = 256,
    HEAD_MEMORY_FIELDS = 24,
};

/* Where a header field lies, from the head's first byte on. */
struct head_field {
    size_t name, name_size, value, value_size;
};

struct head_memory {
    size_t size; /* of text; 0: nothing is remembered */
    size_t target_size;
    unsigned field_count;
    struct head_field field[HEAD_MEMORY_FIELDS];
    struct head head; /* its values point into text */
    enum method method;
    const struct route *route;
    struct dot_head dot;
    char target[HEAD_MEMORY_TARGET_BYTES];
    char text[HEAD_MEMORY_BYTES];
};

/* If this head is the one that is remembered: sets the exchange's head, method, route and known. */
bool head_memory_recall(struct exchange *exchange);

/* The head has been accepted, and read as *dot. */
void head_memory_learn(struct exchange *exchange, const struct dot_head *dot);

#endif
