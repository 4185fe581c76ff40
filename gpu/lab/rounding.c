/* rounding.c - one vector, many orders, different bits (see experiments.h). */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "gpu/exact/sum.h"
#include "gpu/lab/machine.h"
#include "gpu/lab/experiments.h"

/* --- numbers --- */

/* A number's place among all numbers of its type, in their order; zeros share one. */
static int64_t place_of(enum dtype dtype, double value)
{
    if (dtype == DTYPE_FLOAT32) {
        float narrow = (float)value;
        int32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits >= 0 ? bits : INT32_MIN - (int64_t)bits;
    }
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : INT64_MIN - bits;
}

static uint64_t ulps_between(enum dtype dtype, double x, double y)
{
    if (isnan(x) || isnan(y))
        return UINT64_MAX;
    int64_t low = place_of(dtype, x), high = place_of(dtype, y);
    return low < high ? (uint64_t)high - (uint64_t)low : (uint64_t)low - (uint64_t)high;
}

/* |value - exact|: the value is one more product of the exact sum, times -1, and all is rounded
 * once. */
static double error_of(const struct exact_sum *exact, enum dtype dtype, double value)
{
    if (!isfinite(value))
        return NAN;
    struct exact_sum sum = *exact;
    struct dot_value difference;
    const float value32 = (float)value, minus_one32 = -1;
    const double minus_one = -1;
    if (dtype == DTYPE_FLOAT32)
        exact_sum_add(&sum, &value32, &minus_one32, 1);
    else
        exact_sum_add(&sum, &value, &minus_one, 1);
    exact_sum_round(&sum, DTYPE_FLOAT64, &difference);
    return fabs(difference.sum);
}

static bool is_same(const struct lab_sum *x, const struct lab_sum *y)
{
    return memcmp(&x->value, &y->value, sizeof x->value) == 0;
}

/* --- sums --- */

/* What all sums of one question share. */
struct rounds {
    struct lab *lab;
    const struct lab_rounding_ask *ask;
    struct exact_sum exact;
    struct lab_rounding *rounding;
};

/* The CPU's own loop: what the rung "serial" does, without its limit. */
static double sum_sequentially(const struct lab_rounding_ask *ask)
{
    if (ask->dtype == DTYPE_FLOAT32) {
        const float *a = ask->a, *b = ask->b;
        float sum = 0;
        for (uint64_t i = 0; i < ask->n; i++)
            sum += a[i] * b[i];
        return (double)sum;
    }
    const double *a = ask->a, *b = ask->b;
    double sum = 0;
    for (uint64_t i = 0; i < ask->n; i++)
        sum += a[i] * b[i];
    return sum;
}

static struct ladder_ask ladder_ask_of(const struct lab_rounding_ask *ask, const char *kernel)
{
    const struct rung *rung = ladder_find(kernel);
    assert(rung != NULL);
    return (struct ladder_ask){
        .rung = rung, .dtype = ask->dtype, .a = ask->a, .b = ask->b, .n = ask->n};
}

static void sum_note(struct rounds *rounds, enum lab_how how, const char *kernel, uint64_t order,
                     const struct dot_value *value)
{
    struct lab_rounding *rounding = rounds->rounding;
    const enum dtype dtype = rounds->ask->dtype;
    rounding->sum[rounding->sum_count++] = (struct lab_sum){
        .how = how,
        .kernel = kernel,
        .order = order,
        .value = value->sum,
        .ulps = ulps_between(dtype, value->sum, rounding->exact.sum),
        .error = error_of(&rounds->exact, dtype, value->sum),
        .bound = value->error_bound,
    };
}

static void add_sequential(struct rounds *rounds)
{
    const struct ladder_ask ask = ladder_ask_of(rounds->ask, "serial");
    const struct rung_takes takes = {.depth = ask.n - 1}; /* the first addition is to zero */
    struct dot_value value = {.sum = sum_sequentially(rounds->ask)};
    ladder_settle(&ask, &takes, &value);
    sum_note(rounds, LAB_SEQUENTIAL, NULL, 0, &value);
}

static enum error add_rung(struct rounds *rounds, enum lab_how how, const char *kernel,
                           uint64_t order, struct problem *problem)
{
    struct ladder_ask ask = ladder_ask_of(rounds->ask, kernel);
    struct ladder_answer answer;
    ask.seed = order;
    enum error error = machine_run(rounds->lab, rounds->ask->device, &ask, &answer, problem);
    if (error == ERR_OK)
        sum_note(rounds, how, kernel, order, &answer.value);
    return error;
}

/* Where one block is enough, threads race to the sum, else blocks do. */
static enum error add_rungs(struct rounds *rounds, struct problem *problem)
{
    const bool is_block = rounds->ask->n <= LIMIT_LAB_BLOCK;
    const char *tree = is_block ? "tree" : "two-pass";
    const char *atomic = is_block ? "thread-atomic" : "block-atomic";
    const uint64_t first = rounds->ask->device == 0 ? rounds->ask->seed + 1 : 1;
    enum error error = add_rung(rounds, LAB_TREE, tree, 0, problem);
    for (uint32_t i = 0; error == ERR_OK && i < rounds->ask->orders; i++)
        error = add_rung(rounds, LAB_ATOMIC, atomic, first + i, problem);
    return error;
}

/* Compares all with all: there are at most 34. */
static void summarise(struct lab_rounding *rounding)
{
    for (uint32_t i = 0; i < rounding->sum_count; i++) {
        const struct lab_sum *sum = &rounding->sum[i];
        rounding->bound = fmax(rounding->bound, sum->bound);
        uint32_t j = 0;
        while (!is_same(sum, &rounding->sum[j]))
            j++;
        rounding->distinct += j == i;
    }
    rounding->condition = rounding->exact.sum_abs / fabs(rounding->exact.sum);
}

enum error lab_rounding(struct lab *lab, const struct lab_rounding_ask *ask,
                        struct lab_rounding *ret, struct problem *problem)
{
    struct lab_rounding rounding = {0};
    struct rounds rounds = {.lab = lab, .ask = ask, .rounding = &rounding};
    exact_sum_init(&rounds.exact, NULL, ask->dtype, false, true);
    exact_sum_add(&rounds.exact, ask->a, ask->b, ask->n);
    struct exact_sum sum = rounds.exact; /* rounding uses it up */
    exact_sum_round(&sum, ask->dtype, &rounding.exact);
    add_sequential(&rounds);
    enum error error = add_rungs(&rounds, problem);
    if (error != ERR_OK)
        return error;
    summarise(&rounding);
    *ret = rounding;
    return ERR_OK;
}
