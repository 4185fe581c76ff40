/* kernels.h - the lab's own kernels: the exercise of the shift, and the tree with a misplaced
 * barrier.
 *
 * Door: X_emulated() runs one under the emulation (gpu/emu), as its grid says: a trace, lockstep, a
 * seed; false when it was stopped. shift_cuda() queues it on a device's stream. Blocks, threads and
 * body of the grid are the kernel's own.
 */
#ifndef GPU_LAB_KERNELS_H
#define GPU_LAB_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/emu/emu.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shift_call {
    const double *values; /* [n] */
    double *result;       /* [n] */
    uint32_t n;           /* 1 to 1024 */
    uint32_t barriers;    /* 0, 1, 2 */
};

bool shift_emulated(const struct shift_call *call, const struct emu_grid *grid);

/* The memory is the device's. Returns a cudaError_t. Only in builds with CUDA. */
int shift_cuda(const struct shift_call *call, void *stream);

struct barrier_call {
    uint32_t n;        /* ones, in one block of as many threads; 1 to 1024 */
    bool is_in_branch; /* the barrier of each step */
    float *result;
};

bool barrier_emulated(const struct barrier_call *call, const struct emu_grid *grid);

#ifdef __cplusplus
}
#endif

#endif
