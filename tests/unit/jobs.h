/* jobs.h - devices of few bounds, a small job for them, and what must hold of it when it is back,
 * for the tests of gpu.h. Included once, by a cmocka program. */
#ifndef TESTS_UNIT_JOBS_H
#define TESTS_UNIT_JOBS_H

#include "gpu/faulty.h"
#include "tests/sink.h"

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

static const float operands[] = {1, 2, 3, 4, 5, 6}; /* 1*4 + 2*5 + 3*6 = 32 */

static inline void job_init(struct job *job, struct sink *sink)
{
    const struct shape three = {1, {3}};
    struct tensor_pair pair = {.a = {DTYPE_FLOAT32, three, 0}, .b = {DTYPE_FLOAT32, three, 12}};
    *job = (struct job){.base = operands, .bytes = sizeof operands, .port = &sink->port};
    assert_int_equal(job_plan(job, &pair, 1), ERR_OK);
}

static inline void check_times(const struct job *job)
{
    const struct job_times *times = &job->times;
    assert_true(times->copy_in_ns >= 0 && times->compute_ns >= 0 && times->copy_out_ns >= 0);
    assert_int_equal(times->started_ns + times->copy_in_ns + times->compute_ns + times->copy_out_ns,
                     times->finished_ns);
}

#endif
