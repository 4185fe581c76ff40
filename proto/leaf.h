/* leaf.h - one leaf of an array: a number or one of the words NaN, Infinity and -Infinity.
 *
 * Door: leaf_read() takes the text apart, leaf_store() rounds it to an element. Private to the
 * reader of arrays, numbers.c; a new element type is one row in leaf_store().
 */
#ifndef PROTO_LEAF_H
#define PROTO_LEAF_H

#include <stdbool.h>

#include "proto/decimal.h"
#include "proto/tensor.h"

struct leaf {
    struct decimal decimal; /* unless is_word */
    bool is_word;
    double word;      /* NaN or an infinity */
    const char *stop; /* the byte after it; on failure the byte to blame */
    const char *what; /* on failure: what was expected there, or what was got; static text */
};

/* Reads the leaf at p, which a byte follows that no leaf contains. ERR_SYNTAX: ret->what was
 * expected at ret->stop. ERR_VALUE: ret->what was got, not a number. */
enum error leaf_read(const char *p, struct leaf *ret);

/* Rounds the leaf to an element of a real type at ret; DTYPE_UNKNOWN is stored as float64.
 * ERR_VALUE: the type has no such number, and *ret is untouched. */
enum error leaf_store(const struct leaf *leaf, enum dtype dtype, void *ret);

/* The same for an integer type's number of this sign and magnitude. */
enum error integer_store(bool is_negative, uint64_t magnitude, enum dtype dtype, void *ret);

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* A byte that a number, a word or a quoted word can contain. */
static inline bool is_leaf_byte(char c)
{
    return is_digit(c) || (unsigned char)((c | 0x20) - 'a') < 26 || c == '.' || c == '-' ||
           c == '+' || c == '"';
}

#endif
