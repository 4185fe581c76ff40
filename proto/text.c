/* text.c - a growing piece of output text (see text.h). */
#include "proto/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_FIRST_BYTES = 1024 }; /* a scalar answer fits */

void text_init(struct text *text)
{
    *text = (struct text){0};
}

void text_fini(struct text *text)
{
    free(text->data);
    text_init(text);
}

void text_clear(struct text *text)
{
    text->size = 0;
    text->failed = false;
}

/* The size that has room for size more bytes and a NUL; 0 when there is none. */
static size_t grown_capacity(const struct text *text, size_t size)
{
    size_t need;
    if (__builtin_add_overflow(text->size, size, &need) ||
        __builtin_add_overflow(need, (size_t)1, &need))
        return 0;
    size_t capacity = text->capacity + text->capacity / 2;
    if (capacity < TEXT_FIRST_BYTES)
        capacity = TEXT_FIRST_BYTES;
    return capacity < need ? need : capacity;
}

char *text_grow(struct text *text, size_t size)
{
    if (text->failed)
        return NULL;
    size_t capacity = grown_capacity(text, size);
    char *data = capacity > 0 ? realloc(text->data, capacity) : NULL;
    if (data == NULL) {
        text->failed = true;
        text->capacity = text->size; /* no append finds room without asking here */
        return NULL;
    }
    text->data = data;
    text->capacity = capacity;
    return text->data + text->size;
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    char *room = size < 0 ? NULL : text_room(text, (size_t)size);
    if (room != NULL) {
        (void)vsnprintf(room, (size_t)size + 1, format, again);
        text_advance(text, (size_t)size);
    }
    va_end(again);
    va_end(args);
}

/* Writes value's digits so that they end before `end`: at least `least` of them, with zeros in
 * front. Returns the first. Two digits a step, as each step waits for the one before. */
static inline char *digits_write(char *end, uint64_t value, int least)
{
    char *first = end;
    for (; value >= 10; value /= 100) {
        unsigned pair = (unsigned)(value % 100);
        *--first = (char)('0' + pair % 10);
        *--first = (char)('0' + pair / 10);
    }
    if (value > 0)
        *--first = (char)('0' + value);
    while (end - first < least)
        *--first = '0';
    return first;
}

void text_uint(struct text *text, uint64_t value)
{
    char digits[20], *end = digits + sizeof digits;
    char *first = digits_write(end, value, 1);
    text_append(text, first, (size_t)(end - first));
}

/* The bytes of the UTF-8 sequence of several at s, 0 when it is none (RFC 3629: no overlong forms,
 * no surrogates, nothing above U+10FFFF). Stops at the NUL by itself, which continues nothing. */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Writes one character that may not stand for itself: a quote, a backslash, a control. */
static void json_escape(struct text *text, unsigned char byte)
{
    static const char controls[] = "btn.fr"; /* of bytes 8 to 13; 11 has no short form */
    static const char hex[] = "0123456789abcdef";
    char escape[] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
    bool is_short = byte == '"' || byte == '\\' || (byte >= 8 && byte <= 13 && byte != 11);
    if (is_short)
        escape[1] = byte >= ' ' ? (char)byte : controls[byte - 8];
    text_append(text, escape, is_short ? 2 : sizeof escape);
}

/* ASCII that stands for itself. */
static const bool is_plain[256] = {
    [' ' ... '!'] = true, ['#' ... '['] = true, [']' ... 0x7f] = true};

/* The end of what stands for itself: ASCII, and other characters as UTF-8. */
static const unsigned char *plain_end(const unsigned char *s)
{
    for (;;) {
        while (is_plain[*s])
            s++;
        size_t length = *s >= 0x80 ? utf8_length(s) : 0;
        if (length == 0)
            return s;
        s += length;
    }
}

/* A string that needs no escape, as nearly all: between quotes, at once. */
static void quote(struct text *text, const char *string, size_t size)
{
    char *room = text_room(text, size + 2);
    if (room == NULL)
        return;
    *room = '"';
    memcpy(room + 1, string, size);
    room[size + 1] = '"';
    text_advance(text, size + 2);
}

void text_json_string(struct text *text, const char *string)
{
    const unsigned char *s = (const unsigned char *)string, *end = plain_end(s);
    if (*end == '\0') {
        quote(text, string, (size_t)(end - s));
        return;
    }
    text_append(text, "\"", 1);
    while (*s != '\0') {
        const unsigned char *run = s;
        s = plain_end(s);
        text_append(text, (const char *)run, (size_t)(s - run));
        if (*s == '\0')
            break;
        if (*s < 0x80)
            json_escape(text, *s);
        else
            text_string(text, "\xef\xbf\xbd");
        s++;
    }
    text_append(text, "\"", 1);
}

/* The eight digits of a number below 10^8, as values 0 to 9, the first in the lowest byte: fours,
 * pairs and single digits are taken apart side by side. Source: P. Khuong, "How to print integers
 * really fast", 2017. */
static uint64_t eight_digits(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & 0x0000007f0000007f;
    uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
    uint64_t tens = (pairs * 103 >> 10) & 0x000f000f000f000f;
    return tens | (pairs - 10 * tens) << 8;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first digit is the lowest byte");

/* The eight hexadecimal digits of value, the last in the lowest byte. */
static uint64_t hex_digits(uint32_t value)
{
    uint64_t digits = value;
    digits = (digits | digits << 16) & 0x0000ffff0000ffff;
    digits = (digits | digits << 8) & 0x00ff00ff00ff00ff;
    digits = (digits | digits << 4) & 0x0f0f0f0f0f0f0f0f;
    uint64_t letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
    return digits + 0x3030303030303030 + letters * ('a' - '9' - 1);
}

void text_put_hex(char to[static 16], uint64_t value)
{
    uint64_t high = __builtin_bswap64(hex_digits((uint32_t)(value >> 32)));
    uint64_t low = __builtin_bswap64(hex_digits((uint32_t)value));
    memcpy(to, &high, sizeof high);
    memcpy(to + 8, &low, sizeof low);
}

/* value below 10^8 with a point before its last `decimals` digits. */
static inline char *short_write(char *to, uint32_t value, int decimals)
{
    int whole = 8 - decimals; /* digits before the point, of which one is shown at least */
    uint64_t digits = eight_digits(value);
    int zeros = __builtin_ctzll(digits | (uint64_t)1 << 8 * (whole - 1)) / 8;
    digits += 0x3030303030303030; /* '0' each */
    uint64_t before = digits >> 8 * zeros, after = digits >> 8 * whole;
    memcpy(to, &before, sizeof before); /* more than is kept */
    to += whole - zeros;
    *to++ = '.';
    memcpy(to, &after, sizeof after);
    return to + decimals;
}

/* value with a point before its last `decimals` digits; unit is 10 to the power of that. */
static char *long_write(char *to, int64_t value, uint64_t unit, int decimals)
{
    char digits[TEXT_DURATION_BYTES], *end = digits + sizeof digits;
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    char *first = digits_write(end, magnitude % unit, decimals);
    *--first = '.';
    first = digits_write(first, magnitude / unit, 1);
    if (value < 0)
        *--first = '-';
    return text_put(to, first, (size_t)(end - first));
}

static bool is_short(int64_t ns)
{
    return ns >= 0 && ns < 100000000;
}

char *text_put_us(char *to, int64_t ns)
{
    return is_short(ns) ? short_write(to, (uint32_t)ns, 3) : long_write(to, ns, 1000, 3);
}

char *text_put_ms(char *to, int64_t ns)
{
    return is_short(ns) ? short_write(to, (uint32_t)ns, 6) : long_write(to, ns, 1000000, 6);
}
