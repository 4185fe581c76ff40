/* waiter.h - one job through a device's queue, and the caller's thread waits for it.
 *
 * Door: waiter_run(), for what happens before the first client: the self-test, the measurement.
 */
#ifndef GPU_WAITER_H
#define GPU_WAITER_H

#include "gpu/gpu.h"

/* Sets job->port. ERR_DEVICE also when the CPU stood in for the device. */
enum error waiter_run(struct gpu *gpu, int device, struct job *job);

#endif
