/* queue.c - bounded queue of jobs (see queue.h).
 *
 * While there is plenty of room a push takes no lock: with 16 threads every fifth found it taken,
 * and slept for 10 to 30 us. A job is counted, which is what refuses, and linked before those that
 * have arrived; under the lock they are taken whole and dealt to the lanes, by the worker as a rule.
 */
#include "gpu/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gpu/chain.h"
#include "gpu/clock.h"
#include "gpu/processor.h"
#include "gpu/shares.h"

struct queue {
    struct queue_bounds bounds; /* fixed after queue_create() */
    struct queue_bounds plenty; /* fixed; up to there all have room, and nobody has too much */
    struct slice_limit slice;   /* fixed after queue_create() */
    /* any thread; all that a push touches, in one line of the cache */
    _Alignas(CACHE_LINE_BYTES) atomic_uint jobs; /* that wait, and that are being pushed */
    atomic_ullong bytes;                         /* of their operands */
    _Atomic(struct job *) arrived; /* linked by next, the last first; taken whole under the lock */
    atomic_bool is_asleep;         /* the worker; set under the lock; else nobody need signal */
    atomic_bool is_closed;         /* set under the lock; false to true, once */
    /* innermost: no other lock is taken under it */
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
    pthread_cond_t filled;     /* lock; signalled when is_asleep, and on close */
    struct chain small, large; /* lock; the lanes */
    struct shares *shares;     /* lock; of clients, in both lanes; NULL: nobody has a share */
    uint64_t rejected_total;   /* lock */
    uint64_t unfair_total;     /* lock */
};

static bool queue_is_sane(const struct queue *queue)
{
    bool is_empty = queue->small.first == NULL && queue->large.first == NULL;
    return (is_empty || atomic_load(&queue->jobs) > 0) && *queue->small.end == NULL &&
           *queue->large.end == NULL;
}

static uint64_t percent_of(uint64_t whole, uint32_t percent)
{
    return whole / 100 * percent + whole % 100 * percent / 100;
}

/* What one client may have. */
static struct queue_bounds share_of(const struct queue_bounds *bounds)
{
    const uint32_t percent = bounds->client_percent;
    return (struct queue_bounds){
        .jobs = (uint32_t)percent_of(bounds->jobs, percent),
        .bytes = percent_of(bounds->bytes, percent),
    };
}

enum error queue_create(struct queue **ret, const struct queue_bounds *bounds,
                        const struct slice_limit *slice)
{
    assert(bounds->jobs > 0);
    struct queue *queue = aligned_alloc(_Alignof(struct queue), sizeof *queue);
    if (queue == NULL)
        return ERR_NOMEM;
    bool is_shared = bounds->client_percent > 0 && bounds->client_percent < 100;
    *queue = (struct queue){
        .bounds = *bounds,
        .plenty = is_shared ? share_of(bounds) : *bounds,
        .slice = *slice,
    };
    chain_init(&queue->small);
    chain_init(&queue->large);
    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->filled, NULL);
    if (is_shared && shares_create(&queue->shares, bounds->jobs) != ERR_OK) {
        queue_destroy(queue);
        return ERR_NOMEM;
    }
    *ret = queue;
    return ERR_OK;
}

void queue_destroy(struct queue *queue)
{
    if (queue == NULL)
        return;
    assert(atomic_load(&queue->jobs) == 0);
    shares_destroy(queue->shares);
    (void)pthread_cond_destroy(&queue->filled);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* --- bounds --- */

/* For a job beside what waits already. */
static bool is_within(const struct queue_bounds *bounds, uint32_t jobs, uint64_t bytes,
                      const struct job *job)
{
    return jobs < bounds->jobs && bytes <= bounds->bytes && job->bytes <= bounds->bytes - bytes;
}

/* Whether who asks counts at all. */
static bool has_share(const struct queue *queue, const struct job *job)
{
    return queue->shares != NULL && job->client != 0;
}

static bool is_fair(const struct queue *queue, const struct job *job)
{
    if (!has_share(queue, job))
        return true;
    const struct share share = shares_of(queue->shares, job->client);
    return share.jobs == 0 || is_within(&queue->plenty, share.jobs, share.bytes, job);
}

/* --- in and out --- */

static void count_out(struct queue *queue, uint32_t jobs, uint64_t bytes)
{
    (void)atomic_fetch_sub(&queue->bytes, bytes);
    (void)atomic_fetch_sub(&queue->jobs, jobs);
}

static struct chain *lane_of(struct queue *queue, const struct job *job)
{
    return slice_is_small(&queue->slice, job) ? &queue->small : &queue->large;
}

static void enter(struct queue *queue, struct job *job)
{
    struct chain *lane = lane_of(queue, job);
    job->link = lane->end;
    chain_append(lane, job);
    if (has_share(queue, job))
        shares_add(queue->shares, job->client, job->bytes);
}

/* The caller counts it out. */
static void leave(struct queue *queue, struct job *job)
{
    *job->link = job->next;
    if (job->next != NULL)
        job->next->link = job->link;
    else
        lane_of(queue, job)->end = job->link;
    job->next = NULL;
    job->link = NULL;
    if (has_share(queue, job))
        shares_remove(queue->shares, job->client, job->bytes);
}

/* Sequentially consistent, as going to sleep is: either the worker finds the job before it sleeps,
 * or who brings the job finds that it sleeps. */
static void arrive(struct queue *queue, struct job *job)
{
    struct job *before = atomic_load_explicit(&queue->arrived, memory_order_relaxed);
    do
        job->next = before;
    while (!atomic_compare_exchange_weak(&queue->arrived, &before, job));
}

/* Deals what has arrived to the lanes, in the order in which it came; under the lock. While one job
 * after the other is fetched from the cache of who brought it, all of it comes, for the worker. */
static void settle(struct queue *queue)
{
    struct job *last = atomic_exchange(&queue->arrived, NULL), *first = NULL, *next;
    for (; last != NULL; last = next) {
        processor_fetch(last, sizeof *last);
        next = last->next;
        last->next = first;
        first = last;
    }
    for (; first != NULL; first = next) {
        next = first->next;
        enter(queue, first);
    }
}

static enum error refuse(struct queue *queue, bool is_unfair)
{
    queue->rejected_total++;
    queue->unfair_total += is_unfair;
    return ERR_BUSY;
}

/* Then nobody waits for more jobs: they could be refused. */
static bool is_half_full(struct queue *queue)
{
    return atomic_load(&queue->jobs) > queue->bounds.jobs / 2 ||
           atomic_load(&queue->bytes) > queue->bounds.bytes / 2;
}

/* Once, and then a signal is on its way. */
static void wake(struct queue *queue)
{
    if (!atomic_load(&queue->is_asleep))
        return;
    (void)pthread_mutex_lock(&queue->lock);
    bool is_asleep = atomic_exchange(&queue->is_asleep, false);
    (void)pthread_mutex_unlock(&queue->lock);
    if (is_asleep)
        (void)pthread_cond_signal(&queue->filled);
}

/* Of a job that is counted, beside so much else. A client's share is kept to but for what arrives at
 * the same moment. */
static enum error enter_where_scarce(struct queue *queue, struct job *job, uint32_t jobs,
                                     uint64_t bytes)
{
    enum error error = ERR_OK;
    (void)pthread_mutex_lock(&queue->lock);
    settle(queue);
    assert(queue_is_sane(queue));
    if (jobs > 0 && !is_within(&queue->bounds, jobs, bytes, job))
        error = refuse(queue, false);
    else if (!is_fair(queue, job))
        error = refuse(queue, true);
    else
        enter(queue, job);
    (void)pthread_mutex_unlock(&queue->lock);
    return error;
}

enum error queue_push(struct queue *queue, struct job *job)
{
    const uint64_t job_bytes = job->bytes; /* once it has arrived, the job may be gone */
    const bool is_followed = job->is_followed;
    const uint32_t jobs = atomic_fetch_add(&queue->jobs, 1);
    const uint64_t bytes = atomic_fetch_add(&queue->bytes, job_bytes);
    enum error error = ERR_OK;
    if (atomic_load(&queue->is_closed))
        error = ERR_CLOSED;
    else if (is_within(&queue->plenty, jobs, bytes, job))
        arrive(queue, job);
    else
        error = enter_where_scarce(queue, job, jobs, bytes);
    if (error != ERR_OK)
        count_out(queue, 1, job_bytes);
    else if (!is_followed || is_half_full(queue))
        wake(queue);
    return error;
}

void queue_begin(struct queue *queue)
{
    if (atomic_load(&queue->jobs) > 0)
        wake(queue);
}

enum error queue_check(struct queue *queue)
{
    if (atomic_load(&queue->is_closed))
        return ERR_CLOSED;
    if (atomic_load(&queue->jobs) < queue->bounds.jobs)
        return ERR_OK;
    (void)pthread_mutex_lock(&queue->lock);
    enum error error = refuse(queue, false);
    (void)pthread_mutex_unlock(&queue->lock);
    return error;
}

/* The jobs of one batch. */
static struct job *take_small(struct queue *queue, const struct queue_wish *wish)
{
    struct chain batch;
    double share = 0;
    uint64_t bytes = 0;
    uint32_t jobs = 0;
    chain_init(&batch);
    for (; queue->small.first != NULL && jobs < wish->max_jobs && share < 1; jobs++) {
        struct job *job = queue->small.first;
        share += slice_share(&wish->limit, job->bytes, job->term_count);
        bytes += job->bytes;
        leave(queue, job);
        chain_append(&batch, job);
    }
    if (jobs > 0)
        count_out(queue, jobs, bytes);
    return batch.first;
}

static struct job *take_long(struct queue *queue)
{
    struct job *job = queue->large.first;
    if (job == NULL)
        return NULL;
    leave(queue, job);
    count_out(queue, 1, job->bytes);
    return job;
}

/* Until there is a job, or until then. */
static void look(struct queue *queue, int64_t until_ns)
{
    while (atomic_load_explicit(&queue->jobs, memory_order_relaxed) == 0 && clock_ns() < until_ns)
        processor_relax();
}

/* Whether the worker may sleep, under the lock. */
static bool is_idle(struct queue *queue)
{
    settle(queue);
    return queue->small.first == NULL && queue->large.first == NULL &&
           !atomic_load(&queue->is_closed);
}

bool queue_pop(struct queue *queue, const struct queue_wish *wish, struct queue_catch *ret)
{
    assert(wish->max_jobs > 0 && (wish->wants_long || !wish->may_wait));
    *ret = (struct queue_catch){NULL, NULL};
    if (wish->may_wait && wish->look_ns > 0)
        look(queue, clock_ns() + wish->look_ns);
    (void)pthread_mutex_lock(&queue->lock);
    while (is_idle(queue) && wish->may_wait) {
        atomic_store(&queue->is_asleep, true);
        if (is_idle(queue))
            (void)pthread_cond_wait(&queue->filled, &queue->lock);
    }
    atomic_store(&queue->is_asleep, false);
    bool is_over = atomic_load(&queue->is_closed) && atomic_load(&queue->jobs) == 0;
    ret->small = take_small(queue, wish);
    if (wish->wants_long)
        ret->long_job = take_long(queue);
    assert(queue_is_sane(queue));
    (void)pthread_mutex_unlock(&queue->lock);
    return !is_over;
}

bool queue_remove(struct queue *queue, struct job *job)
{
    (void)pthread_mutex_lock(&queue->lock);
    settle(queue);
    assert(queue_is_sane(queue));
    bool is_here = job->link != NULL;
    if (is_here)
        leave(queue, job);
    (void)pthread_mutex_unlock(&queue->lock);
    if (is_here)
        count_out(queue, 1, job->bytes);
    return is_here;
}

enum error job_dropped(const struct job *job, int64_t now_ns)
{
    if (job->deadline_ns != 0 && now_ns >= job->deadline_ns)
        return ERR_DEADLINE;
    return __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED) ? ERR_CLOSED : ERR_OK;
}

void queue_close(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->is_closed, true);
    (void)pthread_cond_signal(&queue->filled);
    (void)pthread_mutex_unlock(&queue->lock);
}

struct queue_state queue_state(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    struct queue_state state = {
        .jobs = atomic_load(&queue->jobs),
        .bytes = atomic_load(&queue->bytes),
        .rejected_total = queue->rejected_total,
        .unfair_total = queue->unfair_total,
    };
    (void)pthread_mutex_unlock(&queue->lock);
    return state;
}
