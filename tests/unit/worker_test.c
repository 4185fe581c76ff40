/* Jobs through the door of gpu.h: inline and queued, dropped, failed, batched, cut up, drained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/faulty.h"
#include "gpu/partial.h"
#include "tests/sink.h"

static const struct backend *const with_faulty[] = {&backend_cpu, &backend_faulty, NULL};

static const struct gpu_config small_config = {
    .cuda = true,
    .budget_bytes = 8 << 20,
    .pinned_bytes = 1 << 20,
    .device_bytes = 1 << 20,
    .queue_jobs = 4,
    .batch_jobs = 3,
    .inline_terms = 100,
    .cuda_min_bytes = 1000,
};

static struct gpu *open_gpu(const struct gpu_config *config)
{
    struct gpu *gpu = NULL;
    struct problem problem;
    assert_int_equal(gpu_open_backends(&gpu, config, with_faulty, &problem), ERR_OK);
    return gpu;
}

static const float operands[] = {1, 2, 3, 4, 5, 6}; /* 1*4 + 2*5 + 3*6 = 32 */

static void job_init(struct job *job, struct sink *sink)
{
    const struct shape three = {1, {3}};
    struct tensor_pair pair = {.a = {DTYPE_FLOAT32, three, 0}, .b = {DTYPE_FLOAT32, three, 12}};
    *job = (struct job){.base = operands, .bytes = sizeof operands, .port = &sink->port};
    assert_int_equal(job_plan(job, &pair, 1), ERR_OK);
}

static void check_result(const struct job *job)
{
    assert_int_equal(job->error, ERR_OK);
    if (job->value[0].sum != 32)
        fail_msg("%g, expected 32", job->value[0].sum);
}

static void check_times(const struct job *job)
{
    const struct job_times *times = &job->times;
    assert_true(times->copy_in_ns >= 0 && times->compute_ns >= 0 && times->copy_out_ns >= 0);
    assert_int_equal(times->started_ns + times->copy_in_ns + times->compute_ns + times->copy_out_ns,
                     times->finished_ns);
}

static void small_jobs_are_computed_on_the_callers_thread(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job job;
    sink_init(&sink);
    job_init(&job, &sink);
    assert_true(gpu_is_inline(gpu, 0, 100));
    assert_false(gpu_is_inline(gpu, 0, 101));
    assert_false(gpu_is_inline(gpu, 1, 1));
    gpu_compute(gpu, &job);
    check_result(&job);
    check_times(&job);
    assert_int_equal(job.batch_size, 1);
    assert_int_equal(sink.jobs, 0);
    assert_int_equal(gpu_device_counts(gpu, 0).jobs_total, 1);
    job_fini(&job);
    gpu_close(gpu);
}

static void every_device_computes_queued_jobs(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    assert_int_equal(gpu_device_count(gpu), 2);
    for (int device = 0; device < 2; device++) {
        struct sink sink;
        struct job job;
        sink_init(&sink);
        job_init(&job, &sink);
        assert_int_equal(gpu_submit(gpu, device, &job), ERR_OK);
        sink_wait(&sink, 1);
        check_result(&job);
        check_times(&job);
        assert_int_equal(job.device, device);
        assert_int_equal(job.batch_size, 1);
        job_fini(&job);
    }
    gpu_close(gpu);
}

/* Holds the device with one job inside, so that what comes next waits. */
static void occupy(struct gpu *gpu, struct job *job, struct sink *sink)
{
    job_init(job, sink);
    faulty_hold(true);
    assert_int_equal(gpu_submit(gpu, 1, job), ERR_OK);
    faulty_wait_held();
}

static void waiting_jobs_form_batches_and_ports_are_called_once_each(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink first, mine, yours;
    struct job occupier, job[4];
    sink_init(&first);
    sink_init(&mine);
    sink_init(&yours);
    occupy(gpu, &occupier, &first);
    for (int i = 0; i < 4; i++) {
        job_init(&job[i], i == 1 ? &yours : &mine);
        assert_int_equal(gpu_submit(gpu, 1, &job[i]), ERR_OK);
    }
    assert_int_equal(gpu_device_counts(gpu, 1).queued_jobs, 4);
    faulty_hold(false);
    sink_wait(&mine, 3);
    sink_wait(&yours, 1);
    for (int i = 0; i < 4; i++) {
        check_result(&job[i]);
        check_times(&job[i]);
        assert_int_equal(job[i].batch_size, i < 3 ? 3 : 1); /* batch_jobs */
    }
    assert_int_equal(mine.calls, 2);
    assert_int_equal(yours.calls, 1);
    struct device_counts counts = gpu_device_counts(gpu, 1);
    assert_int_equal(counts.jobs_total, 5);
    assert_int_equal(counts.batches_total, 3);
    assert_int_equal(counts.batches_by_size[0], 2);
    assert_int_equal(counts.batches_by_size[1], 0);
    assert_int_equal(counts.batches_by_size[2], 1); /* of three or four */
    gpu_close(gpu);
}

static void a_full_queue_refuses_and_keeps_what_it_took(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job occupier, job[4], refused;
    sink_init(&sink);
    occupy(gpu, &occupier, &sink);
    for (int i = 0; i < 4; i++) {
        job_init(&job[i], &sink);
        assert_int_equal(gpu_submit(gpu, 1, &job[i]), ERR_OK);
    }
    job_init(&refused, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &refused), ERR_BUSY);
    assert_int_equal(gpu_device_counts(gpu, 1).rejected_total, 1);
    faulty_hold(false);
    sink_wait(&sink, 5);
    for (int i = 0; i < 4; i++)
        check_result(&job[i]);
    gpu_close(gpu);
}

static void cancelled_and_late_jobs_complete_with_their_error(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job occupier, cancelled, late, good;
    sink_init(&sink);
    occupy(gpu, &occupier, &sink);
    job_init(&cancelled, &sink);
    job_init(&late, &sink);
    job_init(&good, &sink);
    late.deadline_ns = 1; /* long past */
    good.deadline_ns = INT64_MAX;
    assert_int_equal(gpu_submit(gpu, 1, &cancelled), ERR_OK);
    assert_int_equal(gpu_submit(gpu, 1, &late), ERR_OK);
    assert_int_equal(gpu_submit(gpu, 1, &good), ERR_OK);
    __atomic_store_n(&cancelled.cancelled, true, __ATOMIC_RELAXED);
    faulty_hold(false);
    sink_wait(&sink, 4);
    assert_int_equal(cancelled.error, ERR_CLOSED);
    assert_int_equal(late.error, ERR_DEADLINE);
    check_result(&good);
    assert_int_equal(good.batch_size, 1);
    struct device_counts counts = gpu_device_counts(gpu, 1);
    assert_int_equal(counts.jobs_total, 2);
    assert_int_equal(counts.cancelled_total, 1);
    assert_int_equal(counts.expired_total, 1);
    gpu_close(gpu);
}

static void drain_answers_what_was_accepted_and_refuses_the_rest(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job job[3], refused;
    sink_init(&sink);
    for (int i = 0; i < 3; i++) {
        job_init(&job[i], &sink);
        assert_int_equal(gpu_submit(gpu, i % 2, &job[i]), ERR_OK);
    }
    gpu_drain(gpu);
    assert_int_equal(sink.jobs, 3); /* no wait: drain returned */
    for (int i = 0; i < 3; i++)
        check_result(&job[i]);
    job_init(&refused, &sink);
    assert_int_equal(gpu_submit(gpu, 0, &refused), ERR_CLOSED);
    assert_int_equal(gpu_submit(gpu, 1, &refused), ERR_CLOSED);
    gpu_drain(gpu);
    gpu_close(gpu);
}

/* --- faults --- */

static void count_loss(void *context)
{
    unsigned *losses = context; /* read once the jobs are back, which come after it */
    (*losses)++;
}

static void a_lost_devices_jobs_are_computed_on_the_cpu_and_it_is_avoided(void **state)
{
    (void)state;
    unsigned losses = 0;
    struct gpu_config config = small_config;
    config.device_lost = count_loss;
    config.context = &losses;
    struct gpu *gpu = open_gpu(&config);
    struct sink sink;
    struct job occupier, queued, later;
    struct problem problem;
    const struct job_size large = {.bytes = 1000};
    int device = -1;
    sink_init(&sink);
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, &large, &device), ERR_OK);
    assert_int_equal(device, 1);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 0);
    occupy(gpu, &occupier, &sink);
    job_init(&queued, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &queued), ERR_OK);
    faulty_fail_next(ERR_DEVICE, 1); /* lost is lost */
    faulty_hold(false);
    sink_wait(&sink, 2);
    check_result(&occupier);
    check_result(&queued);
    assert_int_equal(occupier.device, 0);
    assert_int_equal(queued.device, 0);
    assert_true(occupier.is_rerouted && queued.is_rerouted);
    assert_int_equal(gpu_device_counts(gpu, 1).rerouted_total, 2);
    assert_int_equal(losses, 1);
    job_init(&later, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &later), ERR_NO_DEVICE);
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, &large, &device), ERR_OK);
    assert_int_equal(device, 0);
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, -1, NULL, &device), ERR_NO_DEVICE);
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, 0, NULL, &device), ERR_NO_DEVICE);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 1);
    assert_string_equal(problem.detail, "told to fail");
    gpu_close(gpu);
}

/* What is short for a batch may be enough for each of its jobs. */
static void a_device_short_of_memory_gets_each_job_alone(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job occupier, job[3], later;
    struct problem problem;
    sink_init(&sink);
    occupy(gpu, &occupier, &sink);
    for (int i = 0; i < 3; i++) {
        job_init(&job[i], &sink);
        assert_int_equal(gpu_submit(gpu, 1, &job[i]), ERR_OK);
    }
    faulty_step(); /* the batch of three waits */
    faulty_fail_next(ERR_NOMEM, 2);
    faulty_hold(false);
    sink_wait(&sink, 4);
    for (int i = 0; i < 3; i++) {
        check_result(&job[i]);
        assert_int_equal(job[i].device, i > 0);
        assert_int_equal(job[i].is_rerouted, i == 0); /* the batch, then this one alone */
    }
    assert_int_equal(gpu_device_counts(gpu, 1).rerouted_total, 1);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 0);
    job_init(&later, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &later), ERR_OK);
    sink_wait(&sink, 5);
    check_result(&later);
    assert_int_equal(later.device, 1);
    gpu_close(gpu);
}

static void a_watchdog_sees_since_when_a_device_is_busy(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job job;
    sink_init(&sink);
    assert_int_equal(gpu_busy_since_ns(gpu), 0);
    occupy(gpu, &job, &sink);
    int64_t since = gpu_busy_since_ns(gpu);
    assert_true(since > 0);
    assert_int_equal(gpu_busy_since_ns(gpu), since);
    faulty_hold(false);
    gpu_drain(gpu);
    assert_int_equal(gpu_busy_since_ns(gpu), 0);
    assert_int_equal(job.times.started_ns, since);
    gpu_close(gpu);
}

/* --- long jobs --- */

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
            __atomic_store_n(&job.cancelled, true, __ATOMIC_RELAXED);
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

static void jobs_that_nobody_wants_leave_the_queue_behind_long_ones(void **state)
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
    __atomic_store_n(&job[JOBS - 1].cancelled, true, __ATOMIC_RELAXED);
    faulty_step();
    sink_wait(&gone, 1);
    assert_int_equal(sink.jobs, 0);
    assert_int_equal(job[JOBS - 1].error, ERR_CLOSED);
    faulty_hold(false);
    sink_wait(&sink, JOBS - 1);
    for (int i = 0; i < JOBS - 1; i++)
        assert_true(job[i].error == ERR_OK && job[i].value[0].sum == 3 * TINY_TERMS);
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
    enum { PAIRS = sizeof pairs / sizeof *pairs };
    for (size_t i = 0; i < 2 * LONG_N; i++)
        ones[i] = (float)(i * i % 61) - 30.25F;
    for (size_t i = 0; i < PAIRS * 4 * 2; i++) {
        struct tensor_pair pair[2] = {pairs[i % PAIRS], pairs[i % PAIRS]};
        struct problem problem;
        struct sink sink;
        tiny_faulty.slice.bytes = bytes[i / PAIRS % 4];
        struct gpu *gpu = open_tiny();
        struct job job = {
            .base = ones,
            .bytes = sizeof ones,
            .accuracy = i / PAIRS / 4 ? ACCURACY_FAST : ACCURACY_EXACT,
            .result_dtype = dtype_is_integer(pair[0].a.dtype) ? DTYPE_INT64 : pair[0].a.dtype,
            .wants_abs = true,
            .port = &sink.port,
        };
        sink_init(&sink);
        for (int j = 0; j < 2; j++)
            assert_int_equal(
                shape_dot(&pair[j].a.shape, &pair[j].b.shape, &pair[j].result, &problem), ERR_OK);
        assert_int_equal(job_plan(&job, pair, 2), ERR_OK);
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
                fail_msg("pair %zu, %zu bytes, value %zu: %.17g, expected %.17g", i % PAIRS,
                         (size_t)tiny_faulty.slice.bytes, v, job.value[v].sum, want[v].sum);
        assert_true(gpu_device_counts(gpu, 1).slices_total > 1);
        free(want);
        job_fini(&job);
        gpu_close(gpu);
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

static void one_client_cannot_fill_the_queue(void **state)
{
    (void)state;
    struct gpu_config config = small_config;
    config.client_share_percent = 50;
    struct gpu *gpu = open_gpu(&config);
    struct sink sink;
    struct job occupier, mine[3], yours;
    sink_init(&sink);
    occupy(gpu, &occupier, &sink);
    for (int i = 0; i < 3; i++) {
        job_init(&mine[i], &sink);
        mine[i].client = 1;
        assert_int_equal(gpu_submit(gpu, 1, &mine[i]), i < 2 ? ERR_OK : ERR_BUSY);
    }
    job_init(&yours, &sink);
    yours.client = 2;
    assert_int_equal(gpu_submit(gpu, 1, &yours), ERR_OK);
    assert_int_equal(gpu_device_counts(gpu, 1).unfair_total, 1);
    assert_int_equal(gpu_device_counts(gpu, 1).rejected_total, 1);
    faulty_hold(false);
    sink_wait(&sink, 4);
    gpu_close(gpu);
}

/* --- opening, placing --- */

static void a_device_that_does_not_open_is_left_out_and_counted(void **state)
{
    (void)state;
    struct problem problem;
    int device = -1;
    faulty_set(FAULTY_OPEN, ERR_DEVICE);
    struct gpu *gpu = open_gpu(&small_config);
    faulty_set(FAULTY_OPEN, ERR_OK);
    assert_int_equal(gpu_device_count(gpu), 1);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 1);
    assert_string_equal(problem.detail, "told not to open");
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, -1, NULL, &device), ERR_NO_DEVICE);
    assert_int_equal(gpu_memory(gpu).pinned_bytes, 0);
    gpu_close(gpu);
}

static void memory_that_cannot_be_pinned_still_serves(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    assert_int_equal(gpu_memory(gpu).pinned_bytes, 1 << 20);
    gpu_close(gpu);
    faulty_set(FAULTY_PIN, ERR_DEVICE);
    gpu = open_gpu(&small_config);
    faulty_set(FAULTY_PIN, ERR_OK);
    assert_int_equal(gpu_memory(gpu).pinned_bytes, 0);
    struct block block;
    const struct buffer_source *source = gpu_buffers(gpu);
    assert_int_equal(source->acquire(source->context, 1 << 20, &block), ERR_OK);
    assert_int_equal(gpu_memory(gpu).used_bytes, 1 << 20);
    source->release(source->context, block);
    gpu_close(gpu);
}

static void cuda_can_be_switched_off(void **state)
{
    (void)state;
    struct gpu_config config = small_config;
    config.cuda = false;
    struct gpu *gpu = open_gpu(&config);
    int device = -1;
    assert_int_equal(gpu_device_count(gpu), 1);
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, &(struct job_size){.bytes = SIZE_MAX}, &device),
                     ERR_OK);
    assert_int_equal(device, 0);
    gpu_close(gpu);
}

static void placement_follows_the_size_and_the_wish(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    static const struct {
        enum placement placement;
        int index;
        size_t bytes;
        enum error error;
        int device;
    } rows[] = {
        {PLACE_AUTO, -1, 999, ERR_OK, 0}, {PLACE_AUTO, -1, 1000, ERR_OK, 1},
        {PLACE_CPU, -1, 1000, ERR_OK, 0}, {PLACE_CUDA, -1, 1, ERR_OK, 1},
        {PLACE_CUDA, 0, 1, ERR_OK, 1},    {PLACE_CUDA, 1, 1, ERR_NO_DEVICE, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int device = -1;
        const struct job_size size = {.bytes = rows[i].bytes};
        assert_int_equal(gpu_place(gpu, rows[i].placement, rows[i].index, &size, &device),
                         rows[i].error);
        assert_int_equal(device, rows[i].device);
    }
    gpu_close(gpu);
}

static void the_self_test_keeps_good_devices(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct problem problem;
    problem_clear(&problem);
    assert_int_equal(gpu_self_test(gpu, &problem), ERR_OK);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 0);
    gpu_close(gpu);
}

/* Nobody is told of a loss: no job was in its hands. */
static void expect_left_out(struct gpu *gpu, const char *why)
{
    struct problem problem;
    int device = -1;
    problem_clear(&problem);
    assert_int_equal(gpu_self_test(gpu, &problem), ERR_OK);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 1);
    assert_non_null(strstr(problem.detail, "cuda:0"));
    assert_non_null(strstr(problem.detail, why));
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, -1, NULL, &device), ERR_NO_DEVICE);
    assert_int_equal(gpu_memory(gpu).used_bytes, 0);
    gpu_close(gpu);
}

static void the_self_test_leaves_out_a_device_that_is_wrong(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    faulty_spoil(true);
    expect_left_out(gpu, "gave");
    faulty_spoil(false);
}

static void the_self_test_leaves_out_a_device_that_the_cpu_stands_in_for(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    faulty_fail_next(ERR_NOMEM, 2); /* the batch, then the job alone */
    expect_left_out(gpu, "could not run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_jobs_are_computed_on_the_callers_thread),
        cmocka_unit_test(every_device_computes_queued_jobs),
        cmocka_unit_test(waiting_jobs_form_batches_and_ports_are_called_once_each),
        cmocka_unit_test(a_full_queue_refuses_and_keeps_what_it_took),
        cmocka_unit_test(cancelled_and_late_jobs_complete_with_their_error),
        cmocka_unit_test(drain_answers_what_was_accepted_and_refuses_the_rest),
        cmocka_unit_test(a_lost_devices_jobs_are_computed_on_the_cpu_and_it_is_avoided),
        cmocka_unit_test(a_device_short_of_memory_gets_each_job_alone),
        cmocka_unit_test(a_watchdog_sees_since_when_a_device_is_busy),
        cmocka_unit_test(small_jobs_pass_between_the_slices_of_a_long_one),
        cmocka_unit_test(long_jobs_take_turns),
        cmocka_unit_test(long_jobs_end_between_slices_when_cancelled_or_late),
        cmocka_unit_test(jobs_that_nobody_wants_leave_the_queue_behind_long_ones),
        cmocka_unit_test(long_jobs_have_the_values_of_whole_ones),
        cmocka_unit_test(jobs_add_to_partial_sums_on_every_road),
        cmocka_unit_test(a_partial_sum_is_added_to_once_whatever_fails),
        cmocka_unit_test(one_client_cannot_fill_the_queue),
        cmocka_unit_test(a_device_that_does_not_open_is_left_out_and_counted),
        cmocka_unit_test(memory_that_cannot_be_pinned_still_serves),
        cmocka_unit_test(cuda_can_be_switched_off),
        cmocka_unit_test(placement_follows_the_size_and_the_wish),
        cmocka_unit_test(the_self_test_keeps_good_devices),
        cmocka_unit_test(the_self_test_leaves_out_a_device_that_is_wrong),
        cmocka_unit_test(the_self_test_leaves_out_a_device_that_the_cpu_stands_in_for),
    };
    tiny_faulty = backend_faulty;
    tiny_faulty.slice.terms = TINY_TERMS;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
