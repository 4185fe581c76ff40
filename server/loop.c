/* loop.c - the HTTP thread (see loop.h).
 *
 * Order of one round: sleep in libmicrohttpd's own epoll, which then serves what is ready; have
 * devices begin with what that brought them; take completed jobs and resume their connections, and
 * those of requests that are late; accept, and see who has left; end what is over its deadline.
 * While requests are held, and in a crowd, it sleeps before the library runs, and takes completed
 * jobs before that too, whose answers are then sent by that run. Workers and other loops reach a
 * loop through two lock-free lists and an eventfd, which is written only when the loop sleeps.
 *
 * What else may wake the loop is watched in the same epoll, with events that have no pointer:
 * libmicrohttpd, from 0.9.40 to 2.0, takes those for a wake-up and nothing more. A round costs one
 * system call; an epoll of our own around the library's costs one more, 1.1 us for whoever is
 * alone.
 */
#include "server/loop.h"

#include <assert.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/clock.h"
#include "gpu/processor.h"
#include "server/answer.h"
#include "server/connection.h"
#include "server/deadlines.h"
#include "server/exchange.h"
#include "server/exchanges.h"
#include "server/intake.h"
#include "server/library.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/peer.h"
#include "server/stream.h"
#include "server/upload.h"

enum {
    EVENTS_A_ROUND = 64,
    /* Connections: with what else wakes the loop they may make the 128 events that libmicrohttpd
     * asks for at once. */
    CROWD = 96,
    HELD_MAX = 64,      /* requests: the library asks for each of them in every round, 0.2 us */
    SLEEP_MS = 60000,   /* at most */
    HELD_SLEEP_MS = 1,  /* likewise, while requests are held */
    LOOK_NS = 2000000,  /* between two looks around, while the library has work in every round */
    ACCEPT_NS = 500000, /* between two looks at the listeners, while uploads fill rounds */
    REFUSE_MS = 1000,
    LINGER_MS = 5000,
    LEAVE_IDLE_MS = 500, /* a client that asks again within this hears that the connection closes */
    STOP_MS = 2000,      /* after http_drain(): what is still unread is answered within this */
};

struct loop {
    /* fixed after loop_start() */
    struct http *http;
    unsigned index;
    pthread_t thread;
    bool is_started;
    int epoll; /* of clients that leave, linger or upload; see connection.h */
    int wake;  /* an eventfd */
    struct MHD_Daemon *daemon;
    struct metrics *metrics; /* its thread counts, any reads */
    /* any thread */
    struct job_port port, slice_port;
    _Atomic(struct job *) completed; /* pushed by workers, taken whole by the loop */
    struct intake intake;            /* of new connections */
    atomic_bool is_sleeping;         /* set by the loop's thread; see loop_awake() */
    atomic_ullong rounds;            /* loop writes; the watchdog reads */
    atomic_ullong connections_total; /* loop's thread writes, any reads, relaxed: a statistic */
    atomic_bool is_quiet;            /* loop's thread writes, while draining; http_drain() reads */
    /* main thread only */
    unsigned long long watched_rounds; /* at the last loop_well_ns() */
    int64_t well_ns;                   /* when that last saw it move */
    /* loop's thread only */
    struct connections connections;
    struct exchanges exchanges; /* their count: any thread reads */
    struct deadlines deadlines; /* of exchanges */
    int64_t now_ns;      /* when this round began: exact enough for deadlines, and no call each */
    int64_t looked_ns;   /* when look_around() last did */
    int64_t accepted_ns; /* when that last looked at the listeners */
    const struct config *durations_of; /* whose durations the connections have */
    uint64_t followed;                 /* devices that loop_follow() named, a bit each */
    unsigned held_count;               /* requests that loop_may_hold() let wait awake */
    bool has_news; /* since it went to sleep the library has called back, or a job came back */
    unsigned expected_runs; /* of the library, before a sleep: loop_expect() */
    int64_t look_ns;        /* how long to look for a completed job before the next sleep */
    bool is_leaving;        /* has begun to */
    bool is_renewing;       /* the connection that opens has been open before */
};

static void count(atomic_ullong *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- waking -------------------------------------------------------------------------------- */

void loop_wake(struct loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->wake, &one, sizeof one);
    assert(written == sizeof one); /* the counter cannot overflow */
}

/* Sequentially consistent on both sides: either the loop sees the new entry before it sleeps, or
 * this side sees that it sleeps. */
void loop_wake_if_sleeping(struct loop *loop)
{
    if (atomic_load(&loop->is_sleeping))
        loop_wake(loop);
}

static struct exchange *exchange_of(struct loop *loop, struct job *job)
{
    return job->port == &loop->slice_port ? stream_exchange(job) : exchange_of_job(job);
}

static void take_completed(struct loop *loop, struct job *first)
{
    struct job *last = first;
    while (last->next != NULL)
        last = last->next;
    struct job *head = atomic_load_explicit(&loop->completed, memory_order_relaxed);
    do
        last->next = head;
    while (!atomic_compare_exchange_weak(&loop->completed, &head, first));
    loop_wake_if_sleeping(loop);
}

static void complete_jobs(struct job_port *port, struct job *first)
{
    take_completed((struct loop *)((char *)port - offsetof(struct loop, port)), first);
}

static void complete_slices(struct job_port *port, struct job *first)
{
    take_completed((struct loop *)((char *)port - offsetof(struct loop, slice_port)), first);
}

/* Says whether there was any. */
static bool resume_completed(struct loop *loop)
{
    struct job *job = atomic_exchange(&loop->completed, NULL);
    bool is_any = job != NULL;
    while (job != NULL) {
        struct job *next = job->next;
        exchange_on_job(exchange_of(loop, job), job);
        job = next;
    }
    return is_any;
}

static void refuse_late(struct loop *loop)
{
    struct deadline *deadline;
    while ((deadline = deadlines_take(&loop->deadlines, loop->now_ns)) != NULL)
        exchange_on_deadline(deadline);
}

/* ---- connections ---------------------------------------------------------------------------- */

static struct connection *open_connection(struct loop *loop, struct MHD_Connection *mhd)
{
    const struct sockaddr *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct connection *connection = connection_create(&loop->connections, mhd, fd, loop->now_ns);
    if (connection == NULL)
        return NULL;
    connection->client = peer_client(address, loop->http->peer_seed);
    if (loop->is_renewing)
        connection_enter(&loop->connections, connection, PHASE_IDLE, loop->now_ns);
    return connection;
}

static void on_connection(void *closure, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct loop *loop = closure;
    loop_awake(loop);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = open_connection(loop, mhd);
        atomic_fetch_add(&loop->intake.open_count, 1);
        if (!loop->is_renewing)
            count(&loop->connections_total);
        return;
    }
    struct connection *connection = *socket_context;
    atomic_fetch_sub(&loop->intake.open_count, 1);
    if (connection == NULL)
        return;
    struct exchange *exchange = connection->exchange;
    connection->exchange = NULL;
    if (exchange != NULL) { /* begun, but never told to the handler as completed */
        if (exchange->status != 0)
            metrics_count_request(loop->metrics, exchange);
        exchange_free(&loop->exchanges, exchange);
    }
    if (connection->must_linger)
        connection_linger(&loop->connections, connection, loop->now_ns);
    else
        connection_destroy(&loop->connections, connection);
}

void loop_renew(struct loop *loop, struct connection *connection)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int fd = -1;
    if (getpeername(connection->fd, (struct sockaddr *)&address, &size) == 0)
        fd = connection_part(&loop->connections, connection);
    if (fd < 0) {
        upload_end(connection->exchange);
        return;
    }
    loop->is_renewing = true;
    (void)MHD_add_connection(loop->daemon, fd, (const struct sockaddr *)&address, size);
    loop->is_renewing = false;
}

/* ---- sleeping ------------------------------------------------------------------------------ */

static void wake_up(struct loop *loop)
{
    if (!atomic_load_explicit(&loop->is_sleeping, memory_order_relaxed))
        return;
    atomic_store(&loop->is_sleeping, false);
    loop->now_ns = clock_ns();
    count(&loop->rounds);
}

void loop_awake(struct loop *loop)
{
    loop->has_news = true;
    wake_up(loop);
}

/* The library does not sleep while requests are held. And in a crowd it sleeps again, when it gets
 * as many events as it asks for at once, before it looks at any: then all that are ready would wait
 * for one that is not. */
static bool must_sleep_apart(const struct loop *loop)
{
    return loop->held_count > 0 ||
           atomic_load_explicit(&loop->intake.open_count, memory_order_relaxed) >= CROWD;
}

/* Whether the library is to run at once. It says so, but not of what was resumed; and while
 * requests are held it always does, so then its callbacks must have told (loop_expect()). */
static bool library_is_busy(const struct loop *loop)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    if (loop->connections.has_resumed)
        return true;
    if (loop->held_count > 0)
        return loop->expected_runs > 0;
    return MHD_get_timeout(loop->daemon, &library_ms) == MHD_YES && library_ms == 0;
}

/* Sleeps for the library, and takes what was completed meanwhile, which it then answers. */
static void sleep_apart(struct loop *loop, int64_t ms)
{
    if (loop->held_count > 0 && ms > HELD_SLEEP_MS)
        ms = HELD_SLEEP_MS;
    if (ms > 0 && !library_is_busy(loop)) {
        struct pollfd event = {.fd = loop->intake.epoll, .events = POLLIN};
        (void)poll(&event, 1, (int)ms);
    }
    wake_up(loop);
    loop->has_news |= resume_completed(loop);
}

static int64_t sleep_ms(const struct loop *loop, int64_t deadline_ns)
{
    int64_t left_ms =
        deadline_ns < INT64_MAX ? (deadline_ns - loop->now_ns) / 1000000 + 1 : SLEEP_MS;
    if (atomic_load(&loop->completed) != NULL ||
        atomic_load(&loop->intake.handed_over.first) != NULL ||
        atomic_load(&loop->http->is_stopping) || left_ms < 0)
        return 0;
    return left_ms < SLEEP_MS ? left_ms : SLEEP_MS;
}

/* Who sleeps is awake 10 us after he was woken, and that costs who completes the job a call.
 * Whoever else asks here meanwhile waits for no longer than a device would look (gpu_look_ns()). */
static void look_for_completed(struct loop *loop)
{
    const int64_t until_ns = clock_ns() + loop->look_ns;
    loop->look_ns = 0;
    while (atomic_load_explicit(&loop->completed, memory_order_relaxed) == NULL &&
           clock_ns() < until_ns)
        processor_relax();
}

/* Until deadline_ns at most. Says whether anybody had anything to tell. */
static bool sleep_and_serve(struct loop *loop, int64_t deadline_ns)
{
    if (loop->look_ns > 0)
        look_for_completed(loop);
    loop->has_news = false;
    atomic_store(&loop->is_sleeping, true);
    int64_t left_ms = sleep_ms(loop, deadline_ns);
    if (must_sleep_apart(loop)) {
        sleep_apart(loop, left_ms);
        left_ms = 0;
    } else if (loop->connections.has_resumed) {
        left_ms = 0; /* what was held may have its answer */
    }
    const bool is_expected = loop->expected_runs > 0;
    loop->expected_runs -= is_expected;
    loop->connections.has_resumed = false;
    (void)MHD_run_wait(loop->daemon, (int32_t)left_ms);
    wake_up(loop);
    return loop->has_news || is_expected;
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Whoever woke the loop without a word is here: a listener, or a client that leaves, lingers or
 * uploads. */
static void look_around(struct loop *loop)
{
    struct epoll_event event[EVENTS_A_ROUND];
    int event_count = epoll_wait(loop->epoll, event, EVENTS_A_ROUND, 0);
    for (int i = 0; i < event_count; i++)
        connection_on_event(&loop->connections, event[i].data.ptr);
    /* To ask in vain costs 5 us, and pieces of uploads may be there in every round. */
    if (event_count == 0 || loop->now_ns - loop->accepted_ns >= ACCEPT_NS) {
        intake_accept(&loop->intake, loop->now_ns);
        loop->accepted_ns = loop->now_ns;
    }
    /* In the next round again while there is something: long bodies are read here, by pieces. */
    loop->looked_ns = event_count > 0 ? 0 : loop->now_ns;
}

/* Idle to our knowledge, but a request may lie unread in the socket. */
static bool has_unread(const struct loop *loop)
{
    static const enum phase waiting[] = {PHASE_HEAD, PHASE_IDLE};
    for (int i = 0; i < 2; i++) {
        const struct connection *connection = loop->connections.queue[waiting[i]].first;
        for (; connection != NULL; connection = connection->next) {
            int bytes = 0;
            if (ioctl(connection->fd, FIONREAD, &bytes) == 0 && bytes > 0 && !connection->is_cut)
                return true;
        }
    }
    return false;
}

/* Says whether all is done that must be before the end, and tells http_drain() of a change. */
static bool is_quiet(struct loop *loop)
{
    bool is_quiet = atomic_load(&loop->exchanges.count) == 0 && !has_unread(loop) &&
                    (!loop->is_leaving || atomic_load(&loop->intake.open_count) == 0);
    if (atomic_exchange(&loop->is_quiet, is_quiet) != is_quiet)
        http_quiet_changed(loop->http);
    return is_quiet;
}

static void set_durations(struct loop *loop, const struct config *config)
{
    struct phase_queue *queue = loop->connections.queue;
    queue[PHASE_HEAD].duration_ns = (int64_t)config->head_timeout_ms * 1000000;
    queue[PHASE_BODY].duration_ns = (int64_t)config->body_timeout_ms * 1000000;
    queue[PHASE_REFUSE].duration_ns = REFUSE_MS * (int64_t)1000000;
    queue[PHASE_ANSWER].duration_ns = (int64_t)config->write_timeout_ms * 1000000;
    queue[PHASE_IDLE].duration_ns = (int64_t)config->idle_timeout_ms * 1000000;
    queue[PHASE_LINGER].duration_ns = LINGER_MS * (int64_t)1000000;
    loop->durations_of = config;
}

/* Live settings may have changed, or the end begun. Who is in a phase already keeps its time
 * there. */
static void settle_durations(struct loop *loop)
{
    const struct config *config = loop->http->config;
    if (config != loop->durations_of && !loop->is_leaving)
        set_durations(loop, config);
    if (atomic_load(&loop->http->is_leaving) && !loop->is_leaving) {
        loop->is_leaving = true;
        connections_hurry_idle(&loop->connections, loop->now_ns, LEAVE_IDLE_MS);
    }
}

/* The devices begin with what this round brought them: the loop could not have taken an answer any
 * sooner, and they wake up once. The job of the only request that is held here is looked for. */
static void begin_followed(struct loop *loop)
{
    for (; loop->followed != 0; loop->followed &= loop->followed - 1) {
        const int device = __builtin_ctzll(loop->followed);
        gpu_begin(loop->http->gpu, device);
        if (loop->held_count == 1)
            loop->look_ns = gpu_look_ns(loop->http->gpu, device);
    }
}

/* Begins with sleeping until *deadline_ns. */
static void one_round(struct loop *loop, int64_t *deadline_ns)
{
    bool has_work = sleep_and_serve(loop, *deadline_ns);
    begin_followed(loop);
    has_work |= resume_completed(loop);
    intake_adopt(&loop->intake);
    if (!has_work || loop->now_ns - loop->looked_ns >= LOOK_NS)
        look_around(loop);
    begin_followed(loop);
    refuse_late(loop);
    if (atomic_load(&loop->http->is_late))
        connections_cancel_work(&loop->connections);
    settle_durations(loop);
    *deadline_ns = connections_expire(&loop->connections, loop->now_ns);
    if (deadlines_next_ns(&loop->deadlines) < *deadline_ns)
        *deadline_ns = deadlines_next_ns(&loop->deadlines);
    intake_settle(&loop->intake, loop->now_ns, deadline_ns);
}

/* Steps of the end; each says what can no longer happen after it.
 * 1. no listener: no new connection reaches this loop, but for those already handed over;
 * 2. rounds until nothing is begun or unread: nobody who asked is left without an answer;
 * 3. idle connections close with the daemon; lingering ones are ours to close. */
static void wind_up(struct loop *loop)
{
    intake_stop(&loop->intake);
    int64_t deadline_ns, until_ns = clock_ns() + STOP_MS * (int64_t)1000000;
    do {
        deadline_ns = clock_ns(); /* sleeps a millisecond: what is unread need not be an event */
        one_round(loop, &deadline_ns);
    } while (!is_quiet(loop) && clock_ns() < until_ns);
    connections_end_taken(&loop->connections);
    MHD_stop_daemon(loop->daemon);
    loop->daemon = NULL;
    while (loop->connections.queue[PHASE_LINGER].first != NULL)
        connection_destroy(&loop->connections, loop->connections.queue[PHASE_LINGER].first);
}

static void *loop_run(void *closure)
{
    struct loop *loop = closure;
    int64_t deadline_ns = INT64_MAX;
    while (!atomic_load(&loop->http->is_stopping)) {
        one_round(loop, &deadline_ns);
        if (atomic_load(&loop->http->is_draining) || loop->is_leaving)
            (void)is_quiet(loop);
    }
    wind_up(loop);
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Without a pointer, so that the library is only woken. */
static bool add_source(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};
    return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool open_sources(struct loop *loop)
{
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->connections.dead = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (loop->connections.dead < 0)
        return false;
    loop->daemon =
        library_start(loop,
                      loop->intake.connections_max +
                          loop->http->loop_count, /* loops may give it one each at a time */
                      on_connection);
    if (loop->daemon == NULL)
        return false;
    loop->connections.epoll = loop->epoll;
    loop->connections.on_late = answer_send_late;
    loop->connections.on_left = exchange_on_left;
    loop->connections.on_readable = upload_on_readable;
    loop->connections.on_cancel = exchange_on_cancel;
    int epoll = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    loop->intake.epoll = epoll;
    loop->intake.daemon = loop->daemon;
    /* Edge-triggered: every write is a new edge, so the eventfd is never read. */
    return add_source(epoll, loop->wake, EPOLLIN | EPOLLET) &&
           add_source(epoll, loop->epoll, EPOLLIN);
}

static void loop_free(struct loop *loop)
{
    handover_fini(&loop->intake.handed_over);
    if (loop->daemon != NULL)
        MHD_stop_daemon(loop->daemon);
    if (loop->epoll >= 0)
        (void)close(loop->epoll);
    if (loop->wake >= 0)
        (void)close(loop->wake);
    if (loop->connections.dead >= 0)
        (void)close(loop->connections.dead);
    exchanges_fini(&loop->exchanges);
    metrics_destroy(loop->metrics);
    free(loop);
}

bool loop_create(struct loop **ret, struct http *http, unsigned index)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL)
        return false;
    loop->http = http;
    loop->intake.http = http;
    loop->index = index;
    loop->epoll = loop->wake = loop->connections.dead = -1;
    loop->port.complete = complete_jobs;
    loop->slice_port.complete = complete_slices;
    loop->intake.connections_max = (unsigned)(http->config->max_connections / http->loop_count + 1);
    loop->well_ns = clock_ns();
    exchanges_init(&loop->exchanges);
    set_durations(loop, http->config);
    if (!metrics_create(&loop->metrics, gpu_device_count(http->gpu)) || !open_sources(loop)) {
        loop_free(loop);
        return false;
    }
    *ret = loop;
    return true;
}

bool loop_start(struct loop *loop)
{
    if (pthread_create(&loop->thread, NULL, loop_run, loop) != 0)
        return false;
    char name[16];
    (void)snprintf(name, sizeof name, "http-%u", loop->index);
    (void)pthread_setname_np(loop->thread, name);
    loop->is_started = true;
    return true;
}

void loop_stop(struct loop *loop)
{
    if (loop == NULL || !loop->is_started)
        return;
    assert(atomic_load(&loop->http->is_stopping));
    loop_wake(loop);
    (void)pthread_join(loop->thread, NULL);
    loop->is_started = false;
}

void loop_destroy(struct loop *loop)
{
    if (loop != NULL)
        loop_free(loop);
}

/* ---- for exchanges ------------------------------------------------------------------------- */

struct http *loop_http(struct loop *loop)
{
    return loop->http;
}

int64_t loop_now_ns(const struct loop *loop)
{
    return loop->now_ns;
}

struct intake *loop_intake(struct loop *loop)
{
    return &loop->intake;
}

struct connections *loop_connections(struct loop *loop)
{
    return &loop->connections;
}

struct exchanges *loop_exchanges(struct loop *loop)
{
    return &loop->exchanges;
}

struct deadlines *loop_deadlines(struct loop *loop)
{
    return &loop->deadlines;
}

struct job_port *loop_port(struct loop *loop)
{
    return &loop->port;
}

struct job_port *loop_slice_port(struct loop *loop)
{
    return &loop->slice_port;
}

void loop_follow(struct loop *loop, int device)
{
    loop->followed |= UINT64_C(1) << device;
}

bool loop_may_hold(struct loop *loop)
{
    bool may_hold = loop->held_count < HELD_MAX;
    loop->held_count += may_hold;
    return may_hold;
}

void loop_let_go(struct loop *loop)
{
    assert(loop->held_count > 0);
    loop->held_count--;
    loop->connections.has_resumed = true;
}

void loop_expect(struct loop *loop, unsigned runs)
{
    if (loop->expected_runs < runs)
        loop->expected_runs = runs;
}

struct metrics *loop_metrics(struct loop *loop)
{
    return loop->metrics;
}

struct loop_stats loop_stats(struct loop *loop)
{
    return (struct loop_stats){
        .connections_total = atomic_load_explicit(&loop->connections_total, memory_order_relaxed),
        .connections = atomic_load_explicit(&loop->intake.open_count, memory_order_relaxed),
        .exchanges = atomic_load_explicit(&loop->exchanges.count, memory_order_relaxed),
    };
}

bool loop_is_quiet(struct loop *loop)
{
    return atomic_load(&loop->is_quiet);
}

int64_t loop_well_ns(struct loop *loop, int64_t now_ns)
{
    unsigned long long rounds = atomic_load(&loop->rounds);
    if (rounds != loop->watched_rounds || atomic_load(&loop->is_sleeping))
        loop->well_ns = now_ns;
    loop->watched_rounds = rounds;
    return loop->well_ns;
}
