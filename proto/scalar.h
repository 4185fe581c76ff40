/* scalar.h - one number of an answer: its text, its bits, its rounding. Private to proto/.
 *
 * Every function takes the real type of the number (dtype_part() of result_dtype): a complex result
 * is two numbers. DTYPE_INT64 stands for the exact integer, which may be longer than 64 bits.
 */
#ifndef PROTO_SCALAR_H
#define PROTO_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/tensor.h"
#include "proto/text.h"
#include "proto/value.h"

/* Rounds a fast sum, a float64, to dtype, once more, and widens its bound by what that has moved;
 * sets the flags inexact, overflow and underflow where they apply. */
void scalar_round(struct dot_value *value, enum dtype dtype);

/* Can bits of dtype's size hold it? Only an integer may be too long. */
bool scalar_fits(const struct dot_value *value, enum dtype dtype);

/* The bits of a number that fits, in the low end; NaN always in its one canonical form. */
uint64_t scalar_bits(const struct dot_value *value, enum dtype dtype);

/* As JSON: the shortest decimal that reads back, an integer of any length, or null. */
void scalar_write(struct text *text, const struct dot_value *value, enum dtype dtype);
void scalar_write_float64(struct text *text, double value);

/* Does a number alone not say it all: not finite, or an integer beyond 2^53, which many readers of
 * JSON round? Then its text is a JSON string; else null. */
bool scalar_has_text(const struct dot_value *value, enum dtype dtype);
void scalar_write_text(struct text *text, const struct dot_value *value, enum dtype dtype);

/* A JSON string, "0x3c00": as many digits as the type has, 48 for an integer beyond 64 bits. */
void scalar_write_bits(struct text *text, const struct dot_value *value, enum dtype dtype);

#endif
