/* base64.c - bytes as base64 in a JSON string (see base64.h). */
#include "proto/base64.h"

#include <string.h>

/* A digit's value and 1 of both alphabets; 0: it is none. */
static const unsigned char digits[256] = {
    /* clang-format off */
    [32] = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 63, 0, 63, 0, 64,
    [48] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 0, 0, 0, 0, 0, 0,
    [64] = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    [80] = 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 0, 0, 0, 0, 64,
    [96] = 0, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41,
    [112] = 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 0, 0, 0, 0, 0,
    /* clang-format on */
};

size_t base64_room(size_t size)
{
    return (size / 4 + 1) * 3; /* 3 digits may be in hand already */
}

/* As long as there are only digits: four at a time. */
static size_t take_groups(const unsigned char *text, size_t size, char *out)
{
    size_t used = 0;
    for (; size - used >= 4; used += 4, out += 3) {
        const unsigned char *group = text + used;
        const uint32_t a = digits[group[0]], b = digits[group[1]], c = digits[group[2]],
                       d = digits[group[3]];
        if (a == 0 || b == 0 || c == 0 || d == 0)
            break;
        const uint32_t bits = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
        out[0] = (char)(bits >> 16);
        out[1] = (char)(bits >> 8);
        out[2] = (char)bits;
    }
    return used;
}

static enum error refuse(const char *what, struct problem *problem)
{
    return problem_set(problem, ERR_VALUE, "not base64 (RFC 4648): %s", what);
}

/* One digit, by itself. Returns how many bytes it has brought. */
static size_t take_digit(struct base64 *base64, unsigned value, char *out)
{
    base64->bits = base64->bits << 6 | value;
    if (++base64->digits < 4)
        return 0;
    out[0] = (char)(base64->bits >> 16);
    out[1] = (char)(base64->bits >> 8);
    out[2] = (char)base64->bits;
    base64->bits = 0;
    base64->digits = 0;
    return 3;
}

static enum error take_character(struct base64 *base64, unsigned char byte, char *out,
                                 size_t *ret_size, struct problem *problem)
{
    *ret_size = 0;
    if (byte == '=') {
        if (base64->digits < 2 || base64->digits + base64->pads == 4)
            return refuse("an = where no padding is missing", problem);
        base64->pads++;
        return ERR_OK;
    }
    if (digits[byte] == 0)
        return refuse("a character that is no digit of either alphabet", problem);
    if (base64->pads > 0)
        return refuse("a digit follows the padding", problem);
    *ret_size = take_digit(base64, digits[byte] - 1U, out);
    return ERR_OK;
}

/* The closing quote: what digits are in hand are 8 or 16 bits, and bits that must be 0. */
static enum error finish(struct base64 *base64, char *out, size_t *ret_size,
                         struct problem *problem)
{
    const unsigned count = base64->digits;
    if (count == 1)
        return refuse("a single digit is left over", problem);
    if (base64->pads > 0 && count + base64->pads != 4)
        return refuse("one = of the padding is missing", problem);
    const unsigned spare = count == 2 ? 4 : 2;
    if (count > 0 && (base64->bits & ((1U << spare) - 1)) != 0)
        return refuse("bits that are left over are not 0", problem);
    *ret_size = count > 0 ? count - 1 : 0;
    for (size_t i = 0; i < *ret_size; i++)
        out[i] = (char)(base64->bits >> spare >> 8 * (*ret_size - 1 - i));
    return ERR_OK;
}

/* 0 to 15; anything else for what is none. */
static unsigned hex_digit(char c)
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = memchr(hex, c, sizeof hex - 1);
    return at != NULL ? (unsigned)(at - hex) % 16 : 16;
}

/* One byte of an escape. *ret is the character once it is whole, until then 0. */
static enum error escape_byte(struct base64 *base64, char byte, unsigned char *ret,
                              struct problem *problem)
{
    char *escape = base64->escape;
    escape[base64->escape_size++] = byte;
    *ret = 0;
    if (base64->escape_size == 2 && byte == '/')
        *ret = '/';
    else if (base64->escape_size == BASE64_ESCAPE_BYTES)
        *ret = (unsigned char)(hex_digit(escape[4]) << 4 | hex_digit(escape[5]));
    bool is_wrong = (base64->escape_size == 2 && byte != '/' && byte != 'u') ||
                    (base64->escape_size > 2 && base64->escape_size < 5 && byte != '0') ||
                    (base64->escape_size >= 5 && hex_digit(byte) == 16);
    if (is_wrong)
        return refuse("an escape of another character", problem);
    if (*ret != 0)
        base64->escape_size = 0;
    else if (base64->escape_size == BASE64_ESCAPE_BYTES)
        return refuse("an escape of another character", problem);
    return ERR_OK;
}

enum error base64_feed(struct base64 *base64, const char *text, size_t size, size_t *ret_used,
                       char *out, size_t *ret_size, bool *ret_done, struct problem *problem)
{
    size_t used = 0, written = 0;
    bool done = false;
    enum error err = ERR_OK;
    while (used < size && !done && err == ERR_OK) {
        if (base64->digits == 0 && base64->pads == 0 && base64->escape_size == 0) {
            size_t taken =
                take_groups((const unsigned char *)text + used, size - used, out + written);
            used += taken;
            written += taken / 4 * 3;
            if (used == size)
                break;
        }
        size_t more = 0;
        unsigned char byte = (unsigned char)text[used];
        bool is_escape = byte == '\\' || base64->escape_size > 0;
        done = byte == '"' && !is_escape;
        if (done)
            err = finish(base64, out + written, &more, problem);
        else if (is_escape)
            err = escape_byte(base64, text[used], &byte, problem);
        if (err == ERR_OK && !done && !(is_escape && byte == 0))
            err = take_character(base64, byte, out + written, &more, problem);
        used += err == ERR_OK;
        written += more;
    }
    *ret_used = used;
    *ret_size = written;
    *ret_done = done;
    return err;
}
