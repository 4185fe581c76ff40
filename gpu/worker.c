/* worker.c - one device at work (see worker.h).
 *
 * One thread also for the CPU: what comes here is what HTTP threads did not compute themselves, and
 * they, one a core, are what brings it; a second thread would take a core from them.
 */
#include "gpu/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/chain.h"
#include "gpu/clock.h"
#include "gpu/partial.h"
#include "gpu/processor.h"

enum {
    TURNS = 8,      /* long jobs that take turns; further ones wait in the queue */
    LOOK_CORES = 4, /* of the machine; with fewer, those who bring work would wait for the core */
};

/* A long job in the making. */
struct turn {
    struct job *job; /* NULL: free */
    struct slice_cursor cursor;
    struct partial row; /* the row that is summed in parts, unless the job has a partial itself */
    struct backend_times copies;
    int64_t started_ns;
    bool is_rerouted; /* some slice was */
};

struct counts {
    atomic_ullong jobs, batches, slices, expired, cancelled, rerouted; /* any thread, relaxed */
    atomic_ullong by_size[GPU_BATCH_BOUNDS + 1];                       /* likewise; of batches */
};

struct worker {
    struct failover failover; /* the worker's, but for failover_is_lost() */
    uint32_t batch_jobs;      /* fixed after worker_create() */
    int64_t look_ns;          /* fixed; how long to look for more before the thread sleeps */
    char name[16];            /* fixed */
    struct queue *queue;      /* fixed; safe from any thread */
    pthread_t thread;         /* the creating thread's; valid while is_running */
    bool is_running;          /* the creating thread's */
    /* the worker's */
    _Alignas(CACHE_LINE_BYTES) struct turn turn[TURNS];
    unsigned turn_count; /* those that are not free */
    unsigned turn_next;  /* where the search for the next begins */
    struct slice slice;  /* the one that is computed */
    /* any thread */
    struct counts counts;
    atomic_llong busy_since_ns; /* relaxed; 0: idle */
    /* relaxed; of the jobs that are accepted and not complete, and how many those are */
    _Alignas(CACHE_LINE_BYTES) atomic_llong load_ns;
    atomic_uint load_jobs;
};

static void count(atomic_ullong *total, uint64_t more)
{
    (void)atomic_fetch_add_explicit(total, more, memory_order_relaxed);
}

static void count_batch(struct counts *counts, uint32_t job_count)
{
    unsigned size = job_count > 1 ? 32 - (unsigned)__builtin_clz(job_count - 1) : 0;
    count(&counts->jobs, job_count);
    count(&counts->batches, 1);
    count(&counts->by_size[size < GPU_BATCH_BOUNDS ? size : GPU_BATCH_BOUNDS], 1);
}

static void load_add(struct worker *worker, int64_t ns, int jobs)
{
    (void)atomic_fetch_add_explicit(&worker->load_ns, ns, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&worker->load_jobs, (unsigned)jobs, memory_order_relaxed);
}

/* Gives each port its jobs. They are the submitter's from then on, so a port's chain is complete
 * before it is handed over. Jobs times ports: there are as many ports as HTTP threads. */
static void complete(struct worker *worker, struct job *first)
{
    int64_t load_ns = 0;
    int jobs = 0;
    for (const struct job *job = first; job != NULL; job = job->next, jobs++)
        load_ns += job->load_ns;
    load_add(worker, -load_ns, -jobs);
    while (first != NULL) {
        struct job_port *port = first->port;
        struct chain mine, others;
        chain_init(&mine);
        chain_init(&others);
        for (struct job *job = first, *next; job != NULL; job = next) {
            next = job->next;
            chain_append(job->port == port ? &mine : &others, job);
        }
        port->complete(port, mine.first);
        first = others.first;
    }
}

/* Stage times add up: what was not copying was computing, or another long job's turn. */
static struct job_times times_of(int64_t started, const struct backend_times *copies)
{
    int64_t finished = clock_ns(), spent = finished - started;
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

static void compute(struct worker *worker, struct job *first, int64_t now,
                    struct backend_times *ret)
{
    atomic_store_explicit(&worker->busy_since_ns, now, memory_order_relaxed);
    failover_compute(&worker->failover, first, ret);
    atomic_store_explicit(&worker->busy_since_ns, 0, memory_order_relaxed);
}

/* A job that is not computed, or not to its end. */
static void drop(struct worker *worker, struct job *job, enum error verdict)
{
    job->error = verdict;
    job->device = worker->failover.mine.index;
    job->is_rerouted = false;
    count(verdict == ERR_DEADLINE ? &worker->counts.expired : &worker->counts.cancelled, 1);
}

/* --- small jobs --- */

/* Sorts a batch: *live is to be computed, *done has its error already. Returns the live ones. */
static uint32_t batch_sort(struct worker *worker, struct job *first, int64_t now,
                           struct chain *live, struct chain *done)
{
    uint32_t live_count = 0;
    for (struct job *job = first, *next; job != NULL; job = next) {
        next = job->next;
        enum error verdict = job_dropped(job, now);
        if (verdict != ERR_OK)
            drop(worker, job, verdict);
        live_count += verdict == ERR_OK;
        chain_append(verdict == ERR_OK ? live : done, job);
    }
    return live_count;
}

static void batch_compute(struct worker *worker, struct job *first, uint32_t job_count, int64_t now,
                          struct backend_times *ret)
{
    compute(worker, first, now, ret);
    count_batch(&worker->counts, job_count);
    for (const struct job *job = first; job != NULL; job = job->next)
        if (job->is_rerouted)
            count(&worker->counts.rerouted, 1);
}

static void batch_run(struct worker *worker, struct job *first)
{
    struct chain live, done;
    chain_init(&live);
    chain_init(&done);
    int64_t started = clock_ns();
    uint32_t live_count = batch_sort(worker, first, started, &live, &done);
    struct backend_times copies = {0};
    if (live_count > 0)
        batch_compute(worker, live.first, live_count, started, &copies);
    struct job_times times = times_of(started, &copies);
    *live.end = done.first;
    for (struct job *job = live.first; job != NULL; job = job->next) {
        job->times = times;
        job->batch_size = live_count;
    }
    complete(worker, live.first);
}

/* --- long jobs --- */

static void turn_take(struct worker *worker, struct job *job)
{
    struct turn *turn = worker->turn;
    while (turn->job != NULL)
        turn++;
    worker->turn_count++;
    turn->job = job;
    turn->copies = (struct backend_times){0};
    turn->started_ns = clock_ns();
    turn->is_rerouted = false;
    slice_begin(&turn->cursor, job);
}

static struct turn *turn_choose(struct worker *worker)
{
    struct turn *turn;
    do {
        turn = &worker->turn[worker->turn_next];
        worker->turn_next = (worker->turn_next + 1) % TURNS;
    } while (turn->job == NULL);
    return turn;
}

static void turn_end(struct worker *worker, struct turn *turn)
{
    struct job *job = turn->job;
    job->times = times_of(turn->started_ns, &turn->copies);
    job->batch_size = 1;
    turn->job = NULL;
    worker->turn_count--;
    complete(worker, job);
}

static void turn_finish(struct worker *worker, struct turn *turn, enum error error)
{
    struct job *job = turn->job;
    job->error = error;
    job->is_rerouted = turn->is_rerouted;
    job->device = (turn->is_rerouted ? worker->failover.cpu : worker->failover.mine).index;
    count_batch(&worker->counts, 1);
    count(&worker->counts.rerouted, turn->is_rerouted);
    turn_end(worker, turn);
}

static struct partial *part_begin(struct turn *turn, const struct slice *slice)
{
    const struct job *job = turn->job;
    if (job->partial != NULL)
        return job->partial;
    if (slice->begins_row)
        partial_init(&turn->row, slice->job.task->dtype, job->accuracy, job->conjugate,
                     job->wants_abs);
    return &turn->row;
}

static void slice_run(struct worker *worker, struct turn *turn, int64_t now)
{
    struct slice *slice = &worker->slice;
    struct job *job = turn->job;
    struct backend_times copies;
    if (slice->is_part)
        slice->job.partial = part_begin(turn, slice);
    compute(worker, &slice->job, now, &copies);
    count(&worker->counts.slices, 1);
    turn->copies.copy_in_ns += copies.copy_in_ns;
    turn->copies.copy_out_ns += copies.copy_out_ns;
    turn->is_rerouted |= slice->job.is_rerouted;
    if (slice->is_part && slice->ends_row && job->partial == NULL)
        partial_settle(&turn->row, job->result_dtype, &job->value[slice->value]);
}

/* One slice of the long job whose turn it is. A job without any products has none. */
static void turn_run(struct worker *worker)
{
    struct turn *turn = turn_choose(worker);
    int64_t now = clock_ns();
    enum error verdict = job_dropped(turn->job, now);
    if (verdict != ERR_OK) {
        drop(worker, turn->job, verdict);
        turn_end(worker, turn);
        return;
    }
    if (slice_next(&turn->cursor, failover_slice(&worker->failover), &worker->slice))
        slice_run(worker, turn, now);
    if (slice_is_over(&turn->cursor))
        turn_finish(worker, turn, ERR_OK);
}

/* --- the thread --- */

static void *worker_main(void *context)
{
    struct worker *worker = context;
    (void)pthread_setname_np(pthread_self(), worker->name);
    for (;;) {
        struct queue_catch catch;
        const struct queue_wish wish = {
            .max_jobs = worker->batch_jobs,
            .limit = *failover_slice(&worker->failover),
            .wants_long = worker->turn_count < TURNS,
            .may_wait = worker->turn_count == 0,
            .look_ns = worker->look_ns,
        };
        if (!queue_pop(worker->queue, &wish, &catch) && worker->turn_count == 0)
            return NULL;
        if (catch.long_job != NULL)
            turn_take(worker, catch.long_job);
        if (catch.small != NULL)
            batch_run(worker, catch.small);
        if (worker->turn_count > 0)
            turn_run(worker);
    }
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

/* Whoever has had work is likely to be asked again soon, and to be woken takes 10 us and more: a
 * client alone waits 43 us for a small job in the place of 50. Where a core is left for that. */
static int64_t look_ns_of(const struct device_handle *mine, const struct device_handle *cpu)
{
    struct device_info host = {0};
    if (mine->backend->look_ns == 0)
        return 0;
    cpu->backend->describe(cpu->device, &host);
    return host.multiprocessors >= LOOK_CORES ? mine->backend->look_ns : 0;
}

enum error worker_create(struct worker **ret, const struct device_handle *mine,
                         const struct device_handle *cpu, const char *name,
                         const struct gpu_config *config)
{
    struct worker *worker = aligned_alloc(_Alignof(struct worker), sizeof *worker);
    if (worker == NULL)
        return ERR_NOMEM;
    memset(worker, 0, sizeof *worker);
    const struct queue_bounds bounds = {
        .jobs = config->queue_jobs,
        .bytes = config->queue_bytes,
        .client_percent = config->client_share_percent,
    };
    failover_init(&worker->failover, mine, cpu, config);
    worker->batch_jobs = config->batch_jobs;
    worker->look_ns = look_ns_of(mine, cpu);
    (void)snprintf(worker->name, sizeof worker->name, "%s", name);
    enum error error = queue_create(&worker->queue, &bounds, &mine->backend->slice);
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
    const int64_t load_ns = job->load_ns; /* once pushed, the job may be gone */
    if (failover_is_lost(&worker->failover))
        return ERR_NO_DEVICE;
    load_add(worker, load_ns, 1);
    job->worker = worker;
    enum error error = queue_push(worker->queue, job);
    if (error != ERR_OK)
        load_add(worker, -load_ns, -1);
    return error;
}

void worker_begin(struct worker *worker)
{
    queue_begin(worker->queue);
}

enum error worker_check(struct worker *worker)
{
    return queue_check(worker->queue);
}

/* What nobody has in hand is completed here: a device that hangs would keep its place in the queue,
 * its operands and its client's share. */
void job_cancel(struct job *job)
{
    struct worker *worker = job->worker;
    __atomic_store_n(&job->cancelled, true, __ATOMIC_RELAXED);
    if (worker != NULL && queue_remove(worker->queue, job))
        batch_run(worker, job); /* of dropped ones alone: no device is touched */
}

/* 1. The queue is closed: from here no job is accepted.
 * 2. The thread pops until nothing is left, completing each batch and each long job, and ends: from
 *    here no job is in the device's hands, and nobody uses the device any more. */
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

void worker_leave_out(struct worker *worker, const struct problem *problem)
{
    failover_leave_out(&worker->failover, problem);
}

bool worker_is_lost(struct worker *worker, struct problem *problem)
{
    if (!failover_is_lost(&worker->failover))
        return false;
    *problem = worker->failover.problem;
    return true;
}

int64_t worker_busy_since_ns(struct worker *worker)
{
    return atomic_load_explicit(&worker->busy_since_ns, memory_order_relaxed);
}

int64_t worker_load_ns(struct worker *worker)
{
    return atomic_load_explicit(&worker->load_ns, memory_order_relaxed);
}

uint32_t worker_load_jobs(struct worker *worker)
{
    return atomic_load_explicit(&worker->load_jobs, memory_order_relaxed);
}

int64_t worker_look_ns(const struct worker *worker)
{
    return worker->look_ns;
}

struct worker_totals worker_totals(struct worker *worker)
{
    struct counts *counts = &worker->counts;
    struct worker_totals totals = {
        .jobs = atomic_load_explicit(&counts->jobs, memory_order_relaxed),
        .batches = atomic_load_explicit(&counts->batches, memory_order_relaxed),
        .slices = atomic_load_explicit(&counts->slices, memory_order_relaxed),
        .expired = atomic_load_explicit(&counts->expired, memory_order_relaxed),
        .cancelled = atomic_load_explicit(&counts->cancelled, memory_order_relaxed),
        .rerouted = atomic_load_explicit(&counts->rerouted, memory_order_relaxed),
    };
    for (int i = 0; i <= GPU_BATCH_BOUNDS; i++)
        totals.by_size[i] = atomic_load_explicit(&counts->by_size[i], memory_order_relaxed);
    return totals;
}

struct queue_state worker_queue_state(struct worker *worker)
{
    return queue_state(worker->queue);
}
