/* http.c - the HTTP threads as one thing (see http.h). */
#include "server/http.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gpu/clock.h"
#include "gpu/nvml.h"
#include "server/http_priv.h"
#include "server/loop.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

enum { NVML_PERIOD_MS = 5000 }; /* each time takes the driver some milliseconds a device */

static int64_t calendar_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool create_loops(struct http *http)
{
    http->loop = calloc(http->loop_count, sizeof *http->loop);
    for (unsigned i = 0; http->loop != NULL && i < http->loop_count; i++)
        if (!loop_create(&http->loop[i], http, i))
            return false;
    return http->loop != NULL;
}

bool http_library_fits(const char *version)
{
    return strtoul(version, NULL, 10) == MHD_VERSION >> 24;
}

bool http_open(struct http **ret, const struct config *config, struct gpu *gpu, struct lab *lab,
               const struct listen_set *sockets, const struct lineage *lineage, char *message,
               size_t message_size)
{
    if (!http_library_fits(MHD_get_version())) {
        (void)snprintf(message, message_size,
                       "built with another libmicrohttpd than the %s that is here: build dotd "
                       "again",
                       MHD_get_version());
        return false;
    }
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL)
        goto failed;
    http->config = config;
    http->gpu = gpu;
    http->lab = lab;
    http->sockets = sockets;
    http->lineage = *lineage;
    http->expects_cuda = lineage->is_stopgap;
    http->loop_count = (unsigned)config->http_threads;
    http->started_ns = clock_ns();
    http->started_unix_ms = calendar_ms();
    if (getrandom(&http->peer_seed, sizeof http->peer_seed, 0) != sizeof http->peer_seed)
        http->peer_seed = (uint64_t)http->started_ns;
    (void)pthread_mutex_init(&http->lock, NULL);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&http->quiet_changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (!create_loops(http))
        goto failed;
    if (config->cuda != 0 && nvml_open(&http->nvml, NVML_LIBRARY, NVML_PERIOD_MS) != ERR_OK)
        goto failed;
    for (unsigned i = 0; i < http->loop_count; i++)
        if (!loop_start(http->loop[i]))
            goto failed;
    *ret = http;
    return true;

failed:
    (void)snprintf(message, message_size,
                   "cannot start the HTTP threads: out of memory, threads "
                   "or descriptors");
    http_close(http);
    return false;
}

void http_set_ready(struct http *http)
{
    atomic_store(&http->is_ready, true);
}

void http_expect_cuda(struct http *http)
{
    atomic_store(&http->expects_cuda, true);
}

void http_set_config(struct http *http, const struct config *config)
{
    atomic_store(&http->config, config);
}

int64_t http_well_ns(struct http *http, int64_t now_ns)
{
    int64_t well_ns = now_ns;
    for (unsigned i = 0; i < http->loop_count; i++) {
        int64_t loop_ns = loop_well_ns(http->loop[i], now_ns);
        well_ns = loop_ns < well_ns ? loop_ns : well_ns;
    }
    return well_ns;
}

static void wake_all(struct http *http)
{
    for (unsigned i = 0; i < http->loop_count; i++)
        loop_wake(http->loop[i]);
}

void http_accept(struct http *http)
{
    atomic_store(&http->may_accept, true);
    wake_all(http);
}

void http_accept_no_more(struct http *http)
{
    atomic_store(&http->is_leaving, true);
    atomic_store(&http->may_accept, false);
    wake_all(http);
    (void)pthread_mutex_lock(&http->lock);
    while (atomic_load(&http->accepting) > 0)
        (void)pthread_cond_wait(&http->quiet_changed, &http->lock);
    (void)pthread_mutex_unlock(&http->lock);
}

void http_quiet_changed(struct http *http)
{
    (void)pthread_mutex_lock(&http->lock);
    (void)pthread_cond_signal(&http->quiet_changed);
    (void)pthread_mutex_unlock(&http->lock);
}

static bool all_quiet(const struct http *http)
{
    for (unsigned i = 0; i < http->loop_count; i++)
        if (!loop_is_quiet(http->loop[i]))
            return false;
    return true;
}

/* Lets loops with nothing to do find that out, and waits until all of them have. Returns how many
 * requests are left when the time is over. */
static unsigned wait_quiet(struct http *http, uint64_t timeout_ms)
{
    int64_t until_ns = clock_ns() + (int64_t)timeout_ms * 1000000;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    wake_all(http);
    (void)pthread_mutex_lock(&http->lock);
    while (!all_quiet(http) &&
           pthread_cond_timedwait(&http->quiet_changed, &http->lock, &until) != ETIMEDOUT)
        continue;
    (void)pthread_mutex_unlock(&http->lock);
    unsigned left = 0;
    for (unsigned i = 0; i < http->loop_count; i++)
        left += loop_stats(http->loop[i]).exchanges;
    atomic_store(&http->is_late, true); /* what a device has not begun is not begun any more */
    if (left > 0)
        wake_all(http);
    return left;
}

unsigned http_drain(struct http *http, uint64_t timeout_ms)
{
    atomic_store(&http->is_draining, true);
    return wait_quiet(http, timeout_ms);
}

unsigned http_leave(struct http *http, uint64_t timeout_ms)
{
    assert(atomic_load(&http->is_leaving));
    return wait_quiet(http, timeout_ms);
}

void http_close(struct http *http)
{
    if (http == NULL)
        return;
    atomic_store(&http->is_stopping, true); /* at once for all: none accepts for one that ended */
    for (unsigned i = 0; http->loop != NULL && i < http->loop_count; i++)
        if (http->loop[i] != NULL)
            loop_wake(http->loop[i]);
    for (unsigned i = 0; http->loop != NULL && i < http->loop_count; i++)
        loop_stop(http->loop[i]);
    for (unsigned i = 0; http->loop != NULL && i < http->loop_count; i++)
        loop_destroy(http->loop[i]);
    free(http->loop);
    nvml_close(http->nvml);
    (void)pthread_cond_destroy(&http->quiet_changed);
    (void)pthread_mutex_destroy(&http->lock);
    free(http);
}
