/* digits16.h - the last digits of a decimal, all at once, with the point taken out among them.
 *
 * Door: digits16_read() for up to 16 of them, digits20_read() for up to 20. The characters before
 * stop are loaded twice, one apart: digits behind the point come from where they stand, those
 * before it from where they would stand without it. Characters that are not of the number count as
 * zeros. So neither its length nor the place of its point costs a branch.
 *
 * Private to the readers of decimals. Without SSE2 words of digits8.h do the same, at 0.6 of the
 * speed.
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

enum {
    DIGITS_LAST = 20,   /* that are read at most */
    DIGITS_BEFORE = 25, /* bytes before stop that are loaded */
};

/* Of the 24 bytes from n on, the last n are 0xff and the others 0. */
static const unsigned char digits_last[2 * 24] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0,    0,    0,    0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

#ifdef __SSE2__

struct digits16 {
    __m128i eights; /* twice the numbers that the first and the last eight digits make */
};

static inline __m128i digits16_load(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

static inline __m128i digits8_loadl(const void *p)
{
    return _mm_loadl_epi64((const __m128i *)p);
}

/* How many of the 16 characters at p come before the first point. */
static inline size_t digits16_point(const char *p)
{
    __m128i points = _mm_cmpeq_epi8(digits16_load(p), _mm_set1_epi8('.'));
    return (size_t)__builtin_ctz((unsigned)_mm_movemask_epi8(points) | 1u << 16);
}

/* Characters as the values of digits: from text where the point is before them, else from
 * before. */
static inline __m128i digits_merge(__m128i text, __m128i before, __m128i behind)
{
    text = _mm_xor_si128(before, _mm_and_si128(_mm_xor_si128(text, before), behind));
    return _mm_xor_si128(text, _mm_set1_epi8('0'));
}

static inline __m128i digits16_text(const char *stop, size_t places, size_t count)
{
    const unsigned char *last = digits_last + 8;
    __m128i digits = digits_merge(digits16_load(stop - 16), digits16_load(stop - 17),
                                  digits16_load(last + places));
    return _mm_and_si128(digits, digits16_load(last + count));
}

/* The four before the last 16, in the upper half of eight. */
static inline __m128i digits4_text(const char *stop, size_t places, size_t count)
{
    __m128i digits = digits_merge(digits8_loadl(stop - 24), digits8_loadl(stop - 25),
                                  digits8_loadl(digits_last + places));
    return _mm_and_si128(digits, digits8_loadl(digits_last + count));
}

/* The numbers that four digits each make. */
static inline __m128i digits16_fours(__m128i digits)
{
    /* Two digits a + 256 b times 2561 are 256 (10 a + b) + a, modulo 2^16. GCC 12, if it knows the
     * factor, shifts and adds instead, which makes all of reading 6 % slower. */
    __m128i factor = _mm_set1_epi16(2561);
    __asm__("" : "+x"(factor));
    __m128i twos = _mm_srli_epi16(_mm_mullo_epi16(digits, factor), 8);
    return _mm_madd_epi16(twos, _mm_set1_epi32(100 + (1 << 16)));
}

static inline __m128i digits16_eights(__m128i fours, __m128i more_fours)
{
    return _mm_madd_epi16(_mm_packs_epi32(fours, more_fours), _mm_set1_epi32(10000 + (1 << 16)));
}

/* The last `count` digits up to stop, 16 at most, of which `places` or all are behind a point; with
 * places 0 the point is the last character. False: other characters are among them. */
static inline bool digits16_read(const char *stop, size_t places, size_t count,
                                 struct digits16 *ret)
{
    __m128i digits = digits16_text(stop, places, count), fours = digits16_fours(digits);
    ret->eights = digits16_eights(fours, fours);
    return _mm_movemask_epi8(_mm_adds_epu8(digits, _mm_set1_epi8(0x7f - 9))) == 0;
}

/* As a float64, which holds it up to 2^53. */
static inline double digits16_float64(struct digits16 digits)
{
    __m128d eights = _mm_mul_pd(_mm_cvtepi32_pd(digits.eights), _mm_set_pd(1, 1e8));
    return _mm_cvtsd_f64(_mm_add_sd(eights, _mm_unpackhi_pd(eights, eights)));
}

/* digits16_read() for up to 20 digits, as an integer; the 20th from the end must be 0, so that 64
 * bits hold it. is_far: all of the last 16 are behind the point. */
static inline bool digits20_read(const char *stop, bool is_far, size_t places, size_t count,
                                 uint64_t *ret)
{
    const char n = 0x7f - 9, z = 0x7f; /* what is added to a digit, and to the one that must be 0 */
    __m128i limits = _mm_set_epi8(0, 0, 0, 0, 0, 0, 0, 0, n, n, n, z, z, z, z, z);
    __m128i tail = is_far ? _mm_xor_si128(digits16_load(stop - 16), _mm_set1_epi8('0'))
                          : digits16_text(stop, places, count);
    __m128i head = digits4_text(stop, places, count);
    __m128i others =
        _mm_or_si128(_mm_adds_epu8(tail, _mm_set1_epi8(n)), _mm_adds_epu8(head, limits));
    __m128i eights = digits16_eights(digits16_fours(tail), digits16_fours(head));
    __m128i sixteen = _mm_add_epi64(_mm_mul_epu32(eights, _mm_set1_epi64x(100000000)),
                                    _mm_srli_epi64(eights, 32));
    *ret = (uint64_t)_mm_cvtsi128_si64(_mm_srli_si128(eights, 8)) * 10000000000000000 +
           (uint64_t)_mm_cvtsi128_si64(sixteen);
    return _mm_movemask_epi8(others) == 0;
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

/* Eight of the last 24 digits. */
static inline uint64_t digits24_part(const char *stop, size_t places, size_t count, int part)
{
    const unsigned char *last = digits_last + 8 * part;
    uint64_t text = digits8_load(stop - 24 + 8 * part), behind, kept;
    uint64_t before = digits8_load(stop - 25 + 8 * part);
    memcpy(&behind, last + places, sizeof behind);
    memcpy(&kept, last + count, sizeof kept);
    return ((text & behind) | (before & ~behind)) & kept;
}

static inline bool digits16_read(const char *stop, size_t places, size_t count,
                                 struct digits16 *ret)
{
    uint64_t first = digits24_part(stop, places, count, 1);
    uint64_t last = digits24_part(stop, places, count, 2);
    ret->eights[0] = digits8_value(first);
    ret->eights[1] = digits8_value(last);
    return (digits8_others(first) | digits8_others(last)) == 0;
}

static inline double digits16_float64(struct digits16 digits)
{
    return (double)(int64_t)(digits.eights[0] * 100000000 + digits.eights[1]);
}

static inline bool digits20_read(const char *stop, bool is_far, size_t places, size_t count,
                                 uint64_t *ret)
{
    (void)is_far;
    uint64_t head = digits24_part(stop, places, count, 0);
    struct digits16 tail;
    bool is_tail = digits16_read(stop, places, count, &tail);
    *ret = (digits8_value(head) * 100000000 + tail.eights[0]) * 100000000 + tail.eights[1];
    return is_tail && digits8_others(head) == 0 && (head >> 32 & 0xff) == 0;
}

#endif

#endif
