/* buffer.h - where a request's numbers land: one growing buffer in memory that the caller chose.
 *
 * The decoder does not know whether memory is pinned, pooled or from the heap; it asks a source.
 * All operands of a request share one buffer, so that a device copies it in one piece.
 */
#ifndef PROTO_BUFFER_H
#define PROTO_BUFFER_H

#include <stddef.h>

#include "proto/error.h"

struct block {
    void *data;  /* aligned to LIMIT_OPERAND_ALIGN at least; contents undefined */
    size_t size; /* at least what was asked for */
};

struct buffer_source {
    /* ERR_NOMEM when the budget is full; *ret untouched then. */
    enum error (*acquire)(void *context, size_t size, struct block *ret);
    void (*release)(void *context, struct block block);
    /* Makes a block longer where it lies. ERR_NOMEM when that cannot be, and then *block is
     * untouched. NULL: it never can. */
    enum error (*extend)(void *context, size_t size, struct block *block);
    void *context;
};

/* malloc and free, for tests and tools. */
extern const struct buffer_source buffer_heap;

struct buffer {
    const struct buffer_source *source; /* borrowed; outlives the buffer */
    struct block block;                 /* data NULL until the first reserve */
    size_t used;                        /* bytes that hold operands, used <= block.size */
};

void buffer_init(struct buffer *buffer, const struct buffer_source *source);
void buffer_fini(struct buffer *buffer); /* gives the block back; init or zeroed is fine */

/* Makes block.size at least size, keeping the first `used` bytes. Moves the data where they cannot
 * stay: keep offsets, not pointers. Growth is at least by half, so n appends cost O(n). ERR_NOMEM:
 * unchanged. */
enum error buffer_reserve(struct buffer *buffer, size_t size);

/* The next multiple of LIMIT_OPERAND_ALIGN; SIZE_MAX when size is so near to it that there is
 * none. */
size_t size_align(size_t size);

/* Moves used up to the next multiple of LIMIT_OPERAND_ALIGN, reserving. Returns it in *ret. */
enum error buffer_align(struct buffer *buffer, size_t *ret_offset);

/* ERR_TOO_LARGE: operands would take more than max_bytes, the setting memory_budget_bytes. */
enum error operands_too_large(size_t max_bytes, struct problem *problem);

#endif
