/* cpu_stage.h - operands of any float type as runs of float32 or float64 products.
 *
 * Door: cpu_stage() serves the next run of a row. float32 and float64 rows are one run, in place;
 * float16 and bfloat16 are widened, which is exact, and complex ones rearranged into two real dot
 * products (cpu_stage_room holds the copies) some CPU_STAGE products at a time.
 */
#ifndef GPU_CPU_STAGE_H
#define GPU_CPU_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gpu/cpu_exact.h"

enum { CPU_STAGE = 1024 }; /* products of a run that is a copy; even */

/* A row of two operands; elements are aligned to their parts' own size. */
struct cpu_row {
    enum dtype dtype; /* not an integer type */
    bool conjugate;   /* a's elements, if complex */
    const void *a, *b;
    uint64_t n;
};

/* A run: `count` products for each part of the result, from `elements` elements of the row. */
struct cpu_run {
    uint64_t elements, count;
    int parts;               /* 2 if complex: real, imaginary */
    const void *a[2], *b[2]; /* of each part */
};

/* For the copies of one thread. */
struct cpu_stage_room {
    union {
        float as32[CPU_STAGE];
        double as64[CPU_STAGE];
    } a, b;
};

enum dtype cpu_stage_dtype(enum dtype dtype); /* DTYPE_FLOAT32 or DTYPE_FLOAT64: of the runs */
int cpu_stage_precision(enum dtype dtype);    /* significant bits of an element's part */

/* The run that begins at element `first` < row->n; valid until the room is used again. */
void cpu_stage(const struct cpu_exact *exact, const struct cpu_row *row, uint64_t first,
               struct cpu_stage_room *room, struct cpu_run *ret);

/* float16 as float32: exact. NaN stays NaN. */
static inline float cpu_float16(const void *data)
{
    uint16_t half;
    memcpy(&half, data, sizeof half);
    uint32_t magnitude = half & 0x7fff;
    uint32_t bits =
        (magnitude << 13) + (magnitude >= 0x7c00 ? UINT32_C(224) << 23 : UINT32_C(112) << 23);
    float value;
    if (magnitude < 0x400) /* subnormal: whole multiples of 2^-24 */
        value = (float)magnitude * 0x1p-24F;
    else
        memcpy(&value, &bits, sizeof value);
    return half >> 15 != 0 ? -value : value;
}

#endif
