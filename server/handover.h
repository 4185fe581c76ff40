/* handover.h - accepted connections on their way to another loop: a lock-free list.
 *
 * Door: handover_push() from any thread; handover_take() by the one loop that owns the list.
 */
#ifndef SERVER_HANDOVER_H
#define SERVER_HANDOVER_H

#include <stdbool.h>
#include <stdatomic.h>
#include <sys/socket.h>

struct handover {
    struct handover *next;
    int fd; /* owned */
    struct sockaddr_storage address;
    socklen_t address_size;
};

struct handover_list {
    _Atomic(struct handover *) first; /* any thread pushes; the owner takes everything at once */
};

/* Takes fd. Without memory it is closed: false. */
bool handover_push(struct handover_list *list, int fd, const struct sockaddr_storage *address,
                   socklen_t address_size);

/* The whole list, linked by next; the caller frees each entry and owns its fd. */
struct handover *handover_take(struct handover_list *list);

void handover_fini(struct handover_list *list); /* closes and frees what nobody took */

#endif
