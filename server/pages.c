/* pages.c - probes, status, limits, problems and the front page (see pages.h). */
#include "server/pages.h"

#include <jansson.h>
#include <microhttpd.h>
#include <string.h>

#include "gpu/clock.h"
#include "server/answer.h"
#include "server/console.h"
#include "server/exchange.h"
#include "server/loop.h"
#include "server/route.h"
#include "server/scrape.h"

static struct http *http_of(const struct exchange *exchange)
{
    return loop_http(exchange->loop);
}

enum state { STATE_STARTING, STATE_READY, STATE_DRAINING };

static enum state state_of(const struct exchange *exchange)
{
    if (exchange_is_draining(exchange))
        return STATE_DRAINING;
    return atomic_load(&http_of(exchange)->is_ready) ? STATE_READY : STATE_STARTING;
}

enum error page_livez(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    return answer_send_json(exchange, 200, json_pack("{s:b}", "live", 1));
}

enum error page_readyz(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    static const char *const reasons[] = {
        [STATE_STARTING] = "the self-test is running", [STATE_DRAINING] = "draining"};
    enum state state = state_of(exchange);
    if (state == STATE_READY)
        return answer_send_json(exchange, 200, json_pack("{s:b}", "ready", 1));
    return answer_send_json(exchange, 503,
                            json_pack("{s:b, s:s}", "ready", 0, "reason", reasons[state]));
}

static json_t *bytes_or_never(uint64_t bytes)
{
    return bytes != UINT64_MAX ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *describe_speed(const struct device_speed *speed, bool is_cuda)
{
    json_t *document =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "fixed_ns", (json_int_t)speed->fixed_ns, "row_ns",
                  (json_int_t)speed->row_ns, "mb_s", (json_int_t)speed->mb_s, "unpinned_mb_s",
                  (json_int_t)speed->unpinned_mb_s, "products_us", (json_int_t)speed->products_us);
    if (document != NULL && is_cuda) {
        (void)json_object_set_new(document, "from_bytes", bytes_or_never(speed->from_bytes));
        (void)json_object_set_new(document, "from_unpinned_bytes",
                                  bytes_or_never(speed->from_unpinned_bytes));
    }
    return document;
}

/* By type, then by accuracy; of integers exact alone. NULL: not measured. */
static json_t *describe_speeds(struct gpu *gpu, int device)
{
    const bool is_cuda = gpu_device_info(gpu, device).is_cuda;
    struct device_speed exact, fast;
    json_t *speeds = NULL;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const enum dtype dtype = (enum dtype)i;
        if (!gpu_device_speed(gpu, device, dtype, ACCURACY_EXACT, &exact) ||
            !gpu_device_speed(gpu, device, dtype, ACCURACY_FAST, &fast))
            return NULL; /* as are all others then */
        json_t *both = json_pack("{s:o}", "exact", describe_speed(&exact, is_cuda));
        if (both != NULL && !dtype_is_integer(dtype))
            (void)json_object_set_new(both, "fast", describe_speed(&fast, is_cuda));
        if (speeds == NULL)
            speeds = json_object();
        (void)json_object_set_new(speeds, dtype_name(dtype), both);
    }
    return speeds;
}

static json_t *describe_device(const struct device_info *info, const struct device_counts *counts)
{
    json_t *device = json_pack("{s:s, s:s, s:s, s:I}", "id", info->id, "name", info->name, "kernel",
                               info->kernel, "multiprocessors", (json_int_t)info->multiprocessors);
#define X(field, ...) \
    (void)json_object_set_new(device, #field, json_integer((json_int_t)counts->field));
    DEVICE_MAP(X)
#undef X
    if (device != NULL && info->is_cuda) {
        (void)json_object_set_new(device, "memory_bytes",
                                  json_integer((json_int_t)info->memory_bytes));
        (void)json_object_set_new(
            device, "capability",
            json_sprintf("%u.%u", info->capability / 10, info->capability % 10));
    }
    return device;
}

static json_t *describe_devices(struct gpu *gpu)
{
    json_t *devices = json_array();
    for (int i = 0; i < gpu_device_count(gpu); i++) {
        struct device_info info = gpu_device_info(gpu, i);
        struct device_counts counts = gpu_device_counts(gpu, i);
        json_t *device = describe_device(&info, &counts), *speeds = describe_speeds(gpu, i);
        if (speeds != NULL)
            (void)json_object_set_new(device, "speed", speeds);
        (void)json_array_append_new(devices, device);
    }
    return devices;
}

enum error page_devices(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    struct gpu *gpu = http_of(exchange)->gpu;
    struct problem failure;
    json_t *document = json_pack("{s:o}", "devices", describe_devices(gpu));
    int failed = gpu_devices_failed(gpu, &failure);
    if (document != NULL && failed > 0) {
        (void)json_object_set_new(document, "failed", json_integer(failed));
        (void)json_object_set_new(document, "failure", json_string(failure.detail));
    }
    return answer_send_json(exchange, 200, document);
}

static json_t *describe_requests(const struct http *http, unsigned in_flight)
{
    struct request_counts counts = scrape_requests(http);
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I}", "completed_total", (json_int_t)counts.completed,
        "in_flight", (json_int_t)in_flight, "answers_2xx_total", (json_int_t)counts.answers_2xx,
        "answers_4xx_total", (json_int_t)counts.answers_4xx, "answers_5xx_total",
        (json_int_t)counts.answers_5xx, "clients_left_total", (json_int_t)counts.clients_left);
}

static json_t *describe_memory(struct http *http)
{
    struct gpu_memory memory = gpu_memory(http->gpu);
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "answer_bytes",
                     (json_int_t)atomic_load(&http->answer_bytes), "budget_bytes",
                     (json_int_t)memory.budget_bytes, "used_bytes", (json_int_t)memory.used_bytes,
                     "pinned_bytes", (json_int_t)memory.pinned_bytes, "pinned_used_bytes",
                     (json_int_t)memory.pinned_used_bytes);
}

/* What a client may know of the processes: which worker this is, and why the one before it went. */
static json_t *describe_worker(const struct lineage *lineage)
{
    json_t *reason =
        lineage->last_reason[0] != '\0' ? json_string(lineage->last_reason) : json_null();
    return json_pack("{s:I, s:I, s:o}", "generation", (json_int_t)lineage->generation,
                     "restarts_total", (json_int_t)lineage->restarts_total, "last_reason", reason);
}

static json_int_t quantile_us(const struct histogram_tally *tally, unsigned percent)
{
    return histogram_quantile_ns(tally, percent) / 1000;
}

/* Latencies of requests that were computed; quantiles are as fine as the buckets. */
static json_t *describe_stages(const struct http *http)
{
    json_t *stages = json_object();
    for (int i = 0; i < STAGE_COUNT; i++) {
        struct histogram_tally tally = scrape_stage(http, (enum stage)i);
        (void)json_object_set_new(
            stages, stage_name((enum stage)i),
            json_pack("{s:I, s:I, s:I, s:I}", "count", (json_int_t)tally.count, "p50_us",
                      quantile_us(&tally, 50), "p90_us", quantile_us(&tally, 90), "p99_us",
                      quantile_us(&tally, 99)));
    }
    return stages;
}

static json_t *describe_lab(struct lab *lab)
{
    struct lab_counts counts = lab_counts(lab);
    return json_pack("{s:I, s:I, s:I}", "queued_jobs", (json_int_t)counts.queued_jobs, "jobs_total",
                     (json_int_t)counts.jobs_total, "rejected_total",
                     (json_int_t)counts.rejected_total);
}

enum error page_status(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    static const char *const states[] = {
        [STATE_STARTING] = "starting", [STATE_READY] = "ready", [STATE_DRAINING] = "draining"};
    struct http *http = http_of(exchange);
    struct loop_stats stats = scrape_loops(http);
    json_t *document = json_pack(
        "{s:s, s:I, s:o, s:{s:s, s:s, s:s}, s:o, s:{s:I, s:I}, s:o, s:o, s:o, s:o}", "state",
        states[state_of(exchange)], "uptime_ms",
        (json_int_t)((clock_ns() - http->started_ns) / 1000000), "worker",
        describe_worker(&http->lineage), "versions", "dotd", DOTD_VERSION, "libmicrohttpd",
        MHD_get_version(), "jansson", JANSSON_VERSION, "requests",
        describe_requests(http, stats.exchanges), "connections", "open",
        (json_int_t)stats.connections, "accepted_total", (json_int_t)stats.connections_total,
        "memory", describe_memory(http), "stages", describe_stages(http), "lab",
        describe_lab(http->lab), "devices", describe_devices(http->gpu));
    return answer_send_json(exchange, 200, document);
}

static void add_limit(void *context, const char *name, uint64_t value)
{
    (void)json_object_set_new(context, name, json_integer((json_int_t)value));
}

enum error page_limits(struct exchange *exchange, struct problem *problem)
{
    (void)problem;
    json_t *settings = json_object(), *fixed = json_object();
    config_each_number(http_of(exchange)->config, add_limit, settings);
#define X(limit, name, ...) add_limit(fixed, #name, limit);
    LIMIT_MAP(X)
#undef X
    return answer_send_json(exchange, 200,
                            json_pack("{s:o, s:o}", "settings", settings, "fixed", fixed));
}

static enum error list_problems(struct exchange *exchange)
{
    json_t *list = json_array();
    for (enum error error = ERR_OK + 1; error < ERROR_COUNT; error++)
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "name", error_name(error),
                                                    "status", error_status(error), "title",
                                                    error_title(error)));
    return answer_send_json(exchange, 200, json_pack("{s:o}", "problems", list));
}

enum error page_problem(struct exchange *exchange, struct problem *problem)
{
    const char *name = exchange->target + strlen("/problems/");
    if (*name == '\0')
        return list_problems(exchange);
    enum error error = error_from_name(name);
    if (error == ERR_OK)
        return problem_set(problem, ERR_NOT_FOUND,
                           "no problem is called \"%s\"; /problems/ lists them", name);
    return answer_send_json(exchange, 200,
                            json_pack("{s:s+, s:i, s:s, s:s}", "type", "/problems/",
                                      error_name(error), "status", error_status(error), "title",
                                      error_title(error), "text", error_text(error)));
}

/* Every path that is served, a call about some model with its "{model}"; this page itself aside. */
static json_t *list_paths(const struct config *config)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < route_count(); i++)
        if (route_is_listed(config, i) && strcmp(route_path(i), "/") != 0)
            (void)json_array_append_new(list, json_string(route_path(i)));
    return list;
}

enum error page_index(struct exchange *exchange, struct problem *problem)
{
    if (console_is_wanted(exchange))
        return console_page(exchange, problem);
    struct answer answer = {.status = 200};
    answer_header(&answer, "Vary", "Accept");
    const char *host = MHD_lookup_connection_value(exchange->mhd, MHD_HEADER_KIND, "Host");
    static const char format[] = "curl -d '{\"a\":[1,2,3],\"b\":[4,5,6]}' http://%s/v1/dot";
    json_t *example = json_sprintf(format, host != NULL ? host : "127.0.0.1:8080");
    if (example == NULL) /* a Host that is not UTF-8 */
        example = json_sprintf(format, "127.0.0.1:8080");
    return answer_send_json_as(exchange, &answer,
                               json_pack("{s:s, s:s, s:o, s:o}", "service", "dotd", "version",
                                         DOTD_VERSION, "try", example, "see",
                                         list_paths(http_of(exchange)->config)));
}
