/* answer.c - building and queueing answers (see answer.h). */
#include "server/answer.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "proto/encoding.h"
#include "proto/json_memory.h"
#include "proto/oip.h"
#include "proto/result.h"
#include "server/exchange.h"
#include "server/log.h"
#include "server/loop.h"
#include "server/oip.h"

void answer_header(struct answer *answer, const char *name, const char *value)
{
    assert(answer->header_count < ANSWER_HEADERS);
    answer->header[answer->header_count].name = name;
    answer->header[answer->header_count++].value = value;
}

static bool add_headers(struct MHD_Response *response, const struct exchange *exchange,
                        const struct answer *answer)
{
    bool ok = MHD_add_response_header(response, "Content-Type", answer->content_type) == MHD_YES &&
              MHD_add_response_header(response, "X-Request-Id", exchange->id) == MHD_YES;
    for (int i = 0; ok && i < answer->header_count; i++)
        ok = MHD_add_response_header(response, answer->header[i].name, answer->header[i].value) ==
             MHD_YES;
    if (ok && exchange_must_close(exchange))
        ok = MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    return ok;
}

/* A slow reader keeps its answer's memory as a slow sender keeps its operands'. */
static bool charge(struct exchange *exchange)
{
    struct http *http = loop_http(exchange->loop);
    uint64_t bytes = exchange->out.capacity;
    if (bytes <= ANSWER_BYTES_KEPT)
        return true;
    exchange->charged_bytes = bytes;
    if (atomic_fetch_add(&http->answer_bytes, bytes) + bytes <= http->config->memory_budget_bytes)
        return true;
    answer_uncharge(exchange);
    text_fini(&exchange->out);
    return false;
}

void answer_uncharge(struct exchange *exchange)
{
    if (exchange->charged_bytes == 0)
        return; /* as nearly always: the count is all loops' */
    atomic_fetch_sub(&loop_http(exchange->loop)->answer_bytes, exchange->charged_bytes);
    exchange->charged_bytes = 0;
}

/* As RFC 9110 section 5.6.7 has it. */
static void print_date(struct text *ret)
{
    time_t now = time(NULL);
    struct tm utc;
    char date[32];
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &utc));
    text_printf(ret, "Date: %s\r\n", date);
}

/* A whole HTTP/1.1 message. */
static void print_message(const struct answer *answer, const char *request_id, bool is_last,
                          const struct text *body, struct text *ret)
{
    text_printf(ret, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n",
                answer->status, MHD_get_reason_phrase_for((unsigned)answer->status),
                answer->content_type, body->size);
    print_date(ret);
    if (request_id != NULL)
        text_printf(ret, "X-Request-Id: %s\r\n", request_id);
    for (int i = 0; i < answer->header_count; i++)
        text_printf(ret, "%s: %s\r\n", answer->header[i].name, answer->header[i].value);
    text_string(ret, is_last ? "Connection: close\r\n\r\n" : "\r\n");
    text_append(ret, body->data, body->size);
}

/* To a client whose request libmicrohttpd still waits for (upload.h): it cannot see to it that the
 * connection ends where the client wants that. */
static enum error send_taken(struct exchange *exchange, const struct answer *answer)
{
    struct text message;
    text_init(&message);
    exchange->must_close = exchange_must_close(exchange) || exchange->head.is_last;
    print_message(answer, exchange->id, exchange->must_close, &exchange->out, &message);
    bool is_whole = !exchange->out.failed && !message.failed;
    if (is_whole && exchange->must_close)
        connection_answer(exchange->connection, &message);
    else if (is_whole)
        exchange->must_close = !connection_say(exchange->connection, &message);
    text_fini(&message);
    if (!is_whole)
        return ERR_NOMEM;
    exchange->status = answer->status;
    exchange->state = EXCHANGE_ANSWERED;
    return ERR_OK;
}

enum error answer_send(struct exchange *exchange, const struct answer *answer)
{
    if (!charge(exchange))
        return ERR_NOMEM;
    if (exchange->connection->is_taken)
        return send_taken(exchange, answer);
    /* The text lives in the exchange until libmicrohttpd reports the request completed. */
    struct MHD_Response *response =
        exchange->out.failed ? NULL
                             : MHD_create_response_from_buffer(
                                   exchange->out.size, exchange->out.data, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return ERR_NOMEM;
    bool ok = add_headers(response, exchange, answer) &&
              MHD_queue_response(exchange->mhd, (unsigned)answer->status, response) == MHD_YES;
    MHD_destroy_response(response);
    if (!ok)
        return ERR_NOMEM;
    exchange->status = answer->status;
    exchange->state = EXCHANGE_ANSWERED;
    return ERR_OK;
}

enum error answer_send_json_as(struct exchange *exchange, struct answer *answer, json_t *document)
{
    char *dump = document != NULL ? json_dumps(document, JSON_INDENT(2)) : NULL;
    json_decref(document);
    if (json_memory_failed() || dump == NULL) { /* what was left out of document does not show */
        free(dump);
        return ERR_NOMEM;
    }
    text_clear(&exchange->out);
    text_string(&exchange->out, dump);
    text_string(&exchange->out, "\n");
    free(dump);
    answer->content_type = "application/json";
    answer_header(answer, "Cache-Control", "no-store");
    return answer_send(exchange, answer);
}

enum error answer_send_json(struct exchange *exchange, int status, json_t *document)
{
    struct answer answer = {.status = status};
    return answer_send_json_as(exchange, &answer, document);
}

/* Fills *ret and body, for the exchange that is refused; NULL: there is none yet. */
static void describe_problem(const struct problem *problem, const struct exchange *exchange,
                             struct answer *ret, struct text *body)
{
    bool is_oip = exchange != NULL && oip_is_asked(exchange);
    *ret =
        (struct answer){.status = error_status(problem->error),
                        .content_type = is_oip ? "application/json" : "application/problem+json"};
    /* A device that is not there stays away, unless the next process is to bring it. */
    bool may_help = problem->error != ERR_NO_DEVICE ||
                    (exchange != NULL && atomic_load(&loop_http(exchange->loop)->expects_cuda));
    if (ret->status == 503 && may_help)
        answer_header(ret, "Retry-After", "1");
    if (problem->error == ERR_METHOD)
        answer_header(ret, "Allow", exchange->allow);
    if (problem->error == ERR_MEDIA && (is_oip || exchange->route->body == dot_body))
        answer_header(ret, "Accept-Encoding", "gzip, deflate");
    if (problem->error == ERR_MEDIA && !is_oip)
        answer_header(ret, "Accept-Post", encoding_types);
    text_clear(body);
    if (is_oip)
        oip_encode_problem(problem, body);
    else
        problem_encode_json(problem, exchange != NULL ? exchange->dot.request.options.id : NULL,
                            body);
    text_string(body, "\n");
}

/* What went wrong here, as opposed to in the request, is also the operator's business. */
static void log_fault(const struct exchange *exchange)
{
    if (error_status(exchange->problem.error) == 500)
        log_event(LOG_LEVEL_ERROR, "request_failed", LOG_S("id", exchange->id),
                  LOG_S("problem", error_name(exchange->problem.error)),
                  LOG_S("detail", exchange->problem.detail));
}

enum error answer_send_problem(struct exchange *exchange)
{
    struct answer answer;
    log_fault(exchange);
    describe_problem(&exchange->problem, exchange, &answer, &exchange->out);
    return answer_send(exchange, &answer);
}

/* request_id NULL: it is not told. */
static void send_past_library(struct connection *connection, const struct exchange *exchange,
                              const struct problem *problem, const char *request_id)
{
    struct answer answer;
    struct text body, message;
    text_init(&body);
    text_init(&message);
    describe_problem(problem, exchange, &answer, &body);
    print_message(&answer, request_id, true, &body, &message);
    connection_answer(connection, &message);
    text_fini(&message);
    text_fini(&body);
}

void answer_send_problem_early(struct exchange *exchange)
{
    log_fault(exchange);
    send_past_library(exchange->connection, exchange, &exchange->problem, exchange->id);
    exchange->status = error_status(exchange->problem.error);
}

void answer_send_late(struct connection *connection, enum phase phase, uint64_t limit_ms)
{
    struct exchange *exchange = connection->exchange;
    if (exchange != NULL && exchange->state == EXCHANGE_REFUSED) {
        if (exchange->status == 0)
            answer_send_problem_early(exchange);
        return;
    }
    struct problem problem;
    (void)problem_set(&problem, ERR_RECEIVE, "the request's %s was not complete in time",
                      phase == PHASE_HEAD ? "head" : "body");
    (void)problem_limit(&problem, limit_ms,
                        phase == PHASE_HEAD ? "head_timeout_ms" : "body_timeout_ms");
    send_past_library(connection, exchange, &problem, NULL);
    if (exchange == NULL)
        return;
    exchange->problem = problem; /* as what it is counted */
    exchange->status = error_status(problem.error);
}
