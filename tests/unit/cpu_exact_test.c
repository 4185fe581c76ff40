/* Exact sums on the CPU: every instruction set against products deposited one by one, whatever the
 * data, length, address, order, padding and pieces; and the jobs of the CPU device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/bound.h"
#include "gpu/cpu_dot.h"
#include "gpu/exact/sum.h"
#include "gpu/gpu.h"

enum { ELEMENT_BYTES = 16, MAX_N = 9000, ROOM_BYTES = MAX_N * ELEMENT_BYTES + 64 };

static uint64_t random_state = 1;

static uint64_t random_bits(unsigned bits)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state ^ random_state >> 29) >> (64 - bits);
}

/* --- data --- */

enum kind { NEAR, FAR, PATTERNS, LOW, SPARSE, NOT_FINITE, KIND_COUNT };

static double random_near(int spread)
{
    double value = ldexp((double)random_bits(53), (int)(random_bits(30) % (unsigned)spread) - 53);
    return random_bits(1) ? value : -value;
}

static double random_pattern(bool is_wide)
{
    for (;;) {
        uint64_t bits = random_bits(64);
        uint32_t half = (uint32_t)random_bits(32);
        double wide;
        float narrow;
        memcpy(&wide, &bits, sizeof wide);
        memcpy(&narrow, &half, sizeof narrow);
        double value = is_wide ? wide : (double)narrow;
        if (isfinite(value))
            return value;
    }
}

static double random_element(enum kind kind, bool is_wide)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, 0, -0.0};
    switch (kind) {
    case NEAR:
        return random_near(8);
    case FAR:
        return random_near(is_wide ? 700 : 120);
    case PATTERNS:
        return random_pattern(is_wide);
    case LOW:
        return ldexp((double)random_bits(6) - 31, is_wide ? -1074 : -149);
    case SPARSE:
        return random_bits(3) ? (random_bits(1) ? 0.0 : -0.0) : random_pattern(is_wide);
    default:
        return random_bits(7) ? random_near(30) : odd[random_bits(20) % 5];
    }
}

static void put(void *data, enum dtype part, size_t index, enum kind kind)
{
    size_t size = dtype_size(part);
    uint64_t bits = random_bits(64);
    if (part == DTYPE_FLOAT64) {
        double value = random_element(kind, true);
        memcpy(&bits, &value, sizeof value);
    } else if (!dtype_is_integer(part)) {
        float value = (float)random_element(kind, false);
        uint32_t narrow;
        memcpy(&narrow, &value, sizeof narrow);
        bits = part == DTYPE_FLOAT32 ? narrow : narrow >> 16; /* of float16 any pattern */
    }
    memcpy((char *)data + index * size, &bits, size);
}

static unsigned char room_a[ROOM_BYTES], room_b[ROOM_BYTES];

/* n elements at odd places of the rooms. */
static struct cpu_row random_row(enum dtype dtype, enum kind kind, uint64_t n)
{
    enum dtype part = dtype_part(dtype);
    size_t size = dtype_size(part);
    struct cpu_row row = {.dtype = dtype, .conjugate = random_bits(1), .n = n};
    unsigned char *a = room_a + random_bits(2) * size, *b = room_b + random_bits(2) * size;
    assert_true(n <= MAX_N);
    for (uint64_t i = 0; i < n * (dtype_size(dtype) / size); i++) {
        put(a, part, i, kind);
        put(b, part, i, kind);
    }
    row.a = a;
    row.b = b;
    return row;
}

/* --- the reference: one product after the other --- */

static double element(enum dtype part, const void *data, uint64_t index)
{
    if (part == DTYPE_FLOAT64)
        return ((const double *)data)[index];
    if (part == DTYPE_FLOAT32)
        return (double)((const float *)data)[index];
    const uint16_t half = ((const uint16_t *)data)[index];
    if (part == DTYPE_BFLOAT16) {
        uint32_t bits = (uint32_t)half << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    int field = half >> 10 & 31, fraction = half & 1023;
    double value = field > 0 ? ldexp(fraction + 1024, field - 25) : ldexp(fraction, -24);
    if (field == 31)
        value = fraction ? NAN : INFINITY;
    return half >> 15 ? -value : value;
}

static exact_int128 whole(enum dtype dtype, const void *data, uint64_t index)
{
    if (dtype == DTYPE_INT8)
        return ((const int8_t *)data)[index];
    if (dtype == DTYPE_UINT8)
        return ((const uint8_t *)data)[index];
    return dtype == DTYPE_INT32 ? ((const int32_t *)data)[index] : ((const int64_t *)data)[index];
}

static void deposit(int64_t *limb, enum dtype dtype, unsigned *special, double x, double y)
{
    unsigned bits = exact_special_of(x, y);
    *special |= bits;
    if (bits != 0)
        return;
    if (dtype_part(dtype) == DTYPE_FLOAT64)
        exact_add_product64(limb, x, y);
    else
        exact_add_product32(limb, (float)x, (float)y);
}

/* Limbs of one value: part 0 or, of complex operands, 1; returns special bits. */
static unsigned reference_limbs(const struct cpu_row *row, int part, int64_t *limb)
{
    unsigned special = 0;
    enum dtype type = dtype_part(row->dtype);
    for (uint64_t i = 0; i < row->n; i++) {
        if (dtype_is_integer(row->dtype)) {
            exact_add_integer(limb, whole(type, row->a, i) * whole(type, row->b, i));
        } else if (dtype_is_complex(row->dtype)) {
            double re_a = element(type, row->a, 2 * i), im_a = element(type, row->a, 2 * i + 1);
            double re_b = element(type, row->b, 2 * i), im_b = element(type, row->b, 2 * i + 1);
            im_a = row->conjugate ? -im_a : im_a;
            deposit(limb, type, &special, re_a, part == 0 ? re_b : im_b);
            deposit(limb, type, &special, part == 0 ? -im_a : im_a, part == 0 ? im_b : re_b);
        } else {
            deposit(limb, type, &special, element(type, row->a, i), element(type, row->b, i));
        }
    }
    return special;
}

static void reference(const struct cpu_row *row, int part, enum dtype result, struct dot_value *ret)
{
    int64_t limb[EXACT_LIMBS_MAX] = {0};
    struct exact_layout layout = exact_layout_of(row->dtype);
    unsigned special = reference_limbs(row, part, limb);
    exact_value(limb, layout.limbs, layout.base, special, row->dtype, result, ret);
}

/* --- comparing --- */

static bool is_same(const struct dot_value *x, const struct dot_value *y)
{
    return memcmp(&x->sum, &y->sum, sizeof x->sum) == 0 && x->flags == y->flags &&
           x->error_bound == y->error_bound &&
           memcmp(x->integer, y->integer, sizeof x->integer) == 0;
}

static enum dtype result_of(enum dtype dtype)
{
    if (dtype_is_complex(dtype))
        return DTYPE_COMPLEX128;
    return dtype_is_integer(dtype) ? DTYPE_INT64 : DTYPE_FLOAT64;
}

static void check_same(const struct cpu_row *row, const struct dot_value *value, const char *what)
{
    for (int part = 0; part < (dtype_is_complex(row->dtype) ? 2 : 1); part++) {
        struct dot_value want;
        reference(row, part, result_of(row->dtype), &want);
        if (!is_same(&value[part], &want))
            fail_msg("%s, %s, n %llu, part %d: %a, flags %x; expected %a, flags %x", what,
                     dtype_name(row->dtype), (unsigned long long)row->n, part, value[part].sum,
                     value[part].flags, want.sum, want.flags);
    }
}

/* Every bit of the sum, those as well that rounding hides. */
static void check_limbs(const struct cpu_row *row, const struct exact_sum *sum, const char *what)
{
    for (int part = 0; part < (dtype_is_complex(row->dtype) ? 2 : 1); part++) {
        int64_t want[EXACT_LIMBS_MAX] = {0};
        struct exact_part got = sum->part[part];
        unsigned special = reference_limbs(row, part, want);
        exact_part_carry(&got);
        exact_carry(want, got.layout.limbs);
        assert_int_equal(got.special, special);
        if (special == 0 && memcmp(got.limb, want, (size_t)got.layout.limbs * sizeof *want) != 0)
            fail_msg("%s, %s, n %llu, part %d: limbs differ", what, dtype_name(row->dtype),
                     (unsigned long long)row->n, part);
    }
}

static void check_row(const struct cpu_kernel *kernel, const struct cpu_row *row)
{
    struct exact_sum sum;
    struct dot_value value[2];
    exact_sum_init(&sum, kernel, row->dtype, row->conjugate, false);
    exact_sum_add(&sum, row->a, row->b, row->n);
    check_limbs(row, &sum, kernel->name);
    exact_sum_round(&sum, result_of(row->dtype), value);
    check_same(row, value, kernel->name);
}

/* --- behaviours --- */

static void every_kernel_is_exact_for_any_data(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {
        0,   1,   2,   11,  12,  13,  15,  16,   17,   31,   63,   64,   65,   100,  127,  128, 255,
        256, 257, 511, 512, 513, 515, 600, 1000, 1023, 1024, 1025, 1040, 2047, 2048, 2049, 3000};
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                struct cpu_row row = random_row(dtype, kind, lengths[i]);
                for (size_t k = 0; k < kernels; k++)
                    check_row(&kernel[k], &row);
            }
}

static void every_short_length_is_exact(void **state)
{
    (void)state;
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint64_t n = 0; n < 150; n++) {
            struct cpu_row row = random_row(dtype, n % KIND_COUNT, n);
            for (size_t k = 0; k < kernels; k++)
                check_row(&kernel[k], &row);
        }
}

/* Exponents from one end of the type to the other, one pair of them a block: every number of
 * levels, and what lies beyond. */
static void every_distance_of_exponents_is_exact(void **state)
{
    (void)state;
    enum { N = 64 };
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++) {
        int most = dtype == DTYPE_FLOAT32 ? 276 : 2097, step = dtype == DTYPE_FLOAT32 ? 1 : 13;
        for (int distance = 0; distance < most; distance += step) {
            struct cpu_row row = random_row(dtype, NEAR, N);
            int top = dtype == DTYPE_FLOAT32 ? 127 : 1023;
            for (size_t i = 0; i < N; i++) {
                double value =
                    ldexp(1 + (double)random_bits(50) * 0x1p-50, i % 2 ? top : top - distance);
                void *to = (char *)(uintptr_t)row.a + i * dtype_size(dtype);
                float narrow = (float)(value < 0x1.fffffep127 ? value : 0x1.fffffep127);
                memcpy(to, dtype == DTYPE_FLOAT32 ? (void *)&narrow : (void *)&value,
                       dtype_size(dtype));
            }
            for (size_t k = 0; k < kernels; k++)
                check_row(&kernel[k], &row);
        }
    }
}

/* Products that lie close together, anywhere in the type's range: where levels end at its bottom,
 * and where they begin at its top. */
static void every_height_of_exponents_is_exact(void **state)
{
    (void)state;
    enum { N = 48 };
    static double a[N], b[N];
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    for (int height = -1150; height <= 1030; height++) {
        for (size_t i = 0; i < N; i++) {
            a[i] = ldexp(random_near(2), height / 2);
            b[i] = ldexp(random_near(2), height - height / 2);
        }
        struct cpu_row row = {DTYPE_FLOAT64, false, a, b, N};
        for (size_t k = 0; k < kernels; k++)
            check_row(&kernel[k], &row);
    }
}

static void fill(const struct cpu_row *row, double x, double y)
{
    float narrow_x = (float)x, narrow_y = (float)y;
    bool is_wide = row->dtype == DTYPE_FLOAT64;
    size_t size = dtype_size(row->dtype);
    for (size_t i = 0; i < row->n; i++) {
        memcpy((char *)(uintptr_t)row->a + i * size, is_wide ? (void *)&x : (void *)&narrow_x,
               size);
        memcpy((char *)(uintptr_t)row->b + i * size, is_wide ? (void *)&y : (void *)&narrow_y,
               size);
    }
}

/* Equal terms of one sign, beside one that is 2^above as large, so that what they leave to a level
 * lies anywhere on its grid: what each level must bear. */
static void equal_terms_of_one_sign_fill_every_level(void **state)
{
    (void)state;
    static const double factor[] = {1,
                                    0x1.fffffep0,
                                    0x1.fffffffffffffp0,
                                    0x1.8p0,
                                    1 + 0x0ff * 0x1p-52,
                                    -1 - 0x1ff * 0x1p-52,
                                    1 + 0x7fff * 0x1p-52};
    enum { FACTORS = sizeof factor / sizeof *factor };
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    for (enum dtype dtype = DTYPE_FLOAT32; dtype <= DTYPE_FLOAT64; dtype++)
        for (int above = 0; above < 100; above++)
            for (int i = 0; i < FACTORS * FACTORS; i++) {
                struct cpu_row row = {dtype, false, room_a, room_b, 1024};
                double large = ldexp(1, above);
                float narrow = (float)large;
                fill(&row, factor[i / FACTORS], factor[i % FACTORS]);
                memcpy(room_a, dtype == DTYPE_FLOAT64 ? (void *)&large : (void *)&narrow,
                       dtype_size(dtype));
                for (size_t k = 0; k < kernels; k++)
                    check_row(&kernel[k], &row);
            }
}

static void swap(void *data, size_t size, size_t i, size_t j)
{
    unsigned char *x = (unsigned char *)data + i * size, *y = (unsigned char *)data + j * size;
    for (size_t k = 0; k < size; k++) {
        unsigned char byte = x[k];
        x[k] = y[k];
        y[k] = byte;
    }
}

/* Shuffled, cut into pieces that are merged in any order, each followed by zeros. */
static void check_rearranged(const struct cpu_row *row, uint64_t zeros)
{
    enum { PIECES = 7 };
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel), size = dtype_size(row->dtype);
    static struct exact_sum sum[PIECES];
    static unsigned char a[ROOM_BYTES], b[ROOM_BYTES];
    memcpy(a, row->a, row->n * size);
    memcpy(b, row->b, row->n * size);
    for (uint64_t i = row->n; i > 1; i--) {
        uint64_t j = random_bits(40) % i;
        swap(a, size, i - 1, j);
        swap(b, size, i - 1, j);
    }
    uint64_t pieces = 2 + random_bits(20) % (PIECES - 1), first = 0;
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t rest = row->n - first, n = i + 1 == pieces ? rest : random_bits(40) % (rest + 1);
        unsigned char *zero = calloc(zeros + 1, size);
        assert_non_null(zero);
        exact_sum_init(&sum[i], &kernel[random_bits(20) % kernels], row->dtype, row->conjugate,
                       false);
        exact_sum_add(&sum[i], a + first * size, b + first * size, n);
        exact_sum_add(&sum[i], zero, zero, zeros);
        first += n;
        free(zero);
    }
    struct dot_value value[2];
    for (uint64_t i = 1; i < pieces; i++)
        exact_sum_merge(&sum[0], &sum[i]);
    exact_sum_round(&sum[0], result_of(row->dtype), value);
    check_same(row, value, "rearranged");
}

static void order_pieces_and_zeros_make_no_difference(void **state)
{
    (void)state;
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint64_t zeros = 0; zeros <= 260; zeros = zeros == 70 ? 255 : zeros + 1) {
            struct cpu_row row =
                random_row(dtype, random_bits(20) % KIND_COUNT, random_bits(20) % 1500);
            check_rearranged(&row, zeros);
        }
}

/* Zeros in the same row, after the last element: they change which blocks there are. */
static void padding_in_place_makes_no_difference(void **state)
{
    (void)state;
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint64_t zeros = 0; zeros <= 260; zeros = zeros == 70 ? 255 : zeros + 1) {
            struct cpu_row row = random_row(dtype, random_bits(20) % KIND_COUNT, 1 + zeros * 3);
            size_t size = dtype_size(dtype);
            struct exact_sum sum;
            struct dot_value value[2];
            memset((char *)(uintptr_t)row.a + row.n * size, 0, zeros * size);
            memset((char *)(uintptr_t)row.b + row.n * size, 0, zeros * size);
            exact_sum_init(&sum, NULL, dtype, row.conjugate, false);
            exact_sum_add(&sum, row.a, row.b, row.n + zeros);
            exact_sum_round(&sum, result_of(dtype), value);
            check_same(&row, value, "padded");
        }
}

/* More than 4 million terms in one chain, their sum known by arithmetic. */
static void a_long_row_is_exact(void **state)
{
    (void)state;
    enum { N = 5000003 };
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    assert_true(a != NULL && b != NULL);
    for (size_t i = 0; i < N; i++) {
        a[i] = i == N / 2 ? 0x1p-149F : i % 2 ? 0x1.fffffep127F : -0x1.fffffep127F;
        b[i] = i == N / 2 ? 0x1p-149F : i < N / 2 ? 0x1.fffffep127F : -0x1.fffffep127F;
    }
    for (size_t k = 0; k < kernels; k++) {
        struct exact_sum sum;
        struct dot_value value;
        exact_sum_init(&sum, &kernel[k], DTYPE_FLOAT32, false, false);
        exact_sum_add(&sum, a, b, N);
        exact_sum_round(&sum, DTYPE_FLOAT64, &value);
        int64_t left = 0; /* products that have no opposite */
        for (size_t i = 0; i < N; i++)
            left += i == N / 2 ? 0 : (a[i] > 0) == (b[i] > 0) ? 1 : -1;
        double want = left != 0 ? (double)left * (0x1.fffffep127 * 0x1.fffffep127) : 0x1p-298;
        if (value.sum != want)
            fail_msg("%s: %a, expected %a", kernel[k].name, value.sum, want);
    }
    free(a);
    free(b);
}

/* What diagnostics show: a sum of magnitudes that is good to many digits. */
static void sum_abs_is_close_where_it_is_asked_for(void **state)
{
    (void)state;
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (dtype == DTYPE_FLOAT16)
            continue; /* any pattern: nearly always with a NaN */
        struct cpu_row row = random_row(dtype, NEAR, 3000);
        struct exact_sum sum;
        struct dot_value value[2];
        double want = 0;
        exact_sum_init(&sum, NULL, dtype, false, true);
        exact_sum_add(&sum, row.a, row.b, row.n);
        exact_sum_round(&sum, result_of(dtype), value);
        enum dtype part = dtype_part(dtype);
        for (uint64_t i = 0; i < row.n; i++) {
            if (dtype_is_integer(dtype))
                want += fabs((double)whole(part, row.a, i) * (double)whole(part, row.b, i));
            else if (dtype_is_complex(dtype))
                want += fabs(element(part, row.a, 2 * i) * element(part, row.b, 2 * i)) +
                        fabs(element(part, row.a, 2 * i + 1) * element(part, row.b, 2 * i + 1));
            else
                want += fabs(element(part, row.a, i) * element(part, row.b, i));
        }
        assert_true(fabs(value[0].sum_abs - want) <= 1e-12 * want);
    }
}

/* --- fast sums of the types that are staged --- */

static void fast_sums_of_every_float_type_keep_their_bound(void **state)
{
    (void)state;
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint64_t n = 1; !dtype_is_integer(dtype) && n < 3000; n += 1 + n / 3)
            for (size_t k = 0; k < kernels; k++) {
                struct cpu_row row = random_row(dtype, n % KIND_COUNT, n);
                struct cpu_sum sum[2];
                struct dot_value value[2];
                uint64_t depth = cpu_depth(&kernel[k], dtype, n);
                cpu_row_dot(&kernel[k], &row, sum);
                for (int i = 0; i < 2; i++)
                    value[i] = (struct dot_value){.sum = sum[i].sum, .sum_abs = sum[i].sum_abs};
                if (dtype_is_complex(dtype))
                    value_settle_complex(value, dtype, row.conjugate, row.a, row.b, n, depth);
                else
                    value_settle(value, dtype, row.a, row.b, n, depth);
                for (int i = 0; i < (dtype_is_complex(dtype) ? 2 : 1); i++) {
                    struct dot_value want;
                    reference(&row, i, DTYPE_FLOAT64, &want);
                    double off = fabs(value[i].sum - want.sum);
                    bool is_equal = memcmp(&value[i].sum, &want.sum, sizeof want.sum) == 0;
                    if (!is_equal && !(off <= value[i].error_bound + want.error_bound))
                        fail_msg("%s, %s, n %llu: %a, bound %a; expected %a", kernel[k].name,
                                 dtype_name(dtype), (unsigned long long)n, value[i].sum,
                                 value[i].error_bound, want.sum);
                }
            }
}

/* --- jobs --- */

static struct gpu *open_cpu(void)
{
    struct gpu_config config = {.budget_bytes = 1 << 24,
                                .queue_jobs = 8,
                                .queue_bytes = 1 << 24,
                                .batch_jobs = 8,
                                .inline_terms = 1 << 20};
    struct problem problem = {0};
    struct gpu *gpu = NULL;
    assert_int_equal(gpu_open(&gpu, &config, &problem), ERR_OK);
    return gpu;
}

/* Rows of b against one row of a: a matrix-vector product of any type. */
static void check_job(struct gpu *gpu, enum dtype dtype, enum accuracy accuracy, uint64_t rows,
                      uint64_t n)
{
    size_t size = dtype_size(dtype), values = dtype_is_complex(dtype) ? 2 : 1;
    struct cpu_row all = random_row(dtype, NEAR, (rows + 1) * n);
    struct tensor_pair pair = {
        .a = {dtype, {1, {n}}, 0},
        .b = {dtype, {2, {rows, n}}, n * size},
        .result = {1, {rows}},
    };
    struct job job = {.base = all.a, .bytes = all.n * size};
    assert_int_equal(job_plan(&job, &pair, 1), ERR_OK);
    assert_int_equal(job.value_count, rows * values);
    job.accuracy = accuracy;
    job.result_dtype = result_of(dtype);
    job.conjugate = all.conjugate;
    gpu_compute(gpu, &job);
    assert_int_equal(job.error, ERR_OK);
    for (uint64_t i = 0; i < rows; i++) {
        struct cpu_row row = {dtype, all.conjugate, all.a, (const char *)all.a + (i + 1) * n * size,
                              n};
        check_same(&row, &job.value[i * values], "job");
    }
    job_fini(&job);
}

static void jobs_of_every_type_are_exact(void **state)
{
    (void)state;
    struct gpu *gpu = open_cpu();
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (uint64_t rows = 1; rows < 6; rows++)
            for (uint64_t n = 0; n < 400; n = 2 * n + 1)
                check_job(gpu, dtype, ACCURACY_EXACT, rows, n);
    gpu_close(gpu);
}

static void integer_jobs_are_exact_when_fast_as_well(void **state)
{
    (void)state;
    struct gpu *gpu = open_cpu();
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++)
        if (dtype_is_integer(dtype))
            check_job(gpu, dtype, ACCURACY_FAST, 3, 200);
    gpu_close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_is_exact_for_any_data),
        cmocka_unit_test(every_short_length_is_exact),
        cmocka_unit_test(every_distance_of_exponents_is_exact),
        cmocka_unit_test(every_height_of_exponents_is_exact),
        cmocka_unit_test(equal_terms_of_one_sign_fill_every_level),
        cmocka_unit_test(order_pieces_and_zeros_make_no_difference),
        cmocka_unit_test(padding_in_place_makes_no_difference),
        cmocka_unit_test(a_long_row_is_exact),
        cmocka_unit_test(sum_abs_is_close_where_it_is_asked_for),
        cmocka_unit_test(fast_sums_of_every_float_type_keep_their_bound),
        cmocka_unit_test(jobs_of_every_type_are_exact),
        cmocka_unit_test(integer_jobs_are_exact_when_fast_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
