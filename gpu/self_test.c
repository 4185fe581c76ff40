/* self_test.c - known answers on every device before the first client (gpu_self_test in gpu.h).
 *
 * Fast sums: operands are small whole numbers, so that every order of summation gives the exact
 * sum, and one wrong, missing or doubled term shows. Exact sums: operands of any bit pattern that
 * cancel in pairs, and one product that is left; it is known, or what the CPU says it is rounded
 * to. The lengths take every road of a device: in place and copied, one block and many, vector
 * loads and single ones, many rows.
 */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "gpu/gpu.h"
#include "gpu/waiter.h"

struct known {
    enum dtype dtype;
    uint64_t rows, n;
};

static const struct known cases[] = {
    {DTYPE_FLOAT32, 1, 3},    {DTYPE_FLOAT64, 1, 1000},  {DTYPE_FLOAT32, 1, 200001},
    {DTYPE_FLOAT64, 3, 4099}, {DTYPE_FLOAT32, 500, 129},
};

/* Whole numbers of both signs without a common period. */
static int term_a(uint64_t i)
{
    return (int)(i % 13) - 5;
}

static int term_b(uint64_t i)
{
    return (int)(i * i % 11) - 4;
}

static void put(void *data, enum dtype dtype, uint64_t index, int number)
{
    if (dtype == DTYPE_FLOAT32)
        ((float *)data)[index] = (float)number;
    else
        ((double *)data)[index] = number;
}

/* a: rows x n, then b: n. */
static void fill(void *data, const struct known *known)
{
    uint64_t count = known->rows * known->n;
    for (uint64_t i = 0; i < count; i++)
        put(data, known->dtype, i, term_a(i));
    for (uint64_t i = 0; i < known->n; i++)
        put(data, known->dtype, count + i, term_b(i));
}

static double expected(const struct known *known, uint64_t row)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < known->n; i++)
        sum += term_a(row * known->n + i) * term_b(i);
    return (double)sum;
}

static struct tensor_pair pair_of(const struct known *known)
{
    struct tensor_pair pair = {
        .a = {known->dtype, {2, {known->rows, known->n}}, 0},
        .b = {known->dtype, {1, {known->n}}, known->rows * known->n * dtype_size(known->dtype)},
        .result = {1, {known->rows}},
    };
    return pair;
}

static enum error compare(struct gpu *gpu, int device, const struct job *job,
                          const struct known *known, struct problem *problem)
{
    for (uint64_t row = 0; row < known->rows; row++) {
        double want = expected(known, row), got = job->value[row].sum;
        if (got != want)
            return problem_set(problem, ERR_DEVICE,
                               "%s: row %llu of %llu %s products gave %.17g, not %.17g",
                               gpu_device_info(gpu, device).id, (unsigned long long)row,
                               (unsigned long long)known->n, dtype_name(known->dtype), got, want);
    }
    return ERR_OK;
}

/* From *source, or from the heap when the budget is smaller than the longest case. */
static enum error operands_acquire(const struct buffer_source **source, size_t size,
                                   struct block *ret)
{
    enum error error = (*source)->acquire((*source)->context, size, ret);
    if (error != ERR_NOMEM)
        return error;
    *source = &buffer_heap;
    return buffer_heap.acquire(buffer_heap.context, size, ret);
}

static enum error run_known(struct gpu *gpu, int device, const struct known *known,
                            struct problem *problem)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    struct tensor_pair pair = pair_of(known);
    struct block block = {0};
    struct job job = {.bytes = (known->rows + 1) * known->n * dtype_size(known->dtype)};
    enum error error = operands_acquire(&source, job.bytes, &block);
    if (error == ERR_OK)
        error = job_plan(&job, &pair, 1);
    if (error == ERR_OK) {
        fill(block.data, known);
        job.base = block.data;
        error = waiter_run(gpu, device, &job);
    }
    if (error == ERR_OK)
        error = compare(gpu, device, &job, known, problem);
    else
        (void)problem_set(problem, error, "%s: the self-test could not run: %s",
                          gpu_device_info(gpu, device).id, error_title(error));
    job_fini(&job);
    if (block.data != NULL)
        source->release(source->context, block);
    return error;
}

/* --- exact sums --- */

/* What is left over when everything else has cancelled. */
enum rest { REST_FIFTEEN, REST_ANY };

static const uint64_t exact_lengths[] = {33, 4097, 70001};
enum { EXACT_ROWS = 3, EXACT_VALUES = 2 * EXACT_ROWS };

static uint64_t next_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* Bits of the fraction, and of the exponent above it. */
struct layout {
    unsigned fraction_bits, exponent_bits;
};

static struct layout layout_of(enum dtype part)
{
    switch (part) {
    case DTYPE_FLOAT16:
        return (struct layout){10, 5};
    case DTYPE_BFLOAT16:
        return (struct layout){7, 8};
    case DTYPE_FLOAT32:
        return (struct layout){23, 8};
    default:
        return (struct layout){52, 11};
    }
}

/* 3 or 5, the only numbers that are asked for. */
static uint64_t number_bits(enum dtype part, unsigned number)
{
    if (dtype_is_integer(part))
        return number;
    const struct layout layout = layout_of(part);
    const uint64_t one = ((uint64_t)1 << (layout.exponent_bits - 1)) - 1;
    return number == 3
               ? (one + 1) << layout.fraction_bits | (uint64_t)1 << (layout.fraction_bits - 1)
               : (one + 2) << layout.fraction_bits | (uint64_t)1 << (layout.fraction_bits - 2);
}

/* What the bits of a part mean, looked up once a row: looking up was most of a start. */
struct form {
    size_t size;
    bool is_integer;
    uint64_t sign;     /* of floats */
    uint64_t infinity; /* of floats: all bits of the exponent */
    uint64_t lowest;   /* bit of the exponent; of integers the lowest of all */
};

static struct form form_of(enum dtype part)
{
    const size_t size = dtype_size(part);
    if (dtype_is_integer(part))
        return (struct form){.size = size, .is_integer = true, .lowest = 1};
    const struct layout layout = layout_of(part);
    return (struct form){
        .size = size,
        .sign = (uint64_t)1 << (8 * size - 1),
        .infinity = (((uint64_t)1 << layout.exponent_bits) - 1) << layout.fraction_bits,
        .lowest = (uint64_t)1 << layout.fraction_bits,
    };
}

/* Any finite number; of integers an odd one, whose negative exists. */
static uint64_t any_bits(const struct form *form, uint64_t *state)
{
    uint64_t bits = next_bits(state);
    if (form->is_integer)
        return bits | form->lowest;
    return (bits & form->infinity) == form->infinity ? bits ^ form->lowest : bits;
}

static uint64_t negative_bits(const struct form *form, uint64_t bits)
{
    return form->is_integer ? 0 - bits : bits ^ form->sign;
}

/* Little-endian. Sizes that the compiler knows are single stores. */
static void put_bits(char *data, size_t size, uint64_t index, uint64_t bits)
{
    switch (size) {
    case 1:
        memcpy(data + index, &bits, 1);
        break;
    case 2:
        memcpy(data + 2 * index, &bits, 2);
        break;
    case 4:
        memcpy(data + 4 * index, &bits, 4);
        break;
    default:
        assert(size == 8);
        memcpy(data + 8 * index, &bits, 8);
    }
}

/* One operand's row of n elements, n odd, but for the last. Neighbours are opposite in a and equal
 * in b. Unsigned numbers have no opposite: theirs are zeros. */
static void fill_row(char *data, enum dtype dtype, uint64_t n, bool is_a, uint64_t *state)
{
    const struct form form = form_of(dtype_part(dtype));
    const uint64_t parts = dtype_part_count(dtype);
    const bool is_zero = is_a && dtype == DTYPE_UINT8;
    for (uint64_t i = 0; i + 1 < n; i += 2)
        for (uint64_t j = 0; j < parts; j++) {
            uint64_t bits = is_zero ? 0 : any_bits(&form, state);
            uint64_t twin = is_a ? negative_bits(&form, bits) : bits;
            put_bits(data, form.size, parts * i + j, bits);
            put_bits(data, form.size, parts * (i + 1) + j, twin);
        }
}

/* The last element of a row. */
static void put_rest(char *data, enum dtype dtype, uint64_t n, bool is_a, enum rest rest,
                     uint64_t *state)
{
    const enum dtype part = dtype_part(dtype);
    const struct form form = form_of(part);
    const uint64_t parts = dtype_part_count(dtype);
    for (uint64_t j = 0; j < parts; j++) {
        uint64_t number = j == 0 ? number_bits(part, is_a ? 3 : 5) : 0;
        uint64_t bits = rest == REST_ANY ? any_bits(&form, state) : number;
        put_bits(data, form.size, parts * (n - 1) + j, bits);
    }
}

/* Operands of one type and length: a, EXACT_ROWS x n, then b, n. */
struct set {
    enum dtype dtype;
    uint64_t n;
    char *data;
    uint64_t state; /* of the random numbers */
};

static char *row_of(const struct set *set, uint64_t row)
{
    return set->data + row * set->n * dtype_size(set->dtype);
}

static void fill_set(struct set *set)
{
    for (uint64_t row = 0; row <= EXACT_ROWS; row++)
        fill_row(row_of(set, row), set->dtype, set->n, row < EXACT_ROWS, &set->state);
}

static void put_rests(struct set *set, enum rest rest)
{
    for (uint64_t row = 0; row <= EXACT_ROWS; row++)
        put_rest(row_of(set, row), set->dtype, set->n, row < EXACT_ROWS, rest, &set->state);
}

static bool same_value(const struct dot_value *x, const struct dot_value *y)
{
    return memcmp(&x->sum, &y->sum, sizeof x->sum) == 0 &&
           memcmp(&x->error_bound, &y->error_bound, sizeof x->error_bound) == 0 &&
           x->flags == y->flags && memcmp(x->integer, y->integer, sizeof x->integer) == 0;
}

/* Computes a set on a device; ret has room for EXACT_VALUES. */
static enum error run_set(struct gpu *gpu, int device, const struct set *set, struct dot_value *ret)
{
    const struct known known = {set->dtype, EXACT_ROWS, set->n};
    struct tensor_pair pair = pair_of(&known);
    struct job job = {
        .base = set->data,
        .bytes = (EXACT_ROWS + 1) * set->n * dtype_size(set->dtype),
        .accuracy = ACCURACY_EXACT,
        .result_dtype = dtype_is_integer(set->dtype) ? DTYPE_INT64 : set->dtype,
    };
    enum error error = job_plan(&job, &pair, 1);
    if (error == ERR_OK)
        error = waiter_run(gpu, device, &job);
    if (error == ERR_OK)
        memcpy(ret, job.value, job.value_count * sizeof *ret);
    job_fini(&job);
    return error;
}

/* Both kinds of rest, after the same pairs that cancel. */
static enum error run_exact(struct gpu *gpu, int device, enum dtype dtype, uint64_t n,
                            struct dot_value *ret_fifteen, struct dot_value *ret_any)
{
    const struct buffer_source *source = gpu_buffers(gpu);
    struct block block;
    enum error error = operands_acquire(&source, (EXACT_ROWS + 1) * n * dtype_size(dtype), &block);
    if (error != ERR_OK)
        return error;
    struct set set = {.dtype = dtype, .n = n, .data = block.data, .state = n + dtype};
    fill_set(&set);
    put_rests(&set, REST_FIFTEEN);
    error = run_set(gpu, device, &set, ret_fifteen);
    put_rests(&set, REST_ANY);
    if (error == ERR_OK)
        error = run_set(gpu, device, &set, ret_any);
    source->release(source->context, block);
    return error;
}

static enum error compare_exact(struct gpu *gpu, int device, enum dtype dtype, uint64_t n,
                                const struct dot_value *want, const struct dot_value *got,
                                struct problem *problem)
{
    const int values = dtype_is_complex(dtype) ? EXACT_VALUES : EXACT_ROWS;
    for (int i = 0; i < values; i++)
        if (!same_value(&want[i], &got[i]))
            return problem_set(problem, ERR_DEVICE,
                               "%s: exact sum %d of %llu %s products gave %a, not %a",
                               gpu_device_info(gpu, device).id, i, (unsigned long long)n,
                               dtype_name(dtype), got[i].sum, want[i].sum);
    return ERR_OK;
}

/* 15, and nothing imaginary. */
static void expect_fifteen(enum dtype dtype, struct dot_value *ret)
{
    const unsigned step = dtype_part_count(dtype);
    for (unsigned i = 0; i < EXACT_ROWS * step; i += step) {
        ret[i].sum = 15;
        ret[i].integer[0] = dtype_is_integer(dtype) ? 15 : 0;
    }
}

/* Both kinds of rest on one device. by_cpu: what the CPU gave for REST_ANY, set by device 0. */
static enum error test_exact(struct gpu *gpu, int device, enum dtype dtype, uint64_t n,
                             struct dot_value *by_cpu, struct problem *problem)
{
    struct dot_value want[EXACT_VALUES] = {0}, got[EXACT_VALUES] = {0}, any[EXACT_VALUES] = {0};
    expect_fifteen(dtype, want);
    enum error error = run_exact(gpu, device, dtype, n, got, any);
    if (error != ERR_OK)
        return problem_set(problem, error, "%s: the self-test could not run: %s",
                           gpu_device_info(gpu, device).id, error_title(error));
    if (device == 0)
        memcpy(by_cpu, any, sizeof any);
    error = compare_exact(gpu, device, dtype, n, want, got, problem);
    return error == ERR_OK ? compare_exact(gpu, device, dtype, n, by_cpu, any, problem) : error;
}

enum { EXACT_LENGTHS = sizeof exact_lengths / sizeof *exact_lengths };

/* What the CPU gave for REST_ANY. */
struct by_cpu {
    struct dot_value value[DTYPE_COUNT][EXACT_LENGTHS][EXACT_VALUES];
};

static enum error test_exact_sums(struct gpu *gpu, int device, struct by_cpu *by_cpu,
                                  struct problem *problem)
{
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < EXACT_LENGTHS; i++) {
            enum error error = test_exact(gpu, device, (enum dtype)dtype, exact_lengths[i],
                                          by_cpu->value[dtype][i], problem);
            if (error != ERR_OK)
                return error;
        }
    return ERR_OK;
}

static enum error test_device(struct gpu *gpu, int device, struct by_cpu *by_cpu,
                              struct problem *problem)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum error error = run_known(gpu, device, &cases[i], problem);
        if (error != ERR_OK)
            return error;
    }
    return test_exact_sums(gpu, device, by_cpu, problem);
}

enum error gpu_self_test(struct gpu *gpu, struct problem *problem)
{
    struct by_cpu by_cpu = {0};
    enum error error = test_device(gpu, 0, &by_cpu, problem);
    for (int device = 1; error == ERR_OK && device < gpu_device_count(gpu); device++) {
        struct problem failure;
        if (test_device(gpu, device, &by_cpu, &failure) != ERR_OK)
            gpu_leave_out(gpu, device, &failure);
    }
    return error;
}
