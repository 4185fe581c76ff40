/* self_test.c - known answers on every device before the first client (gpu_self_test in gpu.h).
 *
 * Operands are small whole numbers, so that every order of summation gives the exact sum, and one
 * wrong, missing or doubled term shows. The lengths take every road of a device: in place and
 * copied, one block and many, vector loads and single ones, many rows.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "gpu/gpu.h"

/* Waits for one job. */
struct waiter {
    struct job_port port; /* first: complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done; /* lock */
};

static void waiter_complete(struct job_port *port, struct job *first)
{
    struct waiter *waiter = (struct waiter *)port;
    assert(first->next == NULL);
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    (void)pthread_cond_signal(&waiter->changed);
    (void)pthread_mutex_unlock(&waiter->lock);
}

static void waiter_wait(struct waiter *waiter)
{
    (void)pthread_mutex_lock(&waiter->lock);
    while (!waiter->is_done)
        (void)pthread_cond_wait(&waiter->changed, &waiter->lock);
    (void)pthread_mutex_unlock(&waiter->lock);
}

struct known {
    enum dtype dtype;
    uint64_t rows, n;
};

static const struct known cases[] = {
    {DTYPE_FLOAT32, 1, 3},    {DTYPE_FLOAT64, 1, 1000},  {DTYPE_FLOAT32, 1, 200001},
    {DTYPE_FLOAT64, 3, 4099}, {DTYPE_FLOAT32, 500, 129},
};

/* Whole numbers of both signs without a common period. */
static int term_a(uint64_t i)
{
    return (int)(i % 13) - 5;
}

static int term_b(uint64_t i)
{
    return (int)(i * i % 11) - 4;
}

static void put(void *data, enum dtype dtype, uint64_t index, int number)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)data)[index] = (float)number;
    else
        ((double *)data)[index] = number;
}

/* a: rows x n, then b: n. */
static void fill(void *data, const struct known *known)
{
    uint64_t count = known->rows * known->n;
    for (uint64_t i = 0; i < count; i++)
        put(data, known->dtype, i, term_a(i));
    for (uint64_t i = 0; i < known->n; i++)
        put(data, known->dtype, count + i, term_b(i));
}

static double expected(const struct known *known, uint64_t row)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < known->n; i++)
        sum += term_a(row * known->n + i) * term_b(i);
    return (double)sum;
}

static struct tensor_pair pair_of(const struct known *known)
{
    struct tensor_pair pair = {
        .a = {known->dtype, {2, {known->rows, known->n}}, 0},
        .b = {known->dtype, {1, {known->n}}, known->rows * known->n * dtype_size(known->dtype)},
        .result = {1, {known->rows}},
    };
    return pair;
}

static enum error run(struct gpu *gpu, int device, struct job *job)
{
    struct waiter waiter = {.port = {waiter_complete},
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    job->port = &waiter.port;
    enum error error = gpu_submit(gpu, device, job);
    if (error != ERR_OK)
        return error;
    waiter_wait(&waiter);
    return job->error;
}

static enum error compare(struct gpu *gpu, int device, const struct job *job,
                          const struct known *known, struct problem *problem)
{
    for (uint64_t row = 0; row < known->rows; row++) {
        double want = expected(known, row), got = job->value[row].sum;
        if (got != want)
            return problem_set(problem, ERR_DEVICE,
                               "%s: row %llu of %llu %s products gave %.17g, not %.17g",
                               gpu_device_info(gpu, device).id, (unsigned long long)row,
                               (unsigned long long)known->n, dtype_name(known->dtype), got, want);
    }
    return ERR_OK;
}

static enum error run_known(struct gpu *gpu, int device, const struct known *known,
                            struct problem *problem)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    struct tensor_pair pair = pair_of(known);
    struct block block = {0};
    struct job job = {.bytes = (known->rows + 1) * known->n * dtype_size(known->dtype)};
    enum error error = source->acquire(source->context, job.bytes, &block);
    if (error == ERR_NOMEM) { /* a budget smaller than the longest case */
        source = &buffer_heap;
        error = source->acquire(source->context, job.bytes, &block);
    }
    if (error == ERR_OK)
        error = job_plan(&job, &pair, 1);
    if (error == ERR_OK) {
        fill(block.data, known);
        job.base = block.data;
        error = run(gpu, device, &job);
    }
    if (error == ERR_OK)
        error = compare(gpu, device, &job, known, problem);
    else
        (void)problem_set(problem, error, "%s: the self-test could not run: %s",
                          gpu_device_info(gpu, device).id, error_title(error));
    job_fini(&job);
    if (block.data != NULL)
        source->release(source->context, block);
    return error;
}

enum error gpu_self_test(struct gpu *gpu, struct problem *problem)
{
    for (int device = 0; device < gpu_device_count(gpu); device++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            enum error error = run_known(gpu, device, &cases[i], problem);
            if (error != ERR_OK)
                return error;
        }
    return ERR_OK;
}
