/* intake.c - new connections of one loop (see intake.h). */
#include "server/intake.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "server/http_priv.h"
#include "server/log.h"
#include "server/loop.h"

enum {
    ACCEPTS_A_ROUND = 16,
    ACCEPT_PAUSE_MS = 100, /* when descriptors or memory have run out */
};

static void watch_listeners(struct intake *intake, int operation)
{
    const struct listen_set *sockets = intake->http->sockets;
    for (int i = 0; i < sockets->count; i++) {
        /* Exclusive: a new connection wakes one loop, not all of them. */
        struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
        if (epoll_ctl(intake->epoll, operation, sockets->fd[i], &event) != 0)
            log_event(LOG_LEVEL_ERROR, "accept", LOG_S("error", strerror(errno)));
    }
}

/* Counted while the listeners are in this loop's hands. Sequentially consistent: either
 * http_accept_no_more() sees the count, or this loop that it may not accept. */
static void start(struct intake *intake)
{
    struct http *http = intake->http;
    atomic_fetch_add(&http->accepting, 1);
    if (atomic_load(&http->may_accept)) {
        intake->is_accepting = true;
        watch_listeners(intake, EPOLL_CTL_ADD);
    } else {
        atomic_fetch_sub(&http->accepting, 1);
        http_quiet_changed(http);
    }
}

void intake_stop(struct intake *intake)
{
    if (!intake->is_accepting)
        return;
    intake->is_accepting = false;
    watch_listeners(intake, EPOLL_CTL_DEL);
    atomic_fetch_sub(&intake->http->accepting, 1);
    http_quiet_changed(intake->http);
}

static unsigned open_count(struct loop *loop)
{
    return atomic_load(&loop_intake(loop)->open_count);
}

static struct loop *least_busy(struct http *http)
{
    struct loop *best = http->loop[0];
    for (unsigned i = 1; i < http->loop_count; i++)
        if (open_count(http->loop[i]) < open_count(best))
            best = http->loop[i];
    return best;
}

/* Gives the descriptor to libmicrohttpd, which closes it whatever happens. Whether it is open is
 * counted by the loop from here on; it was counted as on its way until now. */
static void adopt(struct intake *intake, int fd, const struct sockaddr_storage *address,
                  socklen_t address_size)
{
    (void)MHD_add_connection(intake->daemon, fd, (const struct sockaddr *)address, address_size);
    atomic_fetch_sub(&intake->open_count, 1);
}

void intake_adopt(struct intake *intake)
{
    struct handover *handover = handover_take(&intake->handed_over);
    while (handover != NULL) {
        struct handover *next = handover->next;
        adopt(intake, handover->fd, &handover->address, handover->address_size);
        free(handover);
        handover = next;
    }
}

static void give(struct intake *intake, struct loop *loop, int fd,
                 const struct sockaddr_storage *address, socklen_t address_size)
{
    struct intake *target = loop_intake(loop);
    atomic_fetch_add(&target->open_count, 1);
    if (target == intake)
        adopt(intake, fd, address, address_size);
    else if (handover_push(&target->handed_over, fd, address, address_size))
        loop_wake_if_sleeping(loop);
    else
        atomic_fetch_sub(&target->open_count, 1);
}

/* Out of descriptors or memory, which only time mends: the listeners would be ready all the
 * while. */
static void pause_accepting(struct intake *intake, int64_t now_ns)
{
    intake_stop(intake);
    intake->accept_after_ns = now_ns + ACCEPT_PAUSE_MS * (int64_t)1000000;
}

static void accept_some(struct intake *intake, int listener, int64_t now_ns)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        struct loop *loop = least_busy(intake->http);
        if (open_count(loop) >= loop_intake(loop)->connections_max) {
            intake_stop(intake); /* until a connection closes; the backlog waits */
            return;
        }
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int fd =
            accept4(listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_accepting(intake, now_ns);
            return;
        }
        give(intake, loop, fd, &address, size);
    }
}

void intake_accept(struct intake *intake, int64_t now_ns)
{
    const struct listen_set *sockets = intake->http->sockets; /* closed once it is not accepting */
    for (int i = 0; intake->is_accepting && i < sockets->count; i++)
        accept_some(intake, sockets->fd[i], now_ns);
}

/* For good. A connection whose wake-up has come here comes to nobody else, so the listeners are
 * looked at once more after they are no longer watched. They may be closed as soon as the count
 * says so. */
static void let_listeners_go(struct intake *intake, int64_t now_ns)
{
    const struct listen_set *sockets = intake->http->sockets;
    if (!intake->is_accepting)
        return;
    intake->is_accepting = false;
    watch_listeners(intake, EPOLL_CTL_DEL);
    for (int i = 0; i < sockets->count; i++)
        accept_some(intake, sockets->fd[i], now_ns);
    atomic_fetch_sub(&intake->http->accepting, 1);
    http_quiet_changed(intake->http);
}

void intake_settle(struct intake *intake, int64_t now_ns, int64_t *deadline_ns)
{
    if (!atomic_load(&intake->http->may_accept)) {
        let_listeners_go(intake, now_ns);
        return;
    }
    if (intake->is_accepting || atomic_load(&intake->http->is_stopping) ||
        atomic_load(&intake->open_count) >= intake->connections_max)
        return;
    if (now_ns >= intake->accept_after_ns)
        start(intake);
    else if (intake->accept_after_ns < *deadline_ns)
        *deadline_ns = intake->accept_after_ns;
}
