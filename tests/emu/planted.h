/* planted.h - small kernels, right and wrong on purpose, for the emulation's tests.
 *
 * Door: planted_run(). Block size and blocks come with the grid.
 */
#ifndef TESTS_EMU_PLANTED_H
#define TESTS_EMU_PLANTED_H

#include "gpu/emu/emu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum planted {
    PLANTED_TREE,            /* sum of data[0 .. threads-1] by halving strides into result[block] */
    PLANTED_TREE_NO_BARRIER, /* forgets the barrier between the steps */
    PLANTED_TREE_BRANCH,     /* has it inside the branch */
    PLANTED_TREE_DOUBLE,     /* PLANTED_TREE of doubles; data and result are float still */
    PLANTED_SHIFT,           /* cell[t] = cell[t+1] in place, with `count` barriers; to result */
    PLANTED_UNWRITTEN,       /* thread t writes cell t unless t = count; thread 0 reads them all */
    PLANTED_UNWRITTEN_ATOMIC, /* adds to a cell that nobody cleared */
    PLANTED_STRIDE,           /* thread t writes cell t * count */
    PLANTED_STRIDE_DOUBLE,
    PLANTED_BROADCAST,     /* thread 0 writes cell 0; barrier; all read it */
    PLANTED_ADD,           /* result[0] += 1, plainly */
    PLANTED_ADD_ATOMIC,    /* by atomicAdd */
    PLANTED_ADD_THEN_READ, /* by atomicAdd, and thread 0 reads it plainly */
    PLANTED_ADD_SHARED, /* cell 0 cleared; barrier; `count` atomicAdds each; barrier; to result */
    PLANTED_LANES,      /* lanes hand on through cells, with a barrier of the warp between */
    PLANTED_LANES_NO_BARRIER,
    PLANTED_LANES_LEAVE, /* lane 31 skips a shuffle, and ends */
    PLANTED_LANES_PART,  /* lanes at different operations of the warp */
    PLANTED_SAME_CELL,   /* every block's thread 0 writes result[0] */
    PLANTED_OUTSIDE,     /* cell `count` is written, which is past the end of the named ones */
};

/* data: [threads]. The trace, if any, has "cell" as its first array and "result" as its second. */
bool planted_run(enum planted which, const struct emu_grid *grid, const float *data, float *result,
                 uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
