/* report.h - traces of the emulation, for the lab's experiments.
 *
 * Door: report_trace_create() before a launch, trace_destroy() after it; report_faults() turns what
 * was found into an answer's faults.
 */
#ifndef GPU_LAB_REPORT_H
#define GPU_LAB_REPORT_H

#include "gpu/emu/emu.h"
#include "gpu/lab/experiments.h"

enum {
    REPORT_LIMIT = 1 << 18,   /* events, cells and intervals: enough for every settled question */
    REPORT_FAULTS_ALL = 4096, /* more than a block has cells: no race stops the kernel */
};

enum error report_trace_create(struct emu_trace **ret, uint32_t fault_limit,
                               struct problem *problem);

/* The first LAB_FAULTS of the trace's. */
enum error report_faults(const struct emu_trace *trace, struct lab_faults *ret,
                         struct problem *problem);
void report_faults_fini(struct lab_faults *faults);

/* Threads whose bits are set, ascending; to be freed. ERR_NOMEM. */
enum error report_threads(const uint32_t bits[EMU_WARPS_MAX], uint32_t **ret, uint32_t *ret_count,
                          struct problem *problem);

/* As problem_set() with ERR_NOMEM. */
enum error report_nomem(struct problem *problem);

#endif
