/* npy_head.h - the header of NumPy's .npy format, read and written. Private to proto/.
 *
 * Door: npy_head_size() says how many bytes to gather, npy_head_parse() reads them,
 * npy_head_write() writes one. A header is the magic, a version, a length, and a Python dictionary
 * of three keys.
 * Source: NumPy, numpy.lib.format, versions 1.0 to 3.0.
 */
#ifndef PROTO_NPY_HEAD_H
#define PROTO_NPY_HEAD_H

#include <stddef.h>

#include "proto/tensor.h"
#include "proto/text.h"

enum { NPY_MAGIC_BYTES = 6 };
extern const char npy_magic[NPY_MAGIC_BYTES];

struct npy_head {
    enum dtype dtype;
    enum byte_order order;
    struct shape shape; /* C order, or an order that comes to the same */
};

/* How many bytes the header has, as far as its first size ones tell: until that many are there,
 * gather and ask again. ERR_SYNTAX (not .npy), ERR_UNSUPPORTED (another version), ERR_TOO_LARGE. */
enum error npy_head_size(const char *data, size_t size, size_t *ret, struct problem *problem);

/* Reads a whole header. wanted is the type that the request has said, or DTYPE_UNKNOWN: NumPy has
 * no bfloat16 and writes two bytes without a type. ERR_SYNTAX with the offset in the header,
 * ERR_DTYPE, ERR_UNSUPPORTED (records, objects, Fortran order), ERR_VALUE (too many dimensions). */
enum error npy_head_parse(const char *data, size_t size, enum dtype wanted, struct npy_head *ret,
                          struct problem *problem);

/* Version 1.0, little-endian, C order; what follows it is aligned to 64 bytes. */
void npy_head_write(enum dtype dtype, const struct shape *shape, struct text *text);

#endif
