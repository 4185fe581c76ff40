/* answer.c - reading answers (see answer.h).
 *
 * Numbers are taken from "bits", which are exact for every type; no decimal is parsed for them, but
 * that of an integer, whose value as a double is rounded once so.
 */
#include "answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [DOTD_FLOAT16] = {"float16", 2},     [DOTD_BFLOAT16] = {"bfloat16", 2},
    [DOTD_FLOAT32] = {"float32", 4},     [DOTD_FLOAT64] = {"float64", 8},
    [DOTD_INT8] = {"int8", 1},           [DOTD_UINT8] = {"uint8", 1},
    [DOTD_INT32] = {"int32", 4},         [DOTD_INT64] = {"int64", 8},
    [DOTD_COMPLEX64] = {"complex64", 8}, [DOTD_COMPLEX128] = {"complex128", 16},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *dtype_name(enum dotd_dtype dtype)
{
    return (unsigned)dtype < TYPES ? types[dtype].name : NULL;
}

size_t dotd_size(enum dotd_dtype dtype)
{
    return (unsigned)dtype < TYPES ? types[dtype].size : 0;
}

/* The fields that are read, in the order of names[]. */
enum field {
    RESULT,
    BITS,
    SHAPE,
    DTYPE,
    BOUND,
    SUM_ABS,
    CONDITION,
    FLAGS,
    KERNEL,
    DEVICE,
    DEVICE_NAME,
    BATCH_SIZE,
    TIMING,
    ID,
    FIELDS
};
static const char *const names[FIELDS] = {
    "result", "bits",   "shape",  "result_dtype", "error_bound", "sum_abs",   "condition",
    "flags",  "kernel", "device", "device_name",  "batch_size",  "timing_us", "id",
};

struct reading {
    struct dotd_result *result;
    locale_t numbers;
    size_t index; /* of the next leaf */
};

static bool add_dimension(void *context, struct json_span leaf)
{
    struct reading *reading = context;
    struct dotd_shape *shape = &reading->result->shape;
    int64_t dim = json_whole(leaf, reading->numbers, -1);
    if (dim < 0 || shape->rank == DOTD_RANK_MAX)
        return false;
    shape->dim[shape->rank++] = (uint64_t)dim;
    return true;
}

static bool count_leaf(void *context, struct json_span leaf)
{
    struct reading *reading = context;
    (void)leaf;
    reading->result->count++;
    return true;
}

/* "0x" and 4 to 16 digits, or 48. */
static bool read_bits(struct json_span leaf, uint64_t *word)
{
    char text[64];
    json_text(leaf, text, sizeof text);
    if (strncmp(text, "0x", 2) != 0)
        return false;
    size_t digits = strlen(text + 2);
    if (digits > 48 || strspn(text + 2, "0123456789abcdef") != digits)
        return false;
    for (int i = 0; i < 3; i++, digits -= digits < 16 ? digits : 16) {
        char part[17] = "";
        size_t size = digits < 16 ? digits : 16;
        memcpy(part, text + 2 + digits - size, size);
        word[i] = strtoull(part, NULL, 16);
    }
    return true;
}

static double half_value(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023), value;
    if (exponent == 31)
        value = fraction == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexp(fraction, -24);
    else
        value = ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 & 1 ? -value : value;
}

static double single_value(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

static double float_value(enum dotd_dtype dtype, uint64_t bits)
{
    double value;
    switch (dtype) {
    case DOTD_FLOAT16:
        return half_value(bits);
    case DOTD_BFLOAT16:
        return single_value(bits << 16);
    case DOTD_FLOAT32:
    case DOTD_COMPLEX64:
        return single_value(bits);
    default:
        memcpy(&value, &bits, sizeof value);
        return value;
    }
}

static bool is_complex(enum dotd_dtype dtype)
{
    return dtype == DOTD_COMPLEX64 || dtype == DOTD_COMPLEX128;
}

static bool add_number(void *context, struct json_span leaf)
{
    struct reading *reading = context;
    struct dotd_number *number = &reading->result->number[reading->index++];
    enum dotd_dtype dtype = reading->result->dtype;
    *number = (struct dotd_number){.error_bound = INFINITY, .sum_abs = NAN, .condition = NAN};
    if (!read_bits(leaf, number->bits))
        return false;
    if (dtype != DOTD_INT64)
        number->value = float_value(dtype, number->bits[0]);
    else if (leaf.end - leaf.begin <= 20 && number->bits[0] >> 63 != 0)
        number->bits[1] = number->bits[2] = UINT64_MAX;
    return true;
}

static bool add_integer(void *context, struct json_span leaf)
{
    struct reading *reading = context;
    if (reading->index == reading->result->count)
        return false;
    reading->result->number[reading->index++].value = json_number(leaf, reading->numbers, NAN);
    return true;
}

/* A measure of each number goes to the member at an offset; null becomes infinity. */
struct measure {
    struct reading reading;
    size_t offset;
};

static bool add_measure(void *context, struct json_span leaf)
{
    struct measure *measure = context;
    struct dotd_result *result = measure->reading.result;
    if (measure->reading.index == result->count)
        return false;
    char *number = (char *)&result->number[measure->reading.index++];
    double value = json_number(leaf, measure->reading.numbers, INFINITY);
    memcpy(number + measure->offset, &value, sizeof value);
    return true;
}

/* sum_abs and condition of a complex element are one for both of its parts or one each, as they
 * come; a number that none was said of keeps NaN. */
static bool read_measures(const struct json_span *field, struct reading reading)
{
    static const struct {
        enum field field;
        size_t offset;
    } measures[] = {
        {BOUND, offsetof(struct dotd_number, error_bound)},
        {SUM_ABS, offsetof(struct dotd_number, sum_abs)},
        {CONDITION, offsetof(struct dotd_number, condition)},
    };
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        struct measure measure = {{reading.result, reading.numbers, 0}, measures[i].offset};
        struct json_span value = field[measures[i].field];
        if (value.begin != NULL && !json_each(value, add_measure, &measure))
            return false;
    }
    return true;
}

static bool add_flag(void *context, struct json_span leaf)
{
    static const char *const flags[] = {
        "\"inexact\"", "\"invalid\"", "\"nan_input\"", "\"overflow\"", "\"underflow\"",
    };
    struct dotd_result *result = context;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (json_is(leaf, flags[i]))
            result->flags |= 1u << i;
    return true;
}

static void read_timing(struct json_span value, locale_t numbers, struct dotd_timing *ret)
{
    static const char *const stages[] = {
        "receive", "decode", "queue", "copy_in", "compute", "copy_out", "total",
    };
    struct json_span stage[7];
    double *place[7] = {&ret->receive, &ret->decode,   &ret->queue, &ret->copy_in,
                        &ret->compute, &ret->copy_out, &ret->total};
    if (value.begin == NULL || !json_fields(value, stages, 7, stage))
        return;
    for (int i = 0; i < 7; i++)
        *place[i] = json_number(stage[i], numbers, 0);
}

static enum dotd_dtype dtype_of(struct json_span value)
{
    char name[DOTD_NAME_BYTES];
    json_text(value, name, sizeof name);
    for (int dtype = DOTD_FLOAT16; dtype < TYPES; dtype++)
        if (strcmp(types[dtype].name, name) == 0)
            return (enum dotd_dtype)dtype;
    return DOTD_DEFAULT;
}

static enum dotd_code read_numbers(const struct json_span *field, struct reading reading)
{
    struct dotd_result *result = reading.result;
    if (!json_each(field[BITS], count_leaf, &reading))
        return DOTD_BAD_ANSWER;
    result->number = calloc(result->count + 1, sizeof *result->number); /* one at least */
    if (result->number == NULL)
        return DOTD_NO_MEMORY;
    struct reading again = {result, reading.numbers, 0}, integers = again;
    bool ok = json_each(field[BITS], add_number, &again) && read_measures(field, again);
    if (ok && result->dtype == DOTD_INT64)
        ok = json_each(field[RESULT], add_integer, &integers);
    return ok ? DOTD_OK : DOTD_BAD_ANSWER;
}

/* Whether there are as many numbers as the shape says. */
static bool is_whole(const struct dotd_result *result)
{
    uint64_t count = is_complex(result->dtype) ? 2 : 1;
    for (unsigned i = 0; i < result->shape.rank; i++)
        if (__builtin_mul_overflow(count, result->shape.dim[i], &count))
            return false;
    return count == result->count;
}

static void read_texts(const struct json_span *field, struct reading reading)
{
    struct dotd_result *result = reading.result;
    json_text(field[KERNEL], result->kernel, sizeof result->kernel);
    json_text(field[DEVICE], result->device, sizeof result->device);
    json_text(field[DEVICE_NAME], result->device_name, sizeof result->device_name);
    json_text(field[ID], result->id, sizeof result->id);
    result->batch_size = (unsigned)json_whole(field[BATCH_SIZE], reading.numbers, 0);
    read_timing(field[TIMING], reading.numbers, &result->timing_us);
}

enum dotd_code answer_result(struct json_span body, locale_t numbers, struct dotd_result *ret)
{
    struct json_span field[FIELDS];
    if (!json_fields(body, names, FIELDS, field) || field[BITS].begin == NULL)
        return DOTD_BAD_ANSWER;
    struct dotd_result result = {.dtype = dtype_of(field[DTYPE])};
    struct reading reading = {&result, numbers, 0};
    if (result.dtype == DOTD_DEFAULT || !json_each(field[SHAPE], add_dimension, &reading))
        return DOTD_BAD_ANSWER;
    enum dotd_code code = read_numbers(field, reading);
    if (code == DOTD_OK && !is_whole(&result))
        code = DOTD_BAD_ANSWER;
    if (code != DOTD_OK) {
        dotd_result_clear(&result);
        return code;
    }
    (void)json_each(field[FLAGS], add_flag, &result);
    read_texts(field, reading);
    *ret = result;
    return DOTD_OK;
}

void dotd_result_clear(struct dotd_result *result)
{
    free(result->number);
    result->number = NULL;
    result->count = 0;
}

enum dotd_code error_set(struct dotd_error *error, enum dotd_code code, const char *detail)
{
    if (error != NULL) {
        *error = (struct dotd_error){.code = code, .offset = -1, .limit = -1, .retry_after_s = -1};
        snprintf(error->detail, sizeof error->detail, "%s", detail);
    }
    return code;
}

void answer_problem(struct json_span body, int status, locale_t numbers, struct dotd_error *error)
{
    static const char *const members[] = {"type",    "title", "detail", "pointer",
                                          "setting", "id",    "offset", "limit"};
    struct json_span field[8];
    char type[DOTD_NAME_BYTES];
    error_set(error, status == 504 ? DOTD_LATE : DOTD_REFUSED, "");
    error->status = status;
    if (!json_fields(body, members, 8, field)) {
        snprintf(error->detail, sizeof error->detail, "%.*s", (int)(body.end - body.begin),
                 body.begin);
        return;
    }
    json_text(field[0], type, sizeof type);
    const char *slash = strrchr(type, '/');
    snprintf(error->name, sizeof error->name, "%s", slash != NULL ? slash + 1 : type);
    json_text(field[1], error->title, sizeof error->title);
    json_text(field[2], error->detail, sizeof error->detail);
    json_text(field[3], error->pointer, sizeof error->pointer);
    json_text(field[4], error->setting, sizeof error->setting);
    json_text(field[5], error->id, sizeof error->id);
    error->offset = json_whole(field[6], numbers, -1);
    error->limit = json_whole(field[7], numbers, -1);
}
