/* waiter.c - one job through a device's queue, waited for (see waiter.h). */
#include "gpu/waiter.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct waiter {
    struct job_port port; /* first: complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done; /* lock */
};

static void waiter_complete(struct job_port *port, struct job *first)
{
    struct waiter *waiter = (struct waiter *)port;
    assert(first->next == NULL);
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    (void)pthread_cond_signal(&waiter->changed);
    (void)pthread_mutex_unlock(&waiter->lock);
}

static void waiter_wait(struct waiter *waiter)
{
    (void)pthread_mutex_lock(&waiter->lock);
    while (!waiter->is_done)
        (void)pthread_cond_wait(&waiter->changed, &waiter->lock);
    (void)pthread_mutex_unlock(&waiter->lock);
}

enum error waiter_run(struct gpu *gpu, int device, struct job *job)
{
    struct waiter waiter = {.port = {waiter_complete},
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    job->port = &waiter.port;
    enum error error = gpu_submit(gpu, device, job);
    if (error != ERR_OK)
        return error;
    waiter_wait(&waiter);
    return job->is_rerouted ? ERR_DEVICE : job->error;
}
