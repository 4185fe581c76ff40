/* base64.h - bytes in a JSON string as base64, read while the text arrives. Private to proto/.
 *
 * Door: base64_feed() with pieces cut anywhere, from the byte after the opening quote on. Both
 * alphabets are read, the standard one and that for URLs; padding may be left out, but not be
 * wrong; the bits that are left over must be 0. JSON may write a character as an escape ("\/",
 * "\u002b"), and some writers do.
 * Source: RFC 4648 sections 3 to 5.
 */
#ifndef PROTO_BASE64_H
#define PROTO_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

enum { BASE64_ESCAPE_BYTES = 6 }; /* "\u002b" */

struct base64 {
    uint32_t bits;   /* of the digits in hand */
    unsigned digits; /* 0 to 3 */
    unsigned pads;   /* after them */
    char escape[BASE64_ESCAPE_BYTES];
    unsigned escape_size; /* bytes of one that is cut */
};

/* So many bytes at most come of size more characters. */
size_t base64_room(size_t size);

/* Takes *ret_used bytes of text: all, or up to and including the closing quote, when *ret_done.
 * Writes *ret_size bytes to out. ERR_VALUE at text[*ret_used]: it is no base64. */
enum error base64_feed(struct base64 *base64, const char *text, size_t size, size_t *ret_used,
                       char *out, size_t *ret_size, bool *ret_done, struct problem *problem);

#endif
