/* digits8.h - eight characters of a decimal at a time, as the bytes of one word.
 *
 * The first character is the lowest byte. Digits are held as their values 0 to 9, so that bytes
 * shifted in count as zeros before the number. Private to the readers of decimals.
 * Source: D. Lemire, "Number parsing at a gigabyte per second", 2021, section 6 and appendix.
 */
#ifndef PROTO_DIGITS8_H
#define PROTO_DIGITS8_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first character is the lowest byte");

#define BYTES8(byte) ((byte) * (uint64_t)0x0101010101010101)

static inline uint64_t digits8_load(const char *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return bytes ^ BYTES8('0');
}

/* The top bit of each byte that is no digit. Bytes above the first of them may be marked wrongly: a
 * carry leaves only bytes that are marked themselves. */
static inline uint64_t digits8_others(uint64_t digits)
{
    return ((digits + BYTES8(0x76)) | digits) & BYTES8(0x80);
}

/* The number that eight digits make: pairs first, then both fours in one product each. */
static inline uint64_t digits8_value(uint64_t digits)
{
    const uint64_t mask = 0x000000ff000000ff;
    const uint64_t low_scale = 100 + ((uint64_t)1000000 << 32);
    const uint64_t high_scale = 1 + ((uint64_t)10000 << 32);
    digits = digits * 10 + (digits >> 8);
    return ((digits & mask) * low_scale + (digits >> 16 & mask) * high_scale) >> 32;
}

#endif
