/* part.c - one real exact sum in the making (see part.h). */
#include "gpu/exact/part.h"

static bool part_is_sane(const struct exact_part *part)
{
    return part->layout.limbs <= EXACT_LIMBS_MAX && part->low >= 0 &&
           part->high < part->layout.limbs && part->deposits <= EXACT_PART_DEPOSITS;
}

void exact_part_init(struct exact_part *part, enum dtype dtype)
{
    part->layout = exact_layout_of(dtype);
    bool is_integer = dtype_is_integer(dtype);
    part->low = is_integer ? 0 : part->layout.limbs;
    part->high = is_integer ? part->layout.limbs - 1 : -1;
    part->deposits = 0;
    part->special = 0;
    part->sum_abs = 0;
    memset(part->limb, 0, (size_t)part->layout.limbs * sizeof part->limb[0]);
}

void exact_part_carry(struct exact_part *part)
{
    assert(part_is_sane(part));
    exact_carry(part->limb, part->layout.limbs);
    part->low = 0; /* a carry goes up to the top if the sum is negative */
    part->high = part->layout.limbs - 1;
    part->deposits = 1;
}

void exact_part_load(struct exact_part *part, const uint64_t *limb, unsigned special)
{
    assert(part_is_sane(part) && part->deposits == 0);
    part->special = special;
    if (special != 0)
        return;
    memcpy(part->limb, limb, (size_t)part->layout.limbs * sizeof part->limb[0]);
    exact_part_carry(part);
}

void exact_part_merge(struct exact_part *part, const struct exact_part *other)
{
    assert(part_is_sane(part) && part_is_sane(other));
    assert(part->layout.limbs == other->layout.limbs && part->layout.base == other->layout.base);
    exact_part_reserve(part, other->deposits);
    if (other->low <= other->high) {
        part->low = other->low < part->low ? other->low : part->low;
        part->high = other->high > part->high ? other->high : part->high;
        exact_merge(part->limb + other->low, other->limb + other->low,
                    other->high - other->low + 1);
    }
    part->special |= other->special;
    part->sum_abs += other->sum_abs;
}

void exact_part_round(struct exact_part *part, enum dtype operand_dtype, enum dtype result_dtype,
                      struct dot_value *ret)
{
    assert(part_is_sane(part));
    ret->sum_abs = part->sum_abs;
    int low = part->low <= part->high ? part->low : 0; /* an empty sum: the lowest limb, a zero */
    int high = part->low <= part->high ? part->high : 0;
    exact_value(part->limb + low, high - low + 1, part->layout.base + 32 * low, part->special,
                operand_dtype, result_dtype, ret);
}
