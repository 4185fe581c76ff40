/* ladder_cuda.c - a CUDA device as a machine of the ladder (see ladder_backend.h).
 *
 * Its stream is of the default priority, the lowest there is; the service's stream is above it.
 * Memory for operands is kept from sum to sum up to a limit and goes after a larger one: giving it
 * back waits for the device.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "gpu/cuda_check.h"
#include "gpu/ladder_backend.h"

enum {
    KEPT_BYTES = 16 << 20, /* of operands */
    ALIGN = 256,           /* of the second operand, as cudaMalloc() aligns the first */
    BLOCK = 1 << 16,       /* of random numbers, which measured operands repeat */
};

enum mark { MARK_BEGIN, MARK_COPIED, MARK_DONE, MARK_END, MARK_COUNT };

struct ladder_device {
    int index; /* fixed after open */
    cudaStream_t stream;
    cudaEvent_t mark[MARK_COUNT];
    char *d_result; /* RUNG_RESULT_BYTES, and scratch behind it */
    char *d_operands;
    size_t operand_bytes; /* of both, as allocated */
    void *d_flush;        /* of a measurement: twice L2 */
    size_t flush_bytes;   /* fixed after open */
};

static void cuda_close(struct ladder_device *device)
{
    if (device == NULL)
        return;
    (void)cudaSetDevice(device->index);
    (void)cudaFree(device->d_flush);
    (void)cudaFree(device->d_operands);
    (void)cudaFree(device->d_result);
    for (int i = 0; i < MARK_COUNT; i++)
        if (device->mark[i] != NULL)
            (void)cudaEventDestroy(device->mark[i]);
    if (device->stream != NULL)
        (void)cudaStreamDestroy(device->stream);
    free(device);
}

static enum error make_ready(struct ladder_device *device, struct rung_machine *ret_machine,
                             struct problem *problem)
{
    int l2_bytes = 0;
    cudaError_t status = cudaSetDevice(device->index);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device->index);
    device->flush_bytes = 2 * (size_t)l2_bytes;
    if (status == cudaSuccess)
        status = cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking);
    for (int i = 0; i < MARK_COUNT && status == cudaSuccess; i++)
        status = cudaEventCreate(&device->mark[i]);
    if (status == cudaSuccess)
        status = cudaMalloc((void **)&device->d_result, RUNG_RESULT_BYTES + RUNG_SCRATCH_BYTES);
    if (status == cudaSuccess)
        status = (cudaError_t)cuda_machine(ret_machine);
    return cuda_check(status, "a stream for the ladder", problem);
}

static enum error cuda_open(struct ladder_device **ret, int index, struct rung_machine *ret_machine,
                            struct problem *problem)
{
    struct ladder_device *device = calloc(1, sizeof *device);
    if (device == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a machine of the ladder");
    device->index = index;
    const enum error error = make_ready(device, ret_machine, problem);
    if (error != ERR_OK) {
        (void)cudaGetLastError(); /* told */
        cuda_close(device);
        return error;
    }
    *ret = device;
    return ERR_OK;
}

/* --- memory --- */

/* Not enough of it is the caller's trouble, not the device's. */
static enum error allocate(void **ret, size_t size, struct problem *problem)
{
    const cudaError_t status = cudaMalloc(ret, size);
    if (status != cudaErrorMemoryAllocation)
        return cuda_check(status, "device memory", problem);
    (void)cudaGetLastError(); /* told */
    return problem_set(problem, ERR_NOMEM, "the device has no %zu bytes to spare", size);
}

static size_t stride_of(const struct ladder_ask *ask)
{
    return (ask->n * dtype_size(ask->dtype) + ALIGN - 1) / ALIGN * ALIGN;
}

static void drop_operands(struct ladder_device *device)
{
    (void)cudaFree(device->d_operands);
    device->d_operands = NULL;
    device->operand_bytes = 0;
}

static enum error fit_operands(struct ladder_device *device, size_t size, struct problem *problem)
{
    if (size <= device->operand_bytes)
        return ERR_OK;
    drop_operands(device);
    const size_t wanted = size < KEPT_BYTES ? KEPT_BYTES : size;
    const enum error error = allocate((void **)&device->d_operands, wanted, problem);
    if (error == ERR_OK)
        device->operand_bytes = wanted;
    return error;
}

static void trim_operands(struct ladder_device *device)
{
    if (device->operand_bytes > KEPT_BYTES)
        drop_operands(device);
}

/* --- one sum --- */

static struct rung_call call_of(const struct ladder_device *device,
                                const struct rung_machine *machine, const struct ladder_ask *ask)
{
    return (struct rung_call){
        .machine = machine,
        .dtype = ask->dtype,
        .a = device->d_operands,
        .b = device->d_operands + stride_of(ask),
        .n = ask->n,
        .threads = ask->threads,
        .result = device->d_result,
        .scratch = device->d_result + RUNG_RESULT_BYTES,
        .stream = device->stream,
    };
}

static cudaError_t mark(const struct ladder_device *device, enum mark which)
{
    return cudaEventRecord(device->mark[which], device->stream);
}

static cudaError_t copy_in(const struct ladder_device *device, const struct ladder_ask *ask)
{
    const size_t size = ask->n * dtype_size(ask->dtype);
    if (size == 0)
        return cudaSuccess;
    cudaError_t status =
        cudaMemcpyAsync(device->d_operands, ask->a, size, cudaMemcpyHostToDevice, device->stream);
    if (status == cudaSuccess)
        status = cudaMemcpyAsync(device->d_operands + stride_of(ask), ask->b, size,
                                 cudaMemcpyHostToDevice, device->stream);
    return status;
}

static int64_t between_ns(const struct ladder_device *device, enum mark begin, enum mark end)
{
    float ms = 0;
    const cudaError_t status = cudaEventElapsedTime(&ms, device->mark[begin], device->mark[end]);
    return status == cudaSuccess ? (int64_t)((double)ms * 1e6) : 0; /* both have passed */
}

static cudaError_t run_marked(struct ladder_device *device, const struct rung_machine *machine,
                              const struct ladder_ask *ask, void *ret_result)
{
    const struct rung_call call = call_of(device, machine, ask);
    cudaError_t status = mark(device, MARK_BEGIN);
    if (status == cudaSuccess)
        status = copy_in(device, ask);
    if (status == cudaSuccess)
        status = mark(device, MARK_COPIED);
    if (status == cudaSuccess)
        status = (cudaError_t)rung_cuda(ask->rung, &call);
    if (status == cudaSuccess)
        status = mark(device, MARK_DONE);
    if (status == cudaSuccess)
        status = cudaMemcpyAsync(ret_result, device->d_result, RUNG_RESULT_BYTES,
                                 cudaMemcpyDeviceToHost, device->stream);
    if (status == cudaSuccess)
        status = mark(device, MARK_END);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(device->stream);
    return status;
}

static enum error cuda_run(struct ladder_device *device, const struct rung_machine *machine,
                           const struct ladder_ask *ask, void *ret_result,
                           struct ladder_answer *ret_times, struct problem *problem)
{
    enum error error = cuda_check(cudaSetDevice(device->index), "device", problem);
    if (error == ERR_OK)
        error = fit_operands(device, 2 * stride_of(ask), problem);
    if (error == ERR_OK)
        error = cuda_check(run_marked(device, machine, ask, ret_result), ask->rung->name, problem);
    if (error == ERR_OK) {
        ret_times->copy_in_ns = between_ns(device, MARK_BEGIN, MARK_COPIED);
        ret_times->compute_ns = between_ns(device, MARK_COPIED, MARK_DONE);
        ret_times->copy_out_ns = between_ns(device, MARK_DONE, MARK_END);
    }
    trim_operands(device);
    return error;
}

/* --- measuring --- */

/* One block comes from the host, the rest is made of it by doubling. */
static cudaError_t fill_operand(const struct ladder_device *device, char *d_data, size_t size,
                                const void *block, size_t block_bytes)
{
    size_t done = size < block_bytes ? size : block_bytes;
    cudaError_t status =
        cudaMemcpyAsync(d_data, block, done, cudaMemcpyHostToDevice, device->stream);
    while (done < size && status == cudaSuccess) {
        const size_t more = size - done < done ? size - done : done;
        status =
            cudaMemcpyAsync(d_data + done, d_data, more, cudaMemcpyDeviceToDevice, device->stream);
        done += more;
    }
    return status == cudaSuccess ? cudaStreamSynchronize(device->stream) : status;
}

static enum error fill_operands(const struct ladder_device *device, const struct ladder_ask *ask,
                                struct problem *problem)
{
    const size_t block_bytes = BLOCK * dtype_size(ask->dtype);
    const size_t size = ask->n * dtype_size(ask->dtype);
    void *block = malloc(block_bytes);
    if (block == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for %zu bytes of operands", block_bytes);
    ladder_fill(block, ask->dtype, BLOCK, ask->seed);
    cudaError_t status = fill_operand(device, device->d_operands, size, block, block_bytes);
    ladder_fill(block, ask->dtype, BLOCK, ~ask->seed);
    if (status == cudaSuccess)
        status =
            fill_operand(device, device->d_operands + stride_of(ask), size, block, block_bytes);
    free(block);
    return cuda_check(status, "operands", problem);
}

static enum error cuda_begin(struct ladder_device *device, const struct ladder_ask *ask,
                             struct problem *problem)
{
    enum error error = cuda_check(cudaSetDevice(device->index), "device", problem);
    if (error == ERR_OK)
        error = fit_operands(device, 2 * stride_of(ask), problem);
    if (error == ERR_OK)
        error = fill_operands(device, ask, problem);
    if (error == ERR_OK)
        error = allocate(&device->d_flush, device->flush_bytes, problem);
    return error;
}

static void cuda_end(struct ladder_device *device)
{
    (void)cudaFree(device->d_flush);
    device->d_flush = NULL;
    trim_operands(device);
}

/* Behind a flush of L2, so that launches are queued by the time it ends. */
static enum error cuda_time(struct ladder_device *device, const struct rung_machine *machine,
                            const struct ladder_ask *ask, double *ret_us, struct problem *problem)
{
    const struct rung_call call = call_of(device, machine, ask);
    cudaError_t status = cudaMemsetAsync(device->d_flush, 0, device->flush_bytes, device->stream);
    if (status == cudaSuccess)
        status = mark(device, MARK_COPIED);
    if (status == cudaSuccess)
        status = (cudaError_t)rung_cuda(ask->rung, &call);
    if (status == cudaSuccess)
        status = mark(device, MARK_DONE);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(device->stream);
    if (status == cudaSuccess)
        *ret_us = (double)between_ns(device, MARK_COPIED, MARK_DONE) / 1e3;
    return cuda_check(status, ask->rung->name, problem);
}

const struct ladder_backend ladder_cuda = {
    .open = cuda_open,
    .close = cuda_close,
    .run = cuda_run,
    .begin = cuda_begin,
    .time = cuda_time,
    .end = cuda_end,
};
