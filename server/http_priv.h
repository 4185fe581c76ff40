/* http_priv.h - what the files behind http.h share. */
#ifndef SERVER_HTTP_PRIV_H
#define SERVER_HTTP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "server/http.h"

struct loop;
struct nvml;

struct http {
    _Atomic(const struct config *) config; /* main thread writes; borrowed; see http_set_config() */
    struct gpu *gpu;                       /* fixed; borrowed */
    struct lab *lab;                       /* fixed; borrowed */
    const struct listen_set *sockets;      /* fixed; borrowed */
    struct loop **loop;                    /* [loop_count]; fixed after http_open() */
    unsigned loop_count;                   /* fixed */
    struct lineage lineage;                /* fixed */
    int64_t started_ns;                    /* fixed */
    int64_t started_unix_ms;               /* fixed; the same on the calendar */
    struct nvml *nvml;                     /* fixed; safe from any thread; NULL: not asked */
    uint64_t peer_seed;                    /* fixed; random: see peer.h */
    atomic_bool may_accept;                /* main thread: false to true and back, once */
    atomic_uint accepting;                 /* loops: how many of them have the listeners in hand */
    atomic_bool is_ready;                  /* main thread: false to true, once */
    atomic_bool expects_cuda; /* any thread: false to true, once; another process brings it */
    atomic_bool is_draining;  /* main thread: false to true, once; new work is refused */
    atomic_bool is_leaving;   /* main thread: false to true, once; another process follows */
    atomic_bool is_late;      /* main thread: false to true, once; the time for draining is over */
    atomic_bool is_stopping;  /* main thread: false to true, once; loops wind up */
    atomic_ullong answer_bytes; /* loops; memory of large answers, within the memory budget */
    pthread_mutex_t lock;       /* of quiet_changed alone; innermost */
    pthread_cond_t quiet_changed;
};

/* Whether the library that is loaded is as the one we were compiled with. Versions 0.9 and 1.0 come
 * under one file name; what a head may hold that they let through (exchange.c), and what they must
 * be asked for (library.c), is not the same. */
bool http_library_fits(const char *version);

/* A loop's loop_is_quiet() has changed: http_drain() looks again. */
void http_quiet_changed(struct http *http);

#endif
