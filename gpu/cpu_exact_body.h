/* cpu_exact_body.h - the vector part of cpu_exact.c for one instruction set and one element type.
 *
 * No door: included once for each, with the words of cpu_body.h (CPU_TARGET, CPU_BYTES,
 * CPU_ELEMENT, CPU_DTYPE, CPU_WIDEN) and CPU_IS_FLOAT64, CPU_REGISTERS (that hold vectors),
 * CPU_FMA(x, y, z) on vectors of float64, CPU_MIN32 and CPU_MAX32 on vectors of uint32_t.
 *
 * Idea   Rounding to a grid, by adding a large constant (T. Ogita, S. Rump, S. Oishi, Accurate sum
 *        and dot product, SIAM J. Sci. Comput. 26, 2005; J. Demmel, H. D. Nguyen, Fast reproducible
 *        floating-point summation, ARITH 2013): a sum s that starts at 1.5 * 2^(g + 52) and stays in
 *        its binade takes of every term the nearest whole multiple of 2^g, exactly, and what it left
 *        is exact as well. The rest goes on to the next level, with a finer grid. The range that
 *        cpu_exact_plan() was told says how many levels leave nothing.
 * Exact  terms of level 1 are below 2^E, and at most CPU_EXACT_CHAIN = 2^6 meet one s: with
 *        g = E - 45 their total is at most 2^(g + 51). A rest is at most half of 2^g: 2^6 of them fit
 *        the grid g - 46, 2^7 (two rests a product, float64) the grid g - 45.
 * Cost   for a vector of products of float32: 2 + 3 (levels - 1) operations; of float64, whose
 *        products are pairs p + e: 6 levels - 5.
 */
#define CPU_PASTE_(a, b, c) a##_##b##_##c
#define CPU_PASTE(a, b, c)  CPU_PASTE_(a, b, c)
#define CPU_NAME(word)      CPU_PASTE(word, CPU_TARGET, CPU_DTYPE)
#define CPU_WIDTH           (CPU_BYTES / sizeof(double))

typedef double CPU_NAME(wide) __attribute__((vector_size(CPU_BYTES)));
typedef uint64_t CPU_NAME(whole) __attribute__((vector_size(CPU_BYTES)));
typedef uint32_t CPU_NAME(word) __attribute__((vector_size(CPU_BYTES)));
typedef CPU_ELEMENT CPU_NAME(raw) __attribute__((vector_size(CPU_WIDTH * sizeof(CPU_ELEMENT))));

/* --- the range of exponents --- */

/* Magnitudes of a vector, and the same less one: zero becomes the largest, so that it is no
 * minimum. Of float64 the upper words matter; the lower ones are compared as well, and ignored. */
__attribute__((always_inline)) static inline void
CPU_NAME(widen_range)(const CPU_ELEMENT *data, CPU_NAME(word) * high, CPU_NAME(word) * low)
{
#if CPU_IS_FLOAT64
    CPU_NAME(whole) bits;
    memcpy(&bits, data, sizeof bits);
    bits &= (uint64_t)INT64_MAX;
    CPU_NAME(word) less = (CPU_NAME(word))(bits - 1);
#else
    CPU_NAME(word) bits;
    memcpy(&bits, data, sizeof bits);
    bits &= (uint32_t)INT32_MAX;
    CPU_NAME(word) less = bits - 1;
#endif
    *high = CPU_MAX32(*high, (CPU_NAME(word))bits);
    *low = CPU_MIN32(*low, less);
}

/* Of float64 only the upper words count. */
__attribute__((always_inline)) static inline uint32_t CPU_NAME(largest)(CPU_NAME(word) vector)
{
    uint32_t lane[CPU_BYTES / 4], largest = 0;
#if CPU_IS_FLOAT64
    vector = (CPU_NAME(word))((CPU_NAME(whole))vector >> 32);
#endif
    memcpy(lane, &vector, sizeof lane);
    for (size_t i = 0; i < CPU_BYTES / 4; i++)
        largest = lane[i] > largest ? lane[i] : largest;
    return largest;
}

static void CPU_NAME(range)(const CPU_ELEMENT *data, size_t count, uint32_t *ret_high,
                            uint32_t *ret_low)
{
    const size_t step = CPU_BYTES / sizeof(CPU_ELEMENT);
    CPU_NAME(word) high = {0}, low = ~high;
    for (size_t i = 0; i < count; i += step)
        CPU_NAME(widen_range)(data + i, &high, &low);
    *ret_high = CPU_NAME(largest)(high);
    *ret_low = ~CPU_NAME(largest)(~low);
}

/* --- the levels --- */

/* Adds term to *sum on its grid; what is left. One of the three operations is disguised as a
 * multiplication by 1, because processors have units that multiply and add beside those that only
 * add: a quarter faster on Zen 4 (tests/bench). */
__attribute__((always_inline)) static inline CPU_NAME(wide)
    CPU_NAME(take)(CPU_NAME(wide) * sum, CPU_NAME(wide) term)
{
    CPU_NAME(wide) next = *sum + term, taken = CPU_FMA(next, 1 - (CPU_NAME(wide)){0}, -*sum);
    *sum = next;
    return term - taken;
}

#if CPU_IS_FLOAT64
/* Two-product: x y = p + e. e is far below level 1 and starts at level 2, beside what p left. */
__attribute__((always_inline)) static inline void
CPU_NAME(deposit)(CPU_NAME(wide) x, CPU_NAME(wide) y, CPU_NAME(wide) * sum, int levels)
{
    CPU_NAME(wide) p = x * y, e = CPU_FMA(x, y, -p);
    p = CPU_NAME(take)(&sum[0], p);
#pragma GCC unroll 16
    for (int k = 1; k + 1 < levels; k++) {
        p = CPU_NAME(take)(&sum[k], p);
        e = CPU_NAME(take)(&sum[k], e);
    }
    sum[levels - 1] += p;
    sum[levels - 1] += e;
}
#else
/* A product of float32 is exact in float64, so that fused or not makes no difference but of
 * speed. */
__attribute__((always_inline)) static inline void
CPU_NAME(deposit)(CPU_NAME(wide) x, CPU_NAME(wide) y, CPU_NAME(wide) * sum, int levels)
{
    CPU_NAME(wide) next = CPU_FMA(x, y, sum[0]);
    if (levels > 1) {
        CPU_NAME(wide) rest = CPU_FMA(x, y, sum[0] - next);
#pragma GCC unroll 16
        for (int k = 1; k + 1 < levels; k++)
            rest = CPU_NAME(take)(&sum[k], rest);
        sum[levels - 1] += rest;
    }
    sum[0] = next;
}
#endif

__attribute__((always_inline)) static inline CPU_NAME(wide) CPU_NAME(load)(const CPU_ELEMENT *data)
{
    CPU_NAME(raw) raw;
    memcpy(&raw, data, sizeof raw);
    return CPU_WIDEN(raw);
}

/* Adds to total[] how far the lanes of sum[] moved from `start`, in units of the grid: within one
 * binade that is the difference of two bit patterns. */
__attribute__((always_inline)) static inline void
CPU_NAME(count_moves)(const CPU_NAME(wide) * sum, const double *start, int64_t *total, int levels)
{
    for (int k = 0; k < levels; k++) {
        uint64_t lane[CPU_WIDTH], origin, moves = 0;
        memcpy(lane, &sum[k], sizeof lane);
        memcpy(&origin, &start[k], sizeof origin);
        for (size_t i = 0; i < CPU_WIDTH; i++)
            moves += lane[i] - origin; /* modulo 2^64: within 2^54 in the end */
        total[k] += (int64_t)moves;
    }
}

/* Two chains side by side, so that additions wait for each other less. */
__attribute__((always_inline)) static inline void
CPU_NAME(run_two)(const CPU_ELEMENT *a, const CPU_ELEMENT *b, size_t count, const double *start,
                  int64_t *total, const int levels)
{
    CPU_NAME(wide) x[CPU_EXACT_LEVELS], y[CPU_EXACT_LEVELS];
#pragma GCC unroll 16
    for (int k = 0; k < levels; k++)
        x[k] = y[k] = start[k] - (CPU_NAME(wide)){0};
    for (size_t i = 0; i < count; i += 2 * CPU_WIDTH) {
        const size_t next = i + CPU_WIDTH;
        CPU_NAME(deposit)(CPU_NAME(load)(a + i), CPU_NAME(load)(b + i), x, levels);
        CPU_NAME(deposit)(CPU_NAME(load)(a + next), CPU_NAME(load)(b + next), y, levels);
    }
    CPU_NAME(count_moves)(x, start, total, levels);
    CPU_NAME(count_moves)(y, start, total, levels);
}

/* One chain after the other, where registers are few. */
__attribute__((always_inline)) static inline void
CPU_NAME(run_one)(const CPU_ELEMENT *a, const CPU_ELEMENT *b, size_t count, const double *start,
                  int64_t *total, const int levels)
{
    for (size_t half = 0; half < 2; half++, a += count / 2, b += count / 2) {
        CPU_NAME(wide) x[CPU_EXACT_LEVELS];
#pragma GCC unroll 16
        for (int k = 0; k < levels; k++)
            x[k] = start[k] - (CPU_NAME(wide)){0};
        for (size_t i = 0; i < count / 2; i += CPU_WIDTH)
            CPU_NAME(deposit)(CPU_NAME(load)(a + i), CPU_NAME(load)(b + i), x, levels);
        CPU_NAME(count_moves)(x, start, total, levels);
    }
}

/* The numbers of levels for which code exists; others take the next one. */
static void CPU_NAME(levels)(const void *a, const void *b, size_t count, const double *start,
                             int64_t *total, int levels)
{
    assert(count % (2 * CPU_WIDTH) == 0 && count <= CPU_EXACT_CHAIN * 2 * CPU_WIDTH);
    memset(total, 0, (size_t)levels * sizeof *total);
    switch (levels) {
#define X(number)                                                 \
    case number:                                                  \
        if (2 * number + 6 <= CPU_REGISTERS)                      \
            CPU_NAME(run_two)(a, b, count, start, total, number); \
        else                                                      \
            CPU_NAME(run_one)(a, b, count, start, total, number); \
        return;
#if CPU_IS_FLOAT64
        CPU_EXACT_LEVELS_FLOAT64(X)
#else
        CPU_EXACT_LEVELS_FLOAT32(X)
#endif
#undef X
    default:
        assert(!"a number of levels that cpu_exact_plan() gives");
    }
}

static void CPU_NAME(ranges)(const void *a, const void *b, size_t count, struct cpu_range *ret)
{
    CPU_NAME(range)(a, count, &ret->high_a, &ret->low_a);
    CPU_NAME(range)(b, count, &ret->high_b, &ret->low_b);
}

#undef CPU_PASTE_
#undef CPU_PASTE
#undef CPU_NAME
#undef CPU_WIDTH
