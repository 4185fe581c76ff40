/* value.h - one computed dot product. Shared with .cu files. */
#ifndef PROTO_VALUE_H
#define PROTO_VALUE_H

#include <stdint.h>

/* In alphabetical order, as the flags of an answer are listed. */
enum value_flag {
    FLAG_INEXACT = 1 << 0,   /* the result may differ from the exact sum */
    FLAG_INVALID = 1 << 1,   /* NaN made by infinity times zero, or by infinities of both signs */
    FLAG_NAN_INPUT = 1 << 2, /* an operand held a NaN */
    FLAG_OVERFLOW = 1 << 3,  /* the rounded value is beyond result_dtype */
    FLAG_UNDERFLOW = 1 << 4, /* inexact and below result_dtype's smallest normal number */
    FLAG_COUNT = 5
};

/* A complex result is two of them: the real part, then the imaginary part. */
struct dot_value {
    double sum;          /* the result; of an exact job already rounded to the result's type */
    double sum_abs;      /* sum of |a_i b_i|, accurate to a few units: for diagnostics */
    double error_bound;  /* |sum - exact| is at most this; infinity when nothing is promised */
    unsigned flags;      /* enum value_flag bits */
    uint64_t integer[3]; /* of integer operands: the exact sum, two's complement, lowest word first;
                            sum is then that number rounded to the result's float type, or float64 */
};

#endif
