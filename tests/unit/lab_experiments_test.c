/* The lab's experiments, emulated, against what pencil and paper say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "gpu/lab/experiments.h"

/* What is emulated, watched and short needs no lab. */
static struct lab *const nobody = NULL;

static const float ones[1024] = {[0 ... 1023] = 1};

struct fixture {
    struct gpu *gpu;
    struct lab *lab;
};

static int open_lab(void **state)
{
    static struct fixture fixture;
    static const struct gpu_config config = {
        .budget_bytes = 1 << 20, .queue_jobs = 4, .batch_jobs = 3};
    struct problem problem;
    assert_int_equal(gpu_open(&fixture.gpu, &config, &problem), ERR_OK);
    assert_int_equal(
        lab_open(&fixture.lab, fixture.gpu, &(struct lab_config){.queue_jobs = 2}, &problem),
        ERR_OK);
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

/* --- reduce --- */

static struct lab_reduce reduce(const char *scheme, const float *a, uint64_t n, uint32_t block)
{
    struct lab_reduce_ask ask = {.scheme = lab_scheme_find(scheme),
                                 .dtype = DTYPE_FLOAT32,
                                 .a = a,
                                 .b = ones,
                                 .n = n,
                                 .block = block,
                                 .seed = 1};
    struct lab_reduce ret = {0};
    struct problem problem;
    assert_int_equal(lab_reduce_settle(&ask, &problem), ERR_OK);
    assert_int_equal(lab_reduce(nobody, &ask, &ret, &problem), ERR_OK);
    return ret;
}

struct expected_step {
    enum lab_what what;
    double shared[8];
    uint32_t active[9];          /* ends with END */
    struct lab_access reads[17]; /* ends with END */
};

enum { END = 9999 };

static void check_step(const struct lab_step *step, uint32_t number,
                       const struct expected_step *expected)
{
    assert_int_equal(step->block, 0);
    assert_int_equal(step->step, number);
    assert_int_equal(step->what, expected->what);
    assert_int_equal(step->cell_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_true(step->is_written[i]);
        if (step->shared[i] != expected->shared[i])
            fail_msg("step %u, cell %d: %g, expected %g", number, i, step->shared[i],
                     expected->shared[i]);
    }
    uint32_t count = 0;
    for (; expected->active[count] != END; count++)
        assert_int_equal(step->active[count], expected->active[count]);
    assert_int_equal(step->active_count, count);
    assert_int_equal(step->warps, 1);
    assert_int_equal(step->active_warps, 1);
    for (count = 0; expected->reads[count].thread != END; count++) {
        assert_int_equal(step->reads[count].thread, expected->reads[count].thread);
        assert_int_equal(step->reads[count].cell, expected->reads[count].cell);
    }
    assert_int_equal(step->read_count, count);
}

static const float eight[] = {1, 2, 3, 4, 5, 6, 7, 8};

static void check_eight(const char *scheme, const struct expected_step *expected, uint32_t steps)
{
    struct lab_reduce ret = reduce(scheme, eight, 8, 8);
    assert_int_equal(ret.step_count, steps);
    for (uint32_t i = 0; i < steps; i++)
        check_step(&ret.step[i], i, &expected[i]);
    assert_true(ret.value == 36 && ret.exact.sum == 36);
    assert_int_equal(ret.blocks, 1);
    assert_int_equal(ret.barriers, steps - 1);
    assert_int_equal(ret.atomics, 0);
    assert_int_equal(ret.idle_warps, 0);
    assert_int_equal(ret.faults.total, 0);
    assert_false(ret.is_cut);
    lab_reduce_fini(&ret);
}

static void stride_halves_and_its_threads_stay_together(void **state)
{
    (void)state;
    static const struct expected_step steps[] = {
        {LAB_LOAD, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6, 7, END}, {{END, 0}}},
        {LAB_ADD,
         {6, 8, 10, 12, 5, 6, 7, 8},
         {0, 1, 2, 3, END},
         {{0, 4}, {0, 0}, {1, 5}, {1, 1}, {2, 6}, {2, 2}, {3, 7}, {3, 3}, {END, 0}}},
        {LAB_ADD,
         {16, 20, 10, 12, 5, 6, 7, 8},
         {0, 1, END},
         {{0, 2}, {0, 0}, {1, 3}, {1, 1}, {END, 0}}},
        {LAB_ADD, {36, 20, 10, 12, 5, 6, 7, 8}, {0, END}, {{0, 1}, {0, 0}, {END, 0}}},
        {LAB_READ, {36, 20, 10, 12, 5, 6, 7, 8}, {0, END}, {{0, 0}, {END, 0}}},
    };
    check_eight("stride", steps, 5);
}

static void pairs_double_and_every_other_thread_idles(void **state)
{
    (void)state;
    static const struct expected_step steps[] = {
        {LAB_LOAD, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6, 7, END}, {{END, 0}}},
        {LAB_ADD,
         {3, 2, 7, 4, 11, 6, 15, 8},
         {0, 2, 4, 6, END},
         {{0, 1}, {0, 0}, {2, 3}, {2, 2}, {4, 5}, {4, 4}, {6, 7}, {6, 6}, {END, 0}}},
        {LAB_ADD,
         {10, 2, 7, 4, 26, 6, 15, 8},
         {0, 2, END},
         {{0, 2}, {0, 0}, {2, 6}, {2, 4}, {END, 0}}},
        {LAB_ADD, {36, 2, 7, 4, 26, 6, 15, 8}, {0, END}, {{0, 4}, {0, 0}, {END, 0}}},
        {LAB_READ, {36, 2, 7, 4, 26, 6, 15, 8}, {0, END}, {{0, 0}, {END, 0}}},
    };
    check_eight("pairs", steps, 5);
}

static void serial_lets_one_thread_add_everything(void **state)
{
    (void)state;
    static const struct expected_step steps[] = {
        {LAB_LOAD, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6, 7, END}, {{END, 0}}},
        {LAB_ADD,
         {1, 2, 3, 4, 5, 6, 7, 8},
         {0, END},
         {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}, {END, 0}}},
    };
    check_eight("serial", steps, 2);
}

/* 1024 threads are 32 warps. In the tree's steps 16, 8, 4, 2 of them work, then six times one, and
 * one fetches; of the others 16 + 24 + 28 + 30 + 7 * 31 = 315 idle. */
static void a_thousand_threads_take_ten_steps_without_conflicts(void **state)
{
    (void)state;
    struct lab_reduce ret = reduce("stride", ones, 1024, 0);
    assert_int_equal(ret.steps, 10);
    assert_int_equal(ret.barriers, 11);
    assert_int_equal(ret.bank_conflicts, 0);
    assert_int_equal(ret.idle_warps, 315);
    assert_int_equal(ret.active_threads, 1024 + 1023 + 1);
    assert_true(ret.value == 1024);
    lab_reduce_fini(&ret);
    ret = reduce("pairs", ones, 1024, 0);
    assert_int_equal(ret.steps, 10);
    assert_true(ret.bank_conflicts > 0);
    lab_reduce_fini(&ret);
}

static void blocks_bring_one_atomic_each_and_their_tails_zero(void **state)
{
    (void)state;
    struct lab_reduce ret = reduce("blocks", ones, 10, 4);
    assert_int_equal(ret.blocks, 3);
    assert_int_equal(ret.atomics, 3);
    assert_int_equal(ret.barriers, 9);
    assert_true(ret.value == 10);
    for (size_t i = 0; i < ret.step_count; i++)
        if (ret.step[i].block == 2 && ret.step[i].what == LAB_LOAD)
            assert_true(ret.step[i].shared[1] == 1 && ret.step[i].shared[2] == 0);
    lab_reduce_fini(&ret);
    ret = reduce("shuffle", ones, 64, 64);
    assert_int_equal(ret.barriers, 2); /* the last 32 add in registers */
    assert_true(ret.value == 64);
    lab_reduce_fini(&ret);
}

static void every_block_size_sums_every_length(void **state)
{
    (void)state;
    for (uint32_t block = 1; block <= 70; block++)
        for (uint32_t n = 1; n <= block; n += 3) {
            const char *const schemes[] = {"stride", "pairs", "serial", "blocks"};
            struct lab_reduce ret = reduce(schemes[(block + n) % 4], ones, n, block);
            assert_true(ret.value == n);
            assert_int_equal(ret.faults.total, 0);
            lab_reduce_fini(&ret);
        }
}

static void numbers_that_are_not_finite_are_shown_as_such(void **state)
{
    (void)state;
    static const float a[] = {1, INFINITY, -INFINITY, 2};
    struct lab_reduce ret = reduce("stride", a, 4, 4);
    assert_true(isinf(ret.step[0].shared[1]) && isinf(ret.step[1].shared[1]));
    assert_true(isnan(ret.value) && isnan(ret.exact.sum));
    lab_reduce_fini(&ret);
}

static void questions_of_a_reduction_have_limits(void **state)
{
    (void)state;
    static const struct {
        const char *scheme;
        enum dtype dtype;
        uint64_t n;
        uint32_t block;
        enum error error;
        const char *pointer;
        uint64_t limit;
    } rows[] = {
        {"stride", DTYPE_FLOAT32, 0, 8, ERR_VALUE, "/a", 0},
        {"stride", DTYPE_FLOAT32, 9, 8, ERR_VALUE, "/block", 1024},
        {"serial", DTYPE_FLOAT32, 1025, 0, ERR_VALUE, "/block", 1024},
        {"stride", DTYPE_FLOAT32, 8, 1025, ERR_VALUE, "/block", 1024},
        {"shuffle", DTYPE_FLOAT32, 8, 33, ERR_VALUE, "/block", 0},
        {"blocks", DTYPE_FLOAT32, 4097, 8, ERR_TOO_LARGE, "/a", 4096},
        {"blocks", DTYPE_INT8, 8, 8, ERR_DTYPE, "/dtype", 0},
        {"blocks", DTYPE_FLOAT64, 4096, 1, ERR_OK, "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab_reduce_ask ask = {.scheme = lab_scheme_find(rows[i].scheme),
                                     .dtype = rows[i].dtype,
                                     .n = rows[i].n,
                                     .block = rows[i].block};
        struct problem problem;
        problem_clear(&problem);
        assert_int_equal(lab_reduce_settle(&ask, &problem), rows[i].error);
        assert_string_equal(problem.pointer, rows[i].pointer);
        assert_int_equal(problem.limit, rows[i].limit);
    }
    assert_null(lab_scheme_find("tree"));
}

/* --- race --- */

static struct lab_race race(void **state, uint64_t n, uint32_t runs, uint64_t seed)
{
    struct fixture *fixture = *state;
    struct lab_race_ask ask = {.n = n, .runs = runs, .seed = seed};
    struct lab_race ret = {0};
    struct problem problem;
    assert_int_equal(lab_race_settle(&ask, &problem), ERR_OK);
    assert_int_equal(lab_race(fixture->lab, &ask, &ret, &problem), ERR_OK);
    return ret;
}

static void plain_additions_are_lost_and_atomic_ones_are_not(void **state)
{
    struct lab_race ret = race(state, 10000, 0, 1), again = race(state, 10000, 0, 1);
    assert_int_equal(ret.runs, 5);
    for (uint32_t i = 0; i < ret.runs; i++) {
        /* Of a warp's additions one is heard, at most. */
        if (!(ret.value[i] >= 1 && ret.value[i] <= 313))
            fail_msg("run %u: %g of 10000", i, ret.value[i]);
        assert_true(ret.value[i] == again.value[i]);
    }
    assert_true(ret.atomic == 10000);
    assert_int_equal(ret.faults.count, 1);
    assert_int_equal(ret.faults.fault[0].kind, LAB_FAULT_RACE);
    assert_int_equal(ret.faults.fault[0].thread_count, 2);
    assert_true(ret.faults.fault[0].thread[0] != ret.faults.fault[0].thread[1]);
    assert_true(strlen(ret.faults.fault[0].text) > 0);
    lab_race_fini(&ret);
    lab_race_fini(&again);
}

static void one_thread_alone_loses_nothing(void **state)
{
    struct lab_race ret = race(state, 1, 2, 1);
    assert_true(ret.value[0] == 1 && ret.value[1] == 1 && ret.atomic == 1);
    assert_int_equal(ret.faults.count, 0);
    lab_race_fini(&ret);
}

/* --- shift --- */

static struct lab_shift shift(uint32_t n, uint32_t barriers, uint64_t seed)
{
    struct lab_shift_ask ask = {.n = n, .barriers = barriers, .seed = seed};
    struct lab_shift ret = {0};
    struct problem problem;
    assert_int_equal(lab_shift_settle(&ask, &problem), ERR_OK);
    assert_int_equal(lab_shift(nobody, &ask, &ret, &problem), ERR_OK);
    return ret;
}

/* Reads that raced touch just the cells that the emulation itself reports. */
static void check_races(const struct lab_shift *shift)
{
    bool is_raced[LIMIT_LAB_BLOCK] = {false};
    uint32_t count = 0;
    for (uint32_t i = 0; i < shift->read_count; i++) {
        const struct lab_read *read = &shift->read[i];
        count += read->has_raced && !is_raced[read->cell];
        is_raced[read->cell] |= read->has_raced;
    }
    assert_int_equal(shift->faults.total, count);
    for (uint32_t i = 0; i < shift->faults.count; i++)
        assert_true(is_raced[shift->faults.fault[i].cell]);
}

static void two_barriers_are_right_for_every_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lab_shift ret = shift(128, 2, seed);
        assert_int_equal(ret.wrong_count, 0);
        assert_int_equal(ret.faults.total, 0);
        for (uint32_t i = 0; i < 128; i++)
            assert_true(ret.result[i] == (i < 127 ? i + 1 : 127));
        assert_int_equal(ret.read_count, 256);
        for (uint32_t i = 0; i < ret.read_count; i++) {
            assert_true(ret.read[i].value == ret.read[i].expected);
            assert_false(ret.read[i].has_raced);
        }
        lab_shift_fini(&ret);
    }
}

static void without_barriers_some_orders_are_wrong_and_all_are_races(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lab_shift ret = shift(128, 0, seed);
        wrong += ret.wrong_count > 0;
        assert_true(ret.faults.total > 0);
        assert_int_equal(ret.faults.count, LAB_FAULTS);
        check_races(&ret);
        lab_shift_fini(&ret);
    }
    assert_true(wrong > 0);
}

/* The first barrier makes what is read right; what is handed out may be too early. */
static void one_barrier_leaves_the_second_race(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lab_shift ret = shift(128, 1, seed);
        for (uint32_t i = 0; i < 254; i += 2) {
            assert_int_equal(ret.read[i].cell, ret.read[i].thread + 1);
            assert_true(ret.read[i].value == ret.read[i].cell && !ret.read[i].has_raced);
        }
        assert_true(ret.faults.total > 0);
        check_races(&ret);
        wrong += ret.wrong_count > 0;
        lab_shift_fini(&ret);
    }
    assert_true(wrong > 0);
}

static void one_warp_in_step_is_right_by_luck_and_still_a_race(void **state)
{
    (void)state;
    struct lab_shift ret = shift(32, 0, 1);
    assert_int_equal(ret.wrong_count, 0);
    assert_true(ret.faults.total > 0);
    lab_shift_fini(&ret);
    ret = shift(1, 0, 1);
    assert_true(ret.result[0] == 0 && ret.read_count == 2);
    assert_int_equal(ret.faults.total, 0);
    lab_shift_fini(&ret);
}

static void any_values_are_shifted(void **state)
{
    (void)state;
    static const double values[] = {1.5, NAN, -INFINITY, -0.0};
    const struct lab_shift_ask ask = {.values = values, .n = 4, .barriers = 2, .seed = 1};
    struct lab_shift ret = {0};
    struct problem problem;
    assert_int_equal(lab_shift(nobody, &ask, &ret, &problem), ERR_OK);
    assert_int_equal(ret.wrong_count, 0);
    assert_true(isnan(ret.result[0]) && isinf(ret.result[1]));
    assert_true(signbit(ret.result[2]) && signbit(ret.result[3]));
    lab_shift_fini(&ret);
}

static void shift_and_barrier_have_limits(void **state)
{
    (void)state;
    struct problem problem;
    struct lab_shift_ask ask = {.n = 1025, .barriers = 2};
    assert_int_equal(lab_shift_settle(&ask, &problem), ERR_TOO_LARGE);
    assert_string_equal(problem.pointer, "/n");
    assert_int_equal(problem.limit, 1024);
    ask = (struct lab_shift_ask){.n = 128, .barriers = 3};
    assert_int_equal(lab_shift_settle(&ask, &problem), ERR_VALUE);
    assert_string_equal(problem.pointer, "/barriers");
    struct lab_barrier_ask one = {.n = 1};
    assert_int_equal(lab_barrier_settle(&one, &problem), ERR_VALUE);
}

/* --- barrier --- */

static struct lab_barrier barrier(uint32_t n, enum lab_where where)
{
    struct lab_barrier_ask ask = {.n = n, .where = where, .seed = 1};
    struct lab_barrier ret = {0};
    struct problem problem;
    assert_int_equal(lab_barrier_settle(&ask, &problem), ERR_OK);
    assert_int_equal(lab_barrier(nobody, &ask, &ret, &problem), ERR_OK);
    return ret;
}

static void a_barrier_inside_a_branch_is_stopped_and_reported(void **state)
{
    (void)state;
    struct lab_barrier ret = barrier(64, LAB_BRANCH);
    assert_true(ret.is_stopped);
    assert_int_equal(ret.waiting_count, 32);
    assert_int_equal(ret.ended_count, 32);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(ret.waiting[i], i);
        assert_int_equal(ret.ended[i], 32 + i);
    }
    assert_int_equal(ret.faults.count, 1);
    assert_int_equal(ret.faults.fault[0].kind, LAB_FAULT_BARRIER);
    assert_int_equal(ret.faults.fault[0].thread[0], 0);
    assert_int_equal(ret.faults.fault[0].thread[1], 32);
    assert_true(strlen(ret.faults.fault[0].text) > 0);
    lab_barrier_fini(&ret);
}

static void on_the_common_path_it_sums(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 5, 64, 100, 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct lab_barrier ret = barrier(sizes[i], LAB_COMMON);
        assert_false(ret.is_stopped);
        assert_true(ret.value == sizes[i]);
        assert_int_equal(ret.faults.total, 0);
        lab_barrier_fini(&ret);
    }
}

static void a_stopped_kernel_leaves_everything_usable(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct lab_barrier stopped = barrier(1024, LAB_BRANCH);
        assert_true(stopped.is_stopped);
        lab_barrier_fini(&stopped);
        struct lab_shift right = shift(1024, 2, 1);
        assert_int_equal(right.wrong_count, 0);
        lab_shift_fini(&right);
        struct lab_reduce sum = reduce("stride", ones, 1024, 0);
        assert_true(sum.value == 1024);
        lab_reduce_fini(&sum);
    }
}

/* --- rounding --- */

static struct lab_rounding rounding(void **state, enum dtype dtype, const void *a, const void *b,
                                    uint64_t n, uint32_t orders)
{
    struct fixture *fixture = *state;
    struct lab_rounding_ask ask = {
        .dtype = dtype, .a = a, .b = b, .n = n, .orders = orders, .seed = 1};
    struct lab_rounding ret = {0};
    struct problem problem;
    assert_int_equal(lab_rounding_settle(&ask, &problem), ERR_OK);
    assert_int_equal(lab_rounding(fixture->lab, &ask, &ret, &problem), ERR_OK);
    return ret;
}

static void check_bounds(const struct lab_rounding *rounding)
{
    for (uint32_t i = 0; i < rounding->sum_count; i++) {
        const struct lab_sum *sum = &rounding->sum[i];
        if (!(sum->error <= sum->bound && sum->bound <= rounding->bound))
            fail_msg("%s: %g off by %g, bound %g", lab_how_name(sum->how), sum->value, sum->error,
                     sum->bound);
    }
}

/* In float32 1e8 + 1 is 1e8. Front to back: ((1e8 + 1) - 1e8) + 1 = 1; by halves: (1e8 - 1e8) +
 * (1 + 1) = 2, which is right. From 1 to 2 there are 2^23 numbers. */
static void orders_differ_where_large_numbers_cancel(void **state)
{
    static const float a[] = {1e8F, 1, -1e8F, 1};
    struct lab_rounding ret = rounding(state, DTYPE_FLOAT32, a, ones, 4, 0);
    assert_true(ret.exact.sum == 2 && ret.exact.sum_abs == 200000002);
    assert_true(ret.condition == 100000001);
    assert_int_equal(ret.sum_count, 10);
    assert_int_equal(ret.sum[0].how, LAB_SEQUENTIAL);
    assert_null(ret.sum[0].kernel);
    assert_true(ret.sum[0].value == 1 && ret.sum[0].error == 1);
    assert_int_equal(ret.sum[0].ulps, 1 << 23);
    assert_int_equal(ret.sum[1].how, LAB_TREE);
    assert_string_equal(ret.sum[1].kernel, "tree");
    assert_true(ret.sum[1].value == 2 && ret.sum[1].error == 0 && ret.sum[1].ulps == 0);
    for (uint32_t i = 2; i < 10; i++) {
        assert_int_equal(ret.sum[i].how, LAB_ATOMIC);
        assert_string_equal(ret.sum[i].kernel, "thread-atomic");
        assert_int_equal(ret.sum[i].order, i);
    }
    assert_true(ret.distinct >= 2);
    check_bounds(&ret);
}

static void blocks_in_another_order_give_other_bits(void **state)
{
    static float a[20000];
    for (int i = 0; i < 20000; i++)
        a[i] = 1 / (float)(i + 1);
    struct lab_rounding ret = rounding(state, DTYPE_FLOAT32, a, a, 1000, 4);
    check_bounds(&ret);
    static float b[20000];
    for (int i = 0; i < 20000; i++)
        b[i] = i % 2 ? 1.1F : -0.9F;
    ret = rounding(state, DTYPE_FLOAT32, a, b, 20000, 32);
    assert_int_equal(ret.sum_count, 34);
    assert_string_equal(ret.sum[1].kernel, "two-pass");
    assert_string_equal(ret.sum[2].kernel, "block-atomic");
    bool has_other = false;
    for (uint32_t i = 3; i < 34; i++)
        has_other = has_other || ret.sum[i].value != ret.sum[2].value;
    assert_true(has_other);
    assert_true(ret.bound > 0 && ret.distinct >= 2);
    check_bounds(&ret);
}

static void whole_numbers_have_one_sum(void **state)
{
    static const double a[] = {1, 2, 3, 4, 5}, b[] = {2, 2, 2, 2, -2};
    struct lab_rounding ret = rounding(state, DTYPE_FLOAT64, a, b, 5, 3);
    assert_int_equal(ret.distinct, 1);
    for (uint32_t i = 0; i < ret.sum_count; i++)
        assert_true(ret.sum[i].value == 10 && ret.sum[i].error == 0 && ret.sum[i].ulps == 0);
}

static void a_nan_is_at_no_distance(void **state)
{
    static const double a[] = {1, NAN};
    struct lab_rounding ret = rounding(state, DTYPE_FLOAT64, a, a, 2, 1);
    assert_true(isnan(ret.sum[0].value) && isnan(ret.sum[0].error));
    assert_true(ret.sum[0].ulps == UINT64_MAX);
}

static void vectors_to_be_rounded_have_limits(void **state)
{
    (void)state;
    struct problem problem;
    struct lab_rounding_ask ask = {.dtype = DTYPE_FLOAT32, .n = 65537};
    assert_int_equal(lab_rounding_settle(&ask, &problem), ERR_TOO_LARGE);
    assert_int_equal(problem.limit, 65536);
    ask = (struct lab_rounding_ask){.dtype = DTYPE_FLOAT32, .n = 1, .orders = 33};
    assert_int_equal(lab_rounding_settle(&ask, &problem), ERR_VALUE);
    assert_string_equal(problem.pointer, "/orders");
    ask = (struct lab_rounding_ask){.dtype = DTYPE_FLOAT16, .n = 1};
    assert_int_equal(lab_rounding_settle(&ask, &problem), ERR_DTYPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stride_halves_and_its_threads_stay_together),
        cmocka_unit_test(pairs_double_and_every_other_thread_idles),
        cmocka_unit_test(serial_lets_one_thread_add_everything),
        cmocka_unit_test(a_thousand_threads_take_ten_steps_without_conflicts),
        cmocka_unit_test(blocks_bring_one_atomic_each_and_their_tails_zero),
        cmocka_unit_test(every_block_size_sums_every_length),
        cmocka_unit_test(numbers_that_are_not_finite_are_shown_as_such),
        cmocka_unit_test(questions_of_a_reduction_have_limits),
        cmocka_unit_test_setup_teardown(plain_additions_are_lost_and_atomic_ones_are_not, open_lab,
                                        close_lab),
        cmocka_unit_test_setup_teardown(one_thread_alone_loses_nothing, open_lab, close_lab),
        cmocka_unit_test(two_barriers_are_right_for_every_order),
        cmocka_unit_test(without_barriers_some_orders_are_wrong_and_all_are_races),
        cmocka_unit_test(one_barrier_leaves_the_second_race),
        cmocka_unit_test(one_warp_in_step_is_right_by_luck_and_still_a_race),
        cmocka_unit_test(any_values_are_shifted),
        cmocka_unit_test(shift_and_barrier_have_limits),
        cmocka_unit_test(a_barrier_inside_a_branch_is_stopped_and_reported),
        cmocka_unit_test(on_the_common_path_it_sums),
        cmocka_unit_test(a_stopped_kernel_leaves_everything_usable),
        cmocka_unit_test_setup_teardown(orders_differ_where_large_numbers_cancel, open_lab,
                                        close_lab),
        cmocka_unit_test_setup_teardown(blocks_in_another_order_give_other_bits, open_lab,
                                        close_lab),
        cmocka_unit_test_setup_teardown(whole_numbers_have_one_sum, open_lab, close_lab),
        cmocka_unit_test_setup_teardown(a_nan_is_at_no_distance, open_lab, close_lab),
        cmocka_unit_test(vectors_to_be_rounded_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
