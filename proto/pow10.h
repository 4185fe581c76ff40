/* pow10.h - powers of ten to 128 bits, for reading decimals and for writing them.
 *
 * The table is cut, never rounded: 10^q lies in [t, t + 1) 2^(b - 127), where t is the row and
 * b = pow10_log2(q). It is exact for 0 <= q <= POW10_EXACT_MAX and for no other q.
 */
#ifndef PROTO_POW10_H
#define PROTO_POW10_H

#include <assert.h>
#include <stdint.h>

enum {
    POW10_MIN = -342,       /* 19 digits times 10^-343 are below half the smallest float64 */
    POW10_MAX = 324,        /* what shortest.c needs for the smallest float64 */
    POW10_EXACT_MAX = 55,   /* 5^55 is the last power of five below 2^128 */
    POW10_ONE_WORD_MAX = 27 /* 5^27 is the last below 2^64: low is 0 for 0 <= q <= 27 */
};

struct pow10 {
    uint64_t high, low;
};

extern const struct pow10 pow10_table[POW10_MAX - POW10_MIN + 1];

static inline struct pow10 pow10_of(int q)
{
    assert(POW10_MIN <= q && q <= POW10_MAX);
    return pow10_table[q - POW10_MIN];
}

/* floor(log2 10^q); the generator checks it for every row. */
static inline int pow10_log2(int q)
{
    return (q * 1741647) >> 19;
}

#endif
