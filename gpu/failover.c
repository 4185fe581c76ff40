/* failover.c - a device, and the CPU behind it (see failover.h). */
#include "gpu/failover.h"

#include <assert.h>

#include "gpu/partial.h"

void failover_init(struct failover *failover, const struct device_handle *mine,
                   const struct device_handle *cpu, const struct gpu_config *config)
{
    failover->mine = *mine;
    failover->cpu = *cpu;
    failover->device_lost = config->device_lost;
    failover->context = config->context;
    atomic_init(&failover->is_lost, false);
}

bool failover_is_lost(const struct failover *failover)
{
    return atomic_load_explicit(&failover->is_lost, memory_order_acquire);
}

const struct slice_limit *failover_slice(const struct failover *failover)
{
    return &(failover_is_lost(failover) ? failover->cpu : failover->mine).backend->slice;
}

/* The piece is summed apart, so that an attempt that fails half way leaves the partial as it
 * was. */
static enum error attempt_piece(const struct device_handle *handle, struct job *job,
                                struct backend_times *ret, struct problem *problem)
{
    assert(job->next == NULL);
    struct partial piece, *whole = job->partial;
    partial_init(&piece, whole->sum.dtype, whole->accuracy, whole->sum.conjugate,
                 whole->sum.wants_abs);
    job->partial = &piece;
    enum error error = handle->backend->compute(handle->device, job, ret, problem);
    job->partial = whole;
    if (error == ERR_OK)
        partial_merge(whole, &piece);
    return error;
}

static enum error attempt(const struct device_handle *handle, struct job *first,
                          struct backend_times *times, struct problem *problem)
{
    struct backend_times spent = {0};
    enum error error = first->partial != NULL
                           ? attempt_piece(handle, first, &spent, problem)
                           : handle->backend->compute(handle->device, first, &spent, problem);
    times->copy_in_ns += spent.copy_in_ns;
    times->copy_out_ns += spent.copy_out_ns;
    return error;
}

void failover_leave_out(struct failover *failover, const struct problem *problem)
{
    if (failover_is_lost(failover))
        return;
    failover->problem = *problem;
    atomic_store_explicit(&failover->is_lost, true, memory_order_release);
}

static void lose(struct failover *failover, const struct problem *problem)
{
    failover_leave_out(failover, problem);
    if (failover->device_lost != NULL)
        failover->device_lost(failover->context);
}

static enum error on_device(struct failover *failover, struct job *first,
                            struct backend_times *times)
{
    struct problem problem;
    problem_clear(&problem);
    if (failover_is_lost(failover))
        return ERR_DEVICE;
    enum error error = attempt(&failover->mine, first, times, &problem);
    assert(error == ERR_OK || error == ERR_DEVICE || error == ERR_NOMEM);
    if (error == ERR_DEVICE)
        lose(failover, &problem);
    return error;
}

/* Error and device of the lab's jobs are run()'s to say (struct job). */
static void stamp(struct job *first, enum error error, int index, bool is_rerouted)
{
    for (struct job *job = first; job != NULL; job = job->next) {
        job->is_rerouted = is_rerouted;
        if (job->run != NULL)
            continue;
        job->error = error;
        job->device = index;
    }
}

static void on_cpu(struct failover *failover, struct job *first, struct backend_times *times)
{
    struct problem problem;
    enum error error = attempt(&failover->cpu, first, times, &problem);
    stamp(first, error, failover->cpu.index, true);
}

/* Takes the chain apart and puts it together again. */
static void each_alone(struct failover *failover, struct job *first, struct backend_times *times)
{
    for (struct job *job = first, *next; job != NULL; job = next) {
        next = job->next;
        job->next = NULL;
        enum error error = on_device(failover, job, times);
        if (error == ERR_OK)
            stamp(job, ERR_OK, failover->mine.index, false);
        else
            on_cpu(failover, job, times);
        job->next = next;
    }
}

void failover_compute(struct failover *failover, struct job *first, struct backend_times *ret)
{
    *ret = (struct backend_times){0};
    enum error error = on_device(failover, first, ret);
    if (error == ERR_OK)
        stamp(first, ERR_OK, failover->mine.index, false);
    else if (error == ERR_NOMEM)
        each_alone(failover, first, ret);
    else
        on_cpu(failover, first, ret);
}
