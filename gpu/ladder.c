/* ladder.c - one machine of the ladder, and the measuring (see ladder.h). */
#include "gpu/ladder.h"

#include <assert.h>
#include <stdlib.h>

#include "gpu/clock.h"
#include "gpu/ladder_backend.h"

struct ladder {
    const struct ladder_backend *backend; /* fixed after open, as all of it */
    struct ladder_device *device;
    struct rung_machine machine;
};

static const struct ladder_backend *backend_of(int index)
{
    if (index == LADDER_EMULATED)
        return &ladder_emulated;
#ifdef DOTD_HAVE_CUDA
    return &ladder_cuda;
#else
    return NULL;
#endif
}

enum error ladder_open(struct ladder **ret, int index, struct problem *problem)
{
    const struct ladder_backend *backend = backend_of(index);
    if (backend == NULL)
        return problem_set(problem, ERR_NO_DEVICE, "this dotd was built without CUDA");
    struct ladder *ladder = calloc(1, sizeof *ladder);
    if (ladder == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a machine of the ladder");
    ladder->backend = backend;
    const enum error error = backend->open(&ladder->device, index, &ladder->machine, problem);
    if (error != ERR_OK) {
        free(ladder);
        return error;
    }
    *ret = ladder;
    return ERR_OK;
}

void ladder_close(struct ladder *ladder)
{
    if (ladder == NULL)
        return;
    ladder->backend->close(ladder->device);
    free(ladder);
}

/* --- one sum --- */

enum error ladder_run(struct ladder *ladder, const struct ladder_ask *ask,
                      struct ladder_answer *ret, struct problem *problem)
{
    _Alignas(16) unsigned char result[RUNG_RESULT_BYTES] = {0};
    struct ladder_answer answer = {0};
    rung_takes(ask->rung, &ladder->machine, ask->dtype, ask->n, ask->threads, &answer.takes);
    const enum error error =
        ladder->backend->run(ladder->device, &ladder->machine, ask, result, &answer, problem);
    if (error != ERR_OK)
        return error;
    if (ask->rung->is_exact)
        answer.value = *(const struct dot_value *)(const void *)result;
    else
        answer.value.sum = rung_value(ask->rung, ask->dtype, result);
    ladder_settle(ask, &answer.takes, &answer.value);
    *ret = answer;
    return ERR_OK;
}

/* --- measuring --- */

/* Source of the mixing: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
 * generators, 2014. */
static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void ladder_fill(void *data, enum dtype dtype, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        const int64_t bits = (int64_t)mixed(seed + (i + 1) * 0x9e3779b97f4a7c15);
        if (dtype == DTYPE_FLOAT32)
            ((float *)data)[i] = (float)(bits >> 40) * 0x1p-23F;
        else
            ((double *)data)[i] = (double)(bits >> 11) * 0x1p-52;
    }
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct ladder_time ladder_time_of(double *us, uint32_t runs)
{
    assert(runs > 0);
    qsort(us, runs, sizeof *us, compare_times);
    return (struct ladder_time){.runs = runs, .median_us = us[runs / 2], .least_us = us[0]};
}

/* The first run is not counted: it warms up what is loaded when it is first used. */
static enum error time_runs(struct ladder *ladder, const struct ladder_ask *ask, int64_t budget_ns,
                            uint32_t runs_max, struct ladder_time *ret, struct problem *problem)
{
    double us[LADDER_RUNS_MAX], ignored = 0;
    uint32_t runs = 0;
    const int64_t end_ns = clock_ns() + budget_ns;
    enum error error =
        ladder->backend->time(ladder->device, &ladder->machine, ask, &ignored, problem);
    while (error == ERR_OK && runs < runs_max && (runs == 0 || clock_ns() < end_ns)) {
        error = ladder->backend->time(ladder->device, &ladder->machine, ask, &us[runs], problem);
        runs++;
    }
    if (error != ERR_OK)
        return error;
    *ret = ladder_time_of(us, runs);
    return ERR_OK;
}

enum error ladder_measure(struct ladder *ladder, const struct ladder_ask *ask, int64_t budget_ns,
                          uint32_t runs_max, struct ladder_time *ret, struct problem *problem)
{
    assert(ask->n > 0 && runs_max > 0 && runs_max <= LADDER_RUNS_MAX);
    enum error error = ladder->backend->begin(ladder->device, ask, problem);
    if (error == ERR_OK)
        error = time_runs(ladder, ask, budget_ns, runs_max, ret, problem);
    ladder->backend->end(ladder->device);
    return error;
}
