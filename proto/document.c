/* document.c - a JSON text read by jansson (see document.h). */
#include "proto/document.h"

#include <assert.h>
#include <string.h>

#include "proto/json_memory.h"
#include "proto/splitter.h"

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

/* No JSON has a NUL; jansson 2.14 passes over one behind a token, and its positions are off from
 * there. */
static enum error refuse_nul(const char *text, size_t size, struct problem *problem)
{
    const char *nul = memchr(text, '\0', size);
    if (nul == NULL)
        return ERR_OK;
    (void)problem_set(problem, ERR_SYNTAX, "the body is not JSON: it contains byte 0x00");
    problem->offset = nul - text;
    return problem->error;
}

enum error document_load(const char *text, size_t size, size_t flags, json_t **ret,
                         struct problem *problem)
{
    if (refuse_nul(text, size, problem) != ERR_OK)
        return problem->error;
    json_error_t error;
    json_t *root = json_loadb(text, size, flags | JSON_REJECT_DUPLICATES, &error);
    if (json_memory_failed()) {
        json_decref(root);
        return problem_set(problem, ERR_NOMEM, "no memory for the document");
    }
    if (root == NULL)
        return refuse(text, &error, problem);
    *ret = root;
    return ERR_OK;
}

enum error document_finish(struct splitter *splitter, json_t **ret, struct problem *problem)
{
    const struct text *skeleton = &splitter->skeleton;
    json_t *root;
    enum error err = splitter_finish(splitter, problem);
    if (err != ERR_OK)
        return err;
    err = document_load(skeleton->data, skeleton->size, 0, &root, problem);
    if (err != ERR_OK && problem->offset >= 0)
        return problem_at(problem, splitter_body_offset(splitter, (size_t)problem->offset));
    if (err != ERR_OK)
        return err;
    assert(json_is_object(root)); /* the splitter saw its '{' */
    *ret = root;
    return ERR_OK;
}
