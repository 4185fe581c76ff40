/* trap.cu - a kernel that stops with an error, after which CUDA serves this process no more. */
#include "tests/gpu/trap.h"

static __global__ void trap()
{
    asm("trap;");
}

bool device_trap(void)
{
    trap<<<1, 1>>>();
    return cudaDeviceSynchronize() != cudaSuccess;
}
