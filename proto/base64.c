/* base64.c - bytes as base64 in a JSON string (see base64.h). */
#include "proto/base64.h"

#include <endian.h>
#include <string.h>

enum { GROUP_DIGITS = 4, GROUP_BYTES = 3, BLOCK_GROUPS = 8, ALL_DIGITS = 0xf };

/* Both alphabets, with D() of each digit's value. */
/* clang-format off */
#define DIGITS(D)                                                                                 \
    ['A'] = D(0), D(1), D(2), D(3), D(4), D(5), D(6), D(7), D(8), D(9), D(10), D(11), D(12),      \
    D(13), D(14), D(15), D(16), D(17), D(18), D(19), D(20), D(21), D(22), D(23), D(24),           \
    D(25),                                                                                        \
    ['a'] = D(26), D(27), D(28), D(29), D(30), D(31), D(32), D(33), D(34), D(35), D(36),          \
    D(37), D(38), D(39), D(40), D(41), D(42), D(43), D(44), D(45), D(46), D(47), D(48),           \
    D(49), D(50), D(51),                                                                          \
    ['0'] = D(52), D(53), D(54), D(55), D(56), D(57), D(58), D(59), D(60), D(61),                 \
    ['+'] = D(62), ['-'] = D(62), ['/'] = D(63), ['_'] = D(63)
/* clang-format on */

/* What a digit brings to the three bytes of its group, the first byte lowest, by its place among
 * the four; and above them a bit that it is one. So a group is four loads, and whether all are
 * digits is asked of many groups at once. */
#define FIRST(value)  (1U << 24 | (value) << 2)
#define SECOND(value) (1U << 25 | (value) >> 4 | ((value)&15) << 12)
#define THIRD(value)  (1U << 26 | (value) >> 2 << 8 | ((value)&3) << 22)
#define FOURTH(value) (1U << 27 | (value) << 16)
static const uint32_t places[GROUP_DIGITS][256] = {
    {DIGITS(FIRST)}, {DIGITS(SECOND)}, {DIGITS(THIRD)}, {DIGITS(FOURTH)}};

/* A digit's value and 1; 0: it is none. */
static unsigned digit_value(unsigned char byte)
{
    uint32_t last = places[GROUP_DIGITS - 1][byte];
    return last != 0 ? (last >> 16 & 63) + 1 : 0;
}

size_t base64_room(size_t size)
{
    return (size / 4 + 1) * 3 + 1; /* 3 digits may be in hand already; a byte more is written */
}

/* Writes a byte beyond the three. */
static inline uint32_t group_read(const unsigned char *text, char *out)
{
    uint32_t group =
        places[0][text[0]] | places[1][text[1]] | places[2][text[2]] | places[3][text[3]];
    memcpy(out, &(uint32_t){htole32(group)}, sizeof group);
    return group >> 24;
}

/* As long as there are only digits. */
static size_t take_groups(const unsigned char *text, size_t size, char *out)
{
    enum { BLOCK_DIGITS = BLOCK_GROUPS * GROUP_DIGITS };
    size_t used = 0;
    for (; size - used >= BLOCK_DIGITS; used += BLOCK_DIGITS, out += BLOCK_GROUPS * GROUP_BYTES) {
        uint32_t are_digits = ALL_DIGITS;
        for (size_t i = 0; i < BLOCK_GROUPS; i++)
            are_digits &= group_read(text + used + i * GROUP_DIGITS, out + i * GROUP_BYTES);
        if (are_digits != ALL_DIGITS)
            break;
    }
    while (size - used >= GROUP_DIGITS && group_read(text + used, out) == ALL_DIGITS) {
        used += GROUP_DIGITS;
        out += GROUP_BYTES;
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
    const unsigned value = digit_value(byte);
    if (value == 0)
        return refuse("a character that is no digit of either alphabet", problem);
    if (base64->pads > 0)
        return refuse("a digit follows the padding", problem);
    *ret_size = take_digit(base64, value - 1, out);
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
    const unsigned size = ++base64->escape_size;
    escape[size - 1] = byte;
    unsigned char character = 0;
    if (size == 2 && byte == '/')
        character = '/';
    else if (size == BASE64_ESCAPE_BYTES)
        character = (unsigned char)(hex_digit(escape[4]) << 4 | hex_digit(escape[5]));
    bool is_wrong = (size == 2 && byte != '/' && byte != 'u') ||
                    (size > 2 && size < 5 && byte != '0') || (size >= 5 && hex_digit(byte) == 16) ||
                    (size == BASE64_ESCAPE_BYTES && character == 0);
    if (is_wrong)
        return refuse("an escape of another character", problem);
    if (character != 0)
        base64->escape_size = 0;
    *ret = character;
    return ERR_OK;
}

/* A digit, padding, a byte of an escape, or the closing quote, which is *ret_done. */
static enum error take_byte(struct base64 *base64, char byte, char *out, size_t *ret_size,
                            bool *ret_done, struct problem *problem)
{
    unsigned char character = (unsigned char)byte;
    *ret_size = 0;
    if (byte == '\\' || base64->escape_size > 0) {
        enum error err = escape_byte(base64, byte, &character, problem);
        if (err != ERR_OK || character == 0)
            return err;
    } else if (byte == '"') {
        *ret_done = true;
        return finish(base64, out, ret_size, problem);
    }
    return take_character(base64, character, out, ret_size, problem);
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
        size_t more;
        err = take_byte(base64, text[used], out + written, &more, &done, problem);
        used += err == ERR_OK;
        written += more;
    }
    *ret_used = used;
    *ret_size = written;
    *ret_done = done;
    return err;
}
