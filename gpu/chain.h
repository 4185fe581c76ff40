/* chain.h - jobs in order, linked by job->next. Not shared between threads by itself. */
#ifndef GPU_CHAIN_H
#define GPU_CHAIN_H

#include <stddef.h>

#include "gpu/gpu.h"

struct chain {
    struct job *first; /* NULL when empty */
    struct job **end;  /* where the next job is linked */
};

static inline void chain_init(struct chain *chain)
{
    chain->first = NULL;
    chain->end = &chain->first;
}

static inline void chain_append(struct chain *chain, struct job *job)
{
    job->next = NULL;
    *chain->end = job;
    chain->end = &job->next;
}

#endif
