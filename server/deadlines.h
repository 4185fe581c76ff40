/* deadlines.h - the deadlines of one loop's requests, earliest first.
 *
 * Requests ask for times of their own, so unlike a connection's phases these come in any order: a
 * pairing heap whose links lie in the requests, so that nothing is allocated. Setting one costs a
 * comparison, taking the earliest a logarithm on average.
 * Source: M. Fredman, R. Sedgewick, D. Sleator, R. Tarjan, "The pairing heap", 1986.
 */
#ifndef SERVER_DEADLINES_H
#define SERVER_DEADLINES_H

#include <stdint.h>

struct deadline {
    int64_t at_ns; /* 0: not set */
    struct deadline *child, *next;
    struct deadline *previous; /* the sibling before, or the parent */
};

struct deadlines {
    struct deadline *first; /* zeroed: empty */
};

/* Sets it, or moves it. */
void deadlines_set(struct deadlines *all, struct deadline *deadline, int64_t at_ns);
void deadlines_clear(struct deadlines *all, struct deadline *deadline); /* unset is fine */

/* The earliest, cleared, when it is not later than now_ns; else NULL. */
struct deadline *deadlines_take(struct deadlines *all, int64_t now_ns);
int64_t deadlines_next_ns(const struct deadlines *all); /* INT64_MAX: there is none */

#endif
