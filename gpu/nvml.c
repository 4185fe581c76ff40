/* nvml.c - asking NVIDIA's management library (see nvml.h).
 *
 * The declarations below are the part of the library's binary interface that is used here.
 * Source: NVML API reference; names with _v2 are what its header makes of the plain ones.
 */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/clock.h"

enum { CLOSE_MS = 500 }; /* how long closing waits for a call of the library */

enum { SUCCESS = 0, SENSOR_OF_DEVICE = 0, CORRECTED = 0, UNCORRECTED = 1, SINCE_LOADED = 0 };

typedef struct handle *handle; /* nvmlDevice_t */

struct memory { /* nvmlMemory_t */
    unsigned long long size, unused, used;
};

struct utilization { /* nvmlUtilization_t */
    unsigned device, memory;
};

/* Without the first five nothing can be told; the others may be missing. */
struct library {
    void *object; /* dlopen()'s */
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *ret);
    int (*device)(unsigned index, handle *ret);
    int (*uuid)(handle device, char *ret, unsigned ret_size);
    int (*name)(handle device, char *ret, unsigned ret_size);
    int (*memory)(handle device, struct memory *ret);
    int (*utilization)(handle device, struct utilization *ret);
    int (*temperature)(handle device, int sensor, unsigned *ret);
    int (*power)(handle device, unsigned *ret);
    int (*ecc)(handle device, int type, int counter, unsigned long long *ret);
};

struct nvml {
    const char *name;            /* fixed; of the library; static text */
    uint32_t period_ms;          /* fixed */
    pthread_t thread;            /* the opening thread's */
    pthread_mutex_t lock;        /* innermost; never held across a call of the library */
    pthread_cond_t changed;      /* lock; of the three below */
    bool is_closed;              /* lock; false to true, once: the thread is to end */
    bool is_over;                /* lock; false to true, once: the thread ends */
    bool is_left;                /* lock; false to true, once: nobody waits, the thread frees it */
    struct nvml_reading reading; /* lock */
    struct library library;      /* the thread's */
    bool is_begun;               /* the thread's: init() succeeded */
    struct nvml_reading asked;   /* the thread's */
};

/* ---- the library --------------------------------------------------------------------------- */

static void *symbol(const struct library *library, const char *name)
{
    return dlsym(library->object, name);
}

static bool library_load(struct library *ret, const char *name)
{
    ret->object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (ret->object == NULL)
        return false;
    ret->init = symbol(ret, "nvmlInit_v2");
    ret->shutdown = symbol(ret, "nvmlShutdown");
    ret->count = symbol(ret, "nvmlDeviceGetCount_v2");
    ret->device = symbol(ret, "nvmlDeviceGetHandleByIndex_v2");
    ret->uuid = symbol(ret, "nvmlDeviceGetUUID");
    ret->name = symbol(ret, "nvmlDeviceGetName");
    ret->memory = symbol(ret, "nvmlDeviceGetMemoryInfo");
    ret->utilization = symbol(ret, "nvmlDeviceGetUtilizationRates");
    ret->temperature = symbol(ret, "nvmlDeviceGetTemperature");
    ret->power = symbol(ret, "nvmlDeviceGetPowerUsage");
    ret->ecc = symbol(ret, "nvmlDeviceGetTotalEccErrors");
    return true;
}

static bool library_is_whole(const struct library *library)
{
    return library->init != NULL && library->shutdown != NULL && library->count != NULL &&
           library->device != NULL && library->uuid != NULL;
}

/* ---- asking -------------------------------------------------------------------------------- */

static void ask_memory(const struct library *library, handle device, struct nvml_device *ret)
{
    struct memory memory;
    if (library->memory == NULL || library->memory(device, &memory) != SUCCESS)
        return;
    ret->memory_used_bytes = memory.used;
    ret->memory_size_bytes = memory.size;
    ret->known |= NVML_MEMORY;
}

static void ask_work(const struct library *library, handle device, struct nvml_device *ret)
{
    struct utilization utilization;
    if (library->utilization != NULL && library->utilization(device, &utilization) == SUCCESS) {
        ret->utilization_percent = utilization.device;
        ret->known |= NVML_UTILIZATION;
    }
    if (library->temperature != NULL &&
        library->temperature(device, SENSOR_OF_DEVICE, &ret->temperature_celsius) == SUCCESS)
        ret->known |= NVML_TEMPERATURE;
    if (library->power != NULL && library->power(device, &ret->power_milliwatts) == SUCCESS)
        ret->known |= NVML_POWER;
}

static void ask_ecc(const struct library *library, handle device, struct nvml_device *ret)
{
    unsigned long long errors;
    if (library->ecc == NULL)
        return;
    if (library->ecc(device, CORRECTED, SINCE_LOADED, &errors) == SUCCESS) {
        ret->ecc_corrected = errors;
        ret->known |= NVML_ECC_CORRECTED;
    }
    if (library->ecc(device, UNCORRECTED, SINCE_LOADED, &errors) == SUCCESS) {
        ret->ecc_uncorrected = errors;
        ret->known |= NVML_ECC_UNCORRECTED;
    }
}

/* False: it has no name to go by. */
static bool ask_device(const struct library *library, unsigned index, struct nvml_device *ret)
{
    char name[NVML_UUID_BYTES];
    handle device;
    *ret = (struct nvml_device){.known = 0};
    if (library->device(index, &device) != SUCCESS ||
        library->uuid(device, ret->uuid, sizeof ret->uuid) != SUCCESS)
        return false;
    if (library->name != NULL && library->name(device, name, sizeof name) == SUCCESS)
        (void)snprintf(ret->name, sizeof ret->name, "%.*s", (int)sizeof ret->name - 1, name);
    ask_memory(library, device, ret);
    ask_work(library, device, ret);
    ask_ecc(library, device, ret);
    return true;
}

/* One that has fallen out is left out; the others go on. */
static enum nvml_state ask_devices(struct nvml *nvml)
{
    const struct library *library = &nvml->library;
    unsigned count;
    if (!library_is_whole(library))
        return NVML_FAILED;
    nvml->is_begun = nvml->is_begun || library->init() == SUCCESS;
    if (!nvml->is_begun || library->count(&count) != SUCCESS)
        return NVML_FAILED;
    struct nvml_reading *asked = &nvml->asked;
    for (unsigned i = 0; i < count && asked->device_count < NVML_DEVICES_MAX; i++)
        if (ask_device(library, i, &asked->device[asked->device_count]))
            asked->device_count++;
    return NVML_TOLD;
}

/* A driver that was reloaded wants another init(). */
static void ask(struct nvml *nvml)
{
    nvml->asked.device_count = 0;
    nvml->asked.state = ask_devices(nvml);
    nvml->asked.asked_ns = clock_ns();
    if (nvml->asked.state == NVML_FAILED && nvml->is_begun) {
        (void)nvml->library.shutdown();
        nvml->is_begun = false;
    }
}

/* ---- the thread ---------------------------------------------------------------------------- */

static struct timespec after_ms(uint32_t ms)
{
    int64_t ns = clock_ns() + (int64_t)ms * 1000000;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Tells what was asked, and waits for the time to ask again. False: it is closed. */
static bool tell_and_wait(struct nvml *nvml)
{
    const struct timespec until = after_ms(nvml->period_ms);
    (void)pthread_mutex_lock(&nvml->lock);
    nvml->reading = nvml->asked;
    int result = 0;
    while (!nvml->is_closed && result == 0)
        result = pthread_cond_timedwait(&nvml->changed, &nvml->lock, &until);
    bool is_closed = nvml->is_closed;
    (void)pthread_mutex_unlock(&nvml->lock);
    return !is_closed;
}

static void nvml_free(struct nvml *nvml)
{
    (void)pthread_cond_destroy(&nvml->changed);
    (void)pthread_mutex_destroy(&nvml->lock);
    free(nvml);
}

static void *nvml_main(void *context)
{
    struct nvml *nvml = context;
    (void)pthread_setname_np(pthread_self(), "dotd-nvml");
    if (library_load(&nvml->library, nvml->name)) {
        do
            ask(nvml);
        while (tell_and_wait(nvml));
        if (nvml->is_begun)
            (void)nvml->library.shutdown();
        (void)dlclose(nvml->library.object);
    }
    (void)pthread_mutex_lock(&nvml->lock);
    nvml->is_over = true;
    bool is_left = nvml->is_left;
    (void)pthread_cond_signal(&nvml->changed);
    (void)pthread_mutex_unlock(&nvml->lock);
    if (is_left)
        nvml_free(nvml);
    return NULL;
}

/* Signals are the main thread's business: the new thread inherits a mask that blocks them all. */
static bool thread_start(struct nvml *nvml)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&nvml->thread, NULL, nvml_main, nvml);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result == 0;
}

/* ---- the door ------------------------------------------------------------------------------ */

enum error nvml_open(struct nvml **ret, const char *library, uint32_t period_ms)
{
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (nvml == NULL)
        return ERR_NOMEM;
    nvml->name = library;
    nvml->period_ms = period_ms;
    (void)pthread_mutex_init(&nvml->lock, NULL);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&nvml->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (!thread_start(nvml)) {
        nvml_free(nvml);
        return ERR_NOMEM;
    }
    *ret = nvml;
    return ERR_OK;
}

void nvml_read(struct nvml *nvml, struct nvml_reading *ret)
{
    (void)pthread_mutex_lock(&nvml->lock);
    *ret = nvml->reading;
    (void)pthread_mutex_unlock(&nvml->lock);
}

void nvml_close(struct nvml *nvml)
{
    if (nvml == NULL)
        return;
    const struct timespec until = after_ms(CLOSE_MS);
    (void)pthread_mutex_lock(&nvml->lock);
    nvml->is_closed = true;
    (void)pthread_cond_signal(&nvml->changed);
    int result = 0;
    while (!nvml->is_over && result == 0)
        result = pthread_cond_timedwait(&nvml->changed, &nvml->lock, &until);
    bool is_over = nvml->is_over;
    nvml->is_left = !is_over;
    pthread_t thread = nvml->thread; /* one that is left may free the rest from here on */
    (void)pthread_mutex_unlock(&nvml->lock);
    if (is_over) {
        (void)pthread_join(thread, NULL);
        nvml_free(nvml);
    } else {
        (void)pthread_detach(thread);
    }
}
