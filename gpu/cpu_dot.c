/* cpu_dot.c - one dot product on one core (see cpu_dot.h).
 *
 * One body of source (cpu_body.h), once for each instruction set and element type. The targets are
 * set by pragma and not by compiler flags, so that no other code of the program can need them.
 */
#include "gpu/cpu_dot.h"

#include <assert.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h> /* only to widen: gcc 12 makes six instructions of __builtin_convertvector */
#endif

enum {
    CPU_CHAINS = 4, /* spelled out in cpu_body.h; with the absolute values: 8 additions in flight */
    CPU_BLOCK =
        32768, /* terms: its folding costs under 1 %, and 10^9 terms are 30518 blocks deep */
};

#define CPU_TARGET        base
#define CPU_BYTES         16
#define CPU_ELEMENT       float
#define CPU_DTYPE         float32
#define CPU_WIDEN(vector) __builtin_convertvector(vector, wide_base_float32)
#include "gpu/cpu_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_WIDEN
#define CPU_ELEMENT       double
#define CPU_DTYPE         float64
#define CPU_WIDEN(vector) (vector)
#include "gpu/cpu_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_WIDEN
#undef CPU_TARGET
#undef CPU_BYTES

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define CPU_TARGET        avx2
#define CPU_BYTES         32
#define CPU_ELEMENT       float
#define CPU_DTYPE         float32
#define CPU_WIDEN(vector) _mm256_cvtps_pd((__m128)(vector))
#include "gpu/cpu_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_WIDEN
#define CPU_ELEMENT       double
#define CPU_DTYPE         float64
#define CPU_WIDEN(vector) (vector)
#include "gpu/cpu_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_WIDEN
#undef CPU_TARGET
#undef CPU_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq")
#define CPU_TARGET        avx512
#define CPU_BYTES         64
#define CPU_ELEMENT       float
#define CPU_DTYPE         float32
#define CPU_WIDEN(vector) _mm512_cvtps_pd((__m256)(vector))
#include "gpu/cpu_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_WIDEN
#define CPU_ELEMENT       double
#define CPU_DTYPE         float64
#define CPU_WIDEN(vector) (vector)
#include "gpu/cpu_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_WIDEN
#undef CPU_TARGET
#undef CPU_BYTES
#pragma GCC pop_options
#endif

#define KERNEL(target, bytes)                                                            \
    {                                                                                    \
        .name = "cpu-" #target, .lanes = CPU_CHAINS * (bytes) / sizeof(double), .dot = { \
            [DTYPE_FLOAT32] = dot_##target##_float32,                                    \
            [DTYPE_FLOAT64] = dot_##target##_float64                                     \
        }                                                                                \
    }

static const struct cpu_kernel kernels[] = {
#if defined(__x86_64__)
    KERNEL(avx512, 64),
    KERNEL(avx2, 32),
#endif
    KERNEL(base, 16),
};

enum { KERNEL_COUNT = sizeof kernels / sizeof *kernels };

/* Each kernel's target includes those behind it in the table. */
size_t cpu_kernels(const struct cpu_kernel **ret)
{
    size_t first = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq"))
        first = 1;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        first = 2;
#endif
    *ret = &kernels[first];
    return KERNEL_COUNT - first;
}

uint64_t cpu_depth(const struct cpu_kernel *kernel, uint64_t n)
{
    assert((kernel->lanes & (kernel->lanes - 1)) == 0);
    uint64_t block = n < CPU_BLOCK ? n : CPU_BLOCK;
    uint64_t chain = (block + kernel->lanes - 1) / kernel->lanes;
    uint64_t tree = (uint64_t)__builtin_ctz(kernel->lanes);
    uint64_t blocks = (n + CPU_BLOCK - 1) / CPU_BLOCK;
    uint64_t depth = chain + tree + blocks;
    uint64_t serial = n > 0 ? n - 1 : 0; /* adding to nothing but zeros does not round */
    return depth < serial ? depth : serial;
}
