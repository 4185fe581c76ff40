/* cpu_dot.c - one dot product on one core (see cpu_dot.h).
 *
 * One body of source (cpu_body.h), once for each instruction set (cpu_set.h) and element type,
 * whose target cpu_target.h sets.
 */
#include "gpu/cpu_dot.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h> /* only to widen: gcc 12 makes six instructions of __builtin_convertvector */
#endif

#include "gpu/cpu_target.h"

enum {
    CPU_CHAINS = 4, /* spelled out in cpu_body.h; with the absolute values: 8 additions in flight */
    CPU_BLOCK =
        32768, /* terms: its folding costs under 1 %, and 10^9 terms are 30518 blocks deep */
};

#define CPU_TARGET                base
#define CPU_BYTES                 16
#define CPU_WIDEN_FLOAT32(vector) __builtin_convertvector(vector, wide_base_float32)
#include "gpu/cpu_set.h"

#if defined(__x86_64__)
CPU_TARGET_BEGIN("avx2,fma")
#define CPU_TARGET                avx2
#define CPU_BYTES                 32
#define CPU_WIDEN_FLOAT32(vector) _mm256_cvtps_pd((__m128)(vector))
#include "gpu/cpu_set.h"
CPU_TARGET_END

CPU_TARGET_BEGIN("avx512f,avx512dq")
#define CPU_TARGET                avx512
#define CPU_BYTES                 64
#define CPU_WIDEN_FLOAT32(vector) _mm512_cvtps_pd((__m256)(vector))
#include "gpu/cpu_set.h"
CPU_TARGET_END
#endif

static_assert(DTYPE_FLOAT32 == 0 && DTYPE_FLOAT64 == 1, "index cpu_kernel.dot");

#define KERNEL(target, bytes)                                                                 \
    {                                                                                         \
        .name = "cpu-" #target, .lanes = CPU_CHAINS * (bytes) / sizeof(double),               \
        .dot = {dot_##target##_float32, dot_##target##_float64}, .exact = &cpu_exact_##target \
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
static size_t find_first(void)
{
    size_t first = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq"))
        first = 1;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !cpu_has_f16c())
        first = 2;
#endif
    return first;
}

/* Looked for once: in a virtual machine each CPUID is the host's to answer, which took 10 us of
 * every sum. */
size_t cpu_kernels(const struct cpu_kernel **ret)
{
    static atomic_size_t count; /* any thread, relaxed: all find the same; 0: not yet */
    size_t known = atomic_load_explicit(&count, memory_order_relaxed);
    if (known == 0) {
        known = KERNEL_COUNT - find_first();
        atomic_store_explicit(&count, known, memory_order_relaxed);
    }
    *ret = &kernels[KERNEL_COUNT - known];
    return known;
}

void cpu_row_dot(const struct cpu_kernel *kernel, const struct cpu_row *row, struct cpu_sum ret[2])
{
    struct cpu_stage_room room;
    struct cpu_run run;
    cpu_dot dot = kernel->dot[cpu_stage_dtype(row->dtype)];
    ret[0] = ret[1] = (struct cpu_sum){0, 0};
    for (uint64_t done = 0; done < row->n; done += run.elements) {
        cpu_stage(kernel->exact, row, done, &room, &run);
        for (int i = 0; i < run.parts; i++) {
            struct cpu_sum sum = dot(run.a[i], run.b[i], run.count);
            ret[i].sum += sum.sum;
            ret[i].sum_abs += sum.sum_abs;
        }
    }
}

/* A run that is a copy is a block of its own. */
uint64_t cpu_depth(const struct cpu_kernel *kernel, enum dtype dtype, uint64_t n)
{
    assert((kernel->lanes & (kernel->lanes - 1)) == 0);
    bool is_copied = dtype != DTYPE_FLOAT32 && dtype != DTYPE_FLOAT64;
    uint64_t most = is_copied ? CPU_STAGE : CPU_BLOCK;
    uint64_t terms = dtype_is_complex(dtype) ? 2 * n : n;
    uint64_t block = terms < most ? terms : most;
    uint64_t chain = (block + kernel->lanes - 1) / kernel->lanes;
    uint64_t tree = (uint64_t)__builtin_ctz(kernel->lanes);
    uint64_t blocks = (terms + most - 1) / most;
    uint64_t depth = chain + tree + blocks;
    uint64_t serial = terms > 0 ? terms - 1 : 0; /* adding to nothing but zeros does not round */
    return depth < serial ? depth : serial;
}
