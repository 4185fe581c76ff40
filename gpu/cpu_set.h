/* cpu_set.h - the dot products of cpu_dot.c for one instruction set, of both element types.
 *
 * No door: included once for each, with CPU_TARGET (a word), CPU_BYTES (of a vector register) and
 * CPU_WIDEN_FLOAT32 (a vector of float as float64) set, which it clears for the next.
 */
#define CPU_ELEMENT float
#define CPU_DTYPE   float32
#define CPU_WIDEN   CPU_WIDEN_FLOAT32
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
#undef CPU_WIDEN_FLOAT32
