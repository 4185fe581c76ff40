/* measure.c - how quick a device is (see measure.h).
 *
 * Every figure is the second least of eight, or the least of fewer: what else a machine does only
 * makes them longer, by a thousand times where it takes the core away. The operands are ordinary
 * numbers: exact sums of numbers of very different size take the CPU longer, up to ten times, which
 * nobody knows before they are read.
 */
#include "gpu/measure.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/clock.h"
#include "gpu/waiter.h"

enum {
    REPEATS = 8,
    REPEATS_LEAST = 3,
    ENOUGH_NS = 2 * 1000000,   /* of one kind of job: then no further repetition */
    DEVICE_NS = 250 * 1000000, /* of one device: no further type of elements */
    ROWS = 256,                /* of a batch of rows that share nothing */
    SHARED_ROWS = 8,           /* of either operand, each with each */
    SHARED_LENGTH = 2048,
    FAR_BYTES = 64 << 20, /* more than caches hold */
};

/* What is measured, and where. */
struct trial {
    struct gpu *gpu;
    int device;
    int least;            /* repetitions, however long they take */
    bool is_queued;       /* else on the caller's thread: the CPU only */
    const void *operands; /* as many as the largest job has */
    enum dtype dtype;
    enum place_kind kind;
};

/* Leading axes of both operands; 0: an axis that is not there. */
struct batch {
    uint64_t a[2], b[2];
    uint64_t n;
};

static uint64_t rows_of(const uint64_t axes[2])
{
    return (axes[0] > 0 ? axes[0] : 1) * (axes[1] > 0 ? axes[1] : 1);
}

static struct shape shape_of(const uint64_t axes[2], uint64_t n)
{
    struct shape shape = {0};
    for (int i = 0; i < 2; i++)
        if (axes[i] > 0)
            shape.dim[shape.rank++] = axes[i];
    shape.dim[shape.rank++] = n;
    return shape;
}

/* --- operands --- */

/* Numbers of about the same size, of both signs, whatever type they are read as: 0x3ff. or 0xbff.
 * in every 16 bits is 1 to 2 as float64, float32 and bfloat16, and nearly 2 as float16. */
static void fill(void *data, size_t size)
{
    uint64_t state = 1;
    for (uint64_t *word = data; size >= sizeof *word; size -= sizeof *word) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        *word++ = (state & 0x800f800f800f800fu) | 0x3ff03ff03ff03ff0u;
    }
}

struct operands {
    const struct buffer_source *source;
    struct block block;
};

/* Of the daemon's own memory, pinned where that can be; from the heap when its budget is small. */
static enum error operands_acquire(struct operands *ret, const struct buffer_source *source,
                                   size_t size)
{
    enum error error = source->acquire(source->context, size, &ret->block);
    if (error == ERR_NOMEM) {
        source = &buffer_heap;
        error = source->acquire(source->context, size, &ret->block);
    }
    if (error != ERR_OK)
        return error;
    ret->source = source;
    fill(ret->block.data, size);
    return ERR_OK;
}

static void operands_release(struct operands *operands)
{
    operands->source->release(operands->source->context, operands->block);
}

/* --- timing --- */

static enum error job_make(const struct trial *trial, const struct batch *batch, struct job *ret)
{
    const size_t size = dtype_size(trial->dtype);
    const uint64_t bytes_a = rows_of(batch->a) * batch->n * size;
    struct problem problem;
    struct tensor_pair pair = {
        .a = {trial->dtype, shape_of(batch->a, batch->n), 0},
        .b = {trial->dtype, shape_of(batch->b, batch->n), bytes_a},
    };
    *ret = (struct job){
        .base = trial->operands,
        .bytes = bytes_a + rows_of(batch->b) * batch->n * size,
        .accuracy = trial->kind == PLACE_FAST ? ACCURACY_FAST : ACCURACY_EXACT,
        .result_dtype = dtype_is_integer(trial->dtype) ? DTYPE_INT64 : trial->dtype,
    };
    enum error error = shape_dot(&pair.a.shape, &pair.b.shape, &pair.result, &problem);
    return error == ERR_OK ? job_plan(ret, &pair, 1) : error;
}

static enum error run_once(const struct trial *trial, struct job *job, double *ret_ns)
{
    enum error error = ERR_OK;
    int64_t began = clock_ns();
    if (trial->is_queued) {
        error = waiter_run(trial->gpu, trial->device, job);
    } else {
        gpu_compute(trial->gpu, job);
        error = job->error;
    }
    *ret_ns = (double)(clock_ns() - began);
    return error;
}

static int compare_ns(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static enum error run_some(const struct trial *trial, struct job *job, double *ret_ns)
{
    double took_ns[REPEATS], spent_ns = 0;
    int count = 0;
    while (count < REPEATS && (count < trial->least || spent_ns < ENOUGH_NS)) {
        enum error error = run_once(trial, job, &took_ns[count]);
        if (error != ERR_OK)
            return error;
        spent_ns += took_ns[count++];
    }
    qsort(took_ns, (size_t)count, sizeof *took_ns, compare_ns);
    *ret_ns = took_ns[count / REPEATS];
    return ERR_OK;
}

static enum error time_batch(const struct trial *trial, const struct batch *batch, double *ret_ns)
{
    struct job job;
    enum error error = job_make(trial, batch, &job);
    if (error == ERR_OK)
        error = run_some(trial, &job, ret_ns);
    job_fini(&job);
    return error;
}

/* --- what a model is made of --- */

static enum error measure_sizes(const struct trial *trial, double ret_ns[PLACE_SIZES])
{
    enum error error = ERR_OK;
    for (int i = 0; error == ERR_OK && i < PLACE_SIZES; i++) {
        const struct batch row = {.n = place_bytes[i] / (2 * dtype_size(trial->dtype))};
        error = time_batch(trial, &row, &ret_ns[i]);
    }
    return error;
}

/* How much longer a batch takes than the model so far says. */
static enum error measure_excess(const struct trial *trial, const struct batch *batch,
                                 const struct place_model *model, double *ret_ns)
{
    const struct job_size size = {
        .bytes = (rows_of(batch->a) + rows_of(batch->b)) * batch->n * dtype_size(trial->dtype),
        .dtype = trial->dtype,
        .accuracy = trial->kind == PLACE_FAST ? ACCURACY_FAST : ACCURACY_EXACT,
    };
    double took_ns;
    enum error error = time_batch(trial, batch, &took_ns);
    if (error == ERR_OK)
        *ret_ns = took_ns - place_time_ns(model, &size, true);
    return error;
}

/* The self-test has no fast job of every type, so the first job of a kind may have its kernel
 * loaded. */
static enum error warm_up(const struct trial *trial)
{
    double unused;
    return time_batch(trial, &(struct batch){.n = 1}, &unused);
}

static enum error measure_cost(const struct trial *trial, struct place_model *model)
{
    struct place_cost *cost = &model->cost[trial->dtype][trial->kind];
    double excess_ns;
    enum error error = warm_up(trial);
    if (error == ERR_OK)
        error = measure_sizes(trial, cost->row_ns);
    for (int i = 0; error == ERR_OK && i < PLACE_ROW_LENGTHS; i++) {
        const struct batch apart = {.a = {ROWS}, .b = {ROWS}, .n = place_row_lengths[i]};
        error = measure_excess(trial, &apart, model, &excess_ns);
        if (error == ERR_OK)
            cost->further_ns[i] = excess_ns / (ROWS - 1);
    }
    if (error != ERR_OK)
        return error;
    const struct batch each = {{SHARED_ROWS, 1}, {1, SHARED_ROWS}, SHARED_LENGTH};
    const double rows = SHARED_ROWS * SHARED_ROWS, shared = (rows - SHARED_ROWS) * SHARED_LENGTH;
    error = measure_excess(trial, &each, model, &excess_ns);
    if (error == ERR_OK)
        cost->term_ns = (excess_ns - (rows - 1) * cost->further_ns[PLACE_ROW_LENGTHS - 1]) / shared;
    return error;
}

/* float32 comes first, and is always measured. A device so slow that time is over then is taken to
 * be as slow with the rest. */
static enum error measure_costs(struct trial *trial, struct place_model *model)
{
    const int64_t until_ns = clock_ns() + DEVICE_NS;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = PLACE_KINDS - 1; kind >= 0; kind--) {
            trial->dtype = (enum dtype)dtype;
            trial->kind = (enum place_kind)kind;
            struct place_cost *cost = &model->cost[dtype][kind];
            if (kind == PLACE_FAST && dtype_is_integer(trial->dtype))
                continue; /* there is no such kind */
            if (clock_ns() > until_ns) {
                *cost = model->cost[DTYPE_FLOAT32][PLACE_EXACT];
                continue;
            }
            enum error error = measure_cost(trial, model);
            if (error != ERR_OK)
                return error;
        }
    return ERR_OK;
}

/* What a CUDA device takes longer for operands that are not pinned: of one type, as they are only
 * moved. */
static enum error measure_unpinned(const struct trial *base, struct place_model *model)
{
    struct operands operands;
    enum error error = operands_acquire(&operands, &buffer_heap, place_bytes[PLACE_SIZES - 1]);
    if (error != ERR_OK)
        return error;
    struct trial trial = *base;
    trial.operands = operands.block.data;
    trial.dtype = DTYPE_FLOAT32;
    trial.kind = PLACE_EXACT;
    error = measure_sizes(&trial, model->unpinned_ns);
    for (int i = 0; i < PLACE_SIZES; i++)
        model->unpinned_ns[i] -= model->cost[DTYPE_FLOAT32][PLACE_EXACT].row_ns[i];
    operands_release(&operands);
    return error;
}

/* The largest size fits into the caches of some machines, which are five times as fast as their
 * memory. The kind that does least with a byte, once, over more than they hold. */
static enum error measure_memory(const struct trial *base, struct place_model *model)
{
    struct operands operands;
    enum error error = operands_acquire(&operands, &buffer_heap, FAR_BYTES);
    if (error != ERR_OK)
        return error;
    struct trial trial = *base;
    trial.operands = operands.block.data;
    trial.dtype = DTYPE_FLOAT64;
    trial.kind = PLACE_FAST;
    const struct batch row = {.n = FAR_BYTES / (2 * sizeof(double))};
    double took_ns;
    error = time_batch(&trial, &row, &took_ns);
    if (error == ERR_OK)
        model->memory_byte_ns = took_ns / FAR_BYTES;
    operands_release(&operands);
    return error;
}

static enum error measure_handoff(const struct trial *base, struct place_model *model)
{
    struct trial trial = *base;
    trial.is_queued = true;
    trial.least = REPEATS; /* threads that wake each other are easily kept waiting */
    trial.dtype = DTYPE_FLOAT32;
    trial.kind = PLACE_EXACT;
    const struct batch row = {.n = place_bytes[0] / (2 * dtype_size(trial.dtype))};
    double queued_ns;
    enum error error = time_batch(&trial, &row, &queued_ns);
    if (error == ERR_OK)
        model->handoff_ns = queued_ns - model->cost[trial.dtype][trial.kind].row_ns[0];
    return error;
}

enum error measure_device(struct gpu *gpu, int device, struct place_model *ret)
{
    struct operands operands;
    struct place_model model = {0};
    enum error error = operands_acquire(&operands, gpu_buffers(gpu), place_bytes[PLACE_SIZES - 1]);
    if (error != ERR_OK)
        return error;
    struct trial trial = {
        .gpu = gpu,
        .device = device,
        .least = REPEATS_LEAST,
        .is_queued = device > 0,
        .operands = operands.block.data,
    };
    error = measure_costs(&trial, &model);
    if (error == ERR_OK)
        error = device > 0 ? measure_unpinned(&trial, &model) : measure_memory(&trial, &model);
    if (error == ERR_OK && device == 0)
        error = measure_handoff(&trial, &model);
    operands_release(&operands);
    if (error != ERR_OK)
        return error;
    place_smooth(&model);
    *ret = model;
    return ERR_OK;
}
