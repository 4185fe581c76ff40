/* report.c - traces of the emulation, for the lab's experiments (see report.h). */
#include "gpu/lab/report.h"

#include <stdio.h>
#include <stdlib.h>

enum error report_nomem(struct problem *problem)
{
    return problem_set(problem, ERR_NOMEM, "no memory for the experiment");
}

enum error report_trace_create(struct emu_trace **ret, uint32_t fault_limit,
                               struct problem *problem)
{
    return trace_create(ret, REPORT_LIMIT, fault_limit) ? ERR_OK : report_nomem(problem);
}

static bool has_bit(const uint32_t bits[EMU_WARPS_MAX], uint32_t thread)
{
    return bits[thread / EMU_WARP] >> thread % EMU_WARP & 1;
}

/* The first thread whose bit is set; 0 when there is none. */
static uint32_t first_of(const uint32_t bits[EMU_WARPS_MAX])
{
    uint32_t thread = 0;
    while (thread < EMU_THREADS_MAX && !has_bit(bits, thread))
        thread++;
    return thread < EMU_THREADS_MAX ? thread : 0;
}

static struct lab_fault fault_of(const struct emu_fault *from, const struct emu_trace *trace)
{
    static const enum lab_fault_kind kinds[] = {
        [EMU_RACE] = LAB_FAULT_RACE,
        [EMU_BARRIER] = LAB_FAULT_BARRIER,
        [EMU_UNWRITTEN] = LAB_FAULT_UNWRITTEN,
        [EMU_OUTSIDE] = LAB_FAULT_OUTSIDE,
    };
    struct lab_fault ret = {
        .kind = kinds[from->kind],
        .block = from->by[0].block,
        .thread = {from->by[0].thread, from->by[1].thread},
        .thread_count = from->kind == EMU_RACE ? 2 : 1,
        .cell = from->array >= 0 ? (int64_t)from->index : -1,
    };
    if (from->kind == EMU_BARRIER) {
        ret.thread[0] = first_of(trace->waiting);
        ret.thread[1] = first_of(trace->ended);
        ret.thread_count = 2;
    }
    (void)snprintf(ret.text, sizeof ret.text, "%s", from->text);
    return ret;
}

enum error report_faults(const struct emu_trace *trace, struct lab_faults *ret,
                         struct problem *problem)
{
    struct lab_faults faults = {.total = trace->fault_count};
    faults.count = faults.total < LAB_FAULTS ? faults.total : LAB_FAULTS;
    if (faults.count > 0) {
        faults.fault = calloc(faults.count, sizeof *faults.fault);
        if (faults.fault == NULL)
            return report_nomem(problem);
    }
    for (uint32_t i = 0; i < faults.count; i++)
        faults.fault[i] = fault_of(&trace->fault[i], trace);
    *ret = faults;
    return ERR_OK;
}

void report_faults_fini(struct lab_faults *faults)
{
    free(faults->fault);
    *faults = (struct lab_faults){0};
}

enum error report_threads(const uint32_t bits[EMU_WARPS_MAX], uint32_t **ret, uint32_t *ret_count,
                          struct problem *problem)
{
    uint32_t *threads = malloc(EMU_THREADS_MAX * sizeof *threads), count = 0;
    if (threads == NULL)
        return report_nomem(problem);
    for (uint32_t thread = 0; thread < EMU_THREADS_MAX; thread++)
        if (has_bit(bits, thread))
            threads[count++] = thread;
    *ret = threads;
    *ret_count = count;
    return ERR_OK;
}
