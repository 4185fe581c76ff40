/* nest.h - how the arrays of one operand nest: every row of a level has one length, numbers stand
 * at one depth, and complex elements are pairs. Private to the reader of arrays, numbers.c.
 *
 * Door: nest_open(), nest_number() and nest_close() as the text has them; nest_settle() makes the
 * elements' shape of it. A failure says what is wrong; nest_locate(), told how deep, says where.
 */
#ifndef PROTO_NEST_H
#define PROTO_NEST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/tensor.h"

enum {
    NEST_LEVELS = LIMIT_RANK + 1
}; /* arrays around a number: a complex element is one as well */

struct nest {
    enum dtype dtype;            /* of the elements; DTYPE_UNKNOWN: pairs may turn out to be some */
    int depth;                   /* arrays open now */
    int rank;                    /* of the numbers, pairs included; -1 until the first number or the
                                    first empty row settles it */
    uint64_t count[NEST_LEVELS]; /* [depth - 1] values so far in each open array */
    uint64_t dim[NEST_LEVELS];   /* lengths of the rows closed so far, where has_dim */
    bool has_dim[NEST_LEVELS];
};

void nest_init(struct nest *nest, enum dtype dtype);

/* An array opens as the next value. ERR_SHAPE, ERR_VALUE (too deep). */
enum error nest_open(struct nest *nest, struct problem *problem);

/* May a number be the next value? The caller counts it. ERR_SHAPE, ERR_VALUE (a pair is wanted). */
enum error nest_number(struct nest *nest, struct problem *problem);

/* The innermost array closes. ERR_SHAPE, ERR_VALUE (it is no pair). */
enum error nest_close(struct nest *nest, struct problem *problem);

/* The shape of the elements once the outermost array has closed, if they are of this type; the
 * pointer leads to what they cannot be. ERR_VALUE: no pairs, or too many dimensions. */
enum error nest_settle(const struct nest *nest, enum dtype dtype, struct shape *ret,
                       struct problem *problem);

uint64_t nest_count(const struct nest *nest); /* numbers in all, at the end */

/* Both fill the pointer of a problem: of the value that the open arrays of so many levels lead to,
 * or of number index in the finished nest. */
enum error nest_locate(const struct nest *nest, int levels, struct problem *problem);
enum error nest_locate_number(const struct nest *nest, uint64_t index, struct problem *problem);

#endif
