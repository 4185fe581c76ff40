/* nest.c - depth, lengths and pairs of one operand's arrays (see nest.h). */
#include "proto/nest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/pointer.h"

void nest_init(struct nest *nest, enum dtype dtype)
{
    *nest = (struct nest){.dtype = dtype, .rank = -1};
}

static enum error rank_fail(struct problem *problem)
{
    return problem_set(problem, ERR_VALUE, "more than %d dimensions", LIMIT_RANK);
}

/* A real number, or an array of another length, stands where a complex element should. */
static enum error pair_fail(enum dtype dtype, const char *got, struct problem *problem)
{
    return problem_set(problem, ERR_VALUE, "expected a pair [re, im] for %s, got %s",
                       dtype_name(dtype), got);
}

/* Is an array of so many numbers a complex element? */
static enum error pair_check(enum dtype dtype, uint64_t count, struct problem *problem)
{
    char got[48];
    if (count == 2)
        return ERR_OK;
    (void)snprintf(got, sizeof got, "an array of %" PRIu64, count);
    return pair_fail(dtype, got, problem);
}

enum error nest_open(struct nest *nest, struct problem *problem)
{
    if (nest->depth == nest->rank)
        return problem_set(problem, ERR_SHAPE,
                           "expected a number, because others at this depth are");
    bool may_be_pair = nest->dtype == DTYPE_UNKNOWN || dtype_is_complex(nest->dtype);
    if (nest->depth == (may_be_pair ? NEST_LEVELS : LIMIT_RANK))
        return rank_fail(problem);
    nest->count[nest->depth++] = 0;
    return ERR_OK;
}

enum error nest_number(struct nest *nest, struct problem *problem)
{
    bool is_pair_wanted = nest->rank < 0 ? nest->depth == 1 : nest->depth == nest->rank - 1;
    if (is_pair_wanted && dtype_is_complex(nest->dtype))
        return pair_fail(nest->dtype, "one number", problem);
    if (nest->rank < 0)
        nest->rank = nest->depth;
    if (nest->depth != nest->rank)
        return problem_set(problem, ERR_SHAPE,
                           "expected a row, because others at this depth are rows");
    return ERR_OK;
}

/* Has the array that ends the length of the others at its depth? The first one settles it. Rows
 * that are empty have no pairs in them. */
static enum error length_check(struct nest *nest, int level, struct problem *problem)
{
    uint64_t count = nest->count[level];
    if (!nest->has_dim[level]) {
        nest->has_dim[level] = true;
        nest->dim[level] = count;
    }
    if (dtype_is_complex(nest->dtype) && level == nest->rank - 1 && nest->dim[level] > 0)
        return pair_check(nest->dtype, count, problem);
    if (count != nest->dim[level])
        return problem_set(problem, ERR_SHAPE,
                           "a row has %" PRIu64 " values, the first one at this depth %" PRIu64,
                           count, nest->dim[level]);
    return ERR_OK;
}

enum error nest_close(struct nest *nest, struct problem *problem)
{
    assert(nest->depth > 0);
    if (nest->rank < 0)
        nest->rank = nest->depth; /* the first row that closes is empty */
    enum error err = length_check(nest, nest->depth - 1, problem);
    if (err != ERR_OK)
        return err;
    nest->depth--;
    if (nest->depth > 0)
        nest->count[nest->depth - 1]++;
    return ERR_OK;
}

/* Where the first of the values that are so many levels deep is. */
static enum error first_locate(int levels, struct problem *problem)
{
    for (; levels > 0; levels--)
        pointer_prefix(problem, "/0");
    return problem->error;
}

enum error nest_settle(const struct nest *nest, enum dtype dtype, struct shape *ret,
                       struct problem *problem)
{
    int rank = nest->rank;
    assert(nest->depth == 0 && rank > 0);
    if (dtype_is_complex(dtype) && nest->dim[rank - 1] > 0) {
        if (rank == 1) {
            (void)pair_fail(dtype, "one number", problem);
            return first_locate(1, problem);
        }
        rank--;
        if (pair_check(dtype, nest->dim[rank], problem) != ERR_OK)
            return first_locate(rank, problem);
    }
    if (rank > LIMIT_RANK) {
        (void)rank_fail(problem);
        return first_locate(LIMIT_RANK, problem);
    }
    *ret = (struct shape){.rank = rank};
    memcpy(ret->dim, nest->dim, (size_t)rank * sizeof ret->dim[0]);
    return ERR_OK;
}

uint64_t nest_count(const struct nest *nest)
{
    uint64_t count = 1;
    for (int level = 0; level < nest->rank; level++)
        count *= nest->dim[level];
    return count;
}

static enum error step_prefix(uint64_t index, struct problem *problem)
{
    char step[24];
    (void)snprintf(step, sizeof step, "/%" PRIu64, index);
    return pointer_prefix(problem, step);
}

enum error nest_locate(const struct nest *nest, int levels, struct problem *problem)
{
    for (int level = levels - 1; level >= 0; level--)
        step_prefix(nest->count[level], problem);
    return problem->error;
}

enum error nest_locate_number(const struct nest *nest, uint64_t index, struct problem *problem)
{
    for (int level = nest->rank - 1; level >= 0; level--) {
        step_prefix(index % nest->dim[level], problem);
        index /= nest->dim[level];
    }
    return problem->error;
}
