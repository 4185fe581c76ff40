/* backoff.c - pauses that double (see backoff.h). */
#include "server/backoff.h"

enum { DOUBLINGS_MAX = 20 }; /* 100 ms a million times: beyond every limit that is allowed */

uint64_t backoff_fail_ms(struct backoff *backoff, uint64_t lived_ms, uint64_t pause_max_ms)
{
    if (lived_ms >= BACKOFF_HEALTHY_MS)
        backoff->failures = 0;
    unsigned before = backoff->failures;
    if (before <= DOUBLINGS_MAX)
        backoff->failures++;
    if (before == 0)
        return 0;
    uint64_t pause_ms = (uint64_t)BACKOFF_FIRST_MS << (before - 1);
    return pause_ms < pause_max_ms ? pause_ms : pause_max_ms;
}
