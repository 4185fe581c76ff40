/* kernels.c - the kernel beside cuBLAS on operands that lie on the device, and one job's and 64
 * jobs' time on the device through gpu.h.
 *
 * Usage: bench_kernels [largest n, default 1e8]. Both sides run in one go, in turn, with L2 flushed
 * before each run, and are timed by CUDA events behind that flush, so that launches are queued by
 * then. Medians. cuBLAS sums in the element type; the kernel in float64, and |a b| besides.
 */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"
#include "gpu/kernels/grid_atomic.h"

enum {
    RUNS = 31,
    SEED_COUNT = 1 << 20, /* random elements, repeated to the length that is wanted */
    LATENCY_RUNS = 2000,
    BATCH_JOBS = 64,
    BATCH_RUNS = 300,
    JOB_N = 1024,
};

#define REQUIRE(call)                                                 \
    do {                                                              \
        int status_ = (int)(call);                                    \
        if (status_ != 0) {                                           \
            (void)fprintf(stderr, "%s: status %d\n", #call, status_); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* --- kernels --- */

struct bench {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cublasHandle_t cublas;
    uint32_t capacity[DTYPE_COUNT];
    void *d_flush; /* twice L2 */
    size_t flush_bytes;
    void *d_a, *d_b;
    struct grid_sum *d_sum; /* [2]: stored, and added to */
    double *d_blas;
};

static void bench_open(struct bench *bench, size_t bytes)
{
    int device = 0, multiprocessors = 0, blocks = 0, l2 = 0;
    REQUIRE(cudaGetDevice(&device));
    REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    REQUIRE(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        REQUIRE(grid_atomic_blocks((enum dtype)dtype, &blocks));
        bench->capacity[dtype] = (uint32_t)(multiprocessors * blocks);
    }
    bench->flush_bytes = 2 * (size_t)l2;
    REQUIRE(cudaStreamCreate(&bench->stream));
    REQUIRE(cudaEventCreate(&bench->begin));
    REQUIRE(cudaEventCreate(&bench->end));
    REQUIRE(cudaMalloc(&bench->d_flush, bench->flush_bytes));
    REQUIRE(cudaMalloc(&bench->d_a, bytes));
    REQUIRE(cudaMalloc(&bench->d_b, bytes));
    REQUIRE(cudaMalloc((void **)&bench->d_sum, 2 * sizeof *bench->d_sum));
    REQUIRE(cudaMalloc((void **)&bench->d_blas, sizeof *bench->d_blas));
    REQUIRE(cublasCreate(&bench->cublas));
    REQUIRE(cublasSetStream(bench->cublas, bench->stream));
    REQUIRE(cublasSetPointerMode(bench->cublas, CUBLAS_POINTER_MODE_DEVICE));
}

static void bench_close(struct bench *bench)
{
    REQUIRE(cublasDestroy(bench->cublas));
    REQUIRE(cudaFree(bench->d_blas));
    REQUIRE(cudaFree(bench->d_sum));
    REQUIRE(cudaFree(bench->d_b));
    REQUIRE(cudaFree(bench->d_a));
    REQUIRE(cudaFree(bench->d_flush));
    REQUIRE(cudaEventDestroy(bench->end));
    REQUIRE(cudaEventDestroy(bench->begin));
    REQUIRE(cudaStreamDestroy(bench->stream));
}

/* Uniform in [0, 1): sums are well-conditioned, so that both sides can be compared. */
static void fill(void *d_data, enum dtype dtype, size_t bytes)
{
    size_t size = dtype_size(dtype);
    char *seed = malloc(SEED_COUNT * size);
    if (seed == NULL)
        exit(1);
    for (size_t i = 0; i < SEED_COUNT; i++) {
        double value = rand() / ((double)RAND_MAX + 1);
        if (dtype == DTYPE_FLOAT32)
            ((float *)(void *)seed)[i] = (float)value;
        else
            ((double *)(void *)seed)[i] = value;
    }
    for (size_t done = 0; done < bytes; done += SEED_COUNT * size) {
        size_t part = bytes - done < SEED_COUNT * size ? bytes - done : SEED_COUNT * size;
        REQUIRE(cudaMemcpy((char *)d_data + done, seed, part, cudaMemcpyHostToDevice));
    }
    free(seed);
}

static void queue_grid(struct bench *bench, enum dtype dtype, uint64_t n)
{
    struct grid_launch launch = {
        .result = bench->d_sum,
        .split = bench->d_sum + 1,
        .only =
            {.a = bench->d_a, .b = bench->d_b, .n = n, .rows = 1, .inner_rows = 1, .dtype = dtype},
    };
    grid_plan(&launch.only, bench->capacity[dtype]);
    if (launch.only.form == GRID_SPLIT_ROW)
        REQUIRE(cudaMemsetAsync(launch.split, 0, sizeof *launch.split, bench->stream));
    REQUIRE(grid_atomic_launch(dtype, &launch, launch.only.blocks, bench->stream));
}

static double grid_result(const struct bench *bench, enum dtype dtype, uint64_t n)
{
    struct grid_task task = {.n = n, .rows = 1, .dtype = dtype};
    struct grid_sum sums[2];
    grid_plan(&task, bench->capacity[dtype]);
    REQUIRE(cudaMemcpy(sums, bench->d_sum, sizeof sums, cudaMemcpyDeviceToHost));
    return sums[task.form == GRID_SPLIT_ROW].sum;
}

static void queue_blas(struct bench *bench, enum dtype dtype, uint64_t n)
{
    if (dtype == DTYPE_FLOAT32)
        REQUIRE(cublasSdot(bench->cublas, (int)n, bench->d_a, 1, bench->d_b, 1,
                           (float *)bench->d_blas));
    else
        REQUIRE(cublasDdot(bench->cublas, (int)n, bench->d_a, 1, bench->d_b, 1, bench->d_blas));
}

static double blas_result(const struct bench *bench, enum dtype dtype)
{
    double wide = 0;
    float narrow = 0;
    REQUIRE(cudaMemcpy(&wide, bench->d_blas, sizeof wide, cudaMemcpyDeviceToHost));
    memcpy(&narrow, &wide, sizeof narrow);
    return dtype == DTYPE_FLOAT32 ? (double)narrow : wide;
}

typedef void (*queue_one)(struct bench *bench, enum dtype dtype, uint64_t n);

static double time_one(struct bench *bench, queue_one queue, enum dtype dtype, uint64_t n)
{
    float ms = 0;
    REQUIRE(cudaMemsetAsync(bench->d_flush, 0, bench->flush_bytes, bench->stream));
    REQUIRE(cudaEventRecord(bench->begin, bench->stream));
    queue(bench, dtype, n);
    REQUIRE(cudaEventRecord(bench->end, bench->stream));
    REQUIRE(cudaStreamSynchronize(bench->stream));
    REQUIRE(cudaEventElapsedTime(&ms, bench->begin, bench->end));
    return (double)ms * 1e3;
}

static void compare_at(struct bench *bench, enum dtype dtype, uint64_t n)
{
    double grid[RUNS], blas[RUNS];
    for (int run = 0; run < RUNS; run++) {
        grid[run] = time_one(bench, queue_grid, dtype, n);
        blas[run] = time_one(bench, queue_blas, dtype, n);
    }
    double ours = grid_result(bench, dtype, n), theirs = blas_result(bench, dtype);
    double gigabytes = 2.0 * (double)n * (double)dtype_size(dtype) / 1e9;
    double grid_us = median(grid, RUNS), blas_us = median(blas, RUNS);
    (void)printf("%s %10llu %10.2f %9.1f %10.2f %9.1f %8.2f %9.1e\n", dtype_name(dtype),
                 (unsigned long long)n, grid_us, gigabytes / grid_us * 1e6, blas_us,
                 gigabytes / blas_us * 1e6, blas_us / grid_us, fabs(ours - theirs) / ours);
}

static void compare_kernels(double largest)
{
    struct bench bench;
    bench_open(&bench, (size_t)largest * sizeof(double));
    (void)printf("%-7s %10s %10s %9s %10s %9s %8s %9s\n", "dtype", "n", "grid us", "GB/s",
                 "cuBLAS us", "GB/s", "speed-up", "differ");
    for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++) {
        fill(bench.d_a, dtype, (size_t)largest * dtype_size(dtype));
        fill(bench.d_b, dtype, (size_t)largest * dtype_size(dtype));
        for (double n = 100; n <= largest; n *= 10)
            compare_at(&bench, dtype, (uint64_t)n);
    }
    bench_close(&bench);
}

/* --- jobs through gpu.h --- */

struct sink {
    struct job_port port; /* first: sink_complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned jobs; /* lock */
};

static void sink_complete(struct job_port *port, struct job *first)
{
    struct sink *sink = (struct sink *)port;
    (void)pthread_mutex_lock(&sink->lock);
    for (struct job *job = first; job != NULL; job = job->next)
        sink->jobs++;
    (void)pthread_cond_signal(&sink->changed);
    (void)pthread_mutex_unlock(&sink->lock);
}

static void run_jobs(struct gpu *gpu, struct job *jobs, unsigned count)
{
    struct sink sink = {{sink_complete}, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    for (unsigned i = 0; i < count; i++) {
        jobs[i].port = &sink.port;
        REQUIRE(gpu_submit(gpu, 1, &jobs[i]));
    }
    (void)pthread_mutex_lock(&sink.lock);
    while (sink.jobs < count)
        (void)pthread_cond_wait(&sink.changed, &sink.lock);
    (void)pthread_mutex_unlock(&sink.lock);
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
    compare_kernels(argc > 1 ? strtod(argv[1], NULL) : 1e8);
    time_jobs(gpu);
    gpu_close(gpu);
    return 0;
}
