/* accept.h - which of several media types a client's Accept header prefers.
 * Source: RFC 9110 section 12.5.1. */
#ifndef SERVER_ACCEPT_H
#define SERVER_ACCEPT_H

/* What accept gives to a media type ("application/json"), in thousandths: 1000 when accept is NULL
 * or empty, 0 when the type is not acceptable. The most specific range that matches decides. */
unsigned accept_quality(const char *accept, const char *type);

#endif
