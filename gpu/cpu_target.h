/* cpu_target.h - functions for an instruction set other than the compiler's own, by gcc or clang.
 *
 * Door: CPU_TARGET_BEGIN("avx2,fma") and CPU_TARGET_END around them; cpu_has_f16c() for what clang
 * 14 has no name for. Pragmas and not compiler flags, so that no other code of the program can need
 * them.
 */
#ifndef GPU_CPU_TARGET_H
#define GPU_CPU_TARGET_H

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

#define CPU_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define CPU_TARGET_BEGIN(sets) \
    CPU_PRAGMA(clang attribute push(__attribute__((target(sets))), apply_to = function))
#define CPU_TARGET_END CPU_PRAGMA(clang attribute pop)
#else
#define CPU_TARGET_BEGIN(sets) CPU_PRAGMA(GCC push_options) CPU_PRAGMA(GCC target(sets))
#define CPU_TARGET_END         CPU_PRAGMA(GCC pop_options)
#endif

/* Of the processor; the system must have its registers as well, which who asks for avx2 knows. */
static inline bool cpu_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

#endif
