/* oip_metrics.h - what one HTTP thread counts of each model's inferences.
 *
 * Part of its metrics (metrics.h), and like them: the loop's thread writes, any reads and adds up.
 */
#ifndef SERVER_OIP_METRICS_H
#define SERVER_OIP_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/result.h"
#include "server/metrics.h"

struct oip_metrics; /* layout in oip_metrics.c */

bool oip_metrics_create(struct oip_metrics **ret);     /* false: out of memory */
void oip_metrics_destroy(struct oip_metrics *metrics); /* takes NULL */

/* ---- the loop's thread ---- */

/* A model's request was computed, in a batch of so many jobs, and its answer is ready. */
void oip_metrics_computed(struct oip_metrics *metrics, unsigned model, const struct timing *timing,
                          uint32_t batch_size, uint64_t result_count);

/* It has ended; once each. */
void oip_metrics_ended(struct oip_metrics *metrics, unsigned model, enum ending ending);

/* ---- any thread; each adds this loop's to what is there ---- */

struct oip_tally {
    uint64_t requests, results; /* that were computed */
    uint64_t executions; /* batches; one shared with others' jobs counts in part, rounded up */
    uint64_t failures;
    uint64_t queue_ns, input_ns, compute_ns, output_ns, total_ns; /* of requests */
    uint64_t last_unix_ms; /* when the last one was computed, on the calendar; 0: none was */
};
void oip_metrics_collect(const struct oip_metrics *metrics, unsigned model, struct oip_tally *sum);

uint64_t oip_metrics_endings(const struct oip_metrics *metrics, unsigned model, enum ending ending);

#endif
