/* sink.h - where a test's jobs complete, and how it waits for them.
 *
 * Door: sink_init(), &sink.port as the jobs' port, sink_wait() until so many are back.
 */
#ifndef TESTS_SINK_H
#define TESTS_SINK_H

#include <pthread.h>

#include "gpu/gpu.h"

struct sink {
    struct job_port port; /* first: sink_complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned jobs, calls; /* lock; that came back, and in how many chains */
};

static inline void sink_complete(struct job_port *port, struct job *first)
{
    struct sink *sink = (struct sink *)port;
    (void)pthread_mutex_lock(&sink->lock);
    sink->calls++;
    for (struct job *job = first; job != NULL; job = job->next)
        sink->jobs++;
    (void)pthread_cond_signal(&sink->changed);
    (void)pthread_mutex_unlock(&sink->lock);
}

static inline void sink_init(struct sink *sink)
{
    *sink = (struct sink){.port = {sink_complete},
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
}

/* Until so many have come back in all. */
static inline void sink_wait(struct sink *sink, unsigned jobs)
{
    (void)pthread_mutex_lock(&sink->lock);
    while (sink->jobs < jobs)
        (void)pthread_cond_wait(&sink->changed, &sink->lock);
    (void)pthread_mutex_unlock(&sink->lock);
}

#endif
