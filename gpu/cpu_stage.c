/* cpu_stage.c - operands as runs of float32 or float64 products (see cpu_stage.h).
 *
 * A complex product (p + qi)(x + yi) is two real dot products of twice the length, of the elements'
 * parts as they lie in memory: with b as it is, (p, q) or, for the real part, (p, -q); and with the
 * parts of b exchanged, (y, x), for the imaginary one. Conjugating a moves the minus to the other.
 */
#include "gpu/cpu_stage.h"

#include <assert.h>

enum dtype cpu_stage_dtype(enum dtype dtype)
{
    assert(!dtype_is_integer(dtype));
    enum dtype part = dtype_part(dtype);
    return part == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

int cpu_stage_precision(enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT16)
        return 11;
    if (dtype == DTYPE_BFLOAT16)
        return 8;
    return cpu_stage_dtype(dtype) == DTYPE_FLOAT64 ? 53 : 24;
}

static void widen_bfloat16(const void *data, float *ret, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t upper;
        memcpy(&upper, (const char *)data + 2 * i, sizeof upper);
        uint32_t bits = (uint32_t)upper << 16;
        memcpy(&ret[i], &bits, sizeof bits);
    }
}

static void stage_half(const struct cpu_exact *exact, enum dtype dtype, const void *data,
                       float *ret, size_t count)
{
    if (dtype == DTYPE_FLOAT16)
        exact->widen_float16(data, ret, count);
    else
        widen_bfloat16(data, ret, count);
}

/* The second part of every element with the other sign. */
static void flip(enum dtype part, const void *data, struct cpu_stage_room *room, size_t count)
{
    if (part == DTYPE_FLOAT32) {
        const float *source = data;
        for (size_t i = 0; i < count; i += 2) {
            room->a.as32[i] = source[i];
            room->a.as32[i + 1] = -source[i + 1];
        }
    } else {
        const double *source = data;
        for (size_t i = 0; i < count; i += 2) {
            room->a.as64[i] = source[i];
            room->a.as64[i + 1] = -source[i + 1];
        }
    }
}

/* The parts of every element exchanged. */
static void exchange(enum dtype part, const void *data, struct cpu_stage_room *room, size_t count)
{
    if (part == DTYPE_FLOAT32) {
        const float *source = data;
        for (size_t i = 0; i < count; i += 2) {
            room->b.as32[i] = source[i + 1];
            room->b.as32[i + 1] = source[i];
        }
    } else {
        const double *source = data;
        for (size_t i = 0; i < count; i += 2) {
            room->b.as64[i] = source[i + 1];
            room->b.as64[i + 1] = source[i];
        }
    }
}

static void stage_complex(const struct cpu_row *row, const void *a, const void *b,
                          struct cpu_stage_room *room, struct cpu_run *ret)
{
    enum dtype part = dtype_part(row->dtype);
    ret->parts = 2;
    ret->count = 2 * ret->elements;
    flip(part, a, room, ret->count);
    exchange(part, b, room, ret->count);
    ret->a[0] = row->conjugate ? a : &room->a;
    ret->a[1] = row->conjugate ? &room->a : a;
    ret->b[0] = b;
    ret->b[1] = &room->b;
}

void cpu_stage(const struct cpu_exact *exact, const struct cpu_row *row, uint64_t first,
               struct cpu_stage_room *room, struct cpu_run *ret)
{
    assert(first < row->n);
    size_t size = dtype_size(row->dtype);
    const void *a = (const char *)row->a + first * size, *b = (const char *)row->b + first * size;
    uint64_t rest = row->n - first;
    ret->parts = 1;
    if (row->dtype == DTYPE_FLOAT32 || row->dtype == DTYPE_FLOAT64) {
        ret->elements = ret->count = rest;
        ret->a[0] = a;
        ret->b[0] = b;
    } else if (dtype_is_complex(row->dtype)) {
        ret->elements = rest < CPU_STAGE / 2 ? rest : CPU_STAGE / 2;
        stage_complex(row, a, b, room, ret);
    } else {
        ret->elements = ret->count = rest < CPU_STAGE ? rest : CPU_STAGE;
        stage_half(exact, row->dtype, a, room->a.as32, ret->count);
        stage_half(exact, row->dtype, b, room->b.as32, ret->count);
        ret->a[0] = &room->a;
        ret->b[0] = &room->b;
    }
}
