/* clock.h - the one clock of devices and daemon, of job_times and deadlines: nanoseconds on
 * CLOCK_MONOTONIC. */
#ifndef GPU_CLOCK_H
#define GPU_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
