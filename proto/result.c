/* result.c - one answer and its encodings (see result.h).
 *
 * A scalar answer is written in well under a microsecond: no printf, no document in between.
 */
#include "proto/result.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "proto/shortest.h"

#define TEXT(text, literal) text_append((text), (literal), sizeof(literal) - 1)

static const char *const flag_names[FLAG_COUNT] = {"inexact", "invalid", "nan_input", "overflow",
                                                   "underflow"};

/* a + b, both 0 or more, rounded up: an error bound may grow but never shrink. */
static double add_up(double a, double b)
{
    if (a == 0 || b == 0)
        return a + b;
    return nextafter(a + b, INFINITY);
}

static void value_round_float32(struct dot_value *value)
{
    double sum = value->sum, rounded = (double)(float)sum;
    value->sum = rounded;
    if (!isfinite(sum))
        return;
    if (!isfinite(rounded)) {
        value->flags |= FLAG_OVERFLOW | FLAG_INEXACT;
        value->error_bound = INFINITY;
        return;
    }
    /* Exact: rounded is 0, or within a factor of 2 of sum (Sterbenz). */
    double moved = fabs(sum - rounded);
    if (moved > 0)
        value->flags |= FLAG_INEXACT;
    value->error_bound = add_up(value->error_bound, moved);
    if ((value->flags & FLAG_INEXACT) && sum != 0 && fabs(rounded) < (double)FLT_MIN)
        value->flags |= FLAG_UNDERFLOW;
}

void result_round(struct result *result)
{
    const struct request *request = result->request;
    assert(request->options.result_dtype != DTYPE_UNKNOWN);
    if (request->options.result_dtype == DTYPE_FLOAT32)
        for (uint64_t i = 0; i < request->result_count; i++)
            value_round_float32(&result->value[i]);
}

int64_t timing_total_ns(const struct timing *timing)
{
    return timing->receive_ns + timing->decode_ns + timing->queue_ns + timing->copy_in_ns +
           timing->compute_ns + timing->copy_out_ns;
}

/* The bits of a result, NaN always in its one canonical form. */
static uint64_t value_bits(const struct dot_value *value, enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT32) {
        float narrow = (float)value->sum;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return isnan(value->sum) ? UINT32_C(0x7fc00000) : bits;
    }
    uint64_t bits;
    memcpy(&bits, &value->sum, sizeof bits);
    return isnan(value->sum) ? UINT64_C(0x7ff8000000000000) : bits;
}

static void write_float64(struct text *text, double value)
{
    if (!isfinite(value)) {
        TEXT(text, "null");
        return;
    }
    char *room = text_room(text, SHORTEST_BYTES);
    if (room != NULL)
        text_advance(text, shortest_float64(value, room));
}

/* Each writes one entry of a field that nests as the results do. */
typedef void (*write_value)(struct text *text, const struct dot_value *value, enum dtype dtype);

static void write_result(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    if (dtype == DTYPE_FLOAT64 || !isfinite(value->sum)) {
        write_float64(text, value->sum);
        return;
    }
    assert(dtype == DTYPE_FLOAT32);
    char *room = text_room(text, SHORTEST_BYTES);
    if (room != NULL)
        text_advance(text, shortest_float32((float)value->sum, room));
}

static void write_result_text(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    if (isnan(value->sum))
        TEXT(text, "\"NaN\"");
    else if (isfinite(value->sum))
        TEXT(text, "null");
    else
        text_string(text, value->sum > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static void write_bits(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    uint64_t bits = value_bits(value, dtype);
    char hex[3 + 16 + 1] = "\"0x";
    size_t digits = 2 * dtype_size(dtype);
    for (size_t i = digits; i > 0; i--, bits >>= 4)
        hex[2 + i] = "0123456789abcdef"[bits & 15];
    hex[3 + digits] = '"';
    text_append(text, hex, 4 + digits);
}

static void write_error_bound(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    write_float64(text, value->error_bound);
}

static void write_sum_abs(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    write_float64(text, value->sum_abs);
}

static void write_condition(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    write_float64(text, value->sum_abs / fabs(value->sum));
}

/* How results nest: as the one pair's do, or as a list of one for each pair. */
static struct shape result_shape(const struct request *request)
{
    if (request->is_pairs)
        return (struct shape){1, {request->pair_count}};
    return request->pair[0].result;
}

static void write_axis(const struct result *result, const struct shape *shape, int axis,
                       uint64_t *index, write_value write, struct text *text)
{
    if (axis == shape->rank) {
        write(text, &result->value[(*index)++], result->request->options.result_dtype);
        return;
    }
    TEXT(text, "[");
    for (uint64_t i = 0; i < shape->dim[axis] && !text->failed; i++) {
        if (i > 0)
            TEXT(text, ", ");
        write_axis(result, shape, axis + 1, index, write, text);
    }
    TEXT(text, "]");
}

static void write_nested(const struct result *result, const struct shape *shape, write_value write,
                         struct text *text)
{
    uint64_t index = 0;
    write_axis(result, shape, 0, &index, write, text);
    assert(index == result->request->result_count || text->failed);
}

static uint64_t last_dim(const struct tensor *tensor)
{
    return tensor->shape.dim[tensor->shape.rank - 1];
}

/* The number of terms of each sum: one, or a list of one for each pair. */
static void write_n(const struct request *request, struct text *text)
{
    if (!request->is_pairs) {
        text_uint(text, last_dim(&request->pair[0].a));
        return;
    }
    TEXT(text, "[");
    for (size_t i = 0; i < request->pair_count; i++) {
        if (i > 0)
            TEXT(text, ", ");
        text_uint(text, last_dim(&request->pair[i].a));
    }
    TEXT(text, "]");
}

static void write_shape(const struct shape *shape, const char *separator, struct text *text)
{
    for (int axis = 0; axis < shape->rank; axis++) {
        if (axis > 0)
            text_string(text, separator);
        text_uint(text, shape->dim[axis]);
    }
}

static unsigned flags_union(const struct result *result)
{
    unsigned flags = 0;
    for (uint64_t i = 0; i < result->request->result_count; i++)
        flags |= result->value[i].flags;
    return flags;
}

static void write_flags(const struct result *result, const char *quote, const char *separator,
                        struct text *text)
{
    unsigned flags = flags_union(result);
    bool is_first = true;
    for (int i = 0; i < FLAG_COUNT; i++) {
        if ((flags >> i & 1) == 0)
            continue;
        if (!is_first)
            text_string(text, separator);
        text_string(text, quote);
        text_string(text, flag_names[i]);
        text_string(text, quote);
        is_first = false;
    }
}

static bool is_all_finite(const struct result *result)
{
    for (uint64_t i = 0; i < result->request->result_count; i++)
        if (!isfinite(result->value[i].sum))
            return false;
    return true;
}

/* The fields that tell of the numbers. */
static void write_numbers(const struct result *result, struct text *text)
{
    const struct request *request = result->request;
    const struct options *options = &request->options;
    struct shape shape = result_shape(request);
    TEXT(text, "{\"result\": ");
    write_nested(result, &shape, write_result, text);
    if (!is_all_finite(result)) {
        TEXT(text, ", \"result_text\": ");
        write_nested(result, &shape, write_result_text, text);
    }
    TEXT(text, ", \"bits\": ");
    write_nested(result, &shape, write_bits, text);
    TEXT(text, ", \"shape\": [");
    write_shape(&shape, ", ", text);
    TEXT(text, "], \"n\": ");
    write_n(request, text);
    TEXT(text, ", \"dtype\": \"");
    text_string(text, dtype_name(options->dtype));
    TEXT(text, "\", \"result_dtype\": \"");
    text_string(text, dtype_name(options->result_dtype));
    TEXT(text, "\", \"accuracy\": \"");
    text_string(text, accuracy_name(result->accuracy));
    TEXT(text, "\", \"error_bound\": ");
    write_nested(result, &shape, write_error_bound, text);
    if (options->diagnostics) {
        TEXT(text, ", \"sum_abs\": ");
        write_nested(result, &shape, write_sum_abs, text);
        TEXT(text, ", \"condition\": ");
        write_nested(result, &shape, write_condition, text);
    }
    TEXT(text, ", \"flags\": [");
    write_flags(result, "\"", ", ", text);
    TEXT(text, "]");
}

static void write_timing(const struct timing *timing, struct text *text)
{
    TEXT(text, ", \"timing_us\": {\"receive\": ");
    text_us(text, timing->receive_ns);
    TEXT(text, ", \"decode\": ");
    text_us(text, timing->decode_ns);
    TEXT(text, ", \"queue\": ");
    text_us(text, timing->queue_ns);
    TEXT(text, ", \"copy_in\": ");
    text_us(text, timing->copy_in_ns);
    TEXT(text, ", \"compute\": ");
    text_us(text, timing->compute_ns);
    TEXT(text, ", \"copy_out\": ");
    text_us(text, timing->copy_out_ns);
    TEXT(text, ", \"total\": ");
    text_us(text, timing_total_ns(timing));
    TEXT(text, "}");
}

void result_encode_json(const struct result *result, struct text *text)
{
    const struct options *options = &result->request->options;
    write_numbers(result, text);
    TEXT(text, ", \"kernel\": ");
    text_json_string(text, result->kernel);
    TEXT(text, ", \"device\": ");
    text_json_string(text, result->device);
    TEXT(text, ", \"device_name\": ");
    text_json_string(text, result->device_name);
    TEXT(text, ", \"batch_size\": ");
    text_uint(text, result->batch_size);
    write_timing(&result->timing, text);
    if (options->given & OPTION_ID) {
        TEXT(text, ", \"id\": ");
        text_json_string(text, options->id);
    }
    TEXT(text, "}");
}

void result_encode_raw(const struct result *result, struct text *text)
{
    enum dtype dtype = result->request->options.result_dtype;
    size_t element_size = dtype_size(dtype);
    uint64_t count = result->request->result_count;
    char *room = text_room(text, count * element_size);
    if (room == NULL)
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits = value_bits(&result->value[i], dtype);
        for (size_t byte = 0; byte < element_size; byte++)
            *room++ = (char)(bits >> 8 * byte);
    }
    text_advance(text, count * element_size);
}

void result_header_shape(const struct result *result, struct text *text)
{
    struct shape shape = result_shape(result->request);
    write_shape(&shape, ",", text);
}

void result_header_flags(const struct result *result, struct text *text)
{
    write_flags(result, "", ",", text);
}

void result_header_error_bound(const struct result *result, struct text *text)
{
    double largest = 0;
    for (uint64_t i = 0; i < result->request->result_count; i++)
        if (!(result->value[i].error_bound <= largest)) /* a NaN promises as little as infinity */
            largest = isnan(result->value[i].error_bound) ? INFINITY : result->value[i].error_bound;
    if (isfinite(largest))
        write_float64(text, largest);
    else
        TEXT(text, "Infinity");
}

void result_header_server_timing(const struct result *result, struct text *text)
{
    const struct timing *timing = &result->timing;
    const struct {
        const char *name;
        int64_t ns;
    } stages[] = {
        {"receive;dur=", timing->receive_ns},      {", decode;dur=", timing->decode_ns},
        {", queue;dur=", timing->queue_ns},        {", copy_in;dur=", timing->copy_in_ns},
        {", compute;dur=", timing->compute_ns},    {", copy_out;dur=", timing->copy_out_ns},
        {", total;dur=", timing_total_ns(timing)},
    };
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        text_string(text, stages[i].name);
        text_ms(text, stages[i].ns);
    }
}

void problem_encode_json(const struct problem *problem, const char *id, struct text *text)
{
    TEXT(text, "{\"type\": \"/problems/");
    text_string(text, error_name(problem->error));
    TEXT(text, "\", \"title\": ");
    text_json_string(text, error_title(problem->error));
    TEXT(text, ", \"status\": ");
    text_uint(text, (uint64_t)error_status(problem->error));
    TEXT(text, ", \"detail\": ");
    text_json_string(text, problem->detail);
    if (problem->pointer[0] != '\0') {
        TEXT(text, ", \"pointer\": ");
        text_json_string(text, problem->pointer);
    }
    if (problem->offset >= 0) {
        TEXT(text, ", \"offset\": ");
        text_uint(text, (uint64_t)problem->offset);
    }
    if (problem->limit > 0) {
        TEXT(text, ", \"limit\": ");
        text_uint(text, problem->limit);
    }
    if (problem->setting != NULL) {
        TEXT(text, ", \"setting\": ");
        text_json_string(text, problem->setting);
    }
    if (id != NULL && *id != '\0') {
        TEXT(text, ", \"id\": ");
        text_json_string(text, id);
    }
    TEXT(text, "}");
}
