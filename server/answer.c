/* answer.c - building and queueing answers (see answer.h). */
#include "server/answer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/result.h"
#include "server/exchange.h"
#include "server/loop.h"

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
    if (ok && (exchange->must_close || exchange_is_draining(exchange)))
        ok = MHD_add_response_header(response, "Connection", "close") == MHD_YES;
    return ok;
}

enum error answer_send(struct exchange *exchange, const struct answer *answer)
{
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

enum error answer_send_json(struct exchange *exchange, int status, json_t *document)
{
    char *dump = document != NULL ? json_dumps(document, JSON_INDENT(2)) : NULL;
    json_decref(document);
    if (dump == NULL)
        return ERR_NOMEM;
    text_clear(&exchange->out);
    text_string(&exchange->out, dump);
    text_string(&exchange->out, "\n");
    free(dump);
    struct answer answer = {.status = status, .content_type = "application/json"};
    answer_header(&answer, "Cache-Control", "no-store");
    return answer_send(exchange, &answer);
}

bool answer_send_problem(struct exchange *exchange, const struct problem *problem,
                         const char *allow)
{
    struct answer answer = {.status = error_status(problem->error),
                            .content_type = "application/problem+json"};
    if (answer.status == 503)
        answer_header(&answer, "Retry-After", "1");
    if (allow != NULL)
        answer_header(&answer, "Allow", allow);
    if (problem->error == ERR_MEDIA)
        answer_header(&answer, "Accept-Post", "application/json, application/octet-stream");
    text_clear(&exchange->out);
    problem_encode_json(problem, exchange->dot.request.options.id, &exchange->out);
    text_string(&exchange->out, "\n");
    return answer_send(exchange, &answer) == ERR_OK;
}
