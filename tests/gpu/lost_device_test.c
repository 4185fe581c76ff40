/* A CUDA device that is lost for good in the middle of service: its jobs are answered by the CPU,
 * with the same bits, and nothing is asked of it again; skipped by name where there is no
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"
#include "tests/gpu/operands.h"
#include "tests/gpu/trap.h"
#include "tests/sink.h"

enum { N = 100003, JOBS = 32 };

static void count_lost(void *context)
{
    (void)atomic_fetch_add((atomic_uint *)context, 1);
}

static void plan(struct job *job, const float *operands, struct sink *sink)
{
    const struct tensor vector = {.dtype = DTYPE_FLOAT32, .shape = {.rank = 1, .dim = {N}}};
    struct tensor_pair pair = {.a = vector, .b = vector};
    pair.b.offset = N * sizeof *operands;
    memset(job, 0, sizeof *job);
    assert_int_equal(job_plan(job, &pair, 1), ERR_OK);
    job->accuracy = ACCURACY_EXACT;
    job->result_dtype = DTYPE_FLOAT64;
    job->base = operands;
    job->bytes = 2 * N * sizeof *operands;
    job->port = &sink->port;
}

/* All jobs on one device; returns how many of them another computed. */
static unsigned run(struct gpu *gpu, int device, const float *operands, double expected)
{
    static struct job job[JOBS];
    struct sink sink;
    unsigned rerouted = 0;
    sink_init(&sink);
    for (int i = 0; i < JOBS; i++) {
        plan(&job[i], operands, &sink);
        assert_int_equal(gpu_submit(gpu, device, &job[i]), ERR_OK);
    }
    sink_wait(&sink, JOBS);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(job[i].error, ERR_OK);
        assert_memory_equal(&job[i].value[0].sum, &expected, sizeof expected);
        assert_int_equal(job[i].is_rerouted, job[i].device != device);
        rerouted += job[i].is_rerouted;
        job_fini(&job[i]);
    }
    return rerouted;
}

static double computed_here(struct gpu *gpu, const float *operands)
{
    struct sink unused = {0};
    struct job job;
    plan(&job, operands, &unused);
    gpu_compute(gpu, &job);
    double sum = job.value[0].sum;
    job_fini(&job);
    return sum;
}

static void jobs_of_a_lost_device_are_answered_by_the_cpu(void **state)
{
    (void)state;
    atomic_uint lost = 0;
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = 64 << 20,
        .pinned_bytes = 16 << 20,
        .device_bytes = 16 << 20,
        .queue_jobs = JOBS,
        .batch_jobs = JOBS / 4,
        .device_lost = count_lost,
        .context = &lost,
    };
    struct gpu *gpu;
    struct problem problem;
    assert_int_equal(gpu_open(&gpu, &config, &problem), ERR_OK);
    int device;
    if (gpu_place(gpu, PLACE_CUDA, 0, NULL, &device) != ERR_OK) {
        gpu_close(gpu);
        skip();
    }
    float *operands = malloc(2 * N * sizeof *operands);
    assert_non_null(operands);
    operands_fill(operands, operands + N, DTYPE_FLOAT32, KIND_60, N);
    const double expected = computed_here(gpu, operands);
    assert_int_equal(run(gpu, device, operands, expected), 0);
    assert_int_equal(atomic_load(&lost), 0);

    assert_true(device_trap());
    assert_int_equal(run(gpu, device, operands, expected), JOBS);
    assert_int_equal(atomic_load(&lost), 1);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 1);
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, 0, NULL, &device), ERR_NO_DEVICE);
    free(operands);
    gpu_close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_a_lost_device_are_answered_by_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
