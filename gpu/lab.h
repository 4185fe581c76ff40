/* lab.h - the lab: one thread that runs experiments and single rungs, away from the service.
 *
 * Door: lab_open() after gpu_open(); lab_place() and lab_submit() from any thread; lab_drain()
 * before gpu_drain(), lab_close() before gpu_close(). A submitted job's run() is called on the
 * lab's thread, one job at a time, and calls the experiments of gpu/lab/experiments.h; the job then
 * returns through its port like every other. The queue is bounded and refuses, so that curiosity
 * cannot starve the service: whatever an experiment may ask is limited (LIMIT_LAB_* in
 * proto/limits.h), and the thread has a lower priority than the service's.
 *
 * Devices have gpu.h's numbers. Device 0 stands for the emulation here (gpu/emu), which runs the
 * same kernel source on the CPU; the others are gpu.h's CUDA devices.
 */
#ifndef GPU_LAB_H
#define GPU_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

struct lab; /* layout in lab.c */
struct rung;

struct lab_config {
    uint32_t queue_jobs; /* capacity of the queue; what is running does not count */
};

/* Borrows the open room. */
enum error lab_open(struct lab **ret, struct gpu *gpu, const struct lab_config *config,
                    struct problem *problem);

/* Refuses new jobs (ERR_CLOSED) and returns when everything accepted has completed. */
void lab_drain(struct lab *lab);
void lab_close(struct lab *lab); /* takes NULL; drains */

/* job->run and job->port are set; see struct job. Cancelled and late jobs complete with their error
 * and are not run. ERR_BUSY: the queue is full. ERR_CLOSED: draining. On failure the job is still
 * the caller's and complete() is not called. */
enum error lab_submit(struct lab *lab, struct job *job);

/* Whether lab_submit() would refuse a job now; if so, it counts as one that was. */
enum error lab_check(struct lab *lab);

struct lab_counts {
    uint32_t queued_jobs;                /* now waiting */
    uint64_t jobs_total, rejected_total; /* run, refused with ERR_BUSY; since start */
};
struct lab_counts lab_counts(struct lab *lab);

/* Chooses a device; index -1: any CUDA device will do. PLACE_AUTO: CUDA where there is one, else
 * the emulation. ERR_NO_DEVICE when the wanted one is not there or was lost. */
enum error lab_place(struct lab *lab, enum placement placement, int index, int *ret_device,
                     struct problem *problem);

struct lab_device {
    char id[16];                     /* "cpu", "cuda:0" */
    char name[2 * LIMIT_NAME_BYTES]; /* "emulated CUDA on AMD EPYC 9645", "NVIDIA H200" */
    bool is_emulated;
};
struct lab_device lab_device(struct lab *lab, int device);

/* Whether a rung may compute this planned job there: real float32 or float64 operands, rows within
 * the rung's max_n, and no more than the lab may spend. Not the rungs of the lab only. Any thread.
 * ERR_KERNEL, ERR_DTYPE, ERR_VALUE, ERR_TOO_LARGE: with the limit named. */
enum error lab_dot_check(const struct rung *rung, int device, const struct job *job,
                         struct problem *problem);

/* Computes the rows of a checked job one after the other by the rung and fills job->value as a
 * backend would: sum, sum_abs, error_bound and flags, and the copies of job->times. On the lab's
 * thread, from job->run. Gives up between rows once the job is cancelled (ERR_CLOSED) or late
 * (ERR_DEADLINE). */
enum error lab_dot(struct lab *lab, const struct rung *rung, int device, struct job *job,
                   struct problem *problem);

#endif
