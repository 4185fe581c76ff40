/* backoff.h - how long to wait before something that keeps failing is started again.
 *
 * The first failure after a good while costs no pause: the cause may be gone. Every further one in
 * a row doubles it, up to a limit.
 */
#ifndef SERVER_BACKOFF_H
#define SERVER_BACKOFF_H

#include <stdint.h>

enum {
    BACKOFF_FIRST_MS = 100,    /* the pause after the second failure in a row */
    BACKOFF_HEALTHY_MS = 10000 /* what lived for so long did not fail in a row */
};

struct backoff {
    unsigned failures; /* in a row */
};

/* Counts one more failure of something that lived for so long (0: it did not even start), and
 * returns the pause before the next try. */
uint64_t backoff_fail_ms(struct backoff *backoff, uint64_t lived_ms, uint64_t pause_max_ms);

#endif
