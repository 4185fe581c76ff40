/* Measuring devices at the start, and what that makes of placement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "gpu/faulty.h"
#include "gpu/waiter.h"
#include "gpu/worker.h"
#include "tests/sink.h"

static const struct backend *const with_faulty[] = {&backend_cpu, &backend_faulty, NULL};

static const struct gpu_config small_config = {
    .cuda = true,
    .budget_bytes = 32 << 20,
    .pinned_bytes = 16 << 20,
    .device_bytes = 1 << 20,
    .queue_jobs = 2,
    .queue_bytes = UINT64_MAX,
    .batch_jobs = 3,
    .inline_terms = 100,
};

static struct gpu *open_gpu(const struct gpu_config *config)
{
    struct gpu *gpu = NULL;
    struct problem problem;
    assert_int_equal(gpu_open_backends(&gpu, config, with_faulty, &problem), ERR_OK);
    return gpu;
}

static bool is_measured(struct gpu *gpu, int device)
{
    struct device_speed speed;
    return gpu_device_speed(gpu, device, DTYPE_FLOAT32, ACCURACY_EXACT, &speed);
}

static int placed(struct gpu *gpu, size_t bytes)
{
    const struct job_size size = {.bytes = bytes,
                                  .term_count = bytes / 8,
                                  .row_count = 1,
                                  .dtype = DTYPE_FLOAT32,
                                  .accuracy = ACCURACY_EXACT};
    int device = -1;
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, &size, &device), ERR_OK);
    return device;
}

static void every_type_is_measured_on_every_device(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    assert_false(is_measured(gpu, 0));
    gpu_measure(gpu);
    for (int device = 0; device < 2; device++)
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
            for (enum accuracy accuracy = ACCURACY_FAST; accuracy <= ACCURACY_EXACT; accuracy++) {
                struct device_speed speed;
                assert_true(gpu_device_speed(gpu, device, (enum dtype)dtype, accuracy, &speed));
                assert_true(speed.fixed_ns > 0);
                assert_true(device > 0 || speed.from_bytes == UINT64_MAX);
            }
    assert_int_equal(gpu_memory(gpu).used_bytes, 0);
    gpu_close(gpu);
}

static void nothing_is_measured_where_there_is_no_choice(void **state)
{
    (void)state;
    struct gpu_config config = small_config;
    config.cuda = false;
    struct gpu *gpu = open_gpu(&config);
    gpu_measure(gpu);
    assert_false(is_measured(gpu, 0));
    assert_int_equal(gpu_device_counts(gpu, 0).jobs_total, 0);
    assert_int_equal(placed(gpu, 1 << 30), 0);
    gpu_close(gpu);
}

static void nothing_is_measured_where_the_operator_says_from_which_size(void **state)
{
    (void)state;
    struct gpu_config config = small_config;
    config.cuda_min_bytes = 800;
    struct gpu *gpu = open_gpu(&config);
    gpu_measure(gpu);
    assert_false(is_measured(gpu, 0));
    assert_int_equal(gpu_device_counts(gpu, 1).jobs_total, 0);
    assert_int_equal(placed(gpu, 792), 0);
    assert_int_equal(placed(gpu, 800), 1);
    gpu_close(gpu);
}

static void before_the_measurement_jobs_stay_on_the_cpu(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    assert_int_equal(placed(gpu, 1 << 30), 0);
    gpu_close(gpu);
}

static void a_budget_smaller_than_the_operands_is_no_obstacle(void **state)
{
    (void)state;
    struct gpu_config config = small_config;
    config.budget_bytes = config.pinned_bytes = 1 << 20;
    struct gpu *gpu = open_gpu(&config);
    gpu_measure(gpu);
    assert_true(is_measured(gpu, 0) && is_measured(gpu, 1));
    gpu_close(gpu);
}

static void a_device_that_fails_meanwhile_is_not_chosen(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    faulty_fail_next(ERR_DEVICE, 1);
    gpu_measure(gpu);
    assert_true(is_measured(gpu, 0));
    assert_false(is_measured(gpu, 1));
    assert_int_equal(placed(gpu, 1 << 30), 0);
    gpu_close(gpu);
}

static void a_device_that_the_cpu_stands_in_for_is_not_chosen(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    faulty_fail_next(ERR_NOMEM, 2); /* the batch, then the job alone */
    gpu_measure(gpu);
    assert_false(is_measured(gpu, 1));
    assert_int_equal(placed(gpu, 1 << 30), 0);
    gpu_close(gpu);
}

/* --- what waits --- */

static const float ones[] = {1, 1};

static void job_init(struct job *job, struct sink *sink, int64_t load_ns)
{
    const struct shape shape = {1, {1}};
    const struct tensor_pair pair = {.a = {DTYPE_FLOAT32, shape, 0},
                                     .b = {DTYPE_FLOAT32, shape, sizeof *ones}};
    *job =
        (struct job){.base = ones, .bytes = sizeof ones, .port = &sink->port, .load_ns = load_ns};
    assert_int_equal(job_plan(job, &pair, 1), ERR_OK);
}

static void jobs_load_a_device_until_they_are_complete(void **state)
{
    (void)state;
    struct sink sink;
    struct device_handle mine = {.backend = &backend_faulty, .index = 1};
    struct worker *worker;
    struct problem problem;
    struct job job[4];
    sink_init(&sink);
    assert_int_equal(backend_faulty.open(&mine.device, 0, &small_config, &problem), ERR_OK);
    assert_int_equal(worker_create(&worker, &mine, &mine, "test", &small_config), ERR_OK);
    for (int i = 0; i < 4; i++)
        job_init(&job[i], &sink, 1000 << i);
    assert_int_equal(worker_load_ns(worker), 0);
    faulty_hold(true);
    assert_int_equal(worker_push(worker, &job[0]), ERR_OK);
    faulty_wait_held(); /* with the first in hand */
    assert_int_equal(worker_push(worker, &job[1]), ERR_OK);
    assert_int_equal(worker_push(worker, &job[2]), ERR_OK);
    assert_int_equal(worker_load_ns(worker), 7000);
    assert_int_equal(worker_push(worker, &job[3]), ERR_BUSY);
    assert_int_equal(worker_load_ns(worker), 7000);
    faulty_hold(false);
    sink_wait(&sink, 3);
    assert_int_equal(worker_load_ns(worker), 0);
    worker_destroy(worker);
    backend_faulty.close(mine.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_measured_on_every_device),
        cmocka_unit_test(nothing_is_measured_where_there_is_no_choice),
        cmocka_unit_test(nothing_is_measured_where_the_operator_says_from_which_size),
        cmocka_unit_test(before_the_measurement_jobs_stay_on_the_cpu),
        cmocka_unit_test(a_budget_smaller_than_the_operands_is_no_obstacle),
        cmocka_unit_test(a_device_that_fails_meanwhile_is_not_chosen),
        cmocka_unit_test(a_device_that_the_cpu_stands_in_for_is_not_chosen),
        cmocka_unit_test(jobs_load_a_device_until_they_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
