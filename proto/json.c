/* json.c - the JSON body of a request (see encoding.h).
 *
 * The splitter takes the arrays of numbers out while the body arrives; jansson parses the rest,
 * which is short; then fields become options and operands. jansson alone would keep 40 bytes an
 * element and read 26 MB/s.
 */
#include "proto/encoding.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bytes.h"
#include "proto/document.h"
#include "proto/pointer.h"
#include "proto/splitter.h"

struct json {
    const struct encoding *encoding; /* first: see encoding.h */
    struct request *request;
    struct splitter splitter;
    bool is_dtype_told; /* by the request or an operand: it is no mere default */
};

static const struct splitter_form form = {
    .name = {[KEY_A] = "a",
             [KEY_B] = "b",
             [KEY_PAIRS] = "pairs",
             [KEY_DTYPE] = "dtype",
             [KEY_BASE64] = "base64"},
    .at_root = true,
    .hint = "; send a JSON object such as {\"a\":[1,2,3],\"b\":[4,5,6]}, or raw elements as "
            "application/octet-stream",
};

enum {
    RESERVE_BYTES = 1 << 20, /* at most, before a byte of the body was seen */
    RESERVE_MORE = 1 << 10,  /* numbers are read in runs only where there is room for one */
};

static enum error json_create(struct decoder **ret, struct request *request, uint64_t body_bytes,
                              size_t max_bytes, struct problem *problem)
{
    if (request->options.given & OPTIONS_OF_RAW)
        return problem_set(problem, ERR_OPTION,
                           "shape_a, shape_b and layout are for application/octet-stream bodies; "
                           "a JSON array nests as its shape does");
    /* An element takes 8 bytes at most and more in text: one reservation serves most bodies. */
    uint64_t reserve = body_bytes / 4 * 3 + RESERVE_MORE;
    if (reserve > RESERVE_BYTES + RESERVE_MORE)
        reserve = RESERVE_BYTES + RESERVE_MORE;
    if (body_bytes != BODY_CHUNKED && reserve <= max_bytes &&
        buffer_reserve(&request->buffer, reserve) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for %" PRIu64 " bytes of operands",
                           reserve);
    struct json *json = malloc(sizeof *json);
    if (json == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a decoder");
    json->encoding = &encoding_json;
    json->request = request;
    splitter_init(&json->splitter, &form, &request->buffer, request->options.dtype, max_bytes);
    json->splitter.announced = body_bytes == BODY_CHUNKED ? 0 : body_bytes;
    *ret = (struct decoder *)json;
    return ERR_OK;
}

static enum error json_feed(struct decoder *decoder, const char *data, size_t size,
                            struct problem *problem)
{
    struct json *json = (struct json *)decoder;
    return splitter_feed(&json->splitter, data, size, problem);
}

static enum error option_read(struct options *options, unsigned *seen, const char *name,
                              const json_t *value, struct problem *problem)
{
    static const json_type types[] = {[OPTION_TEXT] = JSON_STRING,
                                      [OPTION_INTEGER] = JSON_INTEGER,
                                      [OPTION_BOOLEAN] = JSON_TRUE}; /* for JSON_FALSE too */
    const struct option_row *row = options_find(name);
    if (row == NULL || row->kind == OPTION_RAW)
        return options_unknown("field", name, "a, b, pairs", problem);
    json_type type = json_typeof(value), wanted = types[row->kind];
    if (type != wanted && !(type == JSON_FALSE && wanted == JSON_TRUE)) {
        problem_set(problem, ERR_VALUE, "%s must be %s, not %s", name, document_type(wanted),
                    document_type(type));
        return pointer_key(problem, "", name);
    }
    char integer[24];
    const char *text = integer;
    if (type == JSON_STRING)
        text = json_string_value(value);
    else if (type == JSON_INTEGER)
        (void)snprintf(integer, sizeof integer, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        text = type == JSON_TRUE ? "true" : "false";
    return options_set(options, seen, name, text, problem);
}

static enum error options_read(struct options *options, const json_t *root, struct problem *problem)
{
    unsigned seen = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value)
    {
        if (strcmp(name, "a") == 0 || strcmp(name, "b") == 0 || strcmp(name, "pairs") == 0)
            continue;
        enum error err = option_read(options, &seen, name, value, problem);
        if (err != ERR_OK)
            return err;
    }
    return ERR_OK;
}

/* From here to operand_read() pointers begin at the operand, below at what is being read. */

/* A value that is none of what an operand may be. */
static enum error not_an_operand(const json_t *value, const char *name, struct problem *problem)
{
    if (value == NULL)
        return problem_set(problem, ERR_VALUE, "%s is missing: both operands are needed", name);
    if (json_object_get(value, "ref") != NULL)
        return problem_set(problem, ERR_UNSUPPORTED,
                           "%s is a reference; arrays of numbers and objects with base64 are read",
                           name);
    return problem_set(problem, ERR_VALUE,
                       "%s must be an array of numbers, or an object with base64, not %s", name,
                       json_is_object(value) ? "one without" : document_type(json_typeof(value)));
}

/* What the splitter has taken out; index is ours, whatever the client sent: see splitter.h. */
static struct operand *operand_at(struct json *json, json_int_t index)
{
    assert(index >= 0 && (size_t)index < json->splitter.operand_count);
    return &json->splitter.operand[index];
}

/* The operand of an array of numbers. */
static enum error array_read(struct json *json, const json_t *value, struct tensor *ret,
                             struct problem *problem)
{
    assert(json_array_size(value) == 1);
    struct operand *operand = operand_at(json, json_integer_value(json_array_get(value, 0)));
    enum dtype dtype = json->request->options.dtype;
    if (operand->numbers != NULL) {
        enum error err = numbers_convert(operand->numbers, dtype, problem);
        if (err != ERR_OK)
            return err;
        operand->tensor = numbers_tensor(operand->numbers);
    }
    assert(operand->tensor.dtype == dtype);
    *ret = operand->tensor;
    return ERR_OK;
}

/* ---- {"base64", "dtype", "shape"} ---------------------------------------------------------- */

static enum error object_check_keys(const json_t *object, struct problem *problem)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (strcmp(name, "base64") == 0 || strcmp(name, "dtype") == 0 || strcmp(name, "shape") == 0)
            continue;
        problem_set(problem, ERR_OPTION,
                    "unknown field \"%.64s\"; known beside base64 are dtype, shape", name);
        return pointer_key(problem, "", name);
    }
    return ERR_OK;
}

/* Its own, or else the request's. Both operands of a request are of one type. */
static enum error object_dtype(const struct json *json, const json_t *object,
                               enum byte_order *ret_order, struct problem *problem)
{
    const struct options *options = &json->request->options;
    const json_t *value = json_object_get(object, "dtype");
    enum dtype dtype;
    *ret_order = options->order;
    if (value == NULL && json->is_dtype_told)
        return ERR_OK;
    if (value == NULL)
        problem_set(problem, ERR_OPTION,
                    "bytes do not tell their type: say so with dtype, beside "
                    "base64 or beside a and b");
    else if (!json_is_string(value))
        problem_set(problem, ERR_VALUE, "dtype must be a string, not %s",
                    document_type(json_typeof(value)));
    else if (dtype_parse(json_string_value(value), &dtype, ret_order) != ERR_OK)
        problem_set(problem, ERR_DTYPE, "dtype \"%.64s\" is not known here; known are %s",
                    json_string_value(value), dtype_list());
    else if (dtype != options->dtype)
        problem_set(problem, ERR_OPTION,
                    "dtype %s contradicts the request's or the other operand's, %s",
                    dtype_name(dtype), dtype_name(options->dtype));
    else
        return ERR_OK;
    return pointer_set(problem, "/dtype");
}

static enum error bad_shape(struct problem *problem)
{
    problem_set(problem, ERR_VALUE, "shape must be an array of at most %d whole numbers, 0 or more",
                LIMIT_RANK);
    return pointer_set(problem, "/shape");
}

/* A vector, unless it is said. */
static enum error object_shape(const json_t *object, uint64_t count, struct shape *ret,
                               struct problem *problem)
{
    const json_t *value = json_object_get(object, "shape");
    if (value == NULL) {
        *ret = (struct shape){1, {count}};
        return ERR_OK;
    }
    if (!json_is_array(value) || json_array_size(value) > LIMIT_RANK)
        return bad_shape(problem);
    struct shape shape = {.rank = (int)json_array_size(value)};
    for (int axis = 0; axis < shape.rank; axis++) {
        const json_t *dim = json_array_get(value, (size_t)axis);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return bad_shape(problem);
        shape.dim[axis] = (uint64_t)json_integer_value(dim);
    }
    *ret = shape;
    return ERR_OK;
}

static enum error check_length(const struct operand *operand, const struct tensor *tensor,
                               struct problem *problem)
{
    const size_t size = dtype_size(tensor->dtype);
    char shape[100];
    uint64_t count;
    if (operand->size_bytes % size == 0 && shape_count(&tensor->shape, &count) == ERR_OK &&
        count == operand->size_bytes / size)
        return ERR_OK;
    problem_set(problem, ERR_LENGTH, "%zu bytes are not the %s elements of shape %s",
                operand->size_bytes, dtype_name(tensor->dtype),
                shape_print(&tensor->shape, shape, sizeof shape));
    return pointer_set(problem, "/base64");
}

static enum error object_read(struct json *json, const json_t *object, struct tensor *ret,
                              struct problem *problem)
{
    const json_t *text = json_object_get(object, "base64");
    if (!json_is_string(text)) {
        problem_set(problem, ERR_VALUE, "base64 must be a string, not %s",
                    document_type(json_typeof(text)));
        return pointer_set(problem, "/base64");
    }
    const struct operand *operand = operand_at(json, strtoll(json_string_value(text), NULL, 10));
    struct tensor tensor = {.offset = operand->tensor.offset};
    enum byte_order order;
    enum error err = object_check_keys(object, problem);
    if (err == ERR_OK)
        err = object_dtype(json, object, &order, problem);
    if (err != ERR_OK)
        return err;
    tensor.dtype = json->request->options.dtype;
    err = object_shape(object, operand->size_bytes / dtype_size(tensor.dtype), &tensor.shape,
                       problem);
    if (err == ERR_OK)
        err = check_length(operand, &tensor, problem);
    if (err != ERR_OK)
        return err;
    if (order == ORDER_BIG && operand->size_bytes > 0)
        swap_numbers((char *)json->request->buffer.block.data + tensor.offset, operand->size_bytes,
                     dtype_size(dtype_part(tensor.dtype)));
    *ret = tensor;
    return ERR_OK;
}

/* If nothing else says it, the type is what the first operand of base64 says. A wrong word is left
 * to object_dtype(). */
static bool peek_dtype(const json_t *object, struct options *options)
{
    static const char *const names[] = {"a", "b"};
    enum byte_order order;
    for (int i = 0; i < 2; i++) {
        const json_t *operand = json_object_get(object, names[i]);
        const char *name = json_string_value(json_object_get(operand, "dtype"));
        if (json_object_get(operand, "base64") != NULL && name != NULL &&
            dtype_parse(name, &options->dtype, &order) == ERR_OK)
            return true;
    }
    return false;
}

static void settle_dtype(const json_t *root, struct options *options)
{
    const json_t *pairs = json_object_get(root, "pairs"), *pair;
    size_t index;
    if (options->dtype != DTYPE_UNKNOWN || peek_dtype(root, options))
        return;
    json_array_foreach(pairs, index, pair)
    {
        if (peek_dtype(pair, options))
            return;
    }
}

/* ---- operands ------------------------------------------------------------------------------ */

/* The operand `name` of object. */
static enum error operand_read(struct json *json, const json_t *object, const char *name,
                               struct tensor *ret, struct problem *problem)
{
    const json_t *value = json_object_get(object, name);
    enum error err;
    if (json_object_get(value, "base64") != NULL)
        err = object_read(json, value, ret, problem);
    else if (json_is_array(value))
        err = array_read(json, value, ret, problem);
    else
        err = not_an_operand(value, name, problem);
    if (err == ERR_OK)
        return ERR_OK;
    char step[8];
    (void)snprintf(step, sizeof step, "/%s", name);
    return pointer_prefix(problem, step);
}

static enum error pair_read(struct json *json, const json_t *object, struct tensor_pair *ret,
                            struct problem *problem)
{
    enum error err = operand_read(json, object, "a", &ret->a, problem);
    if (err == ERR_OK)
        err = operand_read(json, object, "b", &ret->b, problem);
    return err;
}

/* One element of pairs: an object with a and b and nothing else. */
static enum error element_read(struct json *json, json_t *element, struct tensor_pair *ret,
                               struct problem *problem)
{
    if (!json_is_object(element))
        return problem_set(problem, ERR_VALUE, "an element of pairs must be an object, not %s",
                           document_type(json_typeof(element)));
    const char *name;
    json_t *value;
    json_object_foreach(element, name, value)
    {
        if (strcmp(name, "a") != 0 && strcmp(name, "b") != 0) {
            problem_set(problem, ERR_OPTION,
                        "unknown field \"%.64s\"; known in an element of pairs are a, b", name);
            return pointer_key(problem, "", name);
        }
    }
    return pair_read(json, element, ret, problem);
}

static enum error elements_read(struct json *json, const json_t *pairs, struct problem *problem)
{
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        enum error err =
            element_read(json, json_array_get(pairs, i), &json->request->pair[i], problem);
        if (err == ERR_OK)
            continue;
        char prefix[32];
        (void)snprintf(prefix, sizeof prefix, "/pairs/%zu", i);
        return pointer_prefix(problem, prefix);
    }
    return ERR_OK;
}

static enum error pairs_read(struct json *json, const json_t *root, const json_t *pairs,
                             struct problem *problem)
{
    struct request *request = json->request;
    if (json_object_get(root, "a") != NULL || json_object_get(root, "b") != NULL) {
        problem_set(problem, ERR_OPTION, "pairs stands instead of a and b, not beside them");
        return pointer_set(problem, "/pairs");
    }
    if (!json_is_array(pairs)) {
        problem_set(problem, ERR_VALUE, "pairs must be an array of objects with a and b, not %s",
                    document_type(json_typeof(pairs)));
        return pointer_set(problem, "/pairs");
    }
    size_t count = json_array_size(pairs);
    assert(count <= LIMIT_PAIRS); /* the splitter has counted them */
    enum error err = request_pairs(request, count, problem);
    request->is_pairs = true;
    return err == ERR_OK ? elements_read(json, pairs, problem) : err;
}

static enum error document_read(struct json *json, const json_t *root, struct problem *problem)
{
    struct request *request = json->request;
    enum error err = options_read(&request->options, root, problem);
    if (err != ERR_OK)
        return err;
    settle_dtype(root, &request->options);
    json->is_dtype_told = request->options.dtype != DTYPE_UNKNOWN;
    options_settle_dtype(&request->options);
    const json_t *pairs = json_object_get(root, "pairs");
    if (pairs != NULL)
        return pairs_read(json, root, pairs, problem);
    err = request_pairs(request, 1, problem);
    return err == ERR_OK ? pair_read(json, root, request->pair, problem) : err;
}

static enum error json_finish(struct decoder *decoder, struct problem *problem)
{
    struct json *json = (struct json *)decoder;
    json_t *root;
    enum error err = document_finish(&json->splitter, &root, problem);
    if (err != ERR_OK)
        return err;
    err = document_read(json, root, problem);
    json_decref(root);
    return err;
}

static void json_destroy(struct decoder *decoder)
{
    struct json *json = (struct json *)decoder;
    splitter_fini(&json->splitter);
    free(json);
}

const struct encoding encoding_json = {
    .create = json_create,
    .feed = json_feed,
    .finish = json_finish,
    .destroy = json_destroy,
};
