/* scrape.c - GET /metrics (see scrape.h).
 *
 * A page is put together in some tenths of a millisecond on the thread that was asked. It takes the
 * lock of each queue and of the pool once, and waits for nobody else: what NVML said last is there.
 */
#include "server/scrape.h"

#include <jansson.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpu/clock.h"
#include "gpu/nvml.h"
#include "proto/oip.h"
#include "server/answer.h"
#include "server/exchange.h"
#include "server/exposition.h"
#include "server/loop.h"
#include "server/oip_metrics.h"
#include "server/route.h"

/* ---- requests ------------------------------------------------------------------------------ */

static uint64_t requests_of(const struct http *http, unsigned route, enum verb verb,
                            enum ending ending)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < http->loop_count; i++)
        sum += metrics_requests(loop_metrics(http->loop[i]), route, verb, ending);
    return sum;
}

/* Several errors may share a code: theirs are added to the first one's. */
static bool is_first_of_code(enum ending ending)
{
    for (int before = 0; before < (int)ending; before++)
        if (ending_code((enum ending)before) == ending_code(ending))
            return false;
    return true;
}

static uint64_t requests_of_code(const struct http *http, unsigned route, enum verb verb, int code)
{
    uint64_t sum = 0;
    for (int ending = 0; ending < ENDING_COUNT; ending++)
        if (ending_code((enum ending)ending) == code)
            sum += requests_of(http, route, verb, (enum ending)ending);
    return sum;
}

static void expose_requests_of(struct exposition *out, const struct http *http, unsigned route,
                               enum verb verb)
{
    const char *path = route < route_count() ? route_path(route) : "other";
    for (int ending = 0; ending < ENDING_COUNT; ending++) {
        int code = ending_code((enum ending)ending);
        char text[16];
        if (!is_first_of_code((enum ending)ending))
            continue;
        uint64_t sum = requests_of_code(http, route, verb, code);
        (void)snprintf(text, sizeof text, "%d", code);
        if (sum > 0)
            expose_count(out, LABELS({"path", path}, {"method", verb_name(verb)}, {"code", text}),
                         sum);
    }
}

static void expose_requests(struct exposition *out, const struct http *http)
{
    expose_family(out, "dotd_http_requests_total", FAMILY_COUNTER,
                  "Requests by the path that serves them, method and status; 499: the client left "
                  "before its answer.");
    for (unsigned route = 0; route <= route_count(); route++)
        for (int verb = 0; verb < VERB_COUNT; verb++)
            expose_requests_of(out, http, route, (enum verb)verb);
}

static uint64_t ended(const struct http *http, enum ending ending, bool dot_only)
{
    uint64_t sum = 0;
    for (unsigned route = 0; route <= route_count(); route++)
        for (int verb = 0; verb < VERB_COUNT; verb++)
            if (!dot_only || (route < route_count() && route_computes_dot(route)))
                sum += requests_of(http, route, (enum verb)verb, ending);
    return sum;
}

struct request_counts scrape_requests(const struct http *http)
{
    struct request_counts counts = {0};
    for (int ending = 0; ending < ENDING_COUNT; ending++) {
        uint64_t count = ended(http, (enum ending)ending, false);
        int code = ending_code((enum ending)ending);
        counts.completed += count;
        if (ending == ENDING_LEFT)
            counts.clients_left += count;
        else if (code >= 500)
            counts.answers_5xx += count;
        else if (code >= 400)
            counts.answers_4xx += count;
        else
            counts.answers_2xx += count;
    }
    return counts;
}

static void expose_refusals(struct exposition *out, const struct http *http)
{
    expose_family(out, "dotd_refusals_total", FAMILY_COUNTER,
                  "Requests that were answered with a problem, by its name.");
    for (int error = ERR_OK + 1; error < ERROR_COUNT; error++)
        expose_count(out, LABELS({"reason", error_name((enum error)error)}),
                     ended(http, (enum ending)error, false));
}

/* As the Open Inference Protocol's servers tell how requests for inference end. */
#define OUTCOME_MAP(X) X(success) X(rejected) X(timeout) X(canceled) X(invalid) X(error)

enum outcome {
#define X(outcome) OUTCOME_##outcome,
    OUTCOME_MAP(X)
#undef X
        OUTCOME_COUNT
};

static const char *const outcome_names[] = {
#define X(outcome) #outcome,
    OUTCOME_MAP(X)
#undef X
};

static enum outcome outcome_of(enum ending ending)
{
    int code = ending_code(ending);
    if (ending == ENDING_LEFT)
        return OUTCOME_canceled;
    if (code == 408 || code == 504)
        return OUTCOME_timeout;
    if (code == 503)
        return OUTCOME_rejected;
    return code >= 500 ? OUTCOME_error : code >= 400 ? OUTCOME_invalid : OUTCOME_success;
}

static void expose_outcomes(struct exposition *out, const struct http *http)
{
    uint64_t sum[OUTCOME_COUNT] = {0};
    for (int ending = 0; ending < ENDING_COUNT; ending++)
        sum[outcome_of((enum ending)ending)] += ended(http, (enum ending)ending, true);
    expose_family(out, "dotd_inference_requests_total", FAMILY_COUNTER,
                  "Requests for dot products, by how they ended.");
    for (int i = 0; i < OUTCOME_COUNT; i++)
        expose_count(out, LABELS({"outcome", outcome_names[i]}), sum[i]);
}

/* The same for each model of the Open Inference Protocol, and the results of those that
 * succeeded. */
static void expose_models(struct exposition *out, const struct http *http)
{
    uint64_t sum[OIP_MODELS][OUTCOME_COUNT] = {{0}};
    struct oip_tally tally[OIP_MODELS] = {{0}};
    for (unsigned model = 0; model < OIP_MODELS; model++)
        for (unsigned i = 0; i < http->loop_count; i++) {
            const struct oip_metrics *metrics = metrics_oip(loop_metrics(http->loop[i]));
            oip_metrics_collect(metrics, model, &tally[model]);
            for (int ending = 0; ending < ENDING_COUNT; ending++)
                sum[model][outcome_of((enum ending)ending)] +=
                    oip_metrics_endings(metrics, model, (enum ending)ending);
        }
    expose_family(out, "dotd_model_requests_total", FAMILY_COUNTER,
                  "Inferences of the Open Inference Protocol, by how they ended.");
    for (unsigned model = 0; model < OIP_MODELS; model++)
        for (int i = 0; i < OUTCOME_COUNT; i++)
            expose_count(out,
                         LABELS({"model", oip_model(model)->name}, {"version", OIP_VERSION},
                                {"outcome", outcome_names[i]}),
                         sum[model][i]);
    expose_family(out, "dotd_model_results_total", FAMILY_COUNTER,
                  "Dot products in those that succeeded.");
    for (unsigned model = 0; model < OIP_MODELS; model++)
        expose_count(out, LABELS({"model", oip_model(model)->name}, {"version", OIP_VERSION}),
                     tally[model].results);
}

/* ---- stages -------------------------------------------------------------------------------- */

struct histogram_tally scrape_stage(const struct http *http, enum stage stage)
{
    struct histogram_tally sum = {.count = 0};
    for (unsigned i = 0; i < http->loop_count; i++)
        metrics_stage(loop_metrics(http->loop[i]), stage, &sum);
    return sum;
}

static void expose_stages(struct exposition *out, const struct http *http)
{
    static const struct {
        const char *name, *help;
    } families[STAGE_COUNT] = {
        [STAGE_receive] = {"dotd_receive_duration_seconds", "Waiting for a body to arrive."},
        [STAGE_decode] = {"dotd_decode_duration_seconds", "Reading it."},
        [STAGE_queue] = {"dotd_queue_duration_seconds",
                         "Waiting for the device, and being handed over."},
        [STAGE_copy_in] = {"dotd_compute_input_duration_seconds",
                           "Copying operands to the device."},
        [STAGE_compute] = {"dotd_compute_duration_seconds", "Computing."},
        [STAGE_copy_out] = {"dotd_compute_output_duration_seconds",
                            "Copying results from the device."},
        [STAGE_total] = {"dotd_inference_duration_seconds",
                         "From the first byte of the body to the answer being ready: all stages."},
    };
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        struct histogram_tally sum = scrape_stage(http, (enum stage)stage);
        expose_family(out, families[stage].name, FAMILY_HISTOGRAM, families[stage].help);
        expose_durations(out, &sum);
    }
}

/* ---- connections and bodies ---------------------------------------------------------------- */

static void expose_gauge(struct exposition *out, const char *name, const char *help, uint64_t value)
{
    expose_family(out, name, FAMILY_GAUGE, help);
    expose_count(out, LABELS(), value);
}

static void expose_counter(struct exposition *out, const char *name, const char *help,
                           uint64_t value)
{
    expose_family(out, name, FAMILY_COUNTER, help);
    expose_count(out, LABELS(), value);
}

struct loop_stats scrape_loops(const struct http *http)
{
    struct loop_stats sum = {0};
    for (unsigned i = 0; i < http->loop_count; i++) {
        struct loop_stats stats = loop_stats(http->loop[i]);
        sum.connections += stats.connections;
        sum.connections_total += stats.connections_total;
        sum.exchanges += stats.exchanges;
    }
    return sum;
}

static void expose_traffic(struct exposition *out, const struct http *http)
{
    struct loop_stats open = scrape_loops(http);
    struct body_bytes bodies = {0};
    for (unsigned i = 0; i < http->loop_count; i++)
        metrics_bodies(loop_metrics(http->loop[i]), &bodies);
    expose_gauge(out, "dotd_connections", "Connections that are open.", open.connections);
    expose_counter(out, "dotd_connections_accepted_total", "Connections that were opened.",
                   open.connections_total);
    expose_gauge(out, "dotd_inflight_requests", "Requests begun and not yet over, this one too.",
                 open.exchanges);
    expose_counter(out, "dotd_request_body_bytes_total", "Bodies of requests that are over.",
                   bodies.received);
    expose_counter(out, "dotd_response_body_bytes_total", "Bodies of answers that are over.",
                   bodies.sent);
    expose_counter(out, "dotd_clients_left_total", "Clients that left before their answer.",
                   ended(http, ENDING_LEFT, false));
}

/* ---- devices ------------------------------------------------------------------------------- */

struct device {
    struct device_info info;
    struct device_counts counts;
};

struct devices {
    struct device *device; /* owned; [count] */
    int count;
};

static bool devices_read(struct gpu *gpu, struct devices *ret)
{
    int count = gpu_device_count(gpu);
    struct device *device = calloc((size_t)count, sizeof *device);
    if (device == NULL)
        return false;
    for (int i = 0; i < count; i++)
        device[i] = (struct device){gpu_device_info(gpu, i), gpu_device_counts(gpu, i)};
    *ret = (struct devices){device, count};
    return true;
}

static void expose_device_info(struct exposition *out, const struct devices *all)
{
    expose_family(out, "dotd_device_info", FAMILY_GAUGE,
                  "Devices that compute, and their kernels of fast sums; always 1.");
    for (int i = 0; i < all->count; i++) {
        const struct device_info *info = &all->device[i].info;
        expose_count(
            out, LABELS({"device", info->id}, {"name", info->name}, {"kernel", info->kernel}), 1);
    }
}

static void expose_device_counts(struct exposition *out, const struct devices *all)
{
#define X(field, name, type, help)                 \
    expose_family(out, name, FAMILY_##type, help); \
    for (int i = 0; i < all->count; i++)           \
        expose_count(out, LABELS({"device", all->device[i].info.id}), all->device[i].counts.field);
    DEVICE_MAP(X)
#undef X
}

static void expose_batches(struct exposition *out, const struct devices *all)
{
    expose_family(out, "dotd_batch_size", FAMILY_HISTOGRAM, "Jobs in a batch.");
    for (int i = 0; i < all->count; i++) {
        const struct device_counts *counts = &all->device[i].counts;
        expose_sizes(out, (struct label){"device", all->device[i].info.id}, counts->batches_by_size,
                     GPU_BATCH_BOUNDS, counts->jobs_total);
    }
}

/* Where requests were placed in the end, and how exactly they wanted it. */
static void expose_placements(struct exposition *out, const struct http *http,
                              const struct devices *all, const char *name, const char *help,
                              bool results)
{
    static const struct {
        enum accuracy accuracy;
        const char *name;
    } kinds[] = {{ACCURACY_EXACT, "exact"}, {ACCURACY_FAST, "fast"}};
    expose_family(out, name, FAMILY_COUNTER, help);
    for (int device = 0; device < all->count; device++)
        for (int kind = 0; kind < 2; kind++) {
            struct computed_counts sum = {0};
            for (unsigned i = 0; i < http->loop_count; i++)
                metrics_computed(loop_metrics(http->loop[i]), device, kinds[kind].accuracy, &sum);
            expose_count(
                out,
                LABELS({"device", all->device[device].info.id}, {"accuracy", kinds[kind].name}),
                results ? sum.results : sum.requests);
        }
}

static bool expose_devices(struct exposition *out, const struct http *http)
{
    struct devices all;
    struct problem unused;
    if (!devices_read(http->gpu, &all))
        return false;
    expose_device_info(out, &all);
    expose_gauge(out, "dotd_devices_failed", "Devices that did not open, or were lost since.",
                 (uint64_t)gpu_devices_failed(http->gpu, &unused));
    expose_device_counts(out, &all);
    expose_batches(out, &all);
    expose_placements(out, http, &all, "dotd_placements_total",
                      "Requests that were computed, by device and accuracy.", false);
    expose_placements(out, http, &all, "dotd_inferences_total",
                      "Dot products that were computed, by device and accuracy.", true);
    free(all.device);
    return true;
}

/* ---- devices as their driver sees them ----------------------------------------------------- */

static void expose_gpu(struct exposition *out, const struct nvml_reading *reading, const char *name,
                       const char *help, enum nvml_known bit,
                       void (*expose)(struct exposition *, const struct label *,
                                      const struct nvml_device *))
{
    bool is_named = false;
    for (int i = 0; i < reading->device_count; i++) {
        const struct nvml_device *device = &reading->device[i];
        if (!(device->known & bit))
            continue;
        if (!is_named)
            expose_family(out, name, FAMILY_GAUGE, help);
        is_named = true;
        expose(out, LABELS({"gpu_uuid", device->uuid}), device);
    }
}

static void gpu_used(struct exposition *out, const struct label *labels,
                     const struct nvml_device *device)
{
    expose_count(out, labels, device->memory_used_bytes);
}

static void gpu_size(struct exposition *out, const struct label *labels,
                     const struct nvml_device *device)
{
    expose_count(out, labels, device->memory_size_bytes);
}

static void gpu_utilization(struct exposition *out, const struct label *labels,
                            const struct nvml_device *device)
{
    expose_fixed(out, labels, device->utilization_percent, 2);
}

static void gpu_temperature(struct exposition *out, const struct label *labels,
                            const struct nvml_device *device)
{
    expose_count(out, labels, device->temperature_celsius);
}

static void gpu_power(struct exposition *out, const struct label *labels,
                      const struct nvml_device *device)
{
    expose_fixed(out, labels, device->power_milliwatts, 3);
}

/* Errors are named by kind, and may be known of one kind only. */
static void expose_ecc(struct exposition *out, const struct nvml_reading *reading)
{
    unsigned known = 0;
    for (int i = 0; i < reading->device_count; i++)
        known |= reading->device[i].known;
    if (known & (NVML_ECC_CORRECTED | NVML_ECC_UNCORRECTED))
        expose_family(out, "dotd_gpu_ecc_errors_total", FAMILY_COUNTER,
                      "Errors of its memory since the driver was loaded.");
    for (int i = 0; i < reading->device_count; i++) {
        const struct nvml_device *device = &reading->device[i];
        if (device->known & NVML_ECC_CORRECTED)
            expose_count(out, LABELS({"gpu_uuid", device->uuid}, {"type", "corrected"}),
                         device->ecc_corrected);
        if (device->known & NVML_ECC_UNCORRECTED)
            expose_count(out, LABELS({"gpu_uuid", device->uuid}, {"type", "uncorrected"}),
                         device->ecc_uncorrected);
    }
}

static void expose_gpu_names(struct exposition *out, const struct nvml_reading *reading)
{
    if (reading->device_count > 0)
        expose_family(out, "dotd_gpu_info", FAMILY_GAUGE,
                      "NVIDIA's devices of this machine, used here or not; always 1.");
    for (int i = 0; i < reading->device_count; i++)
        expose_count(
            out, LABELS({"gpu_uuid", reading->device[i].uuid}, {"name", reading->device[i].name}),
            1);
}

/* One label alone on what perf_analyzer reads: a further one hides a value from it. */
static void expose_gpus(struct exposition *out, const struct http *http)
{
    struct nvml_reading reading = {.state = NVML_ABSENT};
    if (http->nvml != NULL)
        nvml_read(http->nvml, &reading);
    if (reading.state == NVML_ABSENT)
        return;
    expose_gauge(out, "dotd_nvml_up", "1 when NVML told of the devices when it was last asked.",
                 reading.state == NVML_TOLD);
    expose_family(out, "dotd_nvml_age_seconds", FAMILY_GAUGE,
                  "Since NVML last answered; much more than a few seconds: it hangs.");
    expose_fixed(out, LABELS(), (uint64_t)(clock_ns() - reading.asked_ns) / 1000000, 3);
    expose_gpu_names(out, &reading);
    expose_gpu(out, &reading, "dotd_gpu_memory_used_bytes", "Memory in use, by any process.",
               NVML_MEMORY, gpu_used);
    expose_gpu(out, &reading, "dotd_gpu_memory_size_bytes", "Memory of the device.", NVML_MEMORY,
               gpu_size);
    expose_gpu(out, &reading, "dotd_gpu_utilization_ratio",
               "Part of the last moment in which some kernel ran.", NVML_UTILIZATION,
               gpu_utilization);
    expose_gpu(out, &reading, "dotd_gpu_temperature_celsius", "Temperature of the device.",
               NVML_TEMPERATURE, gpu_temperature);
    expose_gpu(out, &reading, "dotd_gpu_power_watts", "Power that it draws.", NVML_POWER,
               gpu_power);
    expose_ecc(out, &reading);
}

/* ---- this process -------------------------------------------------------------------------- */

static void expose_memory(struct exposition *out, struct http *http)
{
    struct gpu_memory memory = gpu_memory(http->gpu);
    expose_gauge(out, "dotd_memory_budget_bytes", "What operands may take altogether.",
                 memory.budget_bytes);
    expose_family(out, "dotd_memory_used_bytes", FAMILY_GAUGE,
                  "Of the budget: operands, and answers that clients have not read.");
    expose_count(out, LABELS({"kind", "operands"}), memory.used_bytes);
    expose_count(out, LABELS({"kind", "answers"}), atomic_load(&http->answer_bytes));
    expose_gauge(out, "dotd_memory_pinned_bytes", "Memory that devices read in place.",
                 memory.pinned_bytes);
    expose_gauge(out, "dotd_memory_pinned_used_bytes", "Of it: in use.", memory.pinned_used_bytes);
}

static void expose_state(struct exposition *out, const struct http *http)
{
    expose_family(out, "dotd_build_info", FAMILY_GAUGE, "What this is; always 1.");
    expose_count(out,
                 LABELS({"version", DOTD_VERSION}, {"libmicrohttpd", MHD_get_version()},
                        {"jansson", jansson_version_str()}),
                 1);
    expose_gauge(out, "dotd_ready", "1 when /readyz says yes.",
                 atomic_load(&http->is_ready) && !atomic_load(&http->is_draining));
    expose_gauge(out, "dotd_worker_generation", "Which of its supervisor's workers this is.",
                 http->lineage.generation);
    expose_counter(out, "dotd_worker_restarts_total",
                   "Workers that were lost; those replaced on request do not count.",
                   http->lineage.restarts_total);
}

/* Microseconds of processor time, in user and kernel. */
static uint64_t cpu_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail for oneself */
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Source: proc(5), statm: all pages, then those that are resident. */
static bool read_pages(uint64_t *ret_all, uint64_t *ret_resident)
{
    unsigned long long all, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return false;
    bool ok = fscanf(file, "%llu %llu", &all, &resident) == 2;
    (void)fclose(file);
    if (!ok)
        return false;
    *ret_all = all;
    *ret_resident = resident;
    return true;
}

/* Under the names that Prometheus's own libraries give them. */
static void expose_process(struct exposition *out, const struct http *http)
{
    uint64_t all, resident, page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    expose_family(out, "process_cpu_seconds_total", FAMILY_COUNTER,
                  "Processor time of the worker.");
    expose_fixed(out, LABELS(), cpu_us(), 6);
    if (read_pages(&all, &resident)) {
        expose_gauge(out, "process_virtual_memory_bytes", "Its address space.", all * page_bytes);
        expose_gauge(out, "process_resident_memory_bytes", "Its memory.", resident * page_bytes);
    }
    expose_family(out, "process_start_time_seconds", FAMILY_GAUGE,
                  "When it began, in seconds since 1970.");
    expose_fixed(out, LABELS(), (uint64_t)http->started_unix_ms, 3);
}

/* ---- the page ------------------------------------------------------------------------------ */

enum error page_metrics(struct exchange *exchange, struct problem *problem)
{
    struct http *http = loop_http(exchange->loop);
    struct exposition out = {.text = &exchange->out};
    (void)problem;
    text_clear(&exchange->out);
    expose_state(&out, http);
    expose_requests(&out, http);
    expose_outcomes(&out, http);
    expose_models(&out, http);
    expose_refusals(&out, http);
    expose_traffic(&out, http);
    expose_stages(&out, http);
    if (!expose_devices(&out, http))
        return ERR_NOMEM;
    expose_gpus(&out, http);
    expose_memory(&out, http);
    expose_process(&out, http);
    struct answer answer = {.status = 200, .content_type = EXPOSITION_TYPE};
    answer_header(&answer, "Cache-Control", "no-store");
    return answer_send(exchange, &answer);
}
