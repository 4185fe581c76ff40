/* rows.c - many rows with one vector, fast and exact, beside cublasSgemv: float32, operands on the
 * device, every sum checked.
 *
 *   bench_rows [ELEMENTS]
 *
 * ELEMENTS are those of all rows. All sides in one go, in turn; medians.
 * The rows repeat a block of them, so that the host knows every sum. Exit status 1: a sum was
 * wrong.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exact/sum.h"
#include "gpu/kernels/exact.h"
#include "gpu/kernels/grid_atomic.h"
#include "tests/bench/arguments.h"
#include "tests/bench/cublas.h"
#include "tests/random.h"

enum { RUNS = 9, BLOCK_ROWS = 1024, SHORTEST = 64, LONGEST = 1536 };

enum side { SIDE_BLAS, SIDE_FAST, SIDE_EXACT, SIDE_COUNT };

struct bench {
    struct stage stage;
    uint32_t capacity; /* of the fast kernel */
    struct exact_shape shape;
    float *a, *b; /* host: a block of rows, and the vector */
    float *d_blas;
    struct grid_sum *d_sum;
    struct exact_row *d_row;
    struct exact_total *d_total;
    void *result; /* host: of any side */
    bool failed;
};

static void bench_open(struct bench *bench, uint64_t elements)
{
    const uint64_t rows = elements / SHORTEST;
    int device = 0, multiprocessors = 0, blocks = 0;
    stage_open(&bench->stage, elements * sizeof(float));
    REQUIRE(cudaGetDevice(&device));
    REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    REQUIRE(grid_atomic_blocks(DTYPE_FLOAT32, &blocks));
    REQUIRE(exact_open(DTYPE_FLOAT32, (uint32_t)multiprocessors, &bench->shape));
    bench->capacity = (uint32_t)(multiprocessors * blocks);
    REQUIRE(cudaMalloc((void **)&bench->d_blas, rows * sizeof *bench->d_blas));
    REQUIRE(cudaMalloc((void **)&bench->d_sum, rows * sizeof *bench->d_sum));
    REQUIRE(cudaMalloc((void **)&bench->d_row, rows * sizeof *bench->d_row));
    REQUIRE(cudaMalloc((void **)&bench->d_total, sizeof *bench->d_total));
    REQUIRE(cudaMemset(bench->d_total, 0, sizeof *bench->d_total));
    bench->a = malloc((size_t)BLOCK_ROWS * LONGEST * sizeof *bench->a);
    bench->b = malloc(LONGEST * sizeof *bench->b);
    bench->result = malloc(rows * sizeof(struct exact_row));
    if (bench->a == NULL || bench->b == NULL || bench->result == NULL)
        exit(1);
}

static void bench_close(struct bench *bench)
{
    free(bench->result);
    free(bench->b);
    free(bench->a);
    REQUIRE(cudaFree(bench->d_total));
    REQUIRE(cudaFree(bench->d_row));
    REQUIRE(cudaFree(bench->d_sum));
    REQUIRE(cudaFree(bench->d_blas));
    stage_close(&bench->stage);
}

/* Uniform in [-1, 1); the block of rows again and again, by copies that double. */
static void fill(struct bench *bench, uint64_t n, uint64_t rows)
{
    for (uint64_t i = 0; i < n * (BLOCK_ROWS + 1); i++) {
        float *at = i < n ? &bench->b[i] : &bench->a[i - n];
        *at = (float)((double)(random_next() >> 11) * 0x1p-52 - 1);
    }
    const size_t bytes = rows * n * sizeof(float);
    size_t done = (size_t)BLOCK_ROWS * n * sizeof(float);
    REQUIRE(cudaMemcpy(bench->stage.d_b, bench->b, n * sizeof(float), cudaMemcpyHostToDevice));
    REQUIRE(cudaMemcpy(bench->stage.d_a, bench->a, done, cudaMemcpyHostToDevice));
    for (size_t part; done < bytes; done += part) {
        part = done < bytes - done ? done : bytes - done;
        REQUIRE(
            cudaMemcpy(bench->stage.d_a + done, bench->stage.d_a, part, cudaMemcpyDeviceToDevice));
    }
}

static struct grid_task task_of(const struct bench *bench, uint64_t n, uint64_t rows)
{
    return (struct grid_task){
        .a = bench->stage.d_a,
        .b = bench->stage.d_b,
        .n = n,
        .stride_a = {0, n},
        .rows = (uint32_t)rows,
        .inner_rows = (uint32_t)rows,
        .dtype = DTYPE_FLOAT32,
        .result_dtype = DTYPE_FLOAT32,
        .is_final = 1,
    };
}

static void queue_blas(const struct stage *stage, float *d_result, uint64_t n, uint64_t rows)
{
    const float one = 1, zero = 0;
    REQUIRE(cublasSetPointerMode(stage->cublas, CUBLAS_POINTER_MODE_HOST));
    REQUIRE(cublasSgemv(stage->cublas, CUBLAS_OP_T, (int)n, (int)rows, &one,
                        (const float *)(void *)stage->d_a, (int)n,
                        (const float *)(void *)stage->d_b, 1, &zero, d_result, 1));
    REQUIRE(cublasSetPointerMode(stage->cublas, CUBLAS_POINTER_MODE_DEVICE));
}

static void queue(const struct bench *bench, enum side side, uint64_t n, uint64_t rows)
{
    struct grid_launch fast = {
        .result = bench->d_sum, .only = task_of(bench, n, rows), .has_tiles = 1};
    struct exact_launch exact = {
        .row = bench->d_row, .total = bench->d_total, .only = fast.only, .has_tiles = 1};
    grid_plan(&fast.only, bench->capacity);
    exact_plan(&exact.only, &bench->shape, false);
    assert(fast.only.form == GRID_TILE_ROW && exact.only.form == GRID_TILE_ROW);
    if (side == SIDE_BLAS)
        queue_blas(&bench->stage, bench->d_blas, n, rows);
    else if (side == SIDE_FAST)
        REQUIRE(grid_atomic_launch(DTYPE_FLOAT32, &fast, fast.only.blocks, bench->stage.stream));
    else
        REQUIRE(exact_launch(DTYPE_FLOAT32, &bench->shape, &exact, exact.only.blocks,
                             bench->stage.stream));
}

/* --- checks --- */

struct known {
    struct dot_value value; /* rounded to float32 */
    double sum;             /* and to float64 */
    double sum_abs;
};

static void know(const struct bench *bench, uint64_t n, struct known *ret)
{
    for (uint64_t row = 0; row < BLOCK_ROWS; row++) {
        struct exact_sum sum;
        struct dot_value value;
        exact_sum_init(&sum, NULL, DTYPE_FLOAT32, false, false);
        exact_sum_add(&sum, bench->a + row * n, bench->b, n);
        struct exact_sum again = sum; /* rounding uses a sum up */
        exact_sum_round(&sum, DTYPE_FLOAT32, &ret[row].value);
        exact_sum_round(&again, DTYPE_FLOAT64, &value);
        ret[row].sum = value.sum;
        ret[row].sum_abs = 0;
        for (uint64_t i = 0; i < n; i++)
            ret[row].sum_abs += fabs((double)bench->a[row * n + i] * (double)bench->b[i]);
    }
}

/* u: of the arithmetic's rounding; any order of n terms. */
static bool is_near(const struct known *known, double sum, uint64_t n, double u)
{
    return fabs(sum - known->sum) <= (double)n * u * known->sum_abs;
}

static bool is_right(const struct bench *bench, const struct known *known, enum side side,
                     uint64_t n, uint64_t row)
{
    const struct known *expected = &known[row % BLOCK_ROWS];
    const struct exact_row *got = (const struct exact_row *)bench->result + row;
    if (side == SIDE_BLAS)
        return is_near(expected, (double)((const float *)bench->result)[row], n, 0x1p-24);
    if (side == SIDE_FAST)
        return is_near(expected, ((const struct grid_sum *)bench->result)[row].sum, n, 0x1p-53);
    const struct exact_row want = exact_row_of(&expected->value, false);
    return memcmp(got, &want, sizeof want) == 0;
}

static bool are_right(const struct bench *bench, const struct known *known, enum side side,
                      uint64_t n, uint64_t rows)
{
    const void *const d_result[] = {bench->d_blas, bench->d_sum, bench->d_row};
    const size_t size[] = {sizeof *bench->d_blas, sizeof *bench->d_sum, sizeof *bench->d_row};
    REQUIRE(cudaMemcpy(bench->result, d_result[side], rows * size[side], cudaMemcpyDeviceToHost));
    for (uint64_t row = 0; row < rows; row++)
        if (!is_right(bench, known, side, n, row)) {
            (void)printf("row %llu of side %d is wrong\n", (unsigned long long)row, side);
            return false;
        }
    return true;
}

/* --- measuring --- */

static void compare_at(struct bench *bench, uint64_t n, uint64_t rows)
{
    static struct known known[BLOCK_ROWS];
    double us[SIDE_COUNT][RUNS], took[SIDE_COUNT];
    bool is_fine = true;
    fill(bench, n, rows);
    know(bench, n, known);
    for (int run = -1; run < RUNS; run++) /* the first one loads kernels */
        for (int side = 0; side < SIDE_COUNT; side++) {
            stage_begin(&bench->stage);
            queue(bench, (enum side)side, n, rows);
            us[side][run < 0 ? 0 : run] = stage_end_us(&bench->stage);
        }
    for (int side = 0; side < SIDE_COUNT; side++) {
        took[side] = median(us[side], RUNS);
        is_fine = are_right(bench, known, (enum side)side, n, rows) && is_fine;
    }
    (void)printf("%5llu %9llu", (unsigned long long)n, (unsigned long long)rows);
    for (int side = 0; side < SIDE_COUNT; side++)
        (void)printf(" %9.1f %6.0f", took[side],
                     (double)(rows * n * sizeof(float)) / took[side] / 1e3);
    (void)printf(" %6.2f %6.2f  %s\n", took[SIDE_BLAS] / took[SIDE_FAST],
                 took[SIDE_FAST] / took[SIDE_EXACT], is_fine ? "ok" : "WRONG");
    (void)fflush(stdout);
    bench->failed = bench->failed || !is_fine;
}

int main(int argc, char **argv)
{
    static const uint64_t lengths[] = {64, 96, 128, 256, 384, 512, 768, 1024, 1536};
    struct argument told = {"ELEMENTS", 1 << 30, BLOCK_ROWS * LONGEST, 1e11};
    struct bench bench = {0};
    arguments_read(argc, argv, &told, 1);
    const uint64_t elements = (uint64_t)told.value;
    bench_open(&bench, elements);
    (void)printf("%5s %9s %9s %6s %9s %6s %9s %6s %6s %6s\n", "n", "rows", "cuBLAS us", "GB/s",
                 "fast us", "GB/s", "exact us", "GB/s", "fast", "exact");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        compare_at(&bench, lengths[i], elements / lengths[i]);
    bench_close(&bench);
    return bench.failed ? 1 : 0;
}
