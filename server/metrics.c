/* metrics.c - what one HTTP thread counts (see metrics.h). */
#include "server/metrics.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/exchange.h"
#include "server/oip_metrics.h"
#include "server/route.h"

/* One thread writes, any reads; relaxed. */
struct computed {
    atomic_ullong requests, results;
};

enum { ACCURACIES = 2 }; /* ACCURACY_FAST, ACCURACY_EXACT */

struct metrics {
    int device_count;                                   /* fixed */
    struct oip_metrics *oip;                            /* fixed; owned */
    struct computed *computed;                          /* fixed; [device_count][ACCURACIES] */
    struct histogram stage[STAGE_COUNT];                /* see histogram.h */
    atomic_ullong received_bytes, sent_bytes;           /* as struct computed */
    atomic_ullong (*request)[VERB_COUNT][ENDING_COUNT]; /* likewise; [route_count() + 1] */
};

bool metrics_create(struct metrics **ret, int device_count)
{
    struct metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL)
        return false;
    metrics->device_count = device_count;
    metrics->computed = calloc((size_t)device_count * ACCURACIES, sizeof *metrics->computed);
    metrics->request = calloc(route_count() + 1, sizeof *metrics->request);
    if (metrics->computed == NULL || metrics->request == NULL ||
        !oip_metrics_create(&metrics->oip)) {
        metrics_destroy(metrics);
        return false;
    }
    *ret = metrics;
    return true;
}

void metrics_destroy(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    oip_metrics_destroy(metrics->oip);
    free(metrics->computed);
    free(metrics->request);
    free(metrics);
}

/* ---- names --------------------------------------------------------------------------------- */

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGE_COUNT] = {
#define X(name) [STAGE_##name] = #name,
        TIMING_MAP(X)
#undef X
            [STAGE_total] = "total"};
    return names[stage];
}

int ending_code(enum ending ending)
{
    if (ending == ENDING_LEFT)
        return STATUS_LEFT;
    if (ending == ENDING_NOT_MODIFIED)
        return 304;
    return ending == ENDING_NOT_READY ? 503 : error_status((enum error)ending);
}

const char *verb_name(enum verb verb)
{
    static const char *const names[VERB_COUNT] = {
        [VERB_GET] = "GET", [VERB_HEAD] = "HEAD", [VERB_POST] = "POST", [VERB_OTHER] = "other"};
    return names[verb];
}

/* ---- counting ------------------------------------------------------------------------------ */

/* Only the loop's thread writes, so nothing can come between the load and the store. */
static void add(atomic_ullong *counter, uint64_t more)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + more, memory_order_relaxed);
}

static enum ending ending_of(const struct exchange *exchange)
{
    enum error error = exchange->problem.error;
    if (exchange->status == STATUS_LEFT)
        return ENDING_LEFT;
    if (exchange->status == 304)
        return ENDING_NOT_MODIFIED;
    if (exchange->status < 400)
        return (enum ending)ERR_OK;
    return exchange->status == error_status(error) ? (enum ending)error : ENDING_NOT_READY;
}

static enum verb verb_of(enum method method)
{
    return method == METHOD_POST   ? VERB_POST
           : method == METHOD_GET  ? VERB_GET
           : method == METHOD_HEAD ? VERB_HEAD
                                   : VERB_OTHER;
}

void metrics_count_request(struct metrics *metrics, const struct exchange *exchange)
{
    enum verb verb = verb_of(exchange->method);
    enum ending ending = ending_of(exchange);
    add(&metrics->request[route_index(exchange->target)][verb][ending], 1);
    add(&metrics->received_bytes, exchange->body_bytes);
    if (ending != ENDING_LEFT && verb != VERB_HEAD)
        add(&metrics->sent_bytes, exchange->out.size);
    if (exchange->oip.model != NULL)
        oip_metrics_ended(metrics->oip, oip_model_index(exchange->oip.model), ending);
}

struct oip_metrics *metrics_oip(const struct metrics *metrics)
{
    return metrics->oip;
}

static struct computed *computed_of(const struct metrics *metrics, int device,
                                    enum accuracy accuracy)
{
    assert(device >= 0 && device < metrics->device_count && accuracy != ACCURACY_DEFAULT);
    return &metrics->computed[device * ACCURACIES + (accuracy == ACCURACY_EXACT)];
}

void metrics_count_computed(struct metrics *metrics, const struct timing *timing, int device,
                            enum accuracy accuracy, uint64_t result_count)
{
    struct computed *computed = computed_of(metrics, device, accuracy);
    add(&computed->requests, 1);
    add(&computed->results, result_count);
#define X(name) histogram_add(&metrics->stage[STAGE_##name], timing->name##_ns);
    TIMING_MAP(X)
#undef X
    histogram_add(&metrics->stage[STAGE_total], timing_total_ns(timing));
}

/* ---- adding up ----------------------------------------------------------------------------- */

static uint64_t value_of(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

uint64_t metrics_requests(const struct metrics *metrics, unsigned route, enum verb verb,
                          enum ending ending)
{
    return value_of(&metrics->request[route][verb][ending]);
}

void metrics_computed(const struct metrics *metrics, int device, enum accuracy accuracy,
                      struct computed_counts *sum)
{
    const struct computed *computed = computed_of(metrics, device, accuracy);
    sum->requests += value_of(&computed->requests);
    sum->results += value_of(&computed->results);
}

void metrics_bodies(const struct metrics *metrics, struct body_bytes *sum)
{
    sum->received += value_of(&metrics->received_bytes);
    sum->sent += value_of(&metrics->sent_bytes);
}

void metrics_stage(const struct metrics *metrics, enum stage stage, struct histogram_tally *sum)
{
    histogram_collect(&metrics->stage[stage], sum);
}
