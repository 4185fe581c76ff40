/* devices.c - what one queue for all CUDA devices gains over one device.
 *
 *   bench_devices [SECONDS]
 *
 * FLYING jobs are kept in flight, each of JOB_ROWS dot products of JOB_N float32 in pinned memory,
 * by number at cuda:0, then wherever gpu_place() sends a job that names no CUDA device; in turn,
 * ROUNDS times. Each sum is looked at. Rates are of operand bytes.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/clock.h"
#include "gpu/gpu.h"
#include "tests/bench/arguments.h"
#include "tests/bench/port.h"

enum { FLYING = 16, JOB_ROWS = 64, JOB_N = 1 << 16, ROUNDS = 5 };

static const size_t job_bytes = (JOB_ROWS + 1) * (size_t)JOB_N * sizeof(float);

static struct gpu *gpu;
static struct port port;
static struct job jobs[FLYING];
static struct block blocks[FLYING];
static uint64_t done[16]; /* by device */

static void jobs_init(void)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    const struct tensor_pair pair = {
        .a = {DTYPE_FLOAT32, {2, {JOB_ROWS, JOB_N}}, 0},
        .b = {DTYPE_FLOAT32, {1, {JOB_N}}, JOB_ROWS * (size_t)JOB_N * sizeof(float)},
        .result = {1, {JOB_ROWS}},
    };
    port_init(&port);
    for (int i = 0; i < FLYING; i++) {
        enum error error = source->acquire(source->context, job_bytes, &blocks[i]);
        assert(error == ERR_OK);
        float *element = blocks[i].data;
        for (size_t j = 0; j < job_bytes / sizeof *element; j++)
            element[j] = 0.5f;
        jobs[i] = (struct job){.base = blocks[i].data,
                               .bytes = job_bytes,
                               .accuracy = ACCURACY_EXACT,
                               .result_dtype = DTYPE_FLOAT32,
                               .port = &port.port};
        error = job_plan(&jobs[i], &pair, 1);
        assert(error == ERR_OK);
    }
}

static void submit(struct job *job, int index)
{
    int device;
    enum error error = gpu_place(gpu, PLACE_CUDA, index, NULL, &device);
    assert(error == ERR_OK);
    error = gpu_submit(gpu, device, job);
    assert(error == ERR_OK);
}

static void check(const struct job *job)
{
    assert(!job->is_rerouted);
    for (int row = 0; row < JOB_ROWS; row++)
        assert(job->value[row].sum == JOB_N / 4.0);
    done[job->device]++;
}

/* GB/s; index -1: any CUDA device. */
static double run(int index, double seconds)
{
    uint64_t count = 0;
    int flying = FLYING;
    int64_t began_ns = clock_ns(), until_ns = began_ns + (int64_t)(seconds * 1e9);
    for (int i = 0; i < FLYING; i++)
        submit(&jobs[i], index);
    while (flying > 0) {
        struct job *job = port_wait(&port);
        check(job);
        count++;
        if (clock_ns() < until_ns)
            submit(job, index);
        else
            flying--;
    }
    return (double)(count * job_bytes) / (double)(clock_ns() - began_ns);
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void measure(double seconds)
{
    double one[ROUNDS], all[ROUNDS];
    (void)run(-1, seconds); /* warm-up */
    for (int i = 0; i < ROUNDS; i++) {
        one[i] = run(0, seconds);
        all[i] = run(-1, seconds);
    }
    qsort(one, ROUNDS, sizeof *one, compare);
    qsort(all, ROUNDS, sizeof *all, compare);
    printf("| devices | cuda:0, GB/s | all, GB/s | ratio |\n|---|---|---|---|\n");
    printf("| %d | %.1f | %.1f | %.2f |\n", gpu_device_count(gpu) - 1, one[ROUNDS / 2],
           all[ROUNDS / 2], all[ROUNDS / 2] / one[ROUNDS / 2]);
    for (int device = 1; device < gpu_device_count(gpu); device++)
        printf("%s computed %llu jobs\n", gpu_device_info(gpu, device).id,
               (unsigned long long)done[device]);
}

int main(int argc, char **argv)
{
    struct argument seconds = {"SECONDS", 1, 0.01, 3600};
    arguments_read(argc, argv, &seconds, 1);
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = (size_t)1 << 30,
        .pinned_bytes = (size_t)1 << 30,
        .device_bytes = (size_t)256 << 20,
        .queue_jobs = 64,
        .batch_jobs = 64,
    };
    struct problem problem;
    if (gpu_open(&gpu, &config, &problem) != ERR_OK || gpu_device_count(gpu) < 2) {
        fprintf(stderr, "no CUDA device\n");
        return 1;
    }
    jobs_init();
    measure(seconds.value);
    for (int i = 0; i < FLYING; i++) {
        job_fini(&jobs[i]);
        gpu_buffers(gpu)->release(gpu_buffers(gpu)->context, blocks[i]);
    }
    gpu_close(gpu);
    return 0;
}
