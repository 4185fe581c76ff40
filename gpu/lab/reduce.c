/* reduce.c - a reduction step by step, run by the kernel itself (see experiments.h). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "gpu/exact/sum.h"
#include "gpu/lab/machine.h"
#include "gpu/lab/report.h"

/* --- steps from a trace --- */

/* Where the arrays of all steps lie: one piece of memory, the widest type first. */
struct store {
    double *shared;
    struct lab_access *access;
    uint32_t *active;
    bool *is_written;
};

static bool is_shared(const struct emu_trace *trace, const struct emu_event *event)
{
    return trace->array[event->array].is_shared;
}

static enum error store_create(struct store *store, const struct emu_trace *trace,
                               struct lab_reduce *reduce, struct problem *problem)
{
    size_t active = 0;
    for (size_t i = 0; i < trace->interval_count; i++)
        active += trace->interval[i].active_threads;
    char *memory =
        malloc(trace->cell_count * (sizeof(double) + sizeof(bool)) +
               trace->event_count * sizeof(struct lab_access) + active * sizeof(uint32_t) + 1);
    if (memory == NULL)
        return report_nomem(problem);
    reduce->memory = memory;
    store->shared = (double *)(void *)memory;
    store->access = (struct lab_access *)(void *)(store->shared + trace->cell_count);
    store->active = (uint32_t *)(void *)(store->access + trace->event_count);
    store->is_written = (bool *)(store->active + active);
    return ERR_OK;
}

/* The index of an event's cell in a snapshot, where the shared arrays follow one another. */
static uint32_t cell_of(const struct emu_trace *trace, const struct emu_event *event)
{
    uint32_t cell = event->index;
    for (uint32_t i = 0; i < event->array; i++)
        cell += trace->array[i].is_shared ? trace->array[i].count : 0;
    return cell;
}

static void cells_copy(struct lab_step *step, struct store *store, const struct emu_trace *trace,
                       const struct emu_interval *interval)
{
    step->cell_count = (uint32_t)interval->cell_count;
    step->shared = store->shared;
    step->is_written = store->is_written;
    for (uint32_t i = 0; i < step->cell_count; i++) {
        const struct emu_cell *cell = &trace->cell[interval->first_cell + i];
        *store->shared++ = cell->value;
        *store->is_written++ = cell->is_written;
    }
}

static void active_copy(struct lab_step *step, struct store *store,
                        const struct emu_interval *interval)
{
    step->active = store->active;
    step->active_count = interval->active_threads;
    for (uint32_t warp = 0; warp < step->warps; warp++) {
        if (interval->active[warp] != 0)
            step->active_warps |= UINT32_C(1) << warp;
        for (uint32_t lane = 0; lane < EMU_WARP; lane++)
            if (interval->active[warp] >> lane & 1)
                *store->active++ = warp * EMU_WARP + lane;
    }
}

/* The shared accesses of one kind, thread after thread, each thread's in its order: a pass to count
 * them and one to put them in place. */
static uint32_t accesses_copy(struct store *store, const struct emu_trace *trace,
                              const struct emu_interval *interval, enum emu_access access)
{
    uint32_t first[EMU_THREADS_MAX + 1] = {0};
    const struct emu_event *event = trace->event + interval->first_event;
    for (size_t i = 0; i < interval->event_count; i++)
        if (event[i].access == access && is_shared(trace, &event[i]))
            first[event[i].thread + 1]++;
    for (uint32_t thread = 0; thread < EMU_THREADS_MAX; thread++)
        first[thread + 1] += first[thread];
    const uint32_t count = first[EMU_THREADS_MAX];
    for (size_t i = 0; i < interval->event_count; i++)
        if (event[i].access == access && is_shared(trace, &event[i]))
            store->access[first[event[i].thread]++] =
                (struct lab_access){event[i].thread, cell_of(trace, &event[i])};
    store->access += count;
    return count;
}

/* Only writes: the products arrive. At most one read and no write: the sum is fetched. */
static enum lab_what what_of(const struct lab_step *step)
{
    if (step->write_count > 0 && step->read_count == 0)
        return LAB_LOAD;
    return step->write_count == 0 && step->read_count <= 1 ? LAB_READ : LAB_ADD;
}

static void step_copy(struct lab_step *step, struct store *store, const struct emu_trace *trace,
                      const struct emu_interval *interval, uint32_t threads)
{
    step->block = interval->block;
    step->step = interval->number;
    step->warps = (threads + EMU_WARP - 1) / EMU_WARP;
    step->bank_conflicts = (uint32_t)interval->bank_conflicts;
    cells_copy(step, store, trace, interval);
    active_copy(step, store, interval);
    step->reads = store->access;
    step->read_count = accesses_copy(store, trace, interval, EMU_READ);
    step->writes = store->access;
    step->write_count = accesses_copy(store, trace, interval, EMU_WRITE);
    step->what = what_of(step);
}

static void steps_count(struct lab_reduce *reduce)
{
    for (size_t i = 0; i < reduce->step_count; i++) {
        const struct lab_step *step = &reduce->step[i];
        reduce->active_threads += step->active_count;
        reduce->idle_warps += step->warps - (uint32_t)__builtin_popcount(step->active_warps);
    }
}

static enum error steps_copy(struct lab_reduce *reduce, const struct emu_trace *trace,
                             uint32_t threads, struct problem *problem)
{
    struct store store;
    enum error error = store_create(&store, trace, reduce, problem);
    if (error != ERR_OK)
        return error;
    reduce->step = calloc(trace->interval_count + 1, sizeof *reduce->step);
    if (reduce->step == NULL)
        return report_nomem(problem);
    reduce->step_count = trace->interval_count;
    for (size_t i = 0; i < trace->interval_count; i++)
        step_copy(&reduce->step[i], &store, trace, &trace->interval[i], threads);
    steps_count(reduce);
    reduce->barriers = trace->barriers;
    reduce->atomics = trace->atomics;
    reduce->bank_conflicts = trace->bank_conflicts;
    reduce->is_cut = trace->is_cut;
    return ERR_OK;
}

/* --- running --- */

static void exact_of(const struct lab_reduce_ask *ask, struct dot_value *ret)
{
    struct exact_sum sum;
    exact_sum_init(&sum, NULL, ask->dtype, false, true);
    exact_sum_add(&sum, ask->a, ask->b, ask->n);
    exact_sum_round(&sum, DTYPE_FLOAT64, ret);
}

static enum error run(const struct lab_reduce_ask *ask, struct emu_trace *trace,
                      struct lab_reduce *reduce, struct problem *problem)
{
    _Alignas(16) char result[RUNG_RESULT_BYTES], scratch[RUNG_SCRATCH_BYTES];
    const struct rung *rung = ladder_find(ask->scheme->kernel);
    const struct rung_call call = {
        .dtype = ask->dtype,
        .a = ask->a,
        .b = ask->b,
        .n = ask->n,
        .threads = ask->block,
        .result = result,
        .scratch = scratch,
        .seed = ask->seed,
        .trace = trace,
    };
    struct rung_takes takes;
    rung_takes(rung, NULL, ask->dtype, ask->n, ask->block, &takes);
    assert(takes.launches == 1);
    bool is_done = rung_emulated(rung, &call);
    reduce->value = is_done ? rung_value(rung, ask->dtype, result) : 0;
    if (isnan(reduce->value))
        reduce->value = (double)NAN; /* every answer's, whatever the processor's is */
    reduce->blocks = takes.blocks;
    reduce->steps = (uint32_t)takes.steps;
    exact_of(ask, &reduce->exact);
    enum error error = steps_copy(reduce, trace, takes.threads, problem);
    if (error == ERR_OK)
        error = report_faults(trace, &reduce->faults, problem);
    return error;
}

enum error lab_reduce(struct lab *lab, const struct lab_reduce_ask *ask, struct lab_reduce *ret,
                      struct problem *problem)
{
    (void)lab; /* always emulated */
    struct emu_trace *trace;
    struct lab_reduce reduce = {0};
    enum error error = report_trace_create(&trace, 1, problem);
    if (error != ERR_OK)
        return error;
    error = run(ask, trace, &reduce, problem);
    trace_destroy(trace);
    if (error != ERR_OK) {
        lab_reduce_fini(&reduce);
        return error;
    }
    *ret = reduce;
    return ERR_OK;
}

void lab_reduce_fini(struct lab_reduce *reduce)
{
    free(reduce->step);
    free(reduce->memory);
    report_faults_fini(&reduce->faults);
    *reduce = (struct lab_reduce){0};
}
