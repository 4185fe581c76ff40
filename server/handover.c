/* handover.c - accepted connections on their way to another loop (see handover.h). */
#include "server/handover.h"

#include <stdlib.h>
#include <unistd.h>

bool handover_push(struct handover_list *list, int fd, const struct sockaddr_storage *address,
                   socklen_t address_size)
{
    struct handover *handover = malloc(sizeof *handover);
    if (handover == NULL) {
        (void)close(fd);
        return false;
    }
    *handover = (struct handover){.fd = fd, .address = *address, .address_size = address_size};
    handover->next = atomic_load_explicit(&list->first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&list->first, &handover->next, handover))
        continue;
    return true;
}

struct handover *handover_take(struct handover_list *list)
{
    return atomic_exchange(&list->first, NULL);
}

void handover_fini(struct handover_list *list)
{
    struct handover *handover = handover_take(list);
    while (handover != NULL) {
        struct handover *next = handover->next;
        (void)close(handover->fd);
        free(handover);
        handover = next;
    }
}
