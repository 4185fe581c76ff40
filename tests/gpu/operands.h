/* operands.h - operands that are hard on sums, for the tests of devices. */
#ifndef TESTS_GPU_OPERANDS_H
#define TESTS_GPU_OPERANDS_H

#include <stdint.h>

#include "proto/tensor.h"

enum kind {
    KIND_UNIFORM,  /* one exponent field, the fraction random */
    KIND_20,       /* exponents over 41 binades */
    KIND_60,       /* over 121 */
    KIND_FULL,     /* every finite bit pattern */
    KIND_SMALL,    /* zeros, subnormal numbers, and the smallest normal ones */
    KIND_LARGE,    /* the largest numbers, both signs */
    KIND_CANCEL,   /* pairs that cancel, and one product of small numbers */
    KIND_CONSTANT, /* one pattern throughout: every carry in the same place */
    KIND_LARGEST,  /* the largest number throughout: no room for more of them */
    KIND_ODD,      /* some infinities, now and then NaN */
    KIND_COUNT
};

uint64_t random_bits(unsigned bits); /* 1 to 63 of them */

/* How a real float type divides its bits, below the sign. */
struct layout {
    unsigned field_bits, fraction_bits;
};
struct layout layout_of(enum dtype dtype);

/* `count` elements of one operand. KIND_CANCEL: as KIND_60. */
void operand_fill(void *data, enum dtype dtype, enum kind kind, uint64_t count);

/* Both operands of a dot product of `count` elements. */
void operands_fill(void *a, void *b, enum dtype dtype, enum kind kind, uint64_t count);

#endif
