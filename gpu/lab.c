/* lab.c - the lab's thread and its devices (see lab.h).
 *
 * The thread is a worker like those of the devices, whose backend runs the job instead of computing
 * dot products: queue, dropping, completion and drain are the same code. Where processors are few
 * it takes second place: an experiment may compute for a second, the service answers in
 * microseconds.
 */
#include "gpu/lab.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "gpu/backend.h"
#include "gpu/clock.h"
#include "gpu/lab/machine.h"
#include "gpu/lab/shift_cuda.h"
#include "gpu/worker.h"

enum { STEP_BACK = 10 }; /* of nice: about a tenth of the time of a thread at 0 beside it */

/* What the worker holds for a device. The lab's thread's. */
struct backend_device {
    const struct job *job; /* that runs now; NULL: none */
    bool has_stepped_back;
};

struct machine {
    struct ladder *ladder; /* the lab's thread; NULL until it is asked for */
    int index;           /* fixed after lab_open(): the CUDA device's number, or LADDER_EMULATED */
    atomic_bool is_lost; /* any thread; false to true, once */
};

struct lab {
    struct gpu *gpu;       /* fixed after lab_open(); borrowed; safe from any thread */
    struct worker *worker; /* fixed after lab_open(); safe from any thread */
    struct backend_device thread;
    struct machine *machine; /* [machine_count]; by gpu.h's numbers */
    int machine_count;       /* fixed after lab_open() */
};

/* On Linux these are about the calling thread alone. Where a sandbox forbids it, things stay as
 * they were. */
static void step_back(struct backend_device *thread)
{
    if (!thread->has_stepped_back)
        (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + STEP_BACK);
    thread->has_stepped_back = true;
}

/* A batch is one job. Its error is its own, even ERR_DEVICE: the lab is not lost with a device. */
static enum error run_job(struct backend_device *device, struct job *job, struct backend_times *ret,
                          struct problem *problem)
{
    (void)problem;
    assert(job->next == NULL);
    step_back(device);
    device->job = job;
    job->times = (struct job_times){0};
    job->error = job->run(job);
    device->job = NULL;
    *ret = (struct backend_times){job->times.copy_in_ns, job->times.copy_out_ns};
    return ERR_OK;
}

/* Whatever a job asks for is one slice to this backend. */
static const struct backend runner = {
    .name = "lab", .slice = {.bytes = SIZE_MAX, .terms = UINT64_MAX}, .compute = run_job};

static int cuda_index(const struct device_info *info)
{
    int index = LADDER_EMULATED;
    return info->is_cuda && sscanf(info->id, "cuda:%d", &index) == 1 ? index : LADDER_EMULATED;
}

static enum error machines_create(struct lab *lab)
{
    lab->machine_count = gpu_device_count(lab->gpu);
    lab->machine = calloc((size_t)lab->machine_count, sizeof *lab->machine);
    if (lab->machine == NULL)
        return ERR_NOMEM;
    for (int i = 0; i < lab->machine_count; i++) {
        const struct device_info info = gpu_device_info(lab->gpu, i);
        lab->machine[i].index = cuda_index(&info);
    }
    return ERR_OK;
}

enum error lab_open(struct lab **ret, struct gpu *gpu, const struct lab_config *config,
                    struct problem *problem)
{
    const struct gpu_config queue = {
        .queue_jobs = config->queue_jobs, .queue_bytes = UINT64_MAX, .batch_jobs = 1};
    struct lab *lab = calloc(1, sizeof *lab);
    if (lab == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the lab");
    lab->gpu = gpu;
    const struct device_handle handle = {.backend = &runner, .device = &lab->thread};
    enum error error = machines_create(lab);
    if (error == ERR_OK)
        error = worker_create(&lab->worker, &handle, &handle, "dotd-lab", &queue);
    if (error != ERR_OK) {
        lab_close(lab); /* accepts a half-built one */
        return problem_set(problem, error, "cannot start the thread of the lab");
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
    for (int i = 0; lab->machine != NULL && i < lab->machine_count; i++)
        ladder_close(lab->machine[i].ladder);
    free(lab->machine);
    free(lab);
}

enum error lab_submit(struct lab *lab, struct job *job)
{
    assert(job->port != NULL && job->run != NULL);
    return worker_push(lab->worker, job);
}

enum error lab_check(struct lab *lab)
{
    return worker_check(lab->worker);
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

/* 0 when there is none. */
static int place_cuda(struct lab *lab, int index)
{
    int device = 0;
    if (gpu_place(lab->gpu, PLACE_CUDA, index, NULL, &device) != ERR_OK)
        return 0;
    bool is_lost = atomic_load_explicit(&lab->machine[device].is_lost, memory_order_relaxed);
    return is_lost ? 0 : device;
}

enum error lab_place(struct lab *lab, enum placement placement, int index, int *ret_device,
                     struct problem *problem)
{
    int device = placement == PLACE_CPU ? 0 : place_cuda(lab, index);
    if (device == 0 && placement == PLACE_CUDA)
        return problem_set(problem, ERR_NO_DEVICE,
                           "the lab has no such CUDA device; GET /v1/devices lists those that are");
    *ret_device = device;
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

/* --- machines, on the lab's thread --- */

struct gpu *machine_gpu(struct lab *lab)
{
    return lab->gpu;
}

enum error machine_goes_on(struct lab *lab, struct problem *problem)
{
    const struct job *job = lab->thread.job;
    enum error error = job != NULL ? job_dropped(job, clock_ns()) : ERR_OK;
    return error == ERR_OK ? ERR_OK : problem_set(problem, error, "given up between two sums");
}

static enum error machine_open(struct lab *lab, int device, struct machine **ret,
                               struct problem *problem)
{
    assert(device >= 0 && device < lab->machine_count);
    struct machine *machine = &lab->machine[device];
    *ret = machine;
    if (atomic_load_explicit(&machine->is_lost, memory_order_relaxed))
        return problem_set(problem, ERR_NO_DEVICE, "the lab has lost this device");
    return machine->ladder != NULL ? ERR_OK
                                   : ladder_open(&machine->ladder, machine->index, problem);
}

/* Remembers that the device is lost if it is. */
static enum error machine_note(struct machine *machine, enum error error)
{
    if (error == ERR_DEVICE)
        atomic_store_explicit(&machine->is_lost, true, memory_order_relaxed);
    return error;
}

enum error machine_run(struct lab *lab, int device, const struct ladder_ask *ask,
                       struct ladder_answer *ret, struct problem *problem)
{
    struct machine *machine;
    enum error error = machine_goes_on(lab, problem);
    if (error != ERR_OK)
        return error;
    error = machine_open(lab, device, &machine, problem);
    if (error == ERR_OK)
        error = ladder_run(machine->ladder, ask, ret, problem);
    return machine_note(machine, error);
}

enum error machine_measure(struct lab *lab, int device, const struct ladder_ask *ask,
                           int64_t budget_ns, uint32_t runs_max, struct ladder_time *ret,
                           struct problem *problem)
{
    struct machine *machine;
    enum error error = machine_open(lab, device, &machine, problem);
    if (error == ERR_OK)
        error = ladder_measure(machine->ladder, ask, budget_ns, runs_max, ret, problem);
    return machine_note(machine, error);
}

enum error machine_shift(struct lab *lab, int device, const struct shift_call *call,
                         struct problem *problem)
{
#ifdef DOTD_HAVE_CUDA
    struct machine *machine;
    enum error error = machine_open(lab, device, &machine, problem);
    if (error == ERR_OK)
        error = shift_on_cuda(machine->index, call, problem);
    return machine_note(machine, error);
#else
    (void)lab, (void)device, (void)call;
    return problem_set(problem, ERR_NO_DEVICE, "this build has no CUDA");
#endif
}
