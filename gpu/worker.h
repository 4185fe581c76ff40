/* worker.h - one device at work: its queue and the thread that empties it.
 *
 * Door: worker_create() once the device is open; worker_push() from any thread; worker_drain(),
 * then worker_destroy(). The thread takes what is waiting, drops what is cancelled or late,
 * computes the rest as one batch and hands every port its jobs in one chain.
 */
#ifndef GPU_WORKER_H
#define GPU_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/backend.h"
#include "gpu/queue.h"

struct worker; /* layout in worker.c */

/* Borrows the device. index is the device's number in gpu.h; name (up to 15 bytes) the thread's. */
enum error worker_create(struct worker **ret, const struct backend *backend,
                         struct backend_device *device, int index, const char *name,
                         const struct gpu_config *config);

/* As queue_push(); ERR_NO_DEVICE when the device was lost. */
enum error worker_push(struct worker *worker, struct job *job);

/* Refuses new jobs and returns when everything accepted has completed. May be called again. */
void worker_drain(struct worker *worker);
void worker_destroy(struct worker *worker); /* takes NULL; drains */

/* True once a batch reported ERR_DEVICE; *problem holds its text. Queued jobs get the same. */
bool worker_is_lost(struct worker *worker, struct problem *problem);

/* Why a job is not computed any more: ERR_CLOSED, cancelled; ERR_DEADLINE, late. ERR_OK: it is. */
enum error job_dropped(const struct job *job, int64_t now);

struct worker_totals {
    uint64_t jobs, batches; /* computed or failed; jobs that were dropped do not count */
};
struct worker_totals worker_totals(struct worker *worker);
struct queue_state worker_queue_state(struct worker *worker);

#endif
