/* cpu_exact.c - exact totals of blocks of products on one core (see cpu_exact.h).
 *
 * One body of source (cpu_exact_body.h), once for each instruction set (cpu_exact_set.h) and
 * element type, whose target cpu_target.h sets.
 */
#include "gpu/cpu_exact.h"

#include <assert.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "gpu/cpu_stage.h"
#include "gpu/cpu_target.h"

/* --- the plan: plain arithmetic on exponents --- */

enum {
    FIRST_GRID = 45,  /* of level 1, below the top of all products (cpu_exact_body.h) */
    MIN_GRID = -1074, /* so that grids and the errors of products are float64 */
    MAX_TOP = 1015,   /* so that level 1, which begins 7 bits above the top, does not overflow */
};

/* Of the two element types: where exponents lie in a range's words, and what they mean. A magnitude
 * with exponent field e is below 2^(e + above), and a whole multiple of 2^(e + above -
 * precision). */
struct shape_of_type {
    unsigned exponent_shift;
    uint32_t not_finite;
    int above;
    int step; /* from one level's grid to the next (cpu_exact_body.h) */
};

static const struct shape_of_type shape_float32 = {
    .exponent_shift = 23,
    .not_finite = 0x7f800000,
    .above = -126,
    .step = 46,
};

static const struct shape_of_type shape_float64 = {
    .exponent_shift = 20,
    .not_finite = 0x7ff00000,
    .above = -1022,
    .step = 45,
};

/* The next number of levels for which there is code; 0: none. */
static int levels_rounded_up(enum dtype dtype, int levels)
{
    static const int has32[] = {
#define X(number) number,
        CPU_EXACT_LEVELS_FLOAT32(X)};
    static const int has64[] = {CPU_EXACT_LEVELS_FLOAT64(X)};
#undef X
    const int *has = dtype == DTYPE_FLOAT32 ? has32 : has64;
    size_t count =
        dtype == DTYPE_FLOAT32 ? sizeof has32 / sizeof *has32 : sizeof has64 / sizeof *has64;
    for (size_t i = 0; i < count; i++)
        if (has[i] >= levels)
            return has[i];
    return 0;
}

/* 1.5 * 2^(grid + 52), a normal float64. */
static double start_of(int grid)
{
    uint64_t bits = (uint64_t)(grid + 52 + 1023) << 52 | (uint64_t)1 << 51;
    double start;
    memcpy(&start, &bits, sizeof start);
    return start;
}

void cpu_exact_plan(const struct cpu_range *range, enum dtype dtype, int precision,
                    struct cpu_plan *ret)
{
    const struct shape_of_type *shape = dtype == DTYPE_FLOAT32 ? &shape_float32 : &shape_float64;
    ret->levels = 0;
    ret->road = CPU_ROAD_SPECIAL;
    if (range->high_a >= shape->not_finite || range->high_b >= shape->not_finite)
        return;
    ret->road = CPU_ROAD_NOTHING;
    if (range->low_a == UINT32_MAX || range->low_b == UINT32_MAX)
        return;
    /* Field 0 of a subnormal says a lower unit than it has, and "less one" may have borrowed from
     * the exponent: then the bottom is lower than it need be. */
    const unsigned shift = shape->exponent_shift;
    int top = (int)((range->high_a >> shift) + (range->high_b >> shift)) + 2 * shape->above;
    int bottom =
        (int)((range->low_a >> shift) + (range->low_b >> shift)) + 2 * shape->above - 2 * precision;
    int below_first = top - bottom - FIRST_GRID;
    int need = 1 + (below_first > 0 ? (below_first + shape->step - 1) / shape->step : 0);
    int levels = levels_rounded_up(dtype, need);
    ret->road = CPU_ROAD_WIDE;
    if (levels == 0 || top > MAX_TOP || top - FIRST_GRID - (levels - 1) * shape->step < MIN_GRID)
        return;
    ret->road = CPU_ROAD_LEVELS;
    ret->levels = levels;
    for (int k = 0; k < levels; k++) {
        ret->grid[k] = top - FIRST_GRID - k * shape->step;
        ret->start[k] = start_of(ret->grid[k]);
    }
}

/* --- each instruction set --- */

#define CPU_TARGET                base
#define CPU_REGISTERS             16
#define CPU_BYTES                 16
#define CPU_WIDEN_FLOAT32(vector) __builtin_convertvector(vector, wide_base_float32)
#define CPU_MIN32(x, y) \
    (((x) & (word_base_float32)((x) < (y))) | ((y) & ~(word_base_float32)((x) < (y))))
#define CPU_MAX32(x, y) \
    (((y) & (word_base_float32)((x) < (y))) | ((x) & ~(word_base_float32)((x) < (y))))
#include "gpu/cpu_exact_set.h"

/* Without a fused multiply-add a product of float64 takes 17 operations to split: one by one, in
 * integers, is quicker. */
const struct cpu_exact cpu_exact_base = {
    .step32 = 4,
    .block32 = 4 * CPU_EXACT_CHAIN,
    .ranges32 = ranges_base_float32,
    .levels32 = levels_base_float32,
    .split64 = split64_base,
    .widen_float16 = widen_float16_base,
    .dot_int8 = dot_int8_base,
    .dot_uint8 = dot_uint8_base,
    .dot_int32 = dot_int32_base,
};

#if defined(__x86_64__)
CPU_TARGET_BEGIN("avx2,fma,f16c")
#define CPU_TARGET                avx2
#define CPU_REGISTERS             16
#define CPU_BYTES                 32
#define CPU_WIDEN_FLOAT32(vector) _mm256_cvtps_pd((__m128)(vector))
#define CPU_FMA(x, y, z)          _mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define CPU_MIN32(x, y)           (word_avx2_float32) _mm256_min_epu32((__m256i)(x), (__m256i)(y))
#define CPU_MAX32(x, y)           (word_avx2_float32) _mm256_max_epu32((__m256i)(x), (__m256i)(y))
#define CPU_HALVES_TO_FLOATS(ret, data) \
    _mm256_storeu_ps(ret, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(data))))
#include "gpu/cpu_exact_set.h"
CPU_TARGET_END

CPU_TARGET_BEGIN("avx512f,avx512dq,f16c")
#define CPU_TARGET                avx512
#define CPU_REGISTERS             32
#define CPU_BYTES                 64
#define CPU_WIDEN_FLOAT32(vector) _mm512_cvtps_pd((__m256)(vector))
#define CPU_FMA(x, y, z)          _mm512_fmadd_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#define CPU_MIN32(x, y)           (word_avx512_float32) _mm512_min_epu32((__m512i)(x), (__m512i)(y))
#define CPU_MAX32(x, y)           (word_avx512_float32) _mm512_max_epu32((__m512i)(x), (__m512i)(y))
#include "gpu/cpu_exact_set.h"
CPU_TARGET_END

#define EXACT(target, lanes)                      \
    const struct cpu_exact cpu_exact_##target = { \
        .step32 = 2 * (lanes),                    \
        .step64 = 2 * (lanes),                    \
        .block32 = 2 * (lanes)*CPU_EXACT_CHAIN,   \
        .block64 = 2 * (lanes)*CPU_EXACT_CHAIN,   \
        .ranges32 = ranges_##target##_float32,    \
        .ranges64 = ranges_##target##_float64,    \
        .levels32 = levels_##target##_float32,    \
        .levels64 = levels_##target##_float64,    \
        .split64 = split64_##target,              \
        .widen_float16 = widen_float16_##target,  \
        .dot_int8 = dot_int8_##target,            \
        .dot_uint8 = dot_uint8_##target,          \
        .dot_int32 = dot_int32_##target,          \
    }

EXACT(avx2, 4);
EXACT(avx512, 8);
#endif
