/* shift.c - the exercise of the shift, run and watched (see experiments.h). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lab/kernels.h"
#include "gpu/lab/machine.h"
#include "gpu/lab/report.h"

static bool is_same(double x, double y)
{
    return memcmp(&x, &y, sizeof x) == 0; /* a NaN that arrives is right */
}

static void fill(const struct lab_shift_ask *ask, double *values, double *expected)
{
    for (uint32_t i = 0; i < ask->n; i++)
        values[i] = ask->values != NULL ? ask->values[i] : i;
    for (uint32_t i = 0; i < ask->n; i++)
        expected[i] = values[i + 1 < ask->n ? i + 1 : i];
}

/* --- reads --- */

/* Which cells are written in one interval; a thread writes its own only. */
struct written {
    bool cell[LIMIT_LAB_BLOCK];
};

static void written_find(struct written *written, const struct emu_trace *trace,
                         const struct emu_interval *interval)
{
    memset(written, 0, sizeof *written);
    for (size_t i = 0; i < interval->event_count; i++) {
        const struct emu_event *event = &trace->event[interval->first_event + i];
        if (event->access == EMU_WRITE)
            written->cell[event->index] = true;
    }
}

/* A thread's neighbour's cell comes first, what it hands out second. */
static void read_note(struct lab_shift *shift, const double *values, uint8_t *seen,
                      const struct written *written, const struct emu_event *event)
{
    const uint32_t thread = event->thread, cell = event->index;
    const bool is_neighbour = seen[thread] == 0;
    const uint32_t at = 2 * thread + seen[thread]++;
    assert(at < shift->read_count);
    shift->read[at] = (struct lab_read){
        .thread = thread,
        .cell = cell,
        .value = event->value,
        .expected = is_neighbour ? values[cell] : shift->expected[cell],
        .has_raced = cell != thread && written->cell[cell],
    };
}

static enum error reads_copy(struct lab_shift *shift, const double *values,
                             const struct emu_trace *trace, struct problem *problem)
{
    uint8_t seen[LIMIT_LAB_BLOCK] = {0};
    struct written written;
    shift->read_count = 2 * shift->n;
    shift->read = calloc(shift->read_count, sizeof *shift->read);
    if (shift->read == NULL)
        return report_nomem(problem);
    assert(!trace->is_cut && !trace->is_stopped); /* the limits of report.h are beyond both */
    for (size_t i = 0; i < trace->interval_count; i++) {
        const struct emu_interval *interval = &trace->interval[i];
        written_find(&written, trace, interval);
        for (size_t j = 0; j < interval->event_count; j++) {
            const struct emu_event *event = &trace->event[interval->first_event + j];
            if (event->access == EMU_READ)
                read_note(shift, values, seen, &written, event);
        }
    }
    return ERR_OK;
}

/* --- running --- */

static enum error watch(const struct lab_shift_ask *ask, const struct shift_call *call,
                        struct lab_shift *shift, struct problem *problem)
{
    struct emu_trace *trace;
    enum error error = report_trace_create(&trace, REPORT_FAULTS_ALL, problem);
    if (error != ERR_OK)
        return error;
    const struct emu_grid grid = {.seed = ask->seed, .is_lockstep = true, .trace = trace};
    (void)shift_emulated(call, &grid);
    error = reads_copy(shift, call->values, trace, problem);
    if (error == ERR_OK)
        error = report_faults(trace, &shift->faults, problem);
    trace_destroy(trace);
    return error;
}

static void compare(struct lab_shift *shift)
{
    for (uint32_t i = 0; i < shift->n; i++)
        if (!is_same(shift->result[i], shift->expected[i]))
            shift->wrong[shift->wrong_count++] = i;
}

/* Emulated for the reads; what came out is the device's. */
static enum error run(struct lab *lab, const struct lab_shift_ask *ask, double *values,
                      struct lab_shift *shift, struct problem *problem)
{
    fill(ask, values, shift->expected);
    const struct shift_call call = {values, shift->result, shift->n, ask->barriers};
    enum error error = watch(ask, &call, shift, problem);
    if (error == ERR_OK && ask->device != 0)
        error = machine_shift(lab, ask->device, &call, problem);
    if (error == ERR_OK)
        compare(shift);
    return error;
}

enum error lab_shift(struct lab *lab, const struct lab_shift_ask *ask, struct lab_shift *ret,
                     struct problem *problem)
{
    double *values = malloc(ask->n * sizeof *values);
    struct lab_shift shift = {
        .n = (uint32_t)ask->n,
        .expected = malloc(ask->n * sizeof *shift.expected),
        .result = malloc(ask->n * sizeof *shift.result),
        .wrong = malloc(ask->n * sizeof *shift.wrong),
    };
    bool has_memory =
        values != NULL && shift.expected != NULL && shift.result != NULL && shift.wrong != NULL;
    enum error error = has_memory ? run(lab, ask, values, &shift, problem) : report_nomem(problem);
    free(values);
    if (error != ERR_OK) {
        lab_shift_fini(&shift);
        return error;
    }
    *ret = shift;
    return ERR_OK;
}

void lab_shift_fini(struct lab_shift *shift)
{
    free(shift->expected);
    free(shift->result);
    free(shift->wrong);
    free(shift->read);
    report_faults_fini(&shift->faults);
    *shift = (struct lab_shift){0};
}
