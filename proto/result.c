/* result.c - one answer and its encodings (see result.h).
 *
 * A scalar answer is written in well under a microsecond: no printf, no document in between.
 */
#include "proto/result.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "proto/npy_head.h"
#include "proto/pointer.h"
#include "proto/scalar.h"

#define TEXT(text, literal) text_append((text), (literal), sizeof(literal) - 1)
#define PUT(to, literal)    text_put((to), (literal), sizeof(literal) - 1)

/* For all stages and their total, each with its name and what stands around it. */
#define X(stage) +sizeof #stage ";dur=, " + TEXT_DURATION_BYTES
enum { TIMING_BYTES = 0 TIMING_MAP(X) X(total) };
#undef X

static const char *const flag_names[FLAG_COUNT] = {"inexact", "invalid", "nan_input", "overflow",
                                                   "underflow"};

/* The type of each number: a complex result is two. */
static enum dtype number_dtype(const struct request *request)
{
    assert(request->options.result_dtype != DTYPE_UNKNOWN);
    return dtype_part(request->options.result_dtype);
}

static uint64_t number_count(const struct request *request)
{
    return request->result_count * dtype_part_count(request->options.result_dtype);
}

void result_round(struct result *result)
{
    const struct request *request = result->request;
    enum dtype dtype = number_dtype(request);
    bool is_rounded =
        result->accuracy == ACCURACY_EXACT || dtype_is_integer(request->options.dtype);
    uint64_t count = is_rounded ? 0 : number_count(request);
    for (uint64_t i = 0; i < count; i++)
        scalar_round(&result->value[i], dtype);
}

int64_t timing_total_ns(const struct timing *timing)
{
#define X(stage) +timing->stage##_ns
    return TIMING_MAP(X);
#undef X
}

/* Each writes one number of a field that nests as the results do. */
typedef void (*write_value)(struct text *text, const struct dot_value *value, enum dtype dtype);

static void write_error_bound(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    scalar_write_float64(text, value->error_bound);
}

static void write_sum_abs(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    scalar_write_float64(text, value->sum_abs);
}

static double condition_of(const struct dot_value *value)
{
    return value->sum_abs / fabs(value->sum);
}

static void write_condition(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    (void)dtype;
    scalar_write_float64(text, condition_of(value));
}

/* How results nest: as the one pair's do, or as a list of one for each pair. */
static struct shape result_shape(const struct request *request)
{
    if (request->is_pairs)
        return (struct shape){1, {request->pair_count}};
    return request->pair[0].result;
}

/* One number, or the two of a complex result as [re, im]. */
static void write_entry(const struct result *result, uint64_t *index, write_value write,
                        struct text *text)
{
    enum dtype dtype = number_dtype(result->request);
    bool is_complex = dtype_is_complex(result->request->options.result_dtype);
    if (is_complex) {
        TEXT(text, "[");
        write(text, &result->value[(*index)++], dtype);
        TEXT(text, ", ");
    }
    write(text, &result->value[(*index)++], dtype);
    if (is_complex)
        TEXT(text, "]");
}

static void write_axis(const struct result *result, const struct shape *shape, int axis,
                       uint64_t *index, write_value write, struct text *text)
{
    if (axis == shape->rank) {
        write_entry(result, index, write, text);
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
    assert(index == number_count(result->request) || text->failed);
}

/* The number of terms of each sum: one, or a list of one for each pair. */
static void write_n(const struct request *request, struct text *text)
{
    if (!request->is_pairs) {
        text_uint(text, tensor_length(&request->pair[0].a));
        return;
    }
    TEXT(text, "[");
    for (size_t i = 0; i < request->pair_count; i++) {
        if (i > 0)
            TEXT(text, ", ");
        text_uint(text, tensor_length(&request->pair[i].a));
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
    for (uint64_t i = 0; i < number_count(result->request); i++)
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

static bool has_text(const struct result *result)
{
    const struct request *request = result->request;
    for (uint64_t i = 0; i < number_count(request); i++)
        if (scalar_has_text(&result->value[i], number_dtype(request)))
            return true;
    return false;
}

/* The fields that tell of the numbers. */
static void write_numbers(const struct result *result, struct text *text)
{
    const struct request *request = result->request;
    const struct options *options = &request->options;
    struct shape shape = result_shape(request);
    TEXT(text, "{\"result\": ");
    write_nested(result, &shape, scalar_write, text);
    if (has_text(result)) {
        TEXT(text, ", \"result_text\": ");
        write_nested(result, &shape, scalar_write_text, text);
    }
    TEXT(text, ", \"bits\": ");
    write_nested(result, &shape, scalar_write_bits, text);
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
    char *to = text_room(text, sizeof ", \"timing_us\": {}" + TIMING_BYTES);
    if (to == NULL)
        return;
    to = PUT(to, ", \"timing_us\": {");
#define X(stage)                              \
    to = PUT(to, "\"" #stage "\": ");         \
    to = text_put_us(to, timing->stage##_ns); \
    to = PUT(to, ", ");
    TIMING_MAP(X)
#undef X
    to = PUT(to, "\"total\": ");
    to = text_put_us(to, timing_total_ns(timing));
    text_end(text, PUT(to, "}"));
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

/* Every number must fit its bits. */
static enum error check_raw(const struct result *result, struct problem *problem)
{
    const struct request *request = result->request;
    for (uint64_t i = 0; i < number_count(request); i++) {
        if (scalar_fits(&result->value[i], number_dtype(request)))
            continue;
        problem_set(problem, ERR_VALUE,
                    "result %" PRIu64 " is an integer of more than 64 bits, which int64 does "
                    "not hold; ask for application/json, or for a float result_dtype",
                    i);
        return pointer_set(problem, "/result_dtype");
    }
    return ERR_OK;
}

enum error result_encode_raw(const struct result *result, struct text *text,
                             struct problem *problem)
{
    enum error err = check_raw(result, problem);
    if (err != ERR_OK)
        return err;
    enum dtype dtype = number_dtype(result->request);
    size_t size = dtype_size(dtype);
    uint64_t count = number_count(result->request);
    char *room = text_room(text, count * size);
    if (room == NULL)
        return ERR_OK;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits = scalar_bits(&result->value[i], dtype);
        for (size_t byte = 0; byte < size; byte++)
            *room++ = (char)(bits >> 8 * byte);
    }
    text_advance(text, count * size);
    return ERR_OK;
}

enum error result_encode_npy(const struct result *result, struct text *text,
                             struct problem *problem)
{
    enum error err = check_raw(result, problem);
    if (err != ERR_OK)
        return err;
    struct shape shape = result_shape(result->request);
    npy_head_write(result->request->options.result_dtype, &shape, text);
    return result_encode_raw(result, text, problem);
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

static void header_float64(double value, struct text *text)
{
    if (isfinite(value))
        scalar_write_float64(text, value);
    else
        text_string(text, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
}

void result_header_error_bound(const struct result *result, struct text *text)
{
    double largest = 0;
    for (uint64_t i = 0; i < number_count(result->request); i++)
        if (!(result->value[i].error_bound <= largest)) /* a NaN promises as little as infinity */
            largest = isnan(result->value[i].error_bound) ? INFINITY : result->value[i].error_bound;
    header_float64(largest, text);
}

void result_header_dtype(const struct result *result, struct text *text)
{
    text_string(text, dtype_name(result->request->options.result_dtype));
}

void result_header_id(const struct result *result, struct text *text)
{
    for (const char *p = result->request->options.id; *p != '\0'; p++) {
        if (*p > ' ' && *p < 0x7f && *p != '%')
            text_append(text, p, 1);
        else
            text_printf(text, "%%%02X", (unsigned char)*p);
    }
}

void result_header_sum_abs(const struct result *result, struct text *text)
{
    if (result->request->options.diagnostics)
        header_float64(result->value[0].sum_abs, text);
}

void result_header_condition(const struct result *result, struct text *text)
{
    if (result->request->options.diagnostics)
        header_float64(condition_of(&result->value[0]), text);
}

enum error result_headers_suffice(const struct request *request, struct problem *problem)
{
    if (!request->options.diagnostics || number_count(request) == 1)
        return ERR_OK;
    problem_set(problem, ERR_OPTION,
                "diagnostics of %" PRIu64 " numbers are carried by JSON alone; ask for "
                "application/json",
                number_count(request));
    return pointer_set(problem, "/diagnostics");
}

void result_header_server_timing(const struct result *result, struct text *text)
{
    const struct timing *timing = &result->timing;
    char *to = text_room(text, TIMING_BYTES);
    if (to == NULL)
        return;
#define X(stage)                              \
    to = PUT(to, #stage ";dur=");             \
    to = text_put_ms(to, timing->stage##_ns); \
    to = PUT(to, ", ");
    TIMING_MAP(X)
#undef X
    to = PUT(to, "total;dur=");
    text_end(text, text_put_ms(to, timing_total_ns(timing)));
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
