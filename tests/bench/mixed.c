/* mixed.c - pairs of mixed lengths in one job: on the device itself, through the door, on the CPU.
 *
 *   bench_mixed [LONGEST [MOST_PAIRS]]
 *
 * Lengths are spread evenly on a logarithmic scale from 1 to LONGEST, then evenly with about the
 * same sum. On the device: the kernels alone, the table's copy included, operands there, cold L2,
 * beside cuBLAS's one dot product of as many elements. Through the door: gpu_submit() to
 * completion, operands in pinned memory, beside one plain copy of as many bytes to the device. All
 * sides in turn; medians, of the CPU one run. Every sum is held to the CPU's exact one. Exit status
 * 1: one was wrong.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/clock.h"
#include "gpu/gpu.h"
#include "gpu/kernels/exact.h"
#include "gpu/kernels/grid_atomic.h"
#include "tests/bench/arguments.h"
#include "tests/bench/cublas.h"
#include "tests/bench/port.h"
#include "tests/random.h"

enum { RUNS = 5, PATTERN = (1 << 21) + 7 };

enum side { SIDE_KERNELS, SIDE_BLAS, SIDE_DOOR, SIDE_COPY, SIDE_COUNT };

/* The kernels' table, on the host in pinned memory. */
struct table {
    uint32_t capacity;        /* of the fast kernel */
    struct exact_shape shape; /* of the exact one */
    struct grid_task *task, *d_task;
    uint32_t *task_of_block, *d_task_of_block;
    uint32_t blocks;
    struct grid_sum *d_sum, *d_split;
    struct dot_value *d_value;
    struct exact_total *d_total;
};

struct bench {
    struct gpu *gpu;
    struct port port;
    struct block block; /* all operands */
    size_t pairs_max;
    struct stage stage; /* d_a: a copy of the block */
    struct table table;
    struct tensor_pair *pair;
    struct dot_value *exact; /* the CPU's */
    void *result;            /* of the kernels */
    bool failed;
};

struct work {
    enum dtype dtype;
    enum accuracy accuracy;
    size_t pairs, bytes; /* the latter with the gaps between operands */
    uint64_t terms;
};

/* --- work --- */

/* 1 to longest. */
static uint64_t length_of(bool is_even, uint64_t longest)
{
    const double unit = (double)(random_next() >> 11) * 0x1p-53;
    const double even = 2 * (double)longest / log((double)longest); /* the same mean */
    return is_even ? 1 + (uint64_t)(unit * even) : (uint64_t)pow((double)longest, unit);
}

static void plan(struct bench *bench, struct work *work, bool is_even, uint64_t longest)
{
    const size_t size = dtype_size(work->dtype);
    random_state = work->pairs;
    work->bytes = 0;
    work->terms = 0;
    for (size_t i = 0; i < work->pairs; i++) {
        const struct shape shape = {1, {length_of(is_even, longest)}};
        const size_t half = size_align(shape.dim[0] * size);
        bench->pair[i] = (struct tensor_pair){.a = {work->dtype, shape, work->bytes},
                                              .b = {work->dtype, shape, work->bytes + half}};
        work->bytes += 2 * half;
        work->terms += shape.dim[0];
    }
    assert(work->bytes <= bench->block.size);
}

/* Uniform in [-1, 1), again and again; of no power of two, so that no two rows are alike. */
static void fill(const struct bench *bench, const struct work *work)
{
    const size_t pattern = PATTERN * dtype_size(work->dtype);
    char *data = bench->block.data;
    for (size_t i = 0; i < PATTERN && i * dtype_size(work->dtype) < work->bytes; i++) {
        const double wide = (double)(random_next() >> 11) * 0x1p-52 - 1;
        if (work->dtype == DTYPE_FLOAT32)
            ((float *)data)[i] = (float)wide;
        else
            ((double *)data)[i] = wide;
    }
    for (size_t done = pattern; done < work->bytes; done += pattern)
        memcpy(data + done, data, work->bytes - done < pattern ? work->bytes - done : pattern);
    REQUIRE(cudaMemcpy(bench->stage.d_a, data, work->bytes, cudaMemcpyHostToDevice));
    REQUIRE(cudaMemcpy(bench->stage.d_b, data, work->bytes / 2 + sizeof(double),
                       cudaMemcpyHostToDevice));
}

/* --- on the device --- */

static void table_open(struct table *table, size_t pairs)
{
    const size_t blocks = pairs * 1024;
    REQUIRE(cudaHostAlloc((void **)&table->task, pairs * sizeof *table->task, 0));
    REQUIRE(cudaHostAlloc((void **)&table->task_of_block, blocks * sizeof(uint32_t), 0));
    REQUIRE(cudaMalloc((void **)&table->d_task, pairs * sizeof *table->task));
    REQUIRE(cudaMalloc((void **)&table->d_task_of_block, blocks * sizeof(uint32_t)));
    REQUIRE(cudaMalloc((void **)&table->d_sum, pairs * sizeof *table->d_sum));
    REQUIRE(cudaMalloc((void **)&table->d_split, pairs * sizeof *table->d_split));
    REQUIRE(cudaMalloc((void **)&table->d_value, pairs * sizeof *table->d_value));
    REQUIRE(cudaMalloc((void **)&table->d_total, pairs * sizeof *table->d_total));
    REQUIRE(cudaMemset(table->d_total, 0, pairs * sizeof *table->d_total));
}

static void table_close(struct table *table)
{
    REQUIRE(cudaFree(table->d_total));
    REQUIRE(cudaFree(table->d_value));
    REQUIRE(cudaFree(table->d_split));
    REQUIRE(cudaFree(table->d_sum));
    REQUIRE(cudaFree(table->d_task_of_block));
    REQUIRE(cudaFree(table->d_task));
    REQUIRE(cudaFreeHost(table->task_of_block));
    REQUIRE(cudaFreeHost(table->task));
}

static uint32_t capacity_of(const struct table *table, const struct work *work)
{
    return work->accuracy == ACCURACY_FAST ? table->capacity : table->shape.capacity;
}

static void plan_task(const struct table *table, const struct work *work, struct grid_task *task,
                      uint32_t capacity)
{
    struct exact_shape shape = table->shape;
    shape.capacity = capacity;
    if (work->accuracy == ACCURACY_FAST)
        grid_plan(task, capacity);
    else
        exact_plan(task, &shape, false);
}

static void open_kernels(struct table *table, enum dtype dtype)
{
    int device = 0, multiprocessors = 0, blocks = 0;
    REQUIRE(cudaGetDevice(&device));
    REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    REQUIRE(grid_atomic_blocks(dtype, &blocks));
    REQUIRE(exact_open(dtype, (uint32_t)multiprocessors, &table->shape));
    table->capacity = (uint32_t)(multiprocessors * blocks);
}

/* As a round of the service does (cuda_round.c): each task is planned for the whole device, and if
 * that is too much by far for its share. */
static void table_fill(const struct bench *bench, const struct work *work, struct table *table)
{
    open_kernels(table, work->dtype);
    const uint32_t capacity = capacity_of(table, work);
    const size_t size = 2 * dtype_size(work->dtype);
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < work->pairs; i++) {
        table->task[i] = (struct grid_task){
            .a = bench->stage.d_a + bench->pair[i].a.offset,
            .b = bench->stage.d_a + bench->pair[i].b.offset,
            .n = tensor_length(&bench->pair[i].a),
            .rows = 1,
            .inner_rows = 1,
            .result = i,
            .total = i,
            .dtype = work->dtype,
            .result_dtype = DTYPE_FLOAT64,
            .is_final = 1,
        };
        plan_task(table, work, &table->task[i], capacity);
        wanted += table->task[i].blocks;
    }
    table->blocks = 0;
    for (uint32_t i = 0; i < work->pairs; i++) {
        struct grid_task *task = &table->task[i];
        if (wanted > GRID_FULL * capacity)
            plan_task(table, work, task, grid_share(task->n * size, work->terms * size, capacity));
        task->first_block = table->blocks;
        for (uint32_t block = 0; block < task->blocks; block++)
            table->task_of_block[table->blocks++] = i;
    }
}

static void queue_kernels(const struct bench *bench, const struct work *work)
{
    const struct table *table = &bench->table;
    cudaStream_t stream = bench->stage.stream;
    const struct grid_launch fast = {.task = table->d_task,
                                     .task_of_block = table->d_task_of_block,
                                     .result = table->d_sum,
                                     .split = table->d_split};
    const struct exact_launch exact = {.task = table->d_task,
                                       .task_of_block = table->d_task_of_block,
                                       .result = table->d_value,
                                       .total = table->d_total};
    REQUIRE(cudaMemcpyAsync(table->d_task, table->task, work->pairs * sizeof *table->task,
                            cudaMemcpyHostToDevice, stream));
    REQUIRE(cudaMemcpyAsync(table->d_task_of_block, table->task_of_block,
                            table->blocks * sizeof(uint32_t), cudaMemcpyHostToDevice, stream));
    if (work->accuracy == ACCURACY_FAST) {
        REQUIRE(cudaMemsetAsync(table->d_split, 0, work->pairs * sizeof *table->d_split, stream));
        REQUIRE(grid_atomic_launch(work->dtype, &fast, table->blocks, stream));
    } else {
        REQUIRE(exact_launch(work->dtype, &table->shape, &exact, table->blocks, stream));
    }
}

/* --- through the door --- */

static void job_init(struct bench *bench, const struct work *work, struct job *ret)
{
    *ret = (struct job){.base = bench->block.data,
                        .bytes = work->bytes,
                        .accuracy = work->accuracy,
                        .result_dtype = DTYPE_FLOAT64,
                        .port = &bench->port.port};
    enum error error = job_plan(ret, bench->pair, work->pairs);
    assert(error == ERR_OK);
}

static double job_run_us(struct bench *bench, int device, struct job *job)
{
    const int64_t begun_ns = clock_ns();
    enum error error = gpu_submit(bench->gpu, device, job);
    assert(error == ERR_OK);
    (void)port_wait(&bench->port);
    assert(job->device == device);
    return (double)(clock_ns() - begun_ns) * 1e-3;
}

/* The arena of a device is not so large, but the copy engine does not care where bytes go. */
static double copy_us(const struct bench *bench, const struct work *work)
{
    const int64_t begun_ns = clock_ns();
    REQUIRE(cudaMemcpyAsync(bench->stage.d_a, bench->block.data, work->bytes,
                            cudaMemcpyHostToDevice, bench->stage.stream));
    REQUIRE(cudaStreamSynchronize(bench->stage.stream));
    return (double)(clock_ns() - begun_ns) * 1e-3;
}

/* --- checks --- */

static bool is_exact(const struct dot_value *expected, const struct dot_value *got)
{
    return memcmp(&got->sum, &expected->sum, sizeof got->sum) == 0 && got->flags == expected->flags;
}

/* The elements are below 1. */
static bool is_near(const struct dot_value *expected, double sum, uint64_t n)
{
    return fabs(sum - expected->sum) <= (double)n * (double)n * 0x1p-53;
}

static bool is_right(const struct bench *bench, const struct work *work, size_t i, double sum,
                     const struct dot_value *value)
{
    const struct dot_value *expected = &bench->exact[i];
    if (work->accuracy == ACCURACY_FAST)
        return is_near(expected, sum, tensor_length(&bench->pair[i].a));
    return is_exact(expected, value);
}

static void check_kernels(struct bench *bench, const struct work *work)
{
    const struct table *table = &bench->table;
    struct dot_value *value = bench->result;
    struct grid_sum *sum = bench->result, *split = sum + work->pairs;
    const size_t bytes = work->pairs * sizeof *sum;
    if (work->accuracy == ACCURACY_FAST) {
        REQUIRE(cudaMemcpy(sum, table->d_sum, bytes, cudaMemcpyDeviceToHost));
        REQUIRE(cudaMemcpy(split, table->d_split, bytes, cudaMemcpyDeviceToHost));
    } else {
        REQUIRE(
            cudaMemcpy(value, table->d_value, work->pairs * sizeof *value, cudaMemcpyDeviceToHost));
    }
    for (size_t i = 0; i < work->pairs; i++) {
        const bool is_split = table->task[i].form == GRID_SPLIT_ROW;
        if (!is_right(bench, work, i, (is_split ? split : sum)[i].sum, &value[i])) {
            (void)printf("the kernels' pair %zu is wrong\n", i);
            bench->failed = true;
        }
    }
}

static void check_job(struct bench *bench, const struct work *work, const struct job *job)
{
    for (size_t i = 0; i < work->pairs; i++)
        if (!is_right(bench, work, i, job->value[i].sum, &job->value[i])) {
            (void)printf("pair %zu of the job is wrong\n", i);
            bench->failed = true;
        }
}

/* --- measuring --- */

static double run_us(struct bench *bench, const struct work *work, enum side side, struct job *job)
{
    if (side == SIDE_DOOR)
        return job_run_us(bench, 1, job);
    if (side == SIDE_COPY)
        return copy_us(bench, work);
    stage_begin(&bench->stage);
    if (side == SIDE_KERNELS)
        queue_kernels(bench, work);
    else
        stage_blas(&bench->stage, work->dtype, work->terms);
    return stage_end_us(&bench->stage);
}

static void compare(struct bench *bench, const struct work *work, const char *lengths)
{
    double us[SIDE_COUNT][RUNS], took[SIDE_COUNT], cpu_us;
    struct job job;
    job_init(bench, work, &job);
    cpu_us = job_run_us(bench, 0, &job);
    if (work->accuracy == ACCURACY_EXACT)
        memcpy(bench->exact, job.value, work->pairs * sizeof *bench->exact);
    table_fill(bench, work, &bench->table);
    for (int run = -1; run < RUNS; run++) /* the first one loads kernels */
        for (int side = 0; side < SIDE_COUNT; side++)
            us[side][run < 0 ? 0 : run] = run_us(bench, work, (enum side)side, &job);
    check_kernels(bench, work);
    check_job(bench, work, &job);
    job_fini(&job);
    for (int side = 0; side < SIDE_COUNT; side++)
        took[side] = median(us[side], RUNS);
    (void)printf("| %s | %zu | %.1f | %s | %s | %.0f | %.0f | %.2f | %.0f | %.0f | %.2f | %.0f |\n",
                 lengths, work->pairs, (double)work->bytes * 1e-6, dtype_name(work->dtype),
                 work->accuracy == ACCURACY_FAST ? "fast" : "exact", took[SIDE_KERNELS],
                 took[SIDE_BLAS], took[SIDE_BLAS] / took[SIDE_KERNELS], took[SIDE_DOOR],
                 took[SIDE_COPY], took[SIDE_COPY] / took[SIDE_DOOR], cpu_us);
    (void)fflush(stdout);
}

static void measure(struct bench *bench, uint64_t longest)
{
    (void)printf("| lengths | pairs | MB | dtype | accuracy | kernels µs | cuBLAS µs | share "
                 "| door µs | copy µs | share | CPU µs |\n|%s\n",
                 "---|---|---|---|---|---|---|---|---|---|---|---|");
    for (size_t pairs = 10; pairs <= bench->pairs_max; pairs *= 10)
        for (int is_even = 0; is_even < 2; is_even++)
            for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++) {
                struct work work = {.dtype = dtype, .pairs = pairs};
                plan(bench, &work, is_even, longest);
                fill(bench, &work);
                work.accuracy = ACCURACY_EXACT; /* first: the other one is held to it */
                compare(bench, &work, is_even ? "even" : "logarithmic");
                work.accuracy = ACCURACY_FAST;
                compare(bench, &work, is_even ? "even" : "logarithmic");
            }
}

/* A tenth more than pairs of the mean length take, for they vary, and of a few the longest. */
static size_t room_for(size_t pairs, uint64_t longest)
{
    const double mean = (double)longest / log((double)longest);
    return (size_t)(2.2 * (double)sizeof(double) * mean * (double)pairs) +
           20 * longest * sizeof(double) + pairs * 2 * LIMIT_OPERAND_ALIGN;
}

static bool bench_open(struct bench *bench, uint64_t longest)
{
    const size_t bytes = room_for(bench->pairs_max, longest);
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = bytes + (1 << 20),
        .pinned_bytes = bytes + (1 << 20),
        .device_bytes = (size_t)256 << 20,
        .queue_jobs = 16,
        .queue_bytes = UINT64_MAX,
        .batch_jobs = 16,
    };
    struct problem problem;
    if (gpu_open(&bench->gpu, &config, &problem) != ERR_OK || gpu_device_count(bench->gpu) < 2)
        return false;
    const struct buffer_source *source = gpu_buffers(bench->gpu);
    if (source->acquire(source->context, bytes, &bench->block) != ERR_OK)
        return false;
    port_init(&bench->port);
    stage_open(&bench->stage, bytes);
    table_open(&bench->table, bench->pairs_max);
    bench->pair = calloc(bench->pairs_max, sizeof *bench->pair);
    bench->exact = calloc(bench->pairs_max, sizeof *bench->exact);
    bench->result = calloc(bench->pairs_max, sizeof(struct dot_value));
    return bench->pair != NULL && bench->exact != NULL && bench->result != NULL;
}

static void bench_close(struct bench *bench)
{
    const struct buffer_source *source = gpu_buffers(bench->gpu);
    free(bench->result);
    free(bench->exact);
    free(bench->pair);
    table_close(&bench->table);
    stage_close(&bench->stage);
    source->release(source->context, bench->block);
    gpu_close(bench->gpu);
}

int main(int argc, char **argv)
{
    struct argument told[] = {{"LONGEST", 1e6, 10, 1e9}, {"MOST_PAIRS", 1e4, 10, 1e6}};
    arguments_read(argc, argv, told, 2);
    const uint64_t longest = (uint64_t)told[0].value;
    struct bench bench = {.pairs_max = (uint64_t)told[1].value};
    if (!bench_open(&bench, longest)) {
        (void)fprintf(stderr, "bench_mixed: no CUDA device, or no memory\n");
        return 1;
    }
    measure(&bench, longest);
    bench_close(&bench);
    return bench.failed ? 1 : 0;
}
