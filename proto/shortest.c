/* shortest.c - Schubfach: the shortest decimal in a float's rounding interval (see shortest.h).
 *
 * v = c 2^q lies between the neighbours' midpoints at (4c - 2) 2^(q-2) and (4c + 2) 2^(q-2). With
 * 10^k <= 2^q < 10^(k+1), scaled by 10^-k, the interval is one to ten units long: it holds a
 * multiple of one, and at most one multiple of ten, which is the shorter answer when it is there.
 * The scaled bounds are computed in 128-bit powers and rounded to odd in the last place, which
 * keeps every comparison with an integer exact (Giulietti, section 9.)
 */
#include "proto/shortest.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "proto/narrow.h"
#include "proto/pow10.h"

typedef unsigned __int128 uint128; /* a word of the compiler, without a standard name */

struct shortest {
    uint64_t digits; /* may end in zeros */
    int exponent;    /* of ten */
};

/* A binary number c 2^q, as its type holds it. */
struct binary {
    uint64_t c;
    int q;
    bool is_lower_near; /* c is a power of two: the one below is half as far as the one above */
};

/* factor g 2^-128 with g the 128-bit power rounded up; odd when anything was cut. What g has too
 * much shows in the low word as less than 2 and does not count as a rest. */
static uint64_t product_to_odd(struct pow10 g, uint64_t factor)
{
    uint128 low = (uint128)g.low * factor;
    uint128 high = (uint128)g.high * factor + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct pow10 pow10_ceiling(int q)
{
    struct pow10 power = pow10_of(q);
    uint64_t up = q < 0 || q > POW10_EXACT_MAX;
    power.low += up;
    power.high += power.low < up; /* cannot carry further: no row is all ones */
    return power;
}

static struct shortest shortest_of(struct binary v)
{
    /* floor(log10(2^q)), or of 3/4 2^q where the interval is that much shorter. */
    int k = (v.q * 1262611 - (v.is_lower_near ? 524031 : 0)) >> 22;
    int shift = v.q + pow10_log2(-k) + 1;
    assert(1 <= shift && shift <= 4);
    struct pow10 g = pow10_ceiling(-k);
    uint64_t is_odd = v.c & 1; /* an even c owns its bounds: they round to it */
    uint64_t lower = product_to_odd(g, (4 * v.c - 2 + v.is_lower_near) << shift) + is_odd;
    uint64_t value = product_to_odd(g, (4 * v.c) << shift);
    uint64_t upper = product_to_odd(g, (4 * v.c + 2) << shift) - is_odd;
    uint64_t unit = value / 4, ten = unit / 10; /* lower, value and upper count quarters */
    if (unit >= 10) {
        bool is_down = lower <= 40 * ten, is_up = 40 * ten + 40 <= upper;
        if (is_down != is_up)
            return (struct shortest){ten + is_up, k + 1};
    }
    bool is_down = lower <= 4 * unit, is_up = 4 * unit + 4 <= upper;
    if (is_down != is_up)
        return (struct shortest){unit + is_up, k};
    uint64_t middle = 4 * unit + 2; /* both or neither: the nearer one, ties to even */
    return (struct shortest){unit + (value > middle || (value == middle && unit % 2 != 0)), k};
}

/* Integers below 2^53 are short as they are; the general way finds the same, slower. */
static bool integer_of(struct binary v, struct shortest *ret)
{
    if (v.q > 0 || v.q < -52 || (v.c & (((uint64_t)1 << -v.q) - 1)) != 0)
        return false;
    *ret = (struct shortest){v.c >> -v.q, 0};
    return true;
}

static const char digit_pairs[201] = "00010203040506070809101112131415161718192021222324"
                                     "25262728293031323334353637383940414243444546474849"
                                     "50515253545556575859606162636465666768697071727374"
                                     "75767778798081828384858687888990919293949596979899";

static void pair_write(char *text, uint64_t value)
{
    memcpy(text, digit_pairs + 2 * value, 2);
}

/* Exactly eight digits. */
static void digits8_write(char *text, uint32_t value)
{
    uint32_t high = value / 10000, low = value % 10000;
    pair_write(text, high / 100);
    pair_write(text + 2, high % 100);
    pair_write(text + 4, low / 100);
    pair_write(text + 6, low % 100);
}

/* Up to 17 digits. 1233/4096 is log10(2) nearly enough to miss by one at most; power settles it. */
static int digits_count(uint64_t value)
{
    static const uint64_t power[18] = {0,   1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,
                                       1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17};
    int guess = (64 - __builtin_clzll(value | 1)) * 1233 >> 12;
    return guess + (value >= power[guess]);
}

/* Writes the digits without the zeros at their end. Returns how many; *ret_all is how many there
 * were with them. Up to 17 digits. */
static int digits_write(char *text, uint64_t value, int *ret_all)
{
    char padded[24];
    digits8_write(padded, (uint32_t)(value / 10000000000000000u));
    digits8_write(padded + 8, (uint32_t)(value / 100000000u % 100000000u));
    digits8_write(padded + 16, (uint32_t)(value % 100000000u));
    int all = digits_count(value), count = all;
    memcpy(text, padded + 24 - all, (size_t)all);
    while (count > 1 && text[count - 1] == '0')
        count--;
    *ret_all = all;
    return count;
}

static char *exponent_write(char *text, int exponent)
{
    *text++ = 'e';
    *text++ = exponent < 0 ? '-' : '+';
    unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent);
    if (magnitude >= 100)
        *text++ = (char)('0' + magnitude / 100);
    pair_write(text, magnitude % 100);
    return text + 2;
}

/* Lays count digits out, the point after the first `point` of them; point may lie outside them. */
static char *layout_write(char *text, const char *digits, int count, int point)
{
    if (point <= -4 || point > 16) {
        *text++ = digits[0];
        if (count > 1) {
            *text++ = '.';
            memcpy(text, digits + 1, (size_t)count - 1);
            text += count - 1;
        }
        return exponent_write(text, point - 1);
    }
    if (point <= 0) {
        memcpy(text, "0.0000", 6);
        memcpy(text + 2 - point, digits, (size_t)count);
        return text + 2 - point + count;
    }
    int before = count < point ? count : point;
    memcpy(text, digits, (size_t)before);
    memset(text + before, '0', (size_t)(point - before));
    text += point;
    *text++ = '.';
    if (count <= point)
        *text++ = '0';
    memcpy(text, digits + before, (size_t)(count - before));
    return text + count - before;
}

static size_t binary_write(struct binary v, bool is_negative, char *ret)
{
    char *text = ret;
    if (is_negative)
        *text++ = '-';
    if (v.c == 0) { /* most error bounds */
        memcpy(text, "0.0", 3);
        return (size_t)(text + 3 - ret);
    }
    struct shortest shortest;
    if (!integer_of(v, &shortest))
        shortest = shortest_of(v);
    char digits[24];
    int all;
    int count = digits_write(digits, shortest.digits, &all);
    text = layout_write(text, digits, count, all + shortest.exponent);
    assert(text - ret <= SHORTEST_BYTES);
    return (size_t)(text - ret);
}

/* Takes a float apart: `digits` bits of fraction, exponent of the last bit of subnormals. */
static struct binary binary_of(uint64_t magnitude, int digits, int lowest)
{
    uint64_t fraction = magnitude & (((uint64_t)1 << digits) - 1);
    int biased = (int)(magnitude >> digits);
    if (biased == 0)
        return (struct binary){fraction, lowest, false};
    return (struct binary){fraction | (uint64_t)1 << digits, biased - 1 + lowest,
                           fraction == 0 && biased > 1};
}

size_t shortest_float64(double value, char *ret)
{
    assert(isfinite(value));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return binary_write(binary_of(bits & ~((uint64_t)1 << 63), 52, -1074), bits >> 63, ret);
}

size_t shortest_float32(float value, char *ret)
{
    assert(isfinite(value));
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return binary_write(binary_of(bits & 0x7fffffff, 23, -149), bits >> 31, ret);
}

static size_t shortest_narrow(uint16_t bits, struct narrow type, char *ret)
{
    assert(isfinite(narrow_value(bits, type)));
    struct binary v = binary_of(bits & 0x7fff, type.digits, 1 - type.bias - type.digits);
    return binary_write(v, bits >> 15, ret);
}

size_t shortest_float16(uint16_t bits, char *ret)
{
    return shortest_narrow(bits, narrow_float16(), ret);
}

size_t shortest_bfloat16(uint16_t bits, char *ret)
{
    return shortest_narrow(bits, narrow_bfloat16(), ret);
}
