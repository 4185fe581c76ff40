/* door.h - the HTTP side of the daemon in the test's own process, and a client of it.
 *
 * Door: door_open() once, then door_talk() with the bytes of requests. The loop listens on a socket
 * of this machine alone, which has no place in any network or folder; everything behind it is the
 * daemon's, with the tests' device (gpu/faulty.h) as cuda:0.
 */
#ifndef TESTS_FAULT_DOOR_H
#define TESTS_FAULT_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DOOR_INLINE_TERMS = 8, /* a longer job goes to the worker */
    DOOR_BODY_BYTES = 1 << 20,
    DOOR_BUDGET_BYTES = 32 << 20, /* room for the slices of several streams */
};

/* Starts it; it ends with the process. False: out of something. */
bool door_open(void);

struct door_answers {
    const char *data; /* all that came, with a NUL behind it; good until the next call */
    size_t size;
    const char *wrong; /* what must not be (the other side did not close in time), or NULL */
};

/* How a client sends. */
struct door_manner {
    size_t (*next)(void *context, size_t left); /* size of the next piece; NULL: all at once */
    void *context;
    int patience_ms; /* once all is sent and nothing came for so long, it says that no more will come,
                        which ends its jobs as well; -1: it never says so */
};

/* Sends data and reads until the other side closes. */
struct door_answers door_talk(const void *data, size_t size, const struct door_manner *manner);

/* Waits until nobody is connected and all memory for operands and answers is back. False: it is
 * not. */
bool door_is_clear(void);

#endif
