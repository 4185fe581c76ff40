/* random.h - the same random numbers every time, for tests and measurements.
 * Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state; /* whoever includes this may define it again, with a value */

static inline uint64_t random_next(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
