/* measure.c - how long a rung takes on a device of this server (see experiments.h).
 *
 * Rungs are timed by the ladder. What /v1/dot uses is a rung as well on a CUDA device, and on
 * device 0 the CPU's own code on one core, timed here as the service calls it.
 */
#include <inttypes.h>
#include <string.h>

#include "gpu/lab/machine.h"
#include "gpu/lab/experiments.h"
#include "proto/pointer.h"

enum { BUDGET_MS = 200 }; /* of running; the service waits for no longer than that and one run */

/* --- what is asked --- */

static bool is_service(const char *kernel)
{
    return strcmp(kernel, "fast") == 0 || strcmp(kernel, "exact") == 0;
}

static bool is_cpu(const struct lab_measure_ask *ask)
{
    return ask->device == 0 && is_service(ask->kernel);
}

/* NULL: there is none of that name. */
static const struct rung *rung_of(const struct lab_measure_ask *ask)
{
    return ladder_find(strcmp(ask->kernel, "fast") == 0 ? "grid-atomic" : ask->kernel);
}

static uint64_t limit_of(const struct lab_measure_ask *ask)
{
    if (ask->device != 0)
        return LIMIT_LAB_MEASURE;
    return is_cpu(ask) ? LIMIT_LAB_MEASURE_CPU : LIMIT_LAB_MEASURE_EMULATED;
}

static enum error check_n(const struct lab_measure_ask *ask, struct problem *problem)
{
    const uint64_t limit = limit_of(ask);
    if (ask->n >= 1 && ask->n <= limit)
        return ERR_OK;
    if (ask->n == 0) {
        (void)problem_set(problem, ERR_VALUE, "n must be at least 1");
    } else {
        (void)problem_set(problem, ERR_TOO_LARGE,
                          "n is %" PRIu64 "; %s is measured there with at most %" PRIu64, ask->n,
                          ask->kernel, limit);
        (void)problem_limit(problem, limit, NULL);
    }
    return pointer_set(problem, "/n");
}

enum error lab_measure_settle(struct lab_measure_ask *ask, struct problem *problem)
{
    const struct rung *rung = rung_of(ask);
    if (rung == NULL) {
        (void)problem_set(problem, ERR_KERNEL, "there is no kernel \"%.40s\"; there are fast, %s",
                          ask->kernel, ladder_list());
        return pointer_set(problem, "/kernel");
    }
    if (ask->dtype != DTYPE_FLOAT32 && ask->dtype != DTYPE_FLOAT64) {
        (void)problem_set(problem, ERR_DTYPE, "kernels are measured in float32 and float64");
        return pointer_set(problem, "/dtype");
    }
    enum error error = check_n(ask, problem);
    if (error != ERR_OK || is_cpu(ask) ||
        rung_check(rung, ask->dtype, ask->n, 0, problem) == ERR_OK)
        return error;
    return pointer_set(problem, "/n");
}

/* --- the CPU --- */

/* Again and again until the budget is spent. */
static void time_job(struct gpu *gpu, struct job *job, struct ladder_time *ret)
{
    double us[LADDER_RUNS_MAX], spent_us = 0;
    uint32_t runs = 0;
    while (runs == 0 || (runs < LADDER_RUNS_MAX && spent_us < BUDGET_MS * 1e3)) {
        gpu_compute(gpu, job);
        us[runs] = (double)job->times.compute_ns / 1e3;
        spent_us += us[runs++];
    }
    *ret = ladder_time_of(us, runs);
}

static enum error time_cpu(struct gpu *gpu, const struct lab_measure_ask *ask, void *data,
                           struct ladder_time *ret)
{
    const size_t size = ask->n * dtype_size(ask->dtype);
    const struct shape shape = {1, {ask->n}};
    const struct tensor_pair pair = {.a = {ask->dtype, shape, 0}, .b = {ask->dtype, shape, size}};
    struct job job = {
        .base = data,
        .bytes = 2 * size,
        .accuracy = strcmp(ask->kernel, "exact") == 0 ? ACCURACY_EXACT : ACCURACY_FAST,
        .result_dtype = DTYPE_FLOAT64,
    };
    enum error error = job_plan(&job, &pair, 1);
    if (error != ERR_OK)
        return error;
    time_job(gpu, &job, ret);
    job_fini(&job);
    return job.error;
}

/* Operands lie in the service's memory and within its budget. */
static enum error measure_cpu(struct gpu *gpu, const struct lab_measure_ask *ask,
                              struct ladder_time *ret, struct problem *problem)
{
    const struct buffer_source *memory = gpu_buffers(gpu);
    struct block block;
    enum error error =
        memory->acquire(memory->context, 2 * ask->n * dtype_size(ask->dtype), &block);
    if (error == ERR_OK) {
        ladder_fill(block.data, ask->dtype, 2 * ask->n, ask->seed);
        error = time_cpu(gpu, ask, block.data, ret);
        memory->release(memory->context, block);
    }
    if (error != ERR_OK)
        return problem_set(problem, error, "no memory for operands to measure with");
    return ERR_OK;
}

/* --- either --- */

enum error lab_measure(struct lab *lab, const struct lab_measure_ask *ask, struct lab_measure *ret,
                       struct problem *problem)
{
    const struct ladder_ask sum = {
        .rung = rung_of(ask), .dtype = ask->dtype, .n = ask->n, .seed = ask->seed};
    const int64_t budget_ns = (int64_t)BUDGET_MS * 1000000;
    struct ladder_time time;
    enum error error = is_cpu(ask) ? measure_cpu(machine_gpu(lab), ask, &time, problem)
                                   : machine_measure(lab, ask->device, &sum, budget_ns,
                                                     LADDER_RUNS_MAX, &time, problem);
    if (error != ERR_OK)
        return error;
    *ret = (struct lab_measure){
        .is_emulated = ask->device == 0 && !is_cpu(ask),
        .runs = time.runs,
        .time_us = time.median_us,
        .time_us_min = time.least_us,
        .gb_s = 2e-3 * (double)(ask->n * dtype_size(ask->dtype)) / time.median_us,
        .max_time_ms = BUDGET_MS,
    };
    return ERR_OK;
}
