/* cpu_dot.h - one dot product on one core, as quick as its vector unit and memory allow.
 *
 * Door: cpu_kernels() lists what this machine can run, quickest first; kernel->dot[dtype]()
 * computes. Sums are kept in float64 whatever the element type; a float32 product is exact there.
 * cpu_depth() says through how many roundings a term goes at most: the error bound needs it.
 */
#ifndef GPU_CPU_DOT_H
#define GPU_CPU_DOT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/tensor.h"

struct cpu_sum {
    double sum, sum_abs; /* sum of a_i b_i, sum of |a_i b_i|; never -0 */
};

/* a and b: n elements each, aligned to their own size only; they may overlap or be equal. */
typedef struct cpu_sum (*cpu_dot)(const void *a, const void *b, uint64_t n);

struct cpu_kernel {
    const char *name;         /* "cpu-avx512" */
    uint32_t lanes;           /* accumulators that share a block's terms; a power of two */
    cpu_dot dot[DTYPE_COUNT]; /* by enum dtype */
};

/* Sets *ret to an array of the kernels that this processor and system run; at least one. */
size_t cpu_kernels(const struct cpu_kernel **ret);

/* Roundings between a product and the total, the product's own not counted. */
uint64_t cpu_depth(const struct cpu_kernel *kernel, uint64_t n);

#endif
