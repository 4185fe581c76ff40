/* measure.c - how quick devices are (see measure.h).
 *
 * Every figure is the lower quartile of what a few jobs took, one in each round over all figures of
 * all ways, and the caller's thread is on another core in each round: cores of a virtual machine
 * are up to twice as slow for spells of 10 ms to over half a second, which would hit all jobs of a
 * figure if they followed each other or kept to one core.
 *
 * The operands have just been written by the thread that submits them, as those of a request have:
 * they lie in its caches, as far as these hold them, and in no other. They are ordinary numbers:
 * exact sums of numbers of very different size take the CPU longer, up to ten times, which nobody
 * knows before they are read.
 */
#include "gpu/measure.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/clock.h"
#include "gpu/waiter.h"

enum {
    ROUNDS = 6,
    ENOUGH_NS = 1000000,    /* of one figure: then it need not be repeated any further */
    WAY_NS = 250 * 1000000, /* of one way: no further figure */
    SHARED_ROWS = 8,        /* of either operand, each with each */
    SHARED_LENGTH = 2048,
    PAGE_BYTES = 2 << 20, /* as the pool asks for */
    PACKET_BYTES = 65000, /* operands arrive in such pieces; none falls on another's like */
};

/* What is measured of each type and accuracy: rows of each size, rows that share nothing, rows that
 * share all. */
enum { FIGURE_ROWS = PLACE_SIZES, FIGURE_SHARED = FIGURE_ROWS + PLACE_ROW_LENGTHS, FIGURES };

/* Of place_row_lengths[]: rows that share nothing. */
static const uint64_t row_counts[PLACE_ROW_LENGTHS] = {1024, 256};

struct series {
    double took_ns[ROUNDS];
    double spent_ns; /* the arrival of the operands included */
    int count;
};

/* One way in the making. */
struct course {
    struct measure_way *way;
    double spent_ns;
    struct series series[DTYPE_COUNT][PLACE_KINDS][FIGURES];
    struct series unpinned[FIGURE_ROWS]; /* of float32 exact: operands are only moved */
};

/* What all ways share. */
struct measure {
    struct gpu *gpu;
    char *operands, *unpinned; /* as many as the largest job has */
    char packet[PACKET_BYTES];
};

/* What is computed, of which operands. */
struct trial {
    char *operands;
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

static struct batch batch_of(enum dtype dtype, int figure)
{
    if (figure < FIGURE_ROWS)
        return (struct batch){.n = place_bytes[figure] / (2 * dtype_size(dtype))};
    if (figure < FIGURE_SHARED) {
        const uint64_t rows = row_counts[figure - FIGURE_ROWS];
        return (struct batch){{rows}, {rows}, place_row_lengths[figure - FIGURE_ROWS]};
    }
    return (struct batch){{SHARED_ROWS, 1}, {1, SHARED_ROWS}, SHARED_LENGTH};
}

static enum accuracy accuracy_of(enum place_kind kind)
{
    return kind == PLACE_FAST ? ACCURACY_FAST : ACCURACY_EXACT;
}

/* --- operands --- */

/* Numbers of about the same size, of both signs, whatever type they are read as: 0x3ff. or 0xbff.
 * in every 16 bits is 1 to 2 as float64, float32 and bfloat16, and nearly 2 as float16. */
static void packet_fill(char packet[PACKET_BYTES])
{
    uint64_t state = 1;
    for (size_t at = 0; at < PACKET_BYTES; at += sizeof state) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = (state & 0x800f800f800f800fu) | 0x3ff03ff03ff03ff0u;
        memcpy(packet + at, &word, sizeof word);
    }
}

static void arrive(const struct measure *measure, char *operands, size_t size)
{
    for (size_t at = 0; at < size; at += PACKET_BYTES)
        memcpy(operands + at, measure->packet, size - at < PACKET_BYTES ? size - at : PACKET_BYTES);
}

static enum error pages_acquire(void *context, size_t size, struct block *ret)
{
    (void)context;
    assert(size % PAGE_BYTES == 0);
    void *data = aligned_alloc(PAGE_BYTES, size);
    if (data == NULL)
        return ERR_NOMEM;
    (void)madvise(data, size, MADV_HUGEPAGE); /* refused by some kernels, as to the pool */
    *ret = (struct block){data, size};
    return ERR_OK;
}

static void pages_release(void *context, struct block block)
{
    (void)context;
    free(block.data);
}

/* Memory like the pool's that is not pinned. */
static const struct buffer_source pages = {.acquire = pages_acquire, .release = pages_release};

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
        .accuracy = accuracy_of(trial->kind),
        .result_dtype = dtype_is_integer(trial->dtype) ? DTYPE_INT64 : trial->dtype,
    };
    enum error error = shape_dot(&pair.a.shape, &pair.b.shape, &pair.result, &problem);
    return error == ERR_OK ? job_plan(ret, &pair, 1) : error;
}

static enum error run(struct gpu *gpu, const struct measure_way *way, struct job *job)
{
    if (!way->is_inline)
        return waiter_run(gpu, way->device, job);
    gpu_compute(gpu, job);
    return job->error;
}

static double ns_since(int64_t began)
{
    return (double)(clock_ns() - began);
}

/* A worker's processor that has slept while operands arrived takes up to 0.4 ms to wake, more than
 * most jobs: one of a single product wakes it before. */
static enum error wake(struct gpu *gpu, const struct measure_way *way, const struct trial *trial)
{
    struct job job;
    enum error error = job_make(trial, &(struct batch){.n = 1}, &job);
    if (error == ERR_OK)
        error = run(gpu, way, &job);
    job_fini(&job);
    return error;
}

static enum error time_once(const struct measure *measure, struct course *course,
                            const struct trial *trial, int figure, struct series *series)
{
    assert(series->count < ROUNDS);
    const struct batch batch = batch_of(trial->dtype, figure);
    struct job job;
    const int64_t began = clock_ns();
    enum error error = job_make(trial, &batch, &job);
    if (error == ERR_OK) {
        arrive(measure, trial->operands, job.bytes);
        error = wake(measure->gpu, course->way, trial);
    }
    if (error == ERR_OK) {
        const int64_t arrived = clock_ns();
        error = run(measure->gpu, course->way, &job);
        series->took_ns[series->count++] = ns_since(arrived);
    }
    job_fini(&job);
    const double spent_ns = ns_since(began);
    series->spent_ns += spent_ns;
    course->spent_ns += spent_ns;
    return error;
}

static int compare_ns(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double quartile_ns(struct series *series)
{
    assert(series->count > 0);
    qsort(series->took_ns, (size_t)series->count, sizeof *series->took_ns, compare_ns);
    return series->took_ns[(series->count - 1) / 4];
}

/* --- rounds --- */

static bool is_enough(const struct series *series, int least)
{
    return series->count == ROUNDS || (series->count >= least && series->spent_ns >= ENOUGH_NS);
}

/* The largest size takes so long that once tells enough, unless all types depend on it. */
static int least_of(int figure, bool is_needed)
{
    if (is_needed)
        return 3;
    return figure == FIGURE_ROWS - 1 ? 1 : 2;
}

static bool is_kind(enum dtype dtype, enum place_kind kind)
{
    return kind == PLACE_EXACT || !dtype_is_integer(dtype);
}

/* Also the first size that is too large: what is smaller is expected on a line to it. */
static bool is_on_way(const struct measure_way *way, enum dtype dtype, int figure)
{
    return figure == 0 || figure >= FIGURE_ROWS ||
           place_bytes[figure - 1] / (2 * dtype_size(dtype)) <
               place_inline_terms(way->max_terms, dtype);
}

/* What is_needed is measured once, however long that takes. */
static enum error time_kind(const struct measure *measure, struct course *course,
                            const struct trial *trial, struct series *series, int figures,
                            bool is_needed)
{
    enum error error = ERR_OK;
    for (int i = 0; error == ERR_OK && i < figures; i++) {
        const bool has_time = course->spent_ns < WAY_NS || (is_needed && series[i].count == 0);
        if (has_time && !is_enough(&series[i], least_of(i, is_needed)) &&
            is_on_way(course->way, trial->dtype, i))
            error = time_once(measure, course, trial, i, &series[i]);
    }
    return error;
}

/* float32 exact comes first: what is not measured takes its place (take_costs()). */
static enum error time_round(const struct measure *measure, struct course *course)
{
    enum error error = ERR_OK;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = PLACE_KINDS - 1; kind >= 0; kind--) {
            const struct trial trial = {measure->operands, (enum dtype)dtype,
                                        (enum place_kind)kind};
            const bool is_first = trial.dtype == DTYPE_FLOAT32 && trial.kind == PLACE_EXACT;
            if (error == ERR_OK && is_kind(trial.dtype, trial.kind))
                error = time_kind(measure, course, &trial, course->series[dtype][kind], FIGURES,
                                  is_first);
        }
    const struct trial unpinned = {measure->unpinned, DTYPE_FLOAT32, PLACE_EXACT};
    if (error == ERR_OK && course->way->device > 0)
        error = time_kind(measure, course, &unpinned, course->unpinned, FIGURE_ROWS, true);
    return error;
}

/* --- what a model is made of --- */

/* How much longer a batch took than the model so far says. */
static double excess_ns(struct series *series, const struct place_model *model, enum dtype dtype,
                        enum place_kind kind, int figure)
{
    const struct batch batch = batch_of(dtype, figure);
    const struct job_size size = {
        .bytes = (rows_of(batch.a) + rows_of(batch.b)) * batch.n * dtype_size(dtype),
        .dtype = dtype,
        .accuracy = accuracy_of(kind),
    };
    return quartile_ns(&series[figure]) - place_time_ns(model, &size, true);
}

static void take_cost(struct course *course, enum dtype dtype, enum place_kind kind)
{
    struct series *series = course->series[dtype][kind];
    struct place_model *model = &course->way->model;
    struct place_cost *cost = &model->cost[dtype][kind];
    cost->row_ns[0] = quartile_ns(&series[0]);
    for (int i = 1; i < PLACE_SIZES; i++)
        cost->row_ns[i] = series[i].count > 0 ? quartile_ns(&series[i])
                                              : cost->row_ns[i - 1] * (double)place_bytes[i] /
                                                    (double)place_bytes[i - 1];
    for (int i = 0; i < PLACE_ROW_LENGTHS; i++)
        cost->further_ns[i] =
            excess_ns(series, model, dtype, kind, FIGURE_ROWS + i) / (double)(row_counts[i] - 1);
    const double rows = SHARED_ROWS * SHARED_ROWS, shared = (rows - SHARED_ROWS) * SHARED_LENGTH;
    cost->term_ns = (excess_ns(series, model, dtype, kind, FIGURE_SHARED) -
                     (rows - 1) * cost->further_ns[PLACE_ROW_LENGTHS - 1]) /
                    shared;
}

static void take_costs(struct course *course)
{
    struct place_model *model = &course->way->model;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = PLACE_KINDS - 1; kind >= 0; kind--) {
            if (course->series[dtype][kind][FIGURES - 1].count > 0)
                take_cost(course, (enum dtype)dtype, (enum place_kind)kind);
            else /* a device so slow that time was over is taken to be as slow with the rest */
                model->cost[dtype][kind] = model->cost[DTYPE_FLOAT32][PLACE_EXACT];
        }
    for (int i = 0; i < FIGURE_ROWS; i++)
        if (course->unpinned[i].count > 0)
            model->unpinned_ns[i] = quartile_ns(&course->unpinned[i]) -
                                    model->cost[DTYPE_FLOAT32][PLACE_EXACT].row_ns[i];
    place_smooth(model);
}

/* --- the door --- */

/* The caller's thread to the round's core of those that it may use. Where that is refused it stays
 * where it is. */
static void core_choose(const cpu_set_t *allowed, int round)
{
    int skip = round * CPU_COUNT(allowed) / ROUNDS;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, allowed) && skip-- == 0)
            CPU_SET(core, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void measure_courses(const struct measure *measure, struct course *courses, int count)
{
    cpu_set_t allowed;
    const bool can_move = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (can_move)
            core_choose(&allowed, round);
        for (int i = 0; i < count; i++)
            if (courses[i].way->error == ERR_OK)
                courses[i].way->error = time_round(measure, &courses[i]);
    }
    if (can_move)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
    for (int i = 0; i < count; i++)
        if (courses[i].way->error == ERR_OK)
            take_costs(&courses[i]);
}

/* Operands lie in the daemon's own memory, pinned where that can be, unless its budget is small. */
static enum error measure_with(struct measure *measure, struct course *courses, int count)
{
    const size_t size = place_bytes[PLACE_SIZES - 1];
    const struct buffer_source *source = gpu_buffers(measure->gpu);
    struct block block, unpinned;
    enum error error = pages.acquire(NULL, size, &unpinned);
    if (error != ERR_OK)
        return error;
    const bool is_own = source->acquire(source->context, size, &block) == ERR_OK;
    measure->unpinned = unpinned.data;
    measure->operands = is_own ? block.data : unpinned.data;
    arrive(measure, measure->unpinned, size);
    arrive(measure, measure->operands, size);
    measure_courses(measure, courses, count);
    if (is_own)
        source->release(source->context, block);
    pages.release(NULL, unpinned);
    return ERR_OK;
}

void measure_ways(struct gpu *gpu, struct measure_way *ways, int count)
{
    struct measure *measure = calloc(1, sizeof *measure);
    struct course *courses = calloc((size_t)count, sizeof *courses);
    enum error error = ERR_NOMEM;
    if (measure != NULL && courses != NULL) {
        measure->gpu = gpu;
        packet_fill(measure->packet);
        for (int i = 0; i < count; i++) {
            courses[i].way = &ways[i];
            ways[i].error = ERR_OK;
            ways[i].model = (struct place_model){0};
        }
        error = measure_with(measure, courses, count);
    }
    for (int i = 0; error != ERR_OK && i < count; i++)
        ways[i].error = error;
    free(courses);
    free(measure);
}
