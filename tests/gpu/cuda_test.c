/* Every CUDA device against the CPU, through the door of gpu.h; skipped by name where there is
 * none.
 *
 *   cuda_test [EVERY]      only every EVERY-th comparison of a long series: the emulated device is
 *   slow
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"
#include "tests/gpu/operands.h"
#include "tests/sink.h"

static const struct gpu_config wide_config = {
    .cuda = true,
    .budget_bytes = 256 << 20,
    .pinned_bytes = 64 << 20,
    .device_bytes = 64 << 20,
    .queue_jobs = 4096,
    .batch_jobs = 1024,
};

/* Opens the devices, or skips the test. */
static struct gpu *open_gpu(struct gpu_config config)
{
    struct gpu *gpu = NULL;
    struct problem problem;
    assert_int_equal(gpu_open(&gpu, &config, &problem), ERR_OK);
    if (gpu_devices_failed(gpu, &problem) > 0)
        fail_msg("a device did not open: %s", problem.detail);
    if (gpu_device_count(gpu) == 1) {
        gpu_close(gpu);
        skip();
    }
    return gpu;
}

/* One job over pool memory, computed on the CPU and then on a device. */
struct trial {
    struct gpu *gpu;
    struct block block;
    size_t used;
    struct job job;
};

static void trial_init(struct trial *trial, struct gpu *gpu, size_t size)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    *trial = (struct trial){.gpu = gpu};
    assert_int_equal(source->acquire(source->context, size, &trial->block), ERR_OK);
    trial->job.base = trial->block.data;
}

static void trial_fini(struct trial *trial)
{
    const struct buffer_source *source = gpu_buffers(trial->gpu);
    job_fini(&trial->job);
    source->release(source->context, trial->block);
}

/* Adds an operand of random elements, `skew` elements behind a boundary of 64 bytes. */
static struct tensor trial_operand(struct trial *trial, enum dtype dtype, enum kind kind,
                                   struct shape shape, size_t skew)
{
    uint64_t count = 0;
    assert_int_equal(shape_count(&shape, &count), ERR_OK);
    struct tensor tensor = {dtype, shape, (trial->used + 63) / 64 * 64 + skew * dtype_size(dtype)};
    trial->used = tensor.offset + count * dtype_size(dtype);
    assert_true(trial->used <= trial->block.size);
    operand_fill((char *)trial->block.data + tensor.offset, dtype, kind, count);
    return tensor;
}

static struct tensor_pair trial_pair(struct trial *trial, enum dtype dtype, enum kind kind,
                                     struct shape a, struct shape b, size_t skew_a, size_t skew_b)
{
    struct problem problem;
    struct tensor_pair pair = {
        .a = trial_operand(trial, dtype, kind, a, skew_a),
        .b = trial_operand(trial, dtype, kind, b, skew_b),
    };
    assert_int_equal(shape_dot(&a, &b, &pair.result, &problem), ERR_OK);
    if (a.rank == 1 && b.rank == 1)
        operands_fill((char *)trial->block.data + pair.a.offset,
                      (char *)trial->block.data + pair.b.offset, dtype, kind, a.dim[0]);
    return pair;
}

static struct shape vector(uint64_t n)
{
    return (struct shape){1, {n}};
}

static struct shape matrix(uint64_t rows, uint64_t n)
{
    return (struct shape){2, {rows, n}};
}

static void plan(struct trial *trial, const struct tensor_pair *pairs, size_t count)
{
    trial->job.bytes = trial->used;
    assert_int_equal(job_plan(&trial->job, pairs, count), ERR_OK);
}

static bool same_bits(double x, double y)
{
    return memcmp(&x, &y, sizeof x) == 0;
}

static bool same_or_both_nan(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* Fast results differ in their last bits, within their bounds. */
static void compare_fast(const struct dot_value *want, const struct dot_value *got,
                         const char *what, size_t index)
{
    bool is_close = isfinite(want->sum) && isfinite(got->sum)
                        ? fabs(got->sum - want->sum) <= got->error_bound + want->error_bound
                        : same_or_both_nan(got->sum, want->sum);
    if (!is_close)
        fail_msg("%s, value %zu: %.17g, bound %g, where the CPU has %.17g, bound %g", what, index,
                 got->sum, got->error_bound, want->sum, want->error_bound);
    unsigned ignored = FLAG_INEXACT; /* follows the bound, and the bounds differ */
    if ((got->flags | ignored) != (want->flags | ignored))
        fail_msg("%s, value %zu: flags %#x, expected %#x", what, index, got->flags, want->flags);
    if (got->error_bound > 1e-9 * got->sum_abs + 1e-300)
        fail_msg("%s, value %zu: bound %g is useless beside %g", what, index, got->error_bound,
                 got->sum_abs);
    assert_int_equal(!(got->flags & FLAG_INEXACT), got->error_bound == 0);
}

static void compare_exact(const struct dot_value *want, const struct dot_value *got,
                          const char *what, size_t index)
{
    if (!same_bits(want->sum, got->sum) || !same_bits(want->error_bound, got->error_bound) ||
        want->flags != got->flags || memcmp(want->integer, got->integer, sizeof want->integer) != 0)
        fail_msg("%s, value %zu: exactly %a, bound %a, flags %#x, where the CPU has %a, %a, %#x",
                 what, index, got->sum, got->error_bound, got->flags, want->sum, want->error_bound,
                 want->flags);
}

static void compare(const struct job *job, const struct dot_value *want,
                    const struct dot_value *got, const char *what, size_t index)
{
    bool is_exact = job->accuracy == ACCURACY_EXACT || want->integer[0] != 0;
    if (is_exact)
        compare_exact(want, got, what, index);
    else
        compare_fast(want, got, what, index);
    bool has_abs = !is_exact || job->wants_abs;
    if (has_abs && isfinite(want->sum_abs) &&
        fabs(got->sum_abs - want->sum_abs) > 1e-9 * want->sum_abs)
        fail_msg("%s, value %zu: sum_abs %.17g, expected %.17g", what, index, got->sum_abs,
                 want->sum_abs);
}

/* Computes the job on the CPU and on every device, and compares every value. */
static void check_accuracy(struct trial *trial, const char *what)
{
    struct job *job = &trial->job;
    struct dot_value *want = malloc((job->value_count + 1) * sizeof *want);
    assert_non_null(want);
    gpu_compute(trial->gpu, job);
    assert_int_equal(job->error, ERR_OK);
    memcpy(want, job->value, job->value_count * sizeof *want);
    for (int device = 1; device < gpu_device_count(trial->gpu); device++) {
        struct sink sink;
        sink_init(&sink);
        job->port = &sink.port;
        assert_int_equal(gpu_submit(trial->gpu, device, job), ERR_OK);
        sink_wait(&sink, 1);
        if (job->error != ERR_OK)
            fail_msg("%s: %s", what, error_title(job->error));
        assert_int_equal(job->device, device); /* and not the CPU in its place */
        for (size_t i = 0; i < job->value_count; i++)
            compare(job, &want[i], &job->value[i], what, i);
        const struct job_times *times = &job->times;
        assert_int_equal(times->started_ns + times->copy_in_ns + times->compute_ns +
                             times->copy_out_ns,
                         times->finished_ns);
    }
    free(want);
}

/* Another result type, and now and then the sum of absolute values, for every job that asks. */
static void choose_options(struct job *job, enum dtype dtype)
{
    static const enum dtype reals[] = {DTYPE_FLOAT64, DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16};
    static unsigned turn;
    turn++;
    job->result_dtype = reals[turn % 4];
    if (dtype_is_complex(dtype))
        job->result_dtype = turn % 2 ? DTYPE_COMPLEX64 : DTYPE_COMPLEX128;
    if (dtype_is_integer(dtype) && turn % 3 != 0)
        job->result_dtype = DTYPE_INT64;
    job->wants_abs = turn % 5 == 0;
    job->conjugate = turn % 7 < 3;
}

static unsigned every = 1; /* main()'s */

/* Both ways; the fast one only on data whose float64 sums keep some meaning. */
static void check(struct trial *trial, enum dtype dtype, enum kind kind, const char *what)
{
    static unsigned turn;
    if (turn++ % every != 0)
        return;
    choose_options(&trial->job, dtype);
    trial->job.accuracy = ACCURACY_EXACT;
    check_accuracy(trial, what);
    trial->job.accuracy = ACCURACY_FAST;
    if (kind == KIND_UNIFORM || kind == KIND_20)
        check_accuracy(trial, what);
}

static void check_vectors(struct gpu *gpu, enum dtype dtype, enum kind kind, uint64_t n,
                          size_t skew_a, size_t skew_b)
{
    char what[80];
    (void)snprintf(what, sizeof what, "%s, kind %d, n %llu, skew %zu and %zu", dtype_name(dtype),
                   kind, (unsigned long long)n, skew_a, skew_b);
    struct trial trial;
    trial_init(&trial, gpu, 2 * n * dtype_size(dtype) + 256);
    struct tensor_pair pair = trial_pair(&trial, dtype, kind, vector(n), vector(n), skew_a, skew_b);
    plan(&trial, &pair, 1);
    check(&trial, dtype, kind, what);
    trial_fini(&trial);
}

static const uint64_t lengths[] = {0,    1,    2,    31,    32,    33,    255,   256,   257,
                                   1023, 1024, 1025, 32767, 32769, 65535, 65536, 65537, 1000001};

static void cuda_agrees_with_the_cpu_at_every_length(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int kind = 0; kind < KIND_COUNT; kind++)
                if (lengths[i] < 5000 || kind == (int)i % KIND_COUNT || kind == KIND_20)
                    check_vectors(gpu, dtype, kind, lengths[i], 0, 0);
    gpu_close(gpu);
}

static void cuda_takes_operands_at_any_element(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    static const uint64_t some[] = {1, 2, 3, 5, 31, 1025, 70001};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++)
            for (size_t skew = 0; skew < 16; skew++)
                check_vectors(gpu, dtype, KIND_20, some[i], skew / 4, skew % 4);
    gpu_close(gpu);
}

static void cuda_works_in_pieces_when_the_arena_is_small(void **state)
{
    (void)state;
    struct gpu_config config = wide_config;
    config.device_bytes = 64 << 10;
    struct gpu *gpu = open_gpu(config);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        check_vectors(gpu, dtype, KIND_20, 300001, 1, 1);
        check_vectors(gpu, dtype, KIND_20, 50001, 1, 2);
        check_vectors(gpu, dtype, KIND_CANCEL, 100003, 0, 0);
        check_vectors(gpu, dtype, KIND_ODD, 100003, 0, 0);
        struct trial trial;
        trial_init(&trial, gpu, 8 << 20);
        struct tensor_pair pairs[] = {
            trial_pair(&trial, dtype, KIND_20, matrix(301, 1003), vector(1003), 0, 0),
            trial_pair(&trial, dtype, KIND_20, (struct shape){3, {7, 1, 1031}}, matrix(5, 1031), 0,
                       1),
            trial_pair(&trial, dtype, KIND_20, matrix(3, 20011), matrix(3, 20011), 1, 0),
        };
        plan(&trial, pairs, 3);
        check(&trial, dtype, KIND_20, "pieces");
        trial_fini(&trial);
    }
    gpu_close(gpu);
}

static void cuda_broadcasts(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    static const struct {
        struct shape a, b;
    } shapes[] = {
        {{2, {3, 5}}, {1, {5}}},
        {{2, {700, 64}}, {1, {64}}},
        {{2, {5000, 33}}, {1, {33}}},
        {{2, {4, 40000}}, {2, {4, 40000}}},
        {{3, {20, 1, 257}}, {2, {30, 257}}},
        {{3, {1, 6, 1000}}, {3, {5, 1, 1000}}},
        {{4, {2, 1, 3, 100}}, {3, {4, 1, 100}}},
        {{2, {70000, 3}}, {1, {3}}},
        {{3, {300, 1, 7}}, {2, {301, 7}}},
        {{2, {3001, 200}}, {1, {200}}},
        {{2, {701, 64}}, {2, {701, 64}}},
    };
    const size_t count = sizeof shapes / sizeof *shapes;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (size_t turn = 0; turn < 2 * count; turn++) { /* on boundaries, then beside them */
            const size_t i = turn % count, skew = turn / count;
            char what[64];
            (void)snprintf(what, sizeof what, "%s, shapes %zu", dtype_name(dtype), i);
            struct trial trial;
            trial_init(&trial, gpu, 24 << 20);
            struct tensor_pair pair = trial_pair(&trial, dtype, KIND_20, shapes[i].a, shapes[i].b,
                                                 skew * (i % 3), skew * (i % 2));
            plan(&trial, &pair, 1);
            check(&trial, dtype, KIND_20, what);
            trial_fini(&trial);
        }
    gpu_close(gpu);
}

static void cuda_takes_pairs_of_mixed_lengths(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    enum { PAIRS = 6000 }; /* more than one table of tasks holds */
    struct tensor_pair *pairs = malloc(PAIRS * sizeof *pairs);
    assert_non_null(pairs);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        struct trial trial;
        trial_init(&trial, gpu, 32 << 20);
        for (size_t i = 0; i < PAIRS; i++) {
            uint64_t n = i % 1000 == 7 ? 50000 : i % 61;
            pairs[i] = trial_pair(&trial, dtype, KIND_20, vector(n), vector(n), i % 3, i % 5);
        }
        plan(&trial, pairs, PAIRS);
        check(&trial, dtype, KIND_20, "pairs");
        trial_fini(&trial);
    }
    free(pairs);
    gpu_close(gpu);
}

/* So much that copying it with them would cost more than a copy for each. */
static void cuda_leaves_out_what_lies_between_operands(void **state)
{
    (void)state;
    enum { PAIRS = 8, GAP = 1 << 20, N = 1003 };
    struct gpu *gpu = open_gpu(wide_config);
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        struct tensor_pair pairs[PAIRS];
        struct trial trial;
        trial_init(&trial, gpu, 16 << 20);
        for (size_t i = 0; i < PAIRS; i++) {
            trial.used += GAP;
            pairs[i] = trial_pair(&trial, dtype, KIND_60, vector(N), vector(N), i, i % 3);
        }
        plan(&trial, pairs, PAIRS);
        check(&trial, dtype, KIND_60, "pairs far apart");
        trial_fini(&trial);
    }
    gpu_close(gpu);
}

/* A job of the batch test: of every type, accuracy and length. */
static void batch_job(struct gpu *gpu, struct trial *trial, size_t i)
{
    const enum dtype dtype = (enum dtype)(i % DTYPE_COUNT);
    const bool is_exact = i % 3 != 0;
    const enum kind kind = is_exact ? (enum kind)(i / 7 % KIND_COUNT) : KIND_20;
    const uint64_t n = i % 50 == 49 ? 100000 + i : i % 10 == 9 ? 5000 + i : i;
    trial_init(trial, gpu, 2 * n * dtype_size(dtype) + 256);
    struct tensor_pair pair =
        trial_pair(trial, dtype, kind, vector(n), vector(n), i % 2, i % 4 / 2);
    plan(trial, &pair, 1);
    choose_options(&trial->job, dtype);
    trial->job.accuracy = is_exact ? ACCURACY_EXACT : ACCURACY_FAST;
}

/* Jobs of every kind at once: whichever batches they form, each gets its own result. */
static void cuda_keeps_the_jobs_of_a_batch_apart(void **state)
{
    (void)state;
    enum { JOBS = 500 };
    struct gpu *gpu = open_gpu(wide_config);
    struct trial *trial = calloc(JOBS, sizeof *trial);
    struct dot_value(*want)[2] = calloc(JOBS, sizeof *want);
    assert_non_null(trial);
    assert_non_null(want);
    for (size_t i = 0; i < JOBS; i++) {
        batch_job(gpu, &trial[i], i);
        gpu_compute(gpu, &trial[i].job);
        memcpy(want[i], trial[i].job.value, trial[i].job.value_count * sizeof **want);
    }
    for (int device = 1; device < gpu_device_count(gpu); device++) {
        struct sink sink;
        sink_init(&sink);
        for (size_t i = 0; i < JOBS; i++) {
            trial[i].job.port = &sink.port;
            assert_int_equal(gpu_submit(gpu, device, &trial[i].job), ERR_OK);
        }
        sink_wait(&sink, JOBS);
        for (size_t i = 0; i < JOBS; i++) {
            assert_int_equal(trial[i].job.error, ERR_OK);
            assert_int_equal(trial[i].job.device, device);
            for (size_t j = 0; j < trial[i].job.value_count; j++)
                compare(&trial[i].job, &want[i][j], &trial[i].job.value[j], "batch", i);
        }
    }
    for (size_t i = 0; i < JOBS; i++)
        trial_fini(&trial[i]);
    free(want);
    free(trial);
    gpu_close(gpu);
}

/* Memory that no pool gave out: the device copies what it cannot read in place. */
static void cuda_takes_memory_that_is_not_pinned(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    enum { N = 2000 };
    float *heap = malloc(2 * N * sizeof *heap);
    assert_non_null(heap);
    struct trial trial = {.gpu = gpu, .block = {heap, 2 * N * sizeof *heap}};
    struct tensor_pair pair = {.a = {DTYPE_FLOAT32, vector(N), 0},
                               .b = {DTYPE_FLOAT32, vector(N), N * sizeof *heap}};
    operand_fill(heap, DTYPE_FLOAT32, KIND_20, 2 * N);
    trial.job.base = heap;
    trial.used = 2 * N * sizeof *heap;
    plan(&trial, &pair, 1);
    check(&trial, DTYPE_FLOAT32, KIND_20, "heap");
    job_fini(&trial.job);
    free(heap);
    gpu_close(gpu);
}

static void put(void *data, enum dtype dtype, size_t index, double value)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

/* Sets every element of both operands of a planned pair. */
static void fill(struct trial *trial, const struct tensor_pair *pair, double a, double b)
{
    uint64_t count = 0;
    assert_int_equal(shape_count(&pair->a.shape, &count), ERR_OK);
    for (uint64_t i = 0; i < count; i++) {
        put((char *)trial->block.data + pair->a.offset, pair->a.dtype, i, a);
        put((char *)trial->block.data + pair->b.offset, pair->b.dtype, i, b);
    }
}

static void cuda_counts_subnormal_numbers_in_full(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    static const uint64_t some[] = {1, 1000, 200000}; /* the last one through atomics */
    for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            bool is_wide = dtype == DTYPE_FLOAT64;
            double tiny = is_wide ? 0x1p-1074 : 0x1p-149, factor = is_wide ? 1 : 0x1p-149;
            double want = (double)some[i] * (tiny * factor);
            struct trial trial;
            trial_init(&trial, gpu, 4 << 20);
            struct tensor_pair pair =
                trial_pair(&trial, dtype, KIND_20, vector(some[i]), vector(some[i]), 0, 0);
            plan(&trial, &pair, 1);
            fill(&trial, &pair, tiny, factor);
            trial.job.result_dtype = DTYPE_FLOAT64;
            for (enum accuracy way = ACCURACY_FAST; way <= ACCURACY_EXACT; way++) {
                trial.job.accuracy = way;
                check_accuracy(&trial, "subnormal");
                if (trial.job.value[0].sum != want)
                    fail_msg("%g, expected %g", trial.job.value[0].sum, want);
            }
            trial_fini(&trial);
        }
    gpu_close(gpu);
}

/* Elements 17 and 18; all others are 1. */
struct odd_row {
    double a, b, other_a, other_b;
};

static void check_odd_row(struct gpu *gpu, const struct odd_row *row, uint64_t n, enum accuracy way)
{
    struct trial trial;
    trial_init(&trial, gpu, 4 << 20);
    struct tensor_pair pair =
        trial_pair(&trial, DTYPE_FLOAT64, KIND_20, vector(n), vector(n), 0, 0);
    plan(&trial, &pair, 1);
    fill(&trial, &pair, 1, 1);
    double *a = trial.block.data, *b = (double *)((char *)trial.block.data + pair.b.offset);
    a[17] = row->a;
    b[17] = row->b;
    a[18] = row->other_a;
    b[18] = row->other_b;
    trial.job.accuracy = way;
    trial.job.wants_abs = true;
    trial.job.result_dtype = DTYPE_FLOAT64;
    gpu_compute(gpu, &trial.job);
    struct dot_value want = trial.job.value[0];
    struct sink sink;
    sink_init(&sink);
    trial.job.port = &sink.port;
    assert_int_equal(gpu_submit(gpu, 1, &trial.job), ERR_OK);
    sink_wait(&sink, 1);
    assert_int_equal(trial.job.device, 1);
    compare_exact(&want, &trial.job.value[0], "odd", n);
    if (!same_or_both_nan(want.sum_abs, trial.job.value[0].sum_abs))
        fail_msg("sum_abs %g, expected %g", trial.job.value[0].sum_abs, want.sum_abs);
    trial_fini(&trial);
}

static void cuda_classifies_what_is_not_finite(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    static const struct odd_row rows[] = {
        {NAN, 0, 1, 1},       {INFINITY, 0, 1, 1},           {INFINITY, 1, -INFINITY, 1},
        {INFINITY, 2, 1, 1},  {-INFINITY, 2, 1, 1},          {1e300, 1e300, 1, 1},
        {1e300, 1e300, 1, 0}, {1e300, 1e300, -1e300, 1e300}, {INFINITY, 0, NAN, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (enum accuracy way = ACCURACY_FAST; way <= ACCURACY_EXACT; way++) {
            check_odd_row(gpu, &rows[i], 40, way);
            check_odd_row(gpu, &rows[i], 200000, way);
        }
    gpu_close(gpu);
}

static void every_device_passes_the_self_test(void **state)
{
    (void)state;
    struct gpu *gpu = open_gpu(wide_config);
    struct problem problem;
    problem_clear(&problem);
    if (gpu_self_test(gpu, &problem) != ERR_OK || gpu_devices_failed(gpu, &problem) > 0)
        fail_msg("%s", problem.detail);
    for (int device = 1; device < gpu_device_count(gpu); device++) {
        struct device_info info = gpu_device_info(gpu, device);
        print_message("%s: %s, %u multiprocessors, sm_%u, %s\n", info.id, info.name,
                      info.multiprocessors, info.capability, info.kernel);
    }
    gpu_close(gpu);
}

int main(int argc, char **argv)
{
    every = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    assert(every > 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_passes_the_self_test),
        cmocka_unit_test(cuda_agrees_with_the_cpu_at_every_length),
        cmocka_unit_test(cuda_takes_operands_at_any_element),
        cmocka_unit_test(cuda_broadcasts),
        cmocka_unit_test(cuda_takes_pairs_of_mixed_lengths),
        cmocka_unit_test(cuda_leaves_out_what_lies_between_operands),
        cmocka_unit_test(cuda_keeps_the_jobs_of_a_batch_apart),
        cmocka_unit_test(cuda_works_in_pieces_when_the_arena_is_small),
        cmocka_unit_test(cuda_takes_memory_that_is_not_pinned),
        cmocka_unit_test(cuda_counts_subnormal_numbers_in_full),
        cmocka_unit_test(cuda_classifies_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
