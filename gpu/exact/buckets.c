/* buckets.c - float64 products of any exponent, one by one (see buckets.h). */
#include "gpu/exact/buckets.h"

#include <assert.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

void exact_buckets_init(struct exact_buckets *buckets)
{
    memset(buckets, 0, sizeof *buckets);
}

static_assert(EXACT_BUCKET_EXPONENTS == 16 && EXACT_BUCKETS == 256, "as struct cpu_split says");

static void add_split(struct exact_bucket *bucket, const struct cpu_split *split, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t *word = bucket[split->bucket[i]].word;
        const uint128 product = (uint128)split->x[i] * split->y[i];
        const uint128 low = (uint128)word[1] << 64 | word[0];
        const uint128 sum = low + product;
        word[0] = (uint64_t)sum;
        word[1] = (uint64_t)(sum >> 64);
        word[2] += sum < low;
    }
}

void exact_buckets_add(struct exact_buckets *buckets, const struct cpu_exact *exact,
                       const double *a, const double *b, size_t count)
{
    struct cpu_split split;
    for (size_t done = 0; done < count; done += CPU_SPLIT) {
        size_t some = count - done < CPU_SPLIT ? count - done : CPU_SPLIT;
        exact->split64(a + done, b + done, some, &split);
        add_split(buckets->bucket[0], &split, some);
    }
}

void exact_buckets_flush(struct exact_buckets *buckets, struct exact_part *part)
{
    assert(part->layout.limbs == EXACT_FLOAT64_LIMBS);
    exact_part_reserve(part, 2 * EXACT_BUCKETS * 3);
    for (int sign = 0; sign < 2; sign++)
        for (int i = 0; i < EXACT_BUCKETS; i++)
            for (int k = 0; k < 3; k++)
                exact_part_add(part, buckets->bucket[sign][i].word[k],
                               i * EXACT_BUCKET_EXPONENTS + 64 * k, -sign);
    exact_buckets_init(buckets);
}
