/* exchange.c - the life of one request between libmicrohttpd's callbacks (see exchange.h). */
#include "server/exchange.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "gpu/clock.h"
#include "server/answer.h"
#include "server/exchanges.h"
#include "server/head_memory.h"
#include "server/log.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/oip.h"
#include "server/upload.h"

/* A refused request whose body is no longer than this is read to its end and the connection kept;
 * a longer one is answered at once and the connection closed. */
enum { DISCARD_BYTES_MAX = 1 << 20 };

/* Clients of the Open Inference Protocol hear nothing before they have sent all (oip.h). More than
 * this they cannot send. */
#define DISCARD_OIP_BYTES_MAX (UINT64_C(4) << 30)

/* So long a request is held before its connection is suspended: most jobs are back by then. */
enum { HOLD_NS = 2000000 };

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* From the method's first byte to the empty line's last; not known before all of it is there. */
static size_t head_size_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
}

static void enter_phase(struct exchange *exchange, enum phase phase)
{
    connection_enter(loop_connections(exchange->loop), exchange->connection, phase,
                     loop_now_ns(exchange->loop));
}

/* libmicrohttpd sends an answer in its next run, or the one in which it was asked, and finds in
 * another one that it is sent; then it may have the next request already. */
enum { RUNS_TO_ANSWER = 2, RUNS_TO_GO_ON = 1 };

static void enter_answer(struct exchange *exchange)
{
    enter_phase(exchange, PHASE_ANSWER);
    loop_expect(exchange->loop, RUNS_TO_ANSWER);
}

/* The path of an absolute-form target ("http://host/path", RFC 9112 section 3.2.2) is its rest. */
static const char *origin_form(const char *target)
{
    const char *authority = *target != '/' ? strstr(target, "://") : NULL;
    if (authority == NULL)
        return target;
    const char *path = strchr(authority + 3, '/');
    return path != NULL ? path : "/";
}

/* libmicrohttpd keeps parameters too, 64 bytes each in the connection's memory; where that runs out
 * it neither answers nor closes. There are a dozen to give. */
static bool has_too_many_parameters(const char *target)
{
    size_t size = strlen(target), count = 0;
    for (size_t i = 0; size > LIMIT_QUERY_PARAMETERS && i < size; i++)
        count += target[i] == '?' || target[i] == '&';
    return count > LIMIT_QUERY_PARAMETERS;
}

static void refuse_parameters(struct exchange *exchange)
{
    (void)problem_set(&exchange->problem, ERR_OPTION, "more than %d parameters",
                      LIMIT_QUERY_PARAMETERS);
    exchange_make_id(loop_exchanges(exchange->loop), exchange->id);
    answer_send_problem_early(exchange);
    connection_cut(exchange->connection);
}

void *exchange_on_target(void *loop, const char *target, struct MHD_Connection *mhd)
{
    loop_awake(loop);
    struct connection *connection = connection_of(mhd);
    struct exchange *exchange = connection != NULL ? exchange_new(loop_exchanges(loop)) : NULL;
    if (exchange == NULL)
        return NULL;
    exchange->loop = loop;
    exchange->mhd = mhd;
    exchange->connection = connection;
    exchange->begun_ns = loop_now_ns(loop);
    text_string(&exchange->request_target, origin_form(target));
    if (exchange->request_target.failed) {
        exchange_free(loop_exchanges(loop), exchange);
        return NULL;
    }
    exchange->target = exchange->request_target.data;
    char *query = strchr(exchange->target, '?');
    if (query != NULL) {
        *query = '\0';
        exchange->query = query + 1;
    }
    if (connection->phase != PHASE_HEAD) /* else its time runs since the connection was opened */
        enter_phase(exchange, PHASE_HEAD);
    connection->exchange = exchange;
    if (has_too_many_parameters(target))
        refuse_parameters(exchange);
    return exchange;
}

/* The head as libmicrohttpd 0.9 leaves it in its buffer: where each part lies tells what it hides.
 * It joins a folded line to the name of the header before, in other memory, cuts a value at a NUL,
 * and ends a line at CR or LF alone, so that parts are no longer neighbours; it takes a line that
 * begins with a colon for the end of the head. What follows would be taken for the body by one
 * server and for a request by another. What it leaves the same bytes of passes: NUL LF for CR LF,
 * and a colon and LF for the empty line. Version 1.0 refuses all of that itself (library.c). */
struct head_walk {
    struct head *head;
    bool is_watched; /* by us, not by the library */
    const char *end; /* of the version, then of the last value */
};

enum { LINE_END_BYTES = 2 }; /* CR LF */

static bool is_in_place(const struct head_walk *walk, const char *name, size_t name_size,
                        const char *value)
{
    if (name != walk->end + LINE_END_BYTES)
        return false;
    const char *p = name + name_size + 1; /* after the colon */
    if (value < p)
        return false;
    while (p < value && (*p == ' ' || *p == '\t'))
        p++;
    return p == value;
}

static enum MHD_Result add_header(void *closure, enum MHD_ValueKind kind, const char *name,
                                  size_t name_size, const char *value, size_t value_size)
{
    struct head_walk *walk = closure;
    char none[1] = "";
    (void)kind;
    /* Given as constant, but it is the connection's own buffer. Of what head_add() may cut there
     * libmicrohttpd itself reads Expect only, where it wants no blanks either. */
    head_add(walk->head, name, name_size, value != NULL ? (char *)value : none, value_size);
    if (walk->is_watched && !is_in_place(walk, name, name_size, value))
        walk->head->flaw = "a header line is folded, holds a NUL or does not follow CR LF";
    walk->end = value + value_size;
    return MHD_YES;
}

static void read_head(struct exchange *exchange, const char *version)
{
    struct head_walk walk = {.head = &exchange->head,
                             .is_watched = MHD_get_version()[0] == '0',
                             .end = version + strlen(version)};
    (void)MHD_get_connection_values_n(exchange->mhd, MHD_HEADER_KIND, add_header, &walk);
    exchange->head.is_last |= strcmp(version, "HTTP/1.0") == 0;
    if (walk.is_watched && exchange->head.flaw == NULL &&
        exchange->head_start + exchange->head_size != walk.end + 2 * LINE_END_BYTES)
        exchange->head.flaw = "a header line has no name, or the head does not end in CR LF CR LF";
}

/* A client's id is echoed when it is printable ASCII of a sane length, else one is made. */
static void settle_id(struct exchange *exchange)
{
    const char *given = exchange->head.request_id;
    size_t size = given != NULL ? strlen(given) : 0;
    bool is_sane = size > 0 && size <= LIMIT_ID_BYTES;
    for (size_t i = 0; is_sane && i < size; i++)
        is_sane = given[i] > ' ' && given[i] < 0x7f;
    if (is_sane)
        memcpy(exchange->id, given, size + 1);
    else
        exchange_make_id(loop_exchanges(exchange->loop), exchange->id);
}

static bool has_body(const struct exchange *exchange)
{
    return exchange->head.is_chunked || exchange->head.content_length > 0;
}

static enum MHD_Result answer_refusal(struct exchange *exchange)
{
    if (answer_send_problem(exchange) != ERR_OK)
        return MHD_NO; /* no memory even for that: closing is all that is left */
    enter_answer(exchange);
    return MHD_YES;
}

/* True when what is still to come of the body is little enough to read and forget. */
static bool is_discardable(const struct exchange *exchange)
{
    uint64_t most = oip_is_asked(exchange) ? DISCARD_OIP_BYTES_MAX : DISCARD_BYTES_MAX;
    if (exchange->head.is_chunked)
        return exchange->body_bytes <= most;
    return exchange->head.content_length - exchange->body_bytes <= most;
}

/* The rest of the body will be read and forgotten, within the time of one that is not. */
static void discard(struct exchange *exchange)
{
    exchange->state = EXCHANGE_REFUSED;
    if (exchange->jobs_out == 0)
        dot_fini(&exchange->dot); /* operands need no memory meanwhile */
    if (!oip_is_asked(exchange))
        enter_phase(exchange, PHASE_REFUSE);
    else if (exchange->connection->phase != PHASE_BODY)
        enter_phase(exchange, PHASE_BODY);
}

/* Refuses on the head. A client that waits for 100 Continue gets the refusal instead of it. */
static enum MHD_Result refuse_head(struct exchange *exchange)
{
    bool later =
        !exchange->must_close && !exchange->head.expects_continue && is_discardable(exchange);
    if (later) {
        discard(exchange);
        return MHD_YES;
    }
    exchange->must_close |= has_body(exchange);
    exchange->connection->must_linger = exchange->must_close;
    return answer_refusal(exchange);
}

/* Refuses in the middle of the body, where libmicrohttpd takes no answer any more. */
static enum MHD_Result refuse_body(struct exchange *exchange)
{
    if (is_discardable(exchange)) {
        discard(exchange);
        return MHD_YES;
    }
    answer_send_problem_early(exchange);
    return MHD_NO;
}

static enum error find_route(struct exchange *exchange, const char *name)
{
    if (exchange->method == 0) {
        exchange->must_close = true; /* it may be a header line that was taken for a request */
        return problem_set(&exchange->problem, ERR_UNKNOWN_METHOD,
                           "the method %s is not known here", name);
    }
    enum error error =
        route_find(loop_http(exchange->loop)->config, exchange->target, exchange->method,
                   &exchange->route, exchange->allow, sizeof exchange->allow, &exchange->problem);
    if (error == ERR_OK && exchange->route->body == NULL && has_body(exchange)) {
        exchange->must_close = true; /* who sends one may not know where it ends */
        return problem_set(&exchange->problem, ERR_FRAMING, "%s %s with a body", name,
                           exchange->target);
    }
    return error;
}

static enum error check_head(struct exchange *exchange, const char *method, const char *version)
{
    enum error error = head_check(&exchange->head, version, &exchange->problem);
    exchange->must_close = error != ERR_OK;
    exchange->method = method_parse(method);
    return error == ERR_OK ? find_route(exchange, method) : error;
}

static enum MHD_Result on_head(struct exchange *exchange, const char *method, const char *version)
{
    exchange->head_start = method; /* the first of it, where it was read to */
    exchange->head_size = head_size_of(exchange->mhd);
    bool is_known = head_memory_recall(exchange);
    if (!is_known)
        read_head(exchange, version);
    settle_id(exchange);
    exchange->first_byte_ns = loop_now_ns(exchange->loop);
    if (!is_known && check_head(exchange, method, version) != ERR_OK)
        return refuse_head(exchange);
    const struct route *route = exchange->route;
    if (route->begin != NULL && route->begin(exchange, &exchange->problem) != ERR_OK)
        return refuse_head(exchange);
    exchange->state = EXCHANGE_BODY;
    if (has_body(exchange))
        enter_phase(exchange, PHASE_BODY);
    if (exchange->head.expects_continue)
        loop_expect(exchange->loop, RUNS_TO_GO_ON);
    return MHD_YES;
}

static enum MHD_Result on_body(struct exchange *exchange, const char *data, size_t *data_size)
{
    size_t size = *data_size;
    *data_size = 0; /* taken, whatever becomes of it */
    exchange->piece_ns = clock_ns();
    if (exchange->body_bytes == 0)
        exchange->first_byte_ns = exchange->piece_ns;
    exchange->body_bytes += size;
    if (exchange->head.is_chunked || exchange->body_bytes < exchange->head.content_length)
        loop_expect(exchange->loop, RUNS_TO_GO_ON);
    if (exchange->state == EXCHANGE_REFUSED && is_discardable(exchange))
        return MHD_YES;
    if (exchange->state == EXCHANGE_REFUSED)
        return refuse_body(exchange);
    assert(exchange->route->body != NULL); /* find_route() refuses a body where there is none */
    if (exchange->route->body(exchange, data, size, &exchange->problem) != ERR_OK)
        return refuse_body(exchange);
    upload_consider(exchange);
    return MHD_YES;
}

/* Runs the handler that answers; what it refuses is answered as a problem. */
static enum MHD_Result answer_with(struct exchange *exchange,
                                   enum error (*handler)(struct exchange *, struct problem *))
{
    enum error error = handler(exchange, &exchange->problem);
    if (error == ERR_NOMEM && exchange->problem.error == ERR_OK)
        (void)problem_set(&exchange->problem, ERR_NOMEM, "no memory for the answer");
    if (error != ERR_OK)
        return answer_refusal(exchange);
    if (exchange->state == EXCHANGE_WORK)
        return MHD_YES;
    assert(exchange->state == EXCHANGE_ANSWERED);
    enter_answer(exchange);
    return MHD_YES;
}

static void let_go(struct exchange *exchange)
{
    exchange->is_held = false;
    loop_let_go(exchange->loop);
}

/* Asked again for an answer that devices still work at: after a while the connection is suspended.
 * That is no news, and the loop is awake: it does not sleep in the library while it holds any. */
static enum MHD_Result hold_on(struct exchange *exchange)
{
    if (loop_now_ns(exchange->loop) >= exchange->held_until_ns) {
        let_go(exchange);
        MHD_suspend_connection(exchange->mhd);
    }
    return MHD_YES;
}

enum MHD_Result exchange_on_request(void *loop, struct MHD_Connection *mhd, const char *url,
                                    const char *method, const char *version, const char *data,
                                    size_t *data_size, void **closure)
{
    struct exchange *exchange = *closure;
    (void)mhd, (void)url; /* the target as it came is read instead of the decoded url */
    if (exchange != NULL && exchange->is_held)
        return hold_on(exchange);
    loop_awake(loop);
    if (exchange == NULL || exchange->connection->is_cut)
        return MHD_NO;
    if (exchange->state == EXCHANGE_REFUSED && exchange->status != 0)
        return MHD_NO; /* answered past the library: what still comes is for the lingering */
    if (exchange->state == EXCHANGE_HEAD)
        return on_head(exchange, method, version);
    if (*data_size > 0)
        return on_body(exchange, data, data_size);
    switch (exchange->state) {
    case EXCHANGE_BODY:
        return answer_with(exchange, exchange->route->finish);
    case EXCHANGE_DONE:
        return answer_with(exchange, exchange->route->resume);
    case EXCHANGE_REFUSED:
        return answer_refusal(exchange);
    default:
        return MHD_YES; /* answered on the head already */
    }
}

static void log_access(const struct exchange *exchange)
{
    bool has_job = exchange->jobs_out == 0; /* else a worker is still writing to it */
    log_event(LOG_LEVEL_INFO, "request", LOG_S("id", exchange->id), LOG_S("path", exchange->target),
              LOG_N("status", exchange->status), LOG_N("body_bytes", exchange->body_bytes),
              LOG_N("answer_bytes", exchange->out.size),
              LOG_N("is_rerouted", has_job && exchange->job.is_rerouted),
              LOG_N("duration_us", (clock_ns() - exchange->begun_ns) / 1000));
}

static void cancel_jobs(struct exchange *exchange)
{
    job_cancel(&exchange->job);
    dot_cancel(&exchange->dot);
}

void exchange_on_completed(void *loop, struct MHD_Connection *mhd, void **closure,
                           enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *closure;
    (void)mhd, (void)code;
    loop_awake(loop);
    if (exchange == NULL)
        return;
    /* A suspended connection cannot complete; one that is held or was resumed can, when its client
     * has gone. */
    assert((exchange->state != EXCHANGE_WORK || exchange->is_held) && !exchange->is_paused);
    if (exchange->is_held)
        let_go(exchange);
    *closure = NULL;
    exchange->connection->exchange = NULL;
    deadlines_clear(loop_deadlines(loop), &exchange->deadline);
    if (exchange->jobs_out > 0) /* answered late, or left in the middle of its body */
        cancel_jobs(exchange);
    if (exchange->status == 0)
        exchange->status = STATUS_LEFT;
    metrics_count_request(loop_metrics(loop), exchange);
    if (loop_http(loop)->config->access_log)
        log_access(exchange);
    enter_phase(exchange, PHASE_IDLE);
    loop_expect(loop, RUNS_TO_GO_ON);
    exchange->connection = NULL;
    exchange->mhd = NULL;
    if (exchange->jobs_out == 0)
        exchange_free(loop_exchanges(loop), exchange);
}

/* ---- past the library ---------------------------------------------------------------------- */

/* Answers a request whose body was read here, unless a device has it. */
static void answer_taken(struct exchange *exchange,
                         enum error (*handler)(struct exchange *, struct problem *))
{
    enum MHD_Result result = answer_with(exchange, handler);
    if (result == MHD_YES && exchange->state == EXCHANGE_WORK)
        return;
    if (result == MHD_YES && !exchange->must_close)
        loop_renew(exchange->loop, exchange->connection);
    else
        upload_end(exchange);
}

void exchange_on_read(struct exchange *exchange, const char *data, size_t size)
{
    assert(exchange->state == EXCHANGE_BODY && !exchange->is_paused);
    exchange->piece_ns = clock_ns();
    exchange->body_bytes += size;
    if (exchange->route->body(exchange, data, size, &exchange->problem) != ERR_OK) {
        exchange_refuse(exchange);
    } else if (exchange->body_bytes == exchange->head.content_length) {
        exchange->is_paused = false; /* there is nothing that could wait */
        answer_taken(exchange, exchange->route->finish);
    }
}

static void resume_taken(struct exchange *exchange)
{
    exchange->state = EXCHANGE_DONE;
    answer_taken(exchange, exchange->route->resume);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void fall_asleep(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    if (connection->is_taken)
        connection_watch(loop_connections(exchange->loop), connection, false);
    else
        MHD_suspend_connection(exchange->mhd);
    enter_phase(exchange, PHASE_WORK);
}

/* Suspending a connection and resuming it costs libmicrohttpd two changes of its epoll and a read
 * in vain, a sixth of what a queued request costs. One that has no answer yet is asked again in
 * every round, and most jobs are back in one of the next. */
static void hold(struct exchange *exchange)
{
    exchange->is_held = true;
    exchange->held_until_ns = loop_now_ns(exchange->loop) + HOLD_NS;
    enter_phase(exchange, PHASE_WORK);
}

void exchange_wait(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY && exchange->jobs_out > 0);
    exchange->state = EXCHANGE_WORK;
    if (!exchange->connection->is_taken && loop_may_hold(exchange->loop))
        hold(exchange);
    else
        fall_asleep(exchange);
}

void exchange_suspend(struct exchange *exchange)
{
    exchange->jobs_out++;
    exchange_wait(exchange);
}

void exchange_pause(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY && !exchange->is_paused);
    exchange->is_paused = true;
    fall_asleep(exchange);
}

void exchange_unpause(struct exchange *exchange)
{
    assert(exchange->is_paused);
    exchange->is_paused = false;
    if (exchange->connection->is_taken)
        connection_watch(loop_connections(exchange->loop), exchange->connection, true);
    else
        connection_resume(loop_connections(exchange->loop), exchange->connection);
    enter_phase(exchange, PHASE_BODY);
}

/* Leaves WORK, or a pause, for state. Whoever is awake is left alone: a second resume would be
 * remembered by libmicrohttpd and end the next sleep. */
static void wake(struct exchange *exchange, enum exchange_state state)
{
    bool is_asleep =
        (exchange->state == EXCHANGE_WORK && !exchange->is_held) || exchange->is_paused;
    exchange->state = state;
    exchange->is_paused = false;
    if (exchange->is_held)
        let_go(exchange);
    if (exchange->connection->is_taken)
        connection_give_back(loop_connections(exchange->loop), exchange->connection);
    else if (is_asleep)
        connection_resume(loop_connections(exchange->loop), exchange->connection);
}

struct exchange *exchange_of_job(struct job *job)
{
    return (struct exchange *)((char *)job - offsetof(struct exchange, job));
}

enum error exchange_job_error(const struct exchange *exchange)
{
    const struct job *job = &exchange->job;
    int64_t done_ns = job->times.finished_ns > 0 ? job->times.finished_ns : clock_ns();
    bool is_late = done_ns > job->deadline_ns;
    return job->error == ERR_OK && is_late ? ERR_DEADLINE : job->error;
}

void exchange_on_job(struct exchange *exchange, struct job *job)
{
    assert(exchange->jobs_out > 0);
    exchange->jobs_out--;
    if (job != &exchange->job)
        dot_on_slice(exchange, job);
    if (exchange->jobs_out > 0)
        return;
    if (exchange->connection == NULL)
        exchange_free(loop_exchanges(exchange->loop), exchange);
    else if (exchange->state == EXCHANGE_WORK && exchange->connection->is_taken)
        resume_taken(exchange);
    else if (exchange->state == EXCHANGE_WORK)
        wake(exchange, EXCHANGE_DONE);
    else if (exchange->state != EXCHANGE_BODY)
        dot_fini(&exchange->dot); /* refused: its client may read slowly, but not with operands */
}

void exchange_refuse(struct exchange *exchange)
{
    bool is_read = exchange->state == EXCHANGE_WORK && !exchange->connection->is_taken;
    if (is_read) {
        wake(exchange, EXCHANGE_REFUSED);
        return;
    }
    answer_send_problem_early(exchange); /* libmicrohttpd takes no answer now */
    wake(exchange, EXCHANGE_REFUSED);
    enter_phase(exchange, PHASE_REFUSE);
}

void exchange_set_deadline(struct exchange *exchange, int64_t at_ns)
{
    assert(exchange->route->late != NULL);
    struct deadlines *all = loop_deadlines(exchange->loop);
    if (at_ns < INT64_MAX)
        deadlines_set(all, &exchange->deadline, at_ns);
    else
        deadlines_clear(all, &exchange->deadline);
}

void exchange_on_deadline(struct deadline *deadline)
{
    struct exchange *exchange =
        (struct exchange *)((char *)deadline - offsetof(struct exchange, deadline));
    if (exchange->state != EXCHANGE_BODY && exchange->state != EXCHANGE_WORK)
        return; /* refused or done already */
    cancel_jobs(exchange);
    (void)exchange->route->late(exchange, &exchange->problem);
    exchange_refuse(exchange);
}

void exchange_on_left(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    cancel_jobs(exchange);
    exchange->status = STATUS_LEFT;
    wake(exchange, EXCHANGE_REFUSED);
    connection_cut(connection);
    enter_phase(exchange, PHASE_ANSWER); /* should libmicrohttpd not notice, it is cut again */
}

void exchange_on_cancel(struct connection *connection)
{
    cancel_jobs(connection->exchange);
}

bool exchange_is_draining(const struct exchange *exchange)
{
    return atomic_load_explicit(&loop_http(exchange->loop)->is_draining, memory_order_relaxed);
}

bool exchange_must_close(const struct exchange *exchange)
{
    return exchange->must_close || exchange_is_draining(exchange) ||
           atomic_load_explicit(&loop_http(exchange->loop)->is_leaving, memory_order_relaxed);
}
