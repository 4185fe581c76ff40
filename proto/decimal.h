/* decimal.h - one decimal number: its text taken apart, and rounded once to a binary type.
 *
 * Door: decimal_scan(), then decimal_float32(), decimal_float64(), decimal_narrow() or
 * decimal_whole(). The commonest numbers do not come here: brief.h reads them, and borrows
 * decimal_exact().
 *
 * A type narrower than float64 is reached through float64 without rounding twice: where the float64
 * alone does not settle the second rounding (it may sit on a midpoint of the narrower type),
 * decimal_side() says on which side of it the decimal lies, and decimal_nudge() moves the float64
 * one unit to that side. A new narrower type needs only its narrowing of the nudged float64.
 *
 * Nothing here consults the locale. The floating-point environment is the default one.
 */
#ifndef PROTO_DECIMAL_H
#define PROTO_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/error.h"
#include "proto/narrow.h"

/* The magnitude is digits 10^exponent; when is_cut, between that and one digit unit more. */
struct decimal {
    const char *text; /* borrowed, from its sign; at most LIMIT_NUMBER_BYTES when it is rounded */
    const char *end;  /* the byte after the number */
    uint64_t digits;  /* the first 19 significant digits at most */
    int64_t exponent; /* wide, so that no length of text overflows it */
    bool is_negative;
    bool is_cut; /* a digit other than 0 did not fit into digits */
};

enum { DECIMAL_DIGITS_MAX = 19 }; /* 10^19 < 2^64 */

/* Takes the RFC 8259 number at text apart, which a byte follows that no number contains. True: *ret
 * holds it and *ret_stop is the byte after it. False: *ret_stop is the byte that should have been a
 * digit. */
bool decimal_scan(const char *text, struct decimal *ret, const char **ret_stop);

/* The decimal rounded once, to nearest even, with its sign. ERR_VALUE: beyond the type's range. */
enum error decimal_float32(const struct decimal *decimal, float *ret);
enum error decimal_float64(const struct decimal *decimal, double *ret);
enum error decimal_narrow(const struct decimal *decimal, struct narrow type, uint16_t *ret);

/* |decimal| when it is a whole number up to 2^63, whatever way it is written ("1e2", "3.0"). */
bool decimal_whole(const struct decimal *decimal, uint64_t *ret_magnitude);

/* How |decimal| compares with |value|, the float64 it rounds to: -1 below, 0 equal, 1 above. */
int decimal_side(const struct decimal *decimal, double value);

/* Moves value one unit away from zero (side 1) or towards it (side -1). */
double decimal_nudge(double value, int side);

enum { DECIMAL_POWER_MAX = 15 };

/* Powers of ten; from 16 on the same with a sign, so that a division gives the quotient its own. */
static const double decimal_power[32] = {
    1e0,  1e1,  1e2,  1e3,  1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,
    1e11, 1e12, 1e13, 1e14, 1e15,  -1e0,  -1e1,  -1e2,  -1e3,  -1e4,  -1e5,
    -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15,
};

/* Digits, exact as a float64, times a power of ten, where that is one operation: a quotient, or a
 * whole number up to 2^53. False: it is neither. */
static inline bool decimal_exact(double digits, int64_t exponent, bool is_negative, double *ret)
{
    if (exponent < -DECIMAL_POWER_MAX || exponent > DECIMAL_POWER_MAX)
        return false;
    const double *power = decimal_power + (is_negative ? 16 : 0);
    *ret = exponent < 0 ? digits / power[-exponent] : digits * power[exponent];
    return exponent <= 0 || (-0x1p53 <= *ret && *ret <= 0x1p53);
}

/* Midpoints of every narrower floating-point type have at least 28 trailing zero bits as float64:
 * float32, the widest of them, keeps 23 of 52 bits, and its midpoints one more. */
#define FLOAT64_MIDPOINT ((uint64_t)0x0fffffff)

static inline bool float64_may_be_midpoint(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & FLOAT64_MIDPOINT) == 0;
}

#endif
