/* measure.h - how quick a device is, found out by a few jobs of each kind.
 *
 * Door: measure_device(), after the self-test, which has warmed the device up, and before the first
 * client. Takes a quarter of a second at the most, unless a single job takes long.
 */
#ifndef GPU_MEASURE_H
#define GPU_MEASURE_H

#include "gpu/place.h"

/* Device 0 computes on the caller's thread, as for small jobs; the way through its queue is
 * measured apart. ERR_DEVICE, ERR_NOMEM: the device, or the memory, was not there. */
enum error measure_device(struct gpu *gpu, int device, struct place_model *ret);

#endif
