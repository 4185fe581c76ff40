/* oip_document.c - the JSON of an inference request (see oip_document.h). What is unknown in it is
 * another server's, and passed over. */
#include "proto/oip_document.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "proto/document.h"
#include "proto/pointer.h"

static const char *const input_names[OIP_INPUTS] = {"a", "b"};

const struct splitter_form oip_form = {
    .name = {[KEY_A] = "data", [KEY_PAIRS] = "inputs"},
    .hint =
        "; send a JSON object such as {\"inputs\":[{\"name\":\"a\",\"shape\":[1,2],\"datatype\":"
        "\"FP32\",\"data\":[1,2]},{\"name\":\"b\",...}]}",
};

/* ---- fields -------------------------------------------------------------------------------- */

static enum error wrong_type(const json_t *value, const char *prefix, const char *name,
                             const char *wanted, struct problem *problem)
{
    if (value == NULL)
        problem_set(problem, ERR_VALUE, "%s is missing: %s is needed", name, wanted);
    else
        problem_set(problem, ERR_VALUE, "%s must be %s, not %s", name, wanted,
                    document_type(json_typeof(value)));
    (void)pointer_key(problem, prefix, name);
    return ERR_VALUE; /* as the compiler can see: what is read then stays unset */
}

/* The string `name` of an object. */
static enum error string_read(const json_t *object, const char *prefix, const char *name,
                              const char **ret, struct problem *problem)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value))
        return wrong_type(value, prefix, name, "a string", problem);
    *ret = json_string_value(value);
    return ERR_OK;
}

/* The boolean `name`; *ret stays as it is where there is none. */
static enum error boolean_read(const json_t *object, const char *prefix, const char *name,
                               bool *ret, struct problem *problem)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL)
        return ERR_OK;
    if (!json_is_boolean(value))
        return wrong_type(value, prefix, name, "true or false", problem);
    *ret = json_is_true(value);
    return ERR_OK;
}

/* The object "parameters" of what lies at prefix; *ret NULL: it has none. */
static enum error parameters_read(const json_t *object, const char *prefix, const json_t **ret,
                                  struct problem *problem)
{
    const json_t *value = json_object_get(object, "parameters");
    if (value != NULL && !json_is_object(value))
        return wrong_type(value, prefix, "parameters", "an object", problem);
    *ret = value;
    return ERR_OK;
}

/* Memory that client and server share is not offered: a client could open what is not its own. */
static enum error refuse_shared_memory(const json_t *parameters, const char *prefix,
                                       struct problem *problem)
{
    if (json_object_get(parameters, "shared_memory_region") == NULL)
        return ERR_OK;
    problem_set(problem, ERR_UNSUPPORTED,
                "shared memory is not served here; send data, or bytes with binary_data_size");
    return pointer_key(problem, prefix, "shared_memory_region");
}

/* ---- inputs -------------------------------------------------------------------------------- */

static enum error dimension_read(const json_t *value, const char *prefix, size_t axis,
                                 uint64_t *ret, struct problem *problem)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *ret = (uint64_t)json_integer_value(value);
        return ERR_OK;
    }
    if (json_is_integer(value))
        problem_set(problem, ERR_VALUE, "a dimension is %" JSON_INTEGER_FORMAT "; none is below 0",
                    json_integer_value(value));
    else
        problem_set(problem, ERR_VALUE, "a dimension must be a whole number, not %s",
                    document_type(json_typeof(value)));
    return pointer_set(problem, "%s/shape/%zu", prefix, axis);
}

static enum error shape_read(const json_t *input, const char *prefix, struct shape *ret,
                             struct problem *problem)
{
    const json_t *value = json_object_get(input, "shape");
    struct shape shape = {0};
    uint64_t count;
    if (!json_is_array(value))
        return wrong_type(value, prefix, "shape", "an array of whole numbers", problem);
    size_t rank = json_array_size(value);
    if (rank == 0 || rank > LIMIT_RANK) {
        problem_set(problem, ERR_SHAPE,
                    "shape has %zu dimensions; 1 to %d are read, the last is summed over", rank,
                    LIMIT_RANK);
        return pointer_key(problem, prefix, "shape");
    }
    for (size_t axis = 0; axis < rank; axis++) {
        enum error err =
            dimension_read(json_array_get(value, axis), prefix, axis, &shape.dim[axis], problem);
        if (err != ERR_OK)
            return err;
    }
    shape.rank = (int)rank;
    if (shape_count(&shape, &count) != ERR_OK) {
        problem_set(problem, ERR_TOO_LARGE, "shape asks for more than 2^63 elements");
        return pointer_key(problem, prefix, "shape");
    }
    *ret = shape;
    return ERR_OK;
}

/* Names the model that takes such elements, if there is one. */
static enum error check_datatype(const struct oip_document *document, const json_t *input,
                                 const char *prefix, struct problem *problem)
{
    const struct oip_model *model = document->call->model;
    const char *datatype = NULL;
    enum error err = string_read(input, prefix, "datatype", &datatype, problem);
    if (err != ERR_OK || strcmp(datatype, dtype_oip(model->dtype)) == 0)
        return err;
    problem_set(problem, ERR_VALUE, "datatype is \"%.64s\"; model %s takes %s", datatype,
                model->name, dtype_oip(model->dtype));
    for (unsigned i = 0; i < OIP_MODELS; i++)
        if (strcmp(datatype, dtype_oip(oip_model(i)->dtype)) == 0)
            problem_set(problem, ERR_VALUE, "datatype is %s; model %s takes %s, %s takes %s",
                        datatype, model->name, dtype_oip(model->dtype), oip_model(i)->name,
                        datatype);
    return pointer_key(problem, prefix, "datatype");
}

/* Which input it is; *seen has a bit for each that was there before. */
static enum error name_read(const struct oip_document *document, const json_t *input,
                            const char *prefix, unsigned *seen, int *ret, struct problem *problem)
{
    const char *name = NULL;
    int index = 0;
    enum error err = string_read(input, prefix, "name", &name, problem);
    if (err != ERR_OK)
        return err;
    while (index < OIP_INPUTS && strcmp(name, input_names[index]) != 0)
        index++;
    if (index < OIP_INPUTS && (*seen >> index & 1) == 0) {
        *seen |= 1u << index;
        *ret = index;
        return ERR_OK;
    }
    if (index < OIP_INPUTS)
        problem_set(problem, ERR_VALUE, "input %s is given twice", name);
    else
        problem_set(problem, ERR_VALUE, "model %s has no input \"%.64s\"; it takes a and b",
                    document->call->model->name, name);
    return pointer_key(problem, prefix, "name");
}

static enum error wrong_count(const char *prefix, const struct shape *shape, uint64_t count,
                              struct problem *problem)
{
    char text[100];
    problem_set(problem, ERR_SHAPE, "data has %" PRIu64 " elements, and shape is %s", count,
                shape_print(shape, text, sizeof text));
    return pointer_key(problem, prefix, "data");
}

/* The elements stood in the document: they are in the buffer already. However their array nests,
 * they fill the shape in order. */
static enum error data_read(const struct oip_document *document, const json_t *data,
                            const char *prefix, struct tensor *tensor, struct problem *problem)
{
    if (!json_is_array(data))
        return wrong_type(data, prefix, "data", "an array of numbers", problem);
    /* Ours, whatever the client sent: see splitter.h. */
    json_int_t index = json_integer_value(json_array_get(data, 0));
    assert(json_array_size(data) == 1 && index >= 0);
    assert((size_t)index < document->splitter.operand_count);
    const struct tensor *read = &document->splitter.operand[index].tensor;
    uint64_t count, wanted;
    enum error err = shape_count(&tensor->shape, &wanted);
    if (err == ERR_OK)
        err = shape_count(&read->shape, &count);
    assert(err == ERR_OK); /* the one was checked, the other lies in memory */
    if (count != wanted)
        return wrong_count(prefix, &tensor->shape, count, problem);
    tensor->offset = read->offset;
    return ERR_OK;
}

static enum error no_length_header(struct problem *problem)
{
    return problem_set(problem, ERR_VALUE,
                       "binary_data_size says that bytes follow the JSON, and there is no "
                       "header " OIP_LENGTH_HEADER " to say where they begin");
}

/* The elements follow the document. */
static enum error blob_add(struct oip_document *document, const json_t *size, const char *prefix,
                           struct tensor *tensor, struct problem *problem)
{
    size_t element = dtype_size(tensor->dtype);
    uint64_t count, bytes;
    if (!json_is_integer(size))
        return wrong_type(size, prefix, "binary_data_size", "a whole number", problem);
    if (!document->has_length && json_integer_value(size) != 0)
        return no_length_header(problem);
    enum error err = shape_count(&tensor->shape, &count);
    assert(err == ERR_OK); /* checked with the shape */
    if (__builtin_mul_overflow(count, element, &bytes) || bytes > INT64_MAX ||
        json_integer_value(size) != (json_int_t)bytes) {
        problem_set(problem, ERR_SHAPE,
                    "binary_data_size is %" JSON_INTEGER_FORMAT ", and shape asks for %" PRIu64
                    " elements of %zu bytes",
                    json_integer_value(size), count, element);
        return pointer_key(problem, prefix, "binary_data_size");
    }
    document->blob[document->blob_count++] = (struct oip_blob){tensor, bytes};
    return ERR_OK;
}

static enum error input_read(struct oip_document *document, const json_t *input, size_t position,
                             unsigned *seen, struct problem *problem)
{
    char prefix[32], parameters_prefix[48];
    const json_t *parameters = NULL;
    struct shape shape;
    int index = 0;
    (void)snprintf(prefix, sizeof prefix, "/inputs/%zu", position);
    (void)snprintf(parameters_prefix, sizeof parameters_prefix, "%s/parameters", prefix);
    if (!json_is_object(input)) {
        problem_set(problem, ERR_VALUE, "an input must be an object, not %s",
                    document_type(json_typeof(input)));
        return pointer_set(problem, "%s", prefix);
    }
    enum error err = name_read(document, input, prefix, seen, &index, problem);
    if (err == ERR_OK)
        err = check_datatype(document, input, prefix, problem);
    if (err == ERR_OK)
        err = shape_read(input, prefix, &shape, problem);
    if (err == ERR_OK)
        err = parameters_read(input, prefix, &parameters, problem);
    if (err == ERR_OK)
        err = refuse_shared_memory(parameters, parameters_prefix, problem);
    if (err != ERR_OK)
        return err;
    struct tensor_pair *pair = document->request->pair;
    struct tensor *tensor = index == 0 ? &pair->a : &pair->b;
    *tensor = (struct tensor){.dtype = document->call->model->dtype, .shape = shape};
    const json_t *data = json_object_get(input, "data");
    const json_t *size = json_object_get(parameters, "binary_data_size");
    if ((data == NULL) == (size == NULL)) {
        problem_set(problem, ERR_VALUE, "input %s has %s data %s binary_data_size",
                    input_names[index], data == NULL ? "neither" : "both",
                    data == NULL ? "nor" : "and");
        return pointer_set(problem, "%s", prefix);
    }
    if (data != NULL)
        return data_read(document, data, prefix, tensor, problem);
    return blob_add(document, size, parameters_prefix, tensor, problem);
}

static enum error inputs_read(struct oip_document *document, const json_t *root,
                              struct problem *problem)
{
    const json_t *inputs = json_object_get(root, "inputs");
    unsigned seen = 0;
    if (!json_is_array(inputs))
        return wrong_type(inputs, "", "inputs", "an array", problem);
    enum error err = request_pairs(document->request, 1, problem);
    for (size_t i = 0; err == ERR_OK && i < json_array_size(inputs); i++)
        err = input_read(document, json_array_get(inputs, i), i, &seen, problem);
    for (int i = 0; err == ERR_OK && i < OIP_INPUTS; i++)
        if ((seen >> i & 1) == 0) {
            err = problem_set(problem, ERR_VALUE, "input %s is missing; model %s takes a and b",
                              input_names[i], document->call->model->name);
            (void)pointer_set(problem, "/inputs");
        }
    return err;
}

/* ---- outputs and parameters ---------------------------------------------------------------- */

static enum error output_read(struct oip_document *document, const json_t *output, size_t position,
                              struct problem *problem)
{
    char prefix[32], parameters_prefix[48];
    const char *name = NULL;
    const json_t *parameters = NULL;
    (void)snprintf(prefix, sizeof prefix, "/outputs/%zu", position);
    (void)snprintf(parameters_prefix, sizeof parameters_prefix, "%s/parameters", prefix);
    if (!json_is_object(output)) {
        problem_set(problem, ERR_VALUE, "an output must be an object, not %s",
                    document_type(json_typeof(output)));
        return pointer_set(problem, "%s", prefix);
    }
    enum error err = string_read(output, prefix, "name", &name, problem);
    if (err != ERR_OK)
        return err;
    if (strcmp(name, "result") != 0 || position > 0) {
        problem_set(problem, ERR_VALUE,
                    position > 0 && strcmp(name, "result") == 0
                        ? "output \"%.64s\" is asked for twice"
                        : "there is no output \"%.64s\"; there is result",
                    name);
        return pointer_key(problem, prefix, "name");
    }
    err = parameters_read(output, prefix, &parameters, problem);
    if (err == ERR_OK)
        err = refuse_shared_memory(parameters, parameters_prefix, problem);
    if (err != ERR_OK)
        return err;
    if (json_object_get(parameters, "classification") != NULL) {
        problem_set(problem, ERR_UNSUPPORTED, "a dot product has no classes to be sorted into");
        return pointer_key(problem, parameters_prefix, "classification");
    }
    return boolean_read(parameters, parameters_prefix, "binary_data", &document->call->wants_binary,
                        problem);
}

/* An output that is listed is JSON unless it says otherwise, whatever the request does. */
static enum error outputs_read(struct oip_document *document, const json_t *root,
                               const json_t *parameters, struct problem *problem)
{
    const json_t *outputs = json_object_get(root, "outputs");
    if (outputs != NULL && !json_is_array(outputs))
        return wrong_type(outputs, "", "outputs", "an array", problem);
    enum error err = ERR_OK;
    if (json_array_size(outputs) == 0) /* also when there is none: all outputs */
        return boolean_read(parameters, "/parameters", "binary_data_output",
                            &document->call->wants_binary, problem);
    for (size_t i = 0; err == ERR_OK && i < json_array_size(outputs); i++)
        err = output_read(document, json_array_get(outputs, i), i, problem);
    return err;
}

/* In microseconds; a part of a millisecond counts as one. */
static enum error timeout_read(struct oip_document *document, const json_t *parameters,
                               unsigned *seen, struct problem *problem)
{
    const json_t *value = json_object_get(parameters, "timeout");
    if (value == NULL)
        return ERR_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong_type(value, "/parameters", "timeout",
                          "a whole number of microseconds, 0 or "
                          "more",
                          problem);
    uint64_t timeout_us = (uint64_t)json_integer_value(value);
    char timeout_ms[24];
    if (timeout_us == 0)
        return ERR_OK;
    (void)snprintf(timeout_ms, sizeof timeout_ms, "%" PRIu64,
                   timeout_us / 1000 + (timeout_us % 1000 > 0));
    return options_set(&document->request->options, seen, "timeout_ms", timeout_ms, problem);
}

/* Of the request's parameters those that are ours; what is unknown here is another server's. */
static enum error options_read(struct oip_document *document, const json_t *root,
                               const json_t *parameters, struct problem *problem)
{
    static const char *const names[] = {"accuracy", "kernel", "device"};
    struct options *options = &document->request->options;
    unsigned seen = 0;
    enum error err = timeout_read(document, parameters, &seen, problem);
    for (size_t i = 0; err == ERR_OK && i < sizeof names / sizeof *names; i++) {
        const char *value = NULL;
        if (json_object_get(parameters, names[i]) == NULL)
            continue;
        err = string_read(parameters, "/parameters", names[i], &value, problem);
        if (err != ERR_OK)
            return err;
        err = options_set(options, &seen, names[i], value, problem);
        if (err != ERR_OK)
            return pointer_prefix(problem, "/parameters");
    }
    const char *id = NULL;
    if (err != ERR_OK || json_object_get(root, "id") == NULL)
        return err;
    err = string_read(root, "", "id", &id, problem);
    return err == ERR_OK ? options_set(options, &seen, "id", id, problem) : err;
}

static enum error root_read(struct oip_document *document, const json_t *root,
                            struct problem *problem)
{
    const json_t *parameters = NULL;
    enum error err = parameters_read(root, "", &parameters, problem);
    if (err == ERR_OK)
        err = options_read(document, root, parameters, problem);
    if (err == ERR_OK)
        err = outputs_read(document, root, parameters, problem);
    return err == ERR_OK ? inputs_read(document, root, problem) : err;
}

enum error oip_document_fail(const struct oip_document *document, struct problem *problem)
{
    static const char key[] = "\"binary_data_size\"";
    const struct text *skeleton = &document->splitter.skeleton;
    if (!document->has_length && skeleton->size > 0 && problem->error != ERR_NOMEM &&
        memmem(skeleton->data, skeleton->size, key, sizeof key - 1) != NULL)
        return no_length_header(problem);
    return problem->error;
}

enum error oip_document_read(struct oip_document *document, struct problem *problem)
{
    json_t *root;
    enum error err = document_finish(&document->splitter, &root, problem);
    if (err != ERR_OK)
        return oip_document_fail(document, problem);
    err = root_read(document, root, problem);
    json_decref(root);
    return err;
}
