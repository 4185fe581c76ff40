/* worker.c - one device at work (see worker.h). */
#include "gpu/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/now.h"

struct worker {
    const struct backend *backend; /* fixed after worker_create() */
    struct backend_device *device; /* fixed; borrowed; see backend.h for who may compute */
    int index;                     /* fixed */
    uint32_t batch_jobs;           /* fixed */
    char name[16];                 /* fixed */
    struct queue *queue;           /* fixed; safe from any thread */
    pthread_t thread;              /* the creating thread's; valid while is_running */
    bool is_running;               /* the creating thread's */
    atomic_ullong jobs_total;      /* any thread, relaxed: a statistic only */
    atomic_ullong batches_total;   /* any thread, relaxed: a statistic only */
    atomic_bool is_lost;           /* any thread; false to true, once, after `problem` is written */
    struct problem problem;        /* the worker's until is_lost, then fixed */
};

/* A chain of jobs under construction. */
struct chain {
    struct job *first, **end;
};

static void chain_init(struct chain *chain)
{
    chain->first = NULL;
    chain->end = &chain->first;
}

static void chain_add(struct chain *chain, struct job *job)
{
    job->next = NULL;
    *chain->end = job;
    chain->end = &job->next;
}

/* Gives each port its jobs. They are the submitter's from then on, so a port's chain is complete
 * before it is handed over. Jobs times ports: there are as many ports as HTTP threads. */
static void complete(struct job *first)
{
    while (first != NULL) {
        struct job_port *port = first->port;
        struct chain mine, others;
        chain_init(&mine);
        chain_init(&others);
        for (struct job *job = first, *next; job != NULL; job = next) {
            next = job->next;
            chain_add(job->port == port ? &mine : &others, job);
        }
        port->complete(port, mine.first);
        first = others.first;
    }
}

enum error job_dropped(const struct job *job, int64_t now)
{
    if (__atomic_load_n(&job->cancelled, __ATOMIC_RELAXED))
        return ERR_CLOSED;
    return job->deadline_ns != 0 && now >= job->deadline_ns ? ERR_DEADLINE : ERR_OK;
}

/* Sorts a batch: *live is to be computed, *done has its error already. Returns the live ones. */
static uint32_t batch_sort(struct job *first, int64_t now, struct chain *live, struct chain *done)
{
    uint32_t count = 0;
    for (struct job *job = first, *next; job != NULL; job = next) {
        next = job->next;
        job->error = job_dropped(job, now);
        count += job->error == ERR_OK;
        chain_add(job->error == ERR_OK ? live : done, job);
    }
    return count;
}

/* Computes the live jobs. Losing the device is remembered, so that no later job touches it. */
static enum error batch_compute(struct worker *worker, struct job *first, struct backend_times *ret)
{
    struct problem problem;
    problem_clear(&problem);
    *ret = (struct backend_times){0};
    if (atomic_load_explicit(&worker->is_lost, memory_order_relaxed))
        return ERR_DEVICE;
    enum error error = worker->backend->compute(worker->device, first, ret, &problem);
    if (error == ERR_DEVICE) {
        worker->problem = problem;
        atomic_store_explicit(&worker->is_lost, true, memory_order_release);
    }
    return error;
}

/* Stage times add up: what was not copying was computing. */
static struct job_times batch_times(int64_t started, const struct backend_times *copies)
{
    int64_t finished = now_ns(), spent = finished - started;
    int64_t in = copies->copy_in_ns < spent ? copies->copy_in_ns : spent;
    int64_t out = copies->copy_out_ns < spent - in ? copies->copy_out_ns : spent - in;
    return (struct job_times){
        .started_ns = started,
        .copy_in_ns = in,
        .compute_ns = spent - in - out,
        .copy_out_ns = out,
        .finished_ns = finished,
    };
}

static void batch_stamp(struct job *first, enum error error, int index, uint32_t count,
                        const struct job_times *times)
{
    for (struct job *job = first; job != NULL; job = job->next) {
        job->times = *times;
        if (job->run == NULL)
            job->device = index;
        job->batch_size = count;
        if (job->error == ERR_OK)
            job->error = error;
    }
}

static void batch_run(struct worker *worker, struct job *first)
{
    struct chain live, done;
    chain_init(&live);
    chain_init(&done);
    int64_t started = now_ns();
    uint32_t count = batch_sort(first, started, &live, &done);
    struct backend_times copies = {0};
    enum error error = ERR_OK;
    if (count > 0) {
        error = batch_compute(worker, live.first, &copies);
        (void)atomic_fetch_add_explicit(&worker->jobs_total, count, memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&worker->batches_total, 1, memory_order_relaxed);
    }
    struct job_times times = batch_times(started, &copies);
    *live.end = done.first;
    batch_stamp(live.first, error, worker->index, count, &times);
    complete(live.first);
}

static void *worker_main(void *context)
{
    struct worker *worker = context;
    (void)pthread_setname_np(pthread_self(), worker->name);
    struct job *first;
    while ((first = queue_pop(worker->queue, worker->batch_jobs, worker->backend->batch_terms)) !=
           NULL)
        batch_run(worker, first);
    return NULL;
}

/* Signals are the main thread's business: the new thread inherits a mask that blocks them all. */
static bool thread_start(struct worker *worker)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->is_running = pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return worker->is_running;
}

enum error worker_create(struct worker **ret, const struct backend *backend,
                         struct backend_device *device, int index, const char *name,
                         const struct gpu_config *config)
{
    struct worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return ERR_NOMEM;
    worker->backend = backend;
    worker->device = device;
    worker->index = index;
    worker->batch_jobs = config->batch_jobs;
    (void)snprintf(worker->name, sizeof worker->name, "%s", name);
    enum error error = queue_create(&worker->queue, config->queue_jobs, config->queue_bytes);
    if (error == ERR_OK && !thread_start(worker))
        error = ERR_NOMEM;
    if (error != ERR_OK) {
        worker_destroy(worker); /* accepts a half-built worker */
        return error;
    }
    *ret = worker;
    return ERR_OK;
}

enum error worker_push(struct worker *worker, struct job *job)
{
    if (atomic_load_explicit(&worker->is_lost, memory_order_relaxed))
        return ERR_NO_DEVICE;
    return queue_push(worker->queue, job);
}

/* 1. The queue is closed: from here no job is accepted.
 * 2. The thread pops until nothing is left, completing each batch, and ends: from here no job is in
 *    the device's hands, and nobody uses the device any more. */
void worker_drain(struct worker *worker)
{
    queue_close(worker->queue);
    if (worker->is_running)
        (void)pthread_join(worker->thread, NULL);
    worker->is_running = false;
}

void worker_destroy(struct worker *worker)
{
    if (worker == NULL)
        return;
    if (worker->queue != NULL)
        worker_drain(worker);
    queue_destroy(worker->queue);
    free(worker);
}

bool worker_is_lost(struct worker *worker, struct problem *problem)
{
    if (!atomic_load_explicit(&worker->is_lost, memory_order_acquire))
        return false;
    *problem = worker->problem;
    return true;
}

struct worker_totals worker_totals(struct worker *worker)
{
    return (struct worker_totals){
        .jobs = atomic_load_explicit(&worker->jobs_total, memory_order_relaxed),
        .batches = atomic_load_explicit(&worker->batches_total, memory_order_relaxed),
    };
}

struct queue_state worker_queue_state(struct worker *worker)
{
    return queue_state(worker->queue);
}
