/* parts.h - a multipart/form-data body cut into its parts while it arrives. Private to proto/.
 *
 * Door: parts_init() with the Content-Type that names the boundary; parts_next() again and again,
 * on pieces cut anywhere, tells what comes next. A part's bytes are handed on from where they
 * arrived; what is kept is its head, and where in a boundary the last piece was cut.
 * Source: RFC 7578 (form-data), RFC 2046 section 5.1 (multipart).
 */
#ifndef PROTO_PARTS_H
#define PROTO_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

enum {
    PARTS_BOUNDARY_BYTES = 70,                        /* at most (RFC 2046) */
    PARTS_DELIMITER_BYTES = PARTS_BOUNDARY_BYTES + 4, /* CR LF and two hyphens before it */
};

enum parts_event {
    PARTS_MORE, /* nothing: the next piece is wanted */
    PARTS_HEAD, /* a part begins: head */
    PARTS_DATA, /* bytes of it: data[0..size) */
    PARTS_END,  /* it is over */
};

struct part_head {
    char name[LIMIT_NAME_BYTES];
    char type[LIMIT_NAME_BYTES]; /* its Content-Type without parameters; empty: none */
    bool has_name, has_filename;
};

enum parts_state { PARTS_PREAMBLE, PARTS_DELIMITED, PARTS_HEADER, PARTS_BODY, PARTS_EPILOGUE };

struct parts {
    char delimiter[PARTS_DELIMITER_BYTES + 1];
    size_t delimiter_size;
    bool is_in_delimiter[256]; /* by byte */
    enum parts_state state;
    size_t matched;  /* bytes of a delimiter that the last piece ended with */
    char last;       /* in PARTS_DELIMITED: '-' or CR, if that came last */
    uint64_t offset; /* in the body, of the next byte */
    char line[LIMIT_PART_HEAD_BYTES];
    size_t line_size; /* of the header line in hand, CR and LF included */
    size_t head_size; /* of the head in hand */
    struct part_head head;
    const char *data;
    size_t size;
};

/* ERR_SYNTAX: content_type names no boundary, or one that may not be. */
enum error parts_init(struct parts *parts, const char *content_type, struct problem *problem);

/* Takes *ret_used bytes and tells what they were. ERR_SYNTAX with the offset in the body,
 * ERR_TOO_LARGE (a head of more than LIMIT_PART_HEAD_BYTES), ERR_UNSUPPORTED (a coding of the
 * part). */
enum error parts_next(struct parts *parts, const char *data, size_t size, size_t *ret_used,
                      enum parts_event *ret, struct problem *problem);

/* Has the last boundary come? What follows it is ignored. */
bool parts_are_over(const struct parts *parts);

#endif
