/* backend_faulty.c - a device for tests (see faulty.h). Linked only where it is named. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/faulty.h"
#include "gpu/partial.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* innermost */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* lock; broadcast on every change */
static enum error fault[FAULTY_POINTS];                   /* lock */
static enum error next_fault;                             /* lock; of the next batches */
static unsigned next_count;                               /* lock; so many */
static bool is_spoiled;                                   /* lock */
static bool is_held;                                      /* lock */
static bool is_waiting;                                   /* lock; a batch is inside compute() */
static bool may_pass;                                     /* lock; the one that waits */

void faulty_set(enum faulty_point point, enum error error)
{
    (void)pthread_mutex_lock(&lock);
    fault[point] = error;
    (void)pthread_mutex_unlock(&lock);
}

void faulty_fail_next(enum error error, unsigned batches)
{
    (void)pthread_mutex_lock(&lock);
    next_fault = error;
    next_count = batches;
    (void)pthread_mutex_unlock(&lock);
}

void faulty_spoil(bool spoiled)
{
    (void)pthread_mutex_lock(&lock);
    is_spoiled = spoiled;
    (void)pthread_mutex_unlock(&lock);
}

void faulty_hold(bool held)
{
    (void)pthread_mutex_lock(&lock);
    is_held = held;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static void wait_held(void)
{
    while (!is_waiting)
        (void)pthread_cond_wait(&changed, &lock);
}

void faulty_wait_held(void)
{
    (void)pthread_mutex_lock(&lock);
    wait_held();
    (void)pthread_mutex_unlock(&lock);
}

void faulty_step(void)
{
    (void)pthread_mutex_lock(&lock);
    wait_held();
    may_pass = true;
    is_waiting = false; /* wait_held() is to see the next one */
    (void)pthread_cond_broadcast(&changed);
    wait_held();
    (void)pthread_mutex_unlock(&lock);
}

static enum error fault_at(enum faulty_point point)
{
    (void)pthread_mutex_lock(&lock);
    enum error error = fault[point];
    (void)pthread_mutex_unlock(&lock);
    return error;
}

static enum error fault_of_batch(bool *ret_spoiled)
{
    (void)pthread_mutex_lock(&lock);
    enum error error = fault[FAULTY_COMPUTE];
    if (next_count > 0) {
        next_count--;
        error = next_fault;
    }
    *ret_spoiled = is_spoiled;
    (void)pthread_mutex_unlock(&lock);
    return error;
}

static void wait_while_held(void)
{
    (void)pthread_mutex_lock(&lock);
    is_waiting = is_held;
    (void)pthread_cond_broadcast(&changed);
    while (is_held && !may_pass)
        (void)pthread_cond_wait(&changed, &lock);
    may_pass = false;
    is_waiting = false;
    (void)pthread_mutex_unlock(&lock);
}

/* --- a file's word --- */

static void read_word(const char *path, char word[16])
{
    FILE *file = fopen(path, "re");
    word[0] = '\0';
    if (file == NULL)
        return;
    if (fscanf(file, "%15s", word) != 1)
        word[0] = '\0';
    (void)fclose(file);
}

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Looks again every millisecond: a device that hangs is in no hurry. */
static void hang(const char *path, char word[16])
{
    char sign[4096];
    (void)snprintf(sign, sizeof sign, "%s.hanging", path);
    FILE *file = fopen(sign, "we");
    if (file != NULL)
        (void)fclose(file);
    for (; strcmp(word, "hang") == 0; read_word(path, word))
        pause_ms(1);
    (void)unlink(sign);
}

/* What the file says of this batch. */
static enum error obey_file(bool *is_wrong)
{
    static bool is_stuck; /* the worker's: only one device there is */
    const char *path = getenv("DOTD_FAULT");
    char word[16];
    if (path == NULL)
        return ERR_OK;
    read_word(path, word);
    if (strcmp(word, "hang") == 0)
        hang(path, word);
    if (strcmp(word, "slow") == 0)
        pause_ms(20);
    *is_wrong |= strcmp(word, "wrong") == 0;
    is_stuck |= strcmp(word, "sticky") == 0;
    if (is_stuck || strcmp(word, "launch") == 0)
        return ERR_DEVICE;
    return strcmp(word, "memory") == 0 ? ERR_NOMEM : ERR_OK;
}

/* --- the device --- */

static int faulty_count(struct problem *problem)
{
    (void)problem;
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

/* Only what the batch was to compute: other values of a long job are there already. */
static void spoil(struct job *job)
{
    if (job->partial != NULL) {
        const struct partial once = *job->partial;
        partial_merge(job->partial, &once);
    } else if (job->task_count > 0) {
        struct dot_value *value = &job->value[job->task[0].first];
        value->sum += 1;
        value->integer[0] ^= 1;
    }
}

/* A fault shows when part of the work is done. */
static enum error faulty_compute(struct backend_device *device, struct job *first,
                                 struct backend_times *ret, struct problem *problem)
{
    bool is_wrong = false, is_wrong_by_file = false;
    wait_while_held();
    enum error error = fault_of_batch(&is_wrong);
    if (error == ERR_OK)
        error = obey_file(&is_wrong_by_file);
    (void)backend_cpu.compute(device, first, ret, problem);
    if (is_wrong || is_wrong_by_file || error != ERR_OK)
        spoil(first);
    return error == ERR_OK ? ERR_OK : problem_set(problem, error, "told to fail");
}

const struct backend backend_faulty = {
    .name = "faulty",
    .slice = {.bytes = UINT64_MAX, .terms = 1 << 20},
    .look_ns = 100000, /* as CUDA */
    .count = faulty_count,
    .open = faulty_open,
    .close = faulty_close,
    .describe = faulty_describe,
    .pin = faulty_pin,
    .unpin = faulty_unpin,
    .compute = faulty_compute,
};
