/* Exact sums on one core beside the plain floating-point ones, in one run: ns an element.
 *
 * bench_cpu_exact [N [SECONDS_A_FIGURE]]: a table of every instruction set of this machine,
 * element type and kind of data. The smallest of the runs counts: others use the machine as well.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/clock.h"
#include "gpu/cpu_dot.h"
#include "gpu/exact/sum.h"
#include "tests/bench/arguments.h"

enum kind { UNIFORM, SPREAD_20, SPREAD_60, SPREAD_200, FULL_RANGE, ONE_OUTLIER, KIND_COUNT };

static const char *const kind_name[] = {"uniform", "2^+-20", "2^+-60",
                                        "2^+-200", "full",   "outlier"};

static uint64_t random_state = 1;

static uint64_t random_bits(unsigned bits)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state ^ random_state >> 29) >> (64 - bits);
}

static double uniform(void)
{
    return (double)(int64_t)(random_bits(53) * 2) * 0x1p-53 - 1;
}

static double spread(int exponent)
{
    return ldexp(uniform(), (int)(random_bits(32) % (unsigned)(2 * exponent + 1)) - exponent);
}

/* Every finite pattern of the type is as likely as any other. */
static double any_finite(enum dtype dtype)
{
    for (;;) {
        uint64_t bits = random_bits(64);
        uint32_t half = (uint32_t)bits;
        double wide;
        float narrow;
        memcpy(&wide, &bits, sizeof wide);
        memcpy(&narrow, &half, sizeof narrow);
        double value = dtype_part(dtype) == DTYPE_FLOAT64 ? wide : (double)narrow;
        if (isfinite(value))
            return value;
    }
}

static double value_of(enum kind kind, enum dtype dtype, size_t index)
{
    switch (kind) {
    case UNIFORM:
        return uniform();
    case SPREAD_20:
        return spread(20);
    case SPREAD_60:
        return spread(60);
    case SPREAD_200:
        return dtype_part(dtype) == DTYPE_FLOAT64 ? spread(200) : spread(100);
    case ONE_OUTLIER:
        return index % 1000 == 0 ? 0x1p-70 : uniform();
    default:
        return any_finite(dtype);
    }
}

/* Half types: the upper half of a float32, or a pattern that is finite. */
static void put(void *data, enum dtype dtype, size_t index, double value)
{
    if (dtype == DTYPE_FLOAT64)
        ((double *)data)[index] = value;
    else if (dtype == DTYPE_FLOAT32)
        ((float *)data)[index] = (float)value;
    else if (dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT16) {
        float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        ((uint16_t *)data)[index] =
            (uint16_t)(dtype == DTYPE_BFLOAT16 ? bits >> 16 : (bits >> 16) & 0xbbff);
    } else {
        uint64_t bits = random_bits(64);
        memcpy((char *)data + index * dtype_size(dtype), &bits, dtype_size(dtype));
    }
}

static void fill(void *data, enum kind kind, enum dtype dtype, size_t n)
{
    bool is_complex = dtype_is_complex(dtype);
    for (size_t i = 0; i < (is_complex ? 2 * n : n); i++)
        put(data, dtype_part(dtype), i, value_of(kind, dtype, i));
}

struct figures {
    double exact_ns, fast_ns;
};

static volatile double sink;

static double exact_once(const struct cpu_kernel *kernel, enum dtype dtype, const void *a,
                         const void *b, size_t n)
{
    struct dot_value value[2];
    struct exact_sum sum;
    exact_sum_init(&sum, kernel, dtype, false, false);
    exact_sum_add(&sum, a, b, n);
    exact_sum_round(&sum, dtype_is_complex(dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, value);
    return value[0].sum;
}

static double fast_once(const struct cpu_kernel *kernel, enum dtype dtype, const void *a,
                        const void *b, size_t n)
{
    struct cpu_row row = {dtype, false, a, b, n};
    struct cpu_sum sum[2];
    cpu_row_dot(kernel, &row, sum);
    return sum[0].sum;
}

typedef double (*once)(const struct cpu_kernel *kernel, enum dtype dtype, const void *a,
                       const void *b, size_t n);

/* Repeats for so long; the quickest round, of about 10^6 elements. */
static double measure(once run, const struct cpu_kernel *kernel, enum dtype dtype, const void *a,
                      const void *b, size_t n, double seconds)
{
    size_t repeats = n < 1000000 ? 1000000 / n : 1;
    double best = INFINITY;
    int64_t end_ns = clock_ns() + (int64_t)(seconds * 1e9);
    do {
        int64_t begin_ns = clock_ns();
        for (size_t i = 0; i < repeats; i++)
            sink = run(kernel, dtype, a, b, n);
        double ns = (double)(clock_ns() - begin_ns) / (double)(repeats * n);
        best = ns < best ? ns : best;
    } while (clock_ns() < end_ns);
    return best;
}

static void table_of(const struct cpu_kernel *kernel, size_t n, double seconds)
{
    printf("\n%s, n = %zu, ns an element: exact (fast)\n%-10s", kernel->name, n, "");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        printf(" %15s", kind_name[kind]);
    printf("\n");
    size_t bytes = (n * 16 + LIMIT_OPERAND_ALIGN - 1) / LIMIT_OPERAND_ALIGN * LIMIT_OPERAND_ALIGN;
    void *a = aligned_alloc(LIMIT_OPERAND_ALIGN, bytes); /* as operands of requests are */
    void *b = aligned_alloc(LIMIT_OPERAND_ALIGN, bytes);
    for (enum dtype dtype = 0; a != NULL && b != NULL && dtype < DTYPE_COUNT; dtype++) {
        bool has_kinds = !dtype_is_integer(dtype) && dtype_size(dtype) > 2;
        printf("%-10s", dtype_name(dtype));
        for (int kind = 0; kind < (has_kinds ? KIND_COUNT : 1); kind++) {
            fill(a, kind, dtype, n);
            fill(b, kind, dtype, n);
            printf(" %6.3f", measure(exact_once, kernel, dtype, a, b, n, seconds));
            if (dtype_is_integer(dtype))
                printf("         ");
            else
                printf(" (%6.3f)", measure(fast_once, kernel, dtype, a, b, n, seconds));
            (void)fflush(stdout);
        }
        printf("\n");
    }
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    struct argument told[] = {{"N", 1e6, 1, 1e9}, {"SECONDS_A_FIGURE", 0.05, 0.001, 60}};
    arguments_read(argc, argv, told, 2);
    const struct cpu_kernel *kernel;
    size_t count = cpu_kernels(&kernel);
    for (size_t k = 0; k < count; k++)
        table_of(&kernel[k], (size_t)told[0].value, told[1].value);
    return EXIT_SUCCESS;
}
