/* The emulated device: threads, barriers, warps and orders; and exact sums in all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/emu/cuda_runtime_api.h"
#include "gpu/emu/emu.h"
#include "gpu/kernels/exact.h"
#include "tests/gpu/operands.h"

enum { BLOCKS = 7, THREADS = 96 };

static void seed(uint64_t number)
{
    const struct emu_settings settings = {
        .seed = number,
        .multiprocessors = 1 + (uint32_t)number % 5,
        .blocks = 2,
        .shared_bytes = number % 2 ? 227 << 10 : 64 << 10,
    };
    emu_set(&settings);
}

/* --- threads and blocks --- */

struct count {
    unsigned runs[BLOCKS][THREADS];
    unsigned order[BLOCKS], blocks; /* in the order in which their first threads ran */
};

static void count_body(const void *context)
{
    struct count *count = *(struct count *const *)context;
    if (count->blocks == 0 || count->order[count->blocks - 1] != emu_block.x)
        count->order[count->blocks++] = emu_block.x;
    count->runs[emu_block.x][emu_thread.x]++;
}

static struct count run_count(uint64_t number)
{
    struct count count = {0}, *pointer = &count;
    seed(number);
    emu_run(BLOCKS, THREADS, 0, count_body, (const void *)&pointer);
    return count;
}

static void every_thread_of_every_block_runs_once(void **state)
{
    (void)state;
    struct count count = run_count(1);
    for (int block = 0; block < BLOCKS; block++)
        for (int thread = 0; thread < THREADS; thread++)
            assert_int_equal(count.runs[block][thread], 1);
}

static void the_seed_decides_the_order_of_blocks(void **state)
{
    (void)state;
    struct count one = run_count(1), again = run_count(1), other = run_count(2);
    assert_int_equal(one.blocks, BLOCKS);
    assert_memory_equal(one.order, again.order, sizeof one.order);
    assert_memory_not_equal(one.order, other.order, sizeof one.order);
}

/* --- barriers, warps, shared memory --- */

/* Each round every thread reads its neighbour's number, then writes its own: right only if nobody
 * is let through a barrier early. */
static void barrier_body(const void *context)
{
    unsigned *number = emu_shared(), *wrong = *(unsigned *const *)context;
    number[emu_thread.x] = 0;
    emu_block_barrier();
    for (unsigned round = 0; round < 20; round++) {
        *wrong += number[(emu_thread.x + 41) % THREADS] != round;
        emu_block_barrier();
        number[emu_thread.x]++;
        emu_block_barrier();
    }
}

static void a_barrier_lets_nobody_through_early(void **state)
{
    (void)state;
    unsigned wrong = 0, *pointer = &wrong;
    emu_run(BLOCKS, THREADS, THREADS * sizeof wrong, barrier_body, (const void *)&pointer);
    assert_int_equal(wrong, 0);
}

static void exchange_body(const void *context)
{
    unsigned *wrong = *(unsigned *const *)context;
    for (unsigned round = 0; round < 20; round++) {
        const uint64_t *lanes = emu_exchange(0xffffffff, 1, emu_thread.x + 1000 * round);
        for (unsigned lane = 0; lane < 32; lane++)
            *wrong += lanes[lane] != emu_thread.x / 32 * 32 + lane + 1000 * round;
    }
}

static void the_lanes_of_a_warp_see_what_each_one_brings(void **state)
{
    (void)state;
    unsigned wrong = 0, *pointer = &wrong;
    emu_run(BLOCKS, THREADS, 0, exchange_body, (const void *)&pointer);
    assert_int_equal(wrong, 0);
}

static void garbage_body(const void *context)
{
    unsigned char *zeros = *(unsigned char *const *)context, *bytes = emu_shared();
    for (size_t i = emu_thread.x; i < 1000; i += THREADS) {
        *zeros += bytes[i] == 0;
        bytes[i] = 0;
    }
}

static void shared_memory_holds_nothing_of_the_block_before(void **state)
{
    (void)state;
    unsigned char zeros = 0, *pointer = &zeros;
    emu_run(BLOCKS, THREADS, 1000, garbage_body, (const void *)&pointer);
    assert_int_equal(zeros, 0);
}

static void deserter_body(const void *context)
{
    (void)context;
    if (emu_thread.x != 17)
        emu_block_barrier();
}

static void a_thread_that_misses_a_barrier_ends_the_program(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(2);
        emu_run(1, THREADS, 0, deserter_body, NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* --- exact sums --- */

enum { N = 20011, BYTES = N * 16 };

static struct {
    void *a, *b;
    struct dot_value *value;
    struct exact_total *total;
    cudaStream_t stream;
} device;

static int device_open(void **state)
{
    (void)state;
    assert_int_equal(cudaMalloc(&device.a, BYTES), cudaSuccess);
    assert_int_equal(cudaMalloc(&device.b, BYTES), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&device.value, 2 * sizeof *device.value), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&device.total, sizeof *device.total), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&device.stream, 0), cudaSuccess);
    memset(device.total, 0, sizeof *device.total);
    return 0;
}

static int device_close(void **state)
{
    (void)state;
    assert_int_equal(cudaStreamDestroy(device.stream), cudaSuccess);
    assert_int_equal(cudaFree(device.total), cudaSuccess);
    assert_int_equal(cudaFree(device.value), cudaSuccess);
    assert_int_equal(cudaFree(device.b), cudaSuccess);
    assert_int_equal(cudaFree(device.a), cudaSuccess);
    return 0;
}

static void compute(enum dtype dtype, uint32_t capacity, bool must_split)
{
    struct exact_shape shape;
    struct exact_launch launch = {
        .result = device.value,
        .total = device.total,
        .only =
            {
                .a = device.a,
                .b = device.b,
                .n = N,
                .rows = 1,
                .inner_rows = 1,
                .dtype = dtype,
                .result_dtype = dtype_is_integer(dtype) ? DTYPE_INT64 : dtype,
                .is_final = 1,
            },
    };
    memset(device.value, 0, 2 * sizeof *device.value);
    assert_int_equal(exact_open(dtype, 1, &shape), cudaSuccess);
    shape.capacity = capacity;
    exact_plan(&launch.only, &shape, must_split);
    assert_int_equal(exact_launch(dtype, &shape, &launch, launch.only.blocks, device.stream),
                     cudaSuccess);
}

static void exact_sums_have_the_same_bits_on_every_grid_in_every_order(void **state)
{
    (void)state;
    static const uint32_t capacities[] = {1, 2, 3, 7, 20};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        struct dot_value first[2];
        operands_fill(device.a, device.b, (enum dtype)dtype, KIND_FULL, N);
        compute((enum dtype)dtype, 1, false);
        memcpy(first, device.value, sizeof first);
        for (uint64_t number = 1; number <= 5; number++) {
            seed(number);
            compute((enum dtype)dtype, capacities[number - 1], true);
            assert_memory_equal(device.value, first, sizeof first);
        }
    }
}

static void a_rounded_total_is_left_zero_for_the_next_row(void **state)
{
    (void)state;
    static const struct exact_total zero;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        operands_fill(device.a, device.b, (enum dtype)dtype, KIND_ODD, N);
        compute((enum dtype)dtype, 5, true);
        assert_memory_equal(device.total, &zero, sizeof zero);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_of_every_block_runs_once),
        cmocka_unit_test(the_seed_decides_the_order_of_blocks),
        cmocka_unit_test(a_barrier_lets_nobody_through_early),
        cmocka_unit_test(the_lanes_of_a_warp_see_what_each_one_brings),
        cmocka_unit_test(shared_memory_holds_nothing_of_the_block_before),
        cmocka_unit_test(a_thread_that_misses_a_barrier_ends_the_program),
        cmocka_unit_test(exact_sums_have_the_same_bits_on_every_grid_in_every_order),
        cmocka_unit_test(a_rounded_total_is_left_zero_for_the_next_row),
    };
    return cmocka_run_group_tests(tests, device_open, device_close);
}
