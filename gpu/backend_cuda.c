/* backend_cuda.c - CUDA devices (see backend.h). The runtime is linked statically: without a driver
 * it reports no device, and the daemon runs on the CPU.
 *
 * One stream a device, used by its worker alone. An error is final for the device: after a fault
 * every later call fails, in every context of this process.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/backend.h"
#include "gpu/cuda_batch.h"
#include "gpu/cuda_check.h"

struct backend_device {
    int index;                 /* fixed after open */
    struct device_info info;   /* fixed after open: what describe() tells */
    struct cuda_batch *batch;  /* the worker's */
    struct cuda_pinned pinned; /* fixed from pin() to unpin() */
    bool owns_pin;             /* gpu_open() and gpu_close(): this device registered the memory */
};

/* Where there is no driver the runtime finds version 0 of it, and calls that insufficient. */
static const char *cause_of(cudaError_t error)
{
    int version = 0;
    bool is_known = cudaDriverGetVersion(&version) == cudaSuccess;
    return is_known && version == 0 ? "there is no NVIDIA driver" : cudaGetErrorString(error);
}

static int cuda_count(struct problem *problem)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        (void)cudaGetLastError(); /* no driver, or no device: not an error of later calls */
        (void)problem_set(problem, ERR_NO_DEVICE, "%s", cause_of(error));
        return 0;
    }
    return count;
}

static enum error read_info(struct backend_device *device, struct problem *problem)
{
    struct cudaDeviceProp properties;
    enum error error = cuda_check(cudaGetDeviceProperties(&properties, device->index),
                                  "device properties", problem);
    if (error != ERR_OK)
        return error;
    struct device_info *info = &device->info;
    (void)snprintf(info->id, sizeof info->id, "cuda:%d", device->index);
    (void)snprintf(info->name, sizeof info->name, "%.*s", LIMIT_NAME_BYTES - 1, properties.name);
    (void)snprintf(info->kernel, sizeof info->kernel, "grid-atomic");
    info->is_cuda = true;
    info->memory_bytes = properties.totalGlobalMem;
    info->multiprocessors = (uint32_t)properties.multiProcessorCount;
    info->capability = (uint32_t)(10 * properties.major + properties.minor);
    return ERR_OK;
}

static void cuda_close(struct backend_device *device)
{
    if (device == NULL)
        return;
    (void)cudaSetDevice(device->index);
    cuda_batch_destroy(device->batch);
    free(device);
}

static enum error cuda_open(struct backend_device **ret, int index, const struct gpu_config *config,
                            struct problem *problem)
{
    struct backend_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a device's record");
    device->index = index;
    enum error error = cuda_check(cudaSetDevice(index), "device", problem);
    if (error == ERR_OK)
        error = read_info(device, problem);
    if (error == ERR_OK)
        error = cuda_batch_create(&device->batch, config->device_bytes, problem);
    if (error != ERR_OK) {
        (void)cudaGetLastError(); /* told; later calls start clean */
        cuda_close(device);       /* accepts a half-built device */
        return error;
    }
    *ret = device;
    return ERR_OK;
}

static void cuda_describe(struct backend_device *device, struct device_info *ret)
{
    *ret = device->info;
}

/* The first device registers the memory for all of them. */
static enum error cuda_pin(struct backend_device *device, void *data, size_t size)
{
    void *d_data = NULL;
    cudaError_t status = cudaSetDevice(device->index);
    if (status == cudaSuccess)
        status = cudaHostRegister(data, size, cudaHostRegisterPortable | cudaHostRegisterMapped);
    device->owns_pin = status == cudaSuccess;
    if (status == cudaSuccess || status == cudaErrorHostMemoryAlreadyRegistered)
        status = cudaHostGetDevicePointer(&d_data, data, 0);
    if (status != cudaSuccess && device->owns_pin)
        (void)cudaHostUnregister(data);
    (void)cudaGetLastError(); /* an expected failure must not be found by a later call */
    if (status != cudaSuccess)
        return ERR_DEVICE;
    device->pinned = (struct cuda_pinned){.data = data, .size = size, .d_data = d_data};
    return ERR_OK;
}

static void cuda_unpin(struct backend_device *device)
{
    (void)cudaSetDevice(device->index);
    if (device->owns_pin)
        (void)cudaHostUnregister((void *)(uintptr_t)device->pinned.data);
    device->pinned = (struct cuda_pinned){0};
}

static enum error cuda_compute(struct backend_device *device, struct job *first,
                               struct backend_times *ret, struct problem *problem)
{
    enum error error = cuda_check(cudaSetDevice(device->index), "device", problem);
    if (error == ERR_OK)
        error = cuda_batch_compute(device->batch, &device->pinned, first, ret, problem);
    return error;
}

/* A client alone asks again within 50 us, and a service that nobody asks looks at nothing.
 *
 * 32 MiB are 0.6 ms of copying from pinned memory and 5 from other, of which the large jobs are:
 * with 128 MiB small ones beside them waited 20 ms. 2^29 products, where operands broadcast, take 3
 * ms. */
const struct backend backend_cuda = {
    .name = "cuda",
    .slice = {.bytes = 32 << 20, .terms = 1 << 29},
    .look_ns = 100000,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .compute = cuda_compute,
};
