/* port.h - completed jobs, handed back one at a time, for programs that keep some in flight.
 *
 * Door: port_init(), &port.port as the jobs' port, port_wait() for the next that is back.
 */
#ifndef TESTS_BENCH_PORT_H
#define TESTS_BENCH_PORT_H

#include <assert.h>
#include <pthread.h>

#include "gpu/gpu.h"

struct port {
    struct job_port port; /* first: port_complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first; /* lock; completed */
};

static inline void port_complete(struct job_port *base, struct job *first)
{
    struct port *port = (struct port *)base;
    (void)pthread_mutex_lock(&port->lock);
    for (struct job *job = first, *next; job != NULL; job = next) {
        next = job->next;
        job->next = port->first;
        port->first = job;
    }
    (void)pthread_cond_signal(&port->changed);
    (void)pthread_mutex_unlock(&port->lock);
}

static inline void port_init(struct port *port)
{
    *port = (struct port){.port = {port_complete},
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
}

static inline struct job *port_wait(struct port *port)
{
    (void)pthread_mutex_lock(&port->lock);
    while (port->first == NULL)
        (void)pthread_cond_wait(&port->changed, &port->lock);
    struct job *job = port->first;
    port->first = job->next;
    (void)pthread_mutex_unlock(&port->lock);
    assert(job->error == ERR_OK);
    return job;
}

#endif
