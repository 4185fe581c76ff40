/* part.h - one real exact sum in the making, on the CPU: limbs that know which of them are in use.
 *
 * Door: exact_part_init(), exact_part_add() and its sisters, exact_part_merge(),
 * exact_part_round(). Callers need not count deposits: a carry happens when it must. Rounding looks
 * at the limbs between the lowest and the highest deposit only, so that a short row of float64 does
 * not pay for 134.
 */
#ifndef GPU_EXACT_PART_H
#define GPU_EXACT_PART_H

#include <assert.h>
#include <stdint.h>

#include "gpu/exact/limbs.h"

struct exact_part {
    struct exact_layout layout;    /* fixed after init */
    int low, high;                 /* limbs outside [low, high] are zero; low > high: all are.
                                      Integers are few: [0, limbs - 1] */
    uint32_t deposits;             /* since the last carry, at most EXACT_PART_DEPOSITS */
    unsigned special;              /* enum exact_special bits */
    double sum_abs;                /* kept by who deposits */
    int64_t limb[EXACT_LIMBS_MAX]; /* [layout.limbs] */
};

/* Half of what limbs can bear, so that two parts merge without touching the second. */
enum { EXACT_PART_DEPOSITS = EXACT_DEPOSITS / 2 };

/* dtype: of the operands. */
void exact_part_init(struct exact_part *part, enum dtype dtype);

/* Carries; afterwards at most one deposit is counted. */
void exact_part_carry(struct exact_part *part);

/* A sum that was made elsewhere: [layout.limbs] that a deposit of EXACT_DEPOSITS may have left.
 * Special bits make the limbs meaningless. part is empty. */
void exact_part_load(struct exact_part *part, const uint64_t *limb, unsigned special);

void exact_part_merge(struct exact_part *part, const struct exact_part *other);

/* As exact_value(); sets sum_abs as well. The part is used up. */
void exact_part_round(struct exact_part *part, enum dtype operand_dtype, enum dtype result_dtype,
                      struct dot_value *ret);

/* Makes room for so many deposits, at most EXACT_PART_DEPOSITS - 1. */
static inline void exact_part_reserve(struct exact_part *part, uint32_t deposits)
{
    if (part->deposits > EXACT_PART_DEPOSITS - deposits)
        exact_part_carry(part);
    part->deposits += deposits;
}

/* As exact_add_word(), for which room was made. */
static inline void exact_part_add(struct exact_part *part, uint64_t magnitude, int position,
                                  int64_t sign)
{
    if (magnitude == 0)
        return;
    int first = position / 32, last = (position + 63 - __builtin_clzll(magnitude)) / 32;
    part->low = first < part->low ? first : part->low;
    part->high = last > part->high ? last : part->high;
    exact_add_word(part->limb, magnitude, position, sign);
}

/* total * 2^unit, which is a sum of products of the layout's type. One deposit. */
static inline void exact_part_add_scaled(struct exact_part *part, int64_t total, int unit)
{
    uint64_t magnitude = total < 0 ? 0 - (uint64_t)total : (uint64_t)total;
    if (magnitude == 0)
        return;
    assert(unit >= part->layout.base); /* of float32, a grid below 2^-298 gets nothing */
    exact_part_add(part, magnitude, unit - part->layout.base, total >> 63);
}

/* Of finite operands; one deposit. part is of float32's layout. */
static inline void exact_part_add_product32(struct exact_part *part, float x, float y)
{
    const uint64_t bits = exact_bits_of((double)x * (double)y); /* exact, and not subnormal */
    const int field = (int)(bits >> 52 & 0x7ff);
    if (field > 0)
        exact_part_add(part, (bits & 0xfffffffffffff) | (uint64_t)1 << 52,
                       field - 1075 - EXACT_FLOAT32_BASE, (int64_t)bits >> 63);
}

/* Of finite operands; two deposits. part is of float64's layout. */
static inline void exact_part_add_product64(struct exact_part *part, double x, double y)
{
    const struct exact_product product = exact_product_of(x, y);
    exact_part_add(part, (uint64_t)product.magnitude, product.position, product.sign);
    exact_part_add(part, (uint64_t)(product.magnitude >> 64), product.position + 64, product.sign);
}

/* As exact_add_float64(); makes room itself. */
static inline void exact_part_add_float64(struct exact_part *part, double value)
{
    const uint64_t bits = exact_bits_of(value);
    const int field = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & 0xfffffffffffff;
    exact_part_reserve(part, 1);
    if (field == 0) /* subnormal, of unit 2^-1074, or zero */
        exact_part_add(part, fraction, fraction != 0 ? -1074 - part->layout.base : 0,
                       (int64_t)bits >> 63);
    else
        exact_part_add(part, fraction | (uint64_t)1 << 52, field - 1075 - part->layout.base,
                       (int64_t)bits >> 63);
}

/* Two deposits. part is of the integer layout; value is times 2^(32 limb). */
static inline void exact_part_add_integer(struct exact_part *part, exact_int128 value, int limb)
{
    exact_add_integer(part->limb + limb, value);
}

#endif
