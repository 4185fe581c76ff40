/* tensor.h - element types, shapes, and operands that lie in one buffer.
 *
 * Names follow NumPy and the Array API; aliases are those of api.md section 2.
 */
#ifndef PROTO_TENSOR_H
#define PROTO_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"
#include "proto/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The commonest first; lists of names follow this order. A name that is one type's short form and
 * another's NumPy code ("i8") is the short form; only a byte order makes it the code ("<i8"). */
/*    code           bytes  name       short  NumPy   Open Inference; "": has none */
#define DTYPE_MAP(X)                                                                               \
    X(DTYPE_FLOAT32, 4, "float32", "f32", "f4", "FP32")                                            \
    X(DTYPE_FLOAT64, 8, "float64", "f64", "f8", "FP64")                                            \
    X(DTYPE_FLOAT16, 2, "float16", "f16", "f2", "FP16")                                            \
    X(DTYPE_BFLOAT16, 2, "bfloat16", "bf16", "", "BF16")                                           \
    X(DTYPE_INT8, 1, "int8", "i8", "i1", "INT8")                                                   \
    X(DTYPE_UINT8, 1, "uint8", "u8", "u1", "UINT8")                                                \
    X(DTYPE_INT32, 4, "int32", "i32", "i4", "INT32")                                               \
    X(DTYPE_INT64, 8, "int64", "i64", "i8", "INT64")                                               \
    X(DTYPE_COMPLEX64, 8, "complex64", "c64", "c8", "")                                            \
    X(DTYPE_COMPLEX128, 16, "complex128", "c128", "c16", "")

enum dtype {
#define X(code, size, name, alias, numpy, oip) code,
    DTYPE_MAP(X)
#undef X
    DTYPE_COUNT,
    DTYPE_UNKNOWN = DTYPE_COUNT /* not said (yet) */
};

enum byte_order { ORDER_LITTLE, ORDER_BIG };

size_t dtype_size(enum dtype dtype);       /* bytes an element; a complex one has two parts */
bool dtype_is_integer(enum dtype dtype);   /* each type is one of integer, float, complex */
bool dtype_is_float(enum dtype dtype);     /* real */
bool dtype_is_complex(enum dtype dtype);
enum dtype dtype_part(enum dtype dtype);   /* of a complex type's parts; a real type itself */
const char *dtype_name(enum dtype dtype);  /* the long name */
const char *dtype_oip(enum dtype dtype);   /* "FP32"; "": the Open Inference Protocol has none */
const char *dtype_list(void);              /* "float32, float64": for details of problems */

/* Numbers in an element, and in a sum: 2 of a complex type, else 1. */
unsigned dtype_part_count(enum dtype dtype);

/* Reads any alias ("float32", "f32", "<f4", "FP32", ">f4", "|u1"). ERR_DTYPE when it is none. */
enum error dtype_parse(const char *name, enum dtype *ret, enum byte_order *ret_order);

struct shape {
    int rank;                 /* 0 to LIMIT_RANK; 0 is a scalar */
    uint64_t dim[LIMIT_RANK]; /* outermost first */
};

/* Number of elements; ERR_TOO_LARGE when it is beyond 2^63 - 1. */
enum error shape_count(const struct shape *shape, uint64_t *ret);

/* Reads "3,4" (decimal, no blanks, 1 to LIMIT_RANK dimensions). ERR_VALUE otherwise. */
enum error shape_parse(const char *text, struct shape *ret);

/* Writes "(3,4)" or "(3,)" or "()" as NumPy does, cut to size. Returns text. */
char *shape_print(const struct shape *shape, char *text, size_t size);

/* The shape of the result: last axes equal and dropped, leading axes broadcast (numpy.vecdot).
 * ERR_SHAPE with both shapes in the detail when they do not match; a scalar operand never does. */
enum error shape_dot(const struct shape *a, const struct shape *b, struct shape *ret,
                     struct problem *problem);

/* An operand inside a buffer: dense, C order, offset a multiple of the element size. Operands that
 * a decoder places itself start at a multiple of LIMIT_OPERAND_ALIGN; code that computes must take
 * any element-aligned offset all the same, because rows may start anywhere. */
struct tensor {
    enum dtype dtype;
    struct shape shape;
    size_t offset; /* bytes from the buffer's start */
};

/* The length of its rows: the last dimension, over which products are summed. rank is not 0. */
uint64_t tensor_length(const struct tensor *tensor);

/* Two operands and the shape of what they give. */
struct tensor_pair {
    struct tensor a, b;
    struct shape result; /* what shape_dot() said; set by request_check() */
};

/* exact: the exact sum, rounded once. fast: floating-point sums with a proved bound. */
enum accuracy { ACCURACY_DEFAULT, ACCURACY_FAST, ACCURACY_EXACT };

/* Where a request wants to be computed: "auto", "cpu", "cuda" or "cuda:1". */
enum placement { PLACE_AUTO, PLACE_CPU, PLACE_CUDA };

#ifdef __cplusplus
}
#endif

#endif
