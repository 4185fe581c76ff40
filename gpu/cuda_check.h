/* cuda_check.h - what a call of CUDA's returned, as an error with its text.
 *
 * Door: cuda_check() around every call that can fail.
 */
#ifndef GPU_CUDA_CHECK_H
#define GPU_CUDA_CHECK_H

#include <cuda_runtime_api.h>

#include "proto/error.h"

/* ERR_OK, or with what was done and what CUDA said in problem->detail: ERR_NOMEM where memory was
 * short, which a later call may not find so, else ERR_DEVICE. */
enum error cuda_check(cudaError_t status, const char *what, struct problem *problem);

#endif
