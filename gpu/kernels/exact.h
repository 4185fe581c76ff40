/* exact.h - exact dot products on a CUDA device: what host and kernels share.
 *
 * Door: exact_open() once a device and element type; exact_plan() of grid.h spreads a task over
 * blocks; exact_launch() runs a table of tasks of one type. A row that one block or warp owns is
 * rounded on the spot; a row of several blocks, or of several launches, meets in a struct
 * exact_total.
 */
#ifndef GPU_KERNELS_EXACT_H
#define GPU_KERNELS_EXACT_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "gpu/exact/limbs.h"
#include "gpu/kernels/grid.h"
#include "gpu/kernels/names.h"
#include "proto/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the blocks of a row meet, in device memory. All zero between rows: whoever rounds a total
 * clears it. limb[part] is of the type's layout; part 1 is the imaginary one. */
struct exact_total {
    uint64_t limb[2][EXACT_LIMBS_MAX];
    uint32_t special; /* enum exact_special bits, EXACT_PART_BITS a part */
    uint32_t arrived; /* blocks of the row that have added their part */
};

enum { EXACT_PART_BITS = 4 };

/* The result of one of many short rows, in a quarter of the bytes. */
struct exact_row {
    double sum;
    uint32_t bound; /* upper half of error_bound's bits; it is 0, infinite or a power of two */
    uint32_t flags; /* enum value_flag bits, and EXACT_ROW_SPECIAL */
};

enum { EXACT_ROW_SPECIAL = 1 << 30 }; /* a product was not finite: that tells sum_abs */

EXACT_SHARED struct exact_row exact_row_of(const struct dot_value *value, bool is_special)
{
    struct exact_row row;
    row.sum = value->sum;
    row.bound = (uint32_t)(exact_bits_of(value->error_bound) >> 32);
    row.flags = value->flags | (is_special ? (uint32_t)EXACT_ROW_SPECIAL : 0);
    return row;
}

EXACT_SHARED void exact_row_value(const struct exact_row *row, struct dot_value *ret)
{
    const uint64_t bound = (uint64_t)row->bound << 32;
    memset(ret, 0, sizeof *ret);
    ret->sum = row->sum;
    memcpy(&ret->error_bound, &bound, sizeof bound);
    ret->flags = row->flags & ~(uint32_t)EXACT_ROW_SPECIAL;
    if ((row->flags & EXACT_ROW_SPECIAL) != 0)
        ret->sum_abs = fabs(row->sum); /* NaN stays NaN */
}

/* All pointers in the device's eyes. */
struct exact_launch {
    const struct grid_task *task;  /* the table */
    const uint32_t *task_of_block; /* [blocks]; NULL: every block works on `only` */
    struct dot_value *result;      /* all but sum_abs; two a row of complex operands */
    struct exact_row *row;         /* of GRID_TILE_ROW, in the place of result */
    struct exact_total *total;
    struct grid_task only; /* a table of one travels with the launch: one round trip less */
    uint32_t has_tiles;    /* 1: all tasks are of GRID_TILE_ROW; 0: none is */
};

/* Readies the kernel of a type on the current device, which has so many multiprocessors. */
cudaError_t exact_open(enum dtype dtype, uint32_t multiprocessors, struct exact_shape *ret);

/* Queues one kernel of so many blocks on the stream; all its tasks are of `dtype`. shape: what
 * exact_open() said of the stream's device. *launch is copied. */
cudaError_t exact_launch(enum dtype dtype, const struct exact_shape *shape,
                         const struct exact_launch *launch, uint32_t blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
