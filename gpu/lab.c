/* lab.c - the lab's thread and its devices (see lab.h).
 *
 * The thread is a worker like those of the devices, whose backend runs the job instead of computing
 * dot products: queue, dropping, completion and drain are the same code.
 */
#include "gpu/lab.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/backend.h"
#include "gpu/worker.h"

struct lab {
    struct gpu *gpu;       /* fixed after lab_open(); borrowed; safe from any thread */
    struct worker *worker; /* fixed after lab_open(); safe from any thread */
};

/* A batch is one job. Its error is its own, even ERR_DEVICE: the lab is not lost with a device. */
static enum error run_job(struct backend_device *device, struct job *job, struct backend_times *ret,
                          struct problem *problem)
{
    (void)device, (void)problem;
    assert(job->next == NULL);
    job->times = (struct job_times){0};
    job->error = job->run(job);
    *ret = (struct backend_times){job->times.copy_in_ns, job->times.copy_out_ns};
    return ERR_OK;
}

static const struct backend runner = {.name = "lab", .batch_terms = UINT64_MAX, .compute = run_job};

enum error lab_open(struct lab **ret, struct gpu *gpu, const struct lab_config *config,
                    struct problem *problem)
{
    const struct gpu_config queue = {
        .queue_jobs = config->queue_jobs, .queue_bytes = UINT64_MAX, .batch_jobs = 1};
    struct lab *lab = calloc(1, sizeof *lab);
    if (lab == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the lab");
    lab->gpu = gpu;
    if (worker_create(&lab->worker, &runner, NULL, 0, "dotd-lab", &queue) != ERR_OK) {
        lab_close(lab); /* accepts a half-built one */
        return problem_set(problem, ERR_NOMEM, "cannot start the thread of the lab");
    }
    *ret = lab;
    return ERR_OK;
}

void lab_drain(struct lab *lab)
{
    worker_drain(lab->worker);
}

void lab_close(struct lab *lab)
{
    if (lab == NULL)
        return;
    worker_destroy(lab->worker);
    free(lab);
}

enum error lab_submit(struct lab *lab, struct job *job)
{
    assert(job->port != NULL && job->run != NULL);
    return worker_push(lab->worker, job);
}

struct lab_counts lab_counts(struct lab *lab)
{
    struct queue_state queue = worker_queue_state(lab->worker);
    return (struct lab_counts){
        .queued_jobs = queue.jobs,
        .jobs_total = worker_totals(lab->worker).jobs,
        .rejected_total = queue.rejected_total,
    };
}

/* --- devices --- */

enum error lab_place(struct lab *lab, enum placement placement, int index, int *ret_device,
                     struct problem *problem)
{
    if (placement != PLACE_CPU) {
        if (gpu_place(lab->gpu, PLACE_CUDA, index, 0, ret_device) == ERR_OK)
            return ERR_OK;
        if (placement == PLACE_CUDA)
            return problem_set(problem, ERR_NO_DEVICE, "there is no such CUDA device here");
    }
    *ret_device = 0;
    return ERR_OK;
}

struct lab_device lab_device(struct lab *lab, int device)
{
    struct device_info info = gpu_device_info(lab->gpu, device);
    struct lab_device ret = {.is_emulated = !info.is_cuda};
    (void)snprintf(ret.id, sizeof ret.id, "%s", info.id);
    (void)snprintf(ret.name, sizeof ret.name, "%s%s", info.is_cuda ? "" : "emulated CUDA on ",
                   info.name);
    return ret;
}
