/* metrics.h - what one HTTP thread counts of the requests that it serves.
 *
 * Door: metrics_*() on the loop's own thread; the reading calls on any. Each loop has metrics of
 * its own and is the only one to write them, so counting is a relaxed load and store, without a
 * locked instruction or a shared line of cache; scrape.c adds the loops up when somebody asks. All
 * labels come from tables (routes, methods, errors, devices): clients cannot make new ones.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/error.h"
#include "proto/request.h"
#include "proto/result.h"
#include "server/histogram.h"

struct exchange;
struct oip_metrics;
struct metrics; /* layout in metrics.c */

/* Stages of a request, and the whole of it. */
enum stage {
#define X(stage) STAGE_##stage,
    TIMING_MAP(X)
#undef X
        STAGE_total,
    STAGE_COUNT
};
const char *stage_name(enum stage stage); /* "copy_in" */

/* How a request ended: by an error of the table, ERR_OK for an answer of success, or by what
 * follows it here. */
enum ending {
    ENDING_NOT_READY = ERROR_COUNT, /* a probe's 503, which is an answer and no error */
    ENDING_NOT_MODIFIED,            /* 304: the client has the file already */
    ENDING_LEFT,                    /* the client left before its answer */
    ENDING_COUNT
};
int ending_code(enum ending ending); /* the answer's status; 499 for ENDING_LEFT */

/* How methods are told apart. */
enum verb { VERB_GET, VERB_HEAD, VERB_POST, VERB_OTHER, VERB_COUNT };
const char *verb_name(enum verb verb);

bool metrics_create(struct metrics **ret, int device_count); /* false: out of memory */
void metrics_destroy(struct metrics *metrics);               /* takes NULL */

/* ---- the loop's thread ---- */

/* A request has ended; once each. */
void metrics_count_request(struct metrics *metrics, const struct exchange *exchange);

/* It was computed, and its answer is ready. */
void metrics_count_computed(struct metrics *metrics, const struct timing *timing, int device,
                            enum accuracy accuracy, uint64_t result_count);

/* Of inferences below /v2, by model: oip_metrics.h says who may do what. */
struct oip_metrics *metrics_oip(const struct metrics *metrics);

/* ---- any thread; each adds this loop's to what is there ---- */

/* Of one route of the table (route.h), route_count() for paths that are not served. */
uint64_t metrics_requests(const struct metrics *metrics, unsigned route, enum verb verb,
                          enum ending ending);

struct computed_counts {
    uint64_t requests, results;
};
void metrics_computed(const struct metrics *metrics, int device, enum accuracy accuracy,
                      struct computed_counts *sum);

struct body_bytes {
    uint64_t received, sent; /* of requests that have ended */
};
void metrics_bodies(const struct metrics *metrics, struct body_bytes *sum);

void metrics_stage(const struct metrics *metrics, enum stage stage, struct histogram_tally *sum);

#endif
