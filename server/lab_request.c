/* lab_request.c - the fields of a call to the lab (see lab_request.h). */
#include "server/lab_request.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/document.h"
#include "proto/pointer.h"

enum {
    VALUES_BESIDES = 64, /* commas of a call besides those of its operands; it has a dozen fields */
    LIST_BYTES = 160,    /* of the words that a field may be */
};

/* What every reader of JSON tells apart: the next but one is read as the next. */
#define WHOLE_MAX ((UINT64_C(1) << 53) - 1)

/* Words read by options.c are OPTIONS, in its row of the same name. */
enum kind { NUMBERS, WHOLE, SCHEME, WHERE, OPTIONS };

static const struct field {
    const char *name;
    enum lab_field bit;
    enum kind kind;
    size_t offset; /* of its field in struct lab_request */
    uint64_t min, max;
} fields[] = {
#define AT(name) offsetof(struct lab_request, name)
    {"a", FIELD_A, NUMBERS, AT(a), 0, 0},
    {"b", FIELD_B, NUMBERS, AT(b), 0, 0},
    {"values", FIELD_VALUES, NUMBERS, AT(values), 0, 0},
    {"n", FIELD_N, WHOLE, AT(n), 1, WHOLE_MAX},
    {"block", FIELD_BLOCK, WHOLE, AT(block), 1, LIMIT_LAB_BLOCK},
    {"seed", FIELD_SEED, WHOLE, AT(seed), 0, WHOLE_MAX},
    {"runs", FIELD_RUNS, WHOLE, AT(runs), 1, LIMIT_LAB_RUNS},
    {"orders", FIELD_ORDERS, WHOLE, AT(orders), 1, LIMIT_LAB_ORDERS},
    {"barriers", FIELD_BARRIERS, WHOLE, AT(barriers), 0, 2},
    {"scheme", FIELD_SCHEME, SCHEME, AT(scheme), 0, 0},
    {"where", FIELD_WHERE, WHERE, AT(where), 0, 0},
    {"dtype", FIELD_DTYPE, OPTIONS, 0, 0, 0},
    {"device", FIELD_DEVICE, OPTIONS, 0, 0, 0},
    {"kernel", FIELD_KERNEL, OPTIONS, 0, 0, 0},
#undef AT
};

enum { FIELDS = sizeof fields / sizeof *fields };

static void *field_of(struct lab_request *request, const struct field *field)
{
    return (char *)request + field->offset;
}

static const struct field *field_find(const char *name, unsigned takes)
{
    for (size_t i = 0; i < FIELDS; i++)
        if ((fields[i].bit & takes) && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static enum error unknown_field(const char *name, unsigned takes, struct problem *problem)
{
    char known[LIST_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].bit & takes)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     used > 0 ? ", " : "", fields[i].name);
    assert(used < sizeof known);
    (void)problem_set(problem, ERR_OPTION, "unknown field \"%.64s\"; known are %s", name, known);
    return pointer_key(problem, "", name);
}

static enum error wrong_type(const struct field *field, const char *wanted, const json_t *value,
                             struct problem *problem)
{
    (void)problem_set(problem, ERR_VALUE, "%s must be %s, not %s", field->name, wanted,
                      document_type(json_typeof(value)));
    return pointer_key(problem, "", field->name);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Whole numbers come as reals too (JSON_DECODE_INT_AS_REAL): 8, 8.0 and 8e0 are one number. */
static enum error whole_read(uint64_t *ret, const struct field *field, const json_t *value,
                             struct problem *problem)
{
    if (!json_is_real(value))
        return wrong_type(field, "a whole number", value, problem);
    double number = json_real_value(value);
    if (number >= (double)field->min && number <= (double)field->max && number == floor(number)) {
        *ret = (uint64_t)number;
        return ERR_OK;
    }
    (void)problem_set(problem, ERR_VALUE,
                      "%s must be a whole number from %" PRIu64 " to %" PRIu64 ", not %.15g",
                      field->name, field->min, field->max, number);
    (void)pointer_key(problem, "", field->name);
    return number > (double)field->max ? problem_limit(problem, field->max, NULL) : problem->error;
}

static bool number_read(const json_t *value, double *ret)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    if (json_is_real(value)) {
        *ret = json_real_value(value);
        return true;
    }
    for (size_t i = 0; json_is_string(value) && i < sizeof words / sizeof *words; i++) {
        if (strcmp(json_string_value(value), words[i].word) == 0) {
            *ret = words[i].value;
            return true;
        }
    }
    return false;
}

static enum error bad_element(const struct field *field, size_t index, const json_t *value,
                              enum dtype dtype, struct problem *problem)
{
    if (json_is_real(value))
        (void)problem_set(problem, ERR_VALUE, "%.15g is beyond the range of %s",
                          json_real_value(value), dtype_name(dtype));
    else
        (void)problem_set(problem, ERR_VALUE,
                          "an element must be a number, or \"NaN\", \"Infinity\" or \"-Infinity\", "
                          "not %s",
                          document_type(json_typeof(value)));
    return pointer_set(problem, "/%s/%zu", field->name, index);
}

/* Rounds the elements to dtype as they come. */
static enum error elements_read(struct lab_operand *operand, enum dtype dtype,
                                const struct field *field, const json_t *array,
                                struct problem *problem)
{
    for (size_t i = 0; i < operand->count; i++) {
        const json_t *value = json_array_get(array, i);
        double number;
        if (!number_read(value, &number))
            return bad_element(field, i, value, dtype, problem);
        if (dtype == DTYPE_FLOAT64) {
            ((double *)operand->data)[i] = number;
            continue;
        }
        /* The conversion raises no trap; what overflowed is told by its infinity. */
        float narrow = (float)number;
        if (isinf(narrow) && !isinf(number))
            return bad_element(field, i, value, dtype, problem);
        ((float *)operand->data)[i] = narrow;
    }
    return ERR_OK;
}

static enum error numbers_read(struct lab_operand *operand, enum dtype dtype,
                               const struct field *field, const json_t *value, uint64_t max_values,
                               struct problem *problem)
{
    if (!json_is_array(value))
        return wrong_type(field, "an array of numbers", value, problem);
    size_t count = json_array_size(value);
    if (count > max_values) {
        (void)problem_set(problem, ERR_TOO_LARGE,
                          "%s has %zu numbers; %" PRIu64 " are the most here", field->name, count,
                          max_values);
        (void)pointer_key(problem, "", field->name);
        return problem_limit(problem, max_values, NULL);
    }
    assert(operand->data == NULL);
    operand->data = calloc(count > 0 ? count : 1, dtype_size(dtype));
    if (operand->data == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for the operands");
    operand->count = count;
    return elements_read(operand, dtype, field, value, problem);
}

/* ---- words --------------------------------------------------------------------------------- */

static enum error scheme_read(const struct lab_scheme **ret, const char *word,
                              struct problem *problem)
{
    const struct lab_scheme *found = lab_scheme_find(word);
    if (found != NULL) {
        *ret = found;
        return ERR_OK;
    }
    char known[LIST_BYTES];
    size_t count, used = 0;
    const struct lab_scheme *all = lab_schemes(&count);
    for (size_t i = 0; i < count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
                                 all[i].name);
    (void)problem_set(problem, ERR_VALUE, "there is no scheme \"%.64s\"; known are %s", word,
                      known);
    return pointer_key(problem, "", "scheme");
}

static enum error where_read(enum lab_where *ret, const char *word, struct problem *problem)
{
    for (enum lab_where where = 0; where < LAB_WHERE_COUNT; where++) {
        if (strcmp(word, lab_where_name(where)) == 0) {
            *ret = where;
            return ERR_OK;
        }
    }
    (void)problem_set(problem, ERR_VALUE, "where must be %s or %s, not \"%.64s\"",
                      lab_where_name(LAB_BRANCH), lab_where_name(LAB_COMMON), word);
    return pointer_key(problem, "", "where");
}

static enum error word_read(struct lab_request *request, const struct field *field,
                            const json_t *value, struct problem *problem)
{
    unsigned seen = 0;
    if (!json_is_string(value))
        return wrong_type(field, "a string", value, problem);
    const char *word = json_string_value(value);
    if (field->kind == SCHEME)
        return scheme_read(&request->scheme, word, problem);
    if (field->kind == WHERE)
        return where_read(&request->where, word, problem);
    return options_set(&request->options, &seen, field->name, word, problem);
}

/* ---- the object ---------------------------------------------------------------------------- */

static bool is_numbers(const struct field *field)
{
    return field->kind == NUMBERS;
}

/* Numbers are rounded to dtype, wherever that stands: they are read after everything else. */
static enum error fields_read(struct lab_request *request, const json_t *root, unsigned takes,
                              bool numbers, uint64_t max_values, struct problem *problem)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value)
    {
        const struct field *field = field_find(name, takes);
        enum error error = ERR_OK;
        if (field == NULL)
            return unknown_field(name, takes, problem);
        if (is_numbers(field) != numbers)
            continue;
        if (field->kind == WHOLE)
            error = whole_read(field_of(request, field), field, value, problem);
        else if (numbers)
            error =
                numbers_read(field_of(request, field),
                             field->bit == FIELD_VALUES ? DTYPE_FLOAT64 : request->options.dtype,
                             field, value, max_values, problem);
        else
            error = word_read(request, field, value, problem);
        if (error != ERR_OK)
            return error;
        request->given |= field->bit;
    }
    return ERR_OK;
}

static enum error check_dtype(const struct lab_request *request, struct problem *problem)
{
    const struct options *options = &request->options;
    if (options->order == ORDER_LITTLE &&
        (options->dtype == DTYPE_FLOAT32 || options->dtype == DTYPE_FLOAT64))
        return ERR_OK;
    (void)problem_set(problem, ERR_DTYPE, "the lab computes float32 and float64");
    return pointer_set(problem, "/dtype");
}

static enum error check_needs(const struct lab_request *request, unsigned needs,
                              struct problem *problem)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (!(fields[i].bit & needs) || (fields[i].bit & request->given))
            continue;
        (void)problem_set(problem, ERR_VALUE, "%s is missing", fields[i].name);
        return pointer_key(problem, "", fields[i].name);
    }
    return ERR_OK;
}

/* The parser's memory grows with the values, not with the bytes. */
static enum error check_commas(const char *body, size_t size, uint64_t max_values,
                               struct problem *problem)
{
    uint64_t commas = 0, limit = 2 * max_values + VALUES_BESIDES;
    for (size_t i = 0; i < size; i++)
        commas += body[i] == ',';
    if (commas <= limit)
        return ERR_OK;
    (void)problem_set(problem, ERR_TOO_LARGE,
                      "the body holds %" PRIu64 " values; two operands of %" PRIu64
                      " are the most here",
                      commas, max_values);
    return problem_limit(problem, max_values, NULL);
}

static enum error object_read(struct lab_request *request, const json_t *root, unsigned takes,
                              unsigned needs, uint64_t max_values, struct problem *problem)
{
    size_t scheme_count;
    request->options.dtype = DTYPE_FLOAT32;
    request->options.device_index = -1;
    request->scheme = lab_schemes(&scheme_count);
    if (!json_is_object(root))
        return problem_set(problem, ERR_SYNTAX, "the body must be a JSON object, not an array");
    enum error error = fields_read(request, root, takes, false, max_values, problem);
    if (error == ERR_OK)
        error = check_dtype(request, problem);
    if (error == ERR_OK)
        error = fields_read(request, root, takes, true, max_values, problem);
    return error == ERR_OK ? check_needs(request, needs, problem) : error;
}

enum error lab_request_read(struct lab_request *request, const char *body, size_t size,
                            unsigned takes, unsigned needs, uint64_t max_values,
                            struct problem *problem)
{
    json_t *root;
    if (size == 0)
        return problem_set(problem, ERR_SYNTAX, "the body is empty; send a JSON object");
    enum error error = check_commas(body, size, max_values, problem);
    if (error == ERR_OK)
        error = document_load(body, size, JSON_DECODE_INT_AS_REAL, &root, problem);
    if (error != ERR_OK)
        return error;
    error = object_read(request, root, takes, needs, max_values, problem);
    json_decref(root);
    return error;
}

void lab_request_fini(struct lab_request *request)
{
    free(request->a.data);
    free(request->b.data);
    free(request->values.data);
}
