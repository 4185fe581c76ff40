/* Jobs through the door of gpu.h: inline and queued, dropped, failed, batched, drained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "gpu/faulty.h"

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

/* Counts what arrives. */
struct sink {
    struct job_port port; /* first: sink_complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned jobs, calls; /* lock */
};

static void sink_complete(struct job_port *port, struct job *first)
{
    struct sink *sink = (struct sink *)port;
    (void)pthread_mutex_lock(&sink->lock);
    sink->calls++;
    for (struct job *job = first; job != NULL; job = job->next)
        sink->jobs++;
    (void)pthread_cond_signal(&sink->changed);
    (void)pthread_mutex_unlock(&sink->lock);
}

static void sink_init(struct sink *sink)
{
    *sink = (struct sink){.port = {sink_complete},
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
}

static void sink_wait(struct sink *sink, unsigned jobs)
{
    (void)pthread_mutex_lock(&sink->lock);
    while (sink->jobs < jobs)
        (void)pthread_cond_wait(&sink->changed, &sink->lock);
    (void)pthread_mutex_unlock(&sink->lock);
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
    assert_int_equal(gpu_device_counts(gpu, 1).jobs_total, 2);
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

static void a_lost_device_fails_its_jobs_and_is_avoided(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job occupier, queued, later;
    struct problem problem;
    int device = -1;
    sink_init(&sink);
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, 1000, &device), ERR_OK);
    assert_int_equal(device, 1);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 0);
    occupy(gpu, &occupier, &sink);
    job_init(&queued, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &queued), ERR_OK);
    faulty_set(FAULTY_COMPUTE, ERR_DEVICE);
    faulty_hold(false);
    sink_wait(&sink, 2);
    faulty_set(FAULTY_COMPUTE, ERR_OK); /* lost is lost */
    assert_int_equal(occupier.error, ERR_DEVICE);
    assert_int_equal(queued.error, ERR_DEVICE);
    job_init(&later, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &later), ERR_NO_DEVICE);
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, 1000, &device), ERR_OK);
    assert_int_equal(device, 0);
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, -1, 1, &device), ERR_NO_DEVICE);
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, 0, 1, &device), ERR_NO_DEVICE);
    assert_int_equal(gpu_devices_failed(gpu, &problem), 1);
    assert_string_equal(problem.detail, "told to fail");
    gpu_close(gpu);
}

static void a_device_short_of_memory_is_not_lost(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job job[2];
    sink_init(&sink);
    job_init(&job[0], &sink);
    job_init(&job[1], &sink);
    faulty_set(FAULTY_COMPUTE, ERR_NOMEM);
    assert_int_equal(gpu_submit(gpu, 1, &job[0]), ERR_OK);
    sink_wait(&sink, 1);
    faulty_set(FAULTY_COMPUTE, ERR_OK);
    assert_int_equal(job[0].error, ERR_NOMEM);
    assert_int_equal(gpu_submit(gpu, 1, &job[1]), ERR_OK);
    sink_wait(&sink, 2);
    check_result(&job[1]);
    gpu_close(gpu);
}

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
    assert_int_equal(gpu_place(gpu, PLACE_CUDA, -1, 1, &device), ERR_NO_DEVICE);
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
    assert_int_equal(gpu_place(gpu, PLACE_AUTO, -1, SIZE_MAX, &device), ERR_OK);
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
        assert_int_equal(gpu_place(gpu, rows[i].placement, rows[i].index, rows[i].bytes, &device),
                         rows[i].error);
        assert_int_equal(device, rows[i].device);
    }
    gpu_close(gpu);
}

static void the_self_test_passes_on_good_devices_and_names_a_bad_one(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct problem problem;
    problem_clear(&problem);
    assert_int_equal(gpu_self_test(gpu, &problem), ERR_OK);
    faulty_set(FAULTY_COMPUTE, ERR_DEVICE);
    assert_int_equal(gpu_self_test(gpu, &problem), ERR_DEVICE);
    faulty_set(FAULTY_COMPUTE, ERR_OK);
    assert_non_null(strstr(problem.detail, "cuda:0"));
    assert_int_equal(gpu_memory(gpu).used_bytes, 0);
    gpu_close(gpu);
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
        cmocka_unit_test(a_lost_device_fails_its_jobs_and_is_avoided),
        cmocka_unit_test(a_device_short_of_memory_is_not_lost),
        cmocka_unit_test(a_device_that_does_not_open_is_left_out_and_counted),
        cmocka_unit_test(memory_that_cannot_be_pinned_still_serves),
        cmocka_unit_test(cuda_can_be_switched_off),
        cmocka_unit_test(placement_follows_the_size_and_the_wish),
        cmocka_unit_test(the_self_test_passes_on_good_devices_and_names_a_bad_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
