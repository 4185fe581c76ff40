/* What the emulation sees of kernels: planted faults, bank conflicts, lockstep, traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "tests/emu/planted.h"

enum { THREADS = 128, LIMIT = 1 << 16, SEEDS = 20 };

static float data[EMU_THREADS_MAX], result[EMU_THREADS_MAX];

static int data_fill(void **state)
{
    (void)state;
    for (int i = 0; i < EMU_THREADS_MAX; i++)
        data[i] = (float)(i + 1);
    return 0;
}

static struct emu_trace *trace_of(size_t limit, uint32_t fault_limit)
{
    struct emu_trace *trace = NULL;
    assert_true(trace_create(&trace, limit, fault_limit));
    return trace;
}

/* One kernel with a trace of its own, which the caller destroys. */
static struct emu_trace *watched_run(enum planted which, uint32_t blocks, uint32_t threads,
                                     uint32_t count)
{
    struct emu_trace *trace = trace_of(LIMIT, 1);
    const struct emu_grid grid = {.blocks = blocks, .threads = threads, .seed = 3, .trace = trace};
    memset(result, 0, sizeof result);
    bool is_done = planted_run(which, &grid, data, result, count);
    assert_int_equal(is_done, !trace->is_stopped);
    assert_false(trace->is_cut);
    return trace;
}

static void check_clean(enum planted which, uint32_t blocks, uint32_t threads, uint32_t count)
{
    struct emu_trace *trace = watched_run(which, blocks, threads, count);
    if (trace->fault_count > 0)
        fail_msg("kernel %d, %u threads: %s", (int)which, threads, trace->fault[0].text);
    trace_destroy(trace);
}

/* Runs a kernel that is stopped by one fault of this kind. */
static struct emu_fault fault_of(enum planted which, uint32_t blocks, uint32_t threads,
                                 uint32_t count, enum emu_fault_kind kind)
{
    struct emu_trace *trace = watched_run(which, blocks, threads, count);
    assert_true(trace->is_stopped);
    assert_int_equal(trace->fault_count, 1);
    struct emu_fault fault = trace->fault[0];
    assert_int_equal(fault.kind, kind);
    trace_destroy(trace);
    return fault;
}

/* --- faults --- */

static void kernels_that_are_right_are_clean(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 32, 64, 128, 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_clean(PLANTED_TREE, 3, sizes[i], 0);
        check_clean(PLANTED_TREE_DOUBLE, 2, sizes[i], 0);
        check_clean(PLANTED_SHIFT, 1, sizes[i], 2);
        check_clean(PLANTED_ADD_ATOMIC, 3, sizes[i], 0);
        check_clean(PLANTED_ADD_SHARED, 3, sizes[i], 3);
        check_clean(PLANTED_BROADCAST, 1, sizes[i], 0);
        check_clean(PLANTED_UNWRITTEN, 1, sizes[i], THREADS * 10);
    }
    check_clean(PLANTED_LANES, 1, THREADS, 0);
}

static void a_missing_barrier_is_a_race(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct emu_trace *trace = trace_of(LIMIT, 1);
        const struct emu_grid grid = {
            .blocks = 1, .threads = THREADS, .seed = seed, .trace = trace};
        assert_false(planted_run(PLANTED_TREE_NO_BARRIER, &grid, data, result, 0));
        assert_int_equal(trace->fault[0].kind, EMU_RACE);
        assert_int_equal(trace->fault[0].interval, 1);
        assert_int_not_equal(trace->fault[0].by[0].thread, trace->fault[0].by[1].thread);
        trace_destroy(trace);
    }
}

/* The fault's sentence and its fields tell the same. */
static void a_shift_without_barriers_races_with_the_neighbour(void **state)
{
    (void)state;
    struct emu_fault fault = fault_of(PLANTED_SHIFT, 1, THREADS, 0, EMU_RACE);
    assert_int_equal(fault.array, 0);
    assert_int_equal(fault.interval, 1);
    const uint32_t reader = fault.by[0].access == EMU_READ ? 0 : 1;
    assert_int_equal(fault.by[reader].access, EMU_READ);
    assert_int_equal(fault.by[!reader].access, EMU_WRITE);
    assert_int_equal(fault.by[reader].thread, fault.index - 1);
    assert_int_equal(fault.by[!reader].thread, fault.index);
    assert_non_null(strstr(fault.text, "no barrier lies between"));
    assert_non_null(strstr(fault.text, "cell["));
}

static void with_room_for_faults_every_cell_that_raced_is_told(void **state)
{
    (void)state;
    bool has_raced[THREADS + 1] = {false};
    struct emu_trace *trace = trace_of(LIMIT, 2 * THREADS);
    const struct emu_grid grid = {.blocks = 1, .threads = THREADS, .seed = 1, .trace = trace};
    assert_true(planted_run(PLANTED_SHIFT, &grid, data, result, 0));
    assert_int_equal(trace->fault_count, THREADS - 1);
    for (uint32_t i = 0; i < trace->fault_count; i++) {
        assert_int_equal(trace->fault[i].kind, EMU_RACE);
        has_raced[trace->fault[i].index] = true;
    }
    for (int cell = 0; cell <= THREADS; cell++)
        assert_int_equal(has_raced[cell], cell > 0 && cell < THREADS);
    trace_destroy(trace);
}

static void a_barrier_in_a_branch_stops_the_kernel(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct emu_trace *trace = trace_of(LIMIT, 1);
        const struct emu_grid grid = {.blocks = 2, .threads = 64, .seed = seed, .trace = trace};
        assert_false(planted_run(PLANTED_TREE_BRANCH, &grid, data, result, 0));
        assert_int_equal(trace->fault[0].kind, EMU_BARRIER);
        assert_int_equal(trace->waiting[0], 0xffffffff);
        assert_int_equal(trace->waiting[1], 0);
        assert_int_equal(trace->ended[0], 0);
        assert_int_equal(trace->ended[1], 0xffffffff);
        assert_non_null(strstr(trace->fault[0].text, "of 64 threads 32 wait at a barrier"));
        assert_non_null(strstr(trace->fault[0].text, "32 have ended (the first is 32)"));
        trace_destroy(trace);
    }
}

static void operations_of_a_warp_that_not_all_lanes_reach_stop_the_kernel(void **state)
{
    (void)state;
    struct emu_fault fault = fault_of(PLANTED_LANES_LEAVE, 1, 64, 0, EMU_BARRIER);
    assert_non_null(strstr(fault.text, "62 wait for lanes of their warp"));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct emu_trace *trace = trace_of(LIMIT, 1);
        const struct emu_grid grid = {.blocks = 1, .threads = 64, .seed = seed, .trace = trace};
        assert_false(planted_run(PLANTED_LANES_PART, &grid, data, result, 0));
        assert_int_equal(trace->fault[0].kind, EMU_BARRIER);
        assert_int_equal(trace->waiting[0], 0xffffffff);
        trace_destroy(trace);
    }
}

static void what_nobody_wrote_is_told_when_it_is_read(void **state)
{
    (void)state;
    struct emu_fault fault = fault_of(PLANTED_UNWRITTEN, 2, 64, 40, EMU_UNWRITTEN);
    assert_int_equal(fault.index, 40);
    assert_int_equal(fault.by[0].thread, 0);
    assert_int_equal(fault.by[0].access, EMU_READ);
    fault = fault_of(PLANTED_UNWRITTEN_ATOMIC, 1, 32, 0, EMU_UNWRITTEN);
    assert_int_equal(fault.by[0].access, EMU_ATOMIC);
}

/* The block before wrote it, which is another block's shared memory. */
static void what_another_block_wrote_is_unwritten(void **state)
{
    (void)state;
    struct emu_trace *trace = trace_of(LIMIT, 10);
    const struct emu_grid grid = {.blocks = 3, .threads = 64, .trace = trace};
    assert_true(planted_run(PLANTED_UNWRITTEN_ATOMIC, &grid, data, result, 0));
    assert_int_equal(trace->fault_count, 3);
    trace_destroy(trace);
}

static void plain_additions_to_one_variable_race(void **state)
{
    (void)state;
    (void)fault_of(PLANTED_ADD, 1, 32, 0, EMU_RACE);
    (void)fault_of(PLANTED_ADD, 1, 2, 0, EMU_RACE);
    check_clean(PLANTED_ADD, 1, 1, 0);
}

static void blocks_are_not_ordered(void **state)
{
    (void)state;
    check_clean(PLANTED_SAME_CELL, 1, 32, 0);
    struct emu_fault fault = fault_of(PLANTED_SAME_CELL, 2, 32, 0, EMU_RACE);
    assert_int_not_equal(fault.by[0].block, fault.by[1].block);
    assert_non_null(strstr(fault.text, "nothing orders threads of different blocks"));
    fault = fault_of(PLANTED_ADD, 2, 1, 0, EMU_RACE);
    assert_int_not_equal(fault.by[0].block, fault.by[1].block);
}

static void atomic_and_plain_accesses_race(void **state)
{
    (void)state;
    struct emu_fault fault = fault_of(PLANTED_ADD_THEN_READ, 1, 32, 0, EMU_RACE);
    assert_int_not_equal(fault.by[0].access, fault.by[1].access);
}

static void a_barrier_of_the_warp_orders_its_lanes(void **state)
{
    (void)state;
    check_clean(PLANTED_LANES, 1, 256, 0);
    (void)fault_of(PLANTED_LANES_NO_BARRIER, 1, 64, 0, EMU_RACE);
}

static void an_access_past_the_named_cells_stops_the_kernel(void **state)
{
    (void)state;
    struct emu_fault fault = fault_of(PLANTED_OUTSIDE, 1, 64, 64, EMU_OUTSIDE);
    assert_int_equal(fault.by[0].thread, 1);
}

static void a_stopped_kernel_leaves_the_emulation_usable(void **state)
{
    (void)state;
    static const enum planted wrong[] = {PLANTED_TREE_BRANCH, PLANTED_LANES_LEAVE, PLANTED_ADD,
                                         PLANTED_UNWRITTEN, PLANTED_OUTSIDE};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            trace_destroy(watched_run(wrong[i], 2, 256, 100));
            const struct emu_grid grid = {.blocks = 2, .threads = 512, .is_lockstep = round == 1};
            assert_true(planted_run(PLANTED_TREE, &grid, data, result, 0));
            assert_true(result[0] == 512 * 513 / 2 && result[1] == result[0]);
        }
}

static void a_stopped_trace_stops_what_comes_after(void **state)
{
    (void)state;
    struct emu_trace *trace = watched_run(PLANTED_TREE_BRANCH, 1, 64, 0);
    const struct emu_grid grid = {.blocks = 1, .threads = 64, .trace = trace};
    result[0] = -1;
    assert_false(planted_run(PLANTED_TREE, &grid, data, result, 0));
    assert_true(result[0] == -1);
    trace_clear(trace);
    assert_true(planted_run(PLANTED_TREE, &grid, data, result, 0));
    assert_int_equal(trace->fault_count, 0);
    trace_destroy(trace);
}

/* --- bank conflicts --- */

static uint64_t conflicts_of(enum planted which, uint32_t threads, uint32_t count)
{
    struct emu_trace *trace = watched_run(which, 1, threads, count);
    assert_int_equal(trace->fault_count, 0);
    uint64_t conflicts = trace->bank_conflicts;
    trace_destroy(trace);
    return conflicts;
}

static void banks_serve_different_words_one_after_another(void **state)
{
    (void)state;
    static const struct {
        uint32_t stride, conflicts;
    } known[] = {{1, 0}, {2, 1}, {3, 0}, {4, 3}, {8, 7}, {31, 0}, {32, 31}, {33, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(conflicts_of(PLANTED_STRIDE, 32, known[i].stride), known[i].conflicts);
        assert_int_equal(conflicts_of(PLANTED_STRIDE, 96, known[i].stride), 3 * known[i].conflicts);
    }
}

static void a_word_for_all_lanes_is_read_once(void **state)
{
    (void)state;
    assert_int_equal(conflicts_of(PLANTED_BROADCAST, 64, 0), 0);
}

/* Each half-warp asks for 32 words. */
static void doubles_go_in_half_warps(void **state)
{
    (void)state;
    assert_int_equal(conflicts_of(PLANTED_STRIDE_DOUBLE, 32, 1), 0);
    assert_int_equal(conflicts_of(PLANTED_STRIDE_DOUBLE, 32, 2), 2);
    assert_int_equal(conflicts_of(PLANTED_STRIDE_DOUBLE, 32, 16), 30);
    assert_int_equal(conflicts_of(PLANTED_STRIDE_DOUBLE, 16, 16), 15);
}

/* --- lockstep --- */

static float added(uint32_t blocks, uint32_t threads, bool is_lockstep, uint64_t seed,
                   enum planted which)
{
    const struct emu_grid grid = {
        .blocks = blocks, .threads = threads, .is_lockstep = is_lockstep, .seed = seed};
    result[0] = 0;
    assert_true(planted_run(which, &grid, data, result, 0));
    return result[0];
}

static void in_lockstep_a_warp_adds_to_one_variable_once(void **state)
{
    (void)state;
    assert_true(added(1, 32, false, 1, PLANTED_ADD) == 32);
    assert_true(added(1, 32, true, 1, PLANTED_ADD) == 1);
    assert_true(added(100, 32, true, 1, PLANTED_ADD) == 100);
    assert_true(added(5, 256, true, 1, PLANTED_ADD_ATOMIC) == 5 * 256);
}

static void in_lockstep_warps_lose_each_others_additions_as_the_seed_says(void **state)
{
    (void)state;
    bool differs = false;
    float first = added(10, 256, true, 0, PLANTED_ADD);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        float sum = added(10, 256, true, seed, PLANTED_ADD);
        assert_true(sum >= 10 && sum < 10 * 256 / 32);
        assert_true(sum == added(10, 256, true, seed, PLANTED_ADD));
        differs = differs || sum != first;
    }
    assert_true(differs);
}

static bool is_shifted(void)
{
    for (int i = 0; i < THREADS; i++)
        if (result[i] != (i + 1 < THREADS ? data[i + 1] : 0))
            return false;
    return true;
}

static void in_lockstep_a_shift_needs_its_barriers(void **state)
{
    (void)state;
    int right[3] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (uint32_t barriers = 0; barriers < 3; barriers++) {
            const struct emu_grid grid = {
                .blocks = 1, .threads = THREADS, .is_lockstep = true, .seed = seed};
            assert_true(planted_run(PLANTED_SHIFT, &grid, data, result, barriers));
            right[barriers] += is_shifted();
        }
    assert_true(right[0] < SEEDS);
    assert_int_equal(right[1], SEEDS); /* nobody reads another's cell behind the second */
    assert_int_equal(right[2], SEEDS);
}

/* Beyond a barrier all lanes start together, also the last that came to it. */
static void in_lockstep_one_warp_shifts_without_barriers(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct emu_grid grid = {
            .blocks = 1, .threads = EMU_WARP, .is_lockstep = true, .seed = seed};
        assert_true(planted_run(PLANTED_SHIFT, &grid, data, result, 0));
        for (int i = 0; i < EMU_WARP; i++)
            assert_true(result[i] == (i + 1 < EMU_WARP ? data[i + 1] : 0));
    }
}

static void lockstep_changes_nothing_of_a_kernel_that_is_right(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct emu_trace *trace = trace_of(LIMIT, 1);
        const struct emu_grid grid = {
            .blocks = 3, .threads = 256, .is_lockstep = true, .seed = seed, .trace = trace};
        assert_true(planted_run(PLANTED_TREE, &grid, data, result, 0));
        for (int block = 0; block < 3; block++)
            assert_true(result[block] == 256 * 257 / 2);
        assert_int_equal(trace->barriers, 3 * 9);
        trace_destroy(trace);
    }
}

/* --- traces --- */

struct expected_event {
    enum emu_access access;
    uint32_t thread, index;
    double value;
};

/* Threads run in any order; within one the order is the program's. */
static void check_events(const struct emu_trace *trace, const struct emu_interval *interval,
                         const struct expected_event *expected, size_t count)
{
    size_t found = 0;
    for (uint32_t thread = 0; thread < 4; thread++)
        for (size_t i = 0; i < interval->event_count; i++) {
            const struct emu_event *event = &trace->event[interval->first_event + i];
            if (event->thread != thread)
                continue;
            assert_true(found < count);
            assert_int_equal(event->thread, expected[found].thread);
            assert_int_equal(event->access, expected[found].access);
            assert_int_equal(event->index, expected[found].index);
            assert_true(event->value == expected[found].value);
            assert_int_equal(event->block, 0);
            assert_int_equal(event->interval, interval->number);
            found++;
        }
    assert_int_equal(found, count);
}

static void check_cells(const struct emu_trace *trace, const struct emu_interval *interval,
                        const double *expected)
{
    assert_int_equal(interval->cell_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(trace->cell[interval->first_cell + (size_t)i].is_written);
        assert_true(trace->cell[interval->first_cell + (size_t)i].value == expected[i]);
    }
}

/* 1 2 3 4 -> 4 6 3 4 -> 10 6 3 4 */
static void the_trace_of_a_small_tree_is_what_a_hand_writes(void **state)
{
    (void)state;
    static const struct expected_event load[] = {
        {EMU_WRITE, 0, 0, 1}, {EMU_WRITE, 1, 1, 2}, {EMU_WRITE, 2, 2, 3}, {EMU_WRITE, 3, 3, 4}};
    static const struct expected_event first[] = {{EMU_READ, 0, 2, 3},  {EMU_READ, 0, 0, 1},
                                                  {EMU_WRITE, 0, 0, 4}, {EMU_READ, 1, 3, 4},
                                                  {EMU_READ, 1, 1, 2},  {EMU_WRITE, 1, 1, 6}};
    static const struct expected_event second[] = {
        {EMU_READ, 0, 1, 6}, {EMU_READ, 0, 0, 4}, {EMU_WRITE, 0, 0, 10}};
    static const struct expected_event last[] = {{EMU_READ, 0, 0, 10}, {EMU_WRITE, 0, 0, 10}};
    static const double cells[4][4] = {{1, 2, 3, 4}, {4, 6, 3, 4}, {10, 6, 3, 4}, {10, 6, 3, 4}};
    static const uint32_t active[4] = {0xf, 0x3, 0x1, 0x1};

    struct emu_trace *trace = watched_run(PLANTED_TREE, 1, 4, 0);
    assert_int_equal(trace->interval_count, 4);
    check_events(trace, &trace->interval[0], load, 4);
    check_events(trace, &trace->interval[1], first, 6);
    check_events(trace, &trace->interval[2], second, 3);
    check_events(trace, &trace->interval[3], last, 2);
    for (uint32_t i = 0; i < 4; i++) {
        const struct emu_interval *interval = &trace->interval[i];
        check_cells(trace, interval, cells[i]);
        assert_int_equal(interval->number, i);
        assert_int_equal(interval->active[0], active[i]);
        assert_int_equal(interval->active_warps, 1);
        assert_int_equal(interval->ends_at_barrier, i < 3);
    }
    assert_int_equal(trace->barriers, 3);
    assert_int_equal(trace->atomics, 0);
    assert_int_equal(trace->array_count, 2);
    assert_string_equal(trace->array[0].name, "cell");
    assert_true(result[0] == 10);
    trace_destroy(trace);
}

static void cells_that_were_never_written_are_known(void **state)
{
    (void)state;
    struct emu_trace *trace = trace_of(LIMIT, 1);
    const struct emu_grid grid = {.blocks = 1, .threads = 64, .trace = trace};
    assert_false(planted_run(PLANTED_UNWRITTEN, &grid, data, result, 5));
    const struct emu_cell *cell = &trace->cell[trace->interval[0].first_cell];
    for (int i = 0; i < 64; i++)
        assert_int_equal(cell[i].is_written, i != 5);
    assert_false(trace->interval[1].ends_at_barrier); /* it was stopped */
    trace_destroy(trace);
}

static void atomics_and_barriers_of_all_blocks_are_counted(void **state)
{
    (void)state;
    struct emu_trace *trace = watched_run(PLANTED_ADD_SHARED, 3, 64, 5);
    assert_int_equal(trace->atomics, 3 * 64 * 5);
    assert_int_equal(trace->barriers, 3 * 2);
    assert_int_equal(trace->interval_count, 3 * 3);
    for (int block = 0; block < 3; block++)
        assert_true(result[block] == 64 * 5);
    trace_destroy(trace);
}

/* A grid waits for the one before it, so what they both touch is in order. */
static void launches_add_to_one_trace(void **state)
{
    (void)state;
    struct emu_trace *trace = watched_run(PLANTED_TREE, 2, 64, 0);
    const size_t events = trace->event_count;
    const struct emu_grid grid = {.blocks = 2, .threads = 64, .trace = trace};
    assert_true(planted_run(PLANTED_TREE, &grid, data, result, 0));
    assert_int_equal(trace->fault_count, 0);
    assert_int_equal(trace->launches, 2);
    assert_int_equal(trace->barriers, 2 * 2 * 7);
    assert_int_equal(trace->event_count, 2 * events);
    assert_int_equal(trace->interval[trace->interval_count - 1].launch, 1);
    trace_destroy(trace);
}

/* Counts and faults go on; what is kept is whole. */
static void a_trace_ends_at_its_limit_and_says_so(void **state)
{
    (void)state;
    struct emu_trace *trace = trace_of(1000, 1);
    const struct emu_grid grid = {.blocks = 20, .threads = 64, .trace = trace};
    assert_true(planted_run(PLANTED_TREE, &grid, data, result, 0));
    assert_true(trace->is_cut);
    assert_true(trace->event_count + trace->interval_count + trace->cell_count <= 1000);
    assert_true(trace->interval_count > 0);
    for (size_t i = 0; i < trace->interval_count; i++) {
        const struct emu_interval *interval = &trace->interval[i];
        assert_true(interval->first_event + interval->event_count <= trace->event_count);
        assert_true(interval->first_cell + interval->cell_count <= trace->cell_count);
        assert_int_equal(interval->cell_count, 64);
    }
    assert_int_equal(trace->barriers, 20 * 7);
    assert_false(planted_run(PLANTED_TREE_NO_BARRIER, &grid, data, result, 0));
    assert_int_equal(trace->fault[0].kind, EMU_RACE);
    trace_destroy(trace);
}

/* --- callers --- */

static void *caller(void *argument)
{
    bool *is_right = argument;
    *is_right = true;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        float sums[4] = {0};
        struct emu_trace *trace = trace_of(LIMIT, 1);
        const struct emu_grid grid = {
            .blocks = 4, .threads = 256, .seed = seed, .is_lockstep = seed % 2, .trace = trace};
        *is_right = planted_run(PLANTED_TREE, &grid, data, sums, 0) && *is_right;
        for (int block = 0; block < 4; block++)
            *is_right = sums[block] == 256 * 257 / 2 && *is_right;
        (void)planted_run(PLANTED_TREE_BRANCH, &grid, data, sums, 0);
        *is_right = trace->is_stopped && *is_right;
        trace_destroy(trace);
    }
    return NULL;
}

static void threads_of_the_process_take_turns(void **state)
{
    (void)state;
    enum { CALLERS = 3 };
    pthread_t thread[CALLERS];
    bool is_right[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, caller, &is_right[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_true(is_right[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_that_are_right_are_clean),
        cmocka_unit_test(a_missing_barrier_is_a_race),
        cmocka_unit_test(a_shift_without_barriers_races_with_the_neighbour),
        cmocka_unit_test(with_room_for_faults_every_cell_that_raced_is_told),
        cmocka_unit_test(a_barrier_in_a_branch_stops_the_kernel),
        cmocka_unit_test(operations_of_a_warp_that_not_all_lanes_reach_stop_the_kernel),
        cmocka_unit_test(what_nobody_wrote_is_told_when_it_is_read),
        cmocka_unit_test(what_another_block_wrote_is_unwritten),
        cmocka_unit_test(plain_additions_to_one_variable_race),
        cmocka_unit_test(blocks_are_not_ordered),
        cmocka_unit_test(atomic_and_plain_accesses_race),
        cmocka_unit_test(a_barrier_of_the_warp_orders_its_lanes),
        cmocka_unit_test(an_access_past_the_named_cells_stops_the_kernel),
        cmocka_unit_test(a_stopped_kernel_leaves_the_emulation_usable),
        cmocka_unit_test(a_stopped_trace_stops_what_comes_after),
        cmocka_unit_test(banks_serve_different_words_one_after_another),
        cmocka_unit_test(a_word_for_all_lanes_is_read_once),
        cmocka_unit_test(doubles_go_in_half_warps),
        cmocka_unit_test(in_lockstep_a_warp_adds_to_one_variable_once),
        cmocka_unit_test(in_lockstep_warps_lose_each_others_additions_as_the_seed_says),
        cmocka_unit_test(in_lockstep_a_shift_needs_its_barriers),
        cmocka_unit_test(in_lockstep_one_warp_shifts_without_barriers),
        cmocka_unit_test(lockstep_changes_nothing_of_a_kernel_that_is_right),
        cmocka_unit_test(the_trace_of_a_small_tree_is_what_a_hand_writes),
        cmocka_unit_test(cells_that_were_never_written_are_known),
        cmocka_unit_test(atomics_and_barriers_of_all_blocks_are_counted),
        cmocka_unit_test(launches_add_to_one_trace),
        cmocka_unit_test(a_trace_ends_at_its_limit_and_says_so),
        cmocka_unit_test(threads_of_the_process_take_turns),
    };
    return cmocka_run_group_tests(tests, data_fill, NULL);
}
