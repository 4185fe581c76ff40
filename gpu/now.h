/* now.h - the clock of this room: nanoseconds on CLOCK_MONOTONIC, as in struct job_times. */
#ifndef GPU_NOW_H
#define GPU_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
