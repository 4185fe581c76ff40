/* lab_call.c - one call to the lab (see lab_call.h). */
#include "server/lab_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/clock.h"
#include "proto/encoding.h"
#include "proto/pointer.h"
#include "server/accept.h"
#include "server/admit.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/lab_request.h"
#include "server/lab_text.h"
#include "server/loop.h"

enum { READ_AT_ONCE_BYTES = 16 << 10 }; /* of a body; see settle() */

/* One experiment: which fields its call takes, and its two steps. */
struct experiment {
    const char *path;
    unsigned takes, needs;                                                /* enum lab_field bits */
    uint64_t max_values;                                                  /* of an operand */
    enum error (*ask)(struct lab_call *call, struct problem *problem);    /* see settle() */
    enum error (*answer)(struct lab_call *call, struct problem *problem); /* on the lab's thread */
};

/* Touched by the loop's thread; in WORK by the lab's. */
struct lab_call {
    const struct experiment *experiment; /* fixed */
    struct lab *lab;                     /* fixed; borrowed */
    struct gpu *gpu;                     /* fixed; borrowed */
    struct buffer body;                  /* as it came; empty once it is read */
    bool is_settled;                     /* the body is read and the question settled */
    struct lab_request request;
    union {
        struct lab_reduce_ask reduce;
        struct lab_race_ask race;
        struct lab_shift_ask shift;
        struct lab_barrier_ask barrier;
        struct lab_rounding_ask rounding;
        struct lab_measure_ask measure;
    } ask; /* borrows from request */
    struct text answer;
};

/* ---- experiments --------------------------------------------------------------------------- */

static enum error place(struct lab_call *call, int *ret, struct problem *problem)
{
    const struct options *options = &call->request.options;
    if (lab_place(call->lab, options->placement, options->device_index, ret, problem) == ERR_OK)
        return ERR_OK;
    return pointer_set(problem, "/device");
}

static enum error check_lengths(const struct lab_request *request, struct problem *problem)
{
    if (request->a.count == request->b.count)
        return ERR_OK;
    return problem_set(problem, ERR_SHAPE, "a has %llu numbers and b has %llu",
                       (unsigned long long)request->a.count, (unsigned long long)request->b.count);
}

static enum error ask_reduce(struct lab_call *call, struct problem *problem)
{
    const struct lab_request *request = &call->request;
    call->ask.reduce = (struct lab_reduce_ask){
        .scheme = request->scheme,
        .dtype = request->options.dtype,
        .a = request->a.data,
        .b = request->b.data,
        .n = request->a.count,
        .block = (uint32_t)request->block,
        .seed = request->seed,
    };
    enum error error = check_lengths(request, problem);
    if (error == ERR_OK)
        error = lab_reduce_settle(&call->ask.reduce, problem);
    return error;
}

static enum error answer_reduce(struct lab_call *call, struct problem *problem)
{
    const struct lab_reduce_ask *ask = &call->ask.reduce;
    struct lab_device device = lab_device(call->lab, 0);
    struct lab_reduce reduce = {0};
    enum error error = lab_reduce(call->lab, ask, &reduce, problem);
    if (error == ERR_OK)
        lab_text_reduce(&call->answer, &device, ask, &reduce);
    lab_reduce_fini(&reduce);
    return error;
}

static enum error ask_race(struct lab_call *call, struct problem *problem)
{
    const struct lab_request *request = &call->request;
    struct lab_race_ask *ask = &call->ask.race;
    *ask = (struct lab_race_ask){
        .n = request->n, .runs = (uint32_t)request->runs, .seed = request->seed};
    enum error error = place(call, &ask->device, problem);
    return error == ERR_OK ? lab_race_settle(ask, problem) : error;
}

static enum error answer_race(struct lab_call *call, struct problem *problem)
{
    const struct lab_race_ask *ask = &call->ask.race;
    struct lab_device device = lab_device(call->lab, ask->device);
    struct lab_race race = {0};
    enum error error = lab_race(call->lab, ask, &race, problem);
    if (error == ERR_OK)
        lab_text_race(&call->answer, &device, ask, &race);
    lab_race_fini(&race);
    return error;
}

static enum error ask_shift(struct lab_call *call, struct problem *problem)
{
    const struct lab_request *request = &call->request;
    struct lab_shift_ask *ask = &call->ask.shift;
    bool has_values = (request->given & FIELD_VALUES) != 0;
    if (has_values == ((request->given & FIELD_N) != 0))
        return problem_set(problem, has_values ? ERR_OPTION : ERR_VALUE,
                           "give values, or n for 0, 1, 2 and so on, and not both");
    *ask = (struct lab_shift_ask){
        .values = request->values.data,
        .n = has_values ? request->values.count : request->n,
        .barriers = (uint32_t)request->barriers,
        .seed = request->seed,
    };
    enum error error = place(call, &ask->device, problem);
    return error == ERR_OK ? lab_shift_settle(ask, problem) : error;
}

static enum error answer_shift(struct lab_call *call, struct problem *problem)
{
    const struct lab_shift_ask *ask = &call->ask.shift;
    struct lab_device device = lab_device(call->lab, ask->device);
    struct lab_shift shift = {0};
    enum error error = lab_shift(call->lab, ask, &shift, problem);
    if (error == ERR_OK)
        lab_text_shift(&call->answer, &device, ask, &shift);
    lab_shift_fini(&shift);
    return error;
}

static enum error ask_barrier(struct lab_call *call, struct problem *problem)
{
    const struct lab_request *request = &call->request;
    call->ask.barrier =
        (struct lab_barrier_ask){.n = request->n, .where = request->where, .seed = request->seed};
    return lab_barrier_settle(&call->ask.barrier, problem);
}

static enum error answer_barrier(struct lab_call *call, struct problem *problem)
{
    const struct lab_barrier_ask *ask = &call->ask.barrier;
    struct lab_device device = lab_device(call->lab, 0);
    struct lab_barrier barrier = {0};
    enum error error = lab_barrier(call->lab, ask, &barrier, problem);
    if (error == ERR_OK)
        lab_text_barrier(&call->answer, &device, ask, &barrier);
    lab_barrier_fini(&barrier);
    return error;
}

static enum error ask_rounding(struct lab_call *call, struct problem *problem)
{
    const struct lab_request *request = &call->request;
    struct lab_rounding_ask *ask = &call->ask.rounding;
    *ask = (struct lab_rounding_ask){
        .dtype = request->options.dtype,
        .a = request->a.data,
        .b = request->b.data,
        .n = request->a.count,
        .orders = (uint32_t)request->orders,
        .seed = request->seed,
    };
    enum error error = check_lengths(request, problem);
    if (error == ERR_OK)
        error = place(call, &ask->device, problem);
    return error == ERR_OK ? lab_rounding_settle(ask, problem) : error;
}

static enum error answer_rounding(struct lab_call *call, struct problem *problem)
{
    const struct lab_rounding_ask *ask = &call->ask.rounding;
    struct lab_device device = lab_device(call->lab, ask->device);
    struct lab_rounding rounding;
    enum error error = lab_rounding(call->lab, ask, &rounding, problem);
    if (error == ERR_OK)
        lab_text_rounding(&call->answer, &device, ask, &rounding);
    return error;
}

static enum error ask_measure(struct lab_call *call, struct problem *problem)
{
    const struct lab_request *request = &call->request;
    struct lab_measure_ask *ask = &call->ask.measure;
    *ask = (struct lab_measure_ask){
        .kernel = request->options.kernel,
        .dtype = request->options.dtype,
        .n = request->n,
        .seed = request->seed,
    };
    enum error error = place(call, &ask->device, problem);
    return error == ERR_OK ? lab_measure_settle(ask, problem) : error;
}

static enum error answer_measure(struct lab_call *call, struct problem *problem)
{
    const struct lab_measure_ask *ask = &call->ask.measure;
    struct lab_device device = lab_device(call->lab, ask->device);
    struct lab_measure measure;
    enum error error = lab_measure(call->lab, ask, &measure, problem);
    if (error != ERR_OK)
        return error;
    if (device.is_emulated && !measure.is_emulated) { /* what /v1/dot uses there */
        struct device_info info = gpu_device_info(call->gpu, ask->device);
        memcpy(device.name, info.name, sizeof info.name);
        device.is_emulated = false;
    }
    lab_text_measure(&call->answer, &device, ask, &measure);
    return ERR_OK;
}

enum { OPERANDS = FIELD_A | FIELD_B };

/* Values of shift are as many as threads of a block. */
static const struct experiment experiments[] = {
    {"/v1/lab/reduce", OPERANDS | FIELD_SCHEME | FIELD_BLOCK | FIELD_DTYPE | FIELD_SEED, OPERANDS,
     LIMIT_LAB_TRACED, ask_reduce, answer_reduce},
    {"/v1/lab/race", FIELD_N | FIELD_RUNS | FIELD_DEVICE | FIELD_SEED, FIELD_N, 0, ask_race,
     answer_race},
    {"/v1/lab/shift", FIELD_VALUES | FIELD_N | FIELD_BARRIERS | FIELD_DEVICE | FIELD_SEED,
     FIELD_BARRIERS, LIMIT_LAB_BLOCK, ask_shift, answer_shift},
    {"/v1/lab/barrier", FIELD_N | FIELD_WHERE | FIELD_SEED, FIELD_N, 0, ask_barrier,
     answer_barrier},
    {"/v1/lab/rounding", OPERANDS | FIELD_DTYPE | FIELD_ORDERS | FIELD_DEVICE | FIELD_SEED,
     OPERANDS, LIMIT_LAB_ROUNDING, ask_rounding, answer_rounding},
    {"/v1/lab/measure", FIELD_KERNEL | FIELD_N | FIELD_DTYPE | FIELD_DEVICE | FIELD_SEED,
     FIELD_KERNEL | FIELD_N, 0, ask_measure, answer_measure},
};

/* The routes of the lab are these rows. */
static const struct experiment *experiment_of(const struct exchange *exchange)
{
    size_t i = 0;
    while (strcmp(experiments[i].path, exchange->route->path) != 0)
        assert(++i < sizeof experiments / sizeof *experiments);
    return &experiments[i];
}

/* ---- before the body ----------------------------------------------------------------------- */

static enum error check_size(const struct exchange *exchange, struct problem *problem)
{
    return admit_size(exchange, LIMIT_LAB_BODY_BYTES, NULL, problem);
}

static enum error check_types(const struct exchange *exchange, struct problem *problem)
{
    const struct encoding *encoding;
    enum error error = encoding_for(exchange->head.content_type, &encoding, problem);
    if (error == ERR_OK && encoding != &encoding_json)
        error = problem_set(problem, ERR_MEDIA, "the lab reads application/json");
    if (error == ERR_OK && accept_quality(exchange->head.accept, "application/json") == 0)
        error = problem_set(problem, ERR_ACCEPT,
                            "Accept is \"%s\"; the lab answers "
                            "application/json",
                            exchange->head.accept);
    return error;
}

static enum error check_query(const struct exchange *exchange, struct problem *problem)
{
    if (exchange->query == NULL || *exchange->query == '\0')
        return ERR_OK;
    return problem_set(problem, ERR_OPTION, "a call to the lab takes its fields in the body alone");
}

static enum error refuse_queue(enum error error, struct problem *problem)
{
    if (error == ERR_BUSY)
        return problem_set(problem, ERR_BUSY, "the lab's queue is full (lab_jobs)");
    return problem_set(problem, error, "the lab takes no more work");
}

/* Others may take the last place while the body comes, and submit() looks again. */
static enum error check_queue(const struct exchange *exchange, struct problem *problem)
{
    enum error error = lab_check(loop_http(exchange->loop)->lab);
    return error == ERR_OK ? ERR_OK : refuse_queue(error, problem);
}

static enum error call_create(struct exchange *exchange, struct problem *problem)
{
    struct http *http = loop_http(exchange->loop);
    struct lab_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the call");
    call->experiment = experiment_of(exchange);
    call->lab = http->lab;
    call->gpu = http->gpu;
    buffer_init(&call->body, gpu_buffers(http->gpu));
    text_init(&call->answer);
    exchange->lab_call = call;
    return ERR_OK;
}

enum error lab_call_begin(struct exchange *exchange, struct problem *problem)
{
    enum error error = admit_open(exchange, problem);
    if (error == ERR_OK)
        error = check_types(exchange, problem);
    if (error == ERR_OK)
        error = admit_plain(exchange, problem);
    if (error == ERR_OK)
        error = check_size(exchange, problem);
    if (error == ERR_OK)
        error = check_query(exchange, problem);
    if (error == ERR_OK)
        error = check_queue(exchange, problem);
    return error == ERR_OK ? call_create(exchange, problem) : error;
}

/* ---- the body ------------------------------------------------------------------------------ */

enum error lab_call_body(struct exchange *exchange, const char *data, size_t size,
                         struct problem *problem)
{
    struct buffer *body = &exchange->lab_call->body;
    enum error error = check_size(exchange, problem);
    if (error != ERR_OK)
        return error;
    if (buffer_reserve(body, body->used + size) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for the body");
    memcpy((char *)body->block.data + body->used, data, size);
    body->used += size;
    return ERR_OK;
}

/* ---- after the body ------------------------------------------------------------------------ */

/* Reading takes about 20 ns a byte, in which an HTTP thread would serve nobody else. So it reads
 * short bodies only, that a refusal needs no queue; the lab's thread reads long ones. */
static enum error settle(struct lab_call *call, struct problem *problem)
{
    const struct experiment *experiment = call->experiment;
    enum error error =
        lab_request_read(&call->request, call->body.block.data, call->body.used, experiment->takes,
                         experiment->needs, experiment->max_values, problem);
    buffer_fini(&call->body);
    call->is_settled = true;
    return error == ERR_OK ? experiment->ask(call, problem) : error;
}

static enum error lab_run(struct job *job)
{
    struct exchange *exchange = exchange_of_job(job);
    struct lab_call *call = exchange->lab_call;
    enum error error = call->is_settled ? ERR_OK : settle(call, &exchange->job_problem);
    if (error == ERR_OK)
        error = call->experiment->answer(call, &exchange->job_problem);
    text_string(&call->answer, "\n");
    return error == ERR_OK && call->answer.failed ? ERR_NOMEM : error;
}

static enum error submit(struct exchange *exchange, struct problem *problem)
{
    const struct config *config = loop_http(exchange->loop)->config;
    struct job *job = &exchange->job;
    job->run = lab_run;
    job->port = loop_port(exchange->loop);
    job->deadline_ns = clock_ns() + (int64_t)config->job_timeout_ms * 1000000;
    enum error error = lab_submit(exchange->lab_call->lab, job);
    if (error != ERR_OK)
        return refuse_queue(error, problem);
    exchange_suspend(exchange);
    exchange_set_deadline(exchange, job->deadline_ns);
    return ERR_OK;
}

enum error lab_call_finish(struct exchange *exchange, struct problem *problem)
{
    struct lab_call *call = exchange->lab_call;
    enum error error = ERR_OK;
    if (call->body.used <= READ_AT_ONCE_BYTES)
        error = settle(call, problem);
    return error == ERR_OK ? submit(exchange, problem) : error;
}

/* ---- the answer ---------------------------------------------------------------------------- */

enum error lab_call_late(struct exchange *exchange, struct problem *problem)
{
    const uint64_t timeout_ms = loop_http(exchange->loop)->config->job_timeout_ms;
    (void)problem_set(
        problem, ERR_DEADLINE,
        "the experiment was not done within the %llu ms of the setting job_timeout_ms",
        (unsigned long long)timeout_ms);
    return problem_limit(problem, timeout_ms, "job_timeout_ms");
}

static enum error refuse(struct exchange *exchange, enum error error, struct problem *problem)
{
    if (error == ERR_DEADLINE)
        return lab_call_late(exchange, problem);
    if (error == ERR_CLOSED)
        return problem_set(problem, ERR_CLOSED, "the experiment was dropped");
    if (exchange->job_problem.error != error)
        return problem_set(problem, error, "the experiment failed");
    *problem = exchange->job_problem; /* the lab has said why */
    return error;
}

enum error lab_call_resume(struct exchange *exchange, struct problem *problem)
{
    struct lab_call *call = exchange->lab_call;
    enum error error = exchange_job_error(exchange);
    if (error != ERR_OK)
        return refuse(exchange, error, problem);
    text_fini(&exchange->out);
    exchange->out = call->answer;
    text_init(&call->answer);
    struct answer answer = {.status = 200, .content_type = "application/json"};
    answer_header(&answer, "Cache-Control", "no-store");
    return answer_send(exchange, &answer);
}

void lab_call_free(struct lab_call *call)
{
    if (call == NULL)
        return;
    buffer_fini(&call->body);
    lab_request_fini(&call->request);
    text_fini(&call->answer);
    free(call);
}
