/* failover.h - computing on a device that may fail, with the CPU behind it.
 *
 * Door: failover_compute() from the device's worker. A device that reports ERR_DEVICE is lost for
 * the rest of the process: what it was given, and all that comes later, is computed on the CPU from
 * the operands on the host. One that is short of memory (ERR_NOMEM) gets each job again alone, and
 * only the job that fails then as well goes to the CPU. No job sees either error.
 */
#ifndef GPU_FAILOVER_H
#define GPU_FAILOVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gpu/backend.h"

/* A device as a worker needs it; borrowed. */
struct device_handle {
    const struct backend *backend;
    struct backend_device *device;
    int index; /* the device's number in gpu.h */
};

struct failover {
    struct device_handle mine, cpu;     /* fixed after failover_init(); may be the same */
    void (*device_lost)(void *context); /* fixed; NULL: nobody is told */
    void *context;                      /* fixed */
    atomic_bool is_lost;    /* any thread; false to true, once, after `problem` is written */
    struct problem problem; /* of who sets is_lost, then fixed */
};

void failover_init(struct failover *failover, const struct device_handle *mine,
                   const struct device_handle *cpu, const struct gpu_config *config);

/* Computes a chain as compute() in backend.h does, and sets error, device and is_rerouted of each
 * job; of the lab's jobs the last alone. A job with a partial comes alone; the partial is added to
 * once, whatever was tried. */
void failover_compute(struct failover *failover, struct job *first, struct backend_times *ret);

/* Of the device that computes now. */
const struct slice_limit *failover_slice(const struct failover *failover);

/* Lost from now on, for this reason, and device_lost is not called; once lost, nothing changes. Not
 * while the worker has a job. */
void failover_leave_out(struct failover *failover, const struct problem *problem);

bool failover_is_lost(const struct failover *failover); /* any thread */

#endif
