/* histogram.h - how long things took, counted in buckets from 1 µs to 60 s.
 *
 * Door: histogram_add() from the one thread that a histogram belongs to; histogram_collect() from
 * any, once for each thread's, into a tally; histogram_quantile_ns() and whoever prints read those.
 * Adding is one search among 25 bounds and two plain stores: a locked instruction would cost as
 * much. A histogram that is collected while its thread adds may lack the very latest, in one field
 * or in both, and nothing else.
 */
#ifndef SERVER_HISTOGRAM_H
#define SERVER_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

/* Upper bounds in microseconds, each inclusive: 1, 2 and 5 of every decade. */
#define HISTOGRAM_BOUNDS(X)                                                                       \
    X(1)                                                                                          \
    X(2)                                                                                          \
    X(5)                                                                                          \
    X(10)                                                                                         \
    X(20) X(50) X(100) X(200) X(500) X(1000) X(2000) X(5000) X(10000) X(20000) X(50000) X(100000) \
        X(200000) X(500000) X(1000000) X(2000000) X(5000000) X(10000000) X(20000000) X(50000000)  \
            X(60000000)

#define X(bound) +1
enum { HISTOGRAM_BUCKETS = HISTOGRAM_BOUNDS(X) }; /* and one more, for what took longer */
#undef X

struct histogram {
    atomic_ullong bucket[HISTOGRAM_BUCKETS + 1]; /* one thread adds, any reads; relaxed */
    atomic_ullong sum_ns;                        /* likewise */
};

/* Several histograms together. */
struct histogram_tally {
    uint64_t bucket[HISTOGRAM_BUCKETS + 1];
    uint64_t count, sum_ns; /* count is the sum of the buckets */
};

void histogram_add(struct histogram *histogram, int64_t ns); /* less than 0 counts as 0 */
void histogram_collect(const struct histogram *histogram, struct histogram_tally *tally);

uint64_t histogram_bound_us(unsigned bucket); /* of those below HISTOGRAM_BUCKETS */

/* The duration that `percent` of them did not exceed, as if they lay evenly within their bucket; of
 * the last bucket, which has no end, the beginning. 0 when there are none. */
int64_t histogram_quantile_ns(const struct histogram_tally *tally, unsigned percent);

#endif
