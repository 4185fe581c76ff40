/* intake.h - new connections of one loop: taken from the listeners, given to the least busy loop.
 *
 * Door: intake_*() on the loop's thread; other loops' intakes add to handed_over and open_count.
 * A loop has the listeners in its hands while it may take more connections, and http->accepting
 * counts the loops that do, so that whoever closes the listeners knows when nobody uses them.
 */
#ifndef SERVER_INTAKE_H
#define SERVER_INTAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/handover.h"

struct http;
struct MHD_Daemon;

struct intake {
    /* fixed before the loop starts; borrowed */
    struct http *http;
    struct MHD_Daemon *daemon; /* of libmicrohttpd, which gets them */
    int epoll;                 /* its own: the listeners wake it, without a pointer (loop.c) */
    unsigned connections_max;  /* of this loop */
    /* any thread */
    struct handover_list handed_over; /* by other loops */
    atomic_uint open_count;           /* connections here or on their way here */
    /* loop's thread only */
    bool is_accepting;
    int64_t accept_after_ns; /* no earlier; 0: at once */
};

/* Takes what waits at the listeners, and gives it to the least busy loops. */
void intake_accept(struct intake *intake, int64_t now_ns);

/* Takes what other loops have handed over. */
void intake_adopt(struct intake *intake);

/* Begins to accept where it may, and ends where it may no more. Lowers *deadline_ns to when it is
 * to be called again. */
void intake_settle(struct intake *intake, int64_t now_ns, int64_t *deadline_ns);

/* Lets the listeners go, until intake_settle(). */
void intake_stop(struct intake *intake);

#endif
