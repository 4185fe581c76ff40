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

#include "proto/document.h"
#include "proto/pointer.h"
#include "proto/splitter.h"

struct json {
    const struct encoding *encoding; /* first: see encoding.h */
    struct request *request;
    struct splitter splitter;
};

static const struct splitter_form form = {
    .name = {[KEY_A] = "a", [KEY_B] = "b", [KEY_PAIRS] = "pairs", [KEY_DTYPE] = "dtype"},
    .at_root = true,
    .hint = "; send a JSON object such as {\"a\":[1,2,3],\"b\":[4,5,6]}, or raw elements as "
            "application/octet-stream",
};

enum { RESERVE_BYTES = 1 << 20 }; /* at most, before a byte of the body was seen */

static enum error json_create(struct decoder **ret, struct request *request, uint64_t body_bytes,
                              size_t max_bytes, struct problem *problem)
{
    if (request->options.given & OPTIONS_OF_RAW)
        return problem_set(problem, ERR_OPTION,
                           "shape_a, shape_b and layout are for application/octet-stream bodies; "
                           "a JSON array nests as its shape does");
    /* An element takes about twice as many bytes in text: one reservation serves most bodies. */
    uint64_t reserve = body_bytes / 2 < RESERVE_BYTES ? body_bytes / 2 : RESERVE_BYTES;
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

/* A value that is no array where an array of numbers is needed. */
static enum error not_an_array(const json_t *value, const char *name, struct problem *problem)
{
    if (value == NULL)
        return problem_set(problem, ERR_VALUE, "%s is missing: both operands are needed", name);
    if (json_object_get(value, "base64") != NULL || json_object_get(value, "ref") != NULL)
        return problem_set(problem, ERR_UNSUPPORTED,
                           "%s is an object; only arrays of numbers are read here, or raw elements "
                           "as application/octet-stream",
                           name);
    return problem_set(problem, ERR_VALUE, "%s must be an array of numbers, not %s", name,
                       document_type(json_typeof(value)));
}

/* The operand `name` of object, whose own pointer is prefix. */
static enum error operand_read(struct json *json, const json_t *object, const char *name,
                               const char *prefix, struct tensor *ret, struct problem *problem)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_array(value)) {
        (void)not_an_array(value, name, problem);
        return pointer_key(problem, prefix, name);
    }
    /* Ours, whatever the client sent: see splitter.h. */
    json_int_t index = json_integer_value(json_array_get(value, 0));
    assert(json_array_size(value) == 1 && index >= 0);
    assert((size_t)index < json->splitter.operand_count);
    struct operand *operand = &json->splitter.operand[index];
    enum dtype dtype = json->request->options.dtype;
    if (operand->numbers != NULL) {
        enum error err = numbers_convert(operand->numbers, dtype, problem);
        if (err != ERR_OK) {
            char pointer[48];
            (void)snprintf(pointer, sizeof pointer, "%s/%s", prefix, name);
            return pointer_prefix(problem, pointer);
        }
        operand->tensor = numbers_tensor(operand->numbers);
    }
    assert(operand->tensor.dtype == dtype);
    *ret = operand->tensor;
    return ERR_OK;
}

static enum error pair_read(struct json *json, const json_t *object, const char *prefix,
                            struct tensor_pair *ret, struct problem *problem)
{
    enum error err = operand_read(json, object, "a", prefix, &ret->a, problem);
    if (err == ERR_OK)
        err = operand_read(json, object, "b", prefix, &ret->b, problem);
    return err;
}

/* One element of pairs: an object with a and b and nothing else. */
static enum error element_read(struct json *json, json_t *element, size_t index,
                               struct tensor_pair *ret, struct problem *problem)
{
    char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "/pairs/%zu", index);
    if (!json_is_object(element)) {
        problem_set(problem, ERR_VALUE, "an element of pairs must be an object, not %s",
                    document_type(json_typeof(element)));
        return pointer_set(problem, "%s", prefix);
    }
    const char *name;
    json_t *value;
    json_object_foreach(element, name, value)
    {
        if (strcmp(name, "a") != 0 && strcmp(name, "b") != 0) {
            problem_set(problem, ERR_OPTION,
                        "unknown field \"%.64s\"; known in an element of pairs are a, b", name);
            return pointer_key(problem, prefix, name);
        }
    }
    return pair_read(json, element, prefix, ret, problem);
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
    for (size_t i = 0; i < count && err == ERR_OK; i++)
        err = element_read(json, json_array_get(pairs, i), i, &request->pair[i], problem);
    return err;
}

static enum error document_read(struct json *json, const json_t *root, struct problem *problem)
{
    struct request *request = json->request;
    enum error err = options_read(&request->options, root, problem);
    if (err != ERR_OK)
        return err;
    options_settle_dtype(&request->options);
    const json_t *pairs = json_object_get(root, "pairs");
    if (pairs != NULL)
        return pairs_read(json, root, pairs, problem);
    err = request_pairs(request, 1, problem);
    return err == ERR_OK ? pair_read(json, root, "", request->pair, problem) : err;
}

static enum error json_finish(struct decoder *decoder, struct problem *problem)
{
    struct json *json = (struct json *)decoder;
    const struct splitter *splitter = &json->splitter;
    enum error err = splitter_finish(&json->splitter, problem);
    if (err != ERR_OK)
        return err;
    json_t *root;
    err = document_load(splitter->skeleton.data, splitter->skeleton.size, 0, &root, problem);
    if (err != ERR_OK) {
        if (problem->offset >= 0)
            problem->offset = (int64_t)splitter_body_offset(splitter, (size_t)problem->offset);
        return err;
    }
    assert(json_is_object(root)); /* the splitter saw its '{' */
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
