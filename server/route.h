/* route.h - the one table of what is served where. A new call is one row. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/error.h"

struct config;
struct exchange;

enum method {
    METHOD_GET = 1 << 0,
    METHOD_HEAD = 1 << 1, /* wherever GET is */
    METHOD_POST = 1 << 2,
    METHOD_OTHERS = 1 << 3, /* PUT, DELETE and so on: known, served nowhere */
};

/* Steps of a request, in order; each fills problem and returns its error to refuse. begin and body
 * may be NULL: then there is nothing to prepare, or a body is refused. finish answers
 * (answer.h), or suspends the exchange; resume answers then. late says why, once the deadline that
 * the exchange set has passed (NULL: it sets none). */
struct route {
    const char
        *path; /* ends with '/': all paths below it; "{name}": any one segment; "{$}": the end */
    unsigned methods; /* enum method bits, without HEAD */
    enum error (*begin)(struct exchange *exchange, struct problem *problem);
    enum error (*body)(struct exchange *exchange, const char *data, size_t size,
                       struct problem *problem);
    enum error (*finish)(struct exchange *exchange, struct problem *problem);
    enum error (*resume)(struct exchange *exchange, struct problem *problem);
    enum error (*late)(struct exchange *exchange, struct problem *problem);
    size_t setting; /* where in struct config the off|on is without which it is not served; 0: none,
                       as a text stands there */
};

/* 0 when the method is not known (501). */
enum method method_parse(const char *name);

/* The row for path and method, of those that config serves. ERR_NOT_FOUND; or ERR_METHOD with the
 * row's path served under other methods, written to allow ("GET, HEAD, POST"). */
enum error route_find(const struct config *config, const char *path, enum method method,
                      const struct route **ret, char *allow, size_t allow_size,
                      struct problem *problem);

/* For counting: the number of the first row that serves path, under whatever method; route_count()
 * when none does. That row's path stands for all of them. */
unsigned route_count(void);
unsigned route_index(const char *path);
const char *route_path(unsigned index);  /* below route_count() */
bool route_computes_dot(unsigned index); /* likewise: it answers with dot products */

/* For a list of the calls that config serves: it is one, and no row before it has the path. */
bool route_is_listed(const struct config *config, unsigned index);

#endif
