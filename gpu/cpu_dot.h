/* cpu_dot.h - one dot product on one core, as quick as its vector unit and memory allow.
 *
 * Door: cpu_kernels() lists what this machine can run, quickest first; cpu_row_dot() computes a row
 * of any float type, kernel->dot[] those of float32 and float64; kernel->exact serves gpu/exact.
 * Sums are kept in float64 whatever the element type; a float32 product is exact there.
 * cpu_depth() says through how many roundings a term goes at most: the error bound needs it.
 */
#ifndef GPU_CPU_DOT_H
#define GPU_CPU_DOT_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/cpu_stage.h"

struct cpu_sum {
    double sum, sum_abs; /* sum of a_i b_i, sum of |a_i b_i|; never -0 */
};

/* a and b: n elements each, aligned to their own size only; they may overlap or be equal. */
typedef struct cpu_sum (*cpu_dot)(const void *a, const void *b, uint64_t n);

struct cpu_kernel {
    const char *name; /* "cpu-avx512" */
    uint32_t lanes;   /* accumulators that share a block's terms; a power of two */
    cpu_dot dot[2];   /* DTYPE_FLOAT32, DTYPE_FLOAT64 */
    const struct cpu_exact *exact;
};

/* Sets *ret to an array of the kernels that this processor and system run; at least one. */
size_t cpu_kernels(const struct cpu_kernel **ret);

/* Sets ret[0], and of complex operands ret[1]. */
void cpu_row_dot(const struct cpu_kernel *kernel, const struct cpu_row *row, struct cpu_sum ret[2]);

/* Roundings between a product and the total of a row of n elements, the product's own not
 * counted. */
uint64_t cpu_depth(const struct cpu_kernel *kernel, enum dtype dtype, uint64_t n);

#endif
