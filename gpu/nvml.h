/* nvml.h - how NVIDIA's devices are, as their management library tells.
 *
 * Door: nvml_open() starts a thread that loads the library, where there is one, and asks it now and
 * then; nvml_read() copies what it said last and never waits for it: a driver in trouble may keep a
 * call for minutes. Nothing links the library, and a machine without it is no error.
 * These are the machine's devices, whether or not this process computes on them.
 */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include <stdint.h>

#include "proto/error.h"

struct nvml; /* layout in nvml.c */

enum { NVML_DEVICES_MAX = 16, NVML_UUID_BYTES = 96 }; /* the latter is the library's own bound */

/* What a device, or a library of an older driver, does not tell is not there. */
enum nvml_known {
    NVML_MEMORY = 1 << 0,
    NVML_UTILIZATION = 1 << 1,
    NVML_TEMPERATURE = 1 << 2,
    NVML_POWER = 1 << 3,
    NVML_ECC_CORRECTED = 1 << 4,
    NVML_ECC_UNCORRECTED = 1 << 5,
};

struct nvml_device {
    char uuid[NVML_UUID_BYTES];
    char name[LIMIT_NAME_BYTES]; /* cut if need be; empty: not told */
    unsigned known;              /* enum nvml_known bits of the fields below */
    uint64_t memory_used_bytes, memory_size_bytes;
    uint32_t utilization_percent;
    uint32_t temperature_celsius;
    uint32_t power_milliwatts;
    uint64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
};

enum nvml_state {
    NVML_ABSENT, /* no library, or not yet loaded */
    NVML_FAILED, /* it is there and could not tell of the devices when it was last asked */
    NVML_TOLD
};

struct nvml_reading {
    enum nvml_state state;
    int64_t asked_ns; /* when it last answered, well or not; CLOCK_MONOTONIC */
    int device_count; /* 0 unless NVML_TOLD */
    struct nvml_device device[NVML_DEVICES_MAX];
};

/* Asks at once and then every period_ms. library: the loader's name for it ("libnvidia-ml.so.1"),
 * static text. ERR_NOMEM: no memory, or no thread. */
enum error nvml_open(struct nvml **ret, const char *library, uint32_t period_ms);

void nvml_read(struct nvml *nvml, struct nvml_reading *ret);

/* Waits for half a second at most; a thread that hangs in the library is left to itself. Takes
 * NULL. */
void nvml_close(struct nvml *nvml);

#endif
