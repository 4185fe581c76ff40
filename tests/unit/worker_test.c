/* Jobs through the door of gpu.h: inline and queued, dropped, failed, batched, drained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/jobs.h"

static const struct backend *const with_faulty[] = {&backend_cpu, &backend_faulty, NULL};

static struct gpu *open_gpu(const struct gpu_config *config)
{
    struct gpu *gpu = NULL;
    struct problem problem;
    assert_int_equal(gpu_open_backends(&gpu, config, with_faulty, &problem), ERR_OK);
    return gpu;
}

static void check_result(const struct job *job)
{
    assert_int_equal(job->error, ERR_OK);
    if (job->value[0].sum != 32)
        fail_msg("%g, expected 32", job->value[0].sum);
}

static void small_jobs_are_computed_on_the_callers_thread(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job job;
    sink_init(&sink);
    job_init(&job, &sink);
    assert_true(gpu_is_inline(gpu, 0, DTYPE_FLOAT32, 100));
    assert_false(gpu_is_inline(gpu, 0, DTYPE_FLOAT32, 101));
    assert_true(gpu_is_inline(gpu, 0, DTYPE_FLOAT64, 50));
    assert_false(gpu_is_inline(gpu, 0, DTYPE_FLOAT64, 51));
    assert_false(gpu_is_inline(gpu, 1, DTYPE_FLOAT32, 1));
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
    assert_int_equal(gpu_load_jobs(gpu, 1), 5);
    assert_int_equal(gpu_load_jobs(gpu, 0), 0);
    faulty_hold(false);
    sink_wait(&sink, 5);
    assert_int_equal(gpu_load_jobs(gpu, 1), 0);
    for (int i = 0; i < 4; i++)
        check_result(&job[i]);
    gpu_close(gpu);
}

static void operands_are_near_where_a_device_reads_them_in_place(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    const struct buffer_source *source = gpu_buffers(gpu);
    struct block block;
    assert_int_equal(source->acquire(source->context, 64, &block), ERR_OK);
    assert_true(gpu_is_near(gpu, 0, &block) && gpu_is_near(gpu, 0, block.data));
    assert_false(gpu_is_near(gpu, 1, &block));
    assert_true(gpu_is_near(gpu, 1, block.data)); /* pinned */
    source->release(source->context, block);
    gpu_close(gpu);
}

static void jobs_that_wait_are_dropped_when_late(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job occupier, late, good;
    sink_init(&sink);
    occupy(gpu, &occupier, &sink);
    job_init(&late, &sink);
    job_init(&good, &sink);
    late.deadline_ns = 1; /* long past */
    good.deadline_ns = INT64_MAX;
    assert_int_equal(gpu_submit(gpu, 1, &late), ERR_OK);
    assert_int_equal(gpu_submit(gpu, 1, &good), ERR_OK);
    faulty_hold(false);
    sink_wait(&sink, 3);
    assert_int_equal(late.error, ERR_DEADLINE);
    check_result(&good);
    assert_int_equal(good.batch_size, 1);
    struct device_counts counts = gpu_device_counts(gpu, 1);
    assert_int_equal(counts.jobs_total, 2);
    assert_int_equal(counts.cancelled_total, 0);
    assert_int_equal(counts.expired_total, 1);
    gpu_close(gpu);
}

static void cancelled_jobs_leave_a_hanging_devices_queue_to_others(void **state)
{
    (void)state;
    struct gpu_config config = small_config;
    config.queue_jobs = 8;
    config.client_share_percent = 50;
    struct gpu *gpu = open_gpu(&config);
    struct sink sink, gone;
    struct job occupier, job[8], later[4];
    sink_init(&sink);
    sink_init(&gone);
    occupy(gpu, &occupier, &sink);
    for (unsigned i = 0; i < 8; i++) {
        job_init(&job[i], i % 2 ? &gone : &sink);
        job[i].client = 1 + i % 2;
        job[i].deadline_ns = i == 7 ? 1 : INT64_MAX;
        assert_int_equal(gpu_submit(gpu, 1, &job[i]), ERR_OK);
    }
    for (unsigned i = 1; i < 8; i += 2) {
        job_cancel(&job[i]);
        assert_int_equal(gone.jobs, (i + 1) / 2); /* no wait */
        assert_int_equal(job[i].error, i == 7 ? ERR_DEADLINE : ERR_CLOSED);
    }
    assert_int_equal(gpu_device_counts(gpu, 1).queued_jobs, 4);
    assert_int_equal(gpu_device_counts(gpu, 1).queued_bytes, 4 * sizeof operands);
    for (unsigned i = 0; i < 4; i++) {
        job_init(&later[i], &sink);
        later[i].client = 2;
        assert_int_equal(gpu_submit(gpu, 1, &later[i]), ERR_OK);
    }
    faulty_hold(false);
    sink_wait(&sink, 9);
    for (unsigned i = 0; i < 4; i++) {
        check_result(&job[2 * i]);
        check_result(&later[i]);
    }
    assert_int_equal(gone.jobs, 4);
    struct device_counts counts = gpu_device_counts(gpu, 1);
    assert_int_equal(counts.cancelled_total, 3);
    assert_int_equal(counts.expired_total, 1);
    assert_int_equal(counts.jobs_total, 9);
    gpu_close(gpu);
}

static void jobs_may_be_cancelled_whatever_has_become_of_them(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(&small_config);
    struct sink sink;
    struct job in_hand, waiting, unsubmitted, refused[4];
    sink_init(&sink);
    occupy(gpu, &in_hand, &sink);
    job_init(&waiting, &sink);
    job_init(&unsubmitted, &sink);
    assert_int_equal(gpu_submit(gpu, 1, &waiting), ERR_OK);
    for (int i = 0; i < 4; i++) {
        job_init(&refused[i], &sink);
        assert_int_equal(gpu_submit(gpu, 1, &refused[i]), i < 3 ? ERR_OK : ERR_BUSY);
    }
    job_cancel(&unsubmitted);
    job_cancel(&refused[3]);
    assert_int_equal(sink.jobs, 0);
    job_cancel(&waiting);
    job_cancel(&waiting);
    assert_int_equal(sink.jobs, 1);
    job_cancel(&in_hand); /* its batch is under way, and goes on */
    assert_int_equal(sink.jobs, 1);
    faulty_hold(false);
    sink_wait(&sink, 5);
    check_result(&in_hand);
    job_cancel(&in_hand);
    gpu_drain(gpu);
    assert_int_equal(sink.jobs, 5);
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
        cmocka_unit_test(operands_are_near_where_a_device_reads_them_in_place),
        cmocka_unit_test(jobs_that_wait_are_dropped_when_late),
        cmocka_unit_test(cancelled_jobs_leave_a_hanging_devices_queue_to_others),
        cmocka_unit_test(jobs_may_be_cancelled_whatever_has_become_of_them),
        cmocka_unit_test(drain_answers_what_was_accepted_and_refuses_the_rest),
        cmocka_unit_test(a_lost_devices_jobs_are_computed_on_the_cpu_and_it_is_avoided),
        cmocka_unit_test(a_device_short_of_memory_gets_each_job_alone),
        cmocka_unit_test(a_watchdog_sees_since_when_a_device_is_busy),
        cmocka_unit_test(one_client_cannot_fill_the_queue),
        cmocka_unit_test(a_device_that_does_not_open_is_left_out_and_counted),
        cmocka_unit_test(memory_that_cannot_be_pinned_still_serves),
        cmocka_unit_test(cuda_can_be_switched_off),
        cmocka_unit_test(placement_follows_the_size_and_the_wish),
        cmocka_unit_test(the_self_test_keeps_good_devices),
        cmocka_unit_test(the_self_test_leaves_out_a_device_that_is_wrong),
        cmocka_unit_test(the_self_test_leaves_out_a_device_that_the_cpu_stands_in_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
