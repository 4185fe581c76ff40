/* digits16.h - the last digits of a decimal, all at once, with the point taken out among them.
 *
 * Door: digits16_read() for the last 16 of them, digits4_read() for the four before those. The
 * characters before stop are loaded twice, one apart: digits behind the point come from where they
 * stand, those before it from where they would stand without it. Characters that are not of the
 * number count as zeros. So neither its length nor the place of its point costs a branch.
 *
 * Private to the readers of decimals. Without SSE2 two words of digits8.h do the same, at 0.6 of
 * the speed.
 */
#ifndef PROTO_DIGITS16_H
#define PROTO_DIGITS16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "proto/digits8.h"

enum { DIGITS_LAST = 20 }; /* that the two read together; they load one byte more */

/* Of the 20 bytes from n on, the last n are 0xff and the others 0. */
static const unsigned char digits_last[2 * DIGITS_LAST] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

#ifdef __SSE2__

struct digits16 {
    __m128i eights; /* twice the numbers that the first and the last eight digits make */
};

static inline __m128i digits16_load(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* How many of the 16 characters at p come before the first point. */
static inline size_t digits16_point(const char *p)
{
    __m128i points = _mm_cmpeq_epi8(digits16_load(p), _mm_set1_epi8('.'));
    return (size_t)__builtin_ctz((unsigned)_mm_movemask_epi8(points) | 1u << 16);
}

/* The last `count` digits up to stop, 16 at most, of which `places` or all are behind a point; with
 * places 0 the point is the last character. False: other characters are among them. */
static inline bool digits16_read(const char *stop, size_t places, size_t count,
                                 struct digits16 *ret)
{
    const unsigned char *last = digits_last + DIGITS_LAST - 16;
    __m128i behind = digits16_load(last + places), before = digits16_load(stop - 17);
    __m128i text = _mm_xor_si128(
        before, _mm_and_si128(_mm_xor_si128(digits16_load(stop - 16), before), behind));
    __m128i digits =
        _mm_and_si128(_mm_xor_si128(text, _mm_set1_epi8('0')), digits16_load(last + count));
    __m128i others = _mm_adds_epu8(digits, _mm_set1_epi8(0x80 - 10));
    /* Two digits a + 256 b times 2561 are 256 (10 a + b) + a, modulo 2^16. GCC 12, if it knows the
     * factor, shifts and adds instead, which makes all of reading 6 % slower. */
    __m128i factor = _mm_set1_epi16(2561);
    __asm__("" : "+x"(factor));
    __m128i twos = _mm_srli_epi16(_mm_mullo_epi16(digits, factor), 8);
    __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(100 + (1 << 16)));
    fours = _mm_packs_epi32(fours, fours);
    ret->eights = _mm_madd_epi16(fours, _mm_set1_epi32(10000 + (1 << 16)));
    return _mm_movemask_epi8(others) == 0;
}

static inline uint64_t digits16_value(struct digits16 digits)
{
    uint64_t eights = (uint64_t)_mm_cvtsi128_si64(digits.eights);
    return (eights & UINT32_MAX) * 100000000 + (eights >> 32);
}

/* The same as a float64, which holds it up to 2^53. */
static inline double digits16_float64(struct digits16 digits)
{
    __m128d eights = _mm_mul_pd(_mm_cvtepi32_pd(digits.eights), _mm_set_pd(1, 1e8));
    return _mm_cvtsd_f64(_mm_add_sd(eights, _mm_unpackhi_pd(eights, eights)));
}

#else

struct digits16 {
    uint64_t eights[2];
};

static inline size_t digits16_point(const char *p)
{
    size_t count = 0;
    while (count < 16 && p[count] != '.')
        count++;
    return count;
}

static inline bool digits16_read(const char *stop, size_t places, size_t count,
                                 struct digits16 *ret)
{
    uint64_t others = 0;
    for (int i = 0; i < 2; i++) {
        const unsigned char *last = digits_last + DIGITS_LAST - 16 + 8 * i;
        uint64_t digits = digits8_load(stop - 16 + 8 * i), behind, kept;
        uint64_t before = digits8_load(stop - 17 + 8 * i);
        memcpy(&behind, last + places, sizeof behind);
        memcpy(&kept, last + count, sizeof kept);
        digits = ((digits & behind) | (before & ~behind)) & kept;
        others |= digits8_others(digits);
        ret->eights[i] = digits8_value(digits);
    }
    return others == 0;
}

static inline uint64_t digits16_value(struct digits16 digits)
{
    return digits.eights[0] * 100000000 + digits.eights[1];
}

static inline double digits16_float64(struct digits16 digits)
{
    return (double)(int64_t)digits16_value(digits);
}

#endif

/* Of the last `count` digits up to stop, 16 to 20, those that are not among the last 16. */
static inline bool digits4_read(const char *stop, size_t places, size_t count, uint64_t *ret)
{
    uint32_t text, before, behind, kept;
    memcpy(&text, stop - DIGITS_LAST, sizeof text);
    memcpy(&before, stop - DIGITS_LAST - 1, sizeof before);
    memcpy(&behind, digits_last + places, sizeof behind);
    memcpy(&kept, digits_last + count, sizeof kept);
    uint32_t digits = (((text & behind) | (before & ~behind)) ^ (uint32_t)BYTES8('0')) & kept;
    uint32_t twos = digits * 2561 >> 8 & 0x00ff00ff;
    *ret = twos * (100 * 65536 + 1) >> 16;
    return (((digits + (uint32_t)BYTES8(0x76)) | digits) & (uint32_t)BYTES8(0x80)) == 0;
}

#endif
