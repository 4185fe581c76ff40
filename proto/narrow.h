/* narrow.h - float16 and bfloat16 as their bits: from a float64, rounded once, and back.
 *
 * Door: float16_bits() and bfloat16_bits() round to nearest even, keep subnormals, give infinity
 * beyond the range and the one canonical NaN; float16_value() and bfloat16_value() are exact. In
 * integers, because compilers offer these types on some machines only.
 * Source: IEEE 754-2019 binary16; bfloat16 is the upper half of a binary32.
 */
#ifndef PROTO_NARROW_H
#define PROTO_NARROW_H

#include <stdint.h>
#include <string.h>

/* A type of 16 bits: how many of them are fraction, and the bias of its exponent. */
struct narrow {
    int digits, bias;
};

static inline struct narrow narrow_float16(void)
{
    return (struct narrow){10, 15};
}

static inline struct narrow narrow_bfloat16(void)
{
    return (struct narrow){7, 127};
}

static inline uint64_t narrow_load(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double narrow_power(int exponent) /* 2^exponent, of a normal float64 */
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t narrow_bits(double value, struct narrow type)
{
    uint64_t bits = narrow_load(value), magnitude = bits & INT64_MAX;
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint64_t infinity = UINT64_C(0x7fff) >> type.digits << type.digits;
    if (magnitude > UINT64_C(0x7ff) << 52)
        return (uint16_t)(infinity | UINT64_C(1) << (type.digits - 1));
    if (magnitude < narrow_load(narrow_power(1 - type.bias))) {
        /* Subnormal: beside this number float64 has the narrow type's last place, so that one
         * addition rounds; the carry into the first normal number is the integer's own. */
        double magic = narrow_power(53 - type.digits - type.bias), small;
        memcpy(&small, &magnitude, sizeof small);
        return (uint16_t)(sign | (narrow_load(small + magic) - narrow_load(magic)));
    }
    int shift = 52 - type.digits;
    uint64_t is_odd = magnitude >> shift & 1;
    uint64_t rounded = (magnitude + (UINT64_C(1) << (shift - 1)) - 1 + is_odd) >> shift;
    rounded -= (uint64_t)(1023 - type.bias) << type.digits;
    return (uint16_t)(sign | (rounded < infinity ? rounded : infinity));
}

static inline double narrow_value(uint16_t narrow, struct narrow type)
{
    uint64_t magnitude = narrow & 0x7fff, first_normal = UINT64_C(1) << type.digits;
    uint64_t infinity = UINT64_C(0x7fff) >> type.digits << type.digits;
    uint64_t bits = magnitude << (52 - type.digits);
    if (magnitude >= infinity)
        bits |= UINT64_C(0x7ff) << 52;
    else if (magnitude >= first_normal)
        bits += (uint64_t)(1023 - type.bias) << 52;
    else
        bits = narrow_load((double)magnitude * narrow_power(1 - type.bias - type.digits));
    bits |= (uint64_t)(narrow & 0x8000) << 48;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t float16_bits(double value)
{
    return narrow_bits(value, narrow_float16());
}

static inline double float16_value(uint16_t bits)
{
    return narrow_value(bits, narrow_float16());
}

static inline uint16_t bfloat16_bits(double value)
{
    return narrow_bits(value, narrow_bfloat16());
}

static inline double bfloat16_value(uint16_t bits)
{
    return narrow_value(bits, narrow_bfloat16());
}

#endif
