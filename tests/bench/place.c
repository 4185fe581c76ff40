/* place.c - device "auto" beside the better of the CPU and each CUDA device.
 *
 *   bench_place [--all]
 *
 * For a grid of types, accuracies, lengths and batches, with operands in pinned memory and in
 * other: what the job takes on the CPU, on cuda:0 and where "auto" sends it, as medians, each
 * beside what the model measured at start expects; and how much longer than the better one auto
 * takes. The three come in turn. Without a CUDA device a second CPU stands in, which shows how well
 * times are expected. --all: a line for each job, not only for those where auto is off by more than
 * a tenth.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/clock.h"
#include "gpu/gpu.h"
#include "gpu/waiter.h"

enum {
    INLINE_TERMS = 65536,       /* as the daemon has it */
    OPERANDS_BYTES = 256 << 20, /* pinned, and as many that are not */
    REPEATS = 9,
    SLOW_NS = 300 * 1000000, /* of one job in all: no further repetition */
    OFF_PERCENT = 110,       /* of the better: told, and counted */
};

static struct gpu *gpu;
static const void *operands[2]; /* pinned, other */

/* Rows of a and of b; shared: each row of a with each of b, else one with one, or with the only
 * one. */
struct shape_case {
    const char *name;
    uint64_t rows_a, rows_b, n;
    bool shared;
};

static const struct shape_case cases[] = {
    {"1 row", 1, 1, 16, false},
    {"1 row", 1, 1, 1024, false},
    {"1 row", 1, 1, 4096, false},
    {"1 row", 1, 1, 16384, false},
    {"1 row", 1, 1, 32768, false},
    {"1 row", 1, 1, 65536, false},
    {"1 row", 1, 1, 131072, false},
    {"1 row", 1, 1, 1 << 18, false},
    {"1 row", 1, 1, 1 << 20, false},
    {"1 row", 1, 1, 1 << 22, false},
    {"1 row", 1, 1, 1 << 23, false},
    {"64 rows, one vector", 64, 1, 64, false},
    {"64 rows, one vector", 64, 1, 1024, false},
    {"64 rows, one vector", 64, 1, 16384, false},
    {"1024 rows, one vector", 1024, 1, 16, false},
    {"1024 rows, one vector", 1024, 1, 256, false},
    {"1024 rows, one vector", 1024, 1, 4096, false},
    {"65536 rows, one vector", 65536, 1, 16, false},
    {"65536 rows, one vector", 65536, 1, 128, false},
    {"256 pairs of rows", 256, 256, 64, false},
    {"256 pairs of rows", 256, 256, 1024, false},
    {"16384 pairs of rows", 16384, 16384, 64, false},
    {"16 x 16 rows", 16, 16, 1024, true},
    {"128 x 128 rows", 128, 128, 1024, true},
};

static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16,
                                    DTYPE_INT8,    DTYPE_INT64,   DTYPE_COMPLEX64};

static struct shape rows_shape(uint64_t rows, uint64_t n)
{
    return rows == 1 ? (struct shape){1, {n}} : (struct shape){2, {rows, n}};
}

/* The leading axes (rows, 1) and (1, rows) of a product of each with each. */
static struct shape shared_shape(uint64_t rows, bool is_a, uint64_t n)
{
    return is_a ? (struct shape){3, {rows, 1, n}} : (struct shape){3, {1, rows, n}};
}

static void job_make(const struct shape_case *c, enum dtype dtype, enum accuracy accuracy,
                     const void *base, struct job *ret)
{
    const size_t size = dtype_size(dtype);
    struct problem problem;
    struct tensor_pair pair = {
        .a = {dtype, c->shared ? shared_shape(c->rows_a, true, c->n) : rows_shape(c->rows_a, c->n),
              0},
        .b = {dtype, c->shared ? shared_shape(c->rows_b, false, c->n) : rows_shape(c->rows_b, c->n),
              c->rows_a * c->n * size},
    };
    *ret = (struct job){
        .base = base,
        .bytes = (c->rows_a + c->rows_b) * c->n * size,
        .accuracy = accuracy,
        .result_dtype = dtype_is_integer(dtype) ? DTYPE_INT64 : dtype,
    };
    enum error error = shape_dot(&pair.a.shape, &pair.b.shape, &pair.result, &problem);
    if (error == ERR_OK)
        error = job_plan(ret, &pair, 1);
    assert(error == ERR_OK);
}

static struct job_size size_of(const struct job *job, enum dtype dtype)
{
    return (struct job_size){
        .base = job->base,
        .bytes = job->bytes,
        .term_count = job->term_count,
        .row_count = dtype_is_complex(dtype) ? job->value_count / 2 : job->value_count,
        .dtype = dtype,
        .accuracy = job->accuracy,
    };
}

/* As the daemon does it. */
static double run_ns(int device, struct job *job)
{
    int64_t began = clock_ns();
    if (gpu_is_inline(gpu, device, job->term_count)) {
        gpu_compute(gpu, job);
    } else {
        enum error error = waiter_run(gpu, device, job);
        assert(error == ERR_OK);
    }
    return (double)(clock_ns() - began);
}

static int compare_ns(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Medians on both devices, in turn. */
static void time_both(struct job *job, double ret_ns[2])
{
    double took_ns[2][REPEATS], spent_ns = 0;
    int count = 0;
    for (; count < REPEATS && spent_ns < SLOW_NS; count++)
        for (int device = 0; device < 2; device++) {
            took_ns[device][count] = run_ns(device, job);
            spent_ns += took_ns[device][count];
        }
    for (int device = 0; device < 2; device++) {
        qsort(took_ns[device], (size_t)count, sizeof *took_ns[device], compare_ns);
        ret_ns[device] = took_ns[device][count / 2];
    }
}

struct tally {
    unsigned jobs, off;
    double worst;
};

static void measure(const struct shape_case *c, enum dtype dtype, enum accuracy accuracy,
                    int memory, bool all, struct tally *tally)
{
    struct job job;
    double ns[2];
    int chosen = 0;
    if ((c->rows_a + c->rows_b) * c->n * dtype_size(dtype) > OPERANDS_BYTES)
        return;
    job_make(c, dtype, accuracy, operands[memory], &job);
    const struct job_size size = size_of(&job, dtype);
    time_both(&job, ns);
    enum error error = gpu_place(gpu, PLACE_AUTO, -1, &size, &chosen);
    assert(error == ERR_OK);
    double better = ns[0] < ns[1] ? ns[0] : ns[1], ratio = ns[chosen > 0] / better;
    bool is_off = ratio * 100 > OFF_PERCENT;
    tally->jobs++;
    tally->off += is_off;
    tally->worst = ratio > tally->worst ? ratio : tally->worst;
    if (all || is_off)
        printf("| %s | %s | %s | %llu | %s | %.1f | %.1f | %.1f | %.1f | %s | %.2f |\n",
               dtype_name(dtype), accuracy == ACCURACY_FAST ? "fast" : "exact", c->name,
               (unsigned long long)c->n, memory == 0 ? "pinned" : "other", ns[0] * 1e-3,
               gpu_expected_ns(gpu, 0, &size) * 1e-3, ns[1] * 1e-3,
               gpu_expected_ns(gpu, 1, &size) * 1e-3, chosen > 0 ? "cuda" : "cpu", ratio);
    job_fini(&job);
}

static struct tally measure_all(bool all)
{
    struct tally tally = {0};
    printf(
        "| type | accuracy | batch | n | memory | cpu µs | expected | cuda µs | expected | auto | "
        "auto / better |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (enum accuracy accuracy = ACCURACY_EXACT; accuracy >= ACCURACY_FAST; accuracy--)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                for (int memory = 0; memory < 2; memory++)
                    if (accuracy == ACCURACY_EXACT || !dtype_is_integer(dtypes[d]))
                        measure(&cases[i], dtypes[d], accuracy, memory, all, &tally);
    return tally;
}

/* --- devices and memory --- */

/* Numbers of both signs and about the same size, as every type. */
static void fill(void *data, size_t size)
{
    uint64_t state = 7;
    for (uint64_t *word = data; size >= sizeof *word; size -= sizeof *word) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        *word++ = (state >> 5 & 0x800f800f800f800fu) | 0x3ff03ff03ff03ff0u;
    }
}

static bool devices_open(const struct gpu_config *config)
{
    static const struct backend *const two_cpus[] = {&backend_cpu, &backend_faulty, NULL};
    struct problem problem;
    if (gpu_open(&gpu, config, &problem) != ERR_OK)
        return false;
    if (gpu_device_count(gpu) > 1)
        return true;
    printf("No CUDA device: a second CPU in its place.\n\n");
    gpu_close(gpu);
    return gpu_open_backends(&gpu, config, two_cpus, &problem) == ERR_OK;
}

static void from_print(uint64_t bytes)
{
    if (bytes == UINT64_MAX)
        printf("never | ");
    else
        printf("%llu | ", (unsigned long long)bytes);
}

static void speeds_print(void)
{
    printf(
        "| device | type | accuracy | fixed µs | µs a further row | GB/s | 10^9 products/s | cuda "
        "from bytes, pinned | other |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int device = 0; device < 2; device++)
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
            for (enum accuracy accuracy = ACCURACY_EXACT; accuracy >= ACCURACY_FAST; accuracy--) {
                struct device_speed speed;
                if ((accuracy == ACCURACY_FAST && dtype_is_integer((enum dtype)dtype)) ||
                    !gpu_device_speed(gpu, device, (enum dtype)dtype, accuracy, &speed))
                    continue;
                printf("| %s | %s | %s | %llu | %llu | %llu | %llu | %llu | ",
                       gpu_device_info(gpu, device).id, dtype_name((enum dtype)dtype),
                       accuracy == ACCURACY_FAST ? "fast" : "exact",
                       (unsigned long long)speed.fixed_ns, (unsigned long long)speed.row_ns,
                       (unsigned long long)speed.mb_s, (unsigned long long)speed.unpinned_mb_s,
                       (unsigned long long)speed.products_us);
                from_print(speed.from_bytes);
                from_print(speed.from_unpinned_bytes);
                printf("\n");
            }
}

int main(int argc, char **argv)
{
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = OPERANDS_BYTES,
        .pinned_bytes = OPERANDS_BYTES,
        .device_bytes = 256 << 20,
        .queue_jobs = 1024,
        .queue_bytes = UINT64_MAX,
        .batch_jobs = 1024,
        .inline_terms = INLINE_TERMS,
    };
    struct block pinned;
    void *other = malloc(OPERANDS_BYTES);
    if (other == NULL || !devices_open(&config))
        return 1;
    int64_t began = clock_ns();
    gpu_measure(gpu);
    double took_ms = (double)(clock_ns() - began) * 1e-6;
    const struct buffer_source *source = gpu_buffers(gpu);
    if (source->acquire(source->context, OPERANDS_BYTES, &pinned) != ERR_OK)
        return 1;
    fill(pinned.data, OPERANDS_BYTES);
    fill(other, OPERANDS_BYTES);
    operands[0] = pinned.data;
    operands[1] = other;
    printf("%s beside %s, measured in %.0f ms.\n\n", gpu_device_info(gpu, 1).name,
           gpu_device_info(gpu, 0).name, took_ms);
    speeds_print();
    printf("\n");
    struct tally tally = measure_all(argc > 1 && strcmp(argv[1], "--all") == 0);
    printf("\n%u jobs, %u of them off by more than a tenth; auto / better at most %.2f.\n",
           tally.jobs, tally.off, tally.worst);
    source->release(source->context, pinned);
    gpu_close(gpu);
    free(other);
    return 0;
}
