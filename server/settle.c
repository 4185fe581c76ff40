/* settle.c - settings made to fit the machine (see settle.h). */
#include "server/settle.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/connection.h"
#include "server/log.h"

enum {
    FILES_A_THREAD = 4,  /* descriptors of an HTTP thread's own: epoll and wake-up */
    FILES_BESIDES = 256, /* standard and listening ones, and CUDA's */
};

static unsigned cores_available(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than a cpu_set_t has bits */
    return online > 0 ? (unsigned)online : 1;
}

static void settle_zeros(struct config *config)
{
    if (config->http_threads == 0)
        config->http_threads = cores_available();
    if (config->http_threads > CONFIG_THREADS_MAX)
        config->http_threads = CONFIG_THREADS_MAX;
    if (config->http_threads > config->max_connections)
        config->http_threads = config->max_connections; /* each has one connection at least */
    if (config->memory_budget_bytes == 0)
        config->memory_budget_bytes = config_memory_limit() / 4;
    if (config->queue_bytes == 0)
        config->queue_bytes = config->memory_budget_bytes;
    if (config->pinned_bytes > config->memory_budget_bytes)
        config->pinned_bytes = config->memory_budget_bytes; /* it is a part of the budget */
}

static void settle_files(struct config *config)
{
    uint64_t others =
        FILES_BESIDES + (FILES_A_THREAD + CONNECTIONS_LINGERING_MAX) * config->http_threads;
    uint64_t needed = config->max_connections + others;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return;
    struct rlimit raised = {.rlim_cur = needed, .rlim_max = limit.rlim_max};
    if (raised.rlim_max < needed)
        raised.rlim_max = needed; /* allowed to a privileged process only */
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return;
    raised = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0)
        raised = limit;
    uint64_t left = raised.rlim_cur > others ? raised.rlim_cur - others : config->http_threads;
    log_event(LOG_LEVEL_WARNING, "max_connections_lowered",
              LOG_N("wanted", config->max_connections), LOG_N("possible", left),
              LOG_N("file_limit", raised.rlim_cur));
    config->max_connections = left;
}

void settle(struct config *config)
{
    settle_zeros(config);
    settle_files(config);
}
