/* brief.h - the commonest numbers, read as a whole: up to 20 digits, with or without an exponent.
 *
 * Door: brief_store() for a number whose end is known, as it is between two commas;
 * brief_store_scientific() for what that leaves. What both leave, leaf.h reads. Up to 15 digits and
 * their power of ten are float64s without rounding, so that their quotient is rounded once (W.
 * Clinger, 1990); more are multiplied by the power's first 64 bits, unless these leave open which
 * way the product is rounded (D. Lemire, 2021). No branch depends on the sign, and none on the
 * length between 1 and 15 digits or between 16 and 20, because neither can be predicted in real
 * vectors: a wrong guess costs as much as the whole number, about 14 cycles. The speed of
 * tests/bench/numbers.c is that of these lines.
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
    BRIEF_BEFORE = DIGITS_BEFORE - 1, /* bytes in front of the number's text that are read, */
    BRIEF_READS = 18,                 /* and from the text on, whatever its length */
};

struct brief {
    const char *stop; /* behind the point, if that comes last or is left out, else as it was */
    size_t places;    /* digits behind the point */
    size_t count;     /* digits in all */
    bool is_negative;
};

/* Takes the text up to stop apart; its characters may still be anything. False also for more than
 * 15 digits with more than 7 of them before the point. */
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

static inline uint64_t float64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Up to 15 digits. */
static inline bool brief_quotient(struct brief brief, uint64_t *ret)
{
    struct digits16 digits;
    if (!digits16_read(brief.stop, brief.places, brief.count, &digits))
        return false;
    *ret = float64_bits(digits16_float64(digits) /
                        decimal_power[brief.places + (brief.is_negative ? 16 : 0)]);
    return true;
}

/* digits 10^-places as a float64's bits: the power is in the table, the product normal, `zeros` the
 * bits of 0 that digits begin with. False when it may be a midpoint of a narrower type, or when 64
 * bits of the power leave its rounding open; for digits 0 too. */
static inline bool brief_product(uint64_t digits, int zeros, int64_t places, bool is_power_whole,
                                 bool is_negative, uint64_t *ret)
{
    const struct pow10 *power = &pow10_table[-POW10_MIN] - places;
    uint64_t product = (uint64_t)((unsigned __int128)(digits << zeros) * power->high >> 64);
    /* The decimal lies in [product, product + 2) 2^(log2 + 1 - zeros), above product unless the
     * power is whole. Multiples of 2^9 are where its rounding may change; that the decimal is above
     * one, the last bit tells, which is set for all that is cut. */
    if (((product + 1) & 0x1ff) <= is_power_whole)
        return false;
    uint64_t scale = (uint64_t)(pow10_log2(-(int)places) + 2 - zeros) << 52;
    *ret =
        float64_bits((double)(int64_t)(product >> 1 | 1)) + (scale ^ (uint64_t)is_negative << 63);
    return (*ret & FLOAT64_MIDPOINT) != 0;
}

/* Reads [text, stop), which is not empty, as a float64's bits; BRIEF_BEFORE bytes before text and
 * BRIEF_READS bytes from there on may be read. False: it is another kind of number, or none. */
static inline bool brief_read(const char *text, const char *stop, uint64_t *ret)
{
    struct brief brief;
    uint64_t digits;
    if (!brief_split(text, stop, &brief))
        return false;
    if (brief.count - 1 < 15)
        return brief_quotient(brief, ret);
    /* No product is whole: at most 7 digits are before the point, and up to 2^24 a whole number has
     * the zero bits that a midpoint has. Two copies, because most have 16 digits behind the point,
     * where it need not be taken out; so constants stay in registers, too. */
    return brief.count - 1 < DIGITS_LAST &&
           (brief.places >= 16
                ? digits20_read(brief.stop, true, brief.places, brief.count, &digits)
                : digits20_read(brief.stop, false, brief.places, brief.count, &digits)) &&
           brief_product(digits, __builtin_clzll(digits | 1), (int64_t)brief.places, false,
                         brief.is_negative, ret);
}

/* Each stores one of these numbers, already a float64, if that settles it for the type. A whole one
 * is the decimal itself: another decimal of up to 15 digits is more than half a unit away from it.
 * What the type holds exactly is no midpoint of it. */
static inline bool brief_float32(double value, char *out)
{
    float narrow = (float)value; /* in range: brief_product_any() sees to it */
    memcpy(out, &narrow, sizeof narrow);
    return !float64_may_be_midpoint(value) || (double)narrow == value;
}

/* For every type: float16 and bfloat16 never doubt, see below. */
static inline bool brief_unknown(uint64_t bits, double value, char *out)
{
    memcpy(out, &bits, sizeof bits);
    return (bits & FLOAT64_MIDPOINT) != 0 || (double)(float)value == value ||
           (double)(int64_t)value == value;
}

/* The float64 always settles these types: their midpoints have 12 bits at most, so that a decimal
 * of up to 15 places is one of them, or differs by 2^-12 5^-15 of it at least, which is over
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

/* Stores a float64 that was read here as a real type, if the type holds the number. DTYPE_UNKNOWN:
 * as a float64 that settles the decimal for every type. */
static inline __attribute__((always_inline)) bool brief_keep(uint64_t bits, enum dtype dtype,
                                                             char *out)
{
    double value;
    memcpy(&value, &bits, sizeof value);
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
        memcpy(out, &bits, sizeof bits);
        return true;
    default:
        return brief_unknown(bits, value, out);
    }
}

/* Reads [text, stop) as brief_read() does and stores it. False: brief_store_scientific() or leaf.h
 * knows. */
static inline __attribute__((always_inline)) bool brief_store(const char *text, const char *stop,
                                                              enum dtype dtype, char *out)
{
    uint64_t bits;
    return __builtin_expect(brief_read(text, stop, &bits), 1) && brief_keep(bits, dtype, out);
}

/* Takes the exponent at the end of [text, stop) apart: its letter among the last eight characters,
 * a sign or none, up to four digits. */
static inline bool brief_exponent(const char *text, const char *stop, const char **ret_letter,
                                  int *ret)
{
    uint64_t end = digits8_load(stop - 8), letters = end & BYTES8(0x40);
    if (letters == 0)
        return false;
    size_t count = (size_t)__builtin_clzll(letters) / 8; /* behind the letter */
    const char *letter = stop - 1 - count;
    bool is_negative = letter[1] == '-';
    count -= is_negative || letter[1] == '+';
    if ((*letter | 0x20) != 'e' || letter <= text || count - 1 >= 4)
        return false;
    uint32_t digits = (uint32_t)(end >> 32) & UINT32_MAX << (32 - 8 * count);
    uint32_t twos = digits * 2561 >> 8 & 0x00ff00ff;
    int value = (int)(twos * (100 * 65536 + 1) >> 16);
    *ret_letter = letter;
    *ret = is_negative ? -value : value;
    return (((digits + (uint32_t)BYTES8(0x76)) | digits) & (uint32_t)BYTES8(0x80)) == 0;
}

/* The product, within the type's range and normal as a float64; and not whole where int64 may hold
 * it, since of so many digits another whole number may be meant. */
static inline bool brief_product_any(uint64_t digits, int exponent, bool is_negative,
                                     enum dtype dtype, uint64_t *ret)
{
    if (exponent < POW10_MIN || exponent > POW10_MAX || digits == 0)
        return false;
    int zeros = __builtin_clzll(digits);
    int top = pow10_log2(exponent) + 63 - zeros; /* the product is in [2^top, 2^(top + 2)) */
    bool is_float64 = dtype == DTYPE_FLOAT64 || dtype == DTYPE_UNKNOWN;
    int top_max = is_float64 ? 1021 : dtype == DTYPE_FLOAT32 ? 125 : 61;
    if (top < -1022 || top > top_max ||
        !brief_product(digits, zeros, -exponent, exponent >= 0, is_negative, ret))
        return false;
    if (top < 24 || top > 62)
        return true;
    double value;
    memcpy(&value, ret, sizeof value);
    return top < 62 && (double)(int64_t)value != value;
}

/* brief_read() for a number with an exponent. */
static inline bool brief_read_scientific(const char *text, const char *stop, enum dtype dtype,
                                         uint64_t *ret)
{
    const char *letter;
    int exponent;
    struct brief brief;
    struct digits16 few;
    uint64_t digits;
    if (!brief_exponent(text, stop, &letter, &exponent) || !brief_split(text, letter, &brief))
        return false;
    exponent -= (int)brief.places;
    if (brief.count - 1 < 15) {
        if (!digits16_read(brief.stop, brief.places, brief.count, &few))
            return false;
        double value;
        if (decimal_exact(digits16_float64(few), exponent, brief.is_negative, &value)) {
            *ret = float64_bits(value);
            return true;
        }
        digits = (uint64_t)(int64_t)digits16_float64(few);
    } else if (brief.count - 1 >= DIGITS_LAST ||
               !digits20_read(brief.stop, false, brief.places, brief.count, &digits)) {
        return false;
    }
    return brief_product_any(digits, exponent, brief.is_negative, dtype, ret);
}

/* brief_store() for a number with an exponent, at half the speed. */
static inline bool brief_store_scientific(const char *text, const char *stop, enum dtype dtype,
                                          char *out)
{
    uint64_t bits;
    return brief_read_scientific(text, stop, dtype, &bits) && brief_keep(bits, dtype, out);
}

#endif
