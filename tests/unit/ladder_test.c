/* The kernel ladder, emulated: every rung's sum, its bound, its order, what it takes and what it
 * races for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/emu/trace.h"
#include "gpu/ladder.h"
#include "tests/ladder.h"
#include "tests/random.h"

static struct ladder *ladder;

static int open_ladder(void **state)
{
    (void)state;
    struct problem problem;
    return ladder_open(&ladder, LADDER_EMULATED, &problem) == ERR_OK ? 0 : -1;
}

static int close_ladder(void **state)
{
    (void)state;
    ladder_close(ladder);
    return 0;
}

/* --- right --- */

static void every_rung_is_within_its_bound_of_the_exact_sum(void **state)
{
    (void)state;
    rungs_are_right(ladder, 2500);
}

static void fixed_order_rungs_give_the_same_bits_in_every_order_of_blocks(void **state)
{
    (void)state;
    fixed_rungs_repeat(ladder, 6);
}

/* Blocks do arrive in another order, so that being right above means something. */
static void atomic_rungs_give_other_bits_in_other_orders(void **state)
{
    (void)state;
    enum { N = 3000 };
    static float a[N], b[N];
    operands_draw(a, b, DTYPE_FLOAT32, DATA_SIGNED, N);
    const char *const names[] = {"thread-atomic", "block-atomic", "warp-shuffle"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ladder_ask ask = {.rung = ladder_find(names[i]),
                                 .dtype = DTYPE_FLOAT32,
                                 .a = a,
                                 .b = b,
                                 .n = N,
                                 .threads = 32};
        const double first = run_ask(ladder, &ask).value.sum;
        bool differs = false;
        for (ask.seed = 1; ask.seed < 20 && !differs; ask.seed++)
            differs = run_ask(ladder, &ask).value.sum != first;
        if (!differs)
            fail_msg("%s: the same sum in 20 orders", names[i]);
    }
}

static void what_is_not_finite_is_settled_as_exact_sums_are(void **state)
{
    (void)state;
    const float huge = FLT_MAX;
    const struct {
        float a[3];
        double sum;
        unsigned flags;
        double bound;
    } cases[] = {
        {{1, INFINITY, 2}, (double)INFINITY, 0, 0},
        {{1, -INFINITY, 2}, (double)-INFINITY, 0, 0},
        {{1, NAN, 2}, (double)NAN, FLAG_NAN_INPUT, 0},
        {{INFINITY, -INFINITY, 2}, (double)NAN, FLAG_INVALID, 0},
        {{huge, huge, -huge}, (double)INFINITY, FLAG_INEXACT | FLAG_OVERFLOW, (double)INFINITY},
    };
    const float ones[3] = {1, 1, 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct ladder_ask ask = {.rung = ladder_find("serial"),
                                       .dtype = DTYPE_FLOAT32,
                                       .a = cases[i].a,
                                       .b = ones,
                                       .n = 3};
        const struct dot_value value = run_ask(ladder, &ask).value;
        uint64_t bits[2];
        memcpy(&bits[0], &value.sum, sizeof bits[0]);
        memcpy(&bits[1], &cases[i].sum, sizeof bits[1]);
        assert_int_equal(bits[0], bits[1]);
        assert_int_equal(value.flags, cases[i].flags);
        assert_true(value.error_bound == cases[i].bound);
    }
}

static void a_sum_of_nothing_is_zero_and_exact(void **state)
{
    (void)state;
    size_t count = 0;
    const struct rung *rungs = ladder_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const struct ladder_ask ask = {.rung = &rungs[i], .dtype = DTYPE_FLOAT64};
        const struct dot_value value = run_ask(ladder, &ask).value;
        assert_true(value.sum == 0 && !signbit(value.sum));
        if (!rungs[i].is_lab_only)
            assert_true(value.error_bound == 0 && value.flags == 0);
    }
}

/* --- what a rung takes --- */

struct watched_run {
    struct emu_trace *trace;
    struct rung_takes takes;
    double value;
};

static struct watched_run watch(const struct rung *rung, enum dtype dtype, uint64_t n,
                                uint32_t threads, uint64_t seed)
{
    static double a[2000], b[2000];
    struct watched_run run = {0};
    _Alignas(16) unsigned char result[RUNG_RESULT_BYTES], scratch[RUNG_SCRATCH_BYTES];
    assert_true(n <= sizeof a / sizeof a[0]);
    operands_draw(a, b, dtype, DATA_SIGNED, n);
    assert_true(trace_create(&run.trace, 1 << 20, 16));
    const struct rung_call call = {.dtype = dtype,
                                   .a = a,
                                   .b = b,
                                   .n = n,
                                   .threads = threads,
                                   .result = result,
                                   .scratch = scratch,
                                   .seed = seed,
                                   .trace = run.trace};
    (void)rung_emulated(rung, &call);
    rung_takes(rung, NULL, dtype, n, threads, &run.takes);
    run.value = rung_value(rung, dtype, result);
    return run;
}

/* The service's own kernels touch nothing that is watched. */
static bool is_watched(const struct rung *rung)
{
    return !rung->chooses_block;
}

/* Intervals of the block in which shared memory was added to: written, and read by the writer. */
static uint64_t steps_of_block(const struct emu_trace *trace, uint32_t block)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < trace->interval_count; i++) {
        const struct emu_interval *interval = &trace->interval[i];
        bool has_read = false, has_added = false;
        for (size_t k = 0; k < interval->event_count && interval->block == block; k++) {
            const struct emu_event *event = &trace->event[interval->first_event + k];
            const bool is_shared = trace->array[event->array].is_shared;
            has_read |= is_shared && event->access == EMU_READ;
            has_added |= is_shared && event->access == EMU_WRITE && has_read;
        }
        steps += has_added;
    }
    return steps;
}

static uint64_t reads_of_shared(const struct emu_trace *trace)
{
    uint64_t reads = 0;
    for (size_t i = 0; i < trace->event_count; i++)
        reads +=
            trace->event[i].access == EMU_READ && trace->array[trace->event[i].array].is_shared;
    return reads;
}

static void the_table_counts_what_the_emulation_counts(void **state)
{
    (void)state;
    const uint32_t blocks[] = {32, 96, 100, 256, 1024};
    const uint64_t lengths[] = {1, 31, 32, 100, 1000, 1999};
    size_t count = 0, compared = 0;
    const struct rung *rungs = ladder_rows(&count);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
                struct problem problem;
                if (!is_watched(&rungs[r]) ||
                    rung_check(&rungs[r], DTYPE_FLOAT32, lengths[k], blocks[i], &problem) != ERR_OK)
                    continue;
                struct watched_run run = watch(&rungs[r], DTYPE_FLOAT32, lengths[k], blocks[i], 1);
                const uint64_t second = run.takes.launches - 1; /* one block's */
                const uint64_t each = run.takes.barriers / run.takes.launches;
                assert_int_equal(run.trace->barriers, each * (run.takes.blocks + second));
                assert_int_equal(run.trace->atomics, run.takes.atomics);
                trace_destroy(run.trace);
                compared++;
            }
    assert_true(compared > 100);
}

static void the_steps_of_a_tree_are_those_that_are_seen(void **state)
{
    (void)state;
    const char *const names[] = {"tree", "tree-pairs", "block-atomic"};
    const struct {
        uint32_t threads, steps;
    } cases[] = {{1, 0}, {2, 1}, {8, 3}, {9, 4}, {100, 7}, {256, 8}, {1024, 10}};
    for (size_t r = 0; r < sizeof names / sizeof names[0]; r++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const uint32_t threads = cases[i].threads;
            struct watched_run run =
                watch(ladder_find(names[r]), DTYPE_FLOAT64, threads, threads, 2);
            assert_int_equal(run.takes.steps, cases[i].steps);
            assert_int_equal(steps_of_block(run.trace, 0), cases[i].steps);
            trace_destroy(run.trace);
        }
    struct watched_run shuffled =
        watch(ladder_find("warp-shuffle"), DTYPE_FLOAT32, 256, 256, 3); /* 3, and 5 in registers */
    assert_int_equal(shuffled.takes.steps, 8);
    assert_int_equal(steps_of_block(shuffled.trace, 0), 3);
    trace_destroy(shuffled.trace);
    struct watched_run serial = watch(ladder_find("serial"), DTYPE_FLOAT32, 1000, 1024, 4);
    assert_int_equal(serial.takes.steps, 999);
    assert_int_equal(reads_of_shared(serial.trace), 1000);
    trace_destroy(serial.trace);
}

static void neighbour_pairs_pay_with_banks_and_half_empty_warps(void **state)
{
    (void)state;
    struct watched_run pairs = watch(ladder_find("tree-pairs"), DTYPE_FLOAT32, 1024, 1024, 5);
    struct watched_run tree = watch(ladder_find("tree"), DTYPE_FLOAT32, 1024, 1024, 5);
    assert_int_equal(tree.trace->bank_conflicts, 0);
    assert_true(pairs.trace->bank_conflicts > 0);
    assert_int_equal(tree.trace->interval[1].active_threads, 512);
    assert_int_equal(tree.trace->interval[1].active_warps, 16);
    assert_int_equal(pairs.trace->interval[1].active_threads, 512);
    assert_int_equal(pairs.trace->interval[1].active_warps, 32);
    trace_destroy(pairs.trace);
    trace_destroy(tree.trace);
}

/* --- faults --- */

static void no_rung_but_race_has_a_fault(void **state)
{
    (void)state;
    const uint32_t blocks[] = {1, 7, 32, 96, 100, 256, 1024};
    const uint64_t lengths[] = {1, 33, 100, 1000, 1999};
    size_t count = 0;
    const struct rung *rungs = ladder_rows(&count);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
                struct problem problem;
                if (!is_watched(&rungs[r]) ||
                    rung_check(&rungs[r], DTYPE_FLOAT64, lengths[k], blocks[i], &problem) != ERR_OK)
                    continue;
                struct watched_run run =
                    watch(&rungs[r], DTYPE_FLOAT64, lengths[k], blocks[i], i + k);
                const bool races = rungs[r].is_lab_only && lengths[k] > 1;
                if ((run.trace->fault_count > 0) != races)
                    fail_msg("%s, n = %llu, blocks of %u: %s", rungs[r].name,
                             (unsigned long long)lengths[k], blocks[i],
                             races ? "no race" : run.trace->fault[0].text);
                if (races)
                    assert_int_equal(run.trace->fault[0].kind, EMU_RACE);
                trace_destroy(run.trace);
            }
}

static void race_loses_additions(void **state)
{
    (void)state;
    race_loses(ladder, 20000);
}

/* --- refusals --- */

static void refusals_name_the_limit(void **state)
{
    (void)state;
    const struct {
        const char *name;
        enum dtype dtype;
        uint64_t n;
        uint32_t threads;
        enum error error;
        uint64_t limit;
    } cases[] = {
        {"serial", DTYPE_FLOAT32, 1024, 0, ERR_OK, 0},
        {"serial", DTYPE_FLOAT32, 1025, 0, ERR_KERNEL, 1024},
        {"tree", DTYPE_FLOAT64, 9, 8, ERR_KERNEL, 8},
        {"tree", DTYPE_FLOAT64, 8, 8, ERR_OK, 0},
        {"tree-pairs", DTYPE_FLOAT32, 8, 1025, ERR_VALUE, 1024},
        {"block-atomic", DTYPE_FLOAT32, (uint64_t)1 << 31, 1, ERR_KERNEL, INT32_MAX},
        {"block-atomic", DTYPE_FLOAT32, (uint64_t)1 << 31, 2, ERR_OK, 0},
        {"warp-shuffle", DTYPE_FLOAT32, 100, 100, ERR_VALUE, 0},
        {"warp-shuffle", DTYPE_FLOAT32, 100, 96, ERR_OK, 0},
        {"exact", DTYPE_FLOAT32, 1 << 20, 77, ERR_OK, 0}, /* its block is its own */
        {"exact", DTYPE_INT8, 1, 0, ERR_DTYPE, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct problem problem;
        problem_clear(&problem);
        assert_int_equal(rung_check(ladder_find(cases[i].name), cases[i].dtype, cases[i].n,
                                    cases[i].threads, &problem),
                         cases[i].error);
        assert_int_equal(problem.limit, cases[i].limit);
        assert_int_equal(problem.detail[0] != '\0', cases[i].error != ERR_OK);
    }
    assert_null(ladder_find("quicksort"));
}

/* --- measuring --- */

static void measuring_keeps_to_its_runs(void **state)
{
    (void)state;
    const char *const names[] = {"tree", "two-pass", "exact"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct ladder_ask ask = {
            .rung = ladder_find(names[i]), .dtype = DTYPE_FLOAT64, .n = 1000, .seed = i};
        struct ladder_time time;
        struct problem problem;
        assert_int_equal(ladder_measure(ladder, &ask, INT64_MAX / 2, 5, &time, &problem), ERR_OK);
        assert_int_equal(time.runs, 5);
        assert_true(time.least_us > 0 && time.least_us <= time.median_us);
        assert_int_equal(ladder_measure(ladder, &ask, 0, 5, &time, &problem), ERR_OK);
        assert_int_equal(time.runs, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rung_is_within_its_bound_of_the_exact_sum),
        cmocka_unit_test(fixed_order_rungs_give_the_same_bits_in_every_order_of_blocks),
        cmocka_unit_test(atomic_rungs_give_other_bits_in_other_orders),
        cmocka_unit_test(what_is_not_finite_is_settled_as_exact_sums_are),
        cmocka_unit_test(a_sum_of_nothing_is_zero_and_exact),
        cmocka_unit_test(the_table_counts_what_the_emulation_counts),
        cmocka_unit_test(the_steps_of_a_tree_are_those_that_are_seen),
        cmocka_unit_test(neighbour_pairs_pay_with_banks_and_half_empty_warps),
        cmocka_unit_test(no_rung_but_race_has_a_fault),
        cmocka_unit_test(race_loses_additions),
        cmocka_unit_test(refusals_name_the_limit),
        cmocka_unit_test(measuring_keeps_to_its_runs),
    };
    return cmocka_run_group_tests(tests, open_ladder, close_ladder);
}
