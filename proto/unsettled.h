/* unsettled.h - float64s that stand for decimals until the element type is known, and their
 * rounding to it. Private to the reader of arrays, numbers.c.
 *
 * Door: unsettled_note() for every decimal that was stored as a float64, unsettled_convert() once.
 * The float64 alone settles almost every decimal. Remembered are the others: an inexact one that
 * landed on what may be a midpoint of a narrower type, and an inexact one that landed on a whole
 * number, because an integer type wants to know whether it was one, and which, beyond 2^53 too.
 */
#ifndef PROTO_UNSETTLED_H
#define PROTO_UNSETTLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/decimal.h"
#include "proto/tensor.h"

/* Eight bytes, and it belongs to an element of eight: a list is never longer than its array. */
struct doubt {
    uint64_t index : 50; /* of the element */
    int64_t excess : 14; /* |decimal| - |float64| where that is whole and the decimal at most 2^63:
                            up to 512; else EXCESS_OTHER with the sign of the difference */
};

enum { EXCESS_OTHER = 4096 };

struct unsettled {
    struct doubt *entry; /* [count], owned, by rising index */
    size_t count, capacity;
};

void unsettled_fini(struct unsettled *list); /* zeroed is fine */

/* The decimal of element index was rounded to value: remembers what that hides. ERR_NOMEM. */
enum error unsettled_note(struct unsettled *list, uint64_t index, const struct decimal *decimal,
                          double value);

/* Is the decimal of element index another number than its float64? */
bool unsettled_has(const struct unsettled *list, uint64_t index);

/* Rounds count float64s at elements to another real type in place, each as if its decimal had been
 * rounded at once. Returns the index of the first that the type does not hold, or count;
 * that one and those after it still stand where they were. */
uint64_t unsettled_convert(const struct unsettled *list, enum dtype dtype, char *elements,
                           uint64_t count);

#endif
