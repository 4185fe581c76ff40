/* exposition.h - the text format of Prometheus, version 0.0.4.
 *
 * Door: expose_family() names a family of samples, then one expose_*() a sample. Numbers are plain
 * decimals: NVIDIA's perf_analyzer reads no exponents.
 * Source: prometheus.io/docs/instrumenting/exposition_formats, and .../practices/naming.
 */
#ifndef SERVER_EXPOSITION_H
#define SERVER_EXPOSITION_H

#include <stdint.h>

#include "proto/text.h"
#include "server/histogram.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition {
    struct text *text; /* borrowed; its failed flag tells of no memory */
    const char *name;  /* of the family; static text */
};

struct label {
    const char *name, *value; /* the value: any UTF-8 */
};

/* LABELS({"device", "cpu"}, {"kind", "a"}): a list that ends in {NULL, NULL}. */
#define LABELS(...) ((const struct label[]){__VA_ARGS__ __VA_OPT__(, ){NULL, NULL}})

enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM };

/* help: one sentence without line ends or backslashes. */
void expose_family(struct exposition *exposition, const char *name, enum family_type type,
                   const char *help);

void expose_count(struct exposition *exposition, const struct label *labels, uint64_t value);

/* value / 10^decimals, exactly. */
void expose_fixed(struct exposition *exposition, const struct label *labels, uint64_t value,
                  int decimals);

/* A histogram of durations, in seconds, without labels but le. */
void expose_durations(struct exposition *exposition, const struct histogram_tally *tally);

/* Sizes counted in buckets of up to 1, 2, 4, 8, ... and one more for what is larger. */
void expose_sizes(struct exposition *exposition, struct label label, const uint64_t *bucket,
                  unsigned bucket_count, uint64_t sum);

#endif
