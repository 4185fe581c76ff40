/* The kernel ladder on every CUDA device, beside its emulation; skipped by name where there is
 * none.
 *
 *   ladder_device_test [LARGEST]      n of the longest sums; the emulated device is slow
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <float.h>
#include <stdio.h>

#include "tests/ladder.h"

#ifdef GPU_EMU_CUDA_RUNTIME_API_H
enum { IS_EMULATED = true };
#else
enum { IS_EMULATED = false };
#endif

static uint64_t largest = 1 << 21;

/* Each of the devices in turn, or the test is skipped. */
static void on_every_device(void (*check)(struct ladder *device))
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        skip();
    for (int index = 0; index < count; index++) {
        struct ladder *device = NULL;
        struct problem problem;
        problem_clear(&problem);
        if (ladder_open(&device, index, &problem) != ERR_OK)
            fail_msg("device %d: %s", index, problem.detail);
        check(device);
        ladder_close(device);
    }
}

static void check_rungs(struct ladder *device)
{
    rungs_are_right(device, largest);
}

static void every_rung_is_within_its_bound_of_the_exact_sum(void **state)
{
    (void)state;
    on_every_device(check_rungs);
}

static void check_repeats(struct ladder *device)
{
    fixed_rungs_repeat(device, 4);
}

static void fixed_order_rungs_give_the_same_bits_in_every_run(void **state)
{
    (void)state;
    on_every_device(check_repeats);
}

static void check_bits(struct ladder *device, struct ladder *emulated, const struct rung *rung,
                       enum dtype dtype, enum data data, uint64_t n, uint32_t threads)
{
    static double a[4097], b[4097];
    struct problem problem;
    const struct ladder_ask ask = {
        .rung = rung, .dtype = dtype, .a = a, .b = b, .n = n, .threads = threads};
    if (rung->order == RUNG_ORDER_ANY || rung_check(rung, dtype, n, threads, &problem) != ERR_OK)
        return;
    operands_draw(a, b, dtype, data, n);
    const double real = run_ask(device, &ask).value.sum, other = run_ask(emulated, &ask).value.sum;
    if (memcmp(&real, &other, sizeof real) != 0)
        fail_msg("%s, %s, n = %llu, blocks of %u, data %d: %a, emulated %a", rung->name,
                 dtype_name(dtype), (unsigned long long)n, threads, (int)data, real, other);
}

static void check_emulation(struct ladder *device)
{
    const uint64_t lengths[] = {1, 2, 31, 100, 255, 257, 1000, 1024, 4097};
    struct ladder *emulated = NULL;
    struct problem problem;
    size_t count = 0;
    const struct rung *rungs = ladder_rows(&count);
    assert_int_equal(ladder_open(&emulated, LADDER_EMULATED, &problem), ERR_OK);
    for (size_t r = 0; r < count; r++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
            for (size_t i = 0; i < BLOCK_COUNT; i++)
                for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++)
                    check_bits(device, emulated, &rungs[r], dtype,
                               (enum data)((k + i) % DATA_COUNT), lengths[k], ladder_blocks[i]);
    ladder_close(emulated);
}

static void fixed_order_rungs_give_the_bits_of_the_emulation(void **state)
{
    (void)state;
    on_every_device(check_emulation);
}

static void check_race(struct ladder *device)
{
    race_loses(device, 100000);
}

static void race_loses_additions(void **state)
{
    (void)state;
    if (IS_EMULATED) /* one thread after another there; in lockstep: ladder_test */
        skip();
    on_every_device(check_race);
}

static void check_measuring(struct ladder *device)
{
    const struct rung *const rungs[] = {ladder_find("block-atomic"), ladder_find("two-pass"),
                                        ladder_find("exact")};
    for (size_t i = 0; i < sizeof rungs / sizeof rungs[0]; i++) {
        const struct ladder_ask ask = {.rung = rungs[i], .dtype = DTYPE_FLOAT32, .n = largest};
        struct ladder_time time;
        struct problem problem;
        problem_clear(&problem);
        if (ladder_measure(device, &ask, INT64_MAX / 2, 3, &time, &problem) != ERR_OK)
            fail_msg("%s", problem.detail);
        assert_int_equal(time.runs, 3);
        assert_true(time.least_us > 0 && time.least_us <= time.median_us);
    }
}

static void measuring_brings_its_own_operands(void **state)
{
    (void)state;
    on_every_device(check_measuring);
}

/* Two operands of more than any device has. */
static void check_memory(struct ladder *device)
{
    const struct ladder_ask ask = {
        .rung = ladder_find("exact"), .dtype = DTYPE_FLOAT64, .n = (uint64_t)1 << 46};
    struct ladder_time time;
    struct problem problem;
    problem_clear(&problem);
    assert_int_equal(ladder_measure(device, &ask, 0, 1, &time, &problem), ERR_NOMEM);
    assert_true(problem.detail[0] != '\0');
    race_loses(device, 1000); /* and goes on */
}

static void too_little_memory_is_no_device_fault(void **state)
{
    (void)state;
    if (IS_EMULATED) /* its memory is the process's */
        skip();
    on_every_device(check_memory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rung_is_within_its_bound_of_the_exact_sum),
        cmocka_unit_test(fixed_order_rungs_give_the_same_bits_in_every_run),
        cmocka_unit_test(fixed_order_rungs_give_the_bits_of_the_emulation),
        cmocka_unit_test(race_loses_additions),
        cmocka_unit_test(measuring_brings_its_own_operands),
        cmocka_unit_test(too_little_memory_is_no_device_fault),
    };
    if (argc > 1)
        largest = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
