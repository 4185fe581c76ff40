/* place.c - device "auto" beside the better of the CPU and each CUDA device.
 *
 *   bench_place [--all]
 *
 * For a grid of types, accuracies, lengths and batches, with operands in pinned memory and in
 * other: what the job takes on the CPU, on cuda:0 and where "auto" sends it, each beside what the
 * model measured at start expects; and how much longer than the better one auto takes. The two come
 * in turn, in rounds over the whole grid, and before each the operands are written anew, as those
 * of a request are. Times are lower quartiles, because cores of a virtual machine are up to twice
 * as slow for spells; and they are told for either half of the rounds, because that does not remove
 * all of it: of a job that is off in one half alone it cannot be said which device is better.
 * Without a CUDA device a second CPU stands in, which shows how well times are expected. --all: a
 * line for each job, not only for those where auto is off by more than a tenth in both halves.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/clock.h"
#include "gpu/gpu.h"
#include "gpu/waiter.h"
#include "tests/bench/arguments.h"

enum {
    INLINE_TERMS = 1 << 20,     /* as the daemon has it */
    OPERANDS_BYTES = 128 << 20, /* pinned, and as many that are not */
    PACKET_BYTES = 65000,       /* operands are written in such pieces */
    ROUNDS = 8,
    REPEATS = 2,            /* a round */
    SLOW_NS = 10 * 1000000, /* of one repetition: no further one in this round */
    OFF_PERCENT = 110,      /* of the better: told, and counted */
};

static struct gpu *gpu;
static void *operands[2]; /* pinned, other */
static char packet[PACKET_BYTES];

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

static void arrive(char *data, size_t size)
{
    for (size_t at = 0; at < size; at += PACKET_BYTES)
        memcpy(data + at, packet, size - at < PACKET_BYTES ? size - at : PACKET_BYTES);
}

static double run_ns(int device, struct job *job, bool is_inline)
{
    int64_t began = clock_ns();
    if (is_inline) {
        gpu_compute(gpu, job);
    } else {
        enum error error = waiter_run(gpu, device, job);
        assert(error == ERR_OK);
    }
    return (double)(clock_ns() - began);
}

/* A line of the table. */
struct kind {
    const struct shape_case *shape;
    enum dtype dtype;
    enum accuracy accuracy;
    int memory;
    struct half {
        double took_ns[2][ROUNDS * REPEATS / 2]; /* on either device; sorted in the end */
        int count;
    } half[2]; /* rounds in turn */
};

/* A worker's processor may have slept while the operands arrived, and takes up to 0.4 ms then,
 * whatever is computed: a job of a single product wakes it before. */
static void wake(const struct kind *kind, int device)
{
    static const struct shape_case one = {"", 1, 1, 1, false};
    struct job job;
    job_make(&one, kind->dtype, kind->accuracy, operands[kind->memory], &job);
    (void)run_ns(device, &job, false);
    job_fini(&job);
}

/* Both devices in turn. */
static void repeat(const struct kind *kind, struct half *half, struct job *job)
{
    for (int device = 0; device < 2; device++) {
        const bool is_inline = gpu_is_inline(gpu, device, kind->dtype, job->term_count);
        arrive(operands[kind->memory], job->bytes);
        if (!is_inline)
            wake(kind, device);
        half->took_ns[device][half->count] = run_ns(device, job, is_inline);
    }
    half->count++;
}

static void kind_run(struct kind *kind, int round)
{
    struct job job;
    const int64_t began = clock_ns();
    job_make(kind->shape, kind->dtype, kind->accuracy, operands[kind->memory], &job);
    for (int i = 0; i < REPEATS && (i == 0 || clock_ns() - began < SLOW_NS); i++)
        repeat(kind, &kind->half[round % 2], &job);
    job_fini(&job);
}

static int compare_ns(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double quartile_ns(struct half *half, int device)
{
    qsort(half->took_ns[device], (size_t)half->count, sizeof(double), compare_ns);
    return half->took_ns[device][(half->count - 1) / 4];
}

/* How much longer than on the other device, if at all. */
static double regret(struct half *half, int chosen)
{
    double ratio = quartile_ns(half, chosen) / quartile_ns(half, !chosen);
    return ratio > 1 ? ratio : 1;
}

struct tally {
    unsigned jobs, off[2]; /* off in both halves; in one at the least */
    double worst[2];
};

static void tally_add(struct tally *tally, const double ratio[2])
{
    const double of[2] = {fmin(ratio[0], ratio[1]), fmax(ratio[0], ratio[1])};
    tally->jobs++;
    for (int i = 0; i < 2; i++) {
        tally->off[i] += of[i] * 100 > OFF_PERCENT;
        tally->worst[i] = fmax(tally->worst[i], of[i]);
    }
}

static void kind_print(struct kind *kind, const struct job_size *size, int chosen,
                       const double ratio[2])
{
    printf("| %s | %s | %s | %llu | %s | ", dtype_name(kind->dtype),
           kind->accuracy == ACCURACY_FAST ? "fast" : "exact", kind->shape->name,
           (unsigned long long)kind->shape->n, kind->memory == 0 ? "pinned" : "other");
    for (int device = 0; device < 2; device++)
        printf("%.1f, %.1f | %.1f | ", quartile_ns(&kind->half[0], device) * 1e-3,
               quartile_ns(&kind->half[1], device) * 1e-3,
               gpu_expected_ns(gpu, device, size) * 1e-3);
    printf("%s | %.2f, %.2f |\n", chosen > 0 ? "cuda" : "cpu", ratio[0], ratio[1]);
}

static void kind_tell(struct kind *kind, bool all, struct tally *tally)
{
    struct job job;
    int chosen = 0;
    job_make(kind->shape, kind->dtype, kind->accuracy, operands[kind->memory], &job);
    const struct job_size size = size_of(&job, kind->dtype);
    enum error error = gpu_place(gpu, PLACE_AUTO, -1, &size, &chosen);
    assert(error == ERR_OK);
    const double ratio[2] = {regret(&kind->half[0], chosen), regret(&kind->half[1], chosen)};
    tally_add(tally, ratio);
    if (all || fmin(ratio[0], ratio[1]) * 100 > OFF_PERCENT)
        kind_print(kind, &size, chosen, ratio);
    job_fini(&job);
}

enum {
    CASES = sizeof cases / sizeof *cases,
    DTYPES = sizeof dtypes / sizeof *dtypes,
    KINDS_MOST = CASES * DTYPES * 2 * 2,
};

static size_t kinds_list(struct kind ret[KINDS_MOST])
{
    size_t count = 0;
    for (size_t d = 0; d < DTYPES; d++)
        for (enum accuracy accuracy = ACCURACY_EXACT; accuracy >= ACCURACY_FAST; accuracy--)
            for (size_t i = 0; i < CASES; i++)
                for (int memory = 0; memory < 2; memory++)
                    if (accuracy == ACCURACY_EXACT || !dtype_is_integer(dtypes[d]))
                        ret[count++] = (struct kind){.shape = &cases[i],
                                                     .dtype = dtypes[d],
                                                     .accuracy = accuracy,
                                                     .memory = memory};
    return count;
}

static struct tally measure_all(bool all)
{
    static struct kind kinds[KINDS_MOST];
    const size_t count = kinds_list(kinds);
    struct tally tally = {0};
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++)
            kind_run(&kinds[i], round);
    printf(
        "| type | accuracy | batch | n | memory | cpu µs | expected | cuda µs | expected | auto | "
        "auto / better |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        kind_tell(&kinds[i], all, &tally);
    return tally;
}

/* --- devices and memory --- */

/* Numbers of both signs and about the same size, as every type. */
static void fill(void)
{
    uint64_t state = 7;
    for (size_t at = 0; at < PACKET_BYTES; at += sizeof state) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = (state >> 5 & 0x800f800f800f800fu) | 0x3ff03ff03ff03ff0u;
        memcpy(packet + at, &word, sizeof word);
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
    printf("| device | type | accuracy | fixed ns | ns a further row | MB/s | unpinned MB/s | "
           "products "
           "a µs | cuda from bytes, pinned | other |\n|---|---|---|---|---|---|---|---|---|---|\n");
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

/* The first block fills what can be pinned; the second lies beside it. */
static bool operands_open(struct block block[2])
{
    const struct buffer_source *source = gpu_buffers(gpu);
    for (int i = 0; i < 2; i++) {
        if (source->acquire(source->context, OPERANDS_BYTES, &block[i]) != ERR_OK)
            return false;
        operands[i] = block[i].data;
        arrive(operands[i], OPERANDS_BYTES);
    }
    return true;
}

int main(int argc, char **argv)
{
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = (size_t)2 * OPERANDS_BYTES,
        .pinned_bytes = OPERANDS_BYTES,
        .device_bytes = 256 << 20,
        .queue_jobs = 1024,
        .queue_bytes = UINT64_MAX,
        .batch_jobs = 1024,
        .inline_terms = INLINE_TERMS,
    };
    const bool tells_all = argc == 2 && strcmp(argv[1], "--all") == 0;
    if (argc > 1 && !tells_all)
        return arguments_usage(NULL, 0, " [--all]");
    struct block block[2];
    if (!devices_open(&config))
        return 1;
    int64_t began = clock_ns();
    gpu_measure(gpu);
    double took_ms = (double)(clock_ns() - began) * 1e-6;
    fill();
    if (!operands_open(block))
        return 1;
    printf("%s beside %s, measured in %.0f ms.\n\n", gpu_device_info(gpu, 1).name,
           gpu_device_info(gpu, 0).name, took_ms);
    speeds_print();
    printf("\n");
    struct tally tally = measure_all(tells_all);
    printf(
        "\n%u jobs, %u of them off by more than a tenth in both halves, at most %.2f; %u in one at "
        "the least, at most %.2f.\n",
        tally.jobs, tally.off[0], tally.worst[0], tally.off[1], tally.worst[1]);
    for (int i = 0; i < 2; i++)
        gpu_buffers(gpu)->release(gpu_buffers(gpu)->context, block[i]);
    gpu_close(gpu);
    return 0;
}
