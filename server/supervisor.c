/* supervisor.c - one thread around poll(): signals, workers' words, time (see supervisor.h). */
#include "server/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/clock.h"
#include "server/backoff.h"
#include "server/child.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/reload.h"
#include "server/serve.h"
#include "server/systemd.h"

enum {
    CHILDREN_MAX = 8,    /* workers at once; all but two of them are leaving */
    START_MS = 120000,   /* a worker must be ready within this time */
    OVERDUE_MS = 10000,  /* a worker ends its drain itself; so long after its limit it is killed */
    ABORT_MS = 1000,     /* from SIGABRT, which may leave a core, to SIGKILL */
    SIGNALS_A_ROUND = 8, /* there are five to get */
    OVERSLEPT_LOOKS = 4, /* when so many were missed it is this process that did not run */
};

struct supervisor {
    struct config config;
    int argc;
    char **argv;
    char path[PATH_MAX]; /* of the program; SIGUSR2 reads it again */
    struct listen_set sockets;
    int signals;          /* signalfd */
    struct image image;   /* of the last worker that was ready */
    struct image renewal; /* of the one that SIGUSR2 asked for, until it is ready or has failed */
    struct child child[CHILDREN_MAX];
    struct backoff backoff;
    int64_t start_ns;       /* when the next worker is to be started; INT64_MAX: none is */
    int64_t looked_ns;      /* when the heartbeat was last looked at */
    int64_t forgiven_ns;    /* what was missed before that is nobody's fault */
    int64_t pinged_ns;      /* the service manager */
    struct lineage lineage; /* of the last worker started */
    bool is_renewal_wanted;
    bool has_cuda; /* the last worker that was to have it had it in order */
    bool is_ready; /* a worker has been ready once */
    bool is_stopping;
    int64_t stopped_ns; /* since when, then */
    bool is_over;
    int status; /* of exit */
};

static struct child *child_in(struct supervisor *s, enum child_state state)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state == state)
            return &s->child[i];
    return NULL;
}

static struct child *child_of(struct supervisor *s, pid_t pid)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state != CHILD_NONE && s->child[i].pid == pid)
            return &s->child[i];
    return NULL;
}

static uint64_t leave_ms(const struct supervisor *s)
{
    return s->config.drain_timeout_ms + OVERDUE_MS;
}

/* ---- starting workers ---------------------------------------------------------------------- */

static void plan_start(struct supervisor *s, uint64_t pause_ms)
{
    int64_t at_ns = clock_ns() + (int64_t)pause_ms * 1000000;
    if (at_ns < s->start_ns)
        s->start_ns = at_ns;
}

/* A worker is gone, or as good as gone, that lived for so long. */
static void lose(struct supervisor *s, const char *reason, uint64_t lived_ms)
{
    uint64_t pause_ms = backoff_fail_ms(&s->backoff, lived_ms, s->config.restart_pause_max_ms);
    s->lineage.restarts_total++;
    (void)snprintf(s->lineage.last_reason, sizeof s->lineage.last_reason, "%.*s",
                   (int)sizeof s->lineage.last_reason - 1, reason);
    log_event(LOG_LEVEL_ERROR, "worker_lost", LOG_S("reason", reason), LOG_N("lived_ms", lived_ms),
              LOG_N("pause_ms", pause_ms));
    plan_start(s, pause_ms);
}

/* A worker that was to have CUDA has none in order: one that has is tried again and again, and
 * meanwhile whoever serves is a stopgap. */
static void miss_cuda(struct supervisor *s)
{
    uint64_t pause_ms = backoff_fail_ms(&s->backoff, 0, s->config.restart_pause_max_ms);
    log_event(LOG_LEVEL_ERROR, "cuda_missed", LOG_S("error", "no CUDA device is in order"),
              LOG_N("pause_ms", pause_ms));
    plan_start(s, pause_ms);
}

static void renewal_drop(struct supervisor *s, const char *error)
{
    log_event(LOG_LEVEL_ERROR, "renewal_failed", LOG_S("error", error));
    image_close(&s->renewal);
}

/* The program at the path and the configuration file as they are now. The latter may have settings
 * that only the new program knows, so it is not judged here: a copy is taken of whatever it
 * holds. */
static bool renewal_open(struct supervisor *s)
{
    int copy = -1;
    if (s->image.copy >= 0 && (copy = config_copy_file(s->argc, s->argv)) < 0) {
        renewal_drop(s, "the configuration file cannot be read");
        return false;
    }
    if (image_open(&s->renewal, s->path, copy))
        return true;
    renewal_drop(s, strerror(errno));
    if (copy >= 0)
        (void)close(copy);
    return false;
}

/* Whether the one that serves will do until somebody asks for another. */
static bool is_served(struct supervisor *s)
{
    struct child *child = child_in(s, CHILD_SERVING);
    return child != NULL && !child->wants_to_go && !child->is_stopgap;
}

static void start_failed(struct supervisor *s, bool is_renewal, const char *error)
{
    if (!s->is_ready) {
        fprintf(stderr, "dotd: %s\n", error);
        s->status = 1;
        s->is_over = true;
    } else if (is_renewal) {
        renewal_drop(s, error);
        if (!is_served(s))
            plan_start(s, 0);
    } else {
        lose(s, error, 0);
    }
}

/* While nobody serves, a worker without CUDA is started: it is there at once, and a driver or a
 * device that hangs cannot keep it. One with CUDA follows it, and takes over as soon as it is
 * ready. */
static bool needs_stopgap(struct supervisor *s)
{
    return s->is_ready && s->has_cuda && child_in(s, CHILD_SERVING) == NULL;
}

static void start_worker(struct supervisor *s, bool is_renewal)
{
    struct child *child = child_in(s, CHILD_NONE);
    assert(child != NULL);
    s->start_ns = INT64_MAX;
    s->lineage.generation++;
    s->lineage.is_stopgap = !is_renewal && needs_stopgap(s);
    s->lineage.had_cuda = s->has_cuda;
    const struct image *image = is_renewal ? &s->renewal : &s->image;
    if (!child_start(child, image, s->argv, &s->sockets, &s->lineage)) {
        start_failed(s, is_renewal, strerror(errno));
        return;
    }
    child->is_renewal = is_renewal;
    child->deadline_ns = child->since_ns + START_MS * (int64_t)1000000;
    log_event(LOG_LEVEL_INFO, "worker_started", LOG_N("generation", child->generation),
              LOG_N("pid", child->pid), LOG_N("is_stopgap", child->is_stopgap));
}

/* One at a time, and a slot must be free: those that leave have a deadline. */
static void start_what_is_due(struct supervisor *s)
{
    if (s->is_stopping || s->is_over || child_in(s, CHILD_STARTING) != NULL ||
        child_in(s, CHILD_NONE) == NULL)
        return;
    if (s->is_renewal_wanted) {
        s->is_renewal_wanted = false;
        if (renewal_open(s)) {
            (void)snprintf(s->lineage.last_reason, sizeof s->lineage.last_reason,
                           "replaced on request");
            start_worker(s, true);
            return;
        }
    }
    if (clock_ns() >= s->start_ns)
        start_worker(s, false);
}

/* ---- what workers say ---------------------------------------------------------------------- */

static void retire(struct supervisor *s, struct child *child)
{
    log_event(LOG_LEVEL_INFO, "worker_retired", LOG_N("generation", child->generation));
    child_order(child, SIGTERM, CHILD_LEAVING, leave_ms(s));
}

static void first_is_ready(struct supervisor *s)
{
    s->is_ready = true;
    systemd_notify("READY=1");
    listen_announce(&s->sockets);
}

static void worker_is_ready(struct supervisor *s, struct child *child, const char *cuda)
{
    struct child *before = child_in(s, CHILD_SERVING);
    bool lacks_cuda = strcmp(cuda, LIFELINE_LACKS_CUDA) == 0;
    if (before != NULL && before->is_stopgap && lacks_cuda && !child->is_renewal) {
        miss_cuda(s);
        retire(s, child); /* it may have accepted somebody */
        return;
    }
    log_event(LOG_LEVEL_INFO, "worker_ready", LOG_N("generation", child->generation),
              LOG_N("after_ms", child_age_ms(child)));
    child_enter(child, CHILD_SERVING);
    s->start_ns = INT64_MAX;
    if (child->is_stopgap)
        plan_start(s, 0);
    else if (lacks_cuda)
        miss_cuda(s);
    else
        s->has_cuda = strcmp(cuda, LIFELINE_HAS_CUDA) == 0;
    child->is_stopgap |= lacks_cuda;
    if (before != NULL)
        retire(s, before);
    if (child->is_renewal) {
        image_close(&s->image);
        s->image = s->renewal;
        s->renewal = (struct image){.exe = -1, .copy = -1};
    }
    if (!s->is_ready)
        first_is_ready(s);
}

static void worker_must_go(struct supervisor *s, struct child *child, const char *reason)
{
    if (child->state != CHILD_SERVING || child->wants_to_go || s->is_stopping)
        return;
    child->wants_to_go = true;
    lose(s, reason, child_age_ms(child));
}

static void hear(struct supervisor *s, struct child *child)
{
    char text[LIFELINE_TEXT_BYTES];
    enum lifeline_word word;
    while ((word = lifeline_hear(&child->lifeline, text)) != 0) {
        if (word == LIFELINE_READY && child->state == CHILD_STARTING)
            worker_is_ready(s, child, text);
        else if (word == LIFELINE_REPLACE)
            worker_must_go(s, child, text);
        else if (word == LIFELINE_FAILED)
            memcpy(child->failure, text, sizeof text);
    }
}

/* ---- how workers end ----------------------------------------------------------------------- */

/* At the end of all, what became of the worker is what becomes of dotd. */
static void note_status(struct supervisor *s, int wait_status)
{
    int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1;
    if (s->is_stopping && s->status == 0)
        s->status = status;
}

static void worker_ended(struct supervisor *s, struct child *child, int wait_status)
{
    char how[LIFELINE_TEXT_BYTES];
    child_describe_end(wait_status, how, sizeof how);
    hear(s, child);
    struct child dead = *child;
    child_bury(child);
    bool is_clean = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    log_event(is_clean ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "worker_ended",
              LOG_N("generation", dead.generation), LOG_N("pid", dead.pid), LOG_S("how", how));
    if (dead.state == CHILD_LEAVING)
        note_status(s, wait_status);
    else if (dead.state == CHILD_STARTING && !s->is_stopping)
        start_failed(s, dead.is_renewal, dead.failure[0] != '\0' ? dead.failure : how);
    else if (dead.state == CHILD_SERVING && !dead.wants_to_go)
        lose(s, how, child_age_ms(&dead));
}

static void reap(struct supervisor *s)
{
    int wait_status;
    pid_t pid;
    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        struct child *child = child_of(s, pid);
        if (child != NULL) /* else it was left to us, as to process 1 of a container */
            worker_ended(s, child, wait_status);
    }
}

/* ---- what is asked of us ------------------------------------------------------------------- */

/* What a worker answers nothing to is not waited for; and nobody is served by one that starts. */
static void stop(struct supervisor *s, const char *signal)
{
    s->is_stopping = true;
    s->stopped_ns = clock_ns();
    systemd_notify("STOPPING=1");
    log_event(LOG_LEVEL_INFO, "stopping", LOG_S("signal", signal));
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &s->child[i];
        if (child->state == CHILD_STARTING)
            child_kill(child);
        if (child->state != CHILD_SERVING)
            continue;
        lifeline_set_last(&child->lifeline);
        child_order(child, SIGTERM, CHILD_LEAVING, leave_ms(s));
    }
}

static void stop_at_once(struct supervisor *s, const char *signal)
{
    log_event(LOG_LEVEL_WARNING, "leaving_at_once", LOG_S("reason", signal));
    s->status = 1;
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state != CHILD_NONE)
            child_kill(&s->child[i]);
}

/* Every worker reads the text that was found to be in order, whatever becomes of the file. */
static void reload(struct supervisor *s)
{
    struct config again;
    enum config_action action;
    struct reload what;
    char message[LIFELINE_TEXT_BYTES];
    int copy = -1;
    if (!config_load_copy(&again, &action, s->argc, s->argv, &copy, message, sizeof message)) {
        log_event(LOG_LEVEL_ERROR, "config_refused", LOG_S("error", message));
        return;
    }
    config_copy_update(s->image.copy, copy);
    config_copy_update(s->renewal.copy, copy);
    if (copy >= 0)
        (void)close(copy);
    reload_apply(&s->config, &s->config, &again, &what);
    log_set_level((enum log_level)s->config.log_level);
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state == CHILD_STARTING || s->child[i].state == CHILD_SERVING)
            (void)kill(s->child[i].pid, SIGHUP);
}

static void take_signal(struct supervisor *s, int signal)
{
    const char *name = signal == SIGINT ? "SIGINT" : "SIGTERM";
    if (signal == SIGHUP)
        reload(s);
    else if (signal == SIGUSR2)
        s->is_renewal_wanted = true;
    else if (!s->is_stopping)
        stop(s, name);
    else if (clock_ns() - s->stopped_ns >= SERVE_SAME_STOP_MS * (int64_t)1000000)
        stop_at_once(s, name);
}

/* The dead are looked for between reading and acting: who dies later raises SIGCHLD anew, and who
 * died before a stop is not one that the stop has lost. */
static void take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info[SIGNALS_A_ROUND];
    ssize_t size = read(s->signals, info, sizeof info);
    size_t count = size > 0 ? (size_t)size / sizeof info[0] : 0;
    reap(s);
    for (size_t i = 0; i < count; i++)
        if (info[i].ssi_signo != SIGCHLD)
            take_signal(s, (int)info[i].ssi_signo);
}

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t look_ns(const struct supervisor *s)
{
    return (int64_t)lifeline_period_ms(s->config.hang_timeout_ms) * 1000000;
}

/* A worker that did not move while this process did not run either was not at fault: a machine was
 * stopped, or a control group frozen. */
static void look_for_hang(struct supervisor *s, int64_t now_ns)
{
    char part[LIFELINE_TEXT_BYTES], reason[LIFELINE_TEXT_BYTES];
    struct child *child = child_in(s, CHILD_SERVING);
    if (now_ns - s->looked_ns > OVERSLEPT_LOOKS * look_ns(s))
        s->forgiven_ns = now_ns;
    s->looked_ns = now_ns;
    if (child == NULL || s->config.hang_timeout_ms == 0)
        return;
    uint64_t hung_ms = child_hung_ms(child, part);
    uint64_t watched_ms = (uint64_t)(now_ns - s->forgiven_ns) / 1000000;
    if (hung_ms < s->config.hang_timeout_ms || watched_ms < s->config.hang_timeout_ms)
        return;
    (void)snprintf(reason, sizeof reason, "%.64s has hung for %llu ms", part,
                   (unsigned long long)hung_ms);
    if (!child->wants_to_go)
        lose(s, reason, child_age_ms(child));
    child_order(child, SIGABRT, CHILD_KILLED, ABORT_MS);
    (void)kill(child->pid, SIGCONT); /* one that was stopped would be asleep on the listeners */
}

static void kill_overdue(struct supervisor *s, int64_t now_ns)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &s->child[i];
        if (child->state == CHILD_NONE || now_ns < child->deadline_ns)
            continue;
        log_event(LOG_LEVEL_WARNING, "worker_overdue", LOG_N("generation", child->generation),
                  LOG_N("after_ms", child_age_ms(child)));
        bool is_starting = child->state == CHILD_STARTING;
        child_kill(child);
        if (is_starting)
            start_failed(s, child->is_renewal, "it was not ready in time");
        if (s->is_stopping)
            s->status = 1;
    }
}

/* Returns the period of pings in ns; 0: none are due. */
static int64_t ping(struct supervisor *s, int64_t now_ns)
{
    int64_t period_ns = (int64_t)systemd_watchdog_us() * 1000 / 4; /* one missed is not the end */
    if (period_ns > 0 && s->is_ready && now_ns - s->pinged_ns >= period_ns) {
        s->pinged_ns = now_ns;
        systemd_notify("WATCHDOG=1");
    }
    return period_ns;
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Does what is due by now and returns when there may be something again. */
static int64_t take_time(struct supervisor *s)
{
    int64_t now_ns = clock_ns();
    kill_overdue(s, now_ns);
    look_for_hang(s, now_ns);
    start_what_is_due(s);
    int64_t next_ns = now_ns + look_ns(s), ping_ns = ping(s, now_ns);
    if (ping_ns > 0)
        next_ns = earlier(next_ns, s->pinged_ns + ping_ns);
    if (child_in(s, CHILD_NONE) != NULL)
        next_ns = earlier(next_ns, s->start_ns);
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state != CHILD_NONE)
            next_ns = earlier(next_ns, s->child[i].deadline_ns);
    return next_ns;
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Signals before words: a stop that went to the whole group has been sent to the worker as well,
 * which then asks to be replaced. */
static void one_round(struct supervisor *s, int64_t next_ns)
{
    struct pollfd event[1 + CHILDREN_MAX];
    int64_t left_ns = next_ns - clock_ns();
    int timeout_ms = left_ns > 0 ? (int)(left_ns / 1000000 + 1) : 0;
    event[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    for (int i = 0; i < CHILDREN_MAX; i++) {
        enum child_state state = s->child[i].state;
        bool may_speak = state == CHILD_STARTING || state == CHILD_SERVING;
        event[1 + i] =
            (struct pollfd){.fd = may_speak ? s->child[i].lifeline.talk : -1, .events = POLLIN};
    }
    if (poll(event, 1 + CHILDREN_MAX, timeout_ms) <= 0)
        return;
    take_signals(s);
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state == CHILD_STARTING || s->child[i].state == CHILD_SERVING)
            hear(s, &s->child[i]);
}

static bool has_children(const struct supervisor *s)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (s->child[i].state != CHILD_NONE)
            return true;
    return false;
}

static void run(struct supervisor *s)
{
    while (!s->is_over && !(s->is_stopping && !has_children(s)))
        one_round(s, take_time(s));
}

/* ---- life ---------------------------------------------------------------------------------- */

static bool signals_open(struct supervisor *s)
{
    static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        (void)sigaddset(&set, handled[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals >= 0;
}

static bool program_open(struct supervisor *s, int copy)
{
    ssize_t length = readlink("/proc/self/exe", s->path, sizeof s->path - 1);
    if (length <= 0 || !image_open(&s->image, "/proc/self/exe", copy))
        return false;
    s->path[length] = '\0';
    return true;
}

static void supervisor_close(struct supervisor *s)
{
    image_close(&s->image);
    image_close(&s->renewal);
    listen_close(&s->sockets);
    if (s->signals >= 0)
        (void)close(s->signals);
}

static bool open_all(struct supervisor *s, int copy)
{
    char message[LIFELINE_TEXT_BYTES];
    if (!program_open(s, copy) || !signals_open(s)) {
        fprintf(stderr, "dotd: cannot start a process: %s\n", strerror(errno));
        return false;
    }
    if (listen_open(&s->sockets, s->config.listen, message, sizeof message) == 0)
        return true;
    fprintf(stderr, "dotd: %s\n", message);
    return false;
}

int supervise(const struct config *config, int argc, char **argv, int copy)
{
    struct supervisor s = {
        .config = *config,
        .argc = argc,
        .argv = argv,
        .signals = -1,
        .image = {.exe = -1, .copy = -1},
        .renewal = {.exe = -1, .copy = -1},
        .looked_ns = clock_ns(),
    };
    log_open((enum log_level)config->log_level, (enum log_format)config->log_format, "supervisor");
    s.status = open_all(&s, copy) ? 0 : 1;
    if (s.status == 0)
        run(&s);
    supervisor_close(&s);
    return s.status;
}
