/* cpu_exact_integer.h - the part of cpu_exact.c that the compiler makes into vectors by itself.
 *
 * No door: included once for each instruction set, with CPU_TARGET set, and
 * CPU_HALVES_TO_FLOATS(ret, data), which widens eight float16, where there is an instruction for
 * it.
 */
#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b)  CPU_PASTE_(a, b)
#define CPU_NAME(word)   CPU_PASTE(word, CPU_TARGET)

/* 2^10 products below 2^16 fit 32 bits. */
static_assert(CPU_EXACT_BLOCK_MAX <= 1 << 15, "sums of a block of bytes fit int32");

static int64_t CPU_NAME(dot_int8)(const int8_t *a, const int8_t *b, size_t count)
{
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static int64_t CPU_NAME(dot_uint8)(const uint8_t *a, const uint8_t *b, size_t count)
{
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* b = low + 2^16 high: two products of 48 bits, where one of 62 would leave no room for sums. */
static void CPU_NAME(dot_int32)(const int32_t *a, const int32_t *b, size_t count, int64_t *ret_low,
                                int64_t *ret_high)
{
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        low += (int64_t)a[i] * (b[i] & 0xffff);
        high += (int64_t)a[i] * (b[i] >> 16);
    }
    *ret_low = low;
    *ret_high = high;
}

static void CPU_NAME(widen_float16)(const void *data, float *ret, size_t count)
{
    size_t i = 0;
#ifdef CPU_HALVES_TO_FLOATS
    for (; i + 8 <= count; i += 8)
        CPU_HALVES_TO_FLOATS(ret + i, (const char *)data + 2 * i);
#endif
    for (; i < count; i++)
        ret[i] = cpu_float16((const char *)data + 2 * i);
}

/* See struct cpu_split. The unit of a subnormal is that of exponent field 1. */
static void CPU_NAME(split64)(const double *a, const double *b, size_t count, struct cpu_split *ret)
{
    const uint64_t fraction = (UINT64_C(1) << 52) - 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t x, y;
        memcpy(&x, &a[i], sizeof x);
        memcpy(&y, &b[i], sizeof y);
        uint64_t field_x = x >> 52 & 0x7ff, field_y = y >> 52 & 0x7ff;
        uint64_t is_normal_x = (field_x + 0x7ff) >> 11, is_normal_y = (field_y + 0x7ff) >> 11;
        uint64_t position = field_x - is_normal_x + field_y - is_normal_y;
        ret->bucket[i] = (x ^ y) >> 63 << 8 | position >> 4;
        ret->x[i] = ((x & fraction) | is_normal_x << 52) << (position & 7);
        ret->y[i] = ((y & fraction) | is_normal_y << 52) << (position & 8);
    }
}

#undef CPU_PASTE_
#undef CPU_PASTE
#undef CPU_NAME
