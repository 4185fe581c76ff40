/* sums.c - exact sums and sums in the making against one wide integer, for every type and
 * instruction set.
 *
 * The oracle is as plain as can be: every product is a whole number of units of 2^-2148, the
 * smallest of float64's products; all of them are added up in two's complement of 4480 bits, bit by
 * bit where that is simplest, and the total is rounded by looking at its bits from the top.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "gpu/cpu_dot.h"
#include "gpu/partial.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS = 140, UNIT = -2148, N_MAX = 2048 };

/* --- a wide integer: sum of word[i] * 2^(32 i + UNIT), two's complement --- */

struct wide {
    uint32_t word[WORDS];
};

static void wide_add_word(struct wide *wide, uint32_t value, int word)
{
    uint64_t carry = value;
    for (; word < WORDS && carry != 0; word++) {
        carry += wide->word[word];
        wide->word[word] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void wide_negate(struct wide *wide)
{
    for (int i = 0; i < WORDS; i++)
        wide->word[i] = ~wide->word[i];
    wide_add_word(wide, 1, 0);
}

static void wide_add(struct wide *wide, const struct wide *other)
{
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)wide->word[i] + other->word[i];
        wide->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static bool wide_is_negative(const struct wide *wide)
{
    return wide->word[WORDS - 1] >> 31 != 0;
}

__extension__ typedef unsigned __int128 uint128;

/* Adds magnitude * 2^exponent, of either sign. */
static void wide_add_product(struct wide *wide, uint128 magnitude, int exponent, bool is_negative)
{
    struct wide term = {0};
    int position = exponent - UNIT;
    if (magnitude == 0)
        return;
    CHECK(position >= 0 && position < 32 * WORDS - 160, "position %d", position);
    for (int i = 0; i < 4; i++) {
        uint64_t shifted = (uint64_t)(uint32_t)(magnitude >> 32 * i) << position % 32;
        wide_add_word(&term, (uint32_t)shifted, position / 32 + i);
        wide_add_word(&term, (uint32_t)(shifted >> 32), position / 32 + i + 1);
    }
    if (is_negative)
        wide_negate(&term);
    wide_add(wide, &term);
}

static bool wide_bit(const struct wide *wide, int position)
{
    return position >= 0 && (wide->word[position / 32] >> position % 32 & 1) != 0;
}

/* Of the highest bit that is set, or -1. */
static int wide_top(const struct wide *wide)
{
    int position = 32 * WORDS - 1;
    while (position >= 0 && !wide_bit(wide, position))
        position--;
    return position;
}

static bool wide_any_below(const struct wide *wide, int position)
{
    for (int i = 0; i < position; i++)
        if (wide_bit(wide, i))
            return true;
    return false;
}

/* --- elements --- */

/* What an element stands for: whole * 2^exponent, or a word of IEEE 754. */
struct number {
    uint64_t whole;
    int exponent;
    bool is_negative, is_nan, is_infinite;
};

struct format {
    int fraction_bits, field_bits;
};

static struct format format_of(enum dtype part)
{
    switch (part) {
    case DTYPE_FLOAT16:
        return (struct format){10, 5};
    case DTYPE_BFLOAT16:
        return (struct format){7, 8};
    case DTYPE_FLOAT32:
        return (struct format){23, 8};
    default:
        return (struct format){52, 11};
    }
}

static struct number float_number(uint64_t bits, enum dtype part)
{
    const struct format format = format_of(part);
    const uint64_t fraction = bits & (((uint64_t)1 << format.fraction_bits) - 1);
    const int top = (1 << format.field_bits) - 1, bias = top / 2;
    const int field = (int)(bits >> format.fraction_bits) & top;
    struct number number = {.is_negative =
                                (bits >> (format.fraction_bits + format.field_bits) & 1) != 0,
                            .is_nan = field == top && fraction != 0,
                            .is_infinite = field == top && fraction == 0};
    number.whole = field == 0 ? fraction : fraction | (uint64_t)1 << format.fraction_bits;
    number.exponent = (field == 0 ? 1 : field) - bias - format.fraction_bits;
    return number;
}

static struct number integer_number(const void *data, enum dtype dtype)
{
    int64_t value = 0;
    if (dtype == DTYPE_INT8)
        value = *(const int8_t *)data;
    else if (dtype == DTYPE_UINT8)
        value = *(const uint8_t *)data;
    else if (dtype == DTYPE_INT32)
        value = *(const int32_t *)data;
    else
        value = *(const int64_t *)data;
    return (struct number){.whole = value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                           .is_negative = value < 0};
}

static struct number number_at(const char *data, enum dtype dtype, size_t index)
{
    enum dtype part = dtype_part(dtype);
    uint64_t bits = 0;
    const char *at = data + index * dtype_size(part);
    memcpy(&bits, at, dtype_size(part));
    return dtype_is_integer(dtype) ? integer_number(at, dtype) : float_number(bits, part);
}

/* --- the oracle --- */

struct oracle {
    struct wide sum;
    bool has_nan, is_invalid, has_positive, has_negative;
};

static void oracle_add(struct oracle *oracle, struct number x, struct number y, bool is_subtracted)
{
    bool is_negative = (x.is_negative != y.is_negative) != is_subtracted;
    if (x.is_nan || y.is_nan) {
        oracle->has_nan = true;
    } else if (x.is_infinite || y.is_infinite) {
        bool is_invalid = (!x.is_infinite && x.whole == 0) || (!y.is_infinite && y.whole == 0);
        oracle->is_invalid |= is_invalid;
        oracle->has_positive |= !is_invalid && !is_negative;
        oracle->has_negative |= !is_invalid && is_negative;
    } else {
        wide_add_product(&oracle->sum, (uint128)x.whole * y.whole, x.exponent + y.exponent,
                         is_negative);
    }
}

struct operands {
    enum dtype dtype;
    bool conjugate;
    const char *a, *b;
    size_t n;
};

/* (ar + i ai) (br + i bi), with ai negated when conjugate. */
static void oracle_sum(const struct operands *operands, struct oracle ret[2])
{
    const enum dtype dtype = operands->dtype;
    memset(ret, 0, 2 * sizeof *ret);
    for (size_t i = 0; i < operands->n; i++) {
        if (!dtype_is_complex(dtype)) {
            oracle_add(&ret[0], number_at(operands->a, dtype, i), number_at(operands->b, dtype, i),
                       false);
            continue;
        }
        struct number ar = number_at(operands->a, dtype, 2 * i),
                      ai = number_at(operands->a, dtype, 2 * i + 1),
                      br = number_at(operands->b, dtype, 2 * i),
                      bi = number_at(operands->b, dtype, 2 * i + 1);
        oracle_add(&ret[0], ar, br, false);
        oracle_add(&ret[0], ai, bi, !operands->conjugate);
        oracle_add(&ret[1], ar, bi, false);
        oracle_add(&ret[1], ai, br, operands->conjugate);
    }
}

/* The nearest number of a float type, ties to even, and its flags. */
static double oracle_round(const struct wide *sum, enum dtype part, unsigned *ret_flags)
{
    const struct format format = format_of(part);
    const int exponent_max = (1 << (format.field_bits - 1)) - 1;
    struct wide magnitude = *sum;
    bool is_negative = wide_is_negative(sum);
    *ret_flags = 0;
    if (is_negative)
        wide_negate(&magnitude);
    int top = wide_top(&magnitude), low = top - format.fraction_bits;
    int lowest = 1 - exponent_max - format.fraction_bits - UNIT; /* of a subnormal's last bit */
    if (top < 0)
        return 0;
    low = low < lowest ? lowest : low;
    uint64_t whole = 0;
    for (int i = top; i >= low; i--)
        whole = whole << 1 | wide_bit(&magnitude, i);
    bool is_inexact = low > 0 && wide_any_below(&magnitude, low);
    if (wide_bit(&magnitude, low - 1) && ((whole & 1) || wide_any_below(&magnitude, low - 1)))
        whole++;
    double value = ldexp((double)whole, low + UNIT); /* infinite beyond float64 */
    if (is_inexact)
        *ret_flags = FLAG_INEXACT;
    if (value >= ldexp(1, exponent_max) * 2) {
        value = INFINITY;
        *ret_flags = FLAG_INEXACT | FLAG_OVERFLOW;
    } else if (is_inexact && value < ldexp(1, 1 - exponent_max)) {
        *ret_flags |= FLAG_UNDERFLOW;
    }
    return is_negative ? -value : value;
}

/* --- checks --- */

static bool is_special(const struct oracle *oracle)
{
    return oracle->has_nan || oracle->is_invalid || oracle->has_positive || oracle->has_negative;
}

static void check_special(const struct oracle *oracle, const struct dot_value *value)
{
    bool is_invalid = oracle->is_invalid || (oracle->has_positive && oracle->has_negative);
    unsigned flags = (oracle->has_nan ? FLAG_NAN_INPUT : 0u) | (is_invalid ? FLAG_INVALID : 0u);
    CHECK(value->flags == flags && value->error_bound == 0, "flags %x, expected %x", value->flags,
          flags);
    if (flags != 0)
        CHECK(isnan(value->sum), "%g", value->sum);
    else
        CHECK(isinf(value->sum) && (value->sum > 0) == oracle->has_positive, "%g", value->sum);
}

static void wide_add_double(struct wide *wide, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    struct number number = float_number(bits, DTYPE_FLOAT64);
    wide_add_product(wide, number.whole, number.exponent, number.is_negative);
}

/* |value - sum| <= error_bound, in whole numbers. */
static void check_bound(const struct wide *sum, const struct dot_value *value)
{
    struct wide distance = *sum;
    if (!isfinite(value->sum) || !isfinite(value->error_bound))
        return;
    wide_negate(&distance);
    wide_add_double(&distance, value->sum);
    if (!wide_is_negative(&distance))
        wide_negate(&distance);
    wide_add_double(&distance, value->error_bound);
    CHECK(!wide_is_negative(&distance), "%a is farther away than %a", value->sum,
          value->error_bound);
}

static void check_exact(const struct oracle *oracle, enum dtype dtype, enum dtype result_dtype,
                        const struct dot_value *value)
{
    if (is_special(oracle)) {
        check_special(oracle, value);
        return;
    }
    if (dtype_is_integer(dtype)) {
        const int first = -UNIT / 32; /* what is below is zero: whole numbers begin 4 bits up */
        static_assert(-UNIT % 32 == 4, "");
        for (int i = 0; i < 3; i++) {
            uint64_t low = oracle->sum.word[first + 2 * i] >> 4 |
                           (uint64_t)oracle->sum.word[first + 2 * i + 1] << 28 |
                           (uint64_t)oracle->sum.word[first + 2 * i + 2] << 60;
            CHECK(value->integer[i] == low, "word %d: %" PRIx64 ", not %" PRIx64, i,
                  value->integer[i], low);
        }
        if (result_dtype == DTYPE_INT64)
            return;
    }
    unsigned flags;
    double want = oracle_round(&oracle->sum, dtype_part(result_dtype), &flags);
    CHECK(memcmp(&want, &value->sum, sizeof want) == 0 && flags == value->flags,
          "%a, flags %x; expected %a, %x", value->sum, value->flags, want, flags);
    check_bound(&oracle->sum, value);
}

static void check_fast(const struct oracle *oracle, const struct dot_value *value)
{
    if (is_special(oracle))
        check_special(oracle, value);
    else
        check_bound(&oracle->sum, value);
}

/* Pieces cut at random, added to two sums in a random order; then these are merged. */
static void sum_pieces(const struct operands *operands, enum accuracy accuracy,
                       const struct cpu_kernel *kernel, struct cuts cuts, struct partial *ret)
{
    struct partial half[2];
    const size_t size = dtype_size(operands->dtype);
    for (int i = 0; i < 2; i++) {
        partial_init(&half[i], operands->dtype, accuracy, operands->conjugate, true);
        half[i].sum.kernel = kernel;
    }
    size_t low = 0, high = operands->n; /* what is left; taken from either end */
    while (low < high) {
        size_t piece = cuts_next(&cuts, high - low);
        bool is_low = cuts.seed % 2 == 0;
        size_t at = is_low ? low : high - piece;
        partial_add(&half[cuts.seed >> 1 & 1], operands->a + at * size, operands->b + at * size,
                    piece);
        low += is_low ? piece : 0;
        high -= is_low ? 0 : piece;
    }
    int kept = cuts.seed >> 2 & 1;
    partial_merge(&half[kept], &half[!kept]);
    CHECK(half[kept].n == operands->n, "%" PRIu64 " of %zu", half[kept].n, operands->n);
    *ret = half[kept];
}

static enum dtype result_of(enum dtype dtype, unsigned choice)
{
    static const enum dtype real[] = {DTYPE_FLOAT64, DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16};
    if (dtype_is_complex(dtype))
        return choice % 2 ? DTYPE_COMPLEX64 : DTYPE_COMPLEX128;
    if (dtype_is_integer(dtype) && choice % 5 == 4)
        return DTYPE_INT64;
    return real[choice % 4];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct cpu_kernel *kernels;
    const size_t kernel_count = cpu_kernels(&kernels);
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    struct operands operands = {.dtype = (enum dtype)(input_byte(&input) % DTYPE_COUNT)};
    unsigned choice = input_byte(&input);
    enum dtype result_dtype = result_of(operands.dtype, choice);
    operands.conjugate = (choice & 0x40) != 0;
    const struct cpu_kernel *kernel = &kernels[input_byte(&input) % kernel_count];
    operands.n = input.size / 2 / dtype_size(operands.dtype);
    if (operands.n > N_MAX)
        return 0;
    char *copy = copy_of(input.data, operands.n * 2 * dtype_size(operands.dtype));
    operands.a = copy;
    operands.b = copy + operands.n * dtype_size(operands.dtype);
    struct oracle oracle[2];
    struct partial partial;
    struct dot_value value[2] = {0};
    const int parts = dtype_is_complex(operands.dtype) ? 2 : 1;
    oracle_sum(&operands, oracle);
    sum_pieces(&operands, ACCURACY_EXACT, kernel, cuts, &partial);
    partial_settle(&partial, result_dtype, value);
    for (int i = 0; i < parts; i++)
        check_exact(&oracle[i], operands.dtype, result_dtype, &value[i]);
    if (!dtype_is_integer(operands.dtype)) {
        sum_pieces(&operands, ACCURACY_FAST, kernel, cuts, &partial);
        partial_settle(&partial, DTYPE_FLOAT64, value);
        for (int i = 0; i < parts; i++)
            check_fast(&oracle[i], &value[i]);
    }
    free(copy);
    return 0;
}
