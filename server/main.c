/* main.c - the daemon from start to end, in order.
 *
 * Signals are blocked before the first thread starts and taken by sigtimedwait() in this one, so no
 * handler ever runs in the middle of anything. Exit status: 0 when all went well or the work was
 * drained, 1 when it could not start or a second signal cut the drain short, 2 for a wrong command
 * line.
 */
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "gpu/lab.h"
#include "server/config.h"
#include "server/connection.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/systemd.h"

enum {
    MESSAGE_BYTES = 512,
    FILES_A_THREAD = 4,  /* descriptors of an HTTP thread's own: epoll and wake-up */
    FILES_BESIDES = 256, /* standard and listening ones, and CUDA's */
};

struct daemon {
    struct config config; /* fixed once settled */
    struct listen_set sockets;
    struct gpu *gpu;
    struct lab *lab;
    struct http *http;
    char message[MESSAGE_BYTES]; /* why it did not start */
};

static unsigned cores_available(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than a cpu_set_t has bits */
    return online > 0 ? (unsigned)online : 1;
}

/* Puts in what 0 stands for, so that GET /v1/limits shows what is in force. */
static void settle(struct config *config)
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

/* Makes max_connections true: raises the limit of descriptors, or lowers the setting. */
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

/* The signals that end the daemon. */
static sigset_t stop_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    return set;
}

static const char *signal_name(int signal)
{
    return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

/* Threads inherit this: only sigtimedwait() ever sees the stop signals. */
static void signals_block(void)
{
    sigset_t set = stop_signals();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that left is an errno, not the end */
}

static void devices_log(struct gpu *gpu)
{
    struct problem problem;
    problem_clear(&problem);
    for (int i = 0; i < gpu_device_count(gpu); i++) {
        struct device_info info = gpu_device_info(gpu, i);
        log_event(LOG_LEVEL_INFO, "device", LOG_S("device", info.id), LOG_S("name", info.name),
                  LOG_S("kernel", info.kernel), LOG_N("memory_bytes", info.memory_bytes),
                  LOG_N("multiprocessors", info.multiprocessors));
    }
    int failed = gpu_devices_failed(gpu, &problem);
    if (failed > 0)
        log_event(LOG_LEVEL_WARNING, "devices_failed", LOG_N("count", failed),
                  LOG_S("error", problem.detail));
}

static bool devices_open(struct daemon *d)
{
    const struct config *c = &d->config;
    const struct gpu_config config = {
        .cuda = c->cuda != 0,
        .budget_bytes = c->memory_budget_bytes,
        .pinned_bytes = c->pinned_bytes,
        .device_bytes = c->device_bytes,
        .queue_jobs = (uint32_t)c->queue_jobs,
        .queue_bytes = c->queue_bytes,
        .batch_jobs = (uint32_t)c->batch_jobs,
        .inline_terms = c->inline_terms,
        .cuda_min_bytes = c->cuda_min_bytes,
    };
    struct problem problem;
    if (gpu_open(&d->gpu, &config, &problem) != ERR_OK) {
        (void)snprintf(d->message, sizeof d->message, "cannot open the devices: %s",
                       problem.detail);
        return false;
    }
    devices_log(d->gpu);
    return true;
}

/* Also without the lab's own calls: a kernel that /v1/dot is told to use runs there. */
static bool lab_start(struct daemon *d)
{
    const struct lab_config config = {.queue_jobs = (uint32_t)d->config.lab_jobs};
    struct problem problem;
    if (lab_open(&d->lab, d->gpu, &config, &problem) == ERR_OK)
        return true;
    (void)snprintf(d->message, sizeof d->message, "cannot open the lab: %s", problem.detail);
    return false;
}

static bool self_test(struct daemon *d)
{
    struct problem problem;
    if (gpu_self_test(d->gpu, &problem) == ERR_OK)
        return true;
    (void)http_drain(d->http, 0); /* clients may have come during the test */
    lab_drain(d->lab);
    gpu_drain(d->gpu);
    (void)snprintf(d->message, sizeof d->message, "self-test failed: %s", problem.detail);
    return false;
}

/* The log is for people, stdout for whoever started the daemon on port 0. */
static void announce(const struct daemon *d)
{
    for (int i = 0; i < d->sockets.count; i++) {
        log_event(LOG_LEVEL_INFO, "listening", LOG_S("address", d->sockets.name[i]));
        printf("dotd listening on http://%s\n", d->sockets.name[i]);
    }
    (void)fflush(stdout);
}

/* Sockets first: a taken port is said before devices take their time, and no thread yet reads the
 * environment that listen_open() changes. */
static bool start(struct daemon *d)
{
    if (listen_open(&d->sockets, d->config.listen, d->message, sizeof d->message) != 0)
        return false;
    log_event(LOG_LEVEL_INFO, "starting", LOG_S("version", DOTD_VERSION),
              LOG_S("libmicrohttpd", MHD_get_version()),
              LOG_N("http_threads", d->config.http_threads),
              LOG_N("memory_budget_bytes", d->config.memory_budget_bytes));
    if (!devices_open(d) || !lab_start(d) ||
        !http_open(&d->http, &d->config, d->gpu, d->lab, &d->sockets, d->message,
                   sizeof d->message) ||
        !self_test(d))
        return false;
    http_set_ready(d->http);
    systemd_notify("READY=1");
    announce(d);
    return true;
}

static void watchdog_ping(struct http *http)
{
    if (http == NULL || http_is_alive(http))
        systemd_notify("WATCHDOG=1");
    else
        log_event(LOG_LEVEL_ERROR, "http_thread_stalled", );
}

/* Returns the stop signal that came, pinging the watchdog meanwhile: when HTTP is alive, or always
 * while it drains (http NULL), which has its own time limit. */
static int signal_wait(struct http *http)
{
    const sigset_t set = stop_signals();
    const uint64_t period_us = systemd_watchdog_us() / 4; /* one missed ping is not the end */
    const struct timespec period = {.tv_sec = (time_t)(period_us / 1000000),
                                    .tv_nsec = (long)(period_us % 1000000 * 1000)};
    for (;;) {
        int signal = sigtimedwait(&set, NULL, period_us == 0 ? NULL : &period);
        if (signal > 0)
            return signal;
        if (errno == EAGAIN)
            watchdog_ping(http);
    }
}

static void *second_signal_thread(void *unused)
{
    (void)unused;
    int signal = signal_wait(NULL);
    log_event(LOG_LEVEL_WARNING, "leaving_at_once", LOG_S("signal", signal_name(signal)));
    _exit(1); /* what is still in flight is dropped: that is what was asked for */
}

static void second_signal_watch(void)
{
    pthread_t thread;
    int failure = pthread_create(&thread, NULL, second_signal_thread, NULL);
    if (failure != 0)
        log_event(LOG_LEVEL_WARNING, "second_signal_ignored", LOG_S("error", strerror(failure)));
    else
        (void)pthread_detach(thread);
}

/* 1. A second signal ends the process from here on.
 * 2. HTTP takes no more work; all that was accepted is answered, or cut off when time is over.
 * 3. The lab, then the devices complete what is left: no thread waits for a job any more. */
static void drain(struct daemon *d, int signal)
{
    systemd_notify("STOPPING=1");
    log_event(LOG_LEVEL_INFO, "draining", LOG_S("signal", signal_name(signal)));
    second_signal_watch();
    unsigned cut_off = http_drain(d->http, d->config.drain_timeout_ms);
    lab_drain(d->lab);
    gpu_drain(d->gpu);
    log_event(cut_off == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "drained",
              LOG_N("cut_off", cut_off));
}

/* Takes a daemon that start() left half-open. HTTP goes before the devices whose buffers it holds
 * and the sockets that it borrowed. */
static void daemon_close(struct daemon *d)
{
    http_close(d->http);
    lab_close(d->lab);
    gpu_close(d->gpu);
    listen_close(&d->sockets);
}

static int run(const struct config *config)
{
    struct daemon d = {.config = *config};
    log_open((enum log_level)config->log_level, (enum log_format)config->log_format);
    signals_block();
    settle(&d.config);
    settle_files(&d.config);
    bool is_started = start(&d);
    if (is_started)
        drain(&d, signal_wait(d.http));
    else
        fprintf(stderr, "dotd: %s\n", d.message);
    daemon_close(&d);
    return is_started ? 0 : 1;
}

static void version_print(void)
{
    printf("dotd %s (libmicrohttpd %s, jansson %s, %s CUDA)\n", DOTD_VERSION, MHD_get_version(),
           jansson_version_str(), DOTD_CUDA_BUILT ? "with" : "without");
}

/* A full disk must not look like success. */
static int stdout_status(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct config config;
    enum config_action action;
    char message[MESSAGE_BYTES];
    if (!config_load(&config, &action, argc, argv, message, sizeof message)) {
        fprintf(stderr, "dotd: %s\n", message);
        return action == CONFIG_USAGE ? 2 : 1;
    }
    switch (action) {
    case CONFIG_HELP:
        config_help(stdout);
        return stdout_status();
    case CONFIG_VERSION:
        version_print();
        return stdout_status();
    case CONFIG_CHECK:
        puts(message);
        return stdout_status();
    case CONFIG_PRINT:
        config_print(stdout, &config);
        return stdout_status();
    default:
        return run(&config);
    }
}
