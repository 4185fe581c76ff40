/* cpu_exact.h - what exact sums ask of the vector unit: exact totals of a block of products.
 *
 * Door: kernel->exact (cpu_dot.h) is one of these tables. A block of float products is computed in
 * three steps: ranges() of its exponents, cpu_exact_plan() from them, levels() as planned; what
 * comes back are whole numbers, which gpu/exact adds to its limbs. Blocks of integers take one
 * step.
 */
#ifndef GPU_CPU_EXACT_H
#define GPU_CPU_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/tensor.h"

/* Levels for which code exists. The last of float32 reaches over every finite product: 554 bits;
 * beyond the last of float64, adding one by one is quicker (tests/bench). */
#define CPU_EXACT_LEVELS_FLOAT32(X) X(1) X(2) X(3) X(4) X(6) X(9) X(13)
#define CPU_EXACT_LEVELS_FLOAT64(X) X(3) X(4) X(5) X(6) X(8) X(10)

enum {
    CPU_EXACT_LEVELS = 13,
    CPU_EXACT_CHAIN = 64,         /* terms that one lane of one level may add (cpu_exact_body.h) */
    CPU_EXACT_BLOCK_MAX = 16 * 64 /* elements of a block, whatever the instruction set */
};

/* Of a and of b: the largest magnitude and the smallest that is not zero, less one; the bits of
 * float32, the upper half of those of float64. low is UINT32_MAX when all are zero. */
struct cpu_range {
    uint32_t high_a, low_a, high_b, low_b;
};

enum cpu_road {
    CPU_ROAD_NOTHING, /* every product is zero */
    CPU_ROAD_LEVELS,
    CPU_ROAD_WIDE,    /* no levels reach over these products */
    CPU_ROAD_SPECIAL, /* an operand is not finite */
};

struct cpu_plan {
    enum cpu_road road;
    int levels;
    int grid[CPU_EXACT_LEVELS];     /* level k counts in units of 2^grid[k] */
    double start[CPU_EXACT_LEVELS]; /* 1.5 * 2^(grid[k] + 52) */
};

/* dtype: DTYPE_FLOAT32 or DTYPE_FLOAT64. precision: significant bits of an operand, 24 and 53 or
 * less. */
void cpu_exact_plan(const struct cpu_range *range, enum dtype dtype, int precision,
                    struct cpu_plan *ret);

typedef void (*cpu_ranges)(const void *a, const void *b, size_t count, struct cpu_range *ret);

/* Sets total[0..levels): the sum of the products is that of total[k] * 2^grid[k], and every |total|
 * is below 2^56. */
typedef void (*cpu_levels)(const void *a, const void *b, size_t count, const double *start,
                           int64_t *total, int levels);

/* Products of finite float64 for buckets of 16 exponents each (gpu/exact/buckets.h): the magnitude
 * of product i is x[i] * y[i] * 2^(16 (bucket[i] & 255) - 2148), below 2^121 units; bit 8 of
 * bucket[i] is its sign. */
enum { CPU_SPLIT = 256 };
struct cpu_split {
    uint64_t x[CPU_SPLIT], y[CPU_SPLIT], bucket[CPU_SPLIT];
};

struct cpu_exact {
    /* Float types: count is a multiple of step elements and at most block; pad with zeros. Data is
     * aligned to its own size only. NULL where the vector unit lacks what it takes. */
    size_t step32, step64, block32, block64;
    cpu_ranges ranges32, ranges64;
    cpu_levels levels32, levels64;
    void (*split64)(const double *a, const double *b, size_t count, struct cpu_split *ret);
    void (*widen_float16)(const void *data, float *ret, size_t count);

    /* Integer types, up to CPU_EXACT_BLOCK_MAX products. int32: low + 2^16 high. */
    int64_t (*dot_int8)(const int8_t *a, const int8_t *b, size_t count);
    int64_t (*dot_uint8)(const uint8_t *a, const uint8_t *b, size_t count);
    void (*dot_int32)(const int32_t *a, const int32_t *b, size_t count, int64_t *ret_low,
                      int64_t *ret_high);
};

extern const struct cpu_exact cpu_exact_base;
#if defined(__x86_64__)
extern const struct cpu_exact cpu_exact_avx2;
extern const struct cpu_exact cpu_exact_avx512;
#endif

#endif
