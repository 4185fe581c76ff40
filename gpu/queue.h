/* queue.h - bounded queue of jobs between the threads that submit and one device's worker.
 *
 * Door: queue_push() and queue_remove() from any thread; queue_pop() from one worker, which takes
 * what is waiting. A full queue refuses (ERR_BUSY, HTTP 503) and never waits for room, so that a
 * slow device shows as back-pressure and not as growing memory. Small jobs and long ones wait in a
 * lane each, in order. Jobs are linked by job->next and job->link: nothing is allocated.
 */
#ifndef GPU_QUEUE_H
#define GPU_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "gpu/slice.h"

struct queue; /* layout in queue.c */

struct queue_bounds {
    uint32_t jobs;           /* waiting in both lanes together */
    uint64_t bytes;          /* of their operands */
    uint32_t client_percent; /* of either, for one client; 0 or 100: all */
};

/* slice: what the device takes at once; says which jobs are small. */
enum error queue_create(struct queue **ret, const struct queue_bounds *bounds,
                        const struct slice_limit *slice);
void queue_destroy(struct queue *queue); /* takes NULL; must be empty */

/* On success the job is the queue's. ERR_BUSY: full in jobs, or in bytes, or the client's share is;
 * an empty queue takes any job, and a client of whom nothing waits one over his share, because
 * "retry later" would never come true for them. ERR_CLOSED: closed. */
enum error queue_push(struct queue *queue, struct job *job);

/* Wakes who waits in queue_pop() while there are jobs, as pushes of jobs that are followed do
 * not. */
void queue_begin(struct queue *queue);

/* As queue_push() would, and counted as that when it is refused: for who would rather know before a
 * job is made. The bounds of jobs alone. */
enum error queue_check(struct queue *queue);

struct queue_wish {
    uint32_t max_jobs;        /* small ones, > 0 */
    struct slice_limit limit; /* they end with the one that fills it */
    bool wants_long;          /* one, if there is one */
    bool may_wait;            /* until there is something; only with wants_long */
    int64_t look_ns;          /* before it sleeps for that, it looks for so long */
};

/* What was taken; both NULL: nothing. */
struct queue_catch {
    struct job *small; /* chained by next */
    struct job *long_job;
};

/* False: closed, and nothing was waiting. */
bool queue_pop(struct queue *queue, const struct queue_wish *wish, struct queue_catch *ret);

/* Takes out one job that was pushed here, in constant time. False: it was popped or removed
 * before. */
bool queue_remove(struct queue *queue, struct job *job);

/* Why a job is not computed any more: ERR_DEADLINE past it, ERR_CLOSED when cancelled; ERR_OK: it
 * is. */
enum error job_dropped(const struct job *job, int64_t now_ns);

/* No further pushes; what is queued is still popped. May be called again. */
void queue_close(struct queue *queue);

struct queue_state {
    uint32_t jobs;           /* waiting, and those that are being pushed */
    uint64_t bytes;          /* of their operands */
    uint64_t rejected_total; /* pushes refused with ERR_BUSY */
    uint64_t unfair_total;   /* of those: for the client's share alone */
};
struct queue_state queue_state(struct queue *queue);

#endif
