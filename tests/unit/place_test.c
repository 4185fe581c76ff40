/* The cost model: what made-up devices would take, and which of them is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "gpu/place.h"

enum { INLINE_TERMS = 65536 };

/* A device that takes `fixed` ns, and so much for each byte, row and shared product of any type. */
static struct place_model made_up(double fixed, double byte, double row, double term)
{
    struct place_model model = {0};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < PLACE_KINDS; kind++) {
            struct place_cost *cost = &model.cost[dtype][kind];
            for (int i = 0; i < PLACE_SIZES; i++)
                cost->row_ns[i] = fixed + byte * (double)place_bytes[i];
            for (int i = 0; i < PLACE_ROW_LENGTHS; i++)
                cost->further_ns[i] = row;
            cost->term_ns = term;
        }
    return model;
}

static struct place_model made_up_cpu(void)
{
    return made_up(100, 0.1, 50, 0.5);
}

/* Five times as fast from pinned memory, hardly faster from other. */
static struct place_model made_up_cuda(void)
{
    struct place_model model = made_up(20000, 0.02, 1, 0.001);
    for (int i = 0; i < PLACE_SIZES; i++)
        model.unpinned_ns[i] = 0.1 * (double)place_bytes[i];
    return model;
}

static struct job_size row_of(enum dtype dtype, uint64_t n)
{
    return (struct job_size){
        .bytes = 2 * n * dtype_size(dtype),
        .term_count = n,
        .row_count = 1,
        .dtype = dtype,
        .accuracy = ACCURACY_EXACT,
    };
}

static void expect_ns(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * want))
        fail_msg("%.9g ns, not %.9g", got, want);
}

static int choose(double cpu_waiting, double cuda_waiting, const struct job_size *size)
{
    const struct place_model cpu = made_up_cpu(), cuda = made_up_cuda();
    const struct place_offer offer[] = {{&cpu, cpu_waiting}, {&cuda, cuda_waiting}};
    return place_choose(offer, 2, size, true);
}

/* --- times --- */

static void a_row_takes_what_rows_of_its_size_took(void **state)
{
    (void)state;
    struct place_model model = made_up(0, 0, 0, 0);
    for (int i = 0; i < PLACE_SIZES; i++) /* a bend at each measured size */
        model.cost[DTYPE_FLOAT32][PLACE_EXACT].row_ns[i] = 1000.0 * (i * i + 1);
    struct job_size size = row_of(DTYPE_FLOAT32, 1);
    expect_ns(place_time_ns(&model, &size, true), 1000); /* as the smallest that was measured */
    for (int i = 0; i < PLACE_SIZES; i++) {
        size = row_of(DTYPE_FLOAT32, place_bytes[i] / 8);
        expect_ns(place_time_ns(&model, &size, true), 1000.0 * (i * i + 1));
    }
    size = row_of(DTYPE_FLOAT32, (place_bytes[1] + place_bytes[2]) / 16); /* half way */
    expect_ns(place_time_ns(&model, &size, true), 3500);
    const int last = PLACE_SIZES - 1;
    size = row_of(DTYPE_FLOAT32, (2 * place_bytes[last] - place_bytes[last - 1]) / 8);
    const double *row_ns = model.cost[DTYPE_FLOAT32][PLACE_EXACT].row_ns;
    expect_ns(place_time_ns(&model, &size, true), 2 * row_ns[last] - row_ns[last - 1]);
}

static void each_type_and_accuracy_has_its_own_time(void **state)
{
    (void)state;
    struct place_model model = made_up(0, 0, 0, 0);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < PLACE_KINDS; kind++)
            model.cost[dtype][kind].row_ns[0] = 10 * dtype + kind + 1;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        const enum dtype dtype = (enum dtype)i;
        struct job_size size = row_of(dtype, 1);
        expect_ns(place_time_ns(&model, &size, true), 10 * i + PLACE_EXACT + 1);
        size.accuracy = ACCURACY_FAST;
        const enum place_kind kind = dtype_is_integer(dtype) ? PLACE_EXACT : PLACE_FAST;
        expect_ns(place_time_ns(&model, &size, true), 10 * i + (int)kind + 1);
    }
}

static void further_rows_and_shared_operands_are_added(void **state)
{
    (void)state;
    const struct place_model model = made_up(100, 0.5, 7, 0.25);
    const struct job_size apart = {
        .bytes = 8 * 1000 * 10, .term_count = 1000 * 10, .row_count = 10, .dtype = DTYPE_FLOAT32};
    expect_ns(place_time_ns(&model, &apart, true), 100 + 0.5 * 80000 + 9 * 7);
    const struct job_size each = {.bytes = 8 * 1000 * 10,
                                  .term_count = 1000 * 100, /* each row with each */
                                  .row_count = 100,
                                  .dtype = DTYPE_FLOAT32};
    expect_ns(place_time_ns(&model, &each, true), 100 + 0.5 * 80000 + 99 * 7 + 0.25 * 90000);
}

static void the_length_of_rows_decides_what_a_further_one_takes(void **state)
{
    (void)state;
    struct place_model model = made_up(0, 0, 0, 0);
    double *further = model.cost[DTYPE_FLOAT64][PLACE_EXACT].further_ns;
    further[0] = 10;
    further[1] = 30;
    static const struct {
        uint64_t n;
        double want;
    } rows[] = {{1, 10}, {16, 10}, {136, 20}, {256, 30}, {100000, 30}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_size size = row_of(DTYPE_FLOAT64, 2 * rows[i].n);
        size.row_count = 2;
        expect_ns(place_time_ns(&model, &size, true), rows[i].want);
    }
}

static void operands_that_are_not_pinned_take_longer(void **state)
{
    (void)state;
    const struct place_model cuda = made_up_cuda();
    const struct job_size size = row_of(DTYPE_FLOAT32, 1 << 20);
    const double bytes = (double)size.bytes;
    expect_ns(place_time_ns(&cuda, &size, true), 20000 + 0.02 * bytes);
    expect_ns(place_time_ns(&cuda, &size, false), 20000 + 0.12 * bytes);
    const struct place_cost *cost = &cuda.cost[DTYPE_FLOAT32][PLACE_EXACT];
    expect_ns(place_byte_ns(&cuda, cost, true), 0.02);
    expect_ns(place_byte_ns(&cuda, cost, false), 0.12);
}

static void noise_makes_no_time_negative_and_no_size_dearer_than_a_larger_one(void **state)
{
    (void)state;
    struct place_model model = made_up(1000, 0.1, -3, -0.1);
    double *row_ns = model.cost[DTYPE_INT8][PLACE_EXACT].row_ns;
    row_ns[0] = -1;
    row_ns[2] = 1e9; /* kept waiting: more than row_ns[3] */
    row_ns[4] = NAN; /* as of a division by nothing */
    for (int i = 0; i < PLACE_SIZES; i++)
        model.unpinned_ns[i] = -100;
    place_smooth(&model);
    assert_true(row_ns[0] == 0 && row_ns[2] == row_ns[3] && row_ns[4] == row_ns[5]);
    for (uint64_t n = 1; n < (uint64_t)1 << 40; n *= 2) {
        struct job_size fewer = row_of(DTYPE_INT8, n), more = row_of(DTYPE_INT8, 2 * n);
        double less_ns = place_time_ns(&model, &fewer, false);
        assert_true(less_ns >= 0);
        assert_true(place_time_ns(&model, &more, false) >= less_ns);
    }
    assert_true(model.cost[DTYPE_INT8][PLACE_EXACT].further_ns[0] == 0);
    assert_true(model.cost[DTYPE_INT8][PLACE_EXACT].term_ns == 0);
}

/* --- choosing --- */

static void small_rows_stay_and_large_ones_go(void **state)
{
    (void)state;
    const struct job_size small = row_of(DTYPE_FLOAT32, 1000),
                          large = row_of(DTYPE_FLOAT32, 1 << 20);
    assert_int_equal(choose(0, 0, &small), 0);
    assert_int_equal(choose(0, 0, &large), 1);
}

static void products_of_shared_operands_go_although_the_bytes_are_few(void **state)
{
    (void)state;
    struct job_size size = row_of(DTYPE_FLOAT32, 4000);
    assert_int_equal(choose(0, 0, &size), 0);
    size.term_count = 4000 * 1000;
    size.row_count = 1000;
    assert_int_equal(choose(0, 0, &size), 1);
}

static void of_equal_offers_the_first_is_taken(void **state)
{
    (void)state;
    const struct place_model model = made_up_cpu();
    const struct place_offer offer[] = {{&model, 5}, {&model, 5}, {&model, 5}};
    const struct job_size size = row_of(DTYPE_FLOAT32, 1000);
    assert_int_equal(place_choose(offer, 3, &size, true), 0);
}

static void what_waits_shifts_the_choice(void **state)
{
    (void)state;
    const struct job_size small = row_of(DTYPE_FLOAT32, 1000),
                          large = row_of(DTYPE_FLOAT32, 1 << 20);
    assert_int_equal(choose(30000, 0, &small), 1);
    assert_int_equal(choose(30000, 30000, &small), 0);
    assert_int_equal(choose(0, 700000, &large), 0);
    assert_int_equal(choose(100000, 700000, &large), 1);
}

static void the_least_loaded_of_like_devices_is_taken(void **state)
{
    (void)state;
    const struct place_model cpu = made_up_cpu(), cuda = made_up_cuda();
    const struct place_offer offer[] = {{&cpu, 0}, {&cuda, 9000}, {&cuda, 2000}, {&cuda, 3000}};
    const struct job_size size = row_of(DTYPE_FLOAT32, 1 << 20);
    assert_int_equal(place_choose(offer, 4, &size, true), 2);
}

static void a_device_that_is_lost_is_not_chosen(void **state)
{
    (void)state;
    const struct place_model cpu = made_up_cpu(), cuda = made_up_cuda();
    const struct place_offer offer[] = {{&cpu, 0}, {NULL, 0}, {&cuda, 0}};
    const struct job_size size = row_of(DTYPE_FLOAT32, 1 << 20);
    assert_int_equal(place_choose(offer, 3, &size, true), 2);
    assert_int_equal(place_choose(offer, 2, &size, true), 0);
    assert_int_equal(place_choose(&offer[1], 1, &size, true), -1);
}

static void a_job_loads_a_device_by_what_it_takes_beyond_the_smallest(void **state)
{
    (void)state;
    const struct place_model model = made_up(20000, 0.02, 0, 0);
    const struct job_size size = row_of(DTYPE_FLOAT32, place_bytes[3] / 8);
    const double bytes = (double)place_bytes[3];
    expect_ns(place_load_ns(&model, &size, true), 0.02 * (bytes - (double)place_bytes[0]));
}

/* --- the crossover --- */

static uint64_t crossover_of(const struct place_model *inlined, const struct place_model *queued,
                             const struct place_model *cuda, enum dtype dtype, bool is_pinned)
{
    const struct place_cpu cpu = {inlined, queued, INLINE_TERMS};
    const struct job_size kind = {.row_count = 1, .dtype = dtype, .accuracy = ACCURACY_EXACT};
    return place_crossover(&cpu, cuda, &kind, is_pinned);
}

/* 100 + 0.1 bytes = 20000 + 0.02 bytes at 248750 bytes, which are 31093.75 pairs of float32. */
static void the_crossover_is_where_times_are_equal(void **state)
{
    (void)state;
    const struct place_model cpu = made_up_cpu(), cuda = made_up_cuda();
    assert_int_equal(crossover_of(&cpu, &cpu, &cuda, DTYPE_FLOAT32, true), 31094 * 8);
    assert_int_equal(crossover_of(&cpu, &cpu, &cuda, DTYPE_FLOAT64, true), 15547 * 16);
    struct job_size size = row_of(DTYPE_FLOAT32, 31093);
    assert_int_equal(choose(0, 0, &size), 0);
    size = row_of(DTYPE_FLOAT32, 31094);
    assert_int_equal(choose(0, 0, &size), 1);
}

/* 65536 pairs of int8 are computed in no queue and take 13207 ns; one more is, and 18207. */
static void the_way_through_the_queue_may_be_what_decides(void **state)
{
    (void)state;
    const struct place_model inlined = made_up_cpu(), queued = made_up(5100, 0.1, 50, 0.5);
    const struct place_model cuda = made_up(18000, 0, 0, 0);
    assert_int_equal(crossover_of(&inlined, &queued, &cuda, DTYPE_INT8, true),
                     (INLINE_TERMS + 1) * 2);
}

/* CUDA wins from 15307 bytes on while the CPU computes in no queue, and loses again in one, up to
 * where 1000 + 0.1 bytes = 20000 + 0.02 bytes. */
static void the_crossover_is_the_last_one(void **state)
{
    (void)state;
    const struct place_model slow = made_up(5000, 1, 0, 0), quick = made_up(1000, 0.1, 0, 0);
    const struct place_model cuda = made_up(20000, 0.02, 0, 0);
    assert_int_equal(crossover_of(&slow, &quick, &cuda, DTYPE_INT8, true), 237502);
}

static void a_device_that_never_wins_has_no_crossover(void **state)
{
    (void)state;
    const struct place_model cpu = made_up_cpu(), cuda = made_up_cuda();
    assert_true(crossover_of(&cpu, &cpu, &cuda, DTYPE_FLOAT32, false) == UINT64_MAX);
}

static void a_device_that_always_wins_does_so_from_one_element_on(void **state)
{
    (void)state;
    const struct place_model cpu = made_up_cpu(), cuda = made_up(1, 0, 0, 0);
    assert_int_equal(crossover_of(&cpu, &cpu, &cuda, DTYPE_COMPLEX128, true), 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_takes_what_rows_of_its_size_took),
        cmocka_unit_test(each_type_and_accuracy_has_its_own_time),
        cmocka_unit_test(further_rows_and_shared_operands_are_added),
        cmocka_unit_test(the_length_of_rows_decides_what_a_further_one_takes),
        cmocka_unit_test(operands_that_are_not_pinned_take_longer),
        cmocka_unit_test(noise_makes_no_time_negative_and_no_size_dearer_than_a_larger_one),
        cmocka_unit_test(small_rows_stay_and_large_ones_go),
        cmocka_unit_test(products_of_shared_operands_go_although_the_bytes_are_few),
        cmocka_unit_test(of_equal_offers_the_first_is_taken),
        cmocka_unit_test(what_waits_shifts_the_choice),
        cmocka_unit_test(the_least_loaded_of_like_devices_is_taken),
        cmocka_unit_test(a_device_that_is_lost_is_not_chosen),
        cmocka_unit_test(a_job_loads_a_device_by_what_it_takes_beyond_the_smallest),
        cmocka_unit_test(the_crossover_is_where_times_are_equal),
        cmocka_unit_test(the_way_through_the_queue_may_be_what_decides),
        cmocka_unit_test(the_crossover_is_the_last_one),
        cmocka_unit_test(a_device_that_never_wins_has_no_crossover),
        cmocka_unit_test(a_device_that_always_wins_does_so_from_one_element_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
