/* device.c - what the kernels' own host code asks of the emulated device where no runtime is linked
 * (see cuda_runtime_api.h): in the daemon, whose CUDA runtime is the real one.
 */
#include "gpu/emu/cuda_runtime_api.h"
#include "gpu/emu/emu.h"

cudaError_t cudaGetDevice(int *ret)
{
    *ret = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr attribute, int device)
{
    const struct emu_settings settings = emu_get();
    (void)device; /* the one */
    *ret = attribute == cudaDevAttrMultiProcessorCount ? (int)settings.multiprocessors
                                                       : (int)settings.shared_bytes;
    return cudaSuccess;
}
