/* Long jobs: cut into slices, in turn with others, dropped, and in parts of a sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/partial.h"
#include "tests/unit/jobs.h"

enum { TINY_TERMS = 160, LONG_N = 12345 };

static struct backend tiny_faulty; /* main()'s: backend_faulty, but it takes little at once */
static const struct backend *const with_tiny[] = {&backend_cpu, &tiny_faulty, NULL};
static float ones[2 * LONG_N];

static struct gpu *open_tiny(void)
{
    struct gpu *gpu = NULL;
    struct problem problem;
    struct gpu_config config = small_config;
    config.queue_jobs = 16;
    assert_int_equal(gpu_open_backends(&gpu, &config, with_tiny, &problem), ERR_OK);
    return gpu;
}

/* n times 1 * 1. */
static void long_init(struct job *job, struct sink *sink, uint64_t n)
{
    const struct shape shape = {1, {n}};
    struct tensor_pair pair = {.a = {DTYPE_FLOAT32, shape, 0},
                               .b = {DTYPE_FLOAT32, shape, n * sizeof(float)}};
    for (size_t i = 0; i < 2 * LONG_N; i++)
        ones[i] = 1;
    *job = (struct job){
        .base = ones,
        .bytes = 2 * n * sizeof(float),
        .accuracy = ACCURACY_EXACT,
        .result_dtype = DTYPE_FLOAT64,
        .port = &sink->port,
    };
    assert_int_equal(job_plan(job, &pair, 1), ERR_OK);
}

static void small_jobs_pass_between_the_slices_of_a_long_one(void **state)
{
    (void)state;
    struct gpu *gpu = open_tiny();
    struct sink slow, quick;
    struct job big, small[2];
    sink_init(&slow);
    sink_init(&quick);
    long_init(&big, &slow, 10 * TINY_TERMS);
    faulty_hold(true);
    assert_int_equal(gpu_submit(gpu, 1, &big), ERR_OK);
    faulty_wait_held(); /* the first slice */
    for (int i = 0; i < 2; i++) {
        job_init(&small[i], &quick);
        assert_int_equal(gpu_submit(gpu, 1, &small[i]), ERR_OK);
    }
    faulty_step(); /* the small ones */
    faulty_step(); /* the second slice */
    sink_wait(&quick, 2);
    assert_int_equal(slow.jobs, 0);
    assert_int_equal(small[0].batch_size, 2);
    faulty_hold(false);
    sink_wait(&slow, 1);
    assert_int_equal(big.error, ERR_OK);
    assert_true(big.value[0].sum == 10 * TINY_TERMS);
    assert_int_equal(big.batch_size, 1);
    check_times(&big);
    struct device_counts counts = gpu_device_counts(gpu, 1);
    assert_int_equal(counts.jobs_total, 3);
    assert_int_equal(counts.batches_total, 2);
    assert_int_equal(counts.slices_total, 10);
    gpu_close(gpu);
}

/* So that the shorter one does not wait for the longer one's end. */
static void long_jobs_take_turns(void **state)
{
    (void)state;
    struct gpu *gpu = open_tiny();
    struct sink first, second;
    struct job longer, shorter;
    sink_init(&first);
    sink_init(&second);
    long_init(&longer, &first, 20 * TINY_TERMS);
    long_init(&shorter, &second, 3 * TINY_TERMS);
    faulty_hold(true);
    assert_int_equal(gpu_submit(gpu, 1, &longer), ERR_OK);
    faulty_wait_held();
    assert_int_equal(gpu_submit(gpu, 1, &shorter), ERR_OK);
    for (int slice = 0; slice < 7; slice++)
        faulty_step();
    sink_wait(&second, 1);
    assert_int_equal(first.jobs, 0);
    faulty_hold(false);
    sink_wait(&first, 1);
    assert_true(longer.value[0].sum == 20 * TINY_TERMS && shorter.value[0].sum == 3 * TINY_TERMS);
    gpu_close(gpu);
}

static void long_jobs_end_between_slices_when_cancelled_or_late(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct gpu *gpu = open_tiny();
        struct sink sink;
        struct job job;
        sink_init(&sink);
        long_init(&job, &sink, 10 * TINY_TERMS);
        if (late)
            job.deadline_ns = INT64_MAX;
        faulty_hold(true);
        assert_int_equal(gpu_submit(gpu, 1, &job), ERR_OK);
        faulty_wait_held();
        if (late) /* the device has the job, but waits */
            job.deadline_ns = 1;
        else
            job_cancel(&job);
        faulty_hold(false);
        sink_wait(&sink, 1);
        assert_int_equal(job.error, late ? ERR_DEADLINE : ERR_CLOSED);
        struct device_counts counts = gpu_device_counts(gpu, 1);
        assert_int_equal(late ? counts.expired_total : counts.cancelled_total, 1);
        assert_int_equal(counts.expired_total + counts.cancelled_total, 1);
        assert_int_equal(counts.jobs_total, 0);
        assert_int_equal(counts.slices_total, 1);
        gpu_close(gpu);
    }
}

static void cancelled_jobs_leave_the_queue_behind_long_ones(void **state)
{
    (void)state;
    enum { JOBS = 12 }; /* more than take turns */
    struct gpu *gpu = open_tiny();
    struct sink sink, gone;
    struct job job[JOBS];
    sink_init(&sink);
    sink_init(&gone);
    faulty_hold(true);
    for (int i = 0; i < JOBS; i++) {
        long_init(&job[i], i == JOBS - 1 ? &gone : &sink, 3 * TINY_TERMS);
        assert_int_equal(gpu_submit(gpu, 1, &job[i]), ERR_OK);
        if (i == 0)
            faulty_wait_held();
    }
    job_cancel(&job[JOBS - 1]);
    assert_int_equal(gone.jobs, 1);
    assert_int_equal(job[JOBS - 1].error, ERR_CLOSED);
    assert_int_equal(gpu_device_counts(gpu, 1).queued_jobs, JOBS - 2); /* and one is in hand */
    assert_int_equal(sink.jobs, 0);
    faulty_hold(false);
    sink_wait(&sink, JOBS - 1);
    for (int i = 0; i < JOBS - 1; i++)
        assert_true(job[i].error == ERR_OK && job[i].value[0].sum == 3 * TINY_TERMS);
    gpu_close(gpu);
}

/* Two of the pair in one job: computed whole, then in slices of at most so many bytes. */
static void check_sliced(const struct tensor_pair *pair, enum accuracy accuracy, uint64_t bytes)
{
    struct tensor_pair both[2] = {*pair, *pair};
    struct problem problem;
    struct sink sink;
    tiny_faulty.slice.bytes = bytes;
    struct gpu *gpu = open_tiny();
    struct job job = {
        .base = ones,
        .bytes = sizeof ones,
        .accuracy = accuracy,
        .result_dtype = dtype_is_integer(pair->a.dtype) ? DTYPE_INT64 : pair->a.dtype,
        .wants_abs = true,
        .port = &sink.port,
    };
    sink_init(&sink);
    for (int i = 0; i < 2; i++)
        assert_int_equal(shape_dot(&pair->a.shape, &pair->b.shape, &both[i].result, &problem),
                         ERR_OK);
    assert_int_equal(job_plan(&job, both, 2), ERR_OK);
    gpu_compute(gpu, &job);
    struct dot_value *want = calloc(job.value_count, sizeof *want);
    assert_non_null(want);
    memcpy(want, job.value, job.value_count * sizeof *want);
    memset(job.value, 0, job.value_count * sizeof *want);
    assert_int_equal(gpu_submit(gpu, 1, &job), ERR_OK);
    sink_wait(&sink, 1);
    assert_int_equal(job.error, ERR_OK);
    for (size_t v = 0; v < job.value_count; v++)
        if (want[v].sum != job.value[v].sum) /* whole quarters: also fast ones are exact */
            fail_msg("%zu bytes, value %zu: %.17g, expected %.17g", (size_t)bytes, v,
                     job.value[v].sum, want[v].sum);
    assert_true(gpu_device_counts(gpu, 1).slices_total > 1);
    free(want);
    job_fini(&job);
    gpu_close(gpu);
}

/* Rows, broadcasts and several tasks, cut wherever the limits say, against the whole job. */
static void long_jobs_have_the_values_of_whole_ones(void **state)
{
    (void)state;
    static const struct tensor_pair pairs[] = {
        {.a = {DTYPE_FLOAT32, {1, {LONG_N}}, 0}, .b = {DTYPE_FLOAT32, {1, {LONG_N}}, 4 * LONG_N}},
        {.a = {DTYPE_FLOAT32, {2, {7, 1000}}, 4}, .b = {DTYPE_FLOAT32, {1, {1000}}, 40000}},
        {.a = {DTYPE_FLOAT32, {3, {9, 1, 70}}, 0}, .b = {DTYPE_FLOAT32, {2, {11, 70}}, 4000}},
        {.a = {DTYPE_FLOAT32, {4, {5, 1, 3, 33}}, 0}, .b = {DTYPE_FLOAT32, {3, {6, 1, 33}}, 8000}},
        {.a = {DTYPE_FLOAT32, {2, {300, 3}}, 0}, .b = {DTYPE_FLOAT32, {2, {300, 3}}, 4000}},
        {.a = {DTYPE_COMPLEX64, {2, {3, 700}}, 0}, .b = {DTYPE_COMPLEX64, {2, {3, 700}}, 20000}},
        {.a = {DTYPE_INT8, {2, {40, 90}}, 1}, .b = {DTYPE_INT8, {1, {90}}, 5003}},
    };
    static const uint64_t bytes[] = {UINT64_MAX, 3000, 100, 1};
    for (size_t i = 0; i < 2 * LONG_N; i++)
        ones[i] = (float)(i * i % 61) - 30.25F;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t j = 0; j < sizeof bytes / sizeof *bytes; j++) {
            check_sliced(&pairs[i], ACCURACY_EXACT, bytes[j]);
            check_sliced(&pairs[i], ACCURACY_FAST, bytes[j]);
        }
    tiny_faulty.slice.bytes = UINT64_MAX;
}

static void check_partial(struct gpu *gpu, int device, enum accuracy accuracy)
{
    struct sink sink;
    struct job job;
    struct partial partial;
    struct dot_value value = {0};
    sink_init(&sink);
    partial_init(&partial, DTYPE_FLOAT32, accuracy, false, false);
    for (unsigned piece = 0; piece < 3; piece++) {
        long_init(&job, &sink, piece * 5 * TINY_TERMS); /* none at first */
        job.accuracy = accuracy;
        job.partial = &partial;
        if (device < 0) {
            gpu_compute(gpu, &job);
        } else {
            assert_int_equal(gpu_submit(gpu, device, &job), ERR_OK);
            sink_wait(&sink, piece + 1);
        }
        assert_int_equal(job.error, ERR_OK);
        job_fini(&job);
    }
    assert_int_equal(partial.n, 15 * TINY_TERMS);
    partial_settle(&partial, DTYPE_FLOAT64, &value);
    assert_true(value.sum == 15 * TINY_TERMS);
}

static void jobs_add_to_partial_sums_on_every_road(void **state)
{
    (void)state;
    struct gpu *gpu = open_tiny();
    for (int device = -1; device < 2; device++) {
        check_partial(gpu, device, ACCURACY_EXACT);
        check_partial(gpu, device, ACCURACY_FAST);
    }
    gpu_close(gpu);
}

/* The device fails after it has added its piece. */
static void a_partial_sum_is_added_to_once_whatever_fails(void **state)
{
    (void)state;
    static const enum error faults[] = {ERR_NOMEM, ERR_DEVICE};
    for (int i = 0; i < 4; i++) {
        struct gpu *gpu = open_tiny();
        struct sink sink;
        struct job job;
        struct partial partial;
        struct dot_value value = {0};
        sink_init(&sink);
        partial_init(&partial, DTYPE_FLOAT32, ACCURACY_EXACT, false, false);
        long_init(&job, &sink, 10 * TINY_TERMS);
        if (i < 2)
            job.partial = &partial;
        faulty_hold(true);
        assert_int_equal(gpu_submit(gpu, 1, &job), ERR_OK);
        for (int slice = 0; slice < 4; slice++)
            faulty_step();
        faulty_fail_next(faults[i % 2], 2);
        faulty_hold(false);
        sink_wait(&sink, 1);
        faulty_fail_next(ERR_OK, 0);
        assert_int_equal(job.error, ERR_OK);
        assert_int_equal(job.device, 0);
        assert_true(job.is_rerouted);
        if (i < 2)
            partial_settle(&partial, DTYPE_FLOAT64, &value);
        else
            value = job.value[0];
        if (value.sum != 10 * TINY_TERMS)
            fail_msg("%g, expected %d", value.sum, 10 * TINY_TERMS);
        gpu_close(gpu);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_jobs_pass_between_the_slices_of_a_long_one),
        cmocka_unit_test(long_jobs_take_turns),
        cmocka_unit_test(long_jobs_end_between_slices_when_cancelled_or_late),
        cmocka_unit_test(cancelled_jobs_leave_the_queue_behind_long_ones),
        cmocka_unit_test(long_jobs_have_the_values_of_whole_ones),
        cmocka_unit_test(jobs_add_to_partial_sums_on_every_road),
        cmocka_unit_test(a_partial_sum_is_added_to_once_whatever_fails),
    };
    tiny_faulty = backend_faulty;
    tiny_faulty.slice.terms = TINY_TERMS;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
