/* queue.h - bounded FIFO of jobs between the threads that submit and one device's worker.
 *
 * Door: queue_push() from any thread, queue_pop() from one worker, which takes what is waiting.
 * A full queue refuses (ERR_BUSY, HTTP 503) and never waits for room, so that a slow device shows
 * as back-pressure and not as growing memory. Jobs are linked by job->next: nothing is allocated.
 */
#ifndef GPU_QUEUE_H
#define GPU_QUEUE_H

#include <stdint.h>

#include "gpu/gpu.h"

struct queue; /* layout in queue.c */

enum error queue_create(struct queue **ret, uint32_t capacity_jobs, uint64_t capacity_bytes);
void queue_destroy(struct queue *queue); /* takes NULL; must be empty */

/* On success the job is the queue's. ERR_BUSY: full in jobs, or in bytes; an empty queue takes any
 * job, because "retry later" would never come true for one over the bound. ERR_CLOSED: closed. */
enum error queue_push(struct queue *queue, struct job *job);

/* Waits for work, then takes jobs in order until there are max_jobs of them or they hold max_terms
 * products: at least one. NULL: closed and empty. */
struct job *queue_pop(struct queue *queue, uint32_t max_jobs, uint64_t max_terms);

/* No further pushes; what is queued is still popped. May be called again. */
void queue_close(struct queue *queue);

struct queue_state {
    uint32_t jobs;           /* waiting */
    uint64_t bytes;          /* of their operands */
    uint64_t rejected_total; /* pushes refused with ERR_BUSY */
};
struct queue_state queue_state(struct queue *queue);

#endif
