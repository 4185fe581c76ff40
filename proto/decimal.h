/* decimal.h - one decimal number: its text taken apart, and rounded once to a binary type.
 *
 * Door: decimal_scan(), then decimal_float32(), decimal_float64(), decimal_narrow() or
 * decimal_whole(). Numbers of up to 19 digits with a small exponent are done inline here, because a
 * call a number costs a tenth of the reader's speed.
 *
 * A type narrower than float64 is reached through float64 without rounding twice: where the float64
 * alone does not settle the second rounding (it may sit on a midpoint of the narrower type),
 * decimal_side() says on which side of it the decimal lies, and decimal_nudge() moves the float64
 * one unit to that side. A new narrower type needs only its narrowing of the nudged float64.
 *
 * Nothing here consults the locale. The floating-point environment is the default one.
 * Source: W. Clinger, "How to read floating point numbers accurately", 1990; D. Lemire, "Number
 * parsing at a gigabyte per second", 2021.
 */
#ifndef PROTO_DECIMAL_H
#define PROTO_DECIMAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/digits8.h"
#include "proto/error.h"
#include "proto/narrow.h"

/* The magnitude is digits 10^exponent, or when is_cut, above it and below (digits + 1) 10^exponent. */
struct decimal {
    const char *text; /* borrowed, from its sign; at most LIMIT_NUMBER_BYTES when it is rounded */
    const char *end;  /* the byte after the number */
    uint64_t digits;  /* the first 19 significant digits at most */
    int64_t exponent; /* wide, so that no length of text overflows it */
    bool is_negative;
    bool is_cut; /* a digit other than 0 did not fit into digits */
};

enum { DECIMAL_DIGITS_MAX = 19 }; /* 10^19 < 2^64 */

/* decimal_scan() found more digits than fit: takes the text apart again, zeros aside. */
void decimal_scan_long(struct decimal *decimal);

/* The rounding of any decimal to float64, sign included. ERR_VALUE: beyond the range. */
enum error decimal_float64_any(const struct decimal *decimal, double *ret);

/* How |decimal| compares with |value|, the float64 it rounds to: -1 below, 0 equal, 1 above. */
int decimal_side(const struct decimal *decimal, double value);

/* |decimal| when it is a whole number up to 2^63, whatever way it is written ("1e2", "3.0"). */
bool decimal_whole(const struct decimal *decimal, uint64_t *ret_magnitude);

/* Moves value one unit away from zero (side 1) or towards it (side -1). */
double decimal_nudge(double value, int side);

/* Midpoints of every narrower floating-point type have at least 28 trailing zero bits as float64:
 * float32, the widest of them, keeps 23 of 52 bits, and its midpoints one more. */
static inline bool float64_may_be_midpoint(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x0fffffff) == 0;
}

/* A float64 in float32's normal range that float32 holds exactly is no midpoint of it: "1" and "0.5"
 * are common and need no second look. */
static inline bool float32_holds(double value)
{
    return (double)(float)value == value && fabs(value) >= 0x1p-126;
}

/* Reads "e+12" at p. Returns where it ends, or NULL with *ret_stop at the byte that should have been
 * a digit. An exponent beyond a million counts as one: no text is long enough to make up for it. */
static inline const char *exponent_read(const char *p, int64_t *exponent, const char **ret_stop)
{
    p++;
    bool is_negative = *p == '-';
    p += is_negative || *p == '+';
    const char *begin = p;
    int value = 0;
    for (; (unsigned char)(*p - '0') < 10; p++)
        value = value < 1000000 ? value * 10 + (*p - '0') : value;
    if (p == begin) {
        *ret_stop = p;
        return NULL;
    }
    *exponent += is_negative ? -value : value;
    return p;
}

/* Takes the RFC 8259 number at text apart. A byte that no number contains lies before end, the bound
 * of what may be read. True: *ret holds it and *ret_stop is the byte after it. False: *ret_stop is
 * the byte that should have been a digit. */
static inline bool decimal_scan(const char *text, const char *end, struct decimal *ret,
                                const char **ret_stop)
{
    bool is_negative = *text == '-';
    const char *p = text + is_negative, *begin = p;
    uint64_t digits = 0;
    int64_t exponent = 0;
    if (*p == '0') {
        begin = ++p; /* no other digit may follow, and this one is not significant */
    } else {
        p = digits8_read(p, end, &digits);
        if (p == begin) {
            *ret_stop = p;
            return false;
        }
    }
    int64_t count = p - begin;
    if (*p == '.') {
        const char *fraction = ++p;
        p = digits8_read(p, end, &digits);
        if (p == fraction) {
            *ret_stop = p;
            return false;
        }
        count += p - fraction;
        exponent = fraction - p;
    }
    if ((*p | 0x20) == 'e') {
        p = exponent_read(p, &exponent, ret_stop);
        if (p == NULL)
            return false;
    }
    *ret = (struct decimal){text, p, digits, exponent, is_negative, false};
    *ret_stop = p;
    if (__builtin_expect(count > DECIMAL_DIGITS_MAX, 0))
        decimal_scan_long(ret);
    return true;
}

/* Digits and power are float64s without rounding, so that one operation rounds once. */
static inline bool decimal_is_short(const struct decimal *decimal)
{
    return decimal->digits <= (uint64_t)1 << 53 && !decimal->is_cut &&
           (uint64_t)(decimal->exponent + 22) <= 44;
}

static inline double decimal_float64_short(const struct decimal *decimal)
{
    static const double power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double digits = (double)(int64_t)decimal->digits;
    double value = decimal->exponent < 0 ? digits / power[-decimal->exponent]
                                         : digits * power[decimal->exponent];
    return decimal->is_negative ? -value : value;
}

/* ERR_VALUE: rounds beyond the largest float64. */
static inline enum error decimal_float64(const struct decimal *decimal, double *ret)
{
    if (__builtin_expect(!decimal_is_short(decimal), 0))
        return decimal_float64_any(decimal, ret);
    *ret = decimal_float64_short(decimal);
    return ERR_OK;
}

/* Rounds to float16 or bfloat16. ERR_VALUE: rounds beyond the type's largest number. */
static inline enum error decimal_narrow(const struct decimal *decimal, struct narrow type,
                                        uint16_t *ret)
{
    double value;
    enum error err = decimal_float64(decimal, &value);
    if (err != ERR_OK)
        return err;
    uint16_t bits = narrow_bits(value, type);
    if (float64_may_be_midpoint(value) && narrow_value(bits, type) != value)
        bits = narrow_bits(decimal_nudge(value, decimal_side(decimal, value)), type);
    if (isinf(narrow_value(bits, type)))
        return ERR_VALUE;
    *ret = bits;
    return ERR_OK;
}

/* ERR_VALUE: rounds beyond the largest float32. */
static inline enum error decimal_float32(const struct decimal *decimal, float *ret)
{
    double value;
    enum error err = decimal_float64(decimal, &value);
    if (err != ERR_OK)
        return err;
    if (__builtin_expect(float64_may_be_midpoint(value) && !float32_holds(value), 0))
        value = decimal_nudge(value, decimal_side(decimal, value));
    float narrow = (float)value;
    if (__builtin_expect(isinf(narrow), 0))
        return ERR_VALUE;
    *ret = narrow;
    return ERR_OK;
}

#endif
