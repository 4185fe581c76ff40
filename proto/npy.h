/* npy.h - one .npy array that arrives in pieces as an operand. Private to proto/.
 *
 * Door: npy_feed() with pieces cut anywhere until it is done.
 */
#ifndef PROTO_NPY_H
#define PROTO_NPY_H

#include "proto/operands.h"
#include "proto/text.h"

struct npy {
    struct text head;    /* its header, as far as it has come; owned */
    size_t head_bytes;   /* that are wanted */
    bool has_head;       /* the elements are next */
    uint64_t left_bytes; /* of them */
};

void npy_init(struct npy *npy);
void npy_fini(struct npy *npy);

/* Takes *ret_used bytes: all, or up to the array's last one, when *ret_done. The problem's offset,
 * if it has one, counts from the array's first byte. */
enum error npy_feed(struct npy *npy, struct operands *operands, bool is_b, const char *data,
                    size_t size, size_t *ret_used, bool *ret_done, struct problem *problem);

#endif
