/* ladder.h - what every machine's rungs are checked for, emulated and on a device. Included once,
 * by a cmocka program. */
#ifndef TESTS_LADDER_H
#define TESTS_LADDER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exact/sum.h"
#include "gpu/ladder.h"
#include "tests/random.h"

enum data {
    DATA_SIGNED,   /* uniform in [-1, 1) */
    DATA_WIDE,     /* both signs, over 40 binades */
    DATA_CANCEL,   /* pairs that cancel, and one small product */
    DATA_TINY,     /* products around and below the smallest normal number */
    DATA_POSITIVE, /* uniform in [0, 1) */
    DATA_COUNT
};

static double draw(void)
{
    return (double)(int64_t)random_next() * 0x1p-63;
}

static void put(void *data, enum dtype dtype, uint64_t i, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

static double get(const void *data, enum dtype dtype, uint64_t i)
{
    return dtype == DTYPE_FLOAT32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static double draw_of(enum data data, enum dtype dtype)
{
    const double value = draw();
    switch (data) {
    case DATA_WIDE:
        return ldexp(value, (int)(random_next() % 41) - 20);
    case DATA_TINY:
        return ldexp(value, dtype == DTYPE_FLOAT32 ? -65 : -515);
    case DATA_POSITIVE:
        return fabs(value);
    default:
        return value;
    }
}

static void operands_draw(void *a, void *b, enum dtype dtype, enum data data, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const bool is_twin = data == DATA_CANCEL && i % 2 == 1;
        put(a, dtype, i, is_twin ? -get(a, dtype, i - 1) : draw_of(data, dtype));
        put(b, dtype, i, is_twin ? get(b, dtype, i - 1) : draw_of(data, dtype));
    }
    if (data == DATA_CANCEL && n > 0)
        put(a, dtype, n - 1, 0x1p-30);
}

static struct ladder_answer run_ask(struct ladder *machine, const struct ladder_ask *ask)
{
    struct ladder_answer answer;
    struct problem problem;
    problem_clear(&problem);
    if (ladder_run(machine, ask, &answer, &problem) != ERR_OK)
        fail_msg("%s, n = %llu: %s", ask->rung->name, (unsigned long long)ask->n, problem.detail);
    return answer;
}

/* |value - exact|, rounded once. */
static double distance(const struct ladder_ask *ask, double value)
{
    static int64_t limb[EXACT_LIMBS_MAX];
    const struct exact_layout layout = exact_layout_of(ask->dtype);
    struct dot_value difference;
    memset(limb, 0, sizeof limb);
    for (uint64_t i = 0; i < ask->n; i++)
        if (ask->dtype == DTYPE_FLOAT32)
            exact_add_product32(limb, ((const float *)ask->a)[i], ((const float *)ask->b)[i]);
        else
            exact_add_product64(limb, ((const double *)ask->a)[i], ((const double *)ask->b)[i]);
    if (ask->dtype == DTYPE_FLOAT32)
        exact_add_float64(limb, layout.base, -value);
    else
        exact_add_product64(limb, value, -1);
    exact_round(limb, layout.limbs, layout.base, exact_format_of(DTYPE_FLOAT64), &difference);
    return fabs(difference.sum);
}

static void check_ask(struct ladder *machine, const struct ladder_ask *ask, enum data data)
{
    struct problem problem;
    if (rung_check(ask->rung, ask->dtype, ask->n, ask->threads, &problem) != ERR_OK)
        return;
    const struct dot_value value = run_ask(machine, ask).value;
    const double error = distance(ask, value.sum);
    if (!(error <= value.error_bound))
        fail_msg("%s, %s, n = %llu, blocks of %u, data %d: %a is %a away, not %a", ask->rung->name,
                 dtype_name(ask->dtype), (unsigned long long)ask->n, ask->threads, (int)data,
                 value.sum, error, value.error_bound);
    if (!ask->rung->is_exact)
        return;
    struct exact_sum sum;
    struct dot_value exact;
    exact_sum_init(&sum, NULL, ask->dtype, false, false);
    exact_sum_add(&sum, ask->a, ask->b, ask->n);
    exact_sum_round(&sum, ask->dtype, &exact);
    assert_true(value.sum == exact.sum && value.error_bound == exact.error_bound);
    assert_int_equal(value.flags, exact.flags);
}

static const uint32_t ladder_blocks[] = {0,  1,   2,   7,   8,   31,   32,  33,
                                         64, 100, 255, 256, 257, 1000, 1024};
enum { BLOCK_COUNT = sizeof ladder_blocks / sizeof ladder_blocks[0] };

/* Around every warp and block size, and some more, up to `largest`. */
static const uint64_t ladder_lengths[] = {
    0,   1,   2,   3,   7,   8,   9,   31,   32,   33,   63,   64,   65,   100,   127,
    255, 256, 257, 511, 512, 513, 999, 1000, 1023, 1024, 1025, 2049, 4097, 70000, 1000003};
enum { LENGTH_COUNT = sizeof ladder_lengths / sizeof ladder_lengths[0] };

static void *reserve(uint64_t largest)
{
    void *data = malloc((size_t)(largest + 1) * sizeof(double));
    assert_non_null(data);
    return data;
}

/* Not those of the lab only. */
static void rungs_are_right(struct ladder *machine, uint64_t largest)
{
    void *a = reserve(largest), *b = reserve(largest);
    size_t count = 0;
    const struct rung *rungs = ladder_rows(&count);
    for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++)
        for (size_t k = 0; k < LENGTH_COUNT && ladder_lengths[k] <= largest; k++)
            for (size_t i = 0; i < BLOCK_COUNT; i++) {
                const enum data data = (enum data)((k + i) % DATA_COUNT);
                operands_draw(a, b, dtype, data, ladder_lengths[k]);
                for (size_t r = 0; r < count; r++) {
                    const struct ladder_ask ask = {.rung = &rungs[r],
                                                   .dtype = dtype,
                                                   .a = a,
                                                   .b = b,
                                                   .n = ladder_lengths[k],
                                                   .threads = ladder_blocks[i],
                                                   .seed = k + i};
                    if (!rungs[r].is_lab_only)
                        check_ask(machine, &ask, data);
                }
            }
    free(a);
    free(b);
}

/* Several runs, emulated in other orders. */
static void fixed_rungs_repeat(struct ladder *machine, uint64_t runs)
{
    enum { LARGEST = 2100 };
    void *a = reserve(LARGEST), *b = reserve(LARGEST);
    size_t count = 0;
    const struct rung *rungs = ladder_rows(&count);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < BLOCK_COUNT; i++) {
            struct problem problem;
            struct ladder_ask ask = {.rung = &rungs[r],
                                     .dtype = i % 2 == 0 ? DTYPE_FLOAT32 : DTYPE_FLOAT64,
                                     .a = a,
                                     .b = b,
                                     .n = rungs[r].max_n > 0 ? ladder_blocks[i] : LARGEST,
                                     .threads = ladder_blocks[i]};
            if (rungs[r].order == RUNG_ORDER_ANY ||
                rung_check(ask.rung, ask.dtype, ask.n, ask.threads, &problem) != ERR_OK)
                continue;
            operands_draw(a, b, ask.dtype, DATA_WIDE, ask.n);
            const double first = run_ask(machine, &ask).value.sum;
            for (ask.seed = 1; ask.seed < runs; ask.seed++) {
                const double again = run_ask(machine, &ask).value.sum;
                if (memcmp(&first, &again, sizeof first) != 0)
                    fail_msg("%s, blocks of %u: %a and %a", rungs[r].name, ask.threads, first,
                             again);
            }
        }
    free(a);
    free(b);
}

/* Adds n ones; thread-atomic gets them all. */
static void race_loses(struct ladder *machine, uint64_t n)
{
    float *ones = reserve(n);
    for (uint64_t i = 0; i < n; i++)
        ones[i] = 1;
    struct ladder_ask ask = {.rung = ladder_find("race"),
                             .dtype = DTYPE_FLOAT32,
                             .a = ones,
                             .b = ones,
                             .n = n,
                             .seed = 1};
    const struct dot_value raced = run_ask(machine, &ask).value;
    assert_true(raced.sum >= 1 && raced.sum < (double)n);
    assert_true(isinf(raced.error_bound));
    ask.rung = ladder_find("thread-atomic");
    assert_true(run_ask(machine, &ask).value.sum == (double)n);
    free(ones);
}

#endif
