/* brief.h - the commonest numbers, read as a whole: up to 20 digits and no exponent.
 *
 * Door: brief_store() for a number whose end is known, as it is between two commas. What it leaves,
 * leaf.h reads. Up to 15 digits and their power of ten are float64s without rounding, so that their
 * quotient is rounded once (W. Clinger, 1990); more are multiplied by the power's first 64 bits,
 * unless these leave open which way the product is rounded (D. Lemire, 2021). No branch depends on
 * the sign, and none on the length between 1 and 15 digits or between 16 and 20, because neither can
 * be predicted in real vectors: a wrong guess costs as much as the whole number, about 14 cycles.
 * The speed of tests/bench/numbers.c is that of these lines.
 */
#ifndef PROTO_BRIEF_H
#define PROTO_BRIEF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/decimal.h"
#include "proto/digits16.h"
#include "proto/pow10.h"
#include "proto/tensor.h"

enum {
    BRIEF_BEFORE = 15, /* bytes in front of the number's text that are read, */
    BRIEF_READS = 18,  /* and from the text on, whatever its length */
};

struct brief {
    const char *stop; /* behind the point, if that comes last or is left out, else as it was */
    size_t places;    /* digits behind the point */
    size_t count;     /* digits in all */
    bool is_negative;
};

/* Takes the text up to stop apart; its characters may still be anything. False also for more than 15
 * digits with more than 7 of them before the point. */
static inline bool brief_split(const char *text, const char *stop, struct brief *ret)
{
    bool is_negative = *text == '-';
    const char *p = text + is_negative;
    size_t size = (size_t)(stop - p);
    *ret = (struct brief){stop, size - 2, size - 1, is_negative};
    if (p[1] == '.')
        return size > 2;
    size_t whole = 1 + digits16_point(p + 1);
    bool has_point = whole + 1 < size;
    *ret = (struct brief){stop + !has_point, has_point ? size - 1 - whole : 0, size - has_point,
                          is_negative};
    return (*p != '0' || size == 1) && (whole <= 7 || ret->count <= 15);
}

/* Up to 15 digits. */
static inline bool brief_quotient(struct brief brief, double *ret)
{
    /* From 16 on the same with a sign, so that the division gives the quotient its own. */
    static const double power[32] = {1e0,  1e1,  1e2,   1e3,   1e4,   1e5,   1e6,   1e7,
                                     1e8,  1e9,  1e10,  1e11,  1e12,  1e13,  1e14,  1e15,
                                     -1e0, -1e1, -1e2,  -1e3,  -1e4,  -1e5,  -1e6,  -1e7,
                                     -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15};
    struct digits16 digits;
    if (!digits16_read(brief.stop, brief.places, brief.count, &digits))
        return false;
    *ret = digits16_float64(digits) / power[brief.places + (brief.is_negative ? 16 : 0)];
    return true;
}

/* 16 to 20 digits, at most 7 of them before the point. What it gives is neither whole nor a midpoint
 * of a narrower type, so that it stands for the decimal whatever the type: up to 2^24 either has
 * the zero bits that float64_may_be_midpoint() looks for. */
static inline bool brief_product(struct brief brief, double *ret)
{
    struct digits16 tail;
    uint64_t head;
    if (!digits16_read(brief.stop, brief.places, 16, &tail) ||
        !digits4_read(brief.stop, brief.places, brief.count, &head) || head > 1843)
        return false; /* 1844 10^16 may be beyond 2^64 */
    uint64_t digits = head * 10000000000000000 + digits16_value(tail);
    const struct pow10 *power = &pow10_table[-POW10_MIN] - brief.places; /* 10^-places */
    int zeros = __builtin_clzll(digits | 1);
    /* The decimal lies in [product, product + 2) 2^(log2 + 1 - zeros). Multiples of 2^9 are where
     * its rounding may change: none is in there, nor when the last bit is cut and the one before
     * it set, so that a signed number of 63 bits rounds like the decimal. */
    uint64_t product = (uint64_t)((unsigned __int128)(digits << zeros) * power->high >> 64);
    if (((product + 1) & 0x1ff) <= 1)
        return false;
    uint64_t scale_bits = (uint64_t)(1023 + pow10_log2(-(int)brief.places) + 2 - zeros) << 52 |
                          (uint64_t)brief.is_negative << 63;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    *ret = (double)(int64_t)(product >> 1 | 1) * scale;
    return !float64_may_be_midpoint(*ret);
}

/* Reads [text, stop), which is not empty; BRIEF_BEFORE bytes before text and BRIEF_READS bytes from
 * there on may be read. False: it is another kind of number, or none. */
static inline bool brief_float64(const char *text, const char *stop, double *ret)
{
    struct brief brief;
    if (!brief_split(text, stop, &brief))
        return false;
    if (brief.count - 1 < 15)
        return brief_quotient(brief, ret);
    return brief.count - 1 < DIGITS_LAST && brief_product(brief, ret);
}

/* Each stores one of the commonest numbers, already a float64, if that settles it for the type. A
 * whole one is the decimal itself: another decimal of up to 15 digits is more than half a unit away
 * from it. What the type holds exactly is no midpoint of it (nothing here is subnormal). */
static inline bool brief_float32(double value, char *out)
{
    float narrow = (float)value; /* in range: below 10^15 */
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
 * of up to 14 places is one of them, or differs by 2^-12 5^-14 of it at least, which is over
 * 2^-53; and no product is one. */
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
