/* measure.h - how quick devices are, found out by a few jobs of each kind.
 *
 * Door: measure_ways(), after the self-test, which has warmed the devices up, and before the first
 * client. Takes a quarter of a second a way at the most, unless single jobs take long.
 */
#ifndef GPU_MEASURE_H
#define GPU_MEASURE_H

#include "gpu/place.h"

/* A device and how jobs come to it. */
struct measure_way {
    int device;
    bool is_inline;     /* the CPU, on the caller's thread; else through the device's queue */
    uint64_t max_terms; /* of jobs that come this way, as inline_terms; of more it is a guess */
    /* set by measure_ways() */
    enum error error; /* ERR_DEVICE, ERR_NOMEM: the device, or the memory, was not there */
    struct place_model model;
};

void measure_ways(struct gpu *gpu, struct measure_way *ways, int count);

#endif
