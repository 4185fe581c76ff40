/* backend_faulty.c - a device for tests (see faulty.h). Linked only where it is named. */
#include <pthread.h>
#include <stdio.h>

#include "gpu/faulty.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* innermost */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* lock; broadcast on every change */
static enum error fault[FAULTY_POINTS];                   /* lock */
static bool is_held;                                      /* lock */
static bool is_waiting;                                   /* lock; a batch is inside compute() */

void faulty_set(enum faulty_point point, enum error error)
{
    (void)pthread_mutex_lock(&lock);
    fault[point] = error;
    (void)pthread_mutex_unlock(&lock);
}

void faulty_hold(bool held)
{
    (void)pthread_mutex_lock(&lock);
    is_held = held;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

void faulty_wait_held(void)
{
    (void)pthread_mutex_lock(&lock);
    while (!is_waiting)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

static enum error fault_at(enum faulty_point point)
{
    (void)pthread_mutex_lock(&lock);
    enum error error = fault[point];
    (void)pthread_mutex_unlock(&lock);
    return error;
}

static void wait_while_held(void)
{
    (void)pthread_mutex_lock(&lock);
    is_waiting = is_held;
    (void)pthread_cond_broadcast(&changed);
    while (is_held)
        (void)pthread_cond_wait(&changed, &lock);
    is_waiting = false;
    (void)pthread_mutex_unlock(&lock);
}

static int faulty_count(void)
{
    return 1;
}

static enum error faulty_open(struct backend_device **ret, int index,
                              const struct gpu_config *config, struct problem *problem)
{
    enum error error = fault_at(FAULTY_OPEN);
    if (error != ERR_OK)
        return problem_set(problem, error, "told not to open");
    return backend_cpu.open(ret, index, config, problem);
}

static void faulty_close(struct backend_device *device)
{
    backend_cpu.close(device);
}

static void faulty_describe(struct backend_device *device, struct device_info *ret)
{
    backend_cpu.describe(device, ret);
    (void)snprintf(ret->id, sizeof ret->id, "cuda:0");
    (void)snprintf(ret->kernel, sizeof ret->kernel, "faulty");
    ret->is_cuda = true;
}

static enum error faulty_pin(struct backend_device *device, void *data, size_t size)
{
    (void)device, (void)data, (void)size;
    return fault_at(FAULTY_PIN);
}

static void faulty_unpin(struct backend_device *device)
{
    (void)device;
}

static enum error faulty_compute(struct backend_device *device, struct job *first,
                                 struct backend_times *ret, struct problem *problem)
{
    wait_while_held();
    enum error error = fault_at(FAULTY_COMPUTE);
    if (error != ERR_OK)
        return problem_set(problem, error, "told to fail");
    return backend_cpu.compute(device, first, ret, problem);
}

const struct backend backend_faulty = {
    .name = "faulty",
    .batch_terms = 1 << 20,
    .count = faulty_count,
    .open = faulty_open,
    .close = faulty_close,
    .describe = faulty_describe,
    .pin = faulty_pin,
    .unpin = faulty_unpin,
    .compute = faulty_compute,
};
