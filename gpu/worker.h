/* worker.h - one device at work: its queue and the thread that empties it.
 *
 * Door: worker_create() once the device is open; worker_push() from any thread; worker_drain(),
 * then worker_destroy(). The thread takes all small jobs that wait, drops what is cancelled or
 * late, computes the rest as one batch and hands every port its jobs in one chain; then it computes
 * one slice of a long job (slice.h), and begins again. So a small job waits for one slice at most,
 * however long the jobs beside it are; a few long jobs take turns.
 */
#ifndef GPU_WORKER_H
#define GPU_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/failover.h"
#include "gpu/queue.h"

struct worker; /* layout in worker.c */

/* Borrows both devices; cpu computes when `mine` cannot (failover.h). name (up to 15 bytes): the
 * thread's. */
enum error worker_create(struct worker **ret, const struct device_handle *mine,
                         const struct device_handle *cpu, const char *name,
                         const struct gpu_config *config);

/* As queue_push(); ERR_NO_DEVICE when the device was lost. */
enum error worker_push(struct worker *worker, struct job *job);
void worker_begin(struct worker *worker); /* as queue_begin() */

enum error worker_check(struct worker *worker); /* as queue_check() */

/* Refuses new jobs and returns when everything accepted has completed. May be called again. */
void worker_drain(struct worker *worker);
void worker_destroy(struct worker *worker); /* takes NULL; drains */

/* As if the device had reported ERR_DEVICE, but device_lost is not called. It has no job. */
void worker_leave_out(struct worker *worker, const struct problem *problem);

/* True once the device reported ERR_DEVICE, or was left out; *problem holds why. */
bool worker_is_lost(struct worker *worker, struct problem *problem);

/* When the batch or slice that is being computed began, on CLOCK_MONOTONIC; 0: none is. */
int64_t worker_busy_since_ns(struct worker *worker);

/* load_ns of all jobs that were accepted and have not completed, and how many those are. */
int64_t worker_load_ns(struct worker *worker);
uint32_t worker_load_jobs(struct worker *worker);

/* How long it is worth looking for what is about to come, from either side. */
int64_t worker_look_ns(const struct worker *worker);

struct worker_totals {
    uint64_t jobs, batches;                 /* computed; a long job is a batch of its own */
    uint64_t by_size[GPU_BATCH_BOUNDS + 1]; /* of batches */
    uint64_t slices;                        /* of long jobs */
    uint64_t expired, cancelled;            /* dropped, before or between slices; not among jobs */
    uint64_t rerouted;                      /* of jobs: computed on the CPU in the device's place */
};
struct worker_totals worker_totals(struct worker *worker);
struct queue_state worker_queue_state(struct worker *worker);

#endif
