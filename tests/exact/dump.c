/* Exact sums of hard rows, with everything that oracle.py needs to work them out again.
 *
 * usage: exact_dump [seed [rows]]; a line a row: operand type, result type, conjugate, n, the bytes
 * of a and of b in hex, and for each value sum, error_bound (bits), flags and the 192-bit integer.
 * Each row is computed by one of this machine's instruction sets, in 1 to 7 pieces that are merged
 * in any order, padded with zeros, from operands at any address.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cpu_dot.h"
#include "gpu/exact/sum.h"
#include "tests/random.h"

enum { MAX_N = 4200, PIECES = 7 };

static uint64_t below(uint64_t bound)
{
    return random_next() % bound;
}

/* --- elements, made from integers so that nothing rounds on the way --- */

/* Of a real float type. */
struct form {
    int precision, min_exponent,
        max_exponent; /* of the lowest bit of a subnormal; of the top bit */
    int fraction_bits, exponent_bits;
};

static struct form form_of(enum dtype part)
{
    switch (part) {
    case DTYPE_FLOAT16:
        return (struct form){11, -24, 15, 10, 5};
    case DTYPE_BFLOAT16:
        return (struct form){8, -133, 127, 7, 8};
    case DTYPE_FLOAT32:
        return (struct form){24, -149, 127, 23, 8};
    default:
        assert(part == DTYPE_FLOAT64);
        return (struct form){53, -1074, 1023, 52, 11};
    }
}

/* The bits of m * 2^exponent, m < 2^precision, cut where the type ends. */
static uint64_t compose(const struct form *form, uint64_t m, int exponent, bool negative)
{
    uint64_t bits = 0;
    if (m != 0) {
        while (m >> form->fraction_bits == 0 && exponent > form->min_exponent) {
            m <<= 1;
            exponent--;
        }
        for (; exponent < form->min_exponent; exponent++)
            m >>= 1;
        bits = m + ((uint64_t)(exponent - form->min_exponent) << form->fraction_bits);
        uint64_t infinity = ((UINT64_C(1) << form->exponent_bits) - 1) << form->fraction_bits;
        bits = bits < infinity ? bits : infinity - 1;
    }
    return bits | (uint64_t)negative << (form->fraction_bits + form->exponent_bits);
}

/* Every pattern is as likely as any other, except those that are not finite. */
static uint64_t any_finite(const struct form *form)
{
    for (;;) {
        uint64_t bits = random_next() >> (63 - form->fraction_bits - form->exponent_bits);
        uint64_t all = (UINT64_C(1) << form->exponent_bits) - 1;
        if ((bits >> form->fraction_bits & all) != all)
            return bits;
    }
}

/* --- rows --- */

struct row {
    enum dtype dtype, part, result_dtype;
    bool conjugate;
    uint64_t n, used; /* elements of the parts' type: capacity and filled */
    unsigned char a[MAX_N * 16], b[MAX_N * 16];
};

static void push(struct row *row, uint64_t a, uint64_t b)
{
    size_t size = dtype_size(row->part);
    if (row->used == row->n)
        return;
    memcpy(row->a + row->used * size, &a, size);
    memcpy(row->b + row->used * size, &b, size);
    row->used++;
}

/* A product m * 2^exponent, as chunks of as many bits as an element holds, each shared out between
 * a and b. */
static void push_product(struct row *row, uint64_t m, int exponent, bool negative)
{
    struct form form = form_of(row->part);
    for (; m != 0; m >>= form.precision, exponent += form.precision) {
        uint64_t chunk = m & ((UINT64_C(1) << form.precision) - 1);
        int half = exponent / 2;
        push(row, compose(&form, chunk, half, negative), compose(&form, 1, exponent - half, false));
    }
}

/* The smallest product that there is. */
static void push_dust(struct row *row, bool negative)
{
    struct form form = form_of(row->part);
    push(row, compose(&form, 1, form.min_exponent, negative),
         compose(&form, 1, form.min_exponent, false));
}

static int precision_of(enum dtype dtype)
{
    return form_of(dtype_part(dtype)).precision;
}

static uint64_t random_m(int bits)
{
    return random_next() >> (64 - bits) | UINT64_C(1) << (bits - 1);
}

static void fill_spread(struct row *row, int spread)
{
    struct form form = form_of(row->part);
    while (row->used < row->n) {
        int x = (int)below((uint64_t)(2 * spread + 1)) - spread - form.precision;
        int y = (int)below((uint64_t)(2 * spread + 1)) - spread - form.precision;
        push(row, compose(&form, random_m(form.precision), x, below(2)),
             compose(&form, random_m(form.precision), y, below(2)));
    }
}

static void fill_patterns(struct row *row)
{
    struct form form = form_of(row->part);
    while (row->used < row->n)
        push(row, any_finite(&form), any_finite(&form));
}

static void fill_low(struct row *row)
{
    struct form form = form_of(row->part);
    while (row->used < row->n) {
        int exponent = form.min_exponent + (int)below(3);
        push(row, compose(&form, random_m(1 + (int)below(6)), exponent, below(2)),
             compose(&form, random_m(1 + (int)below(6)), below(2) ? exponent : -form.precision,
                     below(2)));
    }
}

/* Every product is there with both signs, but one. */
static void fill_cancelling(struct row *row)
{
    struct form form = form_of(row->part);
    uint64_t sign = UINT64_C(1) << (form.fraction_bits + form.exponent_bits);
    push_dust(row, below(2));
    while (row->used + 1 < row->n) {
        uint64_t a = any_finite(&form), b = any_finite(&form);
        push(row, a, b);
        push(row, a ^ sign, b);
    }
}

/* A number of the result's precision and half of its last bit, and dust that decides, or not. */
static void fill_tie(struct row *row)
{
    int precision = precision_of(row->result_dtype);
    int exponent = (int)below(20) - 30;
    bool negative = below(2);
    push_product(row, random_m(precision), exponent, negative);
    push_product(row, 1, exponent - 1, negative);
    if (below(3) > 0)
        push_dust(row, below(2));
}

/* The largest number and half an ulp: from here on infinity. */
static void fill_edge(struct row *row)
{
    struct form form = form_of(row->part), result = form_of(dtype_part(row->result_dtype));
    bool negative = below(2);
    int exponent = result.max_exponent - result.precision;
    if (exponent / 2 + form.precision <= form.max_exponent) {
        push_product(row, (UINT64_C(1) << result.precision) - 1, exponent + 1, negative);
        push_product(row, 1, exponent, negative);
    }
    if (below(3) > 0)
        push_dust(row, below(2));
}

/* Numbers below the result's smallest normal one, at and around ties. */
static void fill_underflow(struct row *row)
{
    struct form result = form_of(dtype_part(row->result_dtype));
    bool negative = below(2);
    push_product(row, random_m(1 + (int)below((uint64_t)result.precision + 2)),
                 result.min_exponent - (int)below(4), negative);
    if (below(3) > 0)
        push_dust(row, below(2));
}

static void add_specials(struct row *row)
{
    struct form form = form_of(row->part);
    uint64_t infinity = compose(&form, 0, 0, false) | ((UINT64_C(1) << form.exponent_bits) - 1)
                                                          << form.fraction_bits;
    uint64_t sign = UINT64_C(1) << (form.fraction_bits + form.exponent_bits);
    uint64_t pattern[] = {infinity, infinity | sign, infinity | 1, 0, sign};
    size_t size = dtype_size(row->part);
    for (uint64_t count = 1 + below(3); row->n > 0 && count > 0; count--) {
        memcpy(row->a + below(row->n) * size, &pattern[below(5)], size);
        memcpy(row->b + below(row->n) * size, &pattern[below(5)], size);
    }
}

static void fill_integers(struct row *row)
{
    bool extreme = below(3) == 0;
    for (size_t i = 0; i < row->n * dtype_size(row->dtype); i++) {
        row->a[i] = (unsigned char)random_next();
        row->b[i] = (unsigned char)random_next();
    }
    size_t size = dtype_size(row->dtype);
    for (size_t i = 0; extreme && i < row->n; i++) { /* the lowest number of a signed type */
        memset(row->a + i * size, 0, size);
        row->a[(i + 1) * size - 1] = 0x80;
        memcpy(row->b + i * size, row->a + i * size, size);
    }
}

static void fill_floats(struct row *row)
{
    struct form form = form_of(row->part);
    switch (below(9)) {
    case 0:
        fill_patterns(row);
        break;
    case 1:
        fill_low(row);
        break;
    case 2:
        fill_cancelling(row);
        break;
    case 3:
        fill_tie(row);
        break;
    case 4:
        fill_edge(row);
        break;
    case 5:
        fill_underflow(row);
        break;
    default:
        fill_spread(row, 1 << below((uint64_t)form.exponent_bits - 1));
    }
    while (row->used < row->n) /* zeros of either sign */
        push(row, compose(&form, 0, 0, below(2)), any_finite(&form));
    if (below(12) == 0)
        add_specials(row);
}

static enum dtype random_result(enum dtype dtype)
{
    static const enum dtype real[] = {DTYPE_FLOAT64, DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                      DTYPE_INT64};
    if (dtype_is_complex(dtype))
        return below(2) ? DTYPE_COMPLEX64 : DTYPE_COMPLEX128;
    return real[below(dtype_is_integer(dtype) ? 5 : 4)];
}

static uint64_t random_n(void)
{
    static const uint64_t around[] = {0, 1, 12, 16, 64, 255, 256, 512, 1024, 2048, 4096};
    if (below(4) > 0)
        return below(70);
    uint64_t n = around[below(sizeof around / sizeof *around)] + below(6);
    return n > 2 ? n - 2 : n;
}

static void row_init(struct row *row)
{
    row->dtype = (enum dtype)below(DTYPE_COUNT);
    row->part = dtype_part(row->dtype);
    row->result_dtype = random_result(row->dtype);
    row->conjugate = below(2);
    row->n = random_n();
    row->used = 0;
    if (dtype_is_integer(row->dtype)) {
        fill_integers(row);
        return;
    }
    if (dtype_is_complex(row->dtype))
        row->n *= 2;
    assert(row->n <= 2 * MAX_N);
    fill_floats(row);
    row->n /= dtype_size(row->dtype) / dtype_size(row->part);
}

/* --- computing --- */

static void add_moved(struct exact_sum *sum, const struct row *row, uint64_t first, uint64_t n)
{
    static unsigned char a[MAX_N * 16 + 256 * 16 + 64], b[MAX_N * 16 + 256 * 16 + 64];
    size_t size = dtype_size(row->dtype), align = dtype_size(row->part);
    size_t zeros = below(3) > 0 ? 0 : below(2) ? below(71) : 255 + below(6);
    unsigned char *x = a + below(64 / align) * align, *y = b + below(64 / align) * align;
    memcpy(x, row->a + first * size, n * size);
    memcpy(y, row->b + first * size, n * size);
    if (zeros > 200 && n + zeros > MAX_N)
        zeros = 0;
    memset(x + n * size, 0, zeros * size);
    memset(y + n * size, 0, zeros * size);
    exact_sum_add(sum, x, y, n + zeros);
}

static void compute(const struct row *row, struct dot_value *value)
{
    static struct exact_sum piece[PIECES];
    const struct cpu_kernel *kernel;
    size_t kernels = cpu_kernels(&kernel);
    uint64_t pieces = 1 + below(PIECES), first = 0;
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t rest = row->n - first, n = i + 1 == pieces ? rest : below(rest + 1);
        exact_sum_init(&piece[i], &kernel[below(kernels)], row->dtype, row->conjugate, false);
        add_moved(&piece[i], row, first, n);
        first += n;
    }
    for (uint64_t left = pieces; left > 1; left--) {
        uint64_t into = below(left - 1);
        exact_sum_merge(&piece[into], &piece[left - 1]);
    }
    exact_sum_round(&piece[0], row->result_dtype, value);
}

/* --- output --- */

static void print_bytes(const unsigned char *data, size_t size)
{
    static const char digit[] = "0123456789abcdef";
    printf(" x");
    for (size_t i = 0; i < size; i++) {
        (void)putchar(digit[data[i] >> 4]);
        (void)putchar(digit[data[i] & 15]);
    }
}

static void print_value(const struct dot_value *value)
{
    uint64_t sum, bound;
    memcpy(&sum, &value->sum, sizeof sum);
    memcpy(&bound, &value->error_bound, sizeof bound);
    printf(" %016" PRIx64 " %016" PRIx64 " %u %016" PRIx64 "%016" PRIx64 "%016" PRIx64, sum, bound,
           value->flags, value->integer[2], value->integer[1], value->integer[0]);
}

int main(int argc, char **argv)
{
    static struct row row;
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 3000;
    for (uint64_t i = 0; i < rows; i++) {
        struct dot_value value[2];
        size_t size;
        row_init(&row);
        compute(&row, value);
        size = row.n * dtype_size(row.dtype);
        printf("%s %s %d %" PRIu64, dtype_name(row.dtype), dtype_name(row.result_dtype),
               row.conjugate, row.n);
        print_bytes(row.a, size);
        print_bytes(row.b, size);
        for (int k = 0; k < (dtype_is_complex(row.dtype) ? 2 : 1); k++)
            print_value(&value[k]);
        printf("\n");
    }
    return EXIT_SUCCESS;
}
