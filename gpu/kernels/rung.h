/* rung.h - what ladder.c hands to a rung's own file.
 *
 * Door: cuda_SYMBOL(launch) and emu_SYMBOL(launch), one pair a row of ladder_map.h, the same source
 * compiled for a device and for the emulation. 0: done or queued; else a cudaError_t, and in the
 * emulation 1, stopped by a fault.
 */
#ifndef GPU_KERNELS_RUNG_H
#define GPU_KERNELS_RUNG_H

#include "gpu/kernels/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rung_launch {
    struct rung_call call;   /* machine is set */
    struct rung_takes takes; /* launches 0: nothing to sum, and the result is zero */
    struct grid_task task;   /* of grid-atomic and exact, planned */
};

/* Returns the rung's place in the table. */
size_t rung_prepare(const struct rung *rung, const struct rung_call *call, struct rung_launch *ret);

#ifdef __cplusplus
}
#endif

#endif
