/* number.c - one number's text against references: strtod() and strtof() of the C library, the same
 * rounded again through round-to-odd for the narrow types, and whole numbers worked out digit by
 * digit.
 *
 * Round-to-odd: cut towards zero, then the last bit set if anything was cut off. What is rounded
 * from that to fewer bits is rounded once. Source: S. Boldo, G. Melquiond, "Emulation of FMA and
 * correctly rounded sums", 2008.
 */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <fenv.h>
#include <inttypes.h>
#include <math.h>

#include "proto/numbers.h"

/* --- the grammar of RFC 8259 section 6 --- */

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

static bool is_number(const char *text)
{
    text += *text == '-';
    size_t whole = digits_at(text);
    if (whole == 0 || (whole > 1 && *text == '0'))
        return false;
    text += whole;
    if (*text == '.') {
        size_t fraction = digits_at(text + 1);
        if (fraction == 0)
            return false;
        text += 1 + fraction;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        size_t exponent = digits_at(text);
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return *text == '\0';
}

/* What is read besides, bare or quoted (API.md). */
static bool is_word(const char *text)
{
    static const char *const words[] = {"NaN",     "Infinity",     "-Infinity",
                                        "\"NaN\"", "\"Infinity\"", "\"-Infinity\""};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

/* --- floats --- */

static double round_to_odd(const char *text)
{
    int before = fegetround();
    CHECK(fesetround(FE_TOWARDZERO) == 0 && feclearexcept(FE_ALL_EXCEPT) == 0, "no rounding mode");
    double value = strtod(text, NULL);
    bool is_cut = fetestexcept(FE_INEXACT) != 0;
    CHECK(fesetround(before) == 0, "no rounding mode");
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits |= is_cut;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest number of so many bits below the first, ties to even; infinity beyond the range. */
static double round_narrow(double value, int fraction_bits, int exponent_min, int exponent_max)
{
    if (value == 0)
        return value;
    int exponent = ilogb(value) > exponent_min ? ilogb(value) : exponent_min;
    int unit = exponent - fraction_bits;
    double rounded = ldexp(rint(ldexp(value, -unit)), unit);
    return fabs(rounded) >= ldexp(1, exponent_max + 1) ? copysign(INFINITY, value) : rounded;
}

static double narrow_of(uint16_t bits, int fraction_bits, int exponent_min)
{
    int field = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    int whole = field == 0 ? fraction : fraction | 1 << fraction_bits;
    double value = ldexp(whole, exponent_min - fraction_bits + (field == 0 ? 0 : field - 1));
    return bits & 0x8000 ? -value : value;
}

/* want is infinite where the type has no such number. */
static void check_float(const char *text, const char *type, enum error err, double want, double got)
{
    if (isinf(want))
        CHECK(err == ERR_VALUE, "%s as %s: error %d", text, type, err);
    else
        CHECK(err == ERR_OK && memcmp(&want, &got, sizeof got) == 0,
              "%s as %s: %a, error %d; expected %a", text, type, got, err, want);
}

static void check_floats(const char *text, size_t size)
{
    double wide = 0, odd = round_to_odd(text);
    float single = 0;
    uint16_t half = 0, brain = 0;
    enum error err = numbers_parse(text, size, DTYPE_FLOAT64, &wide);
    check_float(text, "float64", err, strtod(text, NULL), wide);
    err = numbers_parse(text, size, DTYPE_FLOAT32, &single);
    check_float(text, "float32", err, (double)strtof(text, NULL), (double)single);
    err = numbers_parse(text, size, DTYPE_FLOAT16, &half);
    check_float(text, "float16", err, round_narrow(odd, 10, -14, 15), narrow_of(half, 10, -14));
    err = numbers_parse(text, size, DTYPE_BFLOAT16, &brain);
    check_float(text, "bfloat16", err, round_narrow(odd, 7, -126, 127), narrow_of(brain, 7, -126));
}

/* --- whole numbers --- */

__extension__ typedef __int128 int128;

enum { WIDE = 40 }; /* more digits than any integer type has */

/* Digits without the zeros at either end, and the power of ten of the last of them. */
struct digits {
    char *digit; /* owned, [count] */
    size_t count;
    long exponent;
};

static struct digits digits_take(const char *text)
{
    struct digits digits = {.digit = text_of(text, strlen(text))};
    size_t mantissa = strcspn(text, "eE");
    if (text[mantissa] != '\0')
        digits.exponent = strtol(text + mantissa + 1, NULL, 10); /* at its ends it saturates */
    digits.exponent = digits.exponent > 1000000    ? 1000000
                      : digits.exponent < -1000000 ? -1000000
                                                   : digits.exponent;
    bool is_fraction = false;
    for (size_t i = 0; i < mantissa; i++) {
        is_fraction |= text[i] == '.';
        if (!isdigit((unsigned char)text[i]))
            continue;
        digits.exponent -= is_fraction;
        if (digits.count > 0 || text[i] != '0')
            digits.digit[digits.count++] = text[i];
    }
    while (digits.count > 0 && digits.digit[digits.count - 1] == '0') {
        digits.count--;
        digits.exponent++;
    }
    return digits;
}

/* True when text is a whole number of less than WIDE digits. */
static bool whole_of(const char *text, int128 *ret)
{
    struct digits digits = digits_take(text);
    bool is_whole = digits.count == 0 ||
                    (digits.exponent >= 0 && (long)digits.count + digits.exponent < WIDE - 2);
    int128 value = 0;
    for (size_t i = 0; is_whole && i < digits.count; i++)
        value = value * 10 + (digits.digit[i] - '0');
    for (long i = 0; is_whole && digits.count > 0 && i < digits.exponent; i++)
        value *= 10;
    free(digits.digit);
    *ret = *text == '-' ? -value : value;
    return is_whole;
}

static void check_whole(const char *text, size_t size, enum dtype dtype, int128 min, int128 max)
{
    int128 want = 0;
    int64_t got = 0; /* little-endian: the element is its low bytes */
    bool is_held = whole_of(text, &want) && want >= min && want <= max;
    enum error err = numbers_parse(text, size, dtype, &got);
    uint64_t mask =
        dtype_size(dtype) == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * dtype_size(dtype)) - 1;
    if (is_held)
        CHECK(err == ERR_OK && (uint64_t)got == ((uint64_t)want & mask),
              "%s as %s: %" PRIx64 ", error %d", text, dtype_name(dtype), (uint64_t)got, err);
    else
        CHECK(err == ERR_VALUE, "%s as %s: error %d", text, dtype_name(dtype), err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > LIMIT_NUMBER_BYTES || memchr(data, '\0', size) != NULL)
        return 0;
    char *text = text_of(data, size), *exact = copy_of(data, size);
    if (is_number(text)) {
        check_floats(text, size);
        check_whole(text, size, DTYPE_INT8, INT8_MIN, INT8_MAX);
        check_whole(text, size, DTYPE_UINT8, 0, UINT8_MAX);
        check_whole(text, size, DTYPE_INT32, INT32_MIN, INT32_MAX);
        check_whole(text, size, DTYPE_INT64, INT64_MIN, INT64_MAX);
    } else {
        double value;
        enum error err = numbers_parse(exact, size, DTYPE_FLOAT64, &value);
        CHECK((err == ERR_OK) == is_word(text), "%s: error %d", text, err);
    }
    free(exact);
    free(text);
    return 0;
}
