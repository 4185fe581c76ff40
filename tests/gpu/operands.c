/* operands.c - random elements of every type (see operands.h). */
#include "tests/gpu/operands.h"

#include <stdbool.h>
#include <string.h>

static uint64_t random_state = 1;

uint64_t random_bits(unsigned bits)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state ^ random_state >> 29) >> (64 - bits);
}

struct layout layout_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT16:
        return (struct layout){5, 10};
    case DTYPE_BFLOAT16:
        return (struct layout){8, 7};
    case DTYPE_FLOAT32:
        return (struct layout){8, 23};
    default:
        return (struct layout){11, 52};
    }
}

static uint64_t random_field(const struct layout *layout, enum kind kind)
{
    const int bias = (1 << (layout->field_bits - 1)) - 1, top = 2 * bias;
    const int spread = kind == KIND_20 ? 20 : 60;
    switch (kind) {
    case KIND_UNIFORM:
    case KIND_CONSTANT:
        return (uint64_t)bias - 1;
    case KIND_FULL:
        return random_bits(32) % ((uint64_t)top + 1);
    case KIND_SMALL:
        return random_bits(2) == 3 ? 1 : 0;
    case KIND_LARGE:
    case KIND_LARGEST:
        return (uint64_t)top;
    default:
        break;
    }
    int field = bias - spread + (int)(random_bits(32) % (2 * (uint64_t)spread + 1));
    return (uint64_t)(field < 0 ? 0 : field > top ? top : field);
}

static uint64_t random_real(enum dtype part, enum kind kind)
{
    const struct layout layout = layout_of(part);
    const uint64_t sign = random_bits(1) << (layout.field_bits + layout.fraction_bits);
    const uint64_t infinity = (((uint64_t)1 << layout.field_bits) - 1) << layout.fraction_bits;
    uint64_t fraction = random_bits(layout.fraction_bits);
    if (kind == KIND_ODD && random_bits(9) == 0)
        return infinity | sign | (random_bits(2) == 0 ? 1 : 0);
    if (kind == KIND_CONSTANT || kind == KIND_LARGEST)
        return random_field(&layout, kind) << layout.fraction_bits |
               (((uint64_t)1 << layout.fraction_bits) - 1);
    if (kind == KIND_SMALL && random_bits(2) == 0)
        fraction = 0;
    return sign | random_field(&layout, kind) << layout.fraction_bits | fraction;
}

static uint64_t random_integer(enum dtype dtype, enum kind kind)
{
    const unsigned bits = 8 * (unsigned)dtype_size(dtype);
    const uint64_t lowest = (uint64_t)1 << (bits - 1); /* of unsigned bytes: 128 */
    if (kind == KIND_CONSTANT)
        return lowest;
    if (kind == KIND_LARGEST) /* in magnitude, whose square is what counts */
        return dtype == DTYPE_UINT8 ? 255 : lowest;
    if (kind == KIND_LARGE)
        return lowest - random_bits(1);
    return kind == KIND_SMALL ? random_bits(3) : random_bits(bits - 1) << 1 | random_bits(1);
}

static void put(void *data, enum dtype part, uint64_t index, uint64_t bits)
{
    memcpy((char *)data + index * dtype_size(part), &bits, dtype_size(part)); /* little-endian */
}

static uint64_t parts_of(enum dtype dtype, uint64_t count)
{
    return dtype_is_complex(dtype) ? 2 * count : count;
}

void operand_fill(void *data, enum dtype dtype, enum kind kind, uint64_t count)
{
    const enum dtype part = dtype_part(dtype);
    const bool is_integer = dtype_is_integer(dtype);
    for (uint64_t i = 0; i < parts_of(dtype, count); i++)
        put(data, part, i, is_integer ? random_integer(dtype, kind) : random_real(part, kind));
}

/* Elements i and i + 1 of b become equal, those of a opposite; for complex ones real and imaginary
 * parts, whose products cancel in the imaginary sum. */
static void make_opposite(char *a, char *b, enum dtype part, uint64_t i)
{
    const size_t size = dtype_size(part);
    memcpy(a + (i + 1) * size, a + i * size, size);
    memcpy(b + (i + 1) * size, b + i * size, size);
    a[(i + 2) * size - 1] ^= (char)0x80;
}

void operands_fill(void *a, void *b, enum dtype dtype, enum kind kind, uint64_t count)
{
    const enum dtype part = dtype_part(dtype);
    const uint64_t parts = parts_of(dtype, count);
    operand_fill(a, dtype, kind, count);
    operand_fill(b, dtype, kind, count);
    if (kind != KIND_CANCEL || dtype_is_integer(dtype))
        return;
    for (uint64_t i = 0; i + 1 < parts; i += 2)
        make_opposite(a, b, part, i);
    if (parts > 0)
        put(a, part, parts - 1, 1); /* the smallest number */
}
