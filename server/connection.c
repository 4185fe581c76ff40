/* connection.c - phases, deadlines and endings of a connection (see connection.h). */
#include "server/connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_BYTES_MAX = 256 << 20, /* a client that has not read its refusal by then never will */
    LINGER_PIECE_BYTES = 64 << 10,
    LINGER_PIECES = 16, /* read at one event: others wait for at most 1 MiB of copying */
};

static void unlink_from_phase(struct connections *all, struct connection *connection)
{
    struct phase_queue *queue = &all->queue[connection->phase];
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        queue->first = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    else
        queue->last = connection->previous;
    assert(queue->count > 0);
    queue->count--;
}

static void append_to_phase(struct connections *all, struct connection *connection,
                            enum phase phase, int64_t now_ns)
{
    struct phase_queue *queue = &all->queue[phase];
    connection->phase = phase;
    connection->deadline_ns = queue->duration_ns > 0 ? now_ns + queue->duration_ns : INT64_MAX;
    connection->previous = queue->last;
    connection->next = NULL;
    if (queue->last != NULL)
        queue->last->next = connection;
    else
        queue->first = connection;
    queue->last = connection;
    queue->count++;
}

/* Once, not by edges: while bytes are unread it is asked for again. A failure only means that an
 * early end is noticed at the deadline. */
static void watch_leaving(struct connections *all, struct connection *connection, int operation)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = connection};
    (void)epoll_ctl(all->epoll, operation, connection->fd, &event);
}

/* A client that has left in a phase where it was to send more, and of whom nothing is unread, will
 * never complete that phase. One with an answer under way may still read it. One that waits for a
 * device may have closed its side only, and read on; but who hangs up looks the same, and devices
 * are dear. */
static void check_leaving(struct connections *all, struct connection *connection)
{
    int unread = 0;
    enum phase phase = connection->phase;
    if (phase == PHASE_ANSWER)
        return; /* looked at again in PHASE_IDLE */
    if (phase == PHASE_WORK)
        all->on_left(connection);
    else if (ioctl(connection->fd, FIONREAD, &unread) == 0 && unread > 0)
        watch_leaving(all, connection, EPOLL_CTL_MOD);
    else
        connection_cut(connection);
}

struct connection *connection_create(struct connections *all, struct MHD_Connection *mhd, int fd,
                                     int64_t now_ns)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return NULL;
    connection->mhd = mhd;
    connection->fd = fd;
    append_to_phase(all, connection, PHASE_HEAD, now_ns);
    watch_leaving(all, connection, EPOLL_CTL_ADD);
    return connection;
}

void connection_destroy(struct connections *all, struct connection *connection)
{
    unlink_from_phase(all, connection);
    if (connection->phase == PHASE_LINGER)
        (void)close(connection->fd);
    free(connection);
}

void connection_enter(struct connections *all, struct connection *connection, enum phase phase,
                      int64_t now_ns)
{
    unlink_from_phase(all, connection);
    append_to_phase(all, connection, phase, now_ns);
    /* Not at once: libmicrohttpd may have read further requests already, and begins the next one
     * before the event comes again. */
    bool is_asked = phase == PHASE_IDLE || phase == PHASE_WORK;
    if (connection->has_left && is_asked && !connection->is_cut)
        watch_leaving(all, connection, EPOLL_CTL_MOD);
}

void connection_take(struct connections *all, struct connection *connection)
{
    assert(!connection->is_taken && !connection->is_cut);
    connection->is_taken = true;
    MHD_suspend_connection(connection->mhd);
    connection_watch(all, connection, true);
}

void connection_watch(struct connections *all, struct connection *connection, bool is_reading)
{
    assert(connection->is_taken);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (is_reading)
        (void)epoll_ctl(all->epoll, EPOLL_CTL_MOD, connection->fd, &event);
    else
        watch_leaving(all, connection, EPOLL_CTL_MOD);
}

void connection_resume(struct connections *all, struct connection *connection)
{
    all->has_resumed = true;
    MHD_resume_connection(connection->mhd);
}

static void wake_library(struct connections *all, struct connection *connection)
{
    connection->is_taken = false;
    connection_resume(all, connection);
}

void connection_give_back(struct connections *all, struct connection *connection)
{
    connection_watch(all, connection, false);
    wake_library(all, connection);
}

int connection_part(struct connections *all, struct connection *connection)
{
    int fd = fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)epoll_ctl(all->epoll, EPOLL_CTL_DEL, connection->fd, NULL); /* or the copy keeps it */
    (void)dup3(all->dead, connection->fd, O_CLOEXEC);
    connection->is_cut = true;
    wake_library(all, connection);
    return fd;
}

bool connection_say(struct connection *connection, const struct text *answer)
{
    /* Nothing of this answer is under way, so the socket's buffer takes it whole: it is short, or
     * was seen to have room (upload.c). A client that is gone already is none of our concern. */
    return !answer->failed && send(connection->fd, answer->data, answer->size,
                                   MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)answer->size;
}

void connection_answer(struct connection *connection, const struct text *answer)
{
    (void)connection_say(connection, answer);
    (void)shutdown(connection->fd, SHUT_WR);
    connection->must_linger = true;
}

void connection_cut(struct connection *connection)
{
    (void)shutdown(connection->fd, SHUT_RDWR);
    connection->is_cut = true;
}

void connection_linger(struct connections *all, struct connection *connection, int64_t now_ns)
{
    if (all->queue[PHASE_LINGER].count >= CONNECTIONS_LINGERING_MAX) {
        connection_destroy(all, connection);
        return;
    }
    connection->mhd = NULL;
    (void)epoll_ctl(all->epoll, EPOLL_CTL_DEL, connection->fd, NULL); /* or the copy keeps it */
    connection->fd = dup(connection->fd);
    connection_enter(all, connection, PHASE_LINGER, now_ns);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = connection};
    if (connection->fd < 0 || epoll_ctl(all->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0)
        connection_destroy(all, connection); /* out of descriptors: close as it would have been */
}

static void drain(struct connections *all, struct connection *connection)
{
    static _Thread_local char piece[LINGER_PIECE_BYTES];
    for (int i = 0; i < LINGER_PIECES; i++) {
        ssize_t size = recv(connection->fd, piece, sizeof piece, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size > 0)
            connection->linger_bytes += (uint64_t)size;
        if (size <= 0 || connection->linger_bytes > LINGER_BYTES_MAX) {
            connection_destroy(all, connection);
            return;
        }
    }
}

void connection_on_event(struct connections *all, struct connection *connection)
{
    if (connection->phase == PHASE_LINGER) {
        drain(all, connection);
        return;
    }
    if (connection->is_taken && connection->phase == PHASE_BODY) {
        all->on_readable(connection);
        return;
    }
    connection->has_left = true;
    if (!connection->is_cut)
        check_leaving(all, connection);
}

void connections_cancel_work(struct connections *all)
{
    for (struct connection *c = all->queue[PHASE_WORK].first; c != NULL; c = c->next)
        all->on_cancel(c);
}

void connections_end_taken(struct connections *all)
{
    for (struct connection *c = all->queue[PHASE_BODY].first; c != NULL; c = c->next)
        if (c->is_taken)
            connection_give_back(all, c);
}

/* The earliest stays first: all that would end later now end at the same time. */
void connections_hurry_idle(struct connections *all, int64_t now_ns, uint64_t idle_ms)
{
    struct phase_queue *queue = &all->queue[PHASE_IDLE];
    queue->duration_ns = (int64_t)idle_ms * 1000000;
    for (struct connection *c = queue->first; c != NULL; c = c->next)
        if (c->deadline_ns > now_ns + queue->duration_ns)
            c->deadline_ns = now_ns + queue->duration_ns;
}

/* A client that has begun a request is told why it is cut off; an idle one is only closed. */
static void expire(struct connections *all, struct connection *connection, int64_t now_ns)
{
    enum phase phase = connection->phase;
    if (phase == PHASE_LINGER) {
        connection_destroy(all, connection);
        return;
    }
    if (phase == PHASE_HEAD || phase == PHASE_BODY || phase == PHASE_REFUSE) {
        all->on_late(connection, phase, (uint64_t)all->queue[phase].duration_ns / 1000000);
        connection->must_linger = false; /* it had its time */
    }
    if (connection->is_taken)
        connection_give_back(all, connection);
    connection_cut(connection);
    /* To the end of its phase once more: should libmicrohttpd not notice, it is cut again. */
    connection_enter(all, connection, PHASE_ANSWER, now_ns);
}

int64_t connections_expire(struct connections *all, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
        struct phase_queue *queue = &all->queue[phase];
        while (queue->first != NULL && queue->first->deadline_ns <= now_ns)
            expire(all, queue->first, now_ns);
        if (queue->first != NULL && queue->first->deadline_ns < next_ns)
            next_ns = queue->first->deadline_ns;
    }
    return next_ns;
}
