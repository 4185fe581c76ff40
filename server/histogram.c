/* histogram.c - durations counted in buckets (see histogram.h). */
#include "server/histogram.h"

#include <assert.h>

#define X(bound) bound,
static const uint64_t bound_us[HISTOGRAM_BUCKETS] = {HISTOGRAM_BOUNDS(X)};
#undef X

uint64_t histogram_bound_us(unsigned bucket)
{
    assert(bucket < HISTOGRAM_BUCKETS);
    return bound_us[bucket];
}

/* The first bucket whose bound is not below ns. */
static unsigned bucket_of(uint64_t ns)
{
    unsigned low = 0, high = HISTOGRAM_BUCKETS;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (bound_us[middle] * 1000 < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Only the histogram's thread writes, so nothing can come between the load and the store. */
static void add(atomic_ullong *counter, uint64_t more)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + more, memory_order_relaxed);
}

void histogram_add(struct histogram *histogram, int64_t ns)
{
    uint64_t duration = ns > 0 ? (uint64_t)ns : 0;
    add(&histogram->bucket[bucket_of(duration)], 1);
    add(&histogram->sum_ns, duration);
}

void histogram_collect(const struct histogram *histogram, struct histogram_tally *tally)
{
    for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&histogram->bucket[i], memory_order_relaxed);
        tally->bucket[i] += count;
        tally->count += count;
    }
    tally->sum_ns += atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
}

int64_t histogram_quantile_ns(const struct histogram_tally *tally, unsigned percent)
{
    assert(percent <= 100);
    double rank = (double)tally->count * percent / 100;
    double below = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double from_us = i > 0 ? (double)bound_us[i - 1] : 0;
        double here = (double)tally->bucket[i];
        if (here > 0 && below + here >= rank)
            return (int64_t)((from_us + ((double)bound_us[i] - from_us) * (rank - below) / here) *
                             1000);
        below += here;
    }
    return tally->count > 0 ? (int64_t)bound_us[HISTOGRAM_BUCKETS - 1] * 1000 : 0;
}
