/* limbs.h - the fixed-point accumulator: a number so wide that no sum of products ever rounds.
 *
 * Door: one description for CPU and GPU, plain C that nvcc compiles too. exact_layout_of() says how
 * wide; exact_add_*() deposit; exact_carry() and exact_merge() keep limbs small; exact_value()
 * rounds the total once. Adding integers is associative: every order, grid, slicing and device ends
 * with the same number, hence with the same bits.
 *
 * Idea      value = sum of limb[i] * 2^(32 i + base), limbs of 64 bits and either sign. A deposit
 *           touches three limbs and carries nothing; the upper half of each limb is room to wait.
 * Headroom  a deposit adds at most 2^32 - 1 in magnitude to a limb, so 2^30 deposits into carried
 *           limbs keep every |limb| < 2^62 + 2^32: carry by then (EXACT_DEPOSITS). A carried
 *           accumulator that is merged counts as one deposit.
 * Top       the highest limb keeps what is above it, and the sign: it is never split. Limbs that are
 *           known to be zero may be left out at both ends: what is left is an accumulator as well,
 *           with base + 32 a limb at the lower end.
 * Sources   U. Kulisch, Computer Arithmetic and Validity (the long accumulator); R. Neal, Fast exact
 *           summation using small and large superaccumulators, arXiv 1505.05571 (carry-save limbs).
 */
#ifndef GPU_EXACT_LIMBS_H
#define GPU_EXACT_LIMBS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/tensor.h"
#include "proto/value.h"

#ifndef EXACT_SHARED
#ifdef __CUDACC__
#define EXACT_SHARED __host__ __device__ static inline
#else
#define EXACT_SHARED static inline
#endif
#endif

__extension__ typedef __int128 exact_int128;

/* How wide. The lowest bit of a product, the highest, and room for 2^40 products and a sign:
 *   float32   products are whole multiples of 2^-298 below 2^256. The base is lower, so that every
 *             float64 that is such a multiple, as 53 bits times a power of two, lies at a position
 *             >= 0 without a shift to the right. 640 bits: up to 2^290, and the top limb's upper half.
 *             float16 (2^-48 to 2^32) and bfloat16 (2^-266 to 2^256) fit as well.
 *   float64   whole multiples of 2^-2148 below 2^2048; 4288 bits: up to 2^2140.
 *   integers  192 bits: 2^40 products of two int64 need 2^166. */
enum exact_limbs {
    EXACT_FLOAT32_LIMBS = 20,
    EXACT_FLOAT32_BASE = -350,
    EXACT_FLOAT64_LIMBS = 134,
    EXACT_FLOAT64_BASE = -2148,
    EXACT_INTEGER_LIMBS = 6,
    EXACT_INTEGER_BASE = 0,
    EXACT_LIMBS_MAX = EXACT_FLOAT64_LIMBS,
    EXACT_DEPOSITS = 1 << 30,
};

struct exact_layout {
    int limbs, base;
};

/* Of one real sum; a complex result has two. */
EXACT_SHARED struct exact_layout exact_layout_of(enum dtype dtype)
{
    struct exact_layout layout = {EXACT_FLOAT32_LIMBS, EXACT_FLOAT32_BASE};
    if (dtype == DTYPE_FLOAT64 || dtype == DTYPE_COMPLEX128) {
        layout.limbs = EXACT_FLOAT64_LIMBS;
        layout.base = EXACT_FLOAT64_BASE;
    } else if (dtype == DTYPE_INT8 || dtype == DTYPE_UINT8 || dtype == DTYPE_INT32 ||
               dtype == DTYPE_INT64) {
        layout.limbs = EXACT_INTEGER_LIMBS;
        layout.base = EXACT_INTEGER_BASE;
    }
    return layout;
}

/* --- what is not finite: bits that are set and never cleared, so their order does not matter --- */

enum exact_special {
    EXACT_NAN_INPUT = 1 << 0, /* an operand was NaN */
    EXACT_INVALID = 1 << 1,   /* infinity times zero */
    EXACT_POSITIVE = 1 << 2,  /* an infinite product */
    EXACT_NEGATIVE = 1 << 3,
};

/* Of the product x y; 0 when both are finite. Such a product is not deposited. */
EXACT_SHARED unsigned exact_special_of(double x, double y)
{
    if (x != x || y != y)
        return EXACT_NAN_INPUT;
    bool infinite = x - x != 0 || y - y != 0;
    if (!infinite)
        return 0;
    if (x == 0 || y == 0)
        return EXACT_INVALID;
    return (x < 0) == (y < 0) ? EXACT_POSITIVE : EXACT_NEGATIVE;
}

/* --- deposits --- */

EXACT_SHARED uint64_t exact_bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Adds magnitude * 2^(position + base), negated if sign is -1 and not if it is 0. The number must
 * end below the top limb's upper half, and the limb after its first one must exist. One deposit. */
EXACT_SHARED void exact_add_word(int64_t *limb, uint64_t magnitude, int position, int64_t sign)
{
    int64_t *at = limb + position / 32;
    const int shift = position % 32;
    const uint64_t low = magnitude << shift;
    const uint64_t high = shift > 0 ? magnitude >> (64 - shift) : 0;
    at[0] += ((int64_t)(low & 0xffffffff) ^ sign) - sign;
    at[1] += ((int64_t)(low >> 32) ^ sign) - sign;
    if (high != 0) /* else at[2] may lie beyond the top */
        at[2] += ((int64_t)high ^ sign) - sign;
}

/* A finite float64 of one of the float layouts: for float32's a whole multiple of 2^-298 that is
 * below 2^278. One deposit. */
EXACT_SHARED void exact_add_float64(int64_t *limb, int base, double value)
{
    const uint64_t bits = exact_bits_of(value);
    const int field = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & 0xfffffffffffff;
    if (field == 0) /* subnormal, of unit 2^-1074, or zero */
        exact_add_word(limb, fraction, fraction != 0 ? -1074 - base : 0, (int64_t)bits >> 63);
    else
        exact_add_word(limb, fraction | (uint64_t)1 << 52, field - 1075 - base,
                       (int64_t)bits >> 63);
}

/* A product of finite float32, float16 or bfloat16 operands: 48 bits at most, exact in float64. */
EXACT_SHARED void exact_add_product32(int64_t *limb, float x, float y)
{
    exact_add_float64(limb, EXACT_FLOAT32_BASE, (double)x * (double)y);
}

/* A product of finite float64 operands: magnitude * 2^(position - 2148), of at most 106 bits; in
 * integers, for no pair of float64 holds a product of any exponent. */
struct exact_product {
    exact_int128 magnitude;
    int position;
    int64_t sign; /* 0 or -1 */
};

EXACT_SHARED struct exact_product exact_product_of(double x, double y)
{
    const uint64_t a = exact_bits_of(x), b = exact_bits_of(y);
    const int field_a = (int)(a >> 52 & 0x7ff), field_b = (int)(b >> 52 & 0x7ff);
    const uint64_t m = (a & 0xfffffffffffff) | (uint64_t)(field_a > 0) << 52;
    const uint64_t k = (b & 0xfffffffffffff) | (uint64_t)(field_b > 0) << 52;
    struct exact_product product;
    product.magnitude = (exact_int128)m * (exact_int128)k;
    /* The unit of a subnormal is that of exponent field 1. */
    product.position = field_a - (field_a > 0) + field_b - (field_b > 0);
    product.sign = (int64_t)(a ^ b) >> 63;
    return product;
}

/* Two deposits. */
EXACT_SHARED void exact_add_product64(int64_t *limb, double x, double y)
{
    const struct exact_product product = exact_product_of(x, y);
    exact_add_word(limb, (uint64_t)product.magnitude, product.position, product.sign);
    exact_add_word(limb, (uint64_t)(product.magnitude >> 64), product.position + 64, product.sign);
}

/* A product or a partial sum of integers. Two deposits. */
EXACT_SHARED void exact_add_integer(int64_t *limb, exact_int128 value)
{
    limb[0] += (int64_t)(uint32_t)value;
    limb[1] += (int64_t)(uint32_t)(value >> 32);
    limb[2] += (int64_t)(uint32_t)(value >> 64);
    limb[3] += (int64_t)(value >> 96);
}

/* --- carries --- */

/* Afterwards every limb but the top one is in [0, 2^32). The value is the same. Shifts of negative
 * numbers are arithmetic in GCC, Clang and nvcc. */
EXACT_SHARED void exact_carry(int64_t *limb, int count)
{
    for (int i = 0; i + 1 < count; i++) {
        limb[i + 1] += limb[i] >> 32;
        limb[i] &= 0xffffffff;
    }
}

/* Adds other to limb; both of one layout. A deposit if other is carried. */
EXACT_SHARED void exact_merge(int64_t *limb, const int64_t *other, int count)
{
    for (int i = 0; i < count; i++)
        limb[i] += other[i];
}

/* Makes limb carried and its absolute value; true if it was negative. */
EXACT_SHARED bool exact_make_absolute(int64_t *limb, int count)
{
    exact_carry(limb, count);
    if (limb[count - 1] >= 0)
        return false;
    for (int i = 0; i < count; i++)
        limb[i] = -limb[i];
    exact_carry(limb, count);
    return true;
}

/* --- rounding --- */

/* A number of the format is a whole number of at most `precision` bits times 2^q, q >= min_quantum,
 * and below 2^max_exponent. Each is a float64 as well. */
struct exact_format {
    int precision, min_quantum, max_exponent;
};

/* Of a float type or of the parts of a complex one; float64 for integers. */
EXACT_SHARED struct exact_format exact_format_of(enum dtype dtype)
{
    struct exact_format format = {53, -1074, 1024};
    if (dtype == DTYPE_FLOAT32 || dtype == DTYPE_COMPLEX64) {
        format.precision = 24;
        format.min_quantum = -149;
        format.max_exponent = 128;
    } else if (dtype == DTYPE_FLOAT16) {
        format.precision = 11;
        format.min_quantum = -24;
        format.max_exponent = 16;
    } else if (dtype == DTYPE_BFLOAT16) {
        format.precision = 8;
        format.min_quantum = -133;
        format.max_exponent = 128;
    }
    return format;
}

/* Position of the highest bit of a word that is not zero. */
EXACT_SHARED int exact_highest_bit(uint64_t word)
{
#ifdef __CUDA_ARCH__
    return 63 - __clzll((long long)word);
#else
    return 63 - __builtin_clzll(word);
#endif
}

/* significand * 2^quantum as float64, which must hold it: significand <= 2^53, quantum >= -1074. */
EXACT_SHARED double exact_compose(uint64_t significand, int quantum)
{
    uint64_t bits = 0;
    if (significand != 0) {
        const int room = significand >> 53 == 0 ? 52 - exact_highest_bit(significand) : 0;
        const int up = room < quantum + 1074 ? room : quantum + 1074;
        /* The implicit bit carries into the exponent field; so does a significand of 2^53. */
        bits = (significand << up) + ((uint64_t)(quantum - up + 1074) << 52);
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* limb is carried and not negative; top is its highest limb that is not zero, which may exceed 32
 * bits. Bits from `position` on, of which there are at most 64; none if position is above the
 * top. */
EXACT_SHARED uint64_t exact_bits_from(const int64_t *limb, int top, int position)
{
    const int first = position / 32 < top ? position / 32 : top;
    const int shift = position - 32 * first;
    if (shift > 63)
        return 0;
    uint64_t bits = (uint64_t)limb[first] >> shift;
    for (int i = first + 1; i <= top; i++)
        bits |= (uint64_t)limb[i] << (32 * (i - first) - shift);
    return bits;
}

/* Whether any bit below position is set. */
EXACT_SHARED bool exact_any_below(const int64_t *limb, int top, int position)
{
    const int first = position / 32 < top ? position / 32 : top;
    const int shift = position - 32 * first;
    const uint64_t mask = shift > 63 ? UINT64_MAX : ((uint64_t)1 << shift) - 1;
    bool any = ((uint64_t)limb[first] & mask) != 0;
    for (int i = 0; i < first; i++)
        any |= limb[i] != 0;
    return any;
}

/* A magnitude that is cut where its format ends: significand * 2^quantum, and what is below. */
struct exact_cut {
    uint64_t significand;
    int quantum;
    bool is_negative;
    bool is_half;  /* of the quantum: the first bit below is set */
    bool is_below; /* a bit below that one is */
};

/* How many bits of a number go, counted from base; its highest one is at that position. */
EXACT_SHARED int exact_drop(struct exact_format format, int base, int highest)
{
    int drop = highest - (format.precision - 1);
    if (drop < format.min_quantum - base)
        drop = format.min_quantum - base;
    return drop > 0 ? drop : 0;
}

/* To nearest, ties to even: sum, error_bound, flags. */
EXACT_SHARED void exact_round_cut(const struct exact_cut *cut, struct exact_format format,
                                  struct dot_value *ret)
{
    const bool is_inexact = cut->is_half || cut->is_below;
    const int quantum = cut->quantum;
    uint64_t significand = cut->significand;
    if (cut->is_half && (cut->is_below || (significand & 1) != 0))
        significand++;
    const bool is_beyond =
        significand != 0 && quantum + exact_highest_bit(significand) >= format.max_exponent;
    const double magnitude = is_beyond ? INFINITY : exact_compose(significand, quantum);
    /* A zero here was rounded: it keeps its sign. */
    ret->sum = cut->is_negative ? -magnitude : magnitude;
    ret->error_bound = 0;
    ret->flags = 0;
    if (is_beyond) {
        ret->error_bound = INFINITY;
        ret->flags = FLAG_INEXACT | FLAG_OVERFLOW;
    } else if (is_inexact) {
        /* Half a quantum; for float64's smallest that is no float64, and the bound is rounded
         * up. */
        ret->error_bound = exact_compose(1, quantum > -1074 ? quantum - 1 : quantum);
        ret->flags = FLAG_INEXACT;
        if (significand >> (format.precision - 1) == 0)
            ret->flags |= FLAG_UNDERFLOW;
    }
}

/* The total in one step from fixed point: sum, error_bound, flags. Leaves the limbs carried and
 * absolute. */
EXACT_SHARED void exact_round(int64_t *limb, int count, int base, struct exact_format format,
                              struct dot_value *ret)
{
    struct exact_cut cut;
    cut.is_negative = exact_make_absolute(limb, count);
    int top = count - 1;
    while (top >= 0 && limb[top] == 0)
        top--;
    ret->sum = 0;
    ret->error_bound = 0;
    ret->flags = 0;
    if (top < 0)
        return; /* +0, whatever the signs of the terms */
    const int highest = 32 * top + exact_highest_bit((uint64_t)limb[top]);
    const int drop = exact_drop(format, base, highest);
    cut.significand = exact_bits_from(limb, top, drop);
    cut.quantum = drop + base;
    cut.is_half = drop > 0 && (exact_bits_from(limb, top, drop - 1) & 1) != 0;
    cut.is_below = drop > 0 && exact_any_below(limb, top, drop - 1);
    exact_round_cut(&cut, format, ret);
}

/* Two's complement of 192 bits. limb is carried, of the integer layout. */
EXACT_SHARED void exact_to_integer(const int64_t *limb, uint64_t ret[3])
{
    for (int i = 0; i < 3; i++)
        ret[i] = (uint64_t)limb[2 * i] | (uint64_t)limb[2 * i + 1] << 32;
}

/* --- the result --- */

/* What decides when a product was not finite; then finite terms do not matter. */
EXACT_SHARED void exact_settle_special(unsigned special, struct dot_value *ret)
{
    const unsigned both = EXACT_POSITIVE | EXACT_NEGATIVE;
    const bool is_invalid = (special & EXACT_INVALID) != 0 || (special & both) == both;
    ret->error_bound = 0;
    ret->flags = 0;
    if ((special & EXACT_NAN_INPUT) != 0)
        ret->flags |= FLAG_NAN_INPUT;
    if (is_invalid)
        ret->flags |= FLAG_INVALID;
    if (ret->flags != 0) {
        const uint64_t canonical = (uint64_t)0x7ff8 << 48; /* quiet, positive, no payload */
        memcpy(&ret->sum, &canonical, sizeof ret->sum);
        ret->sum_abs = ret->sum;
    } else {
        ret->sum = (special & EXACT_POSITIVE) != 0 ? INFINITY : -INFINITY;
        ret->sum_abs = INFINITY;
    }
}

/* Sets everything but sum_abs, which is set only where special decides. limb: `count` limbs from
 * `base` on of operand_dtype's layout, all of them for integers; carried here. */
EXACT_SHARED void exact_value(int64_t *limb, int count, int base, unsigned special,
                              enum dtype operand_dtype, enum dtype result_dtype,
                              struct dot_value *ret)
{
    ret->integer[0] = ret->integer[1] = ret->integer[2] = 0;
    if (special != 0) {
        exact_settle_special(special, ret);
        return;
    }
    if (exact_layout_of(operand_dtype).limbs == EXACT_INTEGER_LIMBS) {
        exact_carry(limb, count);
        exact_to_integer(limb, ret->integer);
    }
    exact_round(limb, count, base, exact_format_of(result_dtype), ret);
    if (result_dtype == DTYPE_INT64) { /* integer[] is the result, and exact */
        ret->error_bound = 0;
        ret->flags = 0;
    }
}

#endif
