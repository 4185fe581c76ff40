/* fake.c - a libnvidia-ml.so.1 for tests: two devices, in the mood that it is told (fake.h).
 *
 * Built whole, with FAKE_SPARSE without what may be missing, and with FAKE_BROKEN without what may
 * not.
 */
#include "fake.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, UNKNOWN = 999, LOST = 15, DEVICES = 2 };

struct memory {
    unsigned long long size, unused, used;
};

struct utilization {
    unsigned device, memory;
};

static atomic_int mood = -1;
static atomic_uint inits, shutdowns, hanging;
static char handle[DEVICES]; /* their addresses name the devices */

static enum fake_mood mood_now(void)
{
    if (mood < 0) {
        const char *word = getenv("FAKE_NVML");
        mood = word != NULL ? atoi(word) : FAKE_WELL;
    }
    return (enum fake_mood)mood;
}

static int index_of(const void *device)
{
    return (int)((const char *)device - handle);
}

void fake_mood_set(enum fake_mood next)
{
    mood = next;
}

unsigned fake_inits(void)
{
    return inits;
}

unsigned fake_shutdowns(void)
{
    return shutdowns;
}

unsigned fake_hanging(void)
{
    return hanging;
}

int nvmlInit_v2(void)
{
    if (mood_now() == FAKE_INIT_FAILS)
        return UNKNOWN;
    inits++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    shutdowns++;
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
    *ret = DEVICES;
    return mood_now() == FAKE_COUNT_FAILS ? UNKNOWN : SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
    *ret = &handle[index];
    return index == 0 && mood_now() == FAKE_FIRST_IS_LOST ? LOST : SUCCESS;
}

#ifndef FAKE_BROKEN
int nvmlDeviceGetUUID(void *device, char *ret, unsigned ret_size)
{
    snprintf(ret, ret_size, "GPU-fake-%d", index_of(device));
    return SUCCESS;
}
#endif

int nvmlDeviceGetName(void *device, char *ret, unsigned ret_size)
{
    static const char *const names[DEVICES] = {"Fake \"quoted\" \\ device", "Fake"};
    snprintf(ret, ret_size, "%s", names[index_of(device)]);
    return mood_now() == FAKE_TELLS_LITTLE ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    ret->size = 150000000000ull;
    ret->used = 1000000000ull * (unsigned)(index_of(device) + 1);
    ret->unused = ret->size - ret->used;
    for (hanging = 1; mood_now() == FAKE_HANGS;)
        nanosleep(&pause, NULL);
    hanging = 0;
    return mood_now() == FAKE_TELLS_LITTLE ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret)
{
    (void)device;
    ret->device = 37;
    ret->memory = 5;
    return mood_now() == FAKE_TELLS_LITTLE ? NOT_SUPPORTED : SUCCESS;
}

#ifndef FAKE_SPARSE
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret)
{
    *ret = 40 + (unsigned)index_of(device);
    return sensor != 0 || mood_now() == FAKE_TELLS_LITTLE ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *ret)
{
    (void)device;
    *ret = 98765;
    return mood_now() == FAKE_TELLS_LITTLE ? NOT_SUPPORTED : SUCCESS;
}

/* The second device counts no corrected errors. */
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *ret)
{
    *ret = type == 0 ? 7 : 1;
    if (counter != 0 || mood_now() == FAKE_TELLS_LITTLE)
        return NOT_SUPPORTED;
    return type == 0 && index_of(device) == 1 ? NOT_SUPPORTED : SUCCESS;
}
#endif
