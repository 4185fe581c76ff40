/* loop.h - one HTTP thread: a loop around its own libmicrohttpd daemon.
 *
 * libmicrohttpd runs without threads and without a listening socket of its own; the loop accepts,
 * hands connections to the least busy loop, keeps deadlines, takes completed jobs in batches and
 * resumes their connections without a system call each. Draining therefore needs no
 * MHD_quiesce_daemon, which can abort the process when there is a pool.
 * Everything of a connection and an exchange belongs to the loop's thread.
 */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "server/http_priv.h"

struct connection;
struct loop;

/* Counted by the loop's thread, read by any: relaxed. */
struct loop_stats {
    uint64_t connections_total;
    unsigned connections, exchanges; /* open now; begun and not yet completed */
};

/* false: out of memory or descriptors. */
bool loop_create(struct loop **ret, struct http *http, unsigned index);

/* Starts the thread, once http->loop[] is complete. */
bool loop_start(struct loop *loop);

/* Waits for the thread to end, once http->is_stopping. Takes NULL and one that was not started. */
void loop_stop(struct loop *loop);

/* Once every loop is stopped: they hand connections to each other. Takes NULL. */
void loop_destroy(struct loop *loop);

struct loop_stats loop_stats(struct loop *loop);
bool loop_is_quiet(struct loop *loop); /* while draining: no request begun, none unread; while
                                          leaving: nobody connected */
void loop_wake(struct loop *loop);     /* from any thread: go round once */

/* Likewise, after something was put where the loop looks before it sleeps: free while it is
 * busy. */
void loop_wake_if_sleeping(struct loop *loop);

struct intake *loop_intake(struct loop *loop); /* for other loops' intakes */

/* When a call last saw it sleep, or further than the call before: http_well_ns(). */
int64_t loop_well_ns(struct loop *loop, int64_t now_ns);

/* libmicrohttpd sleeps and calls back in one call: whoever it calls says so first. */
void loop_awake(struct loop *loop);

/* For exchanges, on the loop's thread. */
struct http *loop_http(struct loop *loop);
int64_t loop_now_ns(const struct loop *loop); /* when the current round began */
struct connections *loop_connections(struct loop *loop);
struct exchanges *loop_exchanges(struct loop *loop);
struct deadlines *loop_deadlines(struct loop *loop);
struct job_port *loop_port(struct loop *loop);       /* where jobs of this loop complete */
struct job_port *loop_slice_port(struct loop *loop); /* the same for those of a stream (stream.h) */

/* Of a connection that was taken, its request answered: the client may ask again, on the same one
 * for him and a new one for libmicrohttpd. */
void loop_renew(struct loop *loop, struct connection *connection);

/* Of a job that is_followed, on its device: gpu_begin() is called before the loop sleeps again. */
void loop_follow(struct loop *loop, int device);

/* Whether one more request may wait for its jobs without its connection being suspended. Until
 * loop_let_go() the library then asks for its answer in every round, after a millisecond at the
 * most. */
bool loop_may_hold(struct loop *loop);
void loop_let_go(struct loop *loop); /* its answer is there, or its connection is suspended */

/* The library may have more in hand than it has told: it is to run so often before the loop sleeps,
 * while requests are held. */
void loop_expect(struct loop *loop, unsigned runs);

/* The loop's thread counts, any reads (metrics.h). */
struct metrics *loop_metrics(struct loop *loop);

#endif
