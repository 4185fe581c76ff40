/* bytes.c - moving raw elements (see bytes.h). */
#include "proto/bytes.h"

#include <byteswap.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

void copy_past_cache(char *to, const char *from, size_t size)
{
#ifdef __SSE2__
    size_t head = -(uintptr_t)to % sizeof(__m128i);
    if (head > size)
        head = size;
    memcpy(to, from, head);
    size_t whole = head + (size - head) / sizeof(__m128i) * sizeof(__m128i);
    for (size_t i = head; i < whole; i += sizeof(__m128i))
        _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
    memcpy(to + whole, from + whole, size - whole);
    _mm_sfence();
#else
    memcpy(to, from, size);
#endif
}

void bytes_place(char *place, const char *data, size_t size, bool is_large)
{
    if (data == place)
        return;
    if (is_large)
        copy_past_cache(place, data, size);
    else
        memcpy(place, data, size);
}

/* Through memcpy, as the bytes are neither integers nor floats yet; it costs nothing. */
static void swap16(char *number)
{
    uint16_t bits;
    memcpy(&bits, number, sizeof bits);
    bits = bswap_16(bits);
    memcpy(number, &bits, sizeof bits);
}

static void swap32(char *number)
{
    uint32_t bits;
    memcpy(&bits, number, sizeof bits);
    bits = bswap_32(bits);
    memcpy(number, &bits, sizeof bits);
}

static void swap64(char *number)
{
    uint64_t bits;
    memcpy(&bits, number, sizeof bits);
    bits = bswap_64(bits);
    memcpy(number, &bits, sizeof bits);
}

void swap_numbers(char *data, size_t size, size_t number_size)
{
    for (size_t i = 0; i < size; i += number_size) {
        if (number_size == sizeof(uint64_t))
            swap64(data + i);
        else if (number_size == sizeof(uint32_t))
            swap32(data + i);
        else if (number_size == sizeof(uint16_t))
            swap16(data + i);
    }
}
