/* unsettled.c - stored float64s become elements of a narrower type (see unsettled.h). */
#include "proto/unsettled.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/leaf.h"

enum { CONVERT_COUNT = 256 }; /* elements converted at a time */

static_assert(sizeof(struct doubt) == sizeof(double), "one belongs to an element");

void unsettled_fini(struct unsettled *list)
{
    free(list->entry);
    *list = (struct unsettled){0};
}

static enum error unsettled_append(struct unsettled *list, struct doubt doubt)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        struct doubt *entry = realloc(list->entry, capacity * sizeof *entry);
        if (entry == NULL)
            return ERR_NOMEM;
        list->entry = entry;
        list->capacity = capacity;
    }
    list->entry[list->count++] = doubt;
    return ERR_OK;
}

/* A whole number that an integer type may hold, or 2^63, from below which a decimal may come. */
static bool float64_is_whole(double value)
{
    double magnitude = fabs(value);
    return magnitude <= 0x1p63 && (double)(uint64_t)magnitude == magnitude;
}

enum error unsettled_note(struct unsettled *list, uint64_t index, const struct decimal *decimal,
                          double value)
{
    bool is_whole = float64_is_whole(value);
    if (!is_whole && !float64_may_be_midpoint(value))
        return ERR_OK;
    int side = decimal_side(decimal, value);
    if (side == 0)
        return ERR_OK;
    struct doubt doubt = {.index = index, .excess = side * EXCESS_OTHER};
    uint64_t magnitude;
    if (is_whole && decimal_whole(decimal, &magnitude)) {
        int64_t excess = (int64_t)(magnitude - (uint64_t)fabs(value));
        assert(excess != 0 && -512 <= excess && excess <= 512); /* half a unit below 2^63 */
        doubt.excess = excess;
    }
    return unsettled_append(list, doubt);
}

static double element_load(const char *elements, uint64_t index)
{
    double value;
    memcpy(&value, elements + index * sizeof value, sizeof value);
    return value;
}

/* Moves every float64 that may be a midpoint to its decimal's side. Only those: another one, moved,
 * might become one. */
static void midpoints_nudge(const struct unsettled *list, char *elements)
{
    for (size_t i = 0; i < list->count; i++) {
        uint64_t index = list->entry[i].index;
        double value = element_load(elements, index);
        if (!float64_may_be_midpoint(value))
            continue;
        value = decimal_nudge(value, list->entry[i].excess > 0 ? 1 : -1);
        memcpy(elements + index * sizeof value, &value, sizeof value);
    }
}

/* All three write behind what is still to be read, in place; a step's elements are read before. */
static uint64_t float32_convert(char *elements, uint64_t count)
{
    double wide[CONVERT_COUNT];
    float narrow[CONVERT_COUNT];
    for (uint64_t done = 0; done < count;) {
        uint64_t left = count - done;
        size_t step_count = left < CONVERT_COUNT ? (size_t)left : CONVERT_COUNT;
        memcpy(wide, elements + done * sizeof(double), step_count * sizeof(double));
        bool is_beyond = false;
        for (size_t i = 0; i < step_count; i++) {
            narrow[i] = (float)wide[i];
            is_beyond |= isinf(narrow[i]) && !isinf(wide[i]);
        }
        for (size_t i = 0; is_beyond && i < step_count; i++)
            if (isinf(narrow[i]) && !isinf(wide[i]))
                return done + i;
        memcpy(elements + done * sizeof(float), narrow, step_count * sizeof(float));
        done += step_count;
    }
    return count;
}

static uint64_t narrow_convert(struct narrow type, char *elements, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        double value = element_load(elements, i);
        uint16_t bits = narrow_bits(value, type);
        if (isinf(narrow_value(bits, type)) && !isinf(value))
            return i;
        memcpy(elements + i * sizeof bits, &bits, sizeof bits);
    }
    return count;
}

static uint64_t integer_convert(const struct unsettled *list, enum dtype dtype, char *elements,
                                uint64_t count)
{
    size_t size = dtype_size(dtype), next = 0;
    for (uint64_t i = 0; i < count; i++) {
        double value = element_load(elements, i);
        int64_t excess = 0;
        if (next < list->count && list->entry[next].index == i)
            excess = list->entry[next++].excess;
        if (!float64_is_whole(value) || excess == EXCESS_OTHER || excess == -EXCESS_OTHER ||
            integer_store(signbit(value), (uint64_t)fabs(value) + (uint64_t)excess, dtype,
                          elements + i * size) != ERR_OK)
            return i;
    }
    return count;
}

/* Linear: asked once, for the text of a refusal. */
bool unsettled_has(const struct unsettled *list, uint64_t index)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entry[i].index == index)
            return true;
    return false;
}

uint64_t unsettled_convert(const struct unsettled *list, enum dtype dtype, char *elements,
                           uint64_t count)
{
    if (dtype_is_integer(dtype))
        return integer_convert(list, dtype, elements, count);
    if (dtype == DTYPE_FLOAT64)
        return count;
    midpoints_nudge(list, elements);
    if (dtype == DTYPE_FLOAT16)
        return narrow_convert(narrow_float16(), elements, count);
    if (dtype == DTYPE_BFLOAT16)
        return narrow_convert(narrow_bfloat16(), elements, count);
    assert(dtype == DTYPE_FLOAT32);
    return float32_convert(elements, count);
}
