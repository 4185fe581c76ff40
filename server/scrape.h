/* scrape.h - GET /metrics: what all HTTP threads counted, devices, memory and this process.
 *
 * Door: page_metrics() is the route, and follows Prometheus' conventions: base units, _total,
 * labels from tables only. scrape_*() add up what the threads counted, for /v1/status as well.
 */
#ifndef SERVER_SCRAPE_H
#define SERVER_SCRAPE_H

#include "proto/error.h"
#include "server/http_priv.h"
#include "server/loop.h"
#include "server/metrics.h"

struct exchange;

/* What is counted of a device: a field of struct device_counts, which is its name in /v1/devices,
 * and its family here. */
#define DEVICE_MAP(X)                                                                              \
    X(queued_jobs, "dotd_queue_length", GAUGE, "Jobs that wait.")                                  \
    X(queued_bytes, "dotd_queue_bytes", GAUGE, "Operands of jobs that wait.")                      \
    X(jobs_total, "dotd_jobs_total", COUNTER, "Jobs that were computed, those of the start too.")  \
    X(batches_total, "dotd_executions_total", COUNTER, "Batches, each of them some launches.")     \
    X(slices_total, "dotd_slices_total", COUNTER, "Slices that long jobs were cut into.")          \
    X(rejected_total, "dotd_jobs_rejected_total", COUNTER, "Jobs refused for the queue was full.") \
    X(unfair_total, "dotd_jobs_unfair_total", COUNTER,                                             \
      "Of the rejected jobs: those refused for the client's share alone.")                         \
    X(expired_total, "dotd_jobs_expired_total", COUNTER, "Jobs dropped past their deadline.")      \
    X(cancelled_total, "dotd_jobs_cancelled_total", COUNTER,                                       \
      "Jobs dropped because nobody waits for them any more.")                                      \
    X(rerouted_total, "dotd_jobs_rerouted_total", COUNTER,                                         \
      "Jobs of this device computed on the CPU, for the device had failed.")

enum error page_metrics(struct exchange *exchange, struct problem *problem);

/* How the requests that are over ended. */
struct request_counts {
    uint64_t completed, answers_2xx, answers_4xx, answers_5xx, clients_left; /* 2xx: 304 as well */
};
struct request_counts scrape_requests(const struct http *http);

/* Of all HTTP threads together. */
struct loop_stats scrape_loops(const struct http *http);

/* A stage as all HTTP threads together saw it. */
struct histogram_tally scrape_stage(const struct http *http, enum stage stage);

#endif
