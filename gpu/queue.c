/* queue.c - bounded FIFO of jobs (see queue.h). */
#include "gpu/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct queue {
    uint32_t capacity_jobs;  /* fixed after queue_create() */
    uint64_t capacity_bytes; /* fixed after queue_create() */
    pthread_mutex_t lock;    /* innermost: no other lock is taken under it */
    pthread_cond_t filled;   /* lock; signalled when `sleeping`, and on close */
    struct job *first;       /* lock; chained by next, NULL when empty */
    struct job **end;        /* lock; where the next job is linked */
    uint32_t jobs;           /* lock; in the chain, jobs <= capacity_jobs */
    uint64_t bytes;          /* lock; of their operands */
    uint64_t rejected_total; /* lock */
    bool sleeping; /* lock; the worker waits: a signal costs a system call, and only then */
    bool closed;   /* lock; false to true, once */
};

static bool queue_is_sane(const struct queue *queue)
{
    return (queue->first == NULL) == (queue->jobs == 0) && *queue->end == NULL &&
           queue->jobs <= queue->capacity_jobs && (queue->jobs > 0 || queue->bytes == 0);
}

enum error queue_create(struct queue **ret, uint32_t capacity_jobs, uint64_t capacity_bytes)
{
    assert(capacity_jobs > 0);
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return ERR_NOMEM;
    queue->capacity_jobs = capacity_jobs;
    queue->capacity_bytes = capacity_bytes;
    queue->end = &queue->first;
    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->filled, NULL);
    *ret = queue;
    return ERR_OK;
}

void queue_destroy(struct queue *queue)
{
    if (queue == NULL)
        return;
    assert(queue->first == NULL);
    (void)pthread_cond_destroy(&queue->filled);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static bool has_room(const struct queue *queue, const struct job *job)
{
    if (queue->jobs == 0)
        return true;
    return queue->jobs < queue->capacity_jobs && queue->bytes <= queue->capacity_bytes &&
           job->bytes <= queue->capacity_bytes - queue->bytes;
}

static void append(struct queue *queue, struct job *job)
{
    job->next = NULL;
    *queue->end = job;
    queue->end = &job->next;
    queue->jobs++;
    queue->bytes += job->bytes;
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
        error = ERR_BUSY;
        queue->rejected_total++;
    } else {
        append(queue, job);
        wake = queue->sleeping;
        queue->sleeping = false; /* one signal is on its way: the next push need not send another */
    }
    (void)pthread_mutex_unlock(&queue->lock);
    if (wake)
        (void)pthread_cond_signal(&queue->filled);
    return error;
}

/* Unlinks the jobs of one batch from the front. */
static struct job *take(struct queue *queue, uint32_t max_jobs, uint64_t max_terms)
{
    struct job *first = queue->first, **end = &queue->first;
    uint32_t count = 0;
    uint64_t terms = 0;
    while (*end != NULL && count < max_jobs && terms < max_terms) {
        struct job *job = *end;
        uint64_t room = UINT64_MAX - terms;
        terms += job->term_count < room ? job->term_count : room;
        queue->bytes -= job->bytes;
        count++;
        end = &job->next;
    }
    queue->first = *end;
    *end = NULL;
    if (queue->first == NULL)
        queue->end = &queue->first;
    queue->jobs -= count;
    return first;
}

struct job *queue_pop(struct queue *queue, uint32_t max_jobs, uint64_t max_terms)
{
    assert(max_jobs > 0 && max_terms > 0);
    struct job *first = NULL;
    (void)pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->closed) {
        queue->sleeping = true;
        (void)pthread_cond_wait(&queue->filled, &queue->lock);
    }
    queue->sleeping = false;
    if (queue->first != NULL)
        first = take(queue, max_jobs, max_terms);
    assert(queue_is_sane(queue));
    (void)pthread_mutex_unlock(&queue->lock);
    return first;
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
    struct queue_state state = {queue->jobs, queue->bytes, queue->rejected_total};
    (void)pthread_mutex_unlock(&queue->lock);
    return state;
}
