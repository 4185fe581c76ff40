/* cpu_exact_set.h - the totals of cpu_exact.c for one instruction set, of every element type.
 *
 * No door: included once for each, with CPU_TARGET, CPU_BYTES, CPU_REGISTERS, CPU_MIN32, CPU_MAX32
 * (cpu_exact_body.h) and CPU_WIDEN_FLOAT32 (a vector of float as float64) set, and CPU_FMA where
 * there is one: only there are vectors worth while for float64. It clears them for the next.
 */
#ifdef CPU_FMA
#define CPU_HAS_FMA 1
#else
#define CPU_HAS_FMA      0
#define CPU_FMA(x, y, z) ((x) * (y) + (z))
#endif
#define CPU_ELEMENT    float
#define CPU_DTYPE      float32
#define CPU_IS_FLOAT64 0
#define CPU_WIDEN      CPU_WIDEN_FLOAT32
#include "gpu/cpu_exact_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_IS_FLOAT64
#undef CPU_WIDEN
#if CPU_HAS_FMA
#define CPU_ELEMENT       double
#define CPU_DTYPE         float64
#define CPU_IS_FLOAT64    1
#define CPU_WIDEN(vector) (vector)
#include "gpu/cpu_exact_body.h"
#undef CPU_ELEMENT
#undef CPU_DTYPE
#undef CPU_IS_FLOAT64
#undef CPU_WIDEN
#endif
#include "gpu/cpu_exact_integer.h"
#undef CPU_TARGET
#undef CPU_BYTES
#undef CPU_REGISTERS
#undef CPU_WIDEN_FLOAT32
#undef CPU_HAS_FMA
#undef CPU_FMA
#undef CPU_MIN32
#undef CPU_MAX32
