/* numbers.h - reads one JSON array of numbers, nested or not, while its text arrives.
 *
 * Door: numbers_create(), numbers_feed() with pieces cut anywhere, numbers_convert() once the
 * element type is known. Elements land in the request's buffer as they are read; no text is kept
 * but the one number that a piece boundary cut.
 *
 * Every decimal is rounded once, to nearest even, to its element type; an integer type takes whole
 * numbers of its range alone, however they are written ("1e2", "3.0"). A complex element is an
 * array of two numbers, so that its operand nests one level deeper than its shape. When dtype comes
 * after the array, numbers are stored as float64, and what that hides of a decimal is remembered
 * (unsettled.h) for numbers_convert().
 *
 * Text is RFC 8259; NaN, Infinity and -Infinity are read bare or quoted. No locale is consulted.
 * Source: D. Lemire, "Number parsing at a gigabyte per second", 2021; W. Clinger, 1990.
 */
#ifndef PROTO_NUMBERS_H
#define PROTO_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/buffer.h"
#include "proto/tensor.h"

struct numbers; /* layout in numbers.c */

/* Starts reading an array into buffer at its next aligned offset. DTYPE_UNKNOWN stores float64 for
 * numbers_convert(). max_bytes bounds buffer->used (ERR_TOO_LARGE). */
enum error numbers_create(struct numbers **ret, struct buffer *buffer, enum dtype dtype,
                          size_t max_bytes);
void numbers_destroy(struct numbers *numbers);

/* Reads on. The first byte ever fed is the array's '['. *ret_used bytes were taken: all of them, or
 * up to and including the closing ']' when *ret_done. On failure problem->pointer is relative to
 * the array ("/3/17") and problem->offset to the array's first byte: ERR_SYNTAX (not JSON),
 * ERR_VALUE (1e999, a string, null, a fraction for an integer type, a number for a complex one,
 * deeper than LIMIT_RANK), ERR_SHAPE (ragged rows), ERR_TOO_LARGE, ERR_NOMEM. After a failure only
 * destroy is allowed. */
enum error numbers_feed(struct numbers *numbers, const char *data, size_t size, size_t *ret_used,
                        bool *ret_done, struct problem *problem);

/* Where the finished array lies: rank 1 or more. Its dtype is known, by now at least. */
struct tensor numbers_tensor(const struct numbers *numbers);

/* Rounds the finished array to dtype in place. ERR_VALUE with a pointer when dtype does not hold a
 * number, or when a complex one finds no pairs. A no-op when it was read as dtype already. */
enum error numbers_convert(struct numbers *numbers, enum dtype dtype, struct problem *problem);

/* How the detail of a problem shows a byte of a document: '{', or "byte 0x0c". Returns text. */
const char *byte_print(char byte, char text[static 16]);

/* One number of a real type from text[0..size), for query strings and tests: the same reader. */
enum error numbers_parse(const char *text, size_t size, enum dtype dtype, void *ret_element);

#endif
