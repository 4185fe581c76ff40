/* runtime.c - the CUDA runtime of the emulated device (see cuda_runtime_api.h).
 *
 * Device memory is the process's own. It is filled with a pattern, so that what is read before it
 * is written shows.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/emu/cuda_runtime_api.h"
#include "gpu/emu/emu.h"

enum { ALIGN = 256, PATTERN = 0xa5, L2_BYTES = 1 << 16 };

struct emu_stream {
    int device;
};

struct emu_moment {
    struct timespec time;
};

const char *cudaGetErrorName(cudaError_t status)
{
    return status == cudaSuccess ? "cudaSuccess" : "cudaError";
}

const char *cudaGetErrorString(cudaError_t status)
{
    return status == cudaSuccess ? "no error" : "error of the emulated device";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

/* --- the one device --- */

cudaError_t cudaDriverGetVersion(int *ret)
{
    *ret = 12000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret)
{
    *ret = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device)
{
    struct emu_settings settings = emu_get();
    assert(device == 0);
    *ret = (struct cudaDeviceProp){
        .totalGlobalMem = (size_t)1 << 30,
        .multiProcessorCount = (int)settings.multiprocessors,
        .major = 9,
    };
    (void)snprintf(ret->name, sizeof ret->name, "emulation");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr attribute, int device)
{
    const struct emu_settings settings = emu_get();
    assert(device == 0);
    if (attribute == cudaDevAttrL2CacheSize)
        *ret = L2_BYTES;
    else
        *ret = attribute == cudaDevAttrMultiProcessorCount ? (int)settings.multiprocessors
                                                           : (int)settings.shared_bytes;
    return cudaSuccess;
}

/* --- memory --- */

cudaError_t cudaMalloc(void **ret, size_t size)
{
    void *data = aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);
    if (data == NULL)
        return cudaErrorMemoryAllocation;
    memset(data, PATTERN, size);
    *ret = data;
    return cudaSuccess;
}

cudaError_t cudaFree(void *data)
{
    free(data);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **ret, size_t size, unsigned flags)
{
    (void)flags;
    return cudaMalloc(ret, size);
}

cudaError_t cudaFreeHost(void *data)
{
    return cudaFree(data);
}

cudaError_t cudaHostRegister(void *data, size_t size, unsigned flags)
{
    (void)flags;
    return data != NULL && size > 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaHostUnregister(void *data)
{
    return data != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaHostGetDevicePointer(void **ret, void *data, unsigned flags)
{
    (void)flags;
    *ret = data;
    return cudaSuccess;
}

/* --- streams and events --- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof **ret);
    return *ret != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret, unsigned flags, int priority)
{
    (void)priority;
    return cudaStreamCreateWithFlags(ret, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return stream != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

/* Of the tests' thread before, and of the worker's while a batch is computed. */
static struct {
    cudaError_t status;
    unsigned skipped, count;
} failing_copies;

void emu_fail_copies(int status, unsigned skipped, unsigned count)
{
    failing_copies.status = (cudaError_t)status;
    failing_copies.skipped = skipped;
    failing_copies.count = count;
}

static cudaError_t copy_status(void)
{
    if (failing_copies.count == 0)
        return cudaSuccess;
    if (failing_copies.skipped > 0) {
        failing_copies.skipped--;
        return cudaSuccess;
    }
    failing_copies.count--;
    return failing_copies.status;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    cudaError_t status = copy_status();
    if (status != cudaSuccess)
        return status;
    memcpy(to, from, size);
    return cudaStreamSynchronize(stream);
}

cudaError_t cudaMemsetAsync(void *data, int value, size_t size, cudaStream_t stream)
{
    memset(data, value, size);
    return cudaStreamSynchronize(stream);
}

cudaError_t cudaEventCreate(cudaEvent_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)clock_gettime(CLOCK_MONOTONIC, &event->time);
    return cudaStreamSynchronize(stream);
}

cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ret_ms = (float)(end->time.tv_sec - begin->time.tv_sec) * 1e3F +
              (float)(end->time.tv_nsec - begin->time.tv_nsec) / 1e6F;
    return cudaSuccess;
}
