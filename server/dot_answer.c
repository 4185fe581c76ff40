/* dot_answer.c - the answer to a dot product (see dot_answer.h). */
#include "server/dot_answer.h"

#include <string.h>

#include "gpu/clock.h"
#include "proto/result.h"
#include "server/accept.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/exchanges.h"
#include "server/http_priv.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/stream.h"

static const char *const form_types[] = {
    [FORM_JSON] = "application/json",
    [FORM_RAW] = "application/octet-stream",
    [FORM_NPY] = "application/x-npy",
};

/* As most do, Accept names one type and nothing else. */
static bool names_form(const char *accept, enum form *ret)
{
    for (enum form form = FORM_JSON; form <= FORM_NPY; form++)
        if (strcmp(accept, form_types[form]) == 0) {
            *ret = form;
            return true;
        }
    return false;
}

/* Of forms that are liked equally, the first. */
enum error dot_settle_form(struct exchange *exchange, struct problem *problem)
{
    const char *accept = exchange->head.accept;
    unsigned best = 0;
    if (accept != NULL && names_form(accept, &exchange->dot.form))
        return ERR_OK;
    for (enum form form = FORM_JSON; form <= FORM_NPY; form++) {
        unsigned quality = accept_quality(accept, form_types[form]);
        if (quality > best) {
            best = quality;
            exchange->dot.form = form;
        }
    }
    if (best > 0)
        return ERR_OK;
    return problem_set(problem, ERR_ACCEPT,
                       "Accept is \"%s\"; application/json, application/octet-stream and "
                       "application/x-npy are served",
                       exchange->head.accept);
}

/* Stamps are consecutive, so the parts add up to the time from the first byte to now. What a stream
 * added while its body came, and its waiting for a device, is taken out of the time of
 * receiving. */
static struct timing timing_of(const struct exchange *exchange)
{
    const struct dot_exchange *dot = &exchange->dot;
    const struct job_times *times = &exchange->job.times;
    int64_t device_ns = times->copy_in_ns + times->compute_ns + times->copy_out_ns;
    int64_t added_ns = stream_compute_ns(dot->stream), paused_ns = stream_paused_ns(dot->stream);
    return (struct timing){
        .receive_ns =
            dot->decoded_ns - exchange->first_byte_ns - dot->decode_ns - added_ns - paused_ns,
        .decode_ns = dot->decode_ns,
        .queue_ns = clock_ns() - dot->decoded_ns - device_ns + paused_ns,
        .copy_in_ns = times->copy_in_ns,
        .compute_ns = times->compute_ns + added_ns,
        .copy_out_ns = times->copy_out_ns,
    };
}

static enum error send_json(struct exchange *exchange, const struct result *result)
{
    struct text *stages = exchanges_scratch(loop_exchanges(exchange->loop));
    result_header_server_timing(result, stages);
    if (stages->failed)
        return ERR_NOMEM;
    text_clear(&exchange->out);
    result_encode_json(result, &exchange->out);
    text_string(&exchange->out, "\n");
    struct answer answer = {.status = 200, .content_type = "application/json"};
    answer_header(&answer, "Server-Timing", stages->data);
    return answer_send(exchange, &answer);
}

static enum error send_raw(struct exchange *exchange, const struct result *result,
                           struct problem *problem)
{
    static const struct {
        const char *name;
        void (*print)(const struct result *result, struct text *text);
    } computed[] = {
        {"Server-Timing", result_header_server_timing},
        {"Dotd-Shape", result_header_shape},
        {"Dotd-Flags", result_header_flags},
        {"Dotd-Error-Bound", result_header_error_bound},
        {"Dotd-Dtype", result_header_dtype},
        {"Dotd-Id", result_header_id},
        {"Dotd-Sum-Abs", result_header_sum_abs},
        {"Dotd-Condition", result_header_condition},
    };
    enum { COMPUTED = sizeof computed / sizeof *computed };
    const enum form form = exchange->dot.form;
    text_clear(&exchange->out);
    enum error error = form == FORM_NPY ? result_encode_npy(result, &exchange->out, problem)
                                        : result_encode_raw(result, &exchange->out, problem);
    if (error != ERR_OK)
        return error;
    struct text *values = exchanges_scratch(loop_exchanges(exchange->loop));
    size_t start[COMPUTED]; /* of each, as the text may move while it grows */
    for (int i = 0; i < COMPUTED; i++) {
        start[i] = values->size;
        computed[i].print(result, values);
        text_append(values, "", 1); /* its NUL */
    }
    if (values->failed)
        return ERR_NOMEM;
    struct answer answer = {.status = 200, .content_type = form_types[form]};
    answer_header(&answer, "Dotd-Device", result->device);
    answer_header(&answer, "Dotd-Kernel", result->kernel);
    for (int i = 0; i < COMPUTED; i++)
        /* A scalar's shape, the flags of an exact result, and what was not asked for are told by
         * the header's absence. */
        if (values->data[start[i]] != '\0')
            answer_header(&answer, computed[i].name, values->data + start[i]);
    return answer_send(exchange, &answer);
}

/* Who computed the job; result borrows from *where. */
union where {
    struct device_info device;
    struct lab_device lab;
};

static void tell_where(const struct exchange *exchange, union where *where, struct result *result)
{
    const struct dot_exchange *dot = &exchange->dot;
    if (dot->rung != NULL) {
        where->lab = lab_device(loop_http(exchange->loop)->lab, dot->rung_device);
        result->device = where->lab.id;
        result->device_name = where->lab.name;
        result->kernel = dot->rung->name;
    } else {
        where->device = gpu_device_info(loop_http(exchange->loop)->gpu, exchange->job.device);
        result->device = where->device.id;
        result->device_name = where->device.name;
        result->kernel =
            dot_accuracy(&dot->request.options) == ACCURACY_EXACT ? "exact" : where->device.kernel;
    }
}

enum error dot_answer(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    union where where;
    struct result result = {
        .request = &dot->request,
        .value = exchange->job.value,
        .accuracy = dot->request.options.accuracy,
        .batch_size = exchange->job.batch_size,
    };
    tell_where(exchange, &where, &result);
    buffer_fini(&dot->request.buffer); /* the operands' memory is free before the client reads */
    result_round(&result);
    result.timing = timing_of(exchange);
    enum error error = dot->send != NULL        ? dot->send(exchange, &result, problem)
                       : dot->form == FORM_JSON ? send_json(exchange, &result)
                                                : send_raw(exchange, &result, problem);
    if (error == ERR_OK)
        metrics_count_computed(loop_metrics(exchange->loop), &result.timing, exchange->job.device,
                               dot_accuracy(&dot->request.options), dot->request.result_count);
    return error;
}
