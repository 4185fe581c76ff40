/* decimal.c - a decimal's text taken apart, and its one rounding (see decimal.h).
 *
 * Digits and a power of ten that float64 holds exactly need one division or product (W. Clinger,
 * "How to read floating point numbers accurately", 1990). For the rest a product with 128 bits of
 * the power encloses the decimal between two numbers; where both round alike, the decimal does (D.
 * Lemire, "Number parsing at a gigabyte per second", 2021, proves when one bound is enough; two
 * bounds need no proof and cost one rounding more). Where they do not, the decimal is compared with
 * the midpoint between the two in integers of any length: only crafted numbers ever come that far.
 */
#include "proto/decimal.h"

#include <assert.h>
#include <math.h>

#include "proto/pow10.h"

typedef unsigned __int128 uint128; /* a word of the compiler, without a standard name */

enum {
    FLOAT64_DIGITS = 53,
    FLOAT64_LOWEST = -1074, /* exponent of the last bit of subnormals */
    /* 4096 digits are 13,607 bits; the other side of a comparison is at most one bit longer. */
    BIG_WORDS = 216,
};

#define FLOAT64_INFINITY ((uint64_t)0x7ff << 52)

static_assert(LIMIT_NUMBER_BYTES * 3322ll / 1000 + 128 <= BIG_WORDS * 64,
              "the longest number fits");

/* The first significant digit or, in a zero, where the digits end. */
static const char *digits_begin(const struct decimal *decimal)
{
    const char *p = decimal->text + decimal->is_negative;
    while (p < decimal->end && (*p == '0' || *p == '.'))
        p++;
    return p;
}

/* More digits than fit: takes the text apart again, leading zeros aside. */
static void decimal_recount(struct decimal *decimal)
{
    uint64_t digits = 0;
    int64_t count = 0;
    bool is_cut = false;
    for (const char *p = digits_begin(decimal); p < decimal->end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.')
            continue;
        if (count++ < DECIMAL_DIGITS_MAX)
            digits = digits * 10 + (uint64_t)(*p - '0');
        else
            is_cut = is_cut || *p != '0';
    }
    decimal->digits = digits;
    decimal->is_cut = is_cut;
    if (count > DECIMAL_DIGITS_MAX)
        decimal->exponent += count - DECIMAL_DIGITS_MAX;
}

/* Reads "e+12" at p. Returns where it ends, or NULL with *ret_stop at the byte that should have
 * been a digit. It stops growing beyond a million, which no text is long enough to make up for. */
static const char *exponent_read(const char *p, int64_t *exponent, const char **ret_stop)
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

/* Appends the digits at p to *number, modulo 2^64, and returns where they end. */
static const char *digits_read(const char *p, uint64_t *number)
{
    for (; (unsigned char)(*p - '0') < 10; p++)
        *number = *number * 10 + (uint64_t)(*p - '0');
    return p;
}

bool decimal_scan(const char *text, struct decimal *ret, const char **ret_stop)
{
    bool is_negative = *text == '-';
    const char *p = text + is_negative, *begin = p;
    uint64_t digits = 0;
    int64_t exponent = 0;
    if (*p == '0') {
        begin = ++p; /* no other digit may follow, and this one is not significant */
    } else {
        p = digits_read(p, &digits);
        if (p == begin) {
            *ret_stop = p;
            return false;
        }
    }
    int64_t count = p - begin;
    if (*p == '.') {
        const char *fraction = ++p;
        p = digits_read(p, &digits);
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
        decimal_recount(ret);
    return true;
}

/* An unsigned integer; words from used on are not defined. */
struct big {
    int used;
    uint64_t word[BIG_WORDS]; /* lowest first; the highest used one is not 0 */
};

static void big_set(struct big *big, uint64_t value)
{
    big->word[0] = value;
    big->used = value != 0;
}

/* big = big * factor + addend */
static void big_multiply(struct big *big, uint64_t factor, uint64_t addend)
{
    uint64_t carry = addend;
    for (int i = 0; i < big->used; i++) {
        uint128 product = (uint128)big->word[i] * factor + carry;
        big->word[i] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    if (carry != 0) {
        assert(big->used < BIG_WORDS);
        big->word[big->used++] = carry;
    }
}

static void big_multiply_pow5(struct big *big, int64_t exponent)
{
    const uint64_t pow5_27 = 7450580596923828125; /* the last that one word holds */
    for (; exponent >= 27; exponent -= 27)
        big_multiply(big, pow5_27, 0);
    uint64_t rest = 1;
    for (; exponent > 0; exponent--)
        rest *= 5;
    big_multiply(big, rest, 0);
}

static void big_shift(struct big *big, int64_t bits)
{
    if (big->used == 0)
        return;
    int words = (int)(bits / 64);
    big_multiply(big, (uint64_t)1 << bits % 64, 0);
    assert(big->used + words <= BIG_WORDS);
    memmove(big->word + words, big->word, (size_t)big->used * sizeof big->word[0]);
    memset(big->word, 0, (size_t)words * sizeof big->word[0]);
    big->used += words;
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->used != b->used)
        return a->used < b->used ? -1 : 1;
    for (int i = a->used - 1; i >= 0; i--)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

/* All digits of the decimal as one integer; *ret_exponent is the power of ten that goes with it. */
static void big_read(const struct decimal *decimal, struct big *ret, int64_t *ret_exponent)
{
    *ret_exponent = decimal->exponent;
    big_set(ret, decimal->digits);
    if (!decimal->is_cut)
        return;
    assert(decimal->end - decimal->text <= LIMIT_NUMBER_BYTES);
    big_set(ret, 0);
    int64_t count = 0;
    uint64_t chunk = 0, scale = 1;
    for (const char *p = digits_begin(decimal); p < decimal->end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.')
            continue;
        chunk = chunk * 10 + (uint64_t)(*p - '0');
        scale *= 10;
        if (++count % DECIMAL_DIGITS_MAX == 0) {
            big_multiply(ret, scale, chunk);
            chunk = 0;
            scale = 1;
        }
    }
    big_multiply(ret, scale, chunk);
    *ret_exponent -= count - DECIMAL_DIGITS_MAX;
}

/* Compares |decimal| with m 2^e. Both sides become integers: what has a negative exponent goes to
 * the other side. The two are near each other, so neither is longer than the text makes it. */
static int magnitude_compare_big(const struct decimal *decimal, uint64_t m, int64_t e)
{
    struct big left, right;
    int64_t exponent;
    big_read(decimal, &left, &exponent);
    big_set(&right, m);
    if (exponent >= 0)
        big_multiply_pow5(&left, exponent);
    else
        big_multiply_pow5(&right, -exponent);
    if (e >= exponent)
        big_shift(&right, e - exponent);
    else
        big_shift(&left, exponent - e);
    return big_compare(&left, &right);
}

/* The same in 128 bits, for 19 digits and a small exponent. m 2^e is the decimal to within a factor
 * of two, so that the shifted side is about as long as the other: under 2^127 in all four cases. */
static int magnitude_compare(const struct decimal *decimal, uint64_t m, int64_t e)
{
    int64_t exponent = decimal->exponent;
    if (decimal->is_cut || exponent < -POW10_ONE_WORD_MAX || exponent > POW10_ONE_WORD_MAX)
        return magnitude_compare_big(decimal, m, e);
    uint128 left = decimal->digits, right = m;
    uint64_t pow5 = 1;
    for (int64_t i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        pow5 *= 5;
    if (exponent >= 0)
        left *= pow5;
    else
        right *= pow5;
    if (e >= exponent)
        right <<= e - exponent;
    else
        left <<= exponent - e;
    return (left > right) - (left < right);
}

int decimal_side(const struct decimal *decimal, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= ~((uint64_t)1 << 63);
    if (bits == 0)
        return decimal->digits != 0;
    if (decimal->exponent == 0 && !decimal->is_cut && decimal->digits <= (uint64_t)1 << 53)
        return 0;
    int biased = (int)(bits >> 52);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    uint64_t m = biased == 0 ? fraction : fraction | (uint64_t)1 << 52;
    return magnitude_compare(decimal, m, (biased == 0 ? 1 : biased) - 1 + FLOAT64_LOWEST);
}

bool decimal_whole(const struct decimal *decimal, uint64_t *ret_magnitude)
{
    uint64_t magnitude = decimal->digits;
    int64_t exponent = magnitude == 0 ? 0 : decimal->exponent;
    if (decimal->is_cut) /* more than 19 digits: 10^19 at least, or a fraction */
        return false;
    for (; exponent < 0; exponent++) { /* 19 rounds at most: magnitude is not 0 */
        if (magnitude % 10 != 0)
            return false;
        magnitude /= 10;
    }
    for (; exponent > 0; exponent--) /* likewise: 10^19 is too large */
        if (__builtin_mul_overflow(magnitude, 10, &magnitude))
            return false;
    if (magnitude > (uint64_t)1 << 63)
        return false;
    *ret_magnitude = magnitude;
    return true;
}

double decimal_nudge(double value, int side)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += (uint64_t)(int64_t)side; /* the order of magnitudes is the order of the bits */
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* value / 2^shift, to nearest even; shift >= 1. */
static uint64_t shift_round(uint128 value, int64_t shift)
{
    if (shift > 128)
        return 0;
    uint128 half = (uint128)1 << (shift - 1);
    uint128 whole = shift == 128 ? 0 : value >> shift;
    uint128 rest = value & ((half << 1) - 1);
    return (uint64_t)whole + (rest > half || (rest == half && (whole & 1) != 0));
}

/* The decimal lies in [low, high] 2^exponent. */
struct enclosure {
    uint128 low, high;
    int64_t exponent;
};

static struct enclosure enclosure_of(const struct decimal *decimal)
{
    assert(decimal->digits != 0);
    int q = (int)decimal->exponent;
    struct pow10 power = pow10_of(q);
    int zeros = __builtin_clzll(decimal->digits);
    uint64_t digits = decimal->digits << zeros;
    uint128 low = (uint128)digits * power.high + (uint64_t)((uint128)digits * power.low >> 64);
    /* What was cut: below 1 from the table times digits 2^-64, below 1 from this product. */
    uint128 slack = q >= 0 && q <= POW10_ONE_WORD_MAX ? 0 : 2;
    if (decimal->is_cut)
        slack += ((uint128)power.high + 1) << zeros;
    uint128 high = low + slack;
    if (high < low)
        high = ~(uint128)0; /* the decimal itself is below 2^128, and this rounds up like it */
    return (struct enclosure){low, high, pow10_log2(q) - 63 - zeros};
}

/* The bits of |decimal| rounded; infinity when it is beyond the range. */
static uint64_t magnitude_round(const struct decimal *decimal)
{
    struct enclosure in = enclosure_of(decimal);
    int64_t top = in.exponent + 126 + (int64_t)(in.low >> 127);
    int64_t last = top - (FLOAT64_DIGITS - 1); /* exponent of the last bit kept */
    if (last < FLOAT64_LOWEST)
        last = FLOAT64_LOWEST;
    /* A carry out of the 53 bits moves into the exponent by itself, and so does the first bit of
     * normal numbers, which is why the exponent starts one lower. */
    uint64_t base = (uint64_t)(last - FLOAT64_LOWEST) << 52;
    uint64_t low = shift_round(in.low, last - in.exponent);
    uint64_t high = shift_round(in.high, last - in.exponent);
    if (low != high && base + low < FLOAT64_INFINITY) {
        assert(high == low + 1);
        int order = magnitude_compare(decimal, 2 * low + 1, last - 1);
        low += order > 0 || (order == 0 && low % 2 != 0);
    }
    return base + low;
}

/* Any decimal. ERR_VALUE: beyond the range. */
static enum error float64_any(const struct decimal *decimal, double *ret)
{
    uint64_t bits = 0;
    if (decimal->digits != 0 && decimal->exponent > 308)
        return ERR_VALUE;
    if (decimal->digits != 0 && decimal->exponent >= POW10_MIN)
        bits = magnitude_round(decimal);
    if (bits >= FLOAT64_INFINITY)
        return ERR_VALUE;
    bits |= (uint64_t)decimal->is_negative << 63;
    memcpy(ret, &bits, sizeof bits);
    return ERR_OK;
}

enum error decimal_float64(const struct decimal *decimal, double *ret)
{
    if (decimal->is_cut || decimal->digits > (uint64_t)1 << 53 ||
        !decimal_exact((double)(int64_t)decimal->digits, decimal->exponent, decimal->is_negative,
                       ret))
        return float64_any(decimal, ret);
    return ERR_OK;
}

/* A float64 in float32's normal range that float32 holds exactly is no midpoint of it: "1" and
 * "0.5" are common and need no second look. */
static bool float32_holds(double value)
{
    return (double)(float)value == value && fabs(value) >= 0x1p-126;
}

enum error decimal_float32(const struct decimal *decimal, float *ret)
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

enum error decimal_narrow(const struct decimal *decimal, struct narrow type, uint16_t *ret)
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
