/* cuda_batch.h - a batch of jobs on one CUDA device: staged, launched, collected, settled.
 *
 * Door: cuda_batch_create() on an open device; cuda_batch_compute() from one thread at a time. All
 * memory is allocated by create. An ordinary batch is one launch for each type of operands: what is
 * small and pinned is read in place, the rest is copied into the staging arena, and the table of
 * tasks and the results lie in pinned memory that the kernels reach. What is too large for the
 * arena or for the tables takes several rounds.
 */
#ifndef GPU_CUDA_BATCH_H
#define GPU_CUDA_BATCH_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/backend.h"

struct cuda_batch; /* layout in cuda_batch.c */

/* Host memory that the device reads in place. */
struct cuda_pinned {
    const char *data; /* NULL: none */
    size_t size;
    const char *d_data; /* the same in the device's eyes */
};

/* On the current device. arena_bytes of device memory; less than 64 KiB is taken as that. */
enum error cuda_batch_create(struct cuda_batch **ret, size_t arena_bytes, struct problem *problem);
void cuda_batch_destroy(struct cuda_batch *batch); /* takes NULL */

/* As compute() in backend.h; the batch's device is current. */
enum error cuda_batch_compute(struct cuda_batch *batch, const struct cuda_pinned *pinned,
                              struct job *first, struct backend_times *ret,
                              struct problem *problem);

#endif
