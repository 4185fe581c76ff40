/* buckets.h - float64 products of any exponent, one by one: an integer for each 16 exponents.
 *
 * Door: exact_buckets_add(), then exact_buckets_flush() once into limbs. For products that are too
 * far apart for the vector unit's levels (cpu_exact.h). 12 KiB, so that they stay in the first
 * cache.
 *
 * Idea      R. Neal's large accumulator (arXiv 1505.05571), with 16 exponents sharing a bucket, which
 *           takes a shift and gives a table a sixteenth as large; and a table for each sign, because
 *           choosing a table is quicker than negating a number.
 * Headroom  a shifted product has 106 + 15 bits, a bucket 192: 2^70 products.
 */
#ifndef GPU_EXACT_BUCKETS_H
#define GPU_EXACT_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/cpu_exact.h"
#include "gpu/exact/part.h"

enum {
    EXACT_BUCKET_EXPONENTS = 16,
    EXACT_BUCKETS = 256, /* positions of products go up to 2 * 2045 */
};

struct exact_bucket {
    uint64_t word[3]; /* lowest first */
};

struct exact_buckets {
    struct exact_bucket bucket[2][EXACT_BUCKETS]; /* [1]: what is negative */
};

void exact_buckets_init(struct exact_buckets *buckets);

/* All operands are finite. */
void exact_buckets_add(struct exact_buckets *buckets, const struct cpu_exact *exact,
                       const double *a, const double *b, size_t count);

/* Moves everything to part, which is of float64's layout; the buckets are empty afterwards. */
void exact_buckets_flush(struct exact_buckets *buckets, struct exact_part *part);

#endif
