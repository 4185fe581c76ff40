/* The lab's thread: jobs run in turn, refused, dropped, drained; devices, rungs over rows,
 * timing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "gpu/kernels/ladder.h"
#include "gpu/lab/experiments.h"

static const struct gpu_config gpu_config = {
    .budget_bytes = 8 << 20,
    .queue_jobs = 4,
    .batch_jobs = 3,
    .inline_terms = 100,
};
static const struct lab_config lab_config = {.queue_jobs = 2};

struct fixture {
    struct gpu *gpu;
    struct lab *lab;
};

static int open_lab(void **state)
{
    static struct fixture fixture;
    struct problem problem;
    assert_int_equal(gpu_open(&fixture.gpu, &gpu_config, &problem), ERR_OK);
    assert_int_equal(lab_open(&fixture.lab, fixture.gpu, &lab_config, &problem), ERR_OK);
    *state = &fixture;
    return 0;
}

static int close_lab(void **state)
{
    struct fixture *fixture = *state;
    lab_close(fixture->lab);
    gpu_close(fixture->gpu);
    return 0;
}

static struct lab *lab_of(void **state)
{
    return ((struct fixture *)*state)->lab;
}

/* --- jobs --- */

/* A gate that holds the lab's thread, and a count of what has come back. */
struct desk {
    struct job_port port; /* first: desk_complete() casts back */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_shut, is_held; /* lock; is_held: a job stands at the gate */
    unsigned runs, jobs;   /* lock; that ran, that came back */
};

static void desk_complete(struct job_port *port, struct job *first)
{
    struct desk *desk = (struct desk *)port;
    (void)pthread_mutex_lock(&desk->lock);
    for (struct job *job = first; job != NULL; job = job->next)
        desk->jobs++;
    (void)pthread_cond_broadcast(&desk->changed);
    (void)pthread_mutex_unlock(&desk->lock);
}

static void desk_init(struct desk *desk, bool is_shut)
{
    *desk = (struct desk){.port = {desk_complete},
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER,
                          .is_shut = is_shut};
}

static enum error pass_gate(struct job *job)
{
    struct desk *desk = (struct desk *)job->port;
    (void)pthread_mutex_lock(&desk->lock);
    desk->runs++;
    desk->is_held = true;
    (void)pthread_cond_broadcast(&desk->changed);
    while (desk->is_shut)
        (void)pthread_cond_wait(&desk->changed, &desk->lock);
    desk->is_held = false;
    (void)pthread_mutex_unlock(&desk->lock);
    return ERR_OK;
}

static void desk_wait_held(struct desk *desk)
{
    (void)pthread_mutex_lock(&desk->lock);
    while (!desk->is_held)
        (void)pthread_cond_wait(&desk->changed, &desk->lock);
    (void)pthread_mutex_unlock(&desk->lock);
}

static void desk_open(struct desk *desk)
{
    (void)pthread_mutex_lock(&desk->lock);
    desk->is_shut = false;
    (void)pthread_cond_broadcast(&desk->changed);
    (void)pthread_mutex_unlock(&desk->lock);
}

static void desk_wait(struct desk *desk, unsigned jobs)
{
    (void)pthread_mutex_lock(&desk->lock);
    while (desk->jobs < jobs)
        (void)pthread_cond_wait(&desk->changed, &desk->lock);
    (void)pthread_mutex_unlock(&desk->lock);
}

static void submit(struct lab *lab, struct desk *desk, struct job *job)
{
    *job = (struct job){.port = &desk->port, .run = pass_gate};
    assert_int_equal(lab_submit(lab, job), ERR_OK);
}

static void jobs_run_and_come_back_through_their_port(void **state)
{
    struct desk desk;
    struct job job;
    desk_init(&desk, false);
    submit(lab_of(state), &desk, &job);
    desk_wait(&desk, 1);
    assert_int_equal(job.error, ERR_OK);
    assert_int_equal(desk.runs, 1);
    assert_true(job.times.started_ns > 0);
    assert_int_equal(job.times.started_ns + job.times.compute_ns, job.times.finished_ns);
    assert_int_equal(lab_counts(lab_of(state)).jobs_total, 1);
}

static void a_full_queue_refuses_and_keeps_what_it_took(void **state)
{
    struct desk desk;
    struct job inside, waiting[2], refused = {0};
    desk_init(&desk, true);
    submit(lab_of(state), &desk, &inside);
    desk_wait_held(&desk);
    for (int i = 0; i < 2; i++)
        submit(lab_of(state), &desk, &waiting[i]);
    refused = (struct job){.port = &desk.port, .run = pass_gate};
    assert_int_equal(lab_submit(lab_of(state), &refused), ERR_BUSY);
    struct lab_counts counts = lab_counts(lab_of(state));
    assert_int_equal(counts.queued_jobs, 2);
    assert_int_equal(counts.rejected_total, 1);
    desk_open(&desk);
    desk_wait(&desk, 3);
    assert_int_equal(desk.runs, 3);
    assert_int_equal(waiting[1].error, ERR_OK);
}

static void cancelled_and_late_jobs_come_back_without_running(void **state)
{
    struct desk desk;
    struct job inside, cancelled, late;
    desk_init(&desk, true);
    submit(lab_of(state), &desk, &inside);
    desk_wait_held(&desk);
    submit(lab_of(state), &desk, &cancelled);
    late = (struct job){.port = &desk.port, .run = pass_gate, .deadline_ns = 1};
    assert_int_equal(lab_submit(lab_of(state), &late), ERR_OK);
    job_cancel(&cancelled);
    assert_int_equal(desk.jobs, 1); /* while the lab is busy with another */
    assert_int_equal(cancelled.error, ERR_CLOSED);
    desk_open(&desk);
    desk_wait(&desk, 3);
    assert_int_equal(late.error, ERR_DEADLINE);
    assert_int_equal(desk.runs, 1);
    assert_int_equal(lab_counts(lab_of(state)).jobs_total, 1);
}

static void drain_finishes_what_was_accepted_and_refuses_the_rest(void **state)
{
    struct desk desk;
    struct job job[2], refused;
    desk_init(&desk, false);
    for (int i = 0; i < 2; i++)
        submit(lab_of(state), &desk, &job[i]);
    lab_drain(lab_of(state));
    assert_int_equal(desk.jobs, 2); /* no wait: drain returned */
    refused = (struct job){.port = &desk.port, .run = pass_gate};
    assert_int_equal(lab_submit(lab_of(state), &refused), ERR_CLOSED);
}

static enum error note_priority(struct job *job)
{
    job->device = getpriority(PRIO_PROCESS, 0); /* on Linux: of this thread */
    return ERR_OK;
}

static void the_service_comes_before_the_lab(void **state)
{
    const int mine = getpriority(PRIO_PROCESS, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct desk desk;
        desk_init(&desk, false);
        struct job job = {.port = &desk.port, .run = note_priority};
        assert_int_equal(lab_submit(lab_of(state), &job), ERR_OK);
        desk_wait(&desk, 1);
        assert_int_equal(job.device, mine + 10 < 19 ? mine + 10 : 19);
    }
    assert_int_equal(getpriority(PRIO_PROCESS, 0), mine);
}

static enum error fail_like_a_device(struct job *job)
{
    (void)job;
    return ERR_DEVICE;
}

static void a_job_that_fails_does_not_close_the_lab(void **state)
{
    struct desk desk;
    struct job bad, good;
    desk_init(&desk, false);
    bad = (struct job){.port = &desk.port, .run = fail_like_a_device};
    assert_int_equal(lab_submit(lab_of(state), &bad), ERR_OK);
    desk_wait(&desk, 1);
    assert_int_equal(bad.error, ERR_DEVICE);
    submit(lab_of(state), &desk, &good);
    desk_wait(&desk, 2);
    assert_int_equal(good.error, ERR_OK);
}

/* --- devices --- */

static void without_cuda_everything_is_emulated(void **state)
{
    struct problem problem;
    int device = -1;
    assert_int_equal(lab_place(lab_of(state), PLACE_AUTO, -1, &device, &problem), ERR_OK);
    assert_int_equal(device, 0);
    assert_int_equal(lab_place(lab_of(state), PLACE_CPU, -1, &device, &problem), ERR_OK);
    assert_int_equal(device, 0);
    assert_int_equal(lab_place(lab_of(state), PLACE_CUDA, -1, &device, &problem), ERR_NO_DEVICE);
    assert_int_equal(lab_place(lab_of(state), PLACE_CUDA, 3, &device, &problem), ERR_NO_DEVICE);
    struct lab_device info = lab_device(lab_of(state), 0);
    assert_string_equal(info.id, "cpu");
    assert_true(info.is_emulated);
    assert_ptr_equal(strstr(info.name, "emulated CUDA on "), info.name);
}

/* --- rungs over rows --- */

/* Rows (1 2 3) and (4 5 6) times (1 10 100): 321 and 654. */
static const float operands[] = {1, 2, 3, 4, 5, 6, 1, 10, 100};

static void plan(struct job *job, enum dtype dtype)
{
    const struct tensor_pair pair = {
        .a = {dtype, {2, {2, 3}}, 0}, .b = {dtype, {1, {3}}, 24}, .result = {1, {2}}};
    *job = (struct job){.base = operands, .bytes = sizeof operands};
    assert_int_equal(job_plan(job, &pair, 1), ERR_OK);
}

struct dot_call {
    struct job job; /* first: run_dot() casts back */
    struct lab *lab;
    const struct rung *rung;
    struct problem problem;
};

static enum error run_dot(struct job *job)
{
    struct dot_call *call = (struct dot_call *)job;
    return lab_dot(call->lab, call->rung, 0, job, &call->problem);
}

static void check_row(const struct dot_value *value, double sum)
{
    if (value->sum != sum || value->sum_abs < sum || !(value->error_bound < 1e-3))
        fail_msg("%g of %g, within %g; expected %g", value->sum, value->sum_abs, value->error_bound,
                 sum);
}

static void every_rung_but_race_computes_the_rows_of_a_job(void **state)
{
    size_t count;
    const struct rung *rungs = ladder_rows(&count);
    for (size_t i = 0; i < count; i++) {
        struct dot_call call = {.lab = lab_of(state), .rung = &rungs[i]};
        struct desk desk;
        struct problem problem;
        plan(&call.job, DTYPE_FLOAT32);
        enum error checked = lab_dot_check(call.rung, 0, &call.job, &problem);
        assert_int_equal(checked, rungs[i].is_lab_only ? ERR_KERNEL : ERR_OK);
        if (checked == ERR_OK) {
            desk_init(&desk, false);
            call.job.port = &desk.port;
            call.job.run = run_dot;
            assert_int_equal(lab_submit(call.lab, &call.job), ERR_OK);
            desk_wait(&desk, 1);
            assert_int_equal(call.job.error, ERR_OK);
            assert_int_equal(call.job.device, 0);
            check_row(&call.job.value[0], 321);
            check_row(&call.job.value[1], 654);
        }
        job_fini(&call.job);
    }
}

static void a_rung_refuses_what_is_beyond_it(void **state)
{
    (void)state;
    const struct rung *serial = ladder_find("serial"), *blocks = ladder_find("block-atomic");
    struct dot_task task = {.n = 1025, .rows = {1, 1}, .dtype = DTYPE_FLOAT32};
    struct job job = {.task = &task, .task_count = 1, .value_count = 1, .term_count = 1025};
    struct problem problem;
    assert_int_equal(lab_dot_check(serial, 0, &job, &problem), ERR_KERNEL);
    assert_int_equal(problem.limit, 1024);
    assert_int_equal(lab_dot_check(blocks, 0, &job, &problem), ERR_OK);
    task.dtype = DTYPE_INT8;
    assert_int_equal(lab_dot_check(blocks, 0, &job, &problem), ERR_DTYPE);
    task.dtype = DTYPE_FLOAT64;
    task.n = job.term_count = LIMIT_LAB_DOT_EMULATED + 1;
    assert_int_equal(lab_dot_check(blocks, 0, &job, &problem), ERR_TOO_LARGE);
    assert_int_equal(problem.limit, LIMIT_LAB_DOT_EMULATED);
    assert_int_equal(lab_dot_check(blocks, 1, &job, &problem), ERR_OK);
    task.n = job.term_count = 1;
    job.value_count = LIMIT_LAB_ROWS + 1;
    assert_int_equal(lab_dot_check(blocks, 1, &job, &problem), ERR_TOO_LARGE);
    assert_int_equal(problem.limit, LIMIT_LAB_ROWS);
}

/* --- giving up --- */

enum work { DOT, RACE, ROUNDING, WORK_COUNT };

/* A job that is cancelled, or becomes late, when it has begun. */
struct dropped {
    struct dot_call call; /* first: run_dropped() casts back */
    enum work work;
    bool is_late;
};

static enum error run_dropped(struct job *job)
{
    static const float one = 1;
    struct dropped *dropped = (struct dropped *)job;
    struct dot_call *call = &dropped->call;
    struct lab_race race;
    struct lab_rounding rounding;
    const struct lab_race_ask race_ask = {.n = 1, .runs = 1};
    const struct lab_rounding_ask rounding_ask = {.a = &one, .b = &one, .n = 1, .orders = 1};
    if (dropped->is_late)
        job->deadline_ns = 1;
    else
        job_cancel(job);
    switch (dropped->work) {
    case DOT:
        return lab_dot(call->lab, call->rung, 0, job, &call->problem);
    case RACE:
        return lab_race(call->lab, &race_ask, &race, &call->problem);
    default:
        return lab_rounding(call->lab, &rounding_ask, &rounding, &call->problem);
    }
}

static void what_nobody_waits_for_is_given_up_between_sums(void **state)
{
    for (int i = 0; i < 2 * WORK_COUNT; i++) {
        struct dropped dropped = {
            .call = {.lab = lab_of(state), .rung = ladder_find("tree")},
            .work = (enum work)(i / 2),
            .is_late = i % 2 == 1,
        };
        struct job *job = &dropped.call.job;
        struct desk desk;
        plan(job, DTYPE_FLOAT32);
        desk_init(&desk, false);
        job->port = &desk.port;
        job->run = run_dropped;
        assert_int_equal(lab_submit(lab_of(state), job), ERR_OK);
        desk_wait(&desk, 1);
        assert_int_equal(job->error, dropped.is_late ? ERR_DEADLINE : ERR_CLOSED);
        assert_int_equal(dropped.call.problem.error, job->error);
        job_fini(job);
    }
}

/* --- measuring --- */

static void check_measured(struct lab *lab, const char *kernel, enum dtype dtype, bool is_emulated)
{
    struct lab_measure_ask ask = {.kernel = kernel, .dtype = dtype, .n = 1000, .seed = 1};
    struct lab_measure measure;
    struct problem problem;
    assert_int_equal(lab_measure_settle(&ask, &problem), ERR_OK);
    assert_int_equal(lab_measure(lab, &ask, &measure, &problem), ERR_OK);
    assert_int_equal(measure.is_emulated, is_emulated);
    assert_true(measure.runs >= 1);
    assert_true(measure.time_us > 0 && measure.time_us_min <= measure.time_us);
    double bytes = 2000 * (double)dtype_size(dtype), back = measure.gb_s * measure.time_us * 1000;
    if (back < bytes * 0.999 || back > bytes * 1.001)
        fail_msg("%g GB/s in %g us are %g bytes", measure.gb_s, measure.time_us, back);
}

static void kernels_are_measured_emulated_and_on_the_cpu(void **state)
{
    check_measured(lab_of(state), "fast", DTYPE_FLOAT32, false);
    check_measured(lab_of(state), "exact", DTYPE_FLOAT64, false);
    check_measured(lab_of(state), "tree", DTYPE_FLOAT32, true);
    check_measured(lab_of(state), "block-atomic", DTYPE_FLOAT64, true);
}

static void measuring_has_limits(void **state)
{
    (void)state;
    static const struct {
        struct lab_measure_ask ask;
        enum error error;
        const char *pointer;
        uint64_t limit;
    } rows[] = {
        {{0, "warp", DTYPE_FLOAT32, 1, 0}, ERR_KERNEL, "/kernel", 0},
        {{0, "tree", DTYPE_INT8, 1, 0}, ERR_DTYPE, "/dtype", 0},
        {{0, "tree", DTYPE_FLOAT32, 0, 0}, ERR_VALUE, "/n", 0},
        {{0, "tree", DTYPE_FLOAT32, 1025, 0}, ERR_KERNEL, "/n", 1024},
        {{0, "two-pass", DTYPE_FLOAT32, 65537, 0}, ERR_TOO_LARGE, "/n", 65536},
        {{0, "fast", DTYPE_FLOAT32, (1 << 24) + 1, 0}, ERR_TOO_LARGE, "/n", 1 << 24},
        {{1, "fast", DTYPE_FLOAT32, (1 << 27) + 1, 0}, ERR_TOO_LARGE, "/n", 1 << 27},
        {{1, "fast", DTYPE_FLOAT32, 1 << 27, 0}, ERR_OK, "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab_measure_ask ask = rows[i].ask;
        struct problem problem;
        problem_clear(&problem);
        assert_int_equal(lab_measure_settle(&ask, &problem), rows[i].error);
        assert_string_equal(problem.pointer, rows[i].pointer);
        assert_int_equal(problem.limit, rows[i].limit);
    }
}

static void operands_beyond_the_memory_budget_are_refused(void **state)
{
    const struct lab_measure_ask ask = {
        .kernel = "fast", .dtype = DTYPE_FLOAT64, .n = 1 << 20, .seed = 1};
    struct lab_measure measure;
    struct problem problem;
    assert_int_equal(lab_measure(lab_of(state), &ask, &measure, &problem), ERR_NOMEM);
}

#define LAB_TEST(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(jobs_run_and_come_back_through_their_port),
        LAB_TEST(a_full_queue_refuses_and_keeps_what_it_took),
        LAB_TEST(cancelled_and_late_jobs_come_back_without_running),
        LAB_TEST(drain_finishes_what_was_accepted_and_refuses_the_rest),
        LAB_TEST(the_service_comes_before_the_lab),
        LAB_TEST(a_job_that_fails_does_not_close_the_lab),
        LAB_TEST(without_cuda_everything_is_emulated),
        LAB_TEST(every_rung_but_race_computes_the_rows_of_a_job),
        LAB_TEST(a_rung_refuses_what_is_beyond_it),
        LAB_TEST(what_nobody_waits_for_is_given_up_between_sums),
        LAB_TEST(kernels_are_measured_emulated_and_on_the_cpu),
        LAB_TEST(measuring_has_limits),
        LAB_TEST(operands_beyond_the_memory_budget_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
