/* shift_cuda.h - the shift on a CUDA device, operands and result in host memory. */
#ifndef GPU_LAB_SHIFT_CUDA_H
#define GPU_LAB_SHIFT_CUDA_H

#include "gpu/lab/kernels.h"
#include "proto/error.h"

/* index: the CUDA device's number. ERR_NOMEM, ERR_DEVICE. Only in builds with CUDA. */
enum error shift_on_cuda(int index, const struct shift_call *call, struct problem *problem);

#endif
