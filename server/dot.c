/* dot.c - /v1/dot (see dot.h). */
#include "server/dot.h"

#include <stdio.h>
#include <string.h>

#include "proto/pointer.h"
#include "proto/result.h"
#include "server/accept.h"
#include "server/admit.h"
#include "server/answer.h"
#include "server/clock.h"
#include "server/exchange.h"
#include "server/exchanges.h"
#include "server/loop.h"

static const struct config *config_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop)->config;
}

static struct gpu *gpu_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop)->gpu;
}

/* ---- before the body ----------------------------------------------------------------------- */

static enum error settle_accept(struct exchange *exchange, struct problem *problem)
{
    unsigned json = accept_quality(exchange->head.accept, "application/json");
    unsigned raw = accept_quality(exchange->head.accept, "application/octet-stream");
    if (json == 0 && raw == 0)
        return problem_set(
            problem, ERR_ACCEPT,
            "Accept is \"%s\"; application/json and application/octet-stream are served",
            exchange->head.accept);
    exchange->dot.wants_raw = raw > json;
    return ERR_OK;
}

static enum error check_size(const struct exchange *exchange, struct problem *problem)
{
    return admit_size(exchange, config_of(exchange)->max_body_bytes, "max_body_bytes", problem);
}

enum error dot_begin(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    const struct encoding *encoding;
    uint64_t body_bytes = exchange->head.is_chunked ? BODY_CHUNKED : exchange->head.content_length;
    request_init(&dot->request, gpu_buffers(gpu_of(exchange)));
    enum error error = admit_open(exchange, problem);
    if (error == ERR_OK)
        error = encoding_for(exchange->head.content_type, &encoding, problem);
    if (error == ERR_OK)
        error = admit_coding(exchange, problem);
    if (error == ERR_OK)
        error = settle_accept(exchange, problem);
    if (error == ERR_OK)
        error = check_size(exchange, problem);
    if (error == ERR_OK)
        error = options_from_query(&dot->request.options, exchange->query, NULL, NULL, problem);
    if (error == ERR_OK)
        error = decoder_create(&dot->decoder, encoding, &dot->request, body_bytes,
                               config_of(exchange)->memory_budget_bytes, problem);
    return error;
}

/* ---- the body ------------------------------------------------------------------------------ */

enum error dot_body(struct exchange *exchange, const char *data, size_t size,
                    struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    enum error error = check_size(exchange, problem);
    if (error != ERR_OK)
        return error;
    int64_t start_ns = clock_ns();
    error = decoder_feed(dot->decoder, data, size, problem);
    dot->decode_ns += clock_ns() - start_ns;
    return error;
}

/* ---- after the body ------------------------------------------------------------------------ */

/* A kernel is named instead of an accuracy: "exact", or one of those that are fast. */
static bool names_exact(const struct options *options)
{
    return strcmp(options->kernel, "exact") == 0;
}

/* What the request left to the server. */
static enum error settle_accuracy(struct exchange *exchange, struct problem *problem)
{
    static const enum accuracy words[] = {ACCURACY_EXACT,
                                          ACCURACY_FAST}; /* as SETTING_MAP has them */
    struct options *options = &exchange->dot.request.options;
    enum accuracy accuracy = words[config_of(exchange)->accuracy];
    if (options->given & OPTION_KERNEL)
        accuracy = names_exact(options) ? ACCURACY_EXACT : ACCURACY_FAST;
    else if (options->accuracy != ACCURACY_DEFAULT)
        accuracy = options->accuracy;
    if (options->accuracy != ACCURACY_DEFAULT && options->accuracy != accuracy) {
        (void)problem_set(problem, ERR_OPTION,
                          "kernel %s and accuracy %s contradict each other; give one of them",
                          options->kernel, accuracy_name(options->accuracy));
        return pointer_set(problem, "/kernel");
    }
    options->accuracy = accuracy;
    return ERR_OK;
}

/* Integers are exact whatever was asked for: it costs nothing. */
static bool is_exact(const struct options *options)
{
    return options->accuracy == ACCURACY_EXACT || dtype_is_integer(options->dtype);
}

static enum error check_kernel(struct exchange *exchange, int device, struct problem *problem)
{
    const struct options *options = &exchange->dot.request.options;
    if (!(options->given & OPTION_KERNEL) || names_exact(options))
        return ERR_OK;
    struct device_info info = gpu_device_info(gpu_of(exchange), device);
    if (strcmp(options->kernel, info.kernel) != 0)
        return problem_set(problem, ERR_KERNEL,
                           "there is no kernel \"%s\" on %s; it computes with %s or exact",
                           options->kernel, info.id, info.kernel);
    if (is_exact(options))
        return problem_set(problem, ERR_KERNEL,
                           "kernel %s is for fast sums of floating-point numbers", info.kernel);
    return ERR_OK;
}

/* Does the request allow less time than the server? */
static bool is_hurried(const struct exchange *exchange)
{
    uint64_t asked_ms = exchange->dot.request.options.timeout_ms;
    return asked_ms > 0 && asked_ms < config_of(exchange)->job_timeout_ms;
}

static uint64_t timeout_of(const struct exchange *exchange)
{
    return is_hurried(exchange) ? exchange->dot.request.options.timeout_ms
                                : config_of(exchange)->job_timeout_ms;
}

static int64_t deadline_of(const struct exchange *exchange)
{
    return exchange->dot.decoded_ns + (int64_t)timeout_of(exchange) * 1000000;
}

static enum error no_device(const struct options *options, struct problem *problem)
{
    char name[24] = "a CUDA device";
    if (options->device_index >= 0)
        (void)snprintf(name, sizeof name, "cuda:%d", options->device_index);
    (void)problem_set(problem, ERR_NO_DEVICE,
                      "%s is not there; GET /v1/devices lists the devices that are", name);
    return pointer_set(problem, "/device");
}

static enum error place(const struct exchange *exchange, int *ret, struct problem *problem)
{
    const struct dot_exchange *dot = &exchange->dot;
    const struct options *options = &dot->request.options;
    enum error error = gpu_place(gpu_of(exchange), options->placement, options->device_index,
                                 dot->request.buffer.used, ret);
    return error == ERR_OK ? error : no_device(options, problem);
}

static enum error make_job(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    enum error error = job_plan(&exchange->job, dot->request.pair, dot->request.pair_count);
    if (error != ERR_OK)
        return problem_set(problem, error, "no memory for so many results");
    const struct options *options = &dot->request.options;
    exchange->job.accuracy = is_exact(options) ? ACCURACY_EXACT : ACCURACY_FAST;
    exchange->job.result_dtype = options->result_dtype;
    exchange->job.conjugate = options->conjugate;
    exchange->job.wants_abs = options->diagnostics;
    exchange->job.base = dot->request.buffer.block.data;
    exchange->job.bytes = dot->request.buffer.used;
    dot->decoded_ns = clock_ns();
    exchange->job.deadline_ns = deadline_of(exchange);
    exchange->job.port = loop_port(exchange->loop);
    return ERR_OK;
}

static enum error submit(struct exchange *exchange, int device, struct problem *problem)
{
    enum error error = gpu_submit(gpu_of(exchange), device, &exchange->job);
    if (error == ERR_BUSY)
        return problem_set(problem, ERR_BUSY,
                           "the device's queue is full (queue_jobs, queue_bytes)");
    if (error != ERR_OK)
        return problem_set(problem, error, "the device takes no more work");
    exchange_suspend(exchange);
    return ERR_OK;
}

/* The request is whole: settle it, place it, and compute it here or hand it to the device. */
static enum error compute(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    int device;
    enum error error = settle_accuracy(exchange, problem);
    if (error == ERR_OK)
        error = request_check(&dot->request, config_of(exchange)->max_results, problem);
    if (error == ERR_OK && dot->wants_raw)
        error = result_headers_suffice(&dot->request, problem);
    if (error == ERR_OK)
        error = place(exchange, &device, problem);
    if (error == ERR_OK)
        error = check_kernel(exchange, device, problem);
    if (error == ERR_OK)
        error = make_job(exchange, problem);
    if (error != ERR_OK)
        return error;
    if (!gpu_is_inline(gpu_of(exchange), device, exchange->job.term_count))
        return submit(exchange, device, problem);
    gpu_compute(gpu_of(exchange), &exchange->job);
    return dot_resume(exchange, problem);
}

enum error dot_finish(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    int64_t start_ns = clock_ns();
    enum error error = decoder_finish(dot->decoder, problem);
    dot->decode_ns += clock_ns() - start_ns;
    decoder_destroy(dot->decoder);
    dot->decoder = NULL;
    return error == ERR_OK ? compute(exchange, problem) : error;
}

enum error dot_finish_query(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    request_init(&dot->request, gpu_buffers(gpu_of(exchange)));
    enum error error = admit_open(exchange, problem);
    if (error == ERR_OK)
        error = settle_accept(exchange, problem);
    if (error != ERR_OK)
        return error;
    exchange->first_byte_ns = clock_ns();
    error = query_decode(&dot->request, exchange->query, config_of(exchange)->memory_budget_bytes,
                         problem);
    dot->decode_ns = clock_ns() - exchange->first_byte_ns;
    return error == ERR_OK ? compute(exchange, problem) : error;
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* Stamps are consecutive, so the parts add up to the time from the first byte to now. */
static struct timing timing_of(const struct exchange *exchange)
{
    const struct dot_exchange *dot = &exchange->dot;
    const struct job_times *times = &exchange->job.times;
    int64_t device_ns = times->copy_in_ns + times->compute_ns + times->copy_out_ns;
    return (struct timing){
        .receive_ns = dot->decoded_ns - exchange->first_byte_ns - dot->decode_ns,
        .decode_ns = dot->decode_ns,
        .queue_ns = clock_ns() - dot->decoded_ns - device_ns,
        .copy_in_ns = times->copy_in_ns,
        .compute_ns = times->compute_ns,
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
    text_clear(&exchange->out);
    enum error error = result_encode_raw(result, &exchange->out, problem);
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
    struct answer answer = {.status = 200, .content_type = "application/octet-stream"};
    answer_header(&answer, "Dotd-Device", result->device);
    answer_header(&answer, "Dotd-Kernel", result->kernel);
    for (int i = 0; i < COMPUTED; i++)
        /* A scalar's shape, the flags of an exact result, and what was not asked for are told by
         * the header's absence. */
        if (values->data[start[i]] != '\0')
            answer_header(&answer, computed[i].name, values->data + start[i]);
    return answer_send(exchange, &answer);
}

static enum error refuse_late(const struct exchange *exchange, struct problem *problem)
{
    const char *name = is_hurried(exchange) ? "timeout_ms" : "job_timeout_ms";
    uint64_t timeout_ms = timeout_of(exchange);
    (void)problem_set(problem, ERR_DEADLINE, "the result was not ready within the %llu ms of %s",
                      (unsigned long long)timeout_ms, name);
    return problem_limit(problem, timeout_ms, name);
}

static enum error refuse_job(const struct exchange *exchange, struct problem *problem)
{
    const struct job *job = &exchange->job;
    switch (job->error) {
    case ERR_DEADLINE:
        return refuse_late(exchange, problem);
    case ERR_CLOSED:
        return problem_set(problem, ERR_CLOSED, "the job was dropped");
    default:
        return problem_set(problem, job->error, "the device could not compute the result");
    }
}

enum error dot_resume(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    if (exchange->job.error == ERR_OK && clock_ns() > exchange->job.deadline_ns)
        exchange->job.error = ERR_DEADLINE; /* it was begun in time, but took too long */
    if (exchange->job.error != ERR_OK)
        return refuse_job(exchange, problem);
    struct device_info info = gpu_device_info(gpu_of(exchange), exchange->job.device);
    struct result result = {
        .request = &dot->request,
        .value = exchange->job.value,
        .accuracy = dot->request.options.accuracy,
        .kernel = is_exact(&dot->request.options) ? "exact" : info.kernel,
        .device = info.id,
        .device_name = info.name,
        .batch_size = exchange->job.batch_size,
    };
    buffer_fini(&dot->request.buffer); /* the operands' memory is free before the client reads */
    result_round(&result);
    result.timing = timing_of(exchange);
    enum error error =
        dot->wants_raw ? send_raw(exchange, &result, problem) : send_json(exchange, &result);
    job_fini(&exchange->job); /* the client may take its time, but not with these */
    return error;
}

void dot_fini(struct dot_exchange *dot)
{
    decoder_destroy(dot->decoder);
    request_fini(&dot->request);
}
