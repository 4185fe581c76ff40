/* exact_kernels.c - the exact kernels beside cuBLAS, on data of every kind: no test, but it checks.
 *
 *   bench_exact_kernels [LARGEST [TYPE]...]      n up to LARGEST; by default all types
 *
 * Each line: median device time from event to event with a cold L2 (a read of twice its size
 * before each run), both sides in turn. Operands repeat a block of random elements, so that the
 * host knows the exact sum of any length; a line that says WRONG makes the program fail. cuBLAS
 * computes no exact sum, and none of int8.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exact/limbs.h"
#include "gpu/kernels/exact.h"
#include "tests/bench/arguments.h"
#include "tests/bench/cublas.h"
#include "tests/gpu/operands.h"

enum { RUNS = 21, PERIOD = 1 << 20 };

/* --- data --- */

enum pattern { PATTERN_BINADES, PATTERN_FULL, PATTERN_CANCEL, PATTERN_ZEROS };

/* Real numbers below 1 in magnitude times a power of two of at most `spread`. */
static const struct data {
    const char *name;
    enum pattern pattern;
    int spread;
} datas[] = {{"uniform", PATTERN_BINADES, 0}, {"2^+-20", PATTERN_BINADES, 10},
             {"2^+-60", PATTERN_BINADES, 30}, {"2^+-200", PATTERN_BINADES, 100},
             {"full range", PATTERN_FULL, 0}, /* any finite bit pattern */
             {"cancel", PATTERN_CANCEL, 30},  /* pairs that do */
             {"half zeros", PATTERN_ZEROS, 0}};
enum { DATAS = sizeof datas / sizeof *datas };

static uint64_t random_real(enum dtype dtype, const struct data *data)
{
    const struct layout layout = layout_of(dtype);
    const int bias = (1 << (layout.field_bits - 1)) - 1, top = 2 * bias;
    const uint64_t binades = 2 * (uint64_t)data->spread + 1;
    int field = bias - 1 + (int)(random_bits(32) % binades) - data->spread;
    for (int i = 0; i < 8 && random_bits(1) == 1; i++)
        field--; /* as numbers uniform in an interval */
    if (data->pattern == PATTERN_FULL)
        field = (int)(random_bits(32) % (uint64_t)(top + 1));
    if (data->pattern == PATTERN_ZEROS && random_bits(1) == 1)
        return 0;
    field = field < 0 ? 0 : field > top ? top : field;
    const uint64_t sign = random_bits(1) << (layout.field_bits + layout.fraction_bits);
    return sign | (uint64_t)field << layout.fraction_bits | random_bits(layout.fraction_bits);
}

static void put(char *data, enum dtype dtype, uint64_t index, uint64_t bits)
{
    memcpy(data + index * dtype_size(dtype), &bits, dtype_size(dtype)); /* little-endian */
}

static void fill(char *a, char *b, enum dtype dtype, const struct data *data)
{
    const uint64_t sign = (uint64_t)1 << (8 * dtype_size(dtype) - 1);
    for (uint64_t i = 0; i < PERIOD; i++) {
        uint64_t x = random_bits(63), y = random_bits(63);
        if (dtype_is_float(dtype)) {
            x = random_real(dtype, data);
            y = random_real(dtype, data);
        }
        put(a, dtype, i, x);
        put(b, dtype, i, y);
        if (data->pattern == PATTERN_CANCEL && dtype_is_float(dtype)) {
            i++;
            put(a, dtype, i, x ^ sign);
            put(b, dtype, i, y);
        }
    }
}

/* --- the exact sum --- */

static double real_at(const char *data, enum dtype dtype, uint64_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, data + index * dtype_size(dtype), dtype_size(dtype));
    uint32_t word = dtype == DTYPE_BFLOAT16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &word, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    if (dtype == DTYPE_FLOAT16) {
        const int field = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
        wide = field > 0 ? ldexp(fraction | 1024, field - 25) : ldexp(fraction, -24);
        return bits >> 15 ? -wide : wide;
    }
    return dtype == DTYPE_FLOAT64 ? wide : (double)narrow;
}

static int64_t integer_at(const char *data, enum dtype dtype, uint64_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, data + index * dtype_size(dtype), dtype_size(dtype));
    return dtype == DTYPE_INT8    ? (int8_t)bits
           : dtype == DTYPE_UINT8 ? (uint8_t)bits
           : dtype == DTYPE_INT32 ? (int32_t)bits
                                  : (int64_t)bits;
}

static void add_products(int64_t *limb, const char *a, const char *b, enum dtype dtype, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (dtype_is_integer(dtype))
            exact_add_integer(limb,
                              (exact_int128)integer_at(a, dtype, i) * integer_at(b, dtype, i));
        else if (dtype == DTYPE_FLOAT64)
            exact_add_product64(limb, real_at(a, dtype, i), real_at(b, dtype, i));
        else
            exact_add_product32(limb, (float)real_at(a, dtype, i), (float)real_at(b, dtype, i));
}

static enum dtype result_dtype_of(enum dtype dtype)
{
    return dtype_is_integer(dtype) ? DTYPE_INT64 : DTYPE_FLOAT64;
}

/* Of n elements of the repeated block: whole periods are one period times their number. */
static struct dot_value expected(const char *a, const char *b, enum dtype dtype, uint64_t n)
{
    const struct exact_layout layout = exact_layout_of(dtype);
    static int64_t limb[EXACT_LIMBS_MAX];
    struct dot_value value = {0};
    memset(limb, 0, sizeof limb);
    if (n >= PERIOD) {
        add_products(limb, a, b, dtype, PERIOD);
        exact_carry(limb, layout.limbs);
        for (int i = 0; i < layout.limbs; i++)
            limb[i] *= (int64_t)(n / PERIOD);
        exact_carry(limb, layout.limbs);
    }
    add_products(limb, a, b, dtype, n % PERIOD);
    exact_value(limb, layout.limbs, layout.base, 0, dtype, result_dtype_of(dtype), &value);
    return value;
}

/* --- the device --- */

struct bench {
    struct stage stage;
    struct exact_shape shape[DTYPE_COUNT];
    char *a, *b; /* a period of each */
    struct exact_total *d_total;
    struct dot_value *d_result;
    bool failed;
};

static void bench_open(struct bench *bench, size_t bytes)
{
    int device = 0, multiprocessors = 0;
    stage_open(&bench->stage, bytes);
    REQUIRE(cudaGetDevice(&device));
    REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        REQUIRE(exact_open((enum dtype)dtype, (uint32_t)multiprocessors, &bench->shape[dtype]));
    bench->a = malloc(PERIOD * 8);
    bench->b = malloc(PERIOD * 8);
    if (bench->a == NULL || bench->b == NULL)
        exit(1);
    REQUIRE(cudaMalloc((void **)&bench->d_total, sizeof *bench->d_total));
    REQUIRE(cudaMemset(bench->d_total, 0, sizeof *bench->d_total));
    REQUIRE(cudaMalloc((void **)&bench->d_result, sizeof *bench->d_result));
}

static void bench_close(struct bench *bench)
{
    REQUIRE(cudaFree(bench->d_result));
    REQUIRE(cudaFree(bench->d_total));
    free(bench->b);
    free(bench->a);
    stage_close(&bench->stage);
}

/* The period, again and again, by copies that double. */
static void upload(char *d_data, const char *period, size_t period_bytes, size_t bytes)
{
    size_t done = period_bytes < bytes ? period_bytes : bytes;
    REQUIRE(cudaMemcpy(d_data, period, done, cudaMemcpyHostToDevice));
    while (done < bytes) {
        size_t part = done < bytes - done ? done : bytes - done;
        REQUIRE(cudaMemcpy(d_data + done, d_data, part, cudaMemcpyDeviceToDevice));
        done += part;
    }
}

static void queue_exact(struct bench *bench, enum dtype dtype, uint64_t n)
{
    struct exact_launch launch = {
        .result = bench->d_result,
        .total = bench->d_total,
        .only =
            {
                .a = bench->stage.d_a,
                .b = bench->stage.d_b,
                .n = n,
                .rows = 1,
                .inner_rows = 1,
                .dtype = dtype,
                .result_dtype = result_dtype_of(dtype),
                .is_final = 1,
            },
    };
    exact_plan(&launch.only, &bench->shape[dtype], false);
    REQUIRE(exact_launch(dtype, &bench->shape[dtype], &launch, launch.only.blocks,
                         bench->stage.stream));
}

enum side { SIDE_EXACT, SIDE_BLAS };

static double time_one(struct bench *bench, enum side side, enum dtype dtype, uint64_t n)
{
    stage_begin(&bench->stage);
    if (side == SIDE_EXACT)
        queue_exact(bench, dtype, n);
    else
        stage_blas(&bench->stage, dtype, n);
    return stage_end_us(&bench->stage);
}

static bool is_right(struct bench *bench, enum dtype dtype, uint64_t n)
{
    struct dot_value want = expected(bench->a, bench->b, dtype, n), got;
    REQUIRE(cudaMemcpy(&got, bench->d_result, sizeof got, cudaMemcpyDeviceToHost));
    bool is_same = memcmp(&want.sum, &got.sum, sizeof want.sum) == 0 && want.flags == got.flags &&
                   memcmp(want.integer, got.integer, sizeof want.integer) == 0;
    if (!is_same) {
        (void)printf("got %a, flags %#x; expected %a, flags %#x\n", got.sum, got.flags, want.sum,
                     want.flags);
        bench->failed = true;
    }
    return is_same;
}

static void compare_at(struct bench *bench, enum dtype dtype, const char *data, uint64_t n)
{
    double exact[RUNS], blas[RUNS];
    const bool has_blas = dtype_is_float(dtype);
    for (int run = 0; run < RUNS; run++) {
        exact[run] = time_one(bench, SIDE_EXACT, dtype, n);
        blas[run] = has_blas ? time_one(bench, SIDE_BLAS, dtype, n) : 0;
    }
    const double gigabytes = 2.0 * (double)n * (double)dtype_size(dtype) / 1e9;
    const double exact_us = median(exact, RUNS), blas_us = median(blas, RUNS);
    const bool right = is_right(bench, dtype, n);
    (void)printf("%-8s %-10s %9llu %9.2f %7.0f", dtype_name(dtype), data, (unsigned long long)n,
                 exact_us, gigabytes / exact_us * 1e6);
    if (has_blas)
        (void)printf(" %9.2f %7.0f %6.3f", blas_us, gigabytes / blas_us * 1e6, blas_us / exact_us);
    (void)printf("  %s\n", right ? "ok" : "WRONG");
    (void)fflush(stdout);
}

static void compare_type(struct bench *bench, enum dtype dtype, double largest)
{
    const size_t size = dtype_size(dtype);
    const bool is_float = dtype_is_float(dtype);
    for (int i = 0; i < (is_float ? DATAS : 1); i++) {
        const bool has_all = datas[i].pattern <= PATTERN_FULL && datas[i].spread == 0;
        fill(bench->a, bench->b, dtype, &datas[i]);
        upload(bench->stage.d_a, bench->a, PERIOD * size, (size_t)largest * size);
        upload(bench->stage.d_b, bench->b, PERIOD * size, (size_t)largest * size);
        for (double n = 1e3; n <= largest; n *= 10)
            if (has_all || n * 10 > largest)
                compare_at(bench, dtype, is_float ? datas[i].name : "any", (uint64_t)n);
    }
}

static const enum dtype types[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                   DTYPE_INT8,    DTYPE_UINT8,   DTYPE_INT32,   DTYPE_INT64};
enum { TYPE_COUNT = sizeof types / sizeof *types };

/* Marks the types that are named, or all when none is; false: a name is not of these types. */
static bool read_types(int count, char **names, bool is_wanted[static TYPE_COUNT])
{
    int found = 0;
    for (int t = 0; t < TYPE_COUNT; t++) {
        is_wanted[t] = count == 0;
        for (int i = 0; i < count; i++)
            if (strcmp(names[i], dtype_name(types[t])) == 0) {
                is_wanted[t] = true;
                found++;
            }
    }
    return found == count;
}

int main(int argc, char **argv)
{
    struct argument told = {"LARGEST", 1e8, 1000, 1e10};
    bool is_wanted[TYPE_COUNT];
    const int names = argc > 2 ? argc - 2 : 0;
    if (!read_types(names, argv + argc - names, is_wanted) ||
        (argc > 1 && !argument_read(argv[1], &told)))
        return arguments_usage(&told, 1, " [TYPE]...");
    const double largest = told.value;
    struct bench bench = {0};
    bench_open(&bench, (size_t)largest * 8);
    (void)printf("%-8s %-10s %9s %9s %7s %9s %7s %6s\n", "dtype", "data", "n", "exact us", "GB/s",
                 "cuBLAS us", "GB/s", "share");
    for (int t = 0; t < TYPE_COUNT; t++)
        if (is_wanted[t])
            compare_type(&bench, types[t], largest);
    bench_close(&bench);
    return bench.failed ? 1 : 0;
}
