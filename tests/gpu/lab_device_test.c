/* The lab on every CUDA device; skipped by name where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "gpu/kernels/ladder.h"
#include "gpu/lab/experiments.h"

static const struct gpu_config gpu_config = {
    .cuda = true,
    .budget_bytes = 64 << 20,
    .pinned_bytes = 1 << 20,
    .device_bytes = 16 << 20,
    .queue_jobs = 4,
    .batch_jobs = 3,
};

struct fixture {
    struct gpu *gpu;
    struct lab *lab;
};

/* Opens the devices, or skips the test. The lab's own thread has nothing to do here: its
 * experiments are called on this one. */
static struct fixture open_lab(void)
{
    static const struct lab_config config = {.queue_jobs = 2};
    struct fixture fixture = {NULL, NULL};
    struct problem problem;
    assert_int_equal(gpu_open(&fixture.gpu, &gpu_config, &problem), ERR_OK);
    if (gpu_device_count(fixture.gpu) == 1) {
        gpu_close(fixture.gpu);
        skip();
    }
    assert_int_equal(lab_open(&fixture.lab, fixture.gpu, &config, &problem), ERR_OK);
    return fixture;
}

static void close_lab(struct fixture fixture)
{
    lab_close(fixture.lab);
    gpu_close(fixture.gpu);
}

static void the_lab_prefers_a_real_device(void **state)
{
    (void)state;
    struct fixture fixture = open_lab();
    struct problem problem;
    int device = -1;
    assert_int_equal(lab_place(fixture.lab, PLACE_AUTO, -1, &device, &problem), ERR_OK);
    assert_int_not_equal(device, 0);
    assert_false(lab_device(fixture.lab, device).is_emulated);
    assert_int_equal(lab_place(fixture.lab, PLACE_CUDA, 0, &device, &problem), ERR_OK);
    assert_string_equal(lab_device(fixture.lab, device).id, "cuda:0");
    assert_int_equal(lab_place(fixture.lab, PLACE_CPU, -1, &device, &problem), ERR_OK);
    assert_int_equal(device, 0);
    close_lab(fixture);
}

static void a_race_runs_there_and_is_watched_here(void **state)
{
    (void)state;
    struct fixture fixture = open_lab();
    const uint64_t n = 100000;
    for (int device = 1; device < gpu_device_count(fixture.gpu); device++) {
        struct lab_race_ask ask = {.device = device, .n = n};
        struct lab_race race = {0};
        struct problem problem;
        assert_int_equal(lab_race_settle(&ask, &problem), ERR_OK);
        assert_int_equal(lab_race(fixture.lab, &ask, &race, &problem), ERR_OK);
        for (uint32_t i = 0; i < race.runs; i++)
            assert_true(race.value[i] >= 1 && race.value[i] <= (double)n);
        assert_true(race.atomic == (double)n);
        assert_int_equal(race.faults.count, 1);
        lab_race_fini(&race);
    }
    close_lab(fixture);
}

static void check_shift(struct lab *lab, int device, uint32_t n, uint32_t barriers)
{
    const struct lab_shift_ask ask = {.device = device, .n = n, .barriers = barriers, .seed = 1};
    struct lab_shift shift = {0};
    struct problem problem;
    assert_int_equal(lab_shift(lab, &ask, &shift, &problem), ERR_OK);
    assert_int_equal(shift.read_count, 2 * n);
    if (barriers == 2)
        assert_int_equal(shift.wrong_count, 0);
    else
        assert_true(n == 1 || shift.faults.total > 0);
    lab_shift_fini(&shift);
}

static void a_shift_with_both_barriers_is_right_there(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 31, 32, 33, 128, 1000, 1024};
    struct fixture fixture = open_lab();
    for (int device = 1; device < gpu_device_count(fixture.gpu); device++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (uint32_t barriers = 0; barriers <= 2; barriers++)
                check_shift(fixture.lab, device, sizes[i], barriers);
    close_lab(fixture);
}

/* What has a fixed order has the same bits there and here. */
static void a_tree_has_the_bits_of_the_emulation(void **state)
{
    (void)state;
    static float a[3000];
    for (int i = 0; i < 3000; i++)
        a[i] = (i % 2 ? -1.0F : 1.0F) / (float)(i + 1);
    struct fixture fixture = open_lab();
    for (int device = 1; device < gpu_device_count(fixture.gpu); device++)
        for (uint64_t n = 1000; n <= 3000; n += 2000) {
            struct lab_rounding_ask ask = {
                .device = device, .dtype = DTYPE_FLOAT32, .a = a, .b = a, .n = n, .orders = 4};
            struct lab_rounding there, here;
            struct problem problem;
            assert_int_equal(lab_rounding(fixture.lab, &ask, &there, &problem), ERR_OK);
            ask.device = 0;
            assert_int_equal(lab_rounding(fixture.lab, &ask, &here, &problem), ERR_OK);
            assert_int_equal(there.sum_count, 6);
            assert_true(there.sum[0].value == here.sum[0].value);
            assert_true(there.sum[1].value == here.sum[1].value);
            for (uint32_t i = 0; i < there.sum_count; i++)
                assert_true(there.sum[i].error <= there.sum[i].bound);
        }
    close_lab(fixture);
}

static void check_rows(struct fixture fixture, const struct rung *rung, int device)
{
    /* Rows (1 2 3) and (4 5 6) times (1 10 100). */
    static const double operands[] = {1, 2, 3, 4, 5, 6, 1, 10, 100};
    const struct tensor_pair pair = {.a = {DTYPE_FLOAT64, {2, {2, 3}}, 0},
                                     .b = {DTYPE_FLOAT64, {1, {3}}, 48},
                                     .result = {1, {2}}};
    struct job job = {.base = operands, .bytes = sizeof operands};
    struct problem problem;
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    assert_int_equal(lab_dot_check(rung, device, &job, &problem), ERR_OK);
    assert_int_equal(lab_dot(fixture.lab, rung, device, &job, &problem), ERR_OK);
    assert_int_equal(job.device, device);
    if (job.value[0].sum != 321 || job.value[1].sum != 654)
        fail_msg("%s: %g and %g", rung->name, job.value[0].sum, job.value[1].sum);
    job_fini(&job);
}

static void every_rung_but_race_computes_the_rows_of_a_job(void **state)
{
    (void)state;
    struct fixture fixture = open_lab();
    size_t count;
    const struct rung *rungs = ladder_rows(&count);
    for (int device = 1; device < gpu_device_count(fixture.gpu); device++)
        for (size_t i = 0; i < count; i++)
            if (!rungs[i].is_lab_only)
                check_rows(fixture, &rungs[i], device);
    close_lab(fixture);
}

static void kernels_are_measured_there(void **state)
{
    (void)state;
    static const char *const kernels[] = {"fast", "exact", "tree", "two-pass"};
    struct fixture fixture = open_lab();
    for (int device = 1; device < gpu_device_count(fixture.gpu); device++)
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
            struct lab_measure_ask ask = {
                .device = device, .kernel = kernels[i], .dtype = DTYPE_FLOAT32, .n = 1000};
            struct lab_measure measure;
            struct problem problem;
            assert_int_equal(lab_measure_settle(&ask, &problem), ERR_OK);
            assert_int_equal(lab_measure(fixture.lab, &ask, &measure, &problem), ERR_OK);
            assert_false(measure.is_emulated);
            assert_true(measure.runs >= 1 && measure.time_us_min <= measure.time_us);
        }
    close_lab(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lab_prefers_a_real_device),
        cmocka_unit_test(a_race_runs_there_and_is_watched_here),
        cmocka_unit_test(a_shift_with_both_barriers_is_right_there),
        cmocka_unit_test(a_tree_has_the_bits_of_the_emulation),
        cmocka_unit_test(every_rung_but_race_computes_the_rows_of_a_job),
        cmocka_unit_test(kernels_are_measured_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
