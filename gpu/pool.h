/* pool.h - memory for operands: one mapped region, reused warm, within a budget.
 *
 * Door: pool_acquire() and pool_release() from any thread; they share one lock, but a processor
 * takes the small block that it released last without it. A first touch of fresh memory costs about
 * ten times a copy into it, so nothing is given back to the system while the pool lives, and what
 * was used last is handed out first, of the same processor's if it released any.
 *
 * Blocks up to POOL_SMALL_BYTES come in powers of two, from slabs with free lists; larger ones are
 * runs of POOL_GRANULE_BYTES, first fit, coalesced on release. The first pinned_bytes of the region
 * can be pinned for a device; they are preferred.
 */
#ifndef GPU_POOL_H
#define GPU_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"

enum {
    POOL_GRANULE_BYTES = 64 << 10,
    POOL_SMALL_BYTES = 512 << 10, /* largest of the power-of-two blocks */
};

struct pool; /* layout in pool.c */

/* The blocks in use never exceed budget_bytes together. Memory that was ever touched stays
 * resident: at most budget_bytes + pinned_bytes. */
enum error pool_create(struct pool **ret, size_t budget_bytes, size_t pinned_bytes);
void pool_destroy(struct pool *pool); /* takes NULL; every block must be back */

/* The part that a device may pin before the first acquire: *ret_size may be 0. */
void *pool_pinnable(struct pool *pool, size_t *ret_size);

/* At least size bytes, aligned to 64; contents undefined. ERR_NOMEM: over the budget, or too
 * scattered. Sizes are rounded up to a power of two, or to whole granules. */
enum error pool_acquire(struct pool *pool, size_t size, struct block *ret);
void pool_release(struct pool *pool, struct block block);

/* Makes a block at least so long where it lies. ERR_NOMEM: over the budget, or what follows it is
 * in use, as it nearly always is behind a small block; *block is untouched. */
enum error pool_extend(struct pool *pool, size_t size, struct block *block);

struct pool_state {
    uint64_t budget_bytes, used_bytes, pinned_bytes, pinned_used_bytes;
};
struct pool_state pool_state(struct pool *pool);

#endif
