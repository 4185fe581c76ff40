/* brief.h - the commonest numbers, read as a whole: up to 16 digits and no exponent.
 *
 * Door: brief_store() for a number whose end is known, as it is between two commas. What it leaves,
 * leaf.h reads. Digits and power of ten are float64s without rounding, so that their quotient is
 * rounded once (W. Clinger, 1990). No branch depends on sign or length within a shape, because
 * neither can be predicted in real vectors: a wrong guess costs as much as the whole number, about
 * 14 cycles. The speed of tests/bench/numbers.c is that of these lines.
 */
#ifndef PROTO_BRIEF_H
#define PROTO_BRIEF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/decimal.h"
#include "proto/digits8.h"
#include "proto/tensor.h"

enum { BRIEF_READS = 18 }; /* bytes that are read from the number's text on, whatever its length */

#define BRIEF_EXACT \
    ((uint64_t)1 << 53) /* the last of the integers that float64 holds without gap */

struct brief {
    uint64_t digits;
    uint64_t point; /* how many of them come after the point, up to 15 */
};

/* One digit, a point, and one to 15 digits up to stop: what lies between 0 and 10. */
static inline bool brief_unit(const char *p, const char *stop, struct brief *ret)
{
    uint64_t point = (uint64_t)(stop - p) - 2;
    /* The digit before the point takes the point's place. */
    uint64_t head = (digits8_load(p + 1) & ~(uint64_t)0xff) | (unsigned char)(*p ^ '0');
    if (__builtin_expect(point < 8, 1)) {
        head <<= 56 - 8 * point;
        *ret = (struct brief){digits8_value(head), point};
        return digits8_others(head) == 0;
    }
    uint64_t low = digits8_load(stop - 8);
    head <<= 120 - 8 * point;
    *ret = (struct brief){digits8_value(head) * 100000000 + digits8_value(low), point};
    return (digits8_others(low) | digits8_others(head)) == 0 && ret->digits <= BRIEF_EXACT;
}

/* One to 16 characters up to stop, with or without a point among them. */
static inline bool brief_any(const char *p, const char *stop, struct brief *ret)
{
    typedef unsigned __int128 uint128; /* a word of the compiler, without a standard name */
    uint64_t size = (uint64_t)(stop - p), point = 0;
    uint128 text = digits8_load(p) | (uint128)digits8_load(p + 8) << 64;
    text <<= 128 - 8 * size;
    uint64_t low = digits8_points((uint64_t)text), high = digits8_points((uint64_t)(text >> 64));
    bool is_number = *p != '.' && (*p != '0' || size == 1 || p[1] == '.');
    if ((low | high) != 0) {
        /* Marks are bits 7 of their bytes; those of high become bits 3, so that one count finds
         * either. A second point stays and fails as no digit. */
        unsigned mark = (unsigned)__builtin_ctzll(low | high >> 4);
        unsigned at = (mark & 0x38) + (~mark & 4) * 16; /* bits before the point */
        uint128 before = ((uint128)1 << at) - 1;
        text = (text & ~(before << 8 | 0xff)) | (text & before) << 8;
        point = 15 - at / 8;
        is_number = is_number & (point != 0);
    }
    low = (uint64_t)text;
    high = (uint64_t)(text >> 64);
    *ret = (struct brief){digits8_value(low) * 100000000 + digits8_value(high), point};
    return is_number & ((digits8_others(low) | digits8_others(high)) == 0) &
           (ret->digits <= BRIEF_EXACT);
}

/* Reads [text, stop), which is not empty; BRIEF_READS bytes may be read from text on. False: it is
 * another kind of number, or none. */
static inline bool brief_float64(const char *text, const char *stop, double *ret)
{
    /* From 16 on the same with a sign, so that the division gives the quotient its own. */
    static const double power[32] = {1e0,  1e1,  1e2,   1e3,   1e4,   1e5,   1e6,   1e7,
                                     1e8,  1e9,  1e10,  1e11,  1e12,  1e13,  1e14,  1e15,
                                     -1e0, -1e1, -1e2,  -1e3,  -1e4,  -1e5,  -1e6,  -1e7,
                                     -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15};
    uint64_t is_negative = *text == '-';
    const char *p = text + is_negative;
    uint64_t size = (uint64_t)(stop - p);
    struct brief brief;
    bool is_unit = p[1] == '.' && size - 3 < 15;
    if (__builtin_expect(is_unit, 1)) {
        if (!brief_unit(p, stop, &brief))
            return false;
    } else if (size - 1 > 15 || !brief_any(p, stop, &brief)) {
        return false;
    }
    *ret = (double)(int64_t)brief.digits / power[brief.point + is_negative * 16];
    return true;
}

/* Each stores one of the commonest numbers, already a float64, if that settles it for the type. A
 * whole one is the decimal itself: another decimal of digits up to 2^53 is more than half a unit
 * away from it. What the type holds exactly is no midpoint of it (nothing here is subnormal). */
static inline bool brief_float32(double value, char *out)
{
    float narrow = (float)value; /* in range: at most 16 digits */
    memcpy(out, &narrow, sizeof narrow);
    return !float64_may_be_midpoint(value) || (double)narrow == value;
}

/* For every type: float16 and bfloat16 never doubt, see below. */
static inline bool brief_unknown(double value, char *out)
{
    memcpy(out, &value, sizeof value);
    return !float64_may_be_midpoint(value) || (double)(float)value == value ||
           (double)(int64_t)value == value;
}

/* The float64 always settles these types: their midpoints have 12 bits at most, so that a decimal
 * of up to 15 places is one of them, or differs by 2^-12 5^-15 of it at least, which is over
 * 2^-53. */
static inline bool brief_narrow(double value, struct narrow type, char *out)
{
    uint16_t bits = narrow_bits(value, type);
    memcpy(out, &bits, sizeof bits);
    return !isinf(narrow_value(bits, type));
}

static inline bool brief_whole(double value, int64_t min, int64_t max, size_t size, char *out)
{
    int64_t whole = (int64_t)value;
    memcpy(out, &whole, size); /* little-endian: its low bytes are the element */
    return (double)whole == value && min <= whole && whole <= max;
}

/* Stores [text, stop) as a real type if it is one of the commonest numbers that the type holds;
 * false: leaf.h knows. DTYPE_UNKNOWN: as a float64 that settles the decimal for every type. */
static inline __attribute__((always_inline)) bool brief_store(const char *text, const char *stop,
                                                              enum dtype dtype, char *out)
{
    double value;
    if (__builtin_expect(!brief_float64(text, stop, &value), 0))
        return false;
    switch (dtype) {
    case DTYPE_FLOAT16:
        return brief_narrow(value, narrow_float16(), out);
    case DTYPE_BFLOAT16:
        return brief_narrow(value, narrow_bfloat16(), out);
    case DTYPE_FLOAT32:
        return brief_float32(value, out);
    case DTYPE_INT8:
        return brief_whole(value, INT8_MIN, INT8_MAX, sizeof(int8_t), out);
    case DTYPE_UINT8:
        return brief_whole(value, 0, UINT8_MAX, sizeof(uint8_t), out);
    case DTYPE_INT32:
        return brief_whole(value, INT32_MIN, INT32_MAX, sizeof(int32_t), out);
    case DTYPE_INT64:
        return brief_whole(value, INT64_MIN, INT64_MAX, sizeof(int64_t), out);
    case DTYPE_FLOAT64:
        memcpy(out, &value, sizeof value);
        return true;
    default:
        return brief_unknown(value, out);
    }
}

#endif
