/* cuda_runtime_api.h - stands for CUDA's header of this name where the CPU plays the device.
 *
 * Door: the calls of the runtime that the CUDA backend makes, with CUDA's names and promises
 * (runtime.c); for C++ also the language of kernels (device.h). Work on a stream is done before the
 * call returns.
 */
#ifndef GPU_EMU_CUDA_RUNTIME_API_H
#define GPU_EMU_CUDA_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorHostMemoryAlreadyRegistered,
} cudaError_t;

typedef struct emu_stream *cudaStream_t;
typedef struct emu_moment *cudaEvent_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int multiProcessorCount, major, minor;
};

enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrL2CacheSize,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaHostAllocDefault = 0, cudaHostAllocMapped = 2 };
enum { cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2 };
enum { cudaStreamNonBlocking = 1 };

#ifdef DOTD_EMU_LIBRARY /* beside the real runtime: device.c */
#define cudaGetDevice          emu_get_device
#define cudaDeviceGetAttribute emu_get_attribute
#endif

const char *cudaGetErrorName(cudaError_t status);
const char *cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError(void);

cudaError_t cudaDriverGetVersion(int *ret);
cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaGetDevice(int *ret);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device);
cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr attribute, int device);

cudaError_t cudaMalloc(void **ret, size_t size);
cudaError_t cudaFree(void *data);
cudaError_t cudaHostAlloc(void **ret, size_t size, unsigned flags);
cudaError_t cudaFreeHost(void *data);
cudaError_t cudaHostRegister(void *data, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *data);
cudaError_t cudaHostGetDevicePointer(void **ret, void *data, unsigned flags);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *data, int value, size_t size, cudaStream_t stream);

cudaError_t cudaEventCreate(cudaEvent_t *ret);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t begin, cudaEvent_t end);

#ifdef __cplusplus
}
#include "gpu/emu/device.h"
#endif

#endif
