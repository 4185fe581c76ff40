/* oip.c - the models of the Open Inference Protocol, and its answers (see oip.h). */
#include "proto/oip.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/scalar.h"

static const struct oip_model models[OIP_MODELS] = {
    {"dot", DTYPE_FLOAT32, DTYPE_FLOAT64},      {"dot_fp64", DTYPE_FLOAT64, DTYPE_FLOAT64},
    {"dot_fp16", DTYPE_FLOAT16, DTYPE_FLOAT64}, {"dot_bf16", DTYPE_BFLOAT16, DTYPE_FLOAT64},
    {"dot_int8", DTYPE_INT8, DTYPE_INT64},
};

const struct oip_model *oip_model(unsigned index)
{
    assert(index < OIP_MODELS);
    return &models[index];
}

unsigned oip_model_index(const struct oip_model *model)
{
    assert(model >= models && model < models + OIP_MODELS);
    return (unsigned)(model - models);
}

const struct oip_model *oip_model_find(const char *name, size_t size)
{
    for (unsigned i = 0; i < OIP_MODELS; i++)
        if (strlen(models[i].name) == size && memcmp(models[i].name, name, size) == 0)
            return &models[i];
    return NULL;
}

/* Of floating-point numbers null would be read as 0 by one client, and as NaN by another. */
static void write_number(struct text *text, const struct dot_value *value, enum dtype dtype)
{
    if (dtype == DTYPE_INT64 || isfinite(value->sum))
        scalar_write(text, value, dtype);
    else
        text_string(text, isnan(value->sum) ? "NaN" : value->sum < 0 ? "-Infinity" : "Infinity");
}

/* One array, however many dimensions shape has: some clients read no deeper. */
static void write_data(const struct result *result, enum dtype dtype, struct text *text)
{
    text_string(text, "\"data\": [");
    for (uint64_t i = 0; i < result->request->result_count && !text->failed; i++) {
        if (i > 0)
            text_append(text, ", ", 2);
        write_number(text, &result->value[i], dtype);
    }
    text_append(text, "]", 1);
}

/* A vector of one number for each of the results. */
static void write_shape(const struct shape *shape, struct text *text)
{
    for (int axis = 0; axis < shape->rank; axis++) {
        text_uint(text, shape->dim[axis]);
        text_append(text, ", ", 2);
    }
    text_append(text, "1", 1);
}

enum error oip_encode(const struct result *result, const struct oip_call *call, struct text *text,
                      size_t *ret_json_bytes, struct problem *problem)
{
    const struct request *request = result->request;
    enum dtype dtype = call->model->result_dtype;
    size_t start = text->size;
    assert(request->pair_count == 1 && request->options.result_dtype == dtype);
    text_string(text, "{\"model_name\": \"");
    text_string(text, call->model->name);
    text_string(text, "\", \"model_version\": \"" OIP_VERSION "\"");
    if (request->options.id[0] != '\0') {
        text_string(text, ", \"id\": ");
        text_json_string(text, request->options.id);
    }
    text_string(text, ", \"outputs\": [{\"name\": \"result\", \"shape\": [");
    write_shape(&request->pair->result, text);
    text_string(text, "], ");
    if (call->wants_binary)
        text_printf(text, "\"parameters\": {\"binary_data_size\": %" PRIu64 "}",
                    request->result_count * dtype_size(dtype));
    else
        write_data(result, dtype, text);
    text_string(text, ", \"datatype\": \"");
    text_string(text, dtype_oip(dtype));
    text_string(text, "\"}]}");
    *ret_json_bytes = text->size - start;
    return call->wants_binary ? result_encode_raw(result, text, problem) : ERR_OK;
}

void oip_encode_problem(const struct problem *problem, struct text *text)
{
    char sentence[LIMIT_DETAIL_BYTES + LIMIT_POINTER_BYTES + 128];
    size_t used = (size_t)snprintf(sentence, sizeof sentence, "%s", problem->detail);
    if (problem->pointer[0] != '\0')
        used +=
            (size_t)snprintf(sentence + used, sizeof sentence - used, " (at %s)", problem->pointer);
    if (problem->offset >= 0)
        used += (size_t)snprintf(sentence + used, sizeof sentence - used, " (byte %" PRId64 ")",
                                 problem->offset);
    if (problem->setting != NULL)
        (void)snprintf(sentence + used, sizeof sentence - used, " (setting %s)", problem->setting);
    text_string(text, "{\"error\": ");
    text_json_string(text, sentence);
    text_append(text, "}", 1);
}
