/* cuda_check.c - errors of CUDA (see cuda_check.h). */
#include "gpu/cuda_check.h"

#include <stdbool.h>

enum error cuda_check(cudaError_t status, const char *what, struct problem *problem)
{
    if (status == cudaSuccess)
        return ERR_OK;
    const bool is_short = status == cudaErrorMemoryAllocation;
    if (is_short)
        (void)cudaGetLastError(); /* told; it is not to be found by a later call */
    return problem_set(problem, is_short ? ERR_NOMEM : ERR_DEVICE, "%s: %s (%s)", what,
                       cudaGetErrorString(status), cudaGetErrorName(status));
}
