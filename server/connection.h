/* connection.h - one TCP connection: in which phase it is, until when, and how it is cut off.
 *
 * libmicrohttpd's own timeout is for inactivity only: a client that drips a byte a second is never
 * closed. Here every phase has a total deadline. All phases of one kind last equally long, so each
 * kind is a FIFO whose head expires first: no heap, no scan.
 * Everything is touched by the loop's own thread only.
 */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/text.h"

struct MHD_Connection;
struct exchange;

enum phase {
    PHASE_HEAD,   /* the head of a request is due */
    PHASE_BODY,   /* its body is due */
    PHASE_REFUSE, /* the rest of a refused body is due: then its client hears why */
    PHASE_WORK,   /* it waits for a device: no deadline here, the request has its own */
    PHASE_ANSWER, /* the client must read the answer */
    PHASE_IDLE,   /* kept alive, nothing asked */
    PHASE_LINGER, /* answered and closed, but what it still sends is read (connection_linger) */
    PHASE_COUNT
};

struct connection {
    struct MHD_Connection *mhd; /* NULL while lingering */
    struct exchange *exchange;  /* begun and not completed; NULL: none */
    int fd;                     /* libmicrohttpd's; ours while lingering */
    enum phase phase;
    int64_t deadline_ns;
    struct connection *previous, *next; /* in the phase's FIFO */
    bool is_cut;                        /* shut down; libmicrohttpd has not noticed yet */
    bool has_left;                      /* its client sends no more: what is unread is the last */
    bool must_linger;                   /* close only when the client has stopped sending */
    bool is_taken;         /* from libmicrohttpd, which sleeps: its body is read here (upload.h) */
    uint64_t linger_bytes; /* read while lingering */
    uint64_t client;       /* whose it is (peer.h) */
};

/* Connections of one loop that linger at once, beyond max_connections; later ones just close. */
enum { CONNECTIONS_LINGERING_MAX = 64 };

struct phase_queue {
    struct connection *first, *last;
    int64_t duration_ns; /* how long a connection may stay in the phase; 0: for ever */
    unsigned count;
};

struct connections {
    struct phase_queue queue[PHASE_COUNT];
    int epoll;        /* the loop's; descriptors are added here, data.ptr the connection */
    int dead;         /* the loop's: a socket that nobody is at the other end of */
    bool has_resumed; /* by connection_resume() or loop_let_go(): the library is to run, and does
                       * not know it; cleared by whoever lets it */
    /* Answers a client whose request's head or body was not complete within limit_ms. */
    void (*on_late)(struct connection *connection, enum phase phase, uint64_t limit_ms);
    /* In PHASE_WORK its client has left: nobody is there to answer. */
    void (*on_left)(struct connection *connection);
    /* Of one that is taken there is more to read, or its end. */
    void (*on_readable)(struct connection *connection);
    /* In PHASE_WORK: what a device has not begun for it need not be begun. */
    void (*on_cancel)(struct connection *connection);
};

/* Also watches for the client's leaving. libmicrohttpd may miss it: it waits for a further edge
 * after a short read, and there is none when the end came together with the last bytes. */
struct connection *connection_create(struct connections *all, struct MHD_Connection *mhd, int fd,
                                     int64_t now_ns);
void connection_destroy(struct connections *all, struct connection *connection);

/* Moves it to phase, whose time starts now. */
void connection_enter(struct connections *all, struct connection *connection, enum phase phase,
                      int64_t now_ns);

/* libmicrohttpd goes on with one that it has suspended, when it runs next. */
void connection_resume(struct connections *all, struct connection *connection);

/* Takes it from libmicrohttpd, which may have read nothing that it did not hand on, and puts it to
 * sleep: on_readable() is called from now on. connection_watch() says no to that for a while. */
void connection_take(struct connections *all, struct connection *connection);
void connection_watch(struct connections *all, struct connection *connection, bool is_reading);

/* Wakes libmicrohttpd, which does not know what was read meanwhile: only to end the connection. */
void connection_give_back(struct connections *all, struct connection *connection);

/* Parts the client's socket from a connection that is taken: a new descriptor of it. What is given
 * back is an end that nobody is at. -1: out of descriptors, and nothing has changed. */
int connection_part(struct connections *all, struct connection *connection);

/* Sends a whole answer in the middle of a request, which libmicrohttpd cannot. False: it is cut
 * off. */
bool connection_say(struct connection *connection, const struct text *answer);

/* The same, and nothing after it. The caller then lets libmicrohttpd close the connection; it
 * lingers. */
void connection_answer(struct connection *connection, const struct text *answer);

/* Shuts the connection down; libmicrohttpd finds it closed on its next run. */
void connection_cut(struct connection *connection);

/* Called when libmicrohttpd is about to close fd: keeps a copy of the descriptor and reads on, so
 * that the answer is not lost to the reset that closing over unread bytes would send. */
void connection_linger(struct connections *all, struct connection *connection, int64_t now_ns);

/* epoll has something to say: the client has left; or it lingers and is readable, and then what
 * came is read and forgotten, and the connection destroyed at its end or cap. */
void connection_on_event(struct connections *all, struct connection *connection);

/* The time for draining is over: jobs that no device has begun are dropped. */
void connections_cancel_work(struct connections *all);

/* Before libmicrohttpd ends, which it may not while it sleeps anywhere. */
void connections_end_taken(struct connections *all);

/* From now on a connection may be idle for idle_ms only; those that are, for so long from now. */
void connections_hurry_idle(struct connections *all, int64_t now_ns, uint64_t idle_ms);

/* Ends every connection whose phase is over its time. Returns the next deadline, INT64_MAX:
 * none. */
int64_t connections_expire(struct connections *all, int64_t now_ns);

#endif
