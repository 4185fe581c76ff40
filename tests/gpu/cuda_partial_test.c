/* Sums in the making and long jobs on every CUDA device: the bits of the CPU's whole row, wherever
 * it is cut and whoever sums the pieces; skipped by name where there is no device.
 *
 *   cuda_partial_test [N]      rows of N elements: the emulated device is slow
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"
#include "gpu/partial.h"
#include "tests/gpu/operands.h"
#include "tests/sink.h"

enum { CUTS = 5 };

static uint64_t length = 1000003; /* main()'s; as are the operands, of the widest elements */
static char *operand_a, *operand_b;

/* Computes on a device, and there only. */
static void run(struct gpu *gpu, int device, struct job *job)
{
    struct sink sink;
    sink_init(&sink);
    job->port = &sink.port;
    assert_int_equal(gpu_submit(gpu, device, job), ERR_OK);
    sink_wait(&sink, 1);
    assert_int_equal(job->error, ERR_OK);
    assert_int_equal(job->device, device);
}

/* Opens the devices, which take at most so much at once, or skips the test. */
static struct gpu *open_gpu(size_t device_bytes, struct slice_limit slice)
{
#ifdef DOTD_HAVE_CUDA
    static struct backend cuda;
    static const struct backend *const backends[] = {&backend_cpu, &cuda, NULL};
    const struct gpu_config config = {
        .cuda = true,
        .budget_bytes = 64 << 20,
        .pinned_bytes = 16 << 20,
        .device_bytes = device_bytes,
        .queue_jobs = 64,
        .batch_jobs = 16,
    };
    struct gpu *gpu = NULL;
    struct problem problem;
    cuda = backend_cuda;
    cuda.slice = slice;
    assert_int_equal(gpu_open_backends(&gpu, &config, backends, &problem), ERR_OK);
    if (gpu_devices_failed(gpu, &problem) > 0)
        fail_msg("a device did not open: %s", problem.detail);
    if (gpu_device_count(gpu) > 1)
        return gpu;
    gpu_close(gpu);
#else
    (void)device_bytes, (void)slice;
#endif
    skip();
    return NULL;
}

static const struct slice_limit whole = {UINT64_MAX, UINT64_MAX};

static uint64_t random_below(uint64_t bound)
{
    return random_bits(40) % bound;
}

static int values_of(enum dtype dtype)
{
    return dtype_is_complex(dtype) ? 2 : 1;
}

static enum dtype result_of(enum dtype dtype)
{
    return dtype_is_integer(dtype) ? DTYPE_INT64 : dtype;
}

static bool same_bits(double x, double y)
{
    return memcmp(&x, &y, sizeof x) == 0;
}

static void check_same(const struct dot_value *want, const struct dot_value *got, const char *what,
                       int kind)
{
    if (!same_bits(want->sum, got->sum) || !same_bits(want->error_bound, got->error_bound) ||
        want->flags != got->flags || memcmp(want->integer, got->integer, sizeof want->integer) != 0)
        fail_msg("%s, kind %d: %a, bound %a, flags %#x; the whole row has %a, %a, %#x", what, kind,
                 got->sum, got->error_bound, got->flags, want->sum, want->error_bound, want->flags);
    if (isfinite(want->sum_abs) && fabs(got->sum_abs - want->sum_abs) > 1e-9 * want->sum_abs)
        fail_msg("%s, kind %d: sum_abs %g, expected %g", what, kind, got->sum_abs, want->sum_abs);
}

static void check_close(const struct dot_value *want, const struct dot_value *got, const char *what,
                        int kind)
{
    if (!(fabs(got->sum - want->sum) <= got->error_bound + want->error_bound))
        fail_msg("%s, kind %d: %.17g, bound %g, expected %.17g", what, kind, got->sum,
                 got->error_bound, want->sum);
    if (got->error_bound > 1e-9 * got->sum_abs + 1e-300)
        fail_msg("%s, kind %d: a bound of %g is useless beside %g", what, kind, got->error_bound,
                 got->sum_abs);
}

/* --- partial sums --- */

/* The oracle. */
static void sum_whole(enum dtype dtype, bool conjugate, enum dtype result_dtype,
                      struct dot_value value[2])
{
    struct exact_sum sum;
    exact_sum_init(&sum, NULL, dtype, conjugate, true);
    exact_sum_add(&sum, operand_a, operand_b, length);
    exact_sum_round(&sum, result_dtype, value);
}

/* Elements [from, to) of the row. */
static void add_piece(struct gpu *gpu, struct partial *partial, uint64_t from, uint64_t to)
{
    const enum dtype dtype = partial->sum.dtype;
    const size_t size = dtype_size(dtype);
    const char *base = operand_a < operand_b ? operand_a : operand_b;
    const struct shape shape = {1, {to - from}};
    struct tensor_pair pair = {
        .a = {dtype, shape, (size_t)(operand_a - base) + from * size},
        .b = {dtype, shape, (size_t)(operand_b - base) + from * size},
    };
    struct job job = {
        .base = base,
        .bytes = 2 * (to - from) * size,
        .accuracy = partial->accuracy,
        .result_dtype = result_of(dtype),
        .conjugate = partial->sum.conjugate,
        .wants_abs = true,
        .partial = partial,
    };
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    int device = (int)random_below((uint64_t)gpu_device_count(gpu) + 1);
    if (device < gpu_device_count(gpu))
        run(gpu, device, &job);
    else
        gpu_compute(gpu, &job);
    job_fini(&job);
}

/* Wherever cut, in two partials that are merged; every piece wherever it happens to be computed. */
static void sum_pieces(struct gpu *gpu, struct partial *ret, enum dtype dtype,
                       enum accuracy accuracy, bool conjugate)
{
    struct partial half[2];
    for (int i = 0; i < 2; i++)
        partial_init(&half[i], dtype, accuracy, conjugate, true);
    uint64_t from = 0;
    for (int i = 0; i <= CUTS; i++) {
        uint64_t to = i < CUTS ? from + random_below(length - from + 1) : length;
        add_piece(gpu, &half[random_bits(1)], from, to);
        from = to;
    }
    partial_merge(&half[0], &half[1]);
    *ret = half[0];
}

static void check_pieces(struct gpu *gpu, enum dtype dtype, int kind)
{
    const bool conjugate = random_bits(1) != 0;
    struct dot_value want[2] = {0}, got[2] = {0};
    struct partial partial;
    operands_fill(operand_a, operand_b, dtype, (enum kind)kind, length);
    sum_whole(dtype, conjugate, result_of(dtype), want);
    sum_pieces(gpu, &partial, dtype, ACCURACY_EXACT, conjugate);
    assert_int_equal(partial.n, length);
    partial_settle(&partial, result_of(dtype), got);
    for (int i = 0; i < values_of(dtype); i++)
        check_same(&want[i], &got[i], dtype_name(dtype), kind);
    if (dtype_is_integer(dtype) || (kind != KIND_UNIFORM && kind != KIND_20))
        return;
    sum_whole(dtype, conjugate, DTYPE_FLOAT64, want);
    sum_pieces(gpu, &partial, dtype, ACCURACY_FAST, conjugate);
    partial_settle(&partial, DTYPE_FLOAT64, got);
    for (int i = 0; i < values_of(dtype); i++)
        check_close(&want[i], &got[i], dtype_name(dtype), kind);
}

static void partial_sums_have_the_same_bits_wherever_they_are_made(void **state)
{
    (void)state;
    static const size_t arenas[] = {64 << 10, 64 << 20}; /* rows in parts, and not */
    for (int i = 0; i < 2; i++) {
        struct gpu *gpu = open_gpu(arenas[i], whole);
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
            for (int kind = 0; kind < KIND_COUNT; kind++)
                check_pieces(gpu, (enum dtype)dtype, kind);
        gpu_close(gpu);
    }
}

/* --- long jobs --- */

static void check_slices(struct gpu *gpu, enum dtype dtype, const struct shape *a,
                         const struct shape *b)
{
    const size_t size = dtype_size(dtype);
    const char *base = operand_a < operand_b ? operand_a : operand_b;
    struct problem problem;
    struct tensor_pair pair = {
        .a = {dtype, *a, (size_t)(operand_a - base) + size},
        .b = {dtype, *b, (size_t)(operand_b - base)},
    };
    struct job job = {
        .base = base,
        .bytes = (size_t)labs(operand_b - operand_a) + 16 * length,
        .accuracy = ACCURACY_EXACT,
        .result_dtype = result_of(dtype),
        .wants_abs = true,
    };
    assert_int_equal(shape_dot(a, b, &pair.result, &problem), ERR_OK);
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    struct dot_value *want = calloc(job.value_count, sizeof *want);
    assert_non_null(want);
    gpu_compute(gpu, &job);
    memcpy(want, job.value, job.value_count * sizeof *want);
    for (int device = 1; device < gpu_device_count(gpu); device++) {
        uint64_t before = gpu_device_counts(gpu, device).slices_total;
        memset(job.value, 0, job.value_count * sizeof *want);
        run(gpu, device, &job);
        assert_true(gpu_device_counts(gpu, device).slices_total > before + 1);
        for (size_t i = 0; i < job.value_count; i++)
            check_same(&want[i], &job.value[i], dtype_name(dtype), -1);
    }
    free(want);
    job_fini(&job);
}

static void long_jobs_have_the_values_of_whole_ones(void **state)
{
    (void)state;
    const uint64_t n = length / 40;
    const struct shape shapes[][2] = {
        {{1, {length - 1}}, {1, {length - 1}}},
        {{2, {20, n}}, {1, {n}}},
        {{3, {5, 1, n}}, {2, {7, n}}},
    };
    const struct slice_limit limits[] = {{UINT64_MAX, length / 7}, {length / 3, length}};
    for (size_t i = 0; i < 2; i++) {
        struct gpu *gpu = open_gpu(1 << 20, limits[i]);
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
            operand_fill(operand_a, (enum dtype)dtype, KIND_60, length);
            operand_fill(operand_b, (enum dtype)dtype, KIND_60, length);
            for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++)
                check_slices(gpu, (enum dtype)dtype, &shapes[j][0], &shapes[j][1]);
        }
        gpu_close(gpu);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        length = strtoull(argv[1], NULL, 10);
    operand_a = malloc(length * 16);
    operand_b = malloc(length * 16);
    assert(operand_a != NULL && operand_b != NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_sums_have_the_same_bits_wherever_they_are_made),
        cmocka_unit_test(long_jobs_have_the_values_of_whole_ones),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(operand_a);
    free(operand_b);
    return failed;
}
