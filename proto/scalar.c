/* scalar.c - one number of an answer (see scalar.h). */
#include "proto/scalar.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "proto/narrow.h"
#include "proto/shortest.h"

typedef unsigned __int128 uint128; /* a word of the compiler, without a standard name */

enum {
    INTEGER_WORDS = 3,
    INTEGER_DIGITS = 58, /* 2^191 < 10^58 */
};

/* ---- rounding ------------------------------------------------------------------------------ */

/* value, rounded to the numbers of a float type. */
static double float_round(double value, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT16:
        return float16_value(float16_bits(value));
    case DTYPE_BFLOAT16:
        return bfloat16_value(bfloat16_bits(value));
    case DTYPE_FLOAT32:
        return (double)(float)value;
    default:
        assert(dtype == DTYPE_FLOAT64);
        return value;
    }
}

static double smallest_normal(enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT64)
        return 0x1p-1022;
    return dtype == DTYPE_FLOAT16 ? 0x1p-14 : 0x1p-126;
}

/* a + b, both 0 or more, rounded up: an error bound may grow but never shrink. */
static double add_up(double a, double b)
{
    if (a == 0 || b == 0)
        return a + b;
    return nextafter(a + b, INFINITY);
}

void scalar_round(struct dot_value *value, enum dtype dtype)
{
    double sum = value->sum, rounded = float_round(sum, dtype);
    if (!isfinite(sum))
        return;
    value->sum = rounded;
    if (!isfinite(rounded)) {
        value->flags |= FLAG_OVERFLOW | FLAG_INEXACT;
        value->error_bound = INFINITY;
        return;
    }
    /* Exact: rounded is 0, or within a factor of 2 of sum (Sterbenz). */
    double moved = fabs(sum - rounded);
    if (moved > 0)
        value->flags |= FLAG_INEXACT;
    value->error_bound = add_up(value->error_bound, moved);
    if ((value->flags & FLAG_INEXACT) && sum != 0 && fabs(rounded) < smallest_normal(dtype))
        value->flags |= FLAG_UNDERFLOW;
}

/* ---- integers ------------------------------------------------------------------------------ */

static bool integer_is_negative(const struct dot_value *value)
{
    return value->integer[INTEGER_WORDS - 1] >> 63 != 0;
}

/* *ret = |integer| */
static void integer_magnitude(const struct dot_value *value, uint64_t ret[static INTEGER_WORDS])
{
    bool is_negative = integer_is_negative(value);
    uint64_t carry = is_negative;
    for (int i = 0; i < INTEGER_WORDS; i++) {
        ret[i] = (is_negative ? ~value->integer[i] : value->integer[i]) + carry;
        carry = carry != 0 && ret[i] == 0;
    }
}

/* Divides *magnitude by divisor and returns the rest. */
static uint64_t integer_divide(uint64_t magnitude[static INTEGER_WORDS], uint64_t divisor)
{
    uint128 rest = 0;
    for (int i = INTEGER_WORDS - 1; i >= 0; i--) {
        rest = rest << 64 | magnitude[i];
        magnitude[i] = (uint64_t)(rest / divisor);
        rest %= divisor;
    }
    return (uint64_t)rest;
}

static void integer_write(struct text *text, const struct dot_value *value)
{
    const uint64_t step = 1000000000000000000; /* 18 digits; their rest times 2^64 fits 128 bits */
    uint64_t magnitude[INTEGER_WORDS];
    char digits[1 + INTEGER_DIGITS];
    size_t first = sizeof digits;
    integer_magnitude(value, magnitude);
    bool is_more = true;
    while (is_more) {
        uint64_t rest = integer_divide(magnitude, step);
        is_more = (magnitude[0] | magnitude[1] | magnitude[2]) != 0;
        for (int i = 0; is_more ? i < 18 : i == 0 || rest > 0; i++, rest /= 10)
            digits[--first] = (char)('0' + rest % 10);
    }
    if (integer_is_negative(value))
        digits[--first] = '-';
    text_append(text, digits + first, sizeof digits - first);
}

/* ---- bits ---------------------------------------------------------------------------------- */

bool scalar_fits(const struct dot_value *value, enum dtype dtype)
{
    uint64_t sign = value->integer[0] >> 63 != 0 ? UINT64_MAX : 0;
    return dtype != DTYPE_INT64 || (value->integer[1] == sign && value->integer[2] == sign);
}

uint64_t scalar_bits(const struct dot_value *value, enum dtype dtype)
{
    assert(scalar_fits(value, dtype));
    if (dtype == DTYPE_INT64)
        return value->integer[0];
    if (dtype == DTYPE_FLOAT16)
        return float16_bits(value->sum);
    if (dtype == DTYPE_BFLOAT16)
        return bfloat16_bits(value->sum);
    if (dtype == DTYPE_FLOAT32) {
        float narrow = (float)value->sum;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return isnan(value->sum) ? UINT32_C(0x7fc00000) : bits;
    }
    assert(dtype == DTYPE_FLOAT64);
    uint64_t bits;
    memcpy(&bits, &value->sum, sizeof bits);
    return isnan(value->sum) ? UINT64_C(0x7ff8000000000000) : bits;
}

static void hex_write(struct text *text, uint64_t bits, size_t digits)
{
    char hex[16];
    assert(digits <= sizeof hex);
    text_put_hex(hex, bits);
    text_append(text, hex + sizeof hex - digits, digits);
}

void scalar_write_bits(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    text_append(text, "\"0x", 3);
    if (scalar_fits(value, dtype))
        hex_write(text, scalar_bits(value, dtype), 2 * dtype_size(dtype));
    else
        for (int i = INTEGER_WORDS - 1; i >= 0; i--)
            hex_write(text, value->integer[i], 16);
    text_append(text, "\"", 1);
}

/* ---- text ---------------------------------------------------------------------------------- */

void scalar_write_float64(struct text *text, double value)
{
    if (!isfinite(value)) {
        text_append(text, "null", 4);
        return;
    }
    char *room = text_room(text, SHORTEST_BYTES);
    if (room != NULL)
        text_advance(text, shortest_float64(value, room));
}

/* A finite number of a narrower type than float64. */
static size_t shortest_of(const struct dot_value *value, enum dtype dtype, char *room)
{
    switch (dtype) {
    case DTYPE_FLOAT16:
        return shortest_float16(float16_bits(value->sum), room);
    case DTYPE_BFLOAT16:
        return shortest_bfloat16(bfloat16_bits(value->sum), room);
    default:
        assert(dtype == DTYPE_FLOAT32);
        return shortest_float32((float)value->sum, room);
    }
}

void scalar_write(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    if (dtype == DTYPE_INT64) {
        integer_write(text, value);
        return;
    }
    if (dtype == DTYPE_FLOAT64 || !isfinite(value->sum)) {
        scalar_write_float64(text, value->sum);
        return;
    }
    char *room = text_room(text, SHORTEST_BYTES);
    if (room != NULL)
        text_advance(text, shortest_of(value, dtype, room));
}

bool scalar_has_text(const struct dot_value *value, enum dtype dtype)
{
    if (dtype != DTYPE_INT64)
        return !isfinite(value->sum);
    uint64_t magnitude[INTEGER_WORDS];
    integer_magnitude(value, magnitude);
    return magnitude[0] > (uint64_t)1 << 53 || magnitude[1] != 0 || magnitude[2] != 0;
}

void scalar_write_text(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    if (!scalar_has_text(value, dtype)) {
        text_append(text, "null", 4);
        return;
    }
    text_append(text, "\"", 1);
    if (dtype == DTYPE_INT64)
        integer_write(text, value);
    else if (isnan(value->sum))
        text_string(text, "NaN");
    else
        text_string(text, value->sum > 0 ? "Infinity" : "-Infinity");
    text_append(text, "\"", 1);
}
