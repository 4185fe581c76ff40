/* exact.cu - the exact kernel of each element type (see exact.h). */
#include "gpu/kernels/exact_kernel.h"

namespace
{

const struct exact_kernel *kernel_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT16:
        return &exact_float16;
    case DTYPE_BFLOAT16:
        return &exact_bfloat16;
    case DTYPE_FLOAT32:
        return &exact_float32;
    case DTYPE_FLOAT64:
        return &exact_float64;
    case DTYPE_INT8:
        return &exact_int8;
    case DTYPE_UINT8:
        return &exact_uint8;
    case DTYPE_INT32:
        return &exact_int32;
    case DTYPE_INT64:
        return &exact_int64;
    case DTYPE_COMPLEX64:
        return &exact_complex64;
    case DTYPE_COMPLEX128:
        return &exact_complex128;
    default:
        return NULL;
    }
}

} // namespace

cudaError_t exact_open(enum dtype dtype, uint32_t multiprocessors, struct exact_shape *ret)
{
    const struct exact_kernel *kernel = kernel_of(dtype);
    return kernel != NULL ? kernel->open(multiprocessors, ret) : cudaErrorInvalidValue;
}

cudaError_t exact_launch(enum dtype dtype, const struct exact_shape *shape,
                         const struct exact_launch *launch, uint32_t blocks, cudaStream_t stream)
{
    const struct exact_kernel *kernel = kernel_of(dtype);
    return kernel != NULL ? kernel->launch(shape, launch, blocks, stream) : cudaErrorInvalidValue;
}
