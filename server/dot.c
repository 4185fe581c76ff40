/* dot.c - /v1/dot (see dot.h). */
#include "server/dot.h"

#include <stdio.h>
#include <string.h>

#include "gpu/clock.h"
#include "proto/pointer.h"
#include "server/admit.h"
#include "server/dot_answer.h"
#include "server/exchange.h"
#include "server/head_memory.h"
#include "server/loop.h"
#include "server/stream.h"

/* Of a job's operands: what is larger keeps a device busy for longer than it takes to wake it. */
enum { FOLLOWED_BYTES = 32 << 10 };

static const struct config *config_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop)->config;
}

static struct gpu *gpu_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop)->gpu;
}

static struct lab *lab_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop)->lab;
}

/* ---- the head ------------------------------------------------------------------------------ */

static enum error check_size(const struct exchange *exchange, struct problem *problem)
{
    return admit_size(exchange, config_of(exchange)->max_body_bytes, "max_body_bytes", problem);
}

/* The header says what the query string and the body may say as well. */
enum error dot_take_header(struct exchange *exchange, struct problem *problem)
{
    const struct head *head = &exchange->head;
    unsigned seen = 0;
    if (head->timeout_ms == NULL)
        return ERR_OK;
    if (head->repeats_timeout)
        return problem_set(problem, ERR_OPTION, "X-Timeout-Ms is given twice");
    return options_set(&exchange->dot.request.options, &seen, "timeout_ms", head->timeout_ms,
                       problem);
}

/* ---- deadlines ----------------------------------------------------------------------------- */

/* When the time that the request allows is over, from its request line on; INT64_MAX: never. */
static int64_t asked_until_ns(const struct exchange *exchange)
{
    uint64_t asked_ms = exchange->dot.request.options.timeout_ms;
    if (asked_ms == 0 || asked_ms > (uint64_t)(INT64_MAX - exchange->begun_ns) / 1000000)
        return INT64_MAX;
    return exchange->begun_ns + (int64_t)asked_ms * 1000000;
}

/* When the server's own time is over: that of devices, which have nothing to do before the operands
 * are there. */
static int64_t allowed_until_ns(const struct exchange *exchange)
{
    int64_t since_ns = exchange->dot.decoded_ns > 0 ? exchange->dot.decoded_ns : clock_ns();
    return since_ns + (int64_t)config_of(exchange)->job_timeout_ms * 1000000;
}

/* Does the request allow less time than the server? */
static bool is_hurried(const struct exchange *exchange)
{
    return asked_until_ns(exchange) < allowed_until_ns(exchange);
}

static int64_t deadline_of(const struct exchange *exchange)
{
    return is_hurried(exchange) ? asked_until_ns(exchange) : allowed_until_ns(exchange);
}

void dot_set_deadline(struct exchange *exchange)
{
    bool waits = exchange->is_paused || exchange->dot.decoded_ns > 0;
    int64_t at_ns = waits ? deadline_of(exchange) : asked_until_ns(exchange);
    exchange_set_deadline(exchange, at_ns);
}

/* What the request calls the time that it allows. An inference has a word of its own (oip.h). */
static const char *asked_by(const struct exchange *exchange)
{
    if (exchange->head.timeout_ms != NULL)
        return "X-Timeout-Ms";
    return exchange->oip.model != NULL ? "timeout" : "timeout_ms";
}

static enum error late_as_asked(const struct exchange *exchange, struct problem *problem)
{
    const uint64_t timeout_ms = exchange->dot.request.options.timeout_ms;
    const char *name = asked_by(exchange);
    (void)problem_set(problem, ERR_DEADLINE,
                      "the result was not ready within the %llu ms of the request's %s",
                      (unsigned long long)timeout_ms, name);
    if (strcmp(name, "timeout_ms") == 0)
        (void)pointer_set(problem, "/timeout_ms");
    return problem_limit(problem, timeout_ms, NULL);
}

enum error dot_late(struct exchange *exchange, struct problem *problem)
{
    if (is_hurried(exchange))
        return late_as_asked(exchange, problem);
    const uint64_t timeout_ms = config_of(exchange)->job_timeout_ms;
    (void)problem_set(problem, ERR_DEADLINE,
                      "the result was not ready within the %llu ms of the setting job_timeout_ms",
                      (unsigned long long)timeout_ms);
    return problem_limit(problem, timeout_ms, "job_timeout_ms");
}

/* ---- settling ------------------------------------------------------------------------------ */

/* A kernel is named instead of an accuracy: "exact", or one of those that are not. */
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

enum accuracy dot_accuracy(const struct options *options)
{
    return is_exact(options) ? ACCURACY_EXACT : ACCURACY_FAST;
}

/* The kernel is none of the device's own: a rung of the ladder, which the lab places itself. */
static enum error settle_rung(struct exchange *exchange, const struct device_info *info,
                              struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    const struct options *options = &dot->request.options;
    dot->rung = ladder_find(options->kernel);
    if (dot->rung == NULL) {
        (void)problem_set(
            problem, ERR_KERNEL,
            "there is no kernel \"%s\" on %s; it computes with %s, and the ladder has "
            "%s",
            options->kernel, info->id, info->kernel, ladder_list());
        return pointer_set(problem, "/kernel");
    }
    if (lab_place(lab_of(exchange), options->placement, options->device_index, &dot->rung_device,
                  problem) != ERR_OK)
        return pointer_set(problem, "/device");
    return ERR_OK;
}

static enum error settle_kernel(struct exchange *exchange, int device, struct problem *problem)
{
    const struct options *options = &exchange->dot.request.options;
    if (!(options->given & OPTION_KERNEL) || names_exact(options))
        return ERR_OK;
    struct device_info info = gpu_device_info(gpu_of(exchange), device);
    if (strcmp(options->kernel, info.kernel) != 0)
        return settle_rung(exchange, &info, problem);
    if (is_exact(options))
        return problem_set(problem, ERR_KERNEL,
                           "kernel %s is for fast sums of floating-point numbers", info.kernel);
    return ERR_OK;
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

/* A request that names no device goes where by_default says. */
static enum error place(const struct exchange *exchange, enum placement by_default, int *ret,
                        struct problem *problem)
{
    const struct request *request = &exchange->dot.request;
    const struct options *options = &request->options;
    enum placement placement = options->placement;
    if (placement == PLACE_AUTO)
        placement = by_default;
    const struct job_size size = {
        .base = request->buffer.block.data,
        .bytes = request->buffer.used,
        .term_count = request->term_count,
        .row_count = request->result_count,
        .dtype = options->dtype,
        .accuracy = options->accuracy,
    };
    enum error error = gpu_place(gpu_of(exchange), placement, options->device_index, &size, ret);
    return error == ERR_OK ? error : no_device(options, problem);
}

/* All that is decided before the first product: of a body that is to be streamed, by its options alone.
 * Such a one passes through this processor's cache anyway: it goes elsewhere only when told. */
static enum error settle(struct exchange *exchange, bool is_stream, int *ret_device,
                         struct problem *problem)
{
    struct request *request = &exchange->dot.request;
    enum error error = settle_accuracy(exchange, problem);
    if (error == ERR_OK)
        error = is_stream ? request_check_options(request, problem)
                          : request_check(request, config_of(exchange)->max_results, problem);
    if (error == ERR_OK && exchange->dot.form != FORM_JSON)
        error = result_headers_suffice(request, problem);
    if (error == ERR_OK)
        error = place(exchange, is_stream ? PLACE_CPU : PLACE_AUTO, ret_device, problem);
    if (error == ERR_OK)
        error = settle_kernel(exchange, *ret_device, problem);
    return error;
}

/* ---- before the body ----------------------------------------------------------------------- */

/* A rung of the ladder gets whole rows. */
static bool may_stream(const struct options *options)
{
    return names_exact(options) || ladder_find(options->kernel) == NULL;
}

/* The sink's begin(). Everything that the options decide is decided before the first element is
 * added. */
static enum error begin_stream(void *context, bool *ret_takes, struct problem *problem)
{
    struct exchange *exchange = context;
    struct dot_exchange *dot = &exchange->dot;
    int device;
    *ret_takes = may_stream(&dot->request.options);
    if (!*ret_takes)
        return ERR_OK;
    dot->request.result_count = 1;
    enum error error = settle(exchange, true, &device, problem);
    if (error == ERR_OK && stream_create(&dot->stream, exchange, device) != ERR_OK)
        error = problem_set(problem, ERR_NOMEM, "no memory for a sum");
    return error;
}

void dot_offer_stream(struct exchange *exchange)
{
    struct dot_exchange *dot = &exchange->dot;
    dot->sink = (struct sink){
        .take = stream_take,
        .context = exchange,
        .min_bytes = STREAM_BYTES_MIN,
        .place = stream_place,
        .begin = begin_stream,
    };
    dot->request.sink = &dot->sink;
}

/* Reads the head into *ret, and takes it as read. */
static enum error read_head(struct exchange *exchange, struct dot_head *ret,
                            struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    enum error error = encoding_for(exchange->head.content_type, &ret->encoding, problem);
    if (error == ERR_OK)
        error = admit_coding(exchange, &ret->coding, problem);
    if (error == ERR_OK)
        error = dot_settle_form(exchange, problem);
    if (error == ERR_OK)
        error = check_size(exchange, problem);
    if (error == ERR_OK)
        error = options_from_query(&dot->request.options, exchange->query, NULL, NULL, problem);
    if (error == ERR_OK)
        error = dot_take_header(exchange, problem);
    if (error != ERR_OK)
        return error;
    ret->form = dot->form;
    ret->options = dot->request.options;
    head_memory_learn(exchange, ret);
    return ERR_OK;
}

/* The same of a head that is known. */
static enum error take_head(struct exchange *exchange, const struct dot_head *head,
                            struct problem *problem)
{
    exchange->dot.form = head->form;
    exchange->dot.request.options = head->options;
    return check_size(exchange, problem);
}

enum error dot_begin(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    struct dot_head unknown;
    const struct dot_head *head = exchange->known != NULL ? exchange->known : &unknown;
    request_init(&dot->request, gpu_buffers(gpu_of(exchange)));
    enum error error = admit_open(exchange, problem);
    if (error == ERR_OK)
        error = head != &unknown ? take_head(exchange, head, problem)
                                 : read_head(exchange, &unknown, problem);
    dot_offer_stream(exchange);
    dot->request.content_type = exchange->head.content_type;
    if (error == ERR_OK)
        error = decoder_create(&dot->decoder, head->encoding, &dot->request,
                               admit_body_bytes(exchange, head->coding),
                               config_of(exchange)->memory_budget_bytes, problem);
    if (error == ERR_OK)
        error = decoder_unpack(&dot->decoder, head->coding, config_of(exchange)->max_body_bytes,
                               problem);
    if (error == ERR_OK)
        dot_set_deadline(exchange);
    return error;
}

/* ---- the body ------------------------------------------------------------------------------ */

/* The body's end follows at once, and nothing is waited for in between. */
static bool is_last(const struct exchange *exchange)
{
    const struct head *head = &exchange->head;
    return !head->is_chunked && exchange->body_bytes == head->content_length &&
           exchange->dot.stream == NULL;
}

enum error dot_body(struct exchange *exchange, const char *data, size_t size,
                    struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    enum error error = check_size(exchange, problem);
    if (error != ERR_OK)
        return error;
    int64_t start_ns = exchange->piece_ns - stream_compute_ns(dot->stream);
    error = decoder_feed(dot->decoder, data, size, problem);
    if (is_last(exchange)) {
        dot->ending_ns = start_ns;
        return error;
    }
    dot->decode_ns += clock_ns() - stream_compute_ns(dot->stream) - start_ns;
    if (error != ERR_OK || dot->stream == NULL)
        return error;
    error = stream_advance(dot->stream);
    return error == ERR_OK ? error : dot_refuse(exchange, error, problem);
}

/* ---- after the body ------------------------------------------------------------------------ */

void dot_fill_job(const struct exchange *exchange, struct job *job)
{
    const struct options *options = &exchange->dot.request.options;
    job->accuracy = dot_accuracy(options);
    job->result_dtype = options->result_dtype;
    job->conjugate = options->conjugate;
    job->wants_abs = options->diagnostics;
    job->client = exchange->connection->client;
    job->deadline_ns = deadline_of(exchange);
    job->port = loop_port(exchange->loop);
}

/* ERR_DEADLINE: receiving has taken all the time there was. */
static enum error make_job(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    enum error error = job_plan(&exchange->job, dot->request.pair, dot->request.pair_count);
    if (error != ERR_OK)
        return problem_set(problem, error, "no memory for so many results");
    dot->decoded_ns = clock_ns();
    dot->decode_ns += dot->decoded_ns - stream_compute_ns(dot->stream) - dot->ending_ns;
    dot_fill_job(exchange, &exchange->job);
    exchange->job.base = dot->request.buffer.block.data;
    exchange->job.bytes = dot->request.buffer.used;
    return exchange->job.deadline_ns > dot->decoded_ns ? ERR_OK : dot_late(exchange, problem);
}

enum error dot_refuse(struct exchange *exchange, enum error error, struct problem *problem)
{
    switch (error) {
    case ERR_DEADLINE:
        return dot_late(exchange, problem);
    case ERR_BUSY:
        return problem_set(problem, error, "%s",
                           exchange->dot.rung != NULL
                               ? "the lab's queue is full (lab_jobs)"
                               : "the device's queue, or your share of it, is full "
                                 "(queue_jobs, queue_bytes, client_share_percent)");
    case ERR_NOMEM:
        return problem_set(problem, error, "no memory for the operands on their way to the device");
    case ERR_CLOSED:
    case ERR_NO_DEVICE:
        return problem_set(problem, error, "the device takes no more work");
    default:
        return problem_set(problem, error, "the device could not compute the result");
    }
}

/* On the lab's thread. */
static enum error run_rung(struct job *job)
{
    struct exchange *exchange = exchange_of_job(job);
    const struct dot_exchange *dot = &exchange->dot;
    return lab_dot(lab_of(exchange), dot->rung, dot->rung_device, job, &exchange->job_problem);
}

static enum error check_rung(const struct exchange *exchange, struct problem *problem)
{
    const struct dot_exchange *dot = &exchange->dot;
    if (lab_dot_check(dot->rung, dot->rung_device, &exchange->job, problem) != ERR_OK)
        return pointer_set(problem, "/kernel");
    return ERR_OK;
}

static enum error submit(struct exchange *exchange, int device, struct problem *problem)
{
    struct job *job = &exchange->job;
    job->run = exchange->dot.rung != NULL ? run_rung : NULL;
    job->is_followed = job->run == NULL && job->bytes <= FOLLOWED_BYTES;
    enum error error = job->run != NULL ? lab_submit(lab_of(exchange), job)
                                        : gpu_submit(gpu_of(exchange), device, job);
    if (error != ERR_OK)
        return dot_refuse(exchange, error, problem);
    if (job->is_followed)
        loop_follow(exchange->loop, device);
    exchange_suspend(exchange);
    dot_set_deadline(exchange);
    return ERR_OK;
}

/* The request is whole: compute it here or hand it to the device. */
static enum error compute(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    int device;
    enum error error = settle(exchange, false, &device, problem);
    if (error == ERR_OK)
        error = make_job(exchange, problem);
    if (error == ERR_OK && dot->rung != NULL)
        error = check_rung(exchange, problem);
    if (error != ERR_OK)
        return error;
    if (dot->rung != NULL || !gpu_is_inline(gpu_of(exchange), device, dot->request.options.dtype,
                                            exchange->job.term_count))
        return submit(exchange, device, problem);
    gpu_compute(gpu_of(exchange), &exchange->job);
    return dot_resume(exchange, problem);
}

/* All but the last slice is computed already. */
static enum error end_stream(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    bool is_complete;
    enum error error = request_check(&dot->request, config_of(exchange)->max_results, problem);
    if (error == ERR_OK)
        error = make_job(exchange, problem);
    if (error != ERR_OK)
        return error;
    error = stream_end(dot->stream, &is_complete);
    if (error != ERR_OK)
        return dot_refuse(exchange, error, problem);
    if (is_complete)
        return dot_resume(exchange, problem);
    exchange_wait(exchange);
    dot_set_deadline(exchange);
    return ERR_OK;
}

enum error dot_finish(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    if (dot->ending_ns == 0)
        dot->ending_ns = clock_ns() - stream_compute_ns(dot->stream);
    enum error error = decoder_finish(dot->decoder, problem);
    decoder_destroy(dot->decoder);
    dot->decoder = NULL;
    if (error != ERR_OK)
        return error;
    return dot->stream != NULL ? end_stream(exchange, problem) : compute(exchange, problem);
}

enum error dot_finish_query(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    request_init(&dot->request, gpu_buffers(gpu_of(exchange)));
    enum error error = admit_open(exchange, problem);
    if (error == ERR_OK)
        error = dot_settle_form(exchange, problem);
    if (error != ERR_OK)
        return error;
    exchange->first_byte_ns = dot->ending_ns = clock_ns();
    error = query_decode(&dot->request, exchange->query, config_of(exchange)->memory_budget_bytes,
                         problem);
    if (error == ERR_OK)
        error = dot_take_header(exchange, problem);
    return error == ERR_OK ? compute(exchange, problem) : error;
}

/* ---- the result ---------------------------------------------------------------------------- */

static enum error refuse_job(struct exchange *exchange, enum error error, struct problem *problem)
{
    if (error == ERR_DEADLINE || exchange->job_problem.error != error)
        return dot_refuse(exchange, error, problem);
    *problem = exchange->job_problem; /* the lab has said why */
    return error;
}

enum error dot_resume(struct exchange *exchange, struct problem *problem)
{
    struct dot_exchange *dot = &exchange->dot;
    if (dot->stream != NULL)
        stream_settle(dot->stream, &exchange->job);
    enum error error = exchange_job_error(exchange);
    if (error != ERR_OK)
        return refuse_job(exchange, error, problem);
    error = dot_answer(exchange, problem);
    job_fini(&exchange->job); /* the client may take its time, but not with these */
    return error;
}

void dot_on_slice(struct exchange *exchange, struct job *slice)
{
    stream_on_slice(exchange->dot.stream, slice);
}

void dot_cancel(struct dot_exchange *dot)
{
    stream_cancel(dot->stream);
}

void dot_fini(struct dot_exchange *dot)
{
    stream_destroy(dot->stream);
    decoder_destroy(dot->decoder);
    dot->stream = NULL;
    dot->decoder = NULL;
    request_fini(&dot->request);
}
