/* barrier.c - what happens at a barrier that only some threads reach (see experiments.h). */
#include <stdlib.h>

#include "gpu/lab/kernels.h"
#include "gpu/lab/report.h"

static enum error describe(const struct emu_trace *trace, struct lab_barrier *ret,
                           struct problem *problem)
{
    enum error error = report_faults(trace, &ret->faults, problem);
    if (error == ERR_OK && ret->is_stopped)
        error = report_threads(trace->waiting, &ret->waiting, &ret->waiting_count, problem);
    if (error == ERR_OK && ret->is_stopped)
        error = report_threads(trace->ended, &ret->ended, &ret->ended_count, problem);
    return error;
}

enum error lab_barrier(struct lab *lab, const struct lab_barrier_ask *ask, struct lab_barrier *ret,
                       struct problem *problem)
{
    (void)lab; /* always emulated */
    struct emu_trace *trace;
    enum error error = report_trace_create(&trace, 1, problem);
    if (error != ERR_OK)
        return error;
    float sum = 0;
    const struct barrier_call call = {(uint32_t)ask->n, ask->where == LAB_BRANCH, &sum};
    const struct emu_grid grid = {.seed = ask->seed, .trace = trace};
    struct lab_barrier barrier = {.is_stopped = !barrier_emulated(&call, &grid)};
    barrier.value = barrier.is_stopped ? 0 : (double)sum;
    error = describe(trace, &barrier, problem);
    trace_destroy(trace);
    if (error != ERR_OK) {
        lab_barrier_fini(&barrier);
        return error;
    }
    *ret = barrier;
    return ERR_OK;
}

void lab_barrier_fini(struct lab_barrier *barrier)
{
    free(barrier->waiting);
    free(barrier->ended);
    report_faults_fini(&barrier->faults);
    *barrier = (struct lab_barrier){0};
}
