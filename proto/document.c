/* document.c - a JSON text read by jansson (see document.h). */
#include "proto/document.h"

#include <assert.h>

const char *document_type(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number with a fraction or an exponent";
    case JSON_NULL:
        return "null";
    case JSON_TRUE:
    case JSON_FALSE:
        break;
    }
    return "true or false";
}

/* Names the key that stands twice: jansson stops right after its second time. */
static enum error duplicate_key(const char *text, size_t end, struct problem *problem)
{
    assert(end >= 2 && text[end - 1] == '"');
    size_t start = end - 1; /* of the key, past its opening quote */
    while (start > 0 && text[start - 1] != '"')
        start--;
    size_t size = end - 1 - start;
    return problem_set(problem, ERR_OPTION, "field \"%.*s\" is given twice",
                       size < 64 ? (int)size : 64, text + start);
}

static enum error refuse(const char *text, const json_error_t *error, struct problem *problem)
{
    if (error->text[0] == '\0') /* how jansson 2.14 tells that an allocation failed */
        return problem_set(problem, ERR_NOMEM, "no memory for the document");
    switch (json_error_code(error)) {
    case json_error_duplicate_key:
        (void)duplicate_key(text, (size_t)error->position, problem);
        break;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        (void)problem_set(problem, ERR_VALUE,
                          "a string contains \\u0000, which no name and no option may");
        break;
    case json_error_numeric_overflow:
        (void)problem_set(problem, ERR_VALUE, "a number outside the operands is out of range: %s",
                          error->text);
        break;
    default:
        (void)problem_set(problem, ERR_SYNTAX, "the body is not JSON: %s", error->text);
    }
    problem->offset = error->position;
    return problem->error;
}

enum error document_load(const char *text, size_t size, size_t flags, json_t **ret,
                         struct problem *problem)
{
    json_error_t error;
    json_t *root = json_loadb(text, size, flags | JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return refuse(text, &error, problem);
    *ret = root;
    return ERR_OK;
}
