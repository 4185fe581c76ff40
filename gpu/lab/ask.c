/* ask.c - questions to the lab: words, limits, defaults (see experiments.h).
 *
 * Where one operand alone decides, the pointer names it; the count of elements is that of a and b.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "gpu/kernels/ladder.h"
#include "gpu/lab/experiments.h"
#include "proto/pointer.h"

/* --- words --- */

const char *lab_fault_name(enum lab_fault_kind kind)
{
    static const char *const names[] = {"race", "barrier", "unwritten", "outside"};
    static_assert(sizeof names / sizeof *names == LAB_FAULT_COUNT, "a word each");
    assert((unsigned)kind < LAB_FAULT_COUNT);
    return names[kind];
}

const char *lab_what_name(enum lab_what what)
{
    static const char *const names[] = {"load", "add", "read"};
    static_assert(sizeof names / sizeof *names == LAB_WHAT_COUNT, "a word each");
    assert((unsigned)what < LAB_WHAT_COUNT);
    return names[what];
}

const char *lab_where_name(enum lab_where where)
{
    static const char *const names[] = {"branch", "common"};
    static_assert(sizeof names / sizeof *names == LAB_WHERE_COUNT, "a word each");
    assert((unsigned)where < LAB_WHERE_COUNT);
    return names[where];
}

const char *lab_how_name(enum lab_how how)
{
    static const char *const names[] = {"sequential", "tree", "atomic"};
    static_assert(sizeof names / sizeof *names == LAB_HOW_COUNT, "a word each");
    assert((unsigned)how < LAB_HOW_COUNT);
    return names[how];
}

static const struct lab_scheme schemes[] = {
    {"stride", "tree"},         {"pairs", "tree-pairs"},     {"serial", "serial"},
    {"blocks", "block-atomic"}, {"shuffle", "warp-shuffle"},
};

const struct lab_scheme *lab_schemes(size_t *ret_count)
{
    *ret_count = sizeof schemes / sizeof *schemes;
    return schemes;
}

const struct lab_scheme *lab_scheme_find(const char *name)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strcmp(schemes[i].name, name) == 0)
            return &schemes[i];
    return NULL;
}

/* --- checks --- */

static enum error check_dtype(enum dtype dtype, struct problem *problem)
{
    if (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64)
        return ERR_OK;
    (void)problem_set(problem, ERR_DTYPE, "the lab computes in float32 and float64");
    return pointer_set(problem, "/dtype");
}

/* A count of at least `least` and at most `most`; error is that of one beyond. */
static enum error check_count(const char *name, uint64_t count, uint64_t least, uint64_t most,
                              enum error error, struct problem *problem)
{
    if (count >= least && count <= most)
        return ERR_OK;
    if (count < least) {
        (void)problem_set(problem, ERR_VALUE, "%s must be at least %" PRIu64, name, least);
    } else {
        (void)problem_set(problem, error, "%s is %" PRIu64 "; the lab takes at most %" PRIu64, name,
                          count, most);
        (void)problem_limit(problem, most, NULL);
    }
    return pointer_set(problem, "/%s", name);
}

static enum error check_elements(uint64_t n, uint64_t most, struct problem *problem)
{
    if (n >= 1 && n <= most)
        return ERR_OK;
    if (n == 0) {
        (void)problem_set(problem, ERR_VALUE, "there is nothing to watch without elements");
    } else {
        (void)problem_set(problem, ERR_TOO_LARGE,
                          "a has %" PRIu64 " elements; the lab takes at most %" PRIu64, n, most);
        (void)problem_limit(problem, most, NULL);
    }
    return pointer_set(problem, "/a");
}

/* One block of a one-block rung takes an element a thread. */
static enum error check_block(const struct lab_reduce_ask *ask, const struct rung *rung,
                              struct problem *problem)
{
    if (rung->max_n > 0 && ask->n > ask->block) {
        (void)problem_set(problem, ERR_VALUE,
                          "scheme %s is one block: %" PRIu64 " elements need as many threads, and "
                          "the block has %" PRIu32 " of at most %d",
                          ask->scheme->name, ask->n, ask->block, LIMIT_LAB_BLOCK);
        (void)problem_limit(problem, LIMIT_LAB_BLOCK, NULL);
        return pointer_set(problem, "/block");
    }
    if (rung_check(rung, ask->dtype, ask->n, ask->block, problem) == ERR_OK)
        return ERR_OK;
    return pointer_set(problem, "/block");
}

enum error lab_reduce_settle(struct lab_reduce_ask *ask, struct problem *problem)
{
    const struct rung *rung = ladder_find(ask->scheme->kernel);
    enum error error = check_dtype(ask->dtype, problem);
    if (error == ERR_OK)
        error = check_elements(ask->n, LIMIT_LAB_TRACED, problem);
    if (error == ERR_OK && ask->block != 0)
        error = check_count("block", ask->block, 1, LIMIT_LAB_BLOCK, ERR_VALUE, problem);
    if (error != ERR_OK)
        return error;
    if (ask->block == 0)
        ask->block = rung_threads(rung, ask->n);
    return check_block(ask, rung, problem);
}

enum error lab_race_settle(struct lab_race_ask *ask, struct problem *problem)
{
    uint64_t most = ask->device == 0 ? LIMIT_LAB_RACE_EMULATED : LIMIT_LAB_RACE;
    ask->runs = ask->runs == 0 ? 5 : ask->runs;
    enum error error = check_count("n", ask->n, 1, most, ERR_TOO_LARGE, problem);
    if (error == ERR_OK)
        error = check_count("runs", ask->runs, 1, LIMIT_LAB_RUNS, ERR_VALUE, problem);
    return error;
}

enum error lab_shift_settle(struct lab_shift_ask *ask, struct problem *problem)
{
    enum error error = check_count(ask->values != NULL ? "values" : "n", ask->n, 1, LIMIT_LAB_BLOCK,
                                   ERR_TOO_LARGE, problem);
    if (error == ERR_OK)
        error = check_count("barriers", ask->barriers, 0, 2, ERR_VALUE, problem);
    return error;
}

enum error lab_barrier_settle(struct lab_barrier_ask *ask, struct problem *problem)
{
    return check_count("n", ask->n, 2, LIMIT_LAB_BLOCK, ERR_TOO_LARGE, problem);
}

enum error lab_rounding_settle(struct lab_rounding_ask *ask, struct problem *problem)
{
    ask->orders = ask->orders == 0 ? 8 : ask->orders;
    enum error error = check_dtype(ask->dtype, problem);
    if (error == ERR_OK)
        error = check_elements(ask->n, LIMIT_LAB_ROUNDING, problem);
    if (error == ERR_OK)
        error = check_count("orders", ask->orders, 1, LIMIT_LAB_ORDERS, ERR_VALUE, problem);
    return error;
}
