/* clock.h - the one clock of the daemon: nanoseconds on CLOCK_MONOTONIC. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
