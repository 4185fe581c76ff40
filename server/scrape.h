/* scrape.h - GET /metrics: what all HTTP threads counted, devices, memory and this process, for
 * Prometheus. Names follow its conventions: base units, _total, labels from tables only. */
#ifndef SERVER_SCRAPE_H
#define SERVER_SCRAPE_H

#include "proto/error.h"
#include "server/http_priv.h"
#include "server/metrics.h"

struct exchange;

enum error page_metrics(struct exchange *exchange, struct problem *problem);

/* A stage as all HTTP threads together saw it. */
struct histogram_tally scrape_stage(const struct http *http, enum stage stage);

#endif
