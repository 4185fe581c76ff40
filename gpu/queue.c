/* queue.c - bounded queue of jobs (see queue.h). */
#include "gpu/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "gpu/chain.h"
#include "gpu/shares.h"

struct queue {
    struct queue_bounds bounds; /* fixed after queue_create() */
    struct slice_limit slice;   /* fixed after queue_create() */
    pthread_mutex_t lock;       /* innermost: no other lock is taken under it */
    pthread_cond_t filled;      /* lock; signalled when `sleeping`, and on close */
    struct chain small, large;  /* lock; the lanes */
    uint32_t jobs;              /* lock; in both lanes, jobs <= bounds.jobs */
    uint64_t bytes;             /* lock; of their operands */
    struct shares *shares;      /* lock; of clients, in both lanes; NULL: nobody has a share */
    uint64_t rejected_total;    /* lock */
    uint64_t unfair_total;      /* lock */
    bool sleeping; /* lock; the worker waits: a signal costs a system call, and only then */
    bool closed;   /* lock; false to true, once */
};

static bool queue_is_sane(const struct queue *queue)
{
    bool is_empty = queue->small.first == NULL && queue->large.first == NULL;
    return is_empty == (queue->jobs == 0) && *queue->small.end == NULL &&
           *queue->large.end == NULL && queue->jobs <= queue->bounds.jobs &&
           (queue->jobs > 0 || queue->bytes == 0);
}

enum error queue_create(struct queue **ret, const struct queue_bounds *bounds,
                        const struct slice_limit *slice)
{
    assert(bounds->jobs > 0);
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return ERR_NOMEM;
    queue->bounds = *bounds;
    queue->slice = *slice;
    chain_init(&queue->small);
    chain_init(&queue->large);
    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->filled, NULL);
    bool is_shared = bounds->client_percent > 0 && bounds->client_percent < 100;
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
    assert(queue->jobs == 0);
    shares_destroy(queue->shares);
    (void)pthread_cond_destroy(&queue->filled);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* --- bounds --- */

static bool has_room(const struct queue *queue, const struct job *job)
{
    if (queue->jobs == 0)
        return true;
    return queue->jobs < queue->bounds.jobs && queue->bytes <= queue->bounds.bytes &&
           job->bytes <= queue->bounds.bytes - queue->bytes;
}

/* Whether who asks counts at all. */
static bool has_share(const struct queue *queue, const struct job *job)
{
    return queue->shares != NULL && job->client != 0;
}

static uint64_t percent_of(uint64_t whole, uint32_t percent)
{
    return whole / 100 * percent + whole % 100 * percent / 100;
}

static bool is_fair(const struct queue *queue, const struct job *job)
{
    if (!has_share(queue, job))
        return true;
    const uint32_t percent = queue->bounds.client_percent;
    const struct share share = shares_of(queue->shares, job->client);
    const uint64_t most_bytes = percent_of(queue->bounds.bytes, percent);
    if (share.jobs == 0)
        return true;
    return share.jobs < percent_of(queue->bounds.jobs, percent) && share.bytes <= most_bytes &&
           job->bytes <= most_bytes - share.bytes;
}

/* --- in and out --- */

static struct chain *lane_of(struct queue *queue, const struct job *job)
{
    return slice_is_small(&queue->slice, job) ? &queue->small : &queue->large;
}

static void enter(struct queue *queue, struct job *job)
{
    struct chain *lane = lane_of(queue, job);
    job->link = lane->end;
    chain_append(lane, job);
    queue->jobs++;
    queue->bytes += job->bytes;
    if (has_share(queue, job))
        shares_add(queue->shares, job->client, job->bytes);
}

static void leave(struct queue *queue, struct job *job)
{
    *job->link = job->next;
    if (job->next != NULL)
        job->next->link = job->link;
    else
        lane_of(queue, job)->end = job->link;
    job->next = NULL;
    job->link = NULL;
    queue->jobs--;
    queue->bytes -= job->bytes;
    if (has_share(queue, job))
        shares_remove(queue->shares, job->client, job->bytes);
}

static enum error refuse(struct queue *queue, bool is_unfair)
{
    queue->rejected_total++;
    queue->unfair_total += is_unfair;
    return ERR_BUSY;
}

/* Then nobody waits for more jobs: they could be refused. */
static bool is_half_full(const struct queue *queue)
{
    return queue->jobs > queue->bounds.jobs / 2 || queue->bytes > queue->bounds.bytes / 2;
}

/* Whether the worker is to be woken: once, and then a signal is on its way. */
static bool takes_signal(struct queue *queue)
{
    bool is_asleep = queue->sleeping;
    queue->sleeping = false;
    return is_asleep;
}

enum error queue_push(struct queue *queue, struct job *job)
{
    enum error error = ERR_OK;
    bool wake = false;
    (void)pthread_mutex_lock(&queue->lock);
    assert(queue_is_sane(queue));
    if (queue->closed) {
        error = ERR_CLOSED;
    } else if (!has_room(queue, job)) {
        error = refuse(queue, false);
    } else if (!is_fair(queue, job)) {
        error = refuse(queue, true);
    } else {
        enter(queue, job);
        wake = (!job->is_followed || is_half_full(queue)) && takes_signal(queue);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    if (wake)
        (void)pthread_cond_signal(&queue->filled);
    return error;
}

void queue_begin(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    bool wake = queue->jobs > 0 && takes_signal(queue);
    (void)pthread_mutex_unlock(&queue->lock);
    if (wake)
        (void)pthread_cond_signal(&queue->filled);
}

enum error queue_check(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    enum error error = queue->closed ? ERR_CLOSED : ERR_OK;
    if (error == ERR_OK && queue->jobs == queue->bounds.jobs)
        error = refuse(queue, false);
    (void)pthread_mutex_unlock(&queue->lock);
    return error;
}

/* The jobs of one batch. */
static struct job *take_small(struct queue *queue, const struct queue_wish *wish)
{
    struct chain batch;
    double share = 0;
    chain_init(&batch);
    for (uint32_t i = 0; queue->small.first != NULL && i < wish->max_jobs && share < 1; i++) {
        struct job *job = queue->small.first;
        share += slice_share(&wish->limit, job->bytes, job->term_count);
        leave(queue, job);
        chain_append(&batch, job);
    }
    return batch.first;
}

static struct job *take_long(struct queue *queue)
{
    struct job *job = queue->large.first;
    if (job != NULL)
        leave(queue, job);
    return job;
}

bool queue_pop(struct queue *queue, const struct queue_wish *wish, struct queue_catch *ret)
{
    assert(wish->max_jobs > 0 && (wish->wants_long || !wish->may_wait));
    *ret = (struct queue_catch){NULL, NULL};
    (void)pthread_mutex_lock(&queue->lock);
    while (wish->may_wait && queue->jobs == 0 && !queue->closed) {
        queue->sleeping = true;
        (void)pthread_cond_wait(&queue->filled, &queue->lock);
    }
    queue->sleeping = false;
    bool is_over = queue->closed && queue->jobs == 0;
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
    bool is_here = job->link != NULL;
    if (is_here)
        leave(queue, job);
    assert(queue_is_sane(queue));
    (void)pthread_mutex_unlock(&queue->lock);
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
    queue->closed = true;
    (void)pthread_cond_signal(&queue->filled);
    (void)pthread_mutex_unlock(&queue->lock);
}

struct queue_state queue_state(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    struct queue_state state = {
        .jobs = queue->jobs,
        .bytes = queue->bytes,
        .rejected_total = queue->rejected_total,
        .unfair_total = queue->unfair_total,
    };
    (void)pthread_mutex_unlock(&queue->lock);
    return state;
}
