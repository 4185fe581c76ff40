/* shortest.h - the shortest decimal that reads back to the same bits, as JSON.
 *
 * Always with a point or an exponent ("32.0", "1e+100", "5e-324"), the way Python's repr writes it:
 * fixed from 1e-4 to below 1e16, an exponent elsewhere. Finite values only.
 * Source: R. Giulietti, "The Schubfach way to render doubles", 2020.
 */
#ifndef PROTO_SHORTEST_H
#define PROTO_SHORTEST_H

#include <stddef.h>
#include <stdint.h>

enum { SHORTEST_BYTES = 32 }; /* room that a call may need; no NUL is written */

size_t shortest_float64(double value, char *ret); /* returns the bytes written */
size_t shortest_float32(float value, char *ret);
size_t shortest_float16(uint16_t bits, char *ret); /* of the type's own bits, as in narrow.h */
size_t shortest_bfloat16(uint16_t bits, char *ret);

#endif
