/* ladder.c - what each rung takes, and who may use it (see ladder.h). */
#include "gpu/kernels/ladder.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "gpu/exact/limbs.h"
#include "gpu/kernels/ladder_map.h"
#include "gpu/kernels/rung.h"

/* 132 multiprocessors; blocks as the kernels' launch bounds want them there. */
const struct rung_machine rung_machine_usual = {
    .grid_capacity = {2 * 132, 2 * 132},
    .exact = {{.threads = 640, .capacity = 132}, {.threads = 256, .capacity = 132}},
};

/* --- arithmetic --- */

static uint64_t parts(uint64_t n, uint64_t size)
{
    return (n + size - 1) / size;
}

static uint64_t smaller(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

/* Steps of a tree over so many cells: the least number of halvings, rounded up, to one. */
static uint32_t halvings(uint64_t cells)
{
    uint32_t steps = 0;
    for (; cells > 1; cells = parts(cells, 2))
        steps++;
    return steps;
}

/* n products cannot pass more than n - 1 additions that round: adding zero does not. */
static uint64_t depth_of(uint64_t additions, uint64_t n)
{
    return n > 0 ? smaller(additions, n - 1) : 0;
}

/* A thread an element; one block at least, which leaves the zero of an empty sum. */
static void spread(uint64_t n, uint32_t threads, struct rung_takes *ret)
{
    const uint64_t blocks = parts(n, threads);
    ret->blocks = blocks > 0 ? (uint32_t)blocks : 1;
    ret->threads = threads;
    ret->launches = 1;
}

/* --- rung by rung --- */

static void takes_race(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                       uint32_t threads, struct rung_takes *ret)
{
    (void)machine, (void)dtype;
    spread(n, threads, ret);
    ret->steps = 1;
    ret->depth = depth_of(n, n);
}

static void takes_serial(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                         uint32_t threads, struct rung_takes *ret)
{
    (void)machine, (void)dtype;
    spread(n, threads, ret);
    ret->steps = ret->depth = depth_of(n, n);
    ret->barriers = 1;
}

static void takes_tree(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                       uint32_t threads, struct rung_takes *ret)
{
    (void)machine, (void)dtype;
    spread(n, threads, ret);
    ret->steps = halvings(threads);
    ret->barriers = 1 + ret->steps;
    ret->depth = depth_of(ret->steps, n);
}

static void takes_tree_pairs(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                             uint32_t threads, struct rung_takes *ret)
{
    takes_tree(machine, dtype, n, threads, ret);
}

static void takes_thread_atomic(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                                uint32_t threads, struct rung_takes *ret)
{
    (void)machine, (void)dtype;
    spread(n, threads, ret);
    ret->atomics = n;
    ret->depth = depth_of(n, n);
}

static void takes_block_atomic(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                               uint32_t threads, struct rung_takes *ret)
{
    takes_tree(machine, dtype, n, threads, ret);
    ret->atomics = ret->blocks;
    ret->depth = depth_of(ret->steps + ret->atomics, n);
}

/* The tree ends where one warp holds what is left. */
static void takes_warp_shuffle(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                               uint32_t threads, struct rung_takes *ret)
{
    const uint32_t in_registers = halvings(GRID_WARP);
    takes_block_atomic(machine, dtype, n, threads, ret);
    ret->barriers = 1;
    for (uint64_t cells = threads; cells > GRID_WARP; cells = parts(cells, 2))
        ret->barriers++;
    ret->steps = ret->barriers - 1 + in_registers;
    ret->depth = depth_of(ret->steps + ret->atomics, n);
}

static void takes_two_pass(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                           uint32_t threads, struct rung_takes *ret)
{
    (void)machine, (void)dtype;
    spread(smaller(n, (uint64_t)threads * RUNG_PARTIALS), threads, ret);
    const uint64_t mine = parts(n, (uint64_t)threads * ret->blocks); /* of a thread, first pass */
    const uint64_t partials = parts(ret->blocks, threads);           /* second pass */
    const uint64_t tree = halvings(threads);
    ret->launches = 2;
    ret->steps = (mine > 0 ? mine - 1 : 0) + tree + (partials - 1) + tree;
    ret->barriers = 2 * (1 + tree);
    ret->depth = depth_of(ret->steps, n);
}

/* --- the service's own kernels: one task --- */

static struct grid_task one_task(enum dtype dtype, uint64_t n)
{
    return (struct grid_task){.n = n,
                              .rows = 1,
                              .inner_rows = 1,
                              .dtype = (uint32_t)dtype,
                              .result_dtype = (uint32_t)dtype,
                              .is_final = 1};
}

/* Barriers, see grid_atomic.cu: the task is fetched, sums are laid out, and each halving down to a
 * warp. */
static void takes_grid_atomic(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                              uint32_t threads, struct rung_takes *ret)
{
    (void)threads; /* its own */
    if (n == 0)
        return;
    struct grid_task task = one_task(dtype, n);
    grid_plan(&task, machine->grid_capacity[dtype]);
    ret->blocks = task.blocks;
    ret->threads = GRID_THREADS;
    ret->launches = 1;
    ret->barriers = 2 + halvings(GRID_WARPS);
    ret->atomics = task.form == GRID_SPLIT_ROW ? 2 * (uint64_t)task.blocks : 0;
    ret->depth = grid_depth(&task);
    ret->steps = ret->depth - smaller(ret->depth, task.parts);
}

/* Barriers, see exact_rows.cuh: the task is fetched; limbs are folded between two; a row that the
 * block owns ends. Atomics: every limb, what is not finite, and the arrival. */
static void takes_exact(const struct rung_machine *machine, enum dtype dtype, uint64_t n,
                        uint32_t threads, struct rung_takes *ret)
{
    (void)threads; /* its own */
    if (n == 0)
        return;
    const struct exact_shape *shape = &machine->exact[dtype];
    struct grid_task task = one_task(dtype, n);
    exact_plan(&task, shape, false);
    const bool is_split = task.form == GRID_SPLIT_ROW;
    ret->blocks = task.blocks;
    ret->threads = exact_threads(&task, shape);
    ret->launches = 1;
    ret->steps = parts(n, (uint64_t)ret->threads * task.blocks);
    ret->barriers = is_split ? 3 : 4;
    ret->atomics = is_split ? task.blocks * ((uint64_t)exact_layout_of(dtype).limbs + 2) : 0;
}

static struct grid_task task_of(const struct rung *rung, const struct rung_call *call)
{
    struct grid_task task = one_task(call->dtype, call->n);
    task.a = call->a;
    task.b = call->b;
    if (rung->is_exact)
        exact_plan(&task, &call->machine->exact[call->dtype], false);
    else
        grid_plan(&task, call->machine->grid_capacity[call->dtype]);
    return task;
}

/* --- the table --- */

static const struct rung rows[] = {
#define X(symbol, text, file, ...) \
    {.name = text, .source = "gpu/kernels/" file, .takes = takes_##symbol, __VA_ARGS__},
    LADDER_MAP(X)
#undef X
};

static_assert(DTYPE_FLOAT32 == 0 && DTYPE_FLOAT64 == 1, "a machine's figures are kept by type");

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const struct rung *ladder_rows(size_t *ret_count)
{
    *ret_count = ROW_COUNT;
    return rows;
}

const struct rung *ladder_find(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const char *ladder_list(void)
{
#define X(symbol, text, file, ...) ", " text
    return LADDER_MAP(X) + 2; /* without the first comma */
#undef X
}

const char *rung_order_name(enum rung_order order)
{
    static const char *const names[] = {"fixed", "any", "none matters"};
    assert((size_t)order < sizeof names / sizeof names[0]);
    return names[order];
}

/* --- who may use it --- */

uint32_t rung_threads(const struct rung *rung, uint64_t n)
{
    if (rung->max_n == 0)
        return RUNG_THREADS;
    uint32_t threads = 1;
    while (threads < n && threads < RUNG_THREADS_MAX)
        threads *= 2;
    return threads;
}

static enum error check_block(const struct rung *rung, uint32_t threads, struct problem *problem)
{
    if (threads > RUNG_THREADS_MAX) {
        (void)problem_set(problem, ERR_VALUE, "a block has 1 to %d threads, not %u",
                          (int)RUNG_THREADS_MAX, threads);
        return problem_limit(problem, RUNG_THREADS_MAX, NULL);
    }
    if (rung->takes_warps && threads % GRID_WARP != 0)
        return problem_set(problem, ERR_VALUE,
                           "%s takes blocks of whole warps, multiples of %d threads, not %u",
                           rung->name, (int)GRID_WARP, threads);
    return ERR_OK;
}

/* What a grid can have: 2^31 - 1 blocks. The service's own kernels choose less. */
static uint64_t most_products(const struct rung *rung, uint32_t threads)
{
    if (rung->max_n > 0)
        return threads > 0 ? smaller(threads, rung->max_n) : rung->max_n;
    return (uint64_t)INT32_MAX * (threads > 0 ? threads : RUNG_THREADS);
}

enum error rung_check(const struct rung *rung, enum dtype dtype, uint64_t n, uint32_t threads,
                      struct problem *problem)
{
    if (dtype != DTYPE_FLOAT32 && dtype != DTYPE_FLOAT64)
        return problem_set(problem, ERR_DTYPE, "%s computes float32 and float64, not %s",
                           rung->name, dtype_name(dtype));
    if (rung->chooses_block)
        return ERR_OK;
    const enum error error = check_block(rung, threads, problem);
    const uint64_t most = most_products(rung, threads);
    if (error != ERR_OK || n <= most)
        return error;
    (void)problem_set(problem, ERR_KERNEL, "%s takes at most %llu products%s, not %llu", rung->name,
                      (unsigned long long)most,
                      rung->max_n > 0 && most < rung->max_n ? " in a block of so many threads" : "",
                      (unsigned long long)n);
    return problem_limit(problem, most, NULL);
}

void rung_takes(const struct rung *rung, const struct rung_machine *machine, enum dtype dtype,
                uint64_t n, uint32_t threads, struct rung_takes *ret)
{
    struct rung_takes takes = {0};
    rung->takes(machine != NULL ? machine : &rung_machine_usual, dtype, n,
                threads > 0 ? threads : rung_threads(rung, n), &takes);
    *ret = takes;
}

size_t rung_prepare(const struct rung *rung, const struct rung_call *call, struct rung_launch *ret)
{
    *ret = (struct rung_launch){.call = *call};
    if (call->machine == NULL)
        ret->call.machine = &rung_machine_usual;
    rung_takes(rung, ret->call.machine, call->dtype, call->n, call->threads, &ret->takes);
    if (rung->chooses_block && ret->takes.launches > 0)
        ret->task = task_of(rung, &ret->call);
    return (size_t)(rung - rows);
}

double rung_value(const struct rung *rung, enum dtype dtype, const void *result)
{
    float narrow = 0;
    double wide = 0;
    if (dtype == DTYPE_FLOAT32 && !rung->is_float64) {
        memcpy(&narrow, result, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&wide, result, sizeof wide); /* of a struct grid_sum and dot_value as well: its first */
    return wide;
}
