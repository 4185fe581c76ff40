/* serve.c - the process that serves, in order (see serve.h).
 *
 * Signals are blocked before the first thread starts and taken by sigtimedwait() in the main one,
 * so no handler ever runs in the middle of anything.
 *   SIGTERM, SIGINT   drain and end; under a supervisor only when it is the one that asks
 *   SIGHUP            read the configuration again
 *   SIGUSR2           for the supervisor
 */
#include "server/serve.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "gpu/clock.h"
#include "gpu/gpu.h"
#include "gpu/lab.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/reload.h"
#include "server/settle.h"
#include "server/systemd.h"

enum {
    OVERDUE_MS = 8000, /* a drain that takes so much longer than it may hangs; 2 s are loop.c's */
    GUARD_LOOK_MS = 500,
};

/* Settings in force from some time on. Threads may still be reading older ones: they are kept. */
struct version {
    struct config config;
    struct version *before;
};

struct serving {
    int argc; /* fixed */
    char **argv;
    const struct lifeline *lifeline;   /* fixed; NULL: nobody supervises */
    struct config read;                /* main thread: what is gone by, as it was read */
    struct version *version;           /* main thread: what is in force */
    struct listen_set sockets;         /* main thread, once the HTTP threads accept no more */
    struct gpu *gpu;                   /* fixed once started */
    struct lab *lab;                   /* fixed once started */
    struct http *http;                 /* fixed once started */
    atomic_bool is_tested;             /* main thread: false to true */
    atomic_bool is_device_lost;        /* a device's thread: false to true */
    char message[LIFELINE_TEXT_BYTES]; /* main thread: why it did not start */
};

static const struct config *config_of(const struct serving *s)
{
    return &s->version->config;
}

static bool is_stopgap(const struct serving *s)
{
    return s->lifeline != NULL && lifeline_lineage(s->lifeline).is_stopgap;
}

/* ---- starting ------------------------------------------------------------------------------ */

static bool version_add(struct serving *s, const struct config *config)
{
    struct version *version = malloc(sizeof *version);
    if (version == NULL)
        return false;
    *version = (struct version){.config = *config, .before = s->version};
    s->version = version;
    return true;
}

static void version_drop(struct serving *s)
{
    struct version *version = s->version;
    s->version = version->before;
    free(version);
}

static sigset_t handled_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGUSR2);
    return set;
}

/* Threads inherit this: only sigtimedwait() ever sees the signals. */
static void signals_block(void)
{
    sigset_t set = handled_signals();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that left is an errno, not the end */
}

static void devices_log(struct gpu *gpu)
{
    for (int i = 0; i < gpu_device_count(gpu); i++) {
        struct device_info info = gpu_device_info(gpu, i);
        log_event(LOG_LEVEL_INFO, "device", LOG_S("device", info.id), LOG_S("name", info.name),
                  LOG_S("kernel", info.kernel), LOG_N("memory_bytes", info.memory_bytes),
                  LOG_N("multiprocessors", info.multiprocessors));
    }
    if (gpu_cuda_absent(gpu) != NULL)
        log_event(LOG_LEVEL_INFO, "no_cuda", LOG_S("reason", gpu_cuda_absent(gpu)));
}

static void failed_devices_log(struct gpu *gpu)
{
    struct problem problem;
    problem_clear(&problem);
    int failed = gpu_devices_failed(gpu, &problem);
    if (failed > 0)
        log_event(LOG_LEVEL_WARNING, "devices_failed", LOG_N("count", failed),
                  LOG_S("error", problem.detail));
}

/* On the device's own thread: its jobs go on on the CPU, and this process should be replaced by one
 * whose driver is in order. But one that is lost in the self-test is left out, as one that did not
 * open: the next process would find the same. */
static void on_device_lost(void *context)
{
    struct serving *s = context;
    if (!atomic_load(&s->is_tested))
        return;
    atomic_store(&s->is_device_lost, true);
    http_expect_cuda(s->http);
    if (s->lifeline != NULL)
        lifeline_say(s->lifeline, LIFELINE_REPLACE, "a device was lost");
}

static bool devices_open(struct serving *s)
{
    const struct config *c = config_of(s);
    const struct gpu_config config = {
        .cuda = c->cuda != 0 && !is_stopgap(s),
        .budget_bytes = c->memory_budget_bytes,
        .pinned_bytes = c->pinned_bytes,
        .device_bytes = c->device_bytes,
        .queue_jobs = (uint32_t)c->queue_jobs,
        .queue_bytes = c->queue_bytes,
        .batch_jobs = (uint32_t)c->batch_jobs,
        .inline_terms = c->inline_terms,
        .cuda_min_bytes = c->cuda_min_bytes,
        .client_share_percent = (uint32_t)c->client_share_percent,
        .device_lost = on_device_lost,
        .context = s,
    };
    struct problem problem;
    if (gpu_open(&s->gpu, &config, &problem) != ERR_OK) {
        (void)snprintf(s->message, sizeof s->message, "cannot open the devices: %s",
                       problem.detail);
        return false;
    }
    devices_log(s->gpu);
    return true;
}

/* Also without the lab's own calls: a kernel that /v1/dot is told to use runs there. */
static bool lab_start(struct serving *s)
{
    const struct lab_config config = {.queue_jobs = (uint32_t)config_of(s)->lab_jobs};
    struct problem problem;
    if (lab_open(&s->lab, s->gpu, &config, &problem) == ERR_OK)
        return true;
    (void)snprintf(s->message, sizeof s->message, "cannot open the lab: %s", problem.detail);
    return false;
}

static bool self_test(struct serving *s)
{
    struct problem problem;
    if (gpu_self_test(s->gpu, &problem) == ERR_OK) {
        gpu_measure(s->gpu);
        failed_devices_log(s->gpu);
        atomic_store(&s->is_tested, true);
        return true;
    }
    (void)http_drain(s->http, 0); /* clients may have come during the test */
    lab_drain(s->lab);
    gpu_drain(s->gpu);
    (void)snprintf(s->message, sizeof s->message, "self-test failed: %s", problem.detail);
    return false;
}

/* A taken port is said before devices take their time, and no thread yet reads the environment that
 * listen_open() changes. */
static bool sockets_take(struct serving *s)
{
    if (s->lifeline == NULL)
        return listen_open(&s->sockets, config_of(s)->listen, s->message, sizeof s->message) == 0;
    lifeline_sockets(s->lifeline, &s->sockets);
    return true;
}

/* What LIFELINE_READY tells. */
static const char *cuda_state(const struct serving *s)
{
    int device;
    if (gpu_place(s->gpu, PLACE_CUDA, -1, NULL, &device) == ERR_OK)
        return LIFELINE_HAS_CUDA;
    bool is_missed = config_of(s)->cuda != 0 && lifeline_lineage(s->lifeline).had_cuda;
    return is_missed && !is_stopgap(s) ? LIFELINE_LACKS_CUDA : "";
}

static void say_ready(const struct serving *s, const char *cuda)
{
    if (s->lifeline != NULL) {
        lifeline_say(s->lifeline, LIFELINE_READY, cuda);
        return;
    }
    systemd_notify("READY=1");
    listen_announce(&s->sockets);
}

/* The first process answers probes while it tests itself. Later ones follow one that may have gone
 * because of a fault: they take nobody before they know that they are right. */
static bool start(struct serving *s)
{
    const struct lineage lineage =
        s->lifeline != NULL ? lifeline_lineage(s->lifeline) : (struct lineage){0};
    if (!sockets_take(s))
        return false;
    log_event(LOG_LEVEL_INFO, "starting", LOG_S("version", DOTD_VERSION),
              LOG_S("libmicrohttpd", MHD_get_version()),
              LOG_N("http_threads", config_of(s)->http_threads),
              LOG_N("memory_budget_bytes", config_of(s)->memory_budget_bytes));
    if (!devices_open(s) || !lab_start(s) ||
        !http_open(&s->http, config_of(s), s->gpu, s->lab, &s->sockets, &lineage, s->message,
                   sizeof s->message))
        return false;
    if (lineage.generation <= 1)
        http_accept(s->http);
    if (!self_test(s))
        return false;
    const char *cuda = s->lifeline != NULL ? cuda_state(s) : "";
    if (strcmp(cuda, LIFELINE_LACKS_CUDA) == 0)
        http_expect_cuda(s->http);
    http_set_ready(s->http);
    http_accept(s->http);
    say_ready(s, cuda);
    return true;
}

/* ---- serving ------------------------------------------------------------------------------- */

static uint64_t look_ms(const struct serving *s)
{
    uint64_t ms = lifeline_period_ms(config_of(s)->hang_timeout_ms);
    uint64_t watchdog_us = s->lifeline == NULL ? systemd_watchdog_us() : 0;
    if (watchdog_us > 0 && watchdog_us / 4000 < ms)
        ms = watchdog_us / 4000 + 1; /* one missed ping is not the end */
    return ms;
}

/* Says to whoever watches until when all of this process was seen to move. */
static void look(struct serving *s)
{
    int64_t now_ns = clock_ns();
    int64_t well_ns = http_well_ns(s->http, now_ns);
    const char *part = well_ns < now_ns ? "an HTTP thread" : "";
    int64_t busy_ns = gpu_busy_since_ns(s->gpu);
    if (busy_ns != 0 && busy_ns < well_ns) {
        well_ns = busy_ns;
        part = "a device";
    }
    if (s->lifeline != NULL) {
        lifeline_beat(s->lifeline, well_ns, part);
        return;
    }
    int64_t hang_ns = (int64_t)config_of(s)->hang_timeout_ms * 1000000;
    if (hang_ns == 0 || now_ns - well_ns < hang_ns)
        systemd_notify("WATCHDOG=1");
    else
        log_event(LOG_LEVEL_ERROR, "hung", LOG_S("part", part),
                  LOG_N("for_ms", (now_ns - well_ns) / 1000000));
}

static void reload(struct serving *s)
{
    struct config again;
    enum config_action action;
    struct reload what;
    char message[LIFELINE_TEXT_BYTES] = "out of memory";
    int copy = s->lifeline != NULL ? lifeline_copy(s->lifeline) : -1;
    if (!config_load_copy(&again, &action, s->argc, s->argv, copy >= 0 ? &copy : NULL, message,
                          sizeof message) ||
        !version_add(s, config_of(s))) {
        log_event(LOG_LEVEL_ERROR, "config_refused", LOG_S("error", message));
        return;
    }
    reload_apply(&s->read, &s->version->config, &again, &what);
    if (what.applied[0] == '\0')
        version_drop(s);
    http_set_config(s->http, config_of(s));
    log_set_level((enum log_level)config_of(s)->log_level);
    log_event(LOG_LEVEL_INFO, "config_reloaded", LOG_S("applied", what.applied),
              LOG_S("needs_restart", what.waiting));
}

/* Whether a stop signal is one. The terminal and the service manager may send theirs to the whole
 * group; then the supervisor gets it too, and says what is to be done. While one signal waits to be
 * taken, another of its number is lost: the supervisor's, then, but not what it has left. */
static bool may_stop_us(const struct serving *s, const siginfo_t *info)
{
    return s->lifeline == NULL || info->si_pid == lifeline_supervisor(s->lifeline) ||
           lifeline_is_last(s->lifeline);
}

static bool is_stop(int signal)
{
    return signal == SIGTERM || signal == SIGINT;
}

static const char *signal_name(int signal)
{
    return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

/* Returns why it is time to end. */
static const char *serve_until_end(struct serving *s)
{
    const sigset_t set = handled_signals();
    for (;;) {
        uint64_t ms = look_ms(s);
        const struct timespec period = {.tv_sec = 0, .tv_nsec = (long)ms * 1000000};
        siginfo_t info;
        int signal = sigtimedwait(&set, &info, &period);
        look(s);
        if (s->lifeline != NULL && lifeline_is_orphan(s->lifeline))
            return "the supervisor has gone";
        if (s->lifeline == NULL && atomic_load(&s->is_device_lost))
            return "a device was lost";
        if (is_stop(signal) && may_stop_us(s, &info))
            return signal_name(signal);
        if (signal == SIGTERM) /* from anybody else: this process is to be replaced */
            lifeline_say(s->lifeline, LIFELINE_REPLACE, "it was sent SIGTERM");
        if (signal == SIGHUP)
            reload(s);
        if (signal == SIGUSR2 && s->lifeline == NULL)
            log_event(LOG_LEVEL_WARNING, "not_replaced", LOG_S("reason", "supervise = off"));
    }
}

/* ---- ending -------------------------------------------------------------------------------- */

struct guard {
    int64_t again_ns; /* from when on a stop signal is another one */
    int64_t until_ns;
    bool is_supervised;
};

/* Ends the process when the drain takes longer than it may, for a device that hangs; and without a
 * supervisor, which would do it, when a second stop signal asks for that. What is still in flight
 * is dropped then. */
static void *guard_thread(void *context)
{
    const struct guard *guard = context;
    const sigset_t set = handled_signals();
    const struct timespec period = {.tv_nsec = GUARD_LOOK_MS * 1000000L};
    for (;;) {
        int signal = sigtimedwait(&set, NULL, &period);
        bool is_second = is_stop(signal) && !guard->is_supervised && clock_ns() >= guard->again_ns;
        if (is_second || clock_ns() >= guard->until_ns) {
            log_event(LOG_LEVEL_WARNING, "leaving_at_once",
                      LOG_S("reason", is_second ? signal_name(signal) : "the drain is overdue"));
            _exit(1);
        }
        if (!guard->is_supervised)
            systemd_notify("WATCHDOG=1"); /* a drain has its own time limit */
    }
    return NULL;
}

static void guard_start(const struct serving *s)
{
    static struct guard guard; /* the thread runs until the process has ended */
    int64_t limit_ms = (int64_t)config_of(s)->drain_timeout_ms + OVERDUE_MS;
    int64_t now_ns = clock_ns();
    guard = (struct guard){.again_ns = now_ns + SERVE_SAME_STOP_MS * (int64_t)1000000,
                           .until_ns = now_ns + limit_ms * 1000000,
                           .is_supervised = s->lifeline != NULL};
    pthread_t thread;
    int failure = pthread_create(&thread, NULL, guard_thread, &guard);
    if (failure != 0)
        log_event(LOG_LEVEL_WARNING, "drain_unguarded", LOG_S("error", strerror(failure)));
    else
        (void)pthread_detach(thread);
}

/* With nobody to follow, clients that come are told so. Otherwise the listeners are let go at once,
 * for the next process or for a new supervisor, and clients wait in their backlog. */
static unsigned http_end(struct serving *s)
{
    uint64_t timeout_ms = config_of(s)->drain_timeout_ms;
    if (s->lifeline == NULL || lifeline_is_last(s->lifeline))
        return http_drain(s->http, timeout_ms);
    http_accept_no_more(s->http);
    listen_close(&s->sockets);
    return http_leave(s->http, timeout_ms);
}

/* 1. A drain that takes too long ends the process from here on.
 * 2. HTTP takes no more work; all that was accepted is answered, or cut off when time is over.
 * 3. The lab, then the devices complete what is left: no thread waits for a job any more. */
static void drain(struct serving *s, const char *reason)
{
    if (s->lifeline == NULL)
        systemd_notify("STOPPING=1");
    log_event(LOG_LEVEL_INFO, "draining", LOG_S("reason", reason));
    guard_start(s);
    unsigned cut_off = http_end(s);
    lab_drain(s->lab);
    gpu_drain(s->gpu);
    log_event(cut_off == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "drained",
              LOG_N("cut_off", cut_off));
}

static void say_failed(const struct serving *s)
{
    if (s->lifeline != NULL)
        lifeline_say(s->lifeline, LIFELINE_FAILED, s->message);
    else
        fprintf(stderr, "dotd: %s\n", s->message);
}

/* Takes one that start() left half-open. HTTP goes before the devices whose buffers it holds and
 * the sockets that it borrowed; then nobody reads the settings any more. */
static void serving_close(struct serving *s)
{
    http_close(s->http);
    lab_close(s->lab);
    gpu_close(s->gpu);
    listen_close(&s->sockets);
    while (s->version != NULL)
        version_drop(s);
}

static void name_process(const struct serving *s)
{
    char name[LOG_PROCESS_BYTES];
    const struct config *c = config_of(s);
    bool is_worker = s->lifeline != NULL;
    if (is_worker) {
        (void)snprintf(name, sizeof name, "worker-%u", lifeline_lineage(s->lifeline).generation);
        (void)prctl(PR_SET_NAME, "dotd-worker"); /* exec by descriptor has left a number there */
    }
    log_open((enum log_level)c->log_level, (enum log_format)c->log_format, is_worker ? name : NULL);
}

int serve(const struct config *config, int argc, char **argv, const struct lifeline *lifeline)
{
    struct serving s = {.argc = argc, .argv = argv, .lifeline = lifeline, .read = *config};
    if (!version_add(&s, config)) {
        fputs("dotd: out of memory\n", stderr);
        return 1;
    }
    name_process(&s);
    signals_block();
    settle(&s.version->config);
    bool is_started = start(&s);
    if (is_started)
        drain(&s, serve_until_end(&s));
    else
        say_failed(&s);
    serving_close(&s);
    if (!is_started)
        return 1;
    return lifeline == NULL && atomic_load(&s.is_device_lost) ? SERVE_DEVICE_LOST : 0;
}
