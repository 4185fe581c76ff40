/* exact_kernel.h - one entry a type of the table in exact.cu; for the kernels' own files. */
#ifndef GPU_KERNELS_EXACT_KERNEL_H
#define GPU_KERNELS_EXACT_KERNEL_H

#include "gpu/kernels/exact.h"

struct exact_kernel {
    cudaError_t (*open)(uint32_t multiprocessors, struct exact_shape *ret);
    cudaError_t (*launch)(const struct exact_shape *shape, const struct exact_launch *launch,
                          uint32_t blocks, cudaStream_t stream);
};

extern const struct exact_kernel exact_float16, exact_bfloat16, exact_float32, exact_complex64;
extern const struct exact_kernel exact_float64, exact_complex128;
extern const struct exact_kernel exact_int8, exact_uint8, exact_int32, exact_int64;

#endif
