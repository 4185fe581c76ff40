/* shift_cuda.c - the shift on a CUDA device (see shift_cuda.h).
 *
 * Memory and stream are made for each call: it is for looking at, not for speed.
 */
#include "gpu/lab/shift_cuda.h"

#include <stddef.h>

#include "gpu/cuda_check.h"

/* d_memory: room for values and result. */
static enum error run(const struct shift_call *call, double *d_memory, cudaStream_t stream,
                      struct problem *problem)
{
    const size_t size = call->n * sizeof(double);
    const struct shift_call device = {
        .values = d_memory, .result = d_memory + call->n, .n = call->n, .barriers = call->barriers};
    cudaError_t status =
        cudaMemcpyAsync(d_memory, call->values, size, cudaMemcpyHostToDevice, stream);
    if (status == cudaSuccess)
        status = (cudaError_t)shift_cuda(&device, stream);
    if (status == cudaSuccess)
        status = cudaMemcpyAsync(call->result, device.result, size, cudaMemcpyDeviceToHost, stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    return cuda_check(status, "shifting", problem);
}

enum error shift_on_cuda(int index, const struct shift_call *call, struct problem *problem)
{
    double *d_memory = NULL;
    cudaStream_t stream = NULL;
    enum error error = cuda_check(cudaSetDevice(index), "choosing the device", problem);
    if (error == ERR_OK)
        error = cuda_check(cudaMalloc((void **)&d_memory, 2 * call->n * sizeof *d_memory),
                           "device memory for the shift", problem);
    if (error == ERR_OK)
        error = cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                           "creating a stream", problem);
    if (error == ERR_OK)
        error = run(call, d_memory, stream, problem);
    if (stream != NULL)
        (void)cudaStreamDestroy(stream);
    (void)cudaFree(d_memory);
    return error;
}
