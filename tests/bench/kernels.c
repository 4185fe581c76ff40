/* kernels.c - every rung of the ladder beside cuBLAS on operands that lie on the device, each sum
 * checked; and one job's and 64 jobs' time on the device through gpu.h.
 *
 *   bench_kernels [LARGEST]
 *
 * n up to LARGEST, which may be told as 1e8. All run in one go, in turn, with L2 flushed before
 * each run, and are timed by CUDA events behind that flush, so that launches are queued by then;
 * what a rung must clear counts. Medians. Slow ones run less often. Exit status 1: a sum was wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exact/sum.h"
#include "gpu/gpu.h"
#include "gpu/ladder.h"
#include "tests/bench/arguments.h"
#include "tests/bench/cublas.h"
#include "tests/random.h"
#include "tests/sink.h"

enum {
    RUNS = 31,
    RUNS_LEAST = 3,
    BUDGET_US = 200000,   /* of one side at one length */
    SEED_COUNT = 1 << 20, /* random elements, repeated to the length that is wanted */
    LATENCY_RUNS = 2000,
    BATCH_JOBS = 64,
    BATCH_RUNS = 300,
    JOB_N = 1024,
};

/* --- the device --- */

struct bench {
    struct stage stage;
    struct rung_machine machine;
    char *a, *b; /* operands on the host */
    char *d_result, *d_scratch;
};

static void bench_open(struct bench *bench, size_t bytes)
{
    stage_open(&bench->stage, bytes);
    REQUIRE(cuda_machine(&bench->machine));
    REQUIRE(cudaMallocHost((void **)&bench->a, bytes));
    REQUIRE(cudaMallocHost((void **)&bench->b, bytes));
    REQUIRE(cudaMalloc((void **)&bench->d_result, RUNG_RESULT_BYTES));
    REQUIRE(cudaMalloc((void **)&bench->d_scratch, RUNG_SCRATCH_BYTES));
}

static void bench_close(struct bench *bench)
{
    REQUIRE(cudaFree(bench->d_scratch));
    REQUIRE(cudaFree(bench->d_result));
    REQUIRE(cudaFreeHost(bench->b));
    REQUIRE(cudaFreeHost(bench->a));
    stage_close(&bench->stage);
}

/* Uniform in [0, 1): the sum is as large as the sum of magnitudes, so that errors can be told. */
static void fill(char *data, char *d_data, enum dtype dtype, uint64_t n)
{
    const size_t size = dtype_size(dtype);
    for (uint64_t i = 0; i < n && i < SEED_COUNT; i++) {
        const double value = (double)(random_next() >> 11) * 0x1p-53;
        if (dtype == DTYPE_FLOAT32)
            ((float *)(void *)data)[i] = (float)value;
        else
            ((double *)(void *)data)[i] = value;
    }
    for (uint64_t done = SEED_COUNT; done < n; done += SEED_COUNT)
        memcpy(data + done * size, data, (n - done < SEED_COUNT ? n - done : SEED_COUNT) * size);
    REQUIRE(cudaMemcpy(d_data, data, n * size, cudaMemcpyHostToDevice));
}

/* --- one length: every rung and cuBLAS --- */

enum { RUNGS_MAX = 16 };

struct side {
    const struct rung *rung; /* NULL: cuBLAS */
    double us[RUNS];
    int wanted, runs; /* slow ones run less often */
    struct dot_value value;
    bool is_right;
};

struct trial {
    struct bench *bench;
    enum dtype dtype;
    uint64_t n;
    struct dot_value exact; /* in float64 */
};

static void queue_rung(const struct trial *trial, const struct rung *rung)
{
    const struct rung_call call = {
        .machine = &trial->bench->machine,
        .dtype = trial->dtype,
        .a = trial->bench->stage.d_a,
        .b = trial->bench->stage.d_b,
        .n = trial->n,
        .result = trial->bench->d_result,
        .scratch = trial->bench->d_scratch,
        .stream = trial->bench->stage.stream,
    };
    REQUIRE(rung_cuda(rung, &call));
}

static double time_one(const struct trial *trial, const struct side *side)
{
    const struct stage *stage = &trial->bench->stage;
    stage_begin(stage);
    if (side->rung == NULL)
        stage_blas(stage, trial->dtype, trial->n);
    else
        queue_rung(trial, side->rung);
    return stage_end_us(stage);
}

/* The value, and what is promised of it. cuBLAS promises nothing: any order of n terms. */
static struct dot_value value_of(const struct trial *trial, const struct rung *rung)
{
    const struct bench *bench = trial->bench;
    const struct rung *like = rung != NULL ? rung : ladder_find("thread-atomic");
    const struct ladder_ask ask = {
        .rung = like, .dtype = trial->dtype, .a = bench->a, .b = bench->b, .n = trial->n};
    unsigned char result[RUNG_RESULT_BYTES];
    struct rung_takes takes;
    struct dot_value value = {0};
    REQUIRE(cudaMemcpy(result, rung != NULL ? bench->d_result : bench->stage.d_blas,
                       rung != NULL ? RUNG_RESULT_BYTES : sizeof(double), cudaMemcpyDeviceToHost));
    if (like->is_exact)
        memcpy(&value, result, sizeof value);
    else
        value.sum = rung_value(like, trial->dtype, result);
    rung_takes(like, &bench->machine, trial->dtype, trial->n, 0, &takes);
    ladder_settle(&ask, &takes, &value);
    return value;
}

static void warm_up(const struct trial *trial, struct side *side)
{
    (void)time_one(trial, side); /* loads the kernel */
    const double us = time_one(trial, side);
    side->wanted = us * RUNS < BUDGET_US ? RUNS : (int)(BUDGET_US / us);
    if (side->wanted < RUNS_LEAST)
        side->wanted = RUNS_LEAST;
    side->runs = 0;
    side->value = value_of(trial, side->rung);
    const double error = fabs(side->value.sum - trial->exact.sum);
    side->is_right = error <= side->value.error_bound + trial->exact.error_bound;
}

static void print_side(const struct trial *trial, struct side *side, double blas_us)
{
    const double us = median(side->us, (size_t)side->runs);
    const double bytes = 2.0 * (double)trial->n * (double)dtype_size(trial->dtype);
    const double error = fabs(side->value.sum - trial->exact.sum);
    (void)printf("%s %10llu %-13s %4d %10.2f %8.1f %7.2f %9.1e %9.1e  %s\n",
                 dtype_name(trial->dtype), (unsigned long long)trial->n,
                 side->rung != NULL ? side->rung->name : "cuBLAS", side->runs, us, bytes / us / 1e3,
                 blas_us / us, error / trial->exact.sum, side->value.error_bound / trial->exact.sum,
                 !side->is_right                                 ? "WRONG"
                 : side->rung != NULL && side->rung->is_lab_only ? "not promised"
                                                                 : "ok");
}

static void print_cell(struct side *side, char *table, size_t size)
{
    const size_t used = strlen(table);
    (void)snprintf(table + used, size - used, " %.1f |", median(side->us, (size_t)side->runs));
}

/* Of those that take n: a line each; a row of the table. True if all are right. */
static bool compare_at(struct trial *trial, char *table, size_t size)
{
    static struct side sides[RUNGS_MAX];
    size_t rung_count = 0, count = 1;
    const struct rung *rungs = ladder_rows(&rung_count);
    struct problem problem;
    bool is_right = true;
    sides[0].rung = NULL;
    for (size_t i = 0; i < rung_count && count < RUNGS_MAX; i++)
        if (rung_check(&rungs[i], trial->dtype, trial->n, 0, &problem) == ERR_OK)
            sides[count++].rung = &rungs[i];
    for (size_t i = 0; i < count; i++)
        warm_up(trial, &sides[i]);
    for (int run = 0; run < RUNS; run++)
        for (size_t i = 0; i < count; i++)
            if (run < sides[i].wanted)
                sides[i].us[sides[i].runs++] = time_one(trial, &sides[i]);
    const double blas_us = median(sides[0].us, (size_t)sides[0].runs);
    for (size_t i = 0; i < count; i++) {
        print_side(trial, &sides[i], blas_us);
        is_right = is_right && sides[i].is_right;
    }
    const size_t used = strlen(table);
    (void)snprintf(table + used, size - used, "| %s | 10^%.0f |", dtype_name(trial->dtype),
                   log10((double)trial->n));
    print_cell(&sides[0], table, size);
    for (size_t i = 0, side = 1; i < rung_count; i++)
        if (side < count && sides[side].rung == &rungs[i])
            print_cell(&sides[side++], table, size);
        else
            (void)strncat(table, " |", size - strlen(table) - 1);
    (void)strncat(table, "\n", size - strlen(table) - 1);
    return is_right;
}

static void begin_table(char *table, size_t size)
{
    size_t count = 0;
    const struct rung *rungs = ladder_rows(&count);
    (void)snprintf(table, size, "| dtype | n | cuBLAS |");
    for (size_t i = 0; i < count; i++) {
        (void)strncat(table, " ", size - strlen(table) - 1);
        (void)strncat(table, rungs[i].name, size - strlen(table) - 1);
        (void)strncat(table, " |", size - strlen(table) - 1);
    }
    (void)strncat(table, "\n|---|---|---|", size - strlen(table) - 1);
    for (size_t i = 0; i < count; i++)
        (void)strncat(table, "---|", size - strlen(table) - 1);
    (void)strncat(table, "\n", size - strlen(table) - 1);
}

static struct dot_value exact_of(const struct bench *bench, enum dtype dtype, uint64_t n)
{
    struct exact_sum sum;
    struct dot_value value;
    exact_sum_init(&sum, NULL, dtype, false, false);
    exact_sum_add(&sum, bench->a, bench->b, n);
    exact_sum_round(&sum, DTYPE_FLOAT64, &value);
    return value;
}

/* True if every sum was within its bound. */
static bool compare_rungs(double largest)
{
    static char table[1 << 14];
    struct bench bench;
    bool is_right = true;
    bench_open(&bench, (size_t)largest * sizeof(double));
    (void)printf("\n%-7s %10s %-13s %4s %10s %8s %7s %9s %9s\n", "dtype", "n", "kernel", "runs",
                 "us", "GB/s", "share", "error", "bound");
    begin_table(table, sizeof table);
    for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++) {
        fill(bench.a, bench.stage.d_a, dtype, (uint64_t)largest);
        fill(bench.b, bench.stage.d_b, dtype, (uint64_t)largest);
        for (double n = 100; n <= largest; n *= 10) {
            struct trial trial = {.bench = &bench, .dtype = dtype, .n = (uint64_t)n};
            trial.exact = exact_of(&bench, dtype, trial.n);
            is_right = compare_at(&trial, table, sizeof table) && is_right;
        }
    }
    (void)printf("\nMicroseconds, medians, cold L2; %s\n\n%s",
                 is_right ? "every sum within its bound" : "SOME SUMS ARE WRONG", table);
    bench_close(&bench);
    return is_right;
}

/* --- jobs through gpu.h --- */

static void run_jobs(struct gpu *gpu, struct job *jobs, unsigned count)
{
    struct sink sink;
    sink_init(&sink);
    for (unsigned i = 0; i < count; i++) {
        jobs[i].port = &sink.port;
        REQUIRE(gpu_submit(gpu, 1, &jobs[i]));
    }
    sink_wait(&sink, count);
}

static double device_us(const struct job *job)
{
    return (double)(job->times.finished_ns - job->times.started_ns) / 1e3;
}

static const struct tensor_pair job_pair = {
    .a = {DTYPE_FLOAT32, {1, {JOB_N}}, 0},
    .b = {DTYPE_FLOAT32, {1, {JOB_N}}, JOB_N * sizeof(float)},
};

static void job_open(struct gpu *gpu, struct job *job)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    struct block block;
    *job = (struct job){.bytes = 2 * JOB_N * sizeof(float)};
    REQUIRE(source->acquire(source->context, job->bytes, &block));
    for (size_t i = 0; i < 2 * JOB_N; i++)
        ((float *)block.data)[i] = (float)i;
    job->base = block.data;
    REQUIRE(job_plan(job, &job_pair, 1));
}

static void job_close(struct gpu *gpu, struct job *job)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    struct block block = {(void *)(uintptr_t)job->base, job->bytes};
    job_fini(job);
    source->release(source->context, block);
}

/* The largest batch of each burst counts: the first job usually leaves alone, the others while it
 * is computed. */
static void time_jobs(struct gpu *gpu)
{
    struct job jobs[BATCH_JOBS];
    static double single[LATENCY_RUNS], batch[BATCH_RUNS], size[BATCH_RUNS];
    for (int i = 0; i < BATCH_JOBS; i++)
        job_open(gpu, &jobs[i]);
    for (int run = 0; run < LATENCY_RUNS; run++) {
        run_jobs(gpu, jobs, 1);
        single[run] = device_us(&jobs[0]);
    }
    for (int run = 0; run < BATCH_RUNS; run++) {
        run_jobs(gpu, jobs, BATCH_JOBS);
        const struct job *largest = &jobs[0];
        for (int i = 1; i < BATCH_JOBS; i++)
            if (jobs[i].batch_size > largest->batch_size)
                largest = &jobs[i];
        batch[run] = device_us(largest);
        size[run] = largest->batch_size;
    }
    (void)printf("\none job of n = %d, float32, on the device: %.1f us\n", JOB_N,
                 median(single, LATENCY_RUNS));
    (void)printf("a burst of %d such jobs: batch of %.0f, %.1f us\n", BATCH_JOBS,
                 median(size, BATCH_RUNS), median(batch, BATCH_RUNS));
    for (int i = 0; i < BATCH_JOBS; i++)
        job_close(gpu, &jobs[i]);
}

int main(int argc, char **argv)
{
    struct argument largest = {"LARGEST", 1e8, 100, 1e10};
    arguments_read(argc, argv, &largest, 1);
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = 64 << 20,
        .pinned_bytes = 64 << 20,
        .device_bytes = 64 << 20,
        .queue_jobs = 1024,
        .batch_jobs = 1024,
    };
    struct gpu *gpu = NULL;
    struct problem problem;
    if (gpu_open(&gpu, &config, &problem) != ERR_OK || gpu_device_count(gpu) < 2) {
        (void)fprintf(stderr, "no CUDA device\n");
        gpu_close(gpu);
        return 1;
    }
    struct device_info info = gpu_device_info(gpu, 1);
    (void)printf("%s, %u multiprocessors, sm_%u; medians, cold L2\n", info.name,
                 info.multiprocessors, info.capability);
    time_jobs(gpu);
    gpu_close(gpu);
    return compare_rungs(largest.value) ? 0 : 1;
}
