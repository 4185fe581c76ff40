/* oip_metrics.c - what one HTTP thread counts of each model's inferences (see oip_metrics.h). */
#include "server/oip_metrics.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "proto/oip.h"

/* A job's part of a batch, in 2^-32 of one. */
#define WHOLE_BATCH (UINT64_C(1) << 32)

/* One thread writes, any reads; relaxed. */
struct oip_metrics {
    struct {
        atomic_ullong requests, results, shares;
        atomic_ullong queue_ns, input_ns, compute_ns, output_ns, total_ns;
        atomic_ullong last_unix_ms;
        atomic_ullong ending[ENDING_COUNT];
    } model[OIP_MODELS];
};

bool oip_metrics_create(struct oip_metrics **ret)
{
    struct oip_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL)
        return false;
    *ret = metrics;
    return true;
}

void oip_metrics_destroy(struct oip_metrics *metrics)
{
    free(metrics);
}

static uint64_t value_of(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Only the loop's thread writes, so nothing can come between the load and the store. */
static void add(atomic_ullong *counter, uint64_t more)
{
    atomic_store_explicit(counter, value_of(counter) + more, memory_order_relaxed);
}

static uint64_t unix_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now); /* cannot fail for a clock that exists */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void oip_metrics_computed(struct oip_metrics *metrics, unsigned model, const struct timing *timing,
                          uint32_t batch_size, uint64_t result_count)
{
    add(&metrics->model[model].requests, 1);
    add(&metrics->model[model].results, result_count);
    add(&metrics->model[model].shares, WHOLE_BATCH / (batch_size > 0 ? batch_size : 1));
    add(&metrics->model[model].queue_ns, (uint64_t)timing->queue_ns);
    add(&metrics->model[model].input_ns, (uint64_t)(timing->decode_ns + timing->copy_in_ns));
    add(&metrics->model[model].compute_ns, (uint64_t)timing->compute_ns);
    add(&metrics->model[model].output_ns, (uint64_t)timing->copy_out_ns);
    add(&metrics->model[model].total_ns, (uint64_t)timing_total_ns(timing));
    atomic_store_explicit(&metrics->model[model].last_unix_ms, unix_ms(), memory_order_relaxed);
}

void oip_metrics_ended(struct oip_metrics *metrics, unsigned model, enum ending ending)
{
    add(&metrics->model[model].ending[ending], 1);
}

uint64_t oip_metrics_endings(const struct oip_metrics *metrics, unsigned model, enum ending ending)
{
    return value_of(&metrics->model[model].ending[ending]);
}

void oip_metrics_collect(const struct oip_metrics *metrics, unsigned model, struct oip_tally *sum)
{
    uint64_t last = value_of(&metrics->model[model].last_unix_ms);
    sum->requests += value_of(&metrics->model[model].requests);
    sum->results += value_of(&metrics->model[model].results);
    sum->executions += (value_of(&metrics->model[model].shares) + WHOLE_BATCH - 1) / WHOLE_BATCH;
    sum->queue_ns += value_of(&metrics->model[model].queue_ns);
    sum->input_ns += value_of(&metrics->model[model].input_ns);
    sum->compute_ns += value_of(&metrics->model[model].compute_ns);
    sum->output_ns += value_of(&metrics->model[model].output_ns);
    sum->total_ns += value_of(&metrics->model[model].total_ns);
    sum->last_unix_ms = last > sum->last_unix_ms ? last : sum->last_unix_ms;
    for (int ending = ERR_OK + 1; ending < ENDING_COUNT; ending++)
        sum->failures += oip_metrics_endings(metrics, model, (enum ending)ending);
}
