/* gpu.c - the room's door: devices, placement, the way in and out (see gpu.h). */
#include "gpu/gpu.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/clock.h"
#include "gpu/measure.h"
#include "gpu/partial.h"
#include "gpu/place.h"
#include "gpu/pool.h"
#include "gpu/processor.h"
#include "gpu/worker.h"

enum { DEVICE_LIMIT = 17 }; /* the CPU and 16 CUDA devices: no host has more */

struct device {
    const struct backend *backend; /* fixed after gpu_open() */
    struct backend_device *handle; /* fixed after gpu_open() */
    struct worker *worker;         /* fixed after gpu_open(); safe from any thread */
    struct device_info info;       /* fixed after gpu_open() */
    struct place_model *model;     /* NULL, or fixed once gpu->is_measured; through the queue */
    int index;                     /* fixed: the backend's number, 1 for "cuda:1" */
    bool is_pinned;                /* gpu_open() and gpu_close() */
};

struct gpu {
    struct gpu_config config;           /* fixed after gpu_open() */
    struct pool *pool;                  /* fixed after gpu_open(); safe from any thread */
    struct buffer_source buffers;       /* fixed after gpu_open() */
    struct device device[DEVICE_LIMIT]; /* [device_count]; fixed after gpu_open() */
    int device_count;                   /* fixed after gpu_open() */
    int failed_count;                   /* fixed after gpu_open(): devices that did not open */
    struct problem failed;              /* fixed after gpu_open(): the last one's text */
    struct problem absent;              /* fixed after gpu_open(): why a backend has no device */
    struct place_model *inlined;        /* NULL, or fixed once is_measured: gpu_compute()'s */
    uint64_t pinned_bytes;   /* fixed after gpu_open(): what every device can read in place */
    atomic_bool is_measured; /* any thread; false to true, once, after the models are there */
    struct processor_count inline_jobs; /* any thread: gpu_compute()'s */
};

static const struct backend *const built_in[] = {
    &backend_cpu,
#ifdef DOTD_HAVE_CUDA
    &backend_cuda,
#endif
    NULL,
};

#ifdef DOTD_FAULTS
static const struct backend *const built_to_fail[] = {&backend_cpu, &backend_faulty, NULL};
#endif

/* --- opening and closing --- */

static enum error device_open(struct gpu *gpu, const struct backend *backend, int index,
                              struct problem *problem)
{
    assert(gpu->device_count < DEVICE_LIMIT);
    struct device *device = &gpu->device[gpu->device_count];
    *device = (struct device){.backend = backend, .index = index};
    enum error error = backend->open(&device->handle, index, &gpu->config, problem);
    if (error != ERR_OK)
        return error;
    backend->describe(device->handle, &device->info);
    gpu->device_count++;
    return ERR_OK;
}

/* A device that fails is left out, except the CPU. */
static enum error backend_devices_open(struct gpu *gpu, const struct backend *backend,
                                       struct problem *problem)
{
    int count = backend->count(&gpu->absent);
    for (int index = 0; index < count && gpu->device_count < DEVICE_LIMIT; index++) {
        enum error error = device_open(gpu, backend, index, problem);
        if (error == ERR_OK)
            continue;
        if (gpu->device_count == 0)
            return error;
        gpu->failed = *problem;
        gpu->failed_count++;
    }
    return ERR_OK;
}

static enum error devices_open(struct gpu *gpu, const struct backend *const *backends,
                               struct problem *problem)
{
    enum error error = ERR_OK;
    for (size_t i = 0; error == ERR_OK && backends[i] != NULL; i++)
        if (i == 0 || gpu->config.cuda)
            error = backend_devices_open(gpu, backends[i], problem);
    assert(error != ERR_OK || (gpu->device_count > 0 && !gpu->device[0].info.is_cuda));
    return error;
}

/* Memory is pinned once, at start; a device that cannot pin copies instead, and still works. */
static void buffers_pin(struct gpu *gpu)
{
    size_t size;
    void *data = pool_pinnable(gpu->pool, &size);
    bool all = size > 0;
    for (int i = 0; size > 0 && i < gpu->device_count; i++) {
        struct device *device = &gpu->device[i];
        if (device->backend->pin == NULL)
            continue;
        device->is_pinned = device->backend->pin(device->handle, data, size) == ERR_OK;
        all = all && device->is_pinned;
    }
    gpu->pinned_bytes = all ? size : 0;
}

static void buffers_unpin(struct gpu *gpu)
{
    for (int i = 0; i < gpu->device_count; i++)
        if (gpu->device[i].is_pinned)
            gpu->device[i].backend->unpin(gpu->device[i].handle);
}

static enum error buffers_acquire(void *context, size_t size, struct block *ret)
{
    return pool_acquire(context, size, ret);
}

static void buffers_release(void *context, struct block block)
{
    pool_release(context, block);
}

static enum error buffers_extend(void *context, size_t size, struct block *block)
{
    return pool_extend(context, size, block);
}

static enum error buffers_open(struct gpu *gpu, struct problem *problem)
{
    bool can_pin = false;
    for (int i = 0; i < gpu->device_count; i++)
        can_pin = can_pin || gpu->device[i].backend->pin != NULL;
    size_t pinned = can_pin ? gpu->config.pinned_bytes : 0;
    if (pool_create(&gpu->pool, gpu->config.budget_bytes, pinned) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "cannot map %zu bytes for operands",
                           gpu->config.budget_bytes);
    gpu->buffers =
        (struct buffer_source){buffers_acquire, buffers_release, buffers_extend, gpu->pool};
    buffers_pin(gpu);
    return ERR_OK;
}

static struct device_handle handle_of(const struct gpu *gpu, int index)
{
    const struct device *device = &gpu->device[index];
    return (struct device_handle){device->backend, device->handle, index};
}

static enum error workers_start(struct gpu *gpu, struct problem *problem)
{
    const struct device_handle cpu = handle_of(gpu, 0);
    for (int i = 0; i < gpu->device_count; i++) {
        struct device *device = &gpu->device[i];
        char name[16];
        (void)snprintf(name, sizeof name, "dotd-%.10s", device->info.id);
        const struct device_handle mine = handle_of(gpu, i);
        if (worker_create(&device->worker, &mine, &cpu, name, &gpu->config) != ERR_OK)
            return problem_set(problem, ERR_NOMEM, "cannot start the thread of %s",
                               device->info.id);
    }
    return ERR_OK;
}

enum error gpu_open_backends(struct gpu **ret, const struct gpu_config *config,
                             const struct backend *const *backends, struct problem *problem)
{
    struct gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the devices");
    gpu->config = *config;
    if (gpu->config.queue_bytes == 0)
        gpu->config.queue_bytes = config->budget_bytes;
    enum error error = devices_open(gpu, backends, problem);
    if (error == ERR_OK)
        error = buffers_open(gpu, problem);
    if (error == ERR_OK)
        error = workers_start(gpu, problem);
    if (error != ERR_OK) {
        gpu_close(gpu); /* accepts a half-built room */
        return error;
    }
    *ret = gpu;
    return ERR_OK;
}

enum error gpu_open(struct gpu **ret, const struct gpu_config *config, struct problem *problem)
{
#ifdef DOTD_FAULTS
    if (getenv("DOTD_FAULT") != NULL)
        return gpu_open_backends(ret, config, built_to_fail, problem);
#endif
    return gpu_open_backends(ret, config, built_in, problem);
}

void gpu_drain(struct gpu *gpu)
{
    for (int i = 0; i < gpu->device_count; i++)
        worker_drain(gpu->device[i].worker);
}

/* 1. Every worker drains and ends: no job is in a device's hands any more.
 * 2. Pinned memory is let go: no device may read operands in place any more.
 * 3. The devices close: nothing refers to the pool any more.
 * 4. The pool goes. It asserts that every buffer is back. */
void gpu_close(struct gpu *gpu)
{
    if (gpu == NULL)
        return;
    for (int i = 0; i < gpu->device_count; i++)
        worker_destroy(gpu->device[i].worker);
    buffers_unpin(gpu);
    for (int i = 0; i < gpu->device_count; i++) {
        gpu->device[i].backend->close(gpu->device[i].handle);
        free(gpu->device[i].model);
    }
    free(gpu->inlined);
    pool_destroy(gpu->pool);
    free(gpu);
}

/* --- what there is --- */

const struct buffer_source *gpu_buffers(struct gpu *gpu)
{
    return &gpu->buffers;
}

struct gpu_memory gpu_memory(struct gpu *gpu)
{
    struct pool_state state = pool_state(gpu->pool);
    return (struct gpu_memory){
        .budget_bytes = state.budget_bytes,
        .used_bytes = state.used_bytes,
        .pinned_bytes = gpu->pinned_bytes,
        .pinned_used_bytes = gpu->pinned_bytes > 0 ? state.pinned_used_bytes : 0,
    };
}

int gpu_device_count(struct gpu *gpu)
{
    return gpu->device_count;
}

static struct device *device_at(struct gpu *gpu, int device)
{
    assert(device >= 0 && device < gpu->device_count);
    return &gpu->device[device];
}

struct device_info gpu_device_info(struct gpu *gpu, int index)
{
    return device_at(gpu, index)->info;
}

struct device_counts gpu_device_counts(struct gpu *gpu, int index)
{
    struct device *device = device_at(gpu, index);
    struct queue_state queue = worker_queue_state(device->worker);
    struct worker_totals totals = worker_totals(device->worker);
    uint64_t inlined = index == 0 ? processor_count_sum(&gpu->inline_jobs) : 0;
    struct device_counts counts = {
        .queued_jobs = queue.jobs,
        .queued_bytes = queue.bytes,
        .jobs_total = totals.jobs + inlined,
        .batches_total = totals.batches + inlined, /* each a batch of one */
        .slices_total = totals.slices,
        .rejected_total = queue.rejected_total,
        .unfair_total = queue.unfair_total,
        .expired_total = totals.expired,
        .cancelled_total = totals.cancelled,
        .rerouted_total = totals.rerouted,
    };
    memcpy(counts.batches_by_size, totals.by_size, sizeof counts.batches_by_size);
    counts.batches_by_size[0] += inlined;
    return counts;
}

int64_t gpu_busy_since_ns(struct gpu *gpu)
{
    int64_t oldest = 0;
    for (int i = 0; i < gpu->device_count; i++) {
        int64_t since = worker_busy_since_ns(gpu->device[i].worker);
        if (since != 0 && (oldest == 0 || since < oldest))
            oldest = since;
    }
    return oldest;
}

const char *gpu_cuda_absent(struct gpu *gpu)
{
    if (!gpu->config.cuda || gpu->device_count + gpu->failed_count > 1) /* the CPU is one */
        return NULL;
    return gpu->absent.detail[0] != '\0' ? gpu->absent.detail : "this program has no CUDA in it";
}

int gpu_devices_failed(struct gpu *gpu, struct problem *problem)
{
    int count = gpu->failed_count;
    if (count > 0)
        *problem = gpu->failed;
    for (int i = 0; i < gpu->device_count; i++)
        count += worker_is_lost(gpu->device[i].worker, problem);
    return count;
}

void gpu_leave_out(struct gpu *gpu, int device, const struct problem *problem)
{
    assert(device_at(gpu, device)->info.is_cuda);
    worker_leave_out(gpu->device[device].worker, problem);
}

/* --- placement --- */

/* The CUDA device with the fewest jobs waiting; -1 when none is left. */
static int cuda_least_busy(struct gpu *gpu)
{
    struct problem unused;
    int best = -1;
    uint32_t best_jobs = UINT32_MAX;
    for (int i = 0; i < gpu->device_count; i++) {
        struct device *device = &gpu->device[i];
        if (!device->info.is_cuda || worker_is_lost(device->worker, &unused))
            continue;
        uint32_t jobs = worker_queue_state(device->worker).jobs;
        if (best < 0 || jobs < best_jobs) {
            best = i;
            best_jobs = jobs;
        }
    }
    return best;
}

static int cuda_of_index(struct gpu *gpu, int index)
{
    struct problem unused;
    for (int i = 0; i < gpu->device_count; i++)
        if (gpu->device[i].info.is_cuda && gpu->device[i].index == index)
            return worker_is_lost(gpu->device[i].worker, &unused) ? -1 : i;
    return -1;
}

static bool is_pinned(const struct gpu *gpu, const void *base)
{
    size_t size;
    const char *data = pool_pinnable(gpu->pool, &size);
    return gpu->pinned_bytes > 0 && (uintptr_t)base - (uintptr_t)data < size;
}

bool gpu_is_near(struct gpu *gpu, int device, const void *operands)
{
    return !device_at(gpu, device)->info.is_cuda || is_pinned(gpu, operands);
}

static bool is_measured(struct gpu *gpu)
{
    return atomic_load_explicit(&gpu->is_measured, memory_order_acquire);
}

static bool is_inline(struct gpu *gpu, int device, const struct job_size *size)
{
    return gpu_is_inline(gpu, device, size->dtype, size->term_count);
}

/* By which the job is expected; NULL: not measured. */
static const struct place_model *model_for(struct gpu *gpu, int device, const struct job_size *size)
{
    return is_inline(gpu, device, size) ? gpu->inlined : device_at(gpu, device)->model;
}

/* The jobs that are under way count in full, also one that is nearly done. What HTTP threads
 * compute themselves waits for nobody. */
static struct place_offer offer_of(struct gpu *gpu, int device, const struct job_size *size)
{
    struct worker *worker = gpu->device[device].worker;
    const struct place_model *model = model_for(gpu, device, size);
    struct problem unused;
    if (model == NULL || worker_is_lost(worker, &unused))
        return (struct place_offer){0};
    bool waits = !is_inline(gpu, device, size);
    return (struct place_offer){model, waits ? (double)worker_load_ns(worker) : 0};
}

/* Where the job is expected to be done first. */
static int soonest(struct gpu *gpu, const struct job_size *size)
{
    struct place_offer offer[DEVICE_LIMIT];
    for (int i = 0; i < gpu->device_count; i++)
        offer[i] = offer_of(gpu, i, size);
    return place_choose(offer, gpu->device_count, size, is_pinned(gpu, size->base));
}

/* -1: nothing speaks for a CUDA device. */
static int place_auto(struct gpu *gpu, const struct job_size *size)
{
    const uint64_t min_bytes = gpu->config.cuda_min_bytes;
    if (min_bytes > 0)
        return size->bytes >= min_bytes ? cuda_least_busy(gpu) : -1;
    return is_measured(gpu) ? soonest(gpu, size) : -1;
}

enum error gpu_place(struct gpu *gpu, enum placement placement, int index,
                     const struct job_size *size, int *ret_device)
{
    int device = 0;
    if (placement == PLACE_CUDA)
        device = index < 0 ? cuda_least_busy(gpu) : cuda_of_index(gpu, index);
    else if (placement == PLACE_AUTO)
        device = place_auto(gpu, size);
    if (device < 0 && placement == PLACE_AUTO)
        device = 0;
    if (device < 0)
        return ERR_NO_DEVICE;
    *ret_device = device;
    return ERR_OK;
}

double gpu_expected_ns(struct gpu *gpu, int device, const struct job_size *size)
{
    const struct place_model *model = model_for(gpu, device, size);
    assert(is_measured(gpu) && model != NULL);
    return place_time_ns(model, size, is_pinned(gpu, size->base));
}

uint32_t gpu_load_jobs(struct gpu *gpu, int device)
{
    return worker_load_jobs(device_at(gpu, device)->worker);
}

bool gpu_is_inline(struct gpu *gpu, int device, enum dtype dtype, uint64_t term_count)
{
    return device == 0 && term_count <= place_inline_terms(gpu->config.inline_terms, dtype);
}

/* --- measuring --- */

/* The first CUDA device of the same name that is there, whose model will do. */
static int alike(struct gpu *gpu, int device)
{
    struct problem unused;
    int first = device > 0 ? 1 : 0;
    while (first < device &&
           (worker_is_lost(gpu->device[first].worker, &unused) ||
            strcmp(gpu->device[first].info.name, gpu->device[device].info.name) != 0))
        first++;
    return first;
}

/* NULL: the device failed, or there was no memory; then it is not chosen. */
static struct place_model *model_keep(const struct measure_way *way)
{
    struct place_model *kept = way->error == ERR_OK ? malloc(sizeof *kept) : NULL;
    if (kept != NULL)
        *kept = way->model;
    return kept;
}

/* Ways to all devices that are there and unlike those before. */
static int ways_list(struct gpu *gpu, struct measure_way ways[DEVICE_LIMIT + 1])
{
    struct problem unused;
    int count = 0;
    ways[count++] = (struct measure_way){.is_inline = true, .max_terms = gpu->config.inline_terms};
    for (int i = 0; i < gpu->device_count; i++)
        if (alike(gpu, i) == i && !worker_is_lost(gpu->device[i].worker, &unused))
            ways[count++] = (struct measure_way){.device = i, .max_terms = UINT64_MAX};
    return count;
}

void gpu_measure(struct gpu *gpu)
{
    struct measure_way ways[DEVICE_LIMIT + 1];
    assert(!is_measured(gpu));
    if (gpu->device_count == 1 || gpu->config.cuda_min_bytes > 0)
        return;
    int count = ways_list(gpu, ways);
    measure_ways(gpu, ways, count);
    gpu->inlined = model_keep(&ways[0]);
    for (int i = 0; i < gpu->device_count; i++)
        for (int way = 1; way < count; way++)
            if (ways[way].device == alike(gpu, i))
                gpu->device[i].model = model_keep(&ways[way]);
    if (gpu->inlined != NULL && gpu->device[0].model != NULL)
        atomic_store_explicit(&gpu->is_measured, true, memory_order_release);
}

static uint64_t crossover(struct gpu *gpu, const struct device *device, const struct job_size *kind,
                          bool pinned)
{
    const struct place_cpu cpu = {gpu->inlined, gpu->device[0].model, gpu->config.inline_terms};
    return device->info.is_cuda ? place_crossover(&cpu, device->model, kind, pinned) : UINT64_MAX;
}

/* In `ns` at so many each; 0: too quick to be measured. */
static uint64_t so_many(double ns, double each_ns)
{
    return each_ns > 0 ? (uint64_t)(ns / each_ns) : 0;
}

bool gpu_device_speed(struct gpu *gpu, int device, enum dtype dtype, enum accuracy accuracy,
                      struct device_speed *ret)
{
    const struct device *it = device_at(gpu, device);
    if (!is_measured(gpu) || it->model == NULL)
        return false;
    const struct job_size kind = {.row_count = 1, .dtype = dtype, .accuracy = accuracy};
    const struct place_cost *cost = &it->model->cost[dtype][place_kind_of(dtype, accuracy)];
    *ret = (struct device_speed){
        .fixed_ns = (uint64_t)cost->row_ns[0],
        .row_ns = (uint64_t)cost->further_ns[PLACE_ROW_LENGTHS - 1],
        .mb_s = so_many(1e3, place_byte_ns(it->model, cost, true)),
        .unpinned_mb_s = so_many(1e3, place_byte_ns(it->model, cost, false)),
        .products_us = so_many(1e3, cost->term_ns),
        .from_bytes = crossover(gpu, it, &kind, true),
        .from_unpinned_bytes = crossover(gpu, it, &kind, false),
    };
    return true;
}

/* --- jobs --- */

void gpu_compute(struct gpu *gpu, struct job *job)
{
    struct device *cpu = device_at(gpu, 0);
    struct backend_times unused;
    int64_t started = clock_ns();
    job->next = NULL;
    job->error = cpu->backend->compute(cpu->handle, job, &unused, NULL);
    job->device = 0;
    job->is_rerouted = false;
    job->batch_size = 1;
    int64_t finished = clock_ns();
    job->times = (struct job_times){
        .started_ns = started,
        .compute_ns = finished - started,
        .finished_ns = finished,
    };
    processor_count_add(&gpu->inline_jobs);
}

void gpu_settle(struct gpu *gpu, struct job *job, struct partial *partial)
{
    partial_settle(partial, job->result_dtype, job->value);
    job->error = ERR_OK;
    job->device = 0;
    job->is_rerouted = false;
    job->batch_size = 1;
    job->times = (struct job_times){0};
    processor_count_add(&gpu->inline_jobs);
}

/* A job of nothing but empty sums has no task. */
static int64_t load_of(struct gpu *gpu, int device, const struct job *job)
{
    const struct device *it = device_at(gpu, device);
    if (job->task_count == 0 || !is_measured(gpu) || it->model == NULL)
        return 0;
    const struct job_size size = {
        .base = job->base,
        .bytes = job->bytes,
        .term_count = job->term_count,
        .row_count = job->value_count / dtype_part_count(job->task->dtype),
        .dtype = job->task->dtype,
        .accuracy = job->accuracy,
    };
    return (int64_t)place_load_ns(it->model, &size, is_pinned(gpu, job->base));
}

enum error gpu_submit(struct gpu *gpu, int device, struct job *job)
{
    assert(job->port != NULL && job->value != NULL && job->run == NULL);
    job->load_ns = load_of(gpu, device, job);
    return worker_push(device_at(gpu, device)->worker, job);
}

void gpu_begin(struct gpu *gpu, int device)
{
    worker_begin(device_at(gpu, device)->worker);
}

int64_t gpu_look_ns(struct gpu *gpu, int device)
{
    struct worker *worker = device_at(gpu, device)->worker;
    return worker_load_jobs(worker) <= 1 ? worker_look_ns(worker) : 0;
}
