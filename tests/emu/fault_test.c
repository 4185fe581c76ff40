/* The CUDA backend on a device that fails in the middle of a batch: what was begun does not
 * show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/emu/cuda_runtime_api.h"
#include "gpu/emu/emu.h"
#include "gpu/partial.h"
#include "tests/gpu/operands.h"
#include "tests/sink.h"

/* A row of float64 takes five parts, of two copies each; a piece one copy more, of its sum. */
enum { N = 20011, ARENA = 64 << 10, COPIES = 10 };

static double operands[2 * N];
static struct dot_value whole; /* what they give */

static struct gpu *open_gpu(void)
{
    static const struct backend *const backends[] = {&backend_cpu, &backend_cuda, NULL};
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = 4 << 20,
        .device_bytes = ARENA,
        .queue_jobs = 8,
        .batch_jobs = 8,
    };
    struct gpu *gpu = NULL;
    struct problem problem;
    assert_int_equal(gpu_open_backends(&gpu, &config, backends, &problem), ERR_OK);
    assert_int_equal(gpu_device_count(gpu), 2);
    return gpu;
}

/* The row of N, whole or as a piece; `device` is to answer. */
static void check_row(struct gpu *gpu, bool is_piece, int device)
{
    const struct shape shape = {1, {N}};
    struct tensor_pair pair = {.a = {DTYPE_FLOAT64, shape, 0},
                               .b = {DTYPE_FLOAT64, shape, N * sizeof(double)}};
    struct sink sink;
    struct partial partial;
    struct job job = {
        .base = operands,
        .bytes = sizeof operands,
        .accuracy = ACCURACY_EXACT,
        .result_dtype = DTYPE_FLOAT64,
        .port = &sink.port,
    };
    sink_init(&sink);
    partial_init(&partial, DTYPE_FLOAT64, ACCURACY_EXACT, false, false);
    if (is_piece)
        job.partial = &partial;
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    assert_int_equal(gpu_submit(gpu, 1, &job), ERR_OK);
    sink_wait(&sink, 1);
    assert_int_equal(job.error, ERR_OK);
    assert_int_equal(job.device, device);
    if (is_piece)
        partial_settle(&partial, DTYPE_FLOAT64, &job.value[0]);
    if (memcmp(&job.value[0].sum, &whole.sum, sizeof whole.sum) != 0)
        fail_msg("%a, expected %a", job.value[0].sum, whole.sum);
    job_fini(&job);
}

/* A part of the row has been added on the device when memory is short. */
static void a_device_short_of_memory_begins_again(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu();
    struct problem problem;
    for (unsigned is_piece = 0; is_piece < 2; is_piece++)
        for (unsigned skipped = 0; skipped < COPIES + is_piece; skipped++) {
            emu_fail_copies(cudaErrorMemoryAllocation, skipped, 1);
            check_row(gpu, is_piece, 1); /* alone, it is computed after all */
            emu_fail_copies(cudaErrorMemoryAllocation, skipped, 1000);
            check_row(gpu, is_piece, 0);
            emu_fail_copies(cudaSuccess, 0, 0);
            check_row(gpu, is_piece, 1);
        }
    assert_int_equal(gpu_devices_failed(gpu, &problem), 0);
    gpu_close(gpu);
}

static void a_device_with_a_fault_is_never_asked_again(void **state)
{
    (void)state;
    for (unsigned is_piece = 0; is_piece < 2; is_piece++)
        for (unsigned skipped = 0; skipped < COPIES + is_piece; skipped++) {
            struct gpu *gpu = open_gpu();
            struct problem problem;
            emu_fail_copies(cudaErrorInvalidValue, skipped, 1);
            check_row(gpu, is_piece, 0);
            assert_int_equal(gpu_devices_failed(gpu, &problem), 1);
            assert_non_null(strstr(problem.detail, "copying"));
            gpu_close(gpu);
        }
}

static int sum_whole(void **state)
{
    (void)state;
    struct exact_sum sum;
    operands_fill(operands, operands + N, DTYPE_FLOAT64, KIND_FULL, N);
    exact_sum_init(&sum, NULL, DTYPE_FLOAT64, false, false);
    exact_sum_add(&sum, operands, operands + N, N);
    exact_sum_round(&sum, DTYPE_FLOAT64, &whole);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_short_of_memory_begins_again),
        cmocka_unit_test(a_device_with_a_fault_is_never_asked_again),
    };
    return cmocka_run_group_tests(tests, sum_whole, NULL);
}
