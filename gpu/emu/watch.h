/* watch.h - recording and checking, as emu.c drives it; what it finds is in trace.h.
 *
 * Door: for emu.c alone, which holds its lock: one grid, block after block, is watched at a time.
 * What returns bool says whether the kernel may go on.
 */
#ifndef GPU_EMU_WATCH_H
#define GPU_EMU_WATCH_H

#include "gpu/emu/trace.h"

/* Where the threads of a block are, as bit l of word w. */
struct watch_places {
    uint32_t threads;
    uint32_t barrier[EMU_WARPS_MAX]; /* wait for their block */
    uint32_t warp[EMU_WARPS_MAX];    /* wait for their warp */
    uint32_t ended[EMU_WARPS_MAX];
};

void watch_grid_begin(struct emu_trace *trace);
void watch_block_begin(uint32_t block);
void watch_barrier(void);               /* it opened */
void watch_warp_barrier(uint32_t warp); /* it opened */
void watch_block_end(void);             /* or the kernel was stopped */

bool watch_before(uint32_t thread, const void *address, size_t size, enum emu_access access);
bool watch_after(uint32_t thread, const void *address, enum emu_access access, double value);
void watch_name(const char *name, const void *data, uint32_t count, uint32_t size, bool is_shared);

/* Nobody can go on: a fault of the trace. */
void watch_stand_still(const struct watch_places *places);

/* The sentence about it. */
void watch_describe(char *ret, size_t ret_size, uint32_t block, const struct watch_places *places);

#endif
