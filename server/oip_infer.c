/* oip_infer.c - inference: the body of the Open Inference Protocol around /v1/dot (see oip.h). */
#include "server/oip.h"

#include <microhttpd.h>
#include <stdio.h>

#include "proto/oip.h"
#include "server/admit.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/exchanges.h"
#include "server/loop.h"
#include "server/oip_metrics.h"
#include "server/oip_path.h"

/* The protocol knows 400 for whatever is wrong with a request. */
static enum error told(enum error error, struct problem *problem)
{
    if (error == ERR_OK || error_status(problem->error) != 422)
        return error;
    problem->error = ERR_INFER;
    return ERR_INFER;
}

/* ---- the answer ---------------------------------------------------------------------------- */

enum { TEXT_BYTES = 32 };

static enum error send_result(struct exchange *exchange, const struct result *result,
                              struct problem *problem)
{
    struct text *values = exchanges_scratch(loop_exchanges(exchange->loop));
    const struct oip_call *call = &exchange->oip;
    char json_text[TEXT_BYTES];
    size_t json_bytes;
    text_clear(&exchange->out);
    enum error error = oip_encode(result, call, &exchange->out, &json_bytes, problem);
    if (error != ERR_OK)
        return error;
    result_header_server_timing(result, values);
    size_t flags = values->size + 1, bound;
    text_append(values, "", 1);
    result_header_flags(result, values);
    text_append(values, "", 1);
    bound = values->size;
    result_header_error_bound(result, values);
    if (values->failed)
        return ERR_NOMEM;
    (void)snprintf(json_text, sizeof json_text, "%zu", json_bytes);
    struct answer answer = {.status = 200,
                            .content_type = call->wants_binary ? "application/octet-stream"
                                                               : "application/json"};
    if (call->wants_binary)
        answer_header(&answer, OIP_LENGTH_HEADER, json_text);
    answer_header(&answer, "Server-Timing", values->data);
    answer_header(&answer, "Dotd-Device", result->device);
    answer_header(&answer, "Dotd-Kernel", result->kernel);
    if (values->data[flags] != '\0')
        answer_header(&answer, "Dotd-Flags", values->data + flags);
    answer_header(&answer, "Dotd-Error-Bound", values->data + bound);
    error = answer_send(exchange, &answer);
    if (error == ERR_OK)
        oip_metrics_computed(metrics_oip(loop_metrics(exchange->loop)),
                             oip_model_index(call->model), &result->timing, result->batch_size,
                             result->request->result_count);
    return error;
}

/* ---- the request --------------------------------------------------------------------------- */

/* The query may say what the body's parameters may. */
static enum error take_query(struct exchange *exchange, struct problem *problem)
{
    const unsigned allowed = OPTION_ACCURACY | OPTION_KERNEL | OPTION_DEVICE | OPTION_TIMEOUT_MS;
    struct options *options = &exchange->dot.request.options;
    enum error error = options_from_query(options, exchange->query, NULL, NULL, problem);
    if (error == ERR_OK && (options->given & ~allowed) != 0)
        error = problem_set(problem, ERR_OPTION,
                            "the query of an inference may give accuracy, kernel, device and "
                            "timeout_ms; the rest stands in its body or its model");
    return error;
}

static enum error begin(struct exchange *exchange, struct problem *problem)
{
    const struct http *http = loop_http(exchange->loop);
    struct dot_exchange *dot = &exchange->dot;
    request_init(&dot->request, gpu_buffers(http->gpu));
    dot->send = send_result;
    dot_offer_stream(exchange);
    enum coding coding;
    enum error error = oip_path_model(exchange, &exchange->oip.model, problem);
    if (error == ERR_OK)
        error = admit_open(exchange, problem);
    if (error == ERR_OK)
        error = admit_coding(exchange, &coding, problem);
    if (error == ERR_OK)
        error = admit_size(exchange, http->config->max_body_bytes, "max_body_bytes", problem);
    if (error == ERR_OK)
        error = take_query(exchange, problem);
    if (error == ERR_OK)
        error = dot_take_header(exchange, problem);
    if (error == ERR_OK)
        error = oip_decoder_create(
            &dot->decoder, &exchange->oip, &dot->request,
            MHD_lookup_connection_value(exchange->mhd, MHD_HEADER_KIND, OIP_LENGTH_HEADER),
            admit_body_bytes(exchange, coding), http->config->memory_budget_bytes, problem);
    if (error == ERR_OK)
        error = decoder_unpack(&dot->decoder, coding, http->config->max_body_bytes, problem);
    if (error == ERR_OK)
        dot_set_deadline(exchange);
    return error;
}

enum error oip_infer_begin(struct exchange *exchange, struct problem *problem)
{
    return told(begin(exchange, problem), problem);
}

enum error oip_infer_body(struct exchange *exchange, const char *data, size_t size,
                          struct problem *problem)
{
    return told(dot_body(exchange, data, size, problem), problem);
}

enum error oip_infer_finish(struct exchange *exchange, struct problem *problem)
{
    return told(dot_finish(exchange, problem), problem);
}

enum error oip_infer_resume(struct exchange *exchange, struct problem *problem)
{
    return told(dot_resume(exchange, problem), problem);
}
