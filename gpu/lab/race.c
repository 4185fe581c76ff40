/* race.c - additions that are lost to a variable that everybody adds to (see experiments.h).
 *
 * Emulated, the lanes of a warp move in lockstep, so that they read before any of them writes, as
 * on a device.
 */
#include <assert.h>
#include <stdlib.h>

#include "gpu/lab/machine.h"
#include "gpu/lab/report.h"

enum { WATCHED = 64 }; /* threads of the run that is watched: two warps */

/* n ones; a product of two of them is one, so a and b are the same memory. */
static float *ones_create(uint64_t n)
{
    float *ones = malloc(n * sizeof *ones);
    for (uint64_t i = 0; ones != NULL && i < n; i++)
        ones[i] = 1;
    return ones;
}

static double run_emulated(const struct rung *rung, const float *ones, uint64_t n, uint64_t seed,
                           struct emu_trace *trace)
{
    _Alignas(16) char result[RUNG_RESULT_BYTES], scratch[RUNG_SCRATCH_BYTES];
    const struct rung_call call = {
        .dtype = DTYPE_FLOAT32,
        .a = ones,
        .b = ones,
        .n = n,
        .result = result,
        .scratch = scratch,
        .seed = seed,
        .is_lockstep = true,
        .trace = trace,
    };
    bool is_done = rung_emulated(rung, &call);
    return is_done ? rung_value(rung, DTYPE_FLOAT32, result) : 0;
}

static enum error run(struct lab *lab, const struct lab_race_ask *ask, const char *kernel,
                      const float *ones, uint64_t seed, double *ret, struct problem *problem)
{
    const struct rung *rung = ladder_find(kernel);
    assert(rung != NULL);
    if (ask->device == 0) {
        enum error error = machine_goes_on(lab, problem);
        if (error == ERR_OK)
            *ret = run_emulated(rung, ones, ask->n, seed, NULL);
        return error;
    }
    const struct ladder_ask sum = {
        .rung = rung, .dtype = DTYPE_FLOAT32, .a = ones, .b = ones, .n = ask->n};
    struct ladder_answer answer;
    enum error error = machine_run(lab, ask->device, &sum, &answer, problem);
    if (error == ERR_OK)
        *ret = answer.value.sum;
    return error;
}

/* The report of the first race among a few threads; the run stops there. */
static enum error watch(const float *ones, uint64_t n, uint64_t seed, struct lab_faults *ret,
                        struct problem *problem)
{
    struct emu_trace *trace;
    enum error error = report_trace_create(&trace, 1, problem);
    if (error != ERR_OK)
        return error;
    (void)run_emulated(ladder_find("race"), ones, n < WATCHED ? n : WATCHED, seed, trace);
    error = report_faults(trace, ret, problem);
    trace_destroy(trace);
    return error;
}

enum error lab_race(struct lab *lab, const struct lab_race_ask *ask, struct lab_race *ret,
                    struct problem *problem)
{
    struct lab_race race = {.runs = ask->runs};
    float *ones = ones_create(ask->n);
    if (ones == NULL)
        return report_nomem(problem);
    enum error error = ERR_OK;
    for (uint32_t i = 0; error == ERR_OK && i < ask->runs; i++)
        error = run(lab, ask, "race", ones, ask->seed + i, &race.value[i], problem);
    if (error == ERR_OK)
        error = run(lab, ask, "thread-atomic", ones, ask->seed, &race.atomic, problem);
    if (error == ERR_OK)
        error = watch(ones, ask->n, ask->seed, &race.faults, problem);
    free(ones);
    if (error == ERR_OK)
        *ret = race;
    return error;
}

void lab_race_fini(struct lab_race *race)
{
    report_faults_fini(&race->faults);
}
