/* The exact kernels, launched one by one, against the description of the accumulator on the host.
 *
 *   exact_kernels_test [EVERY]      only every EVERY-th length of a type and kind of data
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assert.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exact/limbs.h"
#include "gpu/kernels/exact.h"
#include "tests/gpu/operands.h"

enum {
    OPERAND_BYTES = 64 << 20, /* of each */
    RESULTS = 1 << 14,
    TASKS = 64,
    TOTALS = 64,
};

#define REQUIRE(call)                                               \
    do {                                                            \
        cudaError_t status_ = (call);                               \
        if (status_ != cudaSuccess)                                 \
            fail_msg("%s: %s", #call, cudaGetErrorString(status_)); \
    } while (0)

/* --- the reference --- */

static float half_to_float(uint16_t bits)
{
    const int field = bits >> 10 & 31, fraction = bits & 1023;
    float value = field == 31 ? (fraction != 0 ? NAN : INFINITY)
                  : field > 0 ? ldexpf((float)(fraction | 1024), field - 25)
                              : ldexpf((float)fraction, -24);
    return bits >> 15 ? -value : value;
}

static double real_at(const char *data, enum dtype part, uint64_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, data + index * dtype_size(part), dtype_size(part));
    uint32_t word = part == DTYPE_BFLOAT16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &word, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    if (part == DTYPE_FLOAT16)
        return (double)half_to_float((uint16_t)bits);
    return part == DTYPE_FLOAT64 ? wide : (double)narrow;
}

static int64_t integer_at(const char *data, enum dtype dtype, uint64_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, data + index * dtype_size(dtype), dtype_size(dtype));
    switch (dtype) {
    case DTYPE_INT8:
        return (int8_t)bits;
    case DTYPE_UINT8:
        return (uint8_t)bits;
    case DTYPE_INT32:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

/* One real sum. */
struct reference {
    int64_t limb[EXACT_LIMBS_MAX];
    unsigned special;
};

static void reference_add(struct reference *sum, enum dtype part, double x, double y)
{
    const unsigned special = exact_special_of(x, y);
    sum->special |= special;
    if (special != 0)
        return;
    if (part == DTYPE_FLOAT64)
        exact_add_product64(sum->limb, x, y);
    else
        exact_add_product32(sum->limb, (float)x, (float)y);
}

static void reference_row(const struct grid_task *task, const char *a, const char *b,
                          struct dot_value ret[2])
{
    const enum dtype dtype = (enum dtype)task->dtype, part = dtype_part(dtype);
    static struct reference sum[2];
    memset(sum, 0, sizeof sum);
    for (uint64_t i = 0; i < task->n; i++) {
        if (dtype_is_integer(dtype)) {
            exact_add_integer(sum[0].limb,
                              (exact_int128)integer_at(a, dtype, i) * integer_at(b, dtype, i));
        } else if (dtype_is_complex(dtype)) {
            double x = real_at(a, part, 2 * i), y = real_at(a, part, 2 * i + 1);
            double u = real_at(b, part, 2 * i), v = real_at(b, part, 2 * i + 1);
            y = task->conjugate ? -y : y;
            reference_add(&sum[0], part, x, u);
            reference_add(&sum[0], part, -y, v);
            reference_add(&sum[1], part, x, v);
            reference_add(&sum[1], part, y, u);
        } else {
            reference_add(&sum[0], part, real_at(a, part, i), real_at(b, part, i));
        }
    }
    const struct exact_layout layout = exact_layout_of(dtype);
    memset(ret, 0, 2 * sizeof *ret);
    for (int i = 0; i < (dtype_is_complex(dtype) ? 2 : 1); i++)
        exact_value(sum[i].limb, layout.limbs, layout.base, sum[i].special, dtype,
                    (enum dtype)task->result_dtype, &ret[i]);
}

/* --- the device --- */

/* The whole program's; one test after the other uses it. */
static struct {
    cudaStream_t stream;
    uint32_t multiprocessors;
    struct exact_shape shape[DTYPE_COUNT];
    char *a, *b;     /* host, [OPERAND_BYTES] */
    char *d_a, *d_b; /* their copies */
    struct dot_value *result, *d_result;
    struct exact_row *row, *d_row; /* of tiles */
    struct grid_task *d_task;
    uint32_t *task_of_block, *d_task_of_block;
    uint32_t block_limit;
    struct exact_total *d_total;
} device;

static int device_open(void **state)
{
    (void)state;
    int count = 0, multiprocessors = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return 0; /* each test skips itself */
    REQUIRE(cudaSetDevice(0));
    REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    device.multiprocessors = (uint32_t)multiprocessors;
    device.block_limit = TASKS * 64 * device.multiprocessors;
    REQUIRE(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        REQUIRE(exact_open((enum dtype)dtype, device.multiprocessors, &device.shape[dtype]));
    device.a = malloc(OPERAND_BYTES);
    device.b = malloc(OPERAND_BYTES);
    device.result = malloc(RESULTS * sizeof *device.result);
    device.row = malloc(RESULTS * sizeof *device.row);
    device.task_of_block = malloc(device.block_limit * sizeof *device.task_of_block);
    assert_true(device.a && device.b && device.result && device.row && device.task_of_block);
    REQUIRE(cudaMalloc((void **)&device.d_a, OPERAND_BYTES));
    REQUIRE(cudaMalloc((void **)&device.d_b, OPERAND_BYTES));
    REQUIRE(cudaMalloc((void **)&device.d_result, RESULTS * sizeof *device.d_result));
    REQUIRE(cudaMalloc((void **)&device.d_row, RESULTS * sizeof *device.d_row));
    REQUIRE(cudaMalloc((void **)&device.d_task, TASKS * sizeof *device.d_task));
    REQUIRE(cudaMalloc((void **)&device.d_task_of_block,
                       device.block_limit * sizeof *device.d_task_of_block));
    REQUIRE(cudaMalloc((void **)&device.d_total, TOTALS * sizeof *device.d_total));
    REQUIRE(cudaMemsetAsync(device.d_total, 0, TOTALS * sizeof *device.d_total, device.stream));
    /* Whole structs are copied back: their padding too must have been written by somebody. */
    REQUIRE(
        cudaMemsetAsync(device.d_result, 0xff, RESULTS * sizeof *device.d_result, device.stream));
    return 0;
}

static int device_close(void **state)
{
    (void)state;
    free(device.a);
    free(device.b);
    free(device.row);
    free(device.result);
    free(device.task_of_block);
    if (device.stream == NULL)
        return 0;
    REQUIRE(cudaFree(device.d_a));
    REQUIRE(cudaFree(device.d_b));
    REQUIRE(cudaFree(device.d_row));
    REQUIRE(cudaFree(device.d_result));
    REQUIRE(cudaFree(device.d_task));
    REQUIRE(cudaFree(device.d_task_of_block));
    REQUIRE(cudaFree(device.d_total));
    REQUIRE(cudaStreamDestroy(device.stream));
    return 0;
}

static void require_device(void)
{
    if (device.stream == NULL)
        skip();
}

static void upload(size_t bytes)
{
    assert_true(bytes <= OPERAND_BYTES);
    REQUIRE(cudaMemcpyAsync(device.d_a, device.a, bytes, cudaMemcpyHostToDevice, device.stream));
    REQUIRE(cudaMemcpyAsync(device.d_b, device.b, bytes, cudaMemcpyHostToDevice, device.stream));
}

static void launch(const struct grid_task *tasks, uint32_t count, uint32_t blocks)
{
    struct exact_launch launch = {
        .result = device.d_result,
        .row = device.d_row,
        .total = device.d_total,
        .has_tiles = tasks[0].form == GRID_TILE_ROW,
    };
    if (count == 1) {
        launch.only = tasks[0];
    } else {
        launch.task = device.d_task;
        launch.task_of_block = device.d_task_of_block;
        REQUIRE(cudaMemcpyAsync(device.d_task, tasks, count * sizeof *tasks, cudaMemcpyHostToDevice,
                                device.stream));
        REQUIRE(cudaMemcpyAsync(device.d_task_of_block, device.task_of_block,
                                blocks * sizeof *device.task_of_block, cudaMemcpyHostToDevice,
                                device.stream));
    }
    REQUIRE(exact_launch((enum dtype)tasks[0].dtype, &device.shape[tasks[0].dtype], &launch, blocks,
                         device.stream));
    REQUIRE(cudaStreamSynchronize(device.stream));
}

static size_t parts_of(enum dtype dtype)
{
    return dtype_is_complex(dtype) ? 2 : 1;
}

/* Numbers the blocks, results and totals of tasks, and launches them. */
static uint32_t run(struct grid_task *tasks, uint32_t count)
{
    uint32_t blocks = 0, results = 0, totals = 0;
    assert_true(count <= TASKS);
    for (uint32_t i = 0; i < count; i++) {
        struct grid_task *task = &tasks[i];
        task->first_block = blocks;
        task->result = results;
        task->total = totals;
        results += task->rows * (uint32_t)parts_of((enum dtype)task->dtype);
        totals += task->form == GRID_SPLIT_ROW ? task->rows : 0;
        for (uint32_t block = 0; block < task->blocks; block++)
            device.task_of_block[blocks++] = i;
    }
    assert_true(results <= RESULTS && totals <= TOTALS && blocks <= device.block_limit);
    launch(tasks, count, blocks);
    return results;
}

static void fetch(uint32_t results)
{
    REQUIRE(cudaMemcpyAsync(device.result, device.d_result, results * sizeof *device.result,
                            cudaMemcpyDeviceToHost, device.stream));
    REQUIRE(cudaStreamSynchronize(device.stream));
}

static void fetch_rows(uint32_t results)
{
    REQUIRE(cudaMemcpyAsync(device.row, device.d_row, results * sizeof *device.row,
                            cudaMemcpyDeviceToHost, device.stream));
    REQUIRE(cudaStreamSynchronize(device.stream));
    for (uint32_t i = 0; i < results; i++)
        exact_row_value(&device.row[i], &device.result[i]);
}

/* A task over the host's copy of the operands. */
static struct grid_task task_of(enum dtype dtype, uint64_t n, uint32_t rows)
{
    return (struct grid_task){
        .a = device.d_a,
        .b = device.d_b,
        .n = n,
        .stride_a = {n, n},
        .stride_b = {n, n},
        .rows = rows,
        .inner_rows = rows,
        .dtype = dtype,
        .result_dtype = dtype_is_integer(dtype) ? DTYPE_INT64 : dtype,
        .is_final = 1,
    };
}

static bool same_value(const struct dot_value *x, const struct dot_value *y)
{
    return memcmp(&x->sum, &y->sum, sizeof x->sum) == 0 && x->flags == y->flags &&
           memcmp(&x->error_bound, &y->error_bound, sizeof x->error_bound) == 0 &&
           memcmp(x->integer, y->integer, sizeof x->integer) == 0;
}

/* Compares all rows of a task that was computed and fetched. */
static void compare(const struct grid_task *task, const char *what)
{
    const enum dtype dtype = (enum dtype)task->dtype;
    for (uint32_t row = 0; row < task->rows; row++) {
        const uint64_t outer = row / task->inner_rows, inner = row % task->inner_rows;
        const uint64_t row_a = outer * task->stride_a[0] + inner * task->stride_a[1];
        const uint64_t row_b = outer * task->stride_b[0] + inner * task->stride_b[1];
        const size_t size = dtype_size(dtype);
        struct dot_value want[2];
        reference_row(task, device.a + ((const char *)task->a - device.d_a) + row_a * size,
                      device.b + ((const char *)task->b - device.d_b) + row_b * size, want);
        for (size_t part = 0; part < parts_of(dtype); part++) {
            const struct dot_value *got =
                &device.result[task->result + row * parts_of(dtype) + part];
            if (!same_value(&want[part], got))
                fail_msg(
                    "%s: %s, n %llu, row %u of %u, part %zu, form %u, %u blocks a row: got %a, "
                    "flags %#x, bound %a; expected %a, flags %#x, bound %a",
                    what, dtype_name(dtype), (unsigned long long)task->n, row, task->rows, part,
                    task->form, task->parts, got->sum, got->flags, got->error_bound, want[part].sum,
                    want[part].flags, want[part].error_bound);
        }
    }
}

static void run_and_compare(struct grid_task *tasks, uint32_t count, const char *what)
{
    const bool has_tiles = tasks[0].form == GRID_TILE_ROW;
    (has_tiles ? fetch_rows : fetch)(run(tasks, count));
    for (uint32_t i = 0; i < count; i++)
        compare(&tasks[i], what);
}

/* --- tests --- */

static unsigned every = 1; /* main()'s */

static void check_length(enum dtype dtype, enum kind kind, uint64_t n, bool must_split)
{
    static unsigned turn;
    struct grid_task task = task_of(dtype, n, 1);
    if (turn++ % every != 0)
        return;
    operands_fill(device.a, device.b, dtype, kind, n);
    upload(n * dtype_size(dtype));
    exact_plan(&task, &device.shape[dtype], must_split);
    run_and_compare(&task, 1, must_split ? "split" : "whole");
}

static void every_type_is_exact_at_every_length(void **state)
{
    (void)state;
    require_device();
    static const uint64_t lengths[] = {1,    2,    3,    5,    15,   16,    17,
                                       31,   33,   64,   127,  255,  257,   511,
                                       1023, 1025, 2047, 4097, 8191, 12289, 30011};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                check_length((enum dtype)dtype, (enum kind)kind, lengths[i], false);
                if (i % 2 == (size_t)kind % 2)
                    check_length((enum dtype)dtype, (enum kind)kind, lengths[i], true);
            }
}

static void every_result_type_is_rounded_once(void **state)
{
    (void)state;
    require_device();
    static const enum dtype results[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32,
                                         DTYPE_FLOAT64};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            for (size_t i = 0; i < 4; i++) {
                enum dtype result = results[i];
                if (dtype_is_complex((enum dtype)dtype))
                    result = i % 2 ? DTYPE_COMPLEX64 : DTYPE_COMPLEX128;
                struct grid_task task = task_of((enum dtype)dtype, 100 + 7 * i, 3);
                task.result_dtype = result;
                operands_fill(device.a, device.b, (enum dtype)dtype, (enum kind)kind, 3 * task.n);
                upload(3 * task.n * dtype_size((enum dtype)dtype));
                exact_plan(&task, &device.shape[dtype], i == 3);
                run_and_compare(&task, 1, "result type");
            }
}

static void operands_may_begin_anywhere(void **state)
{
    (void)state;
    require_device();
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const enum dtype dtype = (enum dtype)d;
        const size_t size = dtype_size(dtype), step = dtype_size(dtype_part(dtype));
        operands_fill(device.a, device.b, dtype, KIND_20, 5100);
        upload(5100 * size);
        for (size_t skew_a = 0; skew_a < 16; skew_a += step)
            for (size_t skew_b = 0; skew_b < 16; skew_b += step) {
                if (skew_a % size != skew_b % size && size > step && skew_b % 3 != 0)
                    continue;
                static const uint64_t lengths[] = {1, 20, 5001};
                struct grid_task tasks[3];
                for (int i = 0; i < 3; i++) {
                    tasks[i] = task_of(dtype, lengths[i], 1);
                    tasks[i].a = device.d_a + skew_a;
                    tasks[i].b = device.d_b + skew_b;
                    tasks[i].conjugate = dtype_is_complex(dtype) && i == 1;
                    exact_plan(&tasks[i], &device.shape[dtype], skew_a == skew_b && i == 2);
                }
                run_and_compare(tasks, 3, "skew");
            }
    }
}

static void rows_broadcast_and_keep_apart(void **state)
{
    (void)state;
    require_device();
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const enum dtype dtype = (enum dtype)d;
        const uint32_t many = device.shape[dtype].capacity + 5;
        const struct {
            uint32_t outer, inner;
            uint64_t n;
        } shapes[] = {{1, 2, 700}, {7, many / 7 + 1, 33}, {many, 1, 129}, {3, 2, 3001}, {1, 5, 1}};
        operands_fill(device.a, device.b, dtype, KIND_FULL, 3001 * 40);
        upload(3001 * 40 * dtype_size(dtype));
        struct grid_task tasks[5];
        for (int i = 0; i < 5; i++) {
            tasks[i] = task_of(dtype, shapes[i].n, shapes[i].outer * shapes[i].inner);
            tasks[i].inner_rows = shapes[i].inner;
            tasks[i].stride_a[0] = i % 2 ? shapes[i].n : 0;
            tasks[i].stride_a[1] = i == 2 ? 0 : 3;
            tasks[i].stride_b[0] = 1;
            tasks[i].stride_b[1] = i == 3 ? shapes[i].n : 0;
            exact_plan(&tasks[i], &device.shape[dtype], i == 0);
        }
        assert_int_equal(tasks[2].form, GRID_WARP_ROW);
        assert_int_equal(tasks[0].form, GRID_SPLIT_ROW);
        assert_int_equal(tasks[4].form, GRID_BLOCK_ROW);
        run_and_compare(tasks, 5, "table");
    }
}

/* --- many short rows --- */

/* Rows of one kind of data, every `step` elements, and now and then one of another kind: tiles must
 * keep them apart. */
static void fill_rows(enum dtype dtype, enum kind kind, uint32_t rows, uint64_t n, uint64_t step)
{
    const size_t size = step * dtype_size(dtype);
    for (uint32_t row = 0; row < rows; row++)
        operands_fill(device.a + row * size, device.b + row * size, dtype,
                      row % 32 == 7 ? (enum kind)(row / 32 % KIND_COUNT) : kind, n);
}

static void check_rows(enum dtype dtype, enum kind kind, uint32_t rows, uint64_t n)
{
    static unsigned turn;
    if (turn++ % every != 0)
        return;
    const uint64_t step = n + (turn % 2) * GRID_LOAD_BYTES / dtype_size(dtype);
    struct grid_task task = task_of(dtype, n, rows);
    task.stride_a[1] = turn % 3 == 0 ? 0 : step;
    task.stride_b[1] = turn % 3 == 1 ? 0 : step;
    if (turn % 5 == 0)
        task.result_dtype = DTYPE_FLOAT64;
    fill_rows(dtype, kind, rows, n, step);
    upload(rows * step * dtype_size(dtype));
    exact_plan(&task, &device.shape[dtype], false);
    assert_int_equal(task.form, GRID_TILE_ROW);
    run_and_compare(&task, 1, "tiles");
}

static void many_short_rows_are_exact_one_by_one(void **state)
{
    (void)state;
    require_device();
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_BFLOAT16, DTYPE_FLOAT16};
    static const uint32_t bytes[] = {16, 32, 112, 128, 144, 256, 400, 512, 1040, 2048, 6144};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            for (uint32_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
                const uint32_t extra = 379 * (i % 5), most = (1 << 20) / bytes[i];
                check_rows(dtypes[d], (enum kind)kind,
                           device.shape[dtypes[d]].capacity + 1 + (extra < most ? extra : most),
                           bytes[i] / dtype_size(dtypes[d]));
            }
}

/* As when the arena is smaller than the row: launches one after the other, rounded with the
 * last. */
static void a_row_may_come_in_several_launches(void **state)
{
    (void)state;
    require_device();
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (uint64_t pieces = 2; pieces <= 7; pieces++) {
            const enum dtype dtype = (enum dtype)d;
            const size_t size = dtype_size(dtype);
            const uint64_t n = 9001 + pieces;
            operands_fill(device.a, device.b, dtype, pieces % 2 ? KIND_FULL : KIND_CANCEL, n);
            upload(n * size);
            uint32_t results = 0;
            for (uint64_t i = 0; i < pieces; i++) {
                const uint64_t first = n * i / pieces;
                struct grid_task piece = task_of(dtype, n * (i + 1) / pieces - first, 1);
                piece.a = device.d_a + first * size;
                piece.b = device.d_b + first * size;
                piece.is_final = i + 1 == pieces;
                exact_plan(&piece, &device.shape[dtype], true);
                results = run(&piece, 1);
            }
            fetch(results);
            struct grid_task whole = task_of(dtype, n, 1);
            compare(&whole, "pieces");
        }
}

/* One warp: a thread's own sums must be carried or emptied many times. */
static void a_chain_of_millions_in_one_warp_is_exact(void **state)
{
    (void)state;
    require_device();
    static const enum kind kinds[] = {KIND_LARGEST, KIND_CONSTANT, KIND_FULL};
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            const enum dtype dtype = (enum dtype)d;
            const uint64_t n = dtype_is_complex(dtype) ? 1500007 : 4500007;
            /* The largest float64 make an infinity, whatever their sum. */
            const size_t telling = dtype_part(dtype) == DTYPE_FLOAT64 ? 1 : 0;
            if (i != telling && every > 1)
                continue;
            struct grid_task task = task_of(dtype, n, 1);
            if (!dtype_is_integer(dtype)) /* nothing narrower holds such sums */
                task.result_dtype = dtype_is_complex(dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64;
            operands_fill(device.a, device.b, dtype, kinds[i], n);
            upload(n * dtype_size(dtype));
            task.form = GRID_WARP_ROW;
            task.parts = 1;
            task.blocks = 1;
            run_and_compare(&task, 1, "chain");
        }
}

/* --- operands that change on the way --- */

/* Every bit of what went in must come out again: the second half takes the first one back, and the
 * smallest product is left. */
static void take_back(enum dtype dtype, uint64_t n)
{
    const size_t size = dtype_size(dtype), part = dtype_size(dtype_part(dtype));
    const uint64_t half = n / 2;
    memcpy(device.a + half * size, device.a, half * size);
    memcpy(device.b + half * size, device.b, half * size);
    for (size_t end = part; end <= half * size; end += part)
        device.a[half * size + end - 1] ^= (char)0x80;
    memset(device.a + (n - 1) * size, 0, size);
    memset(device.b + (n - 1) * size, 0, size);
    device.a[(n - 1) * size] = 1;
    device.b[(n - 1) * size] = 1;
}

static void check_as_it_is(enum dtype dtype, uint64_t n, bool is_warp, const char *what)
{
    struct grid_task task = task_of(dtype, n, 1);
    static unsigned turn;
    if (turn++ % every != 0)
        return;
    upload(n * dtype_size(dtype));
    exact_plan(&task, &device.shape[dtype], !is_warp);
    if (is_warp) {
        task.form = GRID_WARP_ROW;
        task.parts = 1;
        task.blocks = 1;
    }
    run_and_compare(&task, 1, what);
}

/* Stretches of one kind each, of random length up to `longest`. */
static void fill_stretches(enum dtype dtype, uint64_t n, uint64_t longest, bool has_odd)
{
    static const enum kind kinds[] = {KIND_UNIFORM, KIND_20,    KIND_UNIFORM, KIND_60,
                                      KIND_FULL,    KIND_SMALL, KIND_LARGE,   KIND_ODD};
    uint64_t count = 0;
    for (uint64_t first = 0; first < n; first += count) {
        const enum kind kind = kinds[random_bits(20) % (has_odd ? 8 : 7)];
        const size_t at = first * dtype_size(dtype);
        count = 1 + random_bits(40) % longest;
        count = count < n - first ? count : n - first;
        operand_fill(device.a + at, dtype, kind, count);
        operand_fill(device.b + at, dtype, kind, count);
    }
}

static void scales_may_change_on_the_way(void **state)
{
    (void)state;
    require_device();
    static const uint64_t longest[] = {3, 40, 700, 5000, 30000};
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (size_t i = 0; i < 5 * 4; i++) {
            const enum dtype dtype = (enum dtype)d;
            const uint64_t n = 60001 + 2 * (i % 5);
            if (dtype_is_integer(dtype))
                continue;
            fill_stretches(dtype, n, longest[i / 4], i % 4 == 3);
            if (i % 4 < 2)
                take_back(dtype, n);
            check_as_it_is(dtype, n, i % 2 == 0, "stretches");
        }
}

/* So many lanes of each warp are out of range, in some vectors: a warp may treat all like these. */
static void any_number_of_lanes_may_be_out_of_range(void **state)
{
    (void)state;
    require_device();
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (uint64_t lanes = 1; lanes <= GRID_WARP; lanes++) {
            const enum dtype dtype = (enum dtype)d;
            const size_t size = dtype_size(dtype);
            const uint64_t places = GRID_LOAD_BYTES / size, n = 20001;
            if (dtype_is_integer(dtype))
                continue;
            operands_fill(device.a, device.b, dtype, lanes % 4 ? KIND_UNIFORM : KIND_20, n);
            for (uint64_t i = 0; i < n; i += places)
                if (i / places % GRID_WARP < lanes && random_bits(2) == 0)
                    operand_fill(device.a + i * size, dtype, lanes % 2 ? KIND_FULL : KIND_SMALL, 1);
            if (lanes % 3 == 0)
                take_back(dtype, n);
            check_as_it_is(dtype, n, lanes % 8 != 0, "lanes out of range");
        }
}

int main(int argc, char **argv)
{
    every = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    assert(every > 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_exact_at_every_length),
        cmocka_unit_test(every_result_type_is_rounded_once),
        cmocka_unit_test(operands_may_begin_anywhere),
        cmocka_unit_test(rows_broadcast_and_keep_apart),
        cmocka_unit_test(many_short_rows_are_exact_one_by_one),
        cmocka_unit_test(a_row_may_come_in_several_launches),
        cmocka_unit_test(a_chain_of_millions_in_one_warp_is_exact),
        cmocka_unit_test(scales_may_change_on_the_way),
        cmocka_unit_test(any_number_of_lanes_may_be_out_of_range),
    };
    return cmocka_run_group_tests(tests, device_open, device_close);
}
