/* grid_atomic.h - the host's side of grid_atomic.cu. Needs the CUDA runtime's headers. */
#ifndef GPU_KERNELS_GRID_ATOMIC_H
#define GPU_KERNELS_GRID_ATOMIC_H

#include <cuda_runtime_api.h>

#include "gpu/kernels/grid.h"
#include "gpu/kernels/names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Readies the kernels of a type on the current device. *ret: blocks that one multiprocessor holds at
 * once. */
cudaError_t grid_atomic_blocks(enum dtype dtype, int *ret);

/* Queues one kernel of so many blocks on the stream; all its tasks are of `dtype`. *launch is
 * copied. */
cudaError_t grid_atomic_launch(enum dtype dtype, const struct grid_launch *launch, uint32_t blocks,
                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
