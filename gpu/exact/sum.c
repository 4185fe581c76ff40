/* sum.c - one exact dot product in the making (see sum.h).
 *
 * Blocks of products go the road that their exponents allow (cpu_exact.h): through the vector unit
 * as whole numbers on a few grids; one by one where exponents lie too far apart or too low, or for
 * the few products of a short row; and where an operand is not finite, looking at every product.
 */
#include "gpu/exact/sum.h"

#include <assert.h>
#include <math.h>

#include "gpu/cpu_dot.h"
#include "gpu/cpu_stage.h"
#include "gpu/exact/buckets.h"

enum {
    ONE_BY_ONE = 12,   /* products: up to here planning costs more than it saves */
    BUCKETS_MIN = 256, /* products: from here on clearing the buckets pays */
};

/* Deposits only while the sum is finite: afterwards they would not matter. */
static void add_each32(struct exact_part *part, const float *a, const float *b, size_t count)
{
    exact_part_reserve(part, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        part->special |= exact_special_of((double)a[i], (double)b[i]);
        if (part->special == 0)
            exact_part_add_product32(part, a[i], b[i]);
    }
}

static void add_each64(struct exact_part *part, const double *a, const double *b, size_t count)
{
    exact_part_reserve(part, 2 * (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        part->special |= exact_special_of(a[i], b[i]);
        if (part->special == 0)
            exact_part_add_product64(part, a[i], b[i]);
    }
}

static void add_totals(struct exact_part *part, const struct cpu_plan *plan, const int64_t *total)
{
    exact_part_reserve(part, (uint32_t)plan->levels);
    for (int k = 0; k < plan->levels; k++)
        exact_part_add_scaled(part, total[k], plan->grid[k]);
}

/* --- float32 --- */

/* Products that go to one part. */
struct road32 {
    struct exact_part *part;
    const struct cpu_exact *exact;
    int precision; /* significant bits of an operand */
};

/* count is a multiple of the vector unit's step. */
static void add_block32(const struct road32 *road, const float *a, const float *b, size_t count)
{
    struct cpu_range range;
    struct cpu_plan plan;
    int64_t total[CPU_EXACT_LEVELS];
    road->exact->ranges32(a, b, count, &range);
    cpu_exact_plan(&range, DTYPE_FLOAT32, road->precision, &plan);
    assert(plan.road != CPU_ROAD_WIDE); /* levels reach over all of float32 */
    if (plan.road == CPU_ROAD_SPECIAL) {
        add_each32(road->part, a, b, count);
    } else if (plan.road == CPU_ROAD_LEVELS && road->part->special == 0) {
        road->exact->levels32(a, b, count, plan.start, total, plan.levels);
        add_totals(road->part, &plan, total);
    }
}

/* What does not fill a block: padded with zeros, which add nothing. */
static void add_rest32(const struct road32 *road, const float *a, const float *b, size_t count)
{
    float x[CPU_EXACT_BLOCK_MAX], y[CPU_EXACT_BLOCK_MAX];
    size_t step = road->exact->step32, padded = (count + step - 1) / step * step;
    memcpy(x, a, count * sizeof *x);
    memcpy(y, b, count * sizeof *y);
    memset(x + count, 0, (padded - count) * sizeof *x);
    memset(y + count, 0, (padded - count) * sizeof *y);
    add_block32(road, x, y, padded);
}

static void add32(const struct road32 *road, const float *a, const float *b, uint64_t n)
{
    const size_t block = road->exact->block32;
    for (; n >= block; n -= block) {
        add_block32(road, a, b, block);
        a += block;
        b += block;
    }
    if (n > ONE_BY_ONE)
        add_rest32(road, a, b, n);
    else
        add_each32(road->part, a, b, n);
}

/* --- float64 --- */

struct road64 {
    struct exact_part *part;
    const struct cpu_exact *exact;
    bool has_buckets; /* they are cleared when the first product needs them */
    struct exact_buckets buckets;
};

static void add_wide64(struct road64 *road, const double *a, const double *b, size_t count)
{
    if (!road->has_buckets && count < BUCKETS_MIN) {
        add_each64(road->part, a, b, count);
        return;
    }
    if (!road->has_buckets)
        exact_buckets_init(&road->buckets);
    road->has_buckets = true;
    exact_buckets_add(&road->buckets, road->exact, a, b, count);
}

/* count is a multiple of the vector unit's step. */
static void add_block64(struct road64 *road, const double *a, const double *b, size_t count)
{
    struct cpu_range range;
    struct cpu_plan plan;
    int64_t total[CPU_EXACT_LEVELS];
    road->exact->ranges64(a, b, count, &range);
    cpu_exact_plan(&range, DTYPE_FLOAT64, 53, &plan);
    if (plan.road == CPU_ROAD_SPECIAL) {
        add_each64(road->part, a, b, count);
    } else if (plan.road == CPU_ROAD_LEVELS && road->part->special == 0) {
        road->exact->levels64(a, b, count, plan.start, total, plan.levels);
        add_totals(road->part, &plan, total);
    } else if (plan.road == CPU_ROAD_WIDE && road->part->special == 0) {
        add_wide64(road, a, b, count);
    }
}

static void add_rest64(struct road64 *road, const double *a, const double *b, size_t count)
{
    double x[CPU_EXACT_BLOCK_MAX], y[CPU_EXACT_BLOCK_MAX];
    size_t step = road->exact->step64, padded = (count + step - 1) / step * step;
    memcpy(x, a, count * sizeof *x);
    memcpy(y, b, count * sizeof *y);
    memset(x + count, 0, (padded - count) * sizeof *x);
    memset(y + count, 0, (padded - count) * sizeof *y);
    add_block64(road, x, y, padded);
}

/* A block where the vector unit cannot do it. */
static void add_plain64(struct road64 *road, const double *a, const double *b, size_t count)
{
    bool is_special = false;
    for (size_t i = 0; i < count; i++)
        is_special |= !isfinite(a[i]) || !isfinite(b[i]);
    if (is_special || road->part->special != 0)
        add_each64(road->part, a, b, count);
    else
        add_wide64(road, a, b, count);
}

static void add64(struct road64 *road, const double *a, const double *b, uint64_t n)
{
    const bool has_levels = road->exact->levels64 != NULL;
    const size_t block = has_levels ? road->exact->block64 : CPU_EXACT_BLOCK_MAX;
    for (; n >= block; n -= block) {
        if (has_levels)
            add_block64(road, a, b, block);
        else
            add_plain64(road, a, b, block);
        a += block;
        b += block;
    }
    if (n <= ONE_BY_ONE)
        add_each64(road->part, a, b, n);
    else if (has_levels)
        add_rest64(road, a, b, n);
    else
        add_plain64(road, a, b, n);
}

/* --- a row of any float type --- */

static double abs_of(const struct exact_sum *sum, const void *a, const void *b, uint64_t count)
{
    return sum->kernel->dot[cpu_stage_dtype(sum->dtype)](a, b, count).sum_abs;
}

/* For diagnostics: a plain sum of what a run has for one part. */
static void add_abs(struct exact_sum *sum, const struct cpu_run *run)
{
    for (int i = 0; sum->wants_abs && i < run->parts; i++)
        sum->part[i].sum_abs += abs_of(sum, run->a[i], run->b[i], run->count);
}

static void add_row32(struct exact_sum *sum, const struct cpu_row *row)
{
    struct cpu_stage_room room;
    struct cpu_run run;
    struct road32 road = {.exact = sum->kernel->exact,
                          .precision = cpu_stage_precision(row->dtype)};
    for (uint64_t done = 0; done < row->n; done += run.elements) {
        cpu_stage(sum->kernel->exact, row, done, &room, &run);
        for (int i = 0; i < run.parts; i++) {
            road.part = &sum->part[i];
            add32(&road, run.a[i], run.b[i], run.count);
        }
        add_abs(sum, &run);
    }
}

static void add_row64(struct exact_sum *sum, const struct cpu_row *row)
{
    struct cpu_stage_room room;
    struct cpu_run run;
    struct road64 road[2];
    for (int i = 0; i < 2; i++) {
        road[i].part = &sum->part[i];
        road[i].exact = sum->kernel->exact;
        road[i].has_buckets = false;
    }
    for (uint64_t done = 0; done < row->n; done += run.elements) {
        cpu_stage(sum->kernel->exact, row, done, &room, &run);
        for (int i = 0; i < run.parts; i++)
            add64(&road[i], run.a[i], run.b[i], run.count);
        add_abs(sum, &run);
    }
    for (int i = 0; i < 2; i++)
        if (road[i].has_buckets)
            exact_buckets_flush(&road[i].buckets, road[i].part);
}

/* --- integers --- */

/* int64: 2^10 products below 2^126, in halves of 64 bits each. */
static void add_int64(struct exact_part *part, const int64_t *a, const int64_t *b, size_t count)
{
    exact_int128 low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        exact_int128 product = (exact_int128)a[i] * b[i];
        low += (uint64_t)product;
        high += (int64_t)(product >> 64);
    }
    exact_part_add_integer(part, low, 0);
    exact_part_add_integer(part, high, 2);
}

/* At most CPU_EXACT_BLOCK_MAX products. */
static void add_integers(struct exact_part *part, const struct cpu_exact *exact, enum dtype dtype,
                         const void *a, const void *b, size_t count)
{
    int64_t low, high;
    exact_part_reserve(part, 4);
    switch (dtype) {
    case DTYPE_INT8:
        exact_part_add_integer(part, exact->dot_int8(a, b, count), 0);
        return;
    case DTYPE_UINT8:
        exact_part_add_integer(part, exact->dot_uint8(a, b, count), 0);
        return;
    case DTYPE_INT32:
        exact->dot_int32(a, b, count, &low, &high);
        exact_part_add_integer(part, (exact_int128)high * 65536 + low, 0);
        return;
    default:
        assert(dtype == DTYPE_INT64);
        add_int64(part, a, b, count);
    }
}

static double integer_at(enum dtype dtype, const void *data, uint64_t index)
{
    switch (dtype) {
    case DTYPE_INT8:
        return ((const int8_t *)data)[index];
    case DTYPE_UINT8:
        return ((const uint8_t *)data)[index];
    case DTYPE_INT32:
        return ((const int32_t *)data)[index];
    default:
        assert(dtype == DTYPE_INT64);
        return (double)((const int64_t *)data)[index];
    }
}

static double abs_of_integers(enum dtype dtype, const void *a, const void *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabs(integer_at(dtype, a, i) * integer_at(dtype, b, i));
    return sum;
}

static void add_integer_row(struct exact_sum *sum, const void *a, const void *b, uint64_t n)
{
    size_t size = dtype_size(sum->dtype);
    for (uint64_t done = 0; done < n; done += CPU_EXACT_BLOCK_MAX) {
        size_t count = n - done < CPU_EXACT_BLOCK_MAX ? n - done : CPU_EXACT_BLOCK_MAX;
        const void *x = (const char *)a + done * size, *y = (const char *)b + done * size;
        add_integers(&sum->part[0], sum->kernel->exact, sum->dtype, x, y, count);
        if (sum->wants_abs)
            sum->part[0].sum_abs += abs_of_integers(sum->dtype, x, y, count);
    }
}

/* --- the door --- */

void exact_sum_init(struct exact_sum *sum, const struct cpu_kernel *kernel, enum dtype dtype,
                    bool conjugate, bool wants_abs)
{
    sum->kernel = kernel;
    if (kernel == NULL)
        (void)cpu_kernels(&sum->kernel);
    sum->dtype = dtype;
    sum->conjugate = conjugate;
    sum->wants_abs = wants_abs;
    for (unsigned i = 0; i < dtype_part_count(dtype); i++)
        exact_part_init(&sum->part[i], dtype);
}

void exact_sum_add(struct exact_sum *sum, const void *a, const void *b, uint64_t n)
{
    if (dtype_is_integer(sum->dtype)) {
        add_integer_row(sum, a, b, n);
    } else {
        struct cpu_row row = {sum->dtype, sum->conjugate, a, b, n};
        if (cpu_stage_dtype(sum->dtype) == DTYPE_FLOAT64)
            add_row64(sum, &row);
        else
            add_row32(sum, &row);
    }
}

void exact_sum_merge(struct exact_sum *sum, const struct exact_sum *other)
{
    assert(sum->dtype == other->dtype);
    for (unsigned i = 0; i < dtype_part_count(sum->dtype); i++)
        exact_part_merge(&sum->part[i], &other->part[i]);
}

void exact_sum_round(struct exact_sum *sum, enum dtype result_dtype, struct dot_value *value)
{
    for (unsigned i = 0; i < dtype_part_count(sum->dtype); i++)
        exact_part_round(&sum->part[i], sum->dtype, result_dtype, &value[i]);
}
