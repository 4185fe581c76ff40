/* exact_kernels.c - the exact kernels beside cuBLAS, on data of every kind: no test, but it checks.
 *
 *   bench_exact_kernels [LARGEST]      n up to LARGEST, by default 100000000
 *
 * Each line: median device time from event to event with a cold L2 (a write of twice its size
 * before each run), both sides in turn. Operands repeat a block of random elements, so that the
 * host knows the exact sum of any length; a line that says WRONG makes the program fail. cuBLAS
 * computes no exact sum, and none of int8.
 */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exact/limbs.h"
#include "gpu/kernels/exact.h"

enum { RUNS = 21, PERIOD = 1 << 20 };

#define REQUIRE(call)                                                 \
    do {                                                              \
        int status_ = (int)(call);                                    \
        if (status_ != 0) {                                           \
            (void)fprintf(stderr, "%s: status %d\n", #call, status_); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

enum kind { KIND_UNIFORM, KIND_20, KIND_60, KIND_FULL, KIND_CANCEL, KIND_COUNT };

static const char *const kind_name[] = {"uniform", "2^+-20", "2^+-60", "full range", "cancel"};

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(unsigned bits)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state ^ random_state >> 29) >> (64 - bits);
}

/* --- data --- */

struct layout {
    unsigned field_bits, fraction_bits;
};

static struct layout layout_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT16:
        return (struct layout){5, 10};
    case DTYPE_BFLOAT16:
        return (struct layout){8, 7};
    case DTYPE_FLOAT32:
        return (struct layout){8, 23};
    default:
        return (struct layout){11, 52};
    }
}

/* A number below 1 in magnitude times a power of two; for KIND_FULL any finite bit pattern. */
static uint64_t random_real(enum dtype dtype, enum kind kind)
{
    const struct layout layout = layout_of(dtype);
    const int bias = (1 << (layout.field_bits - 1)) - 1, top = 2 * bias;
    const int spread = kind == KIND_20 ? 10 : kind == KIND_60 || kind == KIND_CANCEL ? 30 : 0;
    int field = bias - 1 + (int)(random_bits(32) % (uint64_t)(2 * spread + 1)) - spread;
    for (int i = 0; i < 8 && random_bits(1) == 1; i++)
        field--; /* as numbers uniform in an interval */
    if (kind == KIND_FULL)
        field = (int)(random_bits(32) % (uint64_t)(top + 1));
    field = field < 0 ? 0 : field > top ? top : field;
    const uint64_t sign = random_bits(1) << (layout.field_bits + layout.fraction_bits);
    return sign | (uint64_t)field << layout.fraction_bits | random_bits(layout.fraction_bits);
}

static void put(char *data, enum dtype dtype, uint64_t index, uint64_t bits)
{
    memcpy(data + index * dtype_size(dtype), &bits, dtype_size(dtype)); /* little-endian */
}

static void fill(char *a, char *b, enum dtype dtype, enum kind kind)
{
    const uint64_t sign = (uint64_t)1 << (8 * dtype_size(dtype) - 1);
    for (uint64_t i = 0; i < PERIOD; i++) {
        uint64_t x = random_bits(63), y = random_bits(63);
        if (dtype_is_float(dtype)) {
            x = random_real(dtype, kind);
            y = random_real(dtype, kind);
        }
        put(a, dtype, i, x);
        put(b, dtype, i, y);
        if (kind == KIND_CANCEL && dtype_is_float(dtype)) {
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
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cublasHandle_t cublas;
    struct exact_shape shape[DTYPE_COUNT];
    void *d_flush; /* twice L2 */
    size_t flush_bytes;
    char *a, *b; /* a period of each */
    char *d_a, *d_b;
    struct exact_total *d_total;
    struct dot_value *d_result;
    void *d_blas;
    bool failed;
};

static void bench_open(struct bench *bench, size_t bytes)
{
    int device = 0, multiprocessors = 0, l2 = 0;
    REQUIRE(cudaGetDevice(&device));
    REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    REQUIRE(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        REQUIRE(exact_open((enum dtype)dtype, (uint32_t)multiprocessors, &bench->shape[dtype]));
    bench->flush_bytes = 2 * (size_t)l2;
    bench->a = malloc(PERIOD * 8);
    bench->b = malloc(PERIOD * 8);
    if (bench->a == NULL || bench->b == NULL)
        exit(1);
    REQUIRE(cudaStreamCreate(&bench->stream));
    REQUIRE(cudaEventCreate(&bench->begin));
    REQUIRE(cudaEventCreate(&bench->end));
    REQUIRE(cudaMalloc(&bench->d_flush, bench->flush_bytes));
    REQUIRE(cudaMalloc((void **)&bench->d_a, bytes));
    REQUIRE(cudaMalloc((void **)&bench->d_b, bytes));
    REQUIRE(cudaMalloc((void **)&bench->d_total, sizeof *bench->d_total));
    REQUIRE(cudaMemset(bench->d_total, 0, sizeof *bench->d_total));
    REQUIRE(cudaMalloc((void **)&bench->d_result, sizeof *bench->d_result));
    REQUIRE(cudaMalloc(&bench->d_blas, 8));
    REQUIRE(cublasCreate(&bench->cublas));
    REQUIRE(cublasSetStream(bench->cublas, bench->stream));
    REQUIRE(cublasSetPointerMode(bench->cublas, CUBLAS_POINTER_MODE_DEVICE));
}

static void bench_close(struct bench *bench)
{
    REQUIRE(cublasDestroy(bench->cublas));
    REQUIRE(cudaFree(bench->d_blas));
    REQUIRE(cudaFree(bench->d_result));
    REQUIRE(cudaFree(bench->d_total));
    REQUIRE(cudaFree(bench->d_b));
    REQUIRE(cudaFree(bench->d_a));
    REQUIRE(cudaFree(bench->d_flush));
    REQUIRE(cudaEventDestroy(bench->end));
    REQUIRE(cudaEventDestroy(bench->begin));
    REQUIRE(cudaStreamDestroy(bench->stream));
    free(bench->b);
    free(bench->a);
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
                .a = bench->d_a,
                .b = bench->d_b,
                .n = n,
                .rows = 1,
                .inner_rows = 1,
                .dtype = dtype,
                .result_dtype = result_dtype_of(dtype),
                .is_final = 1,
            },
    };
    exact_plan(&launch.only, &bench->shape[dtype], false);
    REQUIRE(exact_launch(dtype, &bench->shape[dtype], &launch, launch.only.blocks, bench->stream));
}

static void queue_blas(struct bench *bench, enum dtype dtype, uint64_t n)
{
    const cudaDataType_t type = dtype == DTYPE_FLOAT16 ? CUDA_R_16F : CUDA_R_16BF;
    if (dtype == DTYPE_FLOAT32)
        REQUIRE(cublasSdot(bench->cublas, (int)n, (float *)(void *)bench->d_a, 1,
                           (float *)(void *)bench->d_b, 1, bench->d_blas));
    else if (dtype == DTYPE_FLOAT64)
        REQUIRE(cublasDdot(bench->cublas, (int)n, (double *)(void *)bench->d_a, 1,
                           (double *)(void *)bench->d_b, 1, bench->d_blas));
    else
        REQUIRE(cublasDotEx(bench->cublas, (int)n, bench->d_a, type, 1, bench->d_b, type, 1,
                            bench->d_blas, type, CUDA_R_32F));
}

typedef void (*queue_one)(struct bench *bench, enum dtype dtype, uint64_t n);

static double time_one(struct bench *bench, queue_one queue, enum dtype dtype, uint64_t n)
{
    float ms = 0;
    REQUIRE(cudaMemsetAsync(bench->d_flush, 0, bench->flush_bytes, bench->stream));
    REQUIRE(cudaEventRecord(bench->begin, bench->stream));
    queue(bench, dtype, n);
    REQUIRE(cudaEventRecord(bench->end, bench->stream));
    REQUIRE(cudaStreamSynchronize(bench->stream));
    REQUIRE(cudaEventElapsedTime(&ms, bench->begin, bench->end));
    return (double)ms * 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, RUNS, sizeof *values, compare_doubles);
    return values[RUNS / 2];
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

static void compare_at(struct bench *bench, enum dtype dtype, enum kind kind, uint64_t n)
{
    double exact[RUNS], blas[RUNS];
    const bool has_blas = dtype_is_float(dtype);
    for (int run = 0; run < RUNS; run++) {
        exact[run] = time_one(bench, queue_exact, dtype, n);
        blas[run] = has_blas ? time_one(bench, queue_blas, dtype, n) : 0;
    }
    const double gigabytes = 2.0 * (double)n * (double)dtype_size(dtype) / 1e9;
    const double exact_us = median(exact), blas_us = median(blas);
    const bool right = is_right(bench, dtype, n);
    (void)printf("%-8s %-10s %9llu %9.2f %7.0f", dtype_name(dtype),
                 dtype_is_float(dtype) ? kind_name[kind] : "any", (unsigned long long)n, exact_us,
                 gigabytes / exact_us * 1e6);
    if (has_blas)
        (void)printf(" %9.2f %7.0f %6.3f", blas_us, gigabytes / blas_us * 1e6, blas_us / exact_us);
    (void)printf("  %s\n", right ? "ok" : "WRONG");
    (void)fflush(stdout);
}

static void compare_type(struct bench *bench, enum dtype dtype, double largest)
{
    const size_t size = dtype_size(dtype);
    for (int kind = 0; kind < (dtype_is_float(dtype) ? KIND_COUNT : 1); kind++) {
        fill(bench->a, bench->b, dtype, (enum kind)kind);
        upload(bench->d_a, bench->a, PERIOD * size, (size_t)largest * size);
        upload(bench->d_b, bench->b, PERIOD * size, (size_t)largest * size);
        for (double n = 1e3; n <= largest; n *= 10)
            if (kind == KIND_UNIFORM || kind == KIND_FULL || n * 10 > largest)
                compare_at(bench, dtype, (enum kind)kind, (uint64_t)n);
    }
}

int main(int argc, char **argv)
{
    static const enum dtype types[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                       DTYPE_INT8,    DTYPE_UINT8,   DTYPE_INT32,   DTYPE_INT64};
    const double largest = argc > 1 ? strtod(argv[1], NULL) : 1e8;
    struct bench bench = {0};
    bench_open(&bench, (size_t)largest * 8);
    (void)printf("%-8s %-10s %9s %9s %7s %9s %7s %6s\n", "dtype", "data", "n", "exact us", "GB/s",
                 "cuBLAS us", "GB/s", "share");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        compare_type(&bench, types[i], largest);
    bench_close(&bench);
    return bench.failed ? 1 : 0;
}
