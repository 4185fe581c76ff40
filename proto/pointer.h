/* pointer.h - fills in where a problem lies: its JSON pointer (RFC 6901).
 *
 * All return problem->error, so that a failure reads `return pointer_set(problem, "/a");`. A
 * pointer that is too long is cut.
 */
#ifndef PROTO_POINTER_H
#define PROTO_POINTER_H

#include "proto/error.h"

enum error pointer_set(struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* prefix, a slash, and key with its '~' and '/' escaped. */
enum error pointer_key(struct problem *problem, const char *prefix, const char *key);

/* Puts prefix before the pointer that is there. */
enum error pointer_prefix(struct problem *problem, const char *prefix);

#endif
