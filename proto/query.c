/* query.c - what a query string says: options, and for GET the operands too (see request.h,
 * encoding.h). '+' stands for itself, not for a blank, so that a=1e+5 is a number. */
#include "proto/encoding.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/numbers.h"
#include "proto/pointer.h"

/* 0 to 15, or -1. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Decodes text[0..size) (RFC 3986 section 2.1) into ret with a NUL. False: a broken escape, or one
 * for the NUL, which no value may hold. ret needs size + 1 bytes. */
static bool percent_decode(const char *text, size_t size, char *ret)
{
    for (size_t i = 0; i < size; i++) {
        char byte = text[i];
        if (byte == '%') {
            int high = size - i > 2 ? hex_digit(text[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
            if (low < 0 || high + low == 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        *ret++ = byte;
    }
    *ret = '\0';
    return true;
}

static bool is_operand(const char *name)
{
    return strcmp(name, "a") == 0 || strcmp(name, "b") == 0;
}

/* One parameter, text[0..size), decoded into scratch, which has room for it and two NULs. */
static enum error query_parameter(const char *text, size_t size, char *scratch, unsigned *seen,
                                  struct options *options, query_operand operand, void *context,
                                  struct problem *problem)
{
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - text) : size;
    const char *value_text = equals != NULL ? equals + 1 : text + size;
    size_t value_size = (size_t)(text + size - value_text);
    char *name = scratch, *value = scratch + name_size + 1;
    if (!percent_decode(text, name_size, name) || !percent_decode(value_text, value_size, value))
        return problem_set(problem, ERR_OPTION,
                           "query parameter \"%.*s\" holds a %% that two hexadecimal digits of a "
                           "byte other than 00 do not follow",
                           size < 64 ? (int)size : 64, text);
    if (operand != NULL && is_operand(name))
        return operand(context, name, value, problem);
    if (operand != NULL && options_find(name) == NULL)
        return options_unknown("parameter", name, "a, b", problem);
    return options_set(options, seen, name, value, problem);
}

enum error options_from_query(struct options *options, const char *query, query_operand operand,
                              void *context, struct problem *problem)
{
    char scratch[LIMIT_QUERY_BYTES + 2];
    if (query == NULL)
        return ERR_OK;
    size_t query_size = strlen(query);
    if (query_size > LIMIT_QUERY_BYTES) {
        problem_set(problem, ERR_TOO_LARGE, "the query string has %zu bytes; send a body instead",
                    query_size);
        return problem_limit(problem, LIMIT_QUERY_BYTES, NULL);
    }
    unsigned seen = 0;
    for (;;) {
        size_t size = (size_t)(strchrnul(query, '&') - query);
        enum error err = size == 0 ? ERR_OK
                                   : query_parameter(query, size, scratch, &seen, options, operand,
                                                     context, problem);
        if (err != ERR_OK || query[size] == '\0')
            return err;
        query += size + 1;
    }
}

/* The texts of a and b, kept until every option is known: dtype may follow them. */
struct operand_texts {
    char *text[2]; /* owned; NULL: not given */
};

static enum error keep_operand(void *context, const char *name, const char *value,
                               struct problem *problem)
{
    struct operand_texts *texts = context;
    char **text = &texts->text[*name == 'b'];
    if (*text != NULL) {
        problem_set(problem, ERR_OPTION, "%s is given twice", name);
        return pointer_key(problem, "", name);
    }
    *text = strdup(value);
    return *text != NULL ? ERR_OK : problem_set(problem, ERR_NOMEM, "no memory for the query");
}

static uint64_t list_count(const char *list)
{
    uint64_t count = *list != '\0'; /* an empty text is an empty vector */
    for (; *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* Reads a comma list of count numbers into element[0..count). */
static enum error list_read(const char *list, uint64_t count, enum dtype dtype, char *element,
                            const char *name, struct problem *problem)
{
    for (uint64_t index = 0; index < count; index++) {
        size_t size = strcspn(list, ",");
        if (numbers_parse(list, size, dtype, element) != ERR_OK) {
            problem_set(problem, ERR_VALUE, "\"%.*s\" is not a number that %s holds",
                        size < 64 ? (int)size : 64, list, dtype_name(dtype));
            return pointer_set(problem, "/%s/%" PRIu64, name, index);
        }
        list += size + 1; /* past the NUL only after the last one */
        element += dtype_size(dtype);
    }
    return ERR_OK;
}

static enum error operand_read(struct request *request, const char *list, const char *name,
                               size_t max_bytes, struct tensor *ret, struct problem *problem)
{
    struct buffer *buffer = &request->buffer;
    enum dtype dtype = request->options.dtype;
    if (list == NULL) {
        problem_set(problem, ERR_VALUE, "%s is missing: give both, as in ?a=1,2,3&b=4,5,6", name);
        return pointer_key(problem, "", name);
    }
    uint64_t count = list_count(list); /* at most LIMIT_QUERY_BYTES */
    size_t offset, bytes = count * dtype_size(dtype);
    if (buffer_align(buffer, &offset) != ERR_OK || buffer_reserve(buffer, offset + bytes) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for the operands");
    if (offset + bytes > max_bytes)
        return operands_too_large(max_bytes, problem);
    char *element = count > 0 ? (char *)buffer->block.data + offset : NULL;
    enum error err = list_read(list, count, dtype, element, name, problem);
    if (err != ERR_OK)
        return err;
    buffer->used = offset + bytes;
    *ret = (struct tensor){.dtype = dtype, .shape = {1, {count}}, .offset = offset};
    return ERR_OK;
}

static enum error operands_read(struct request *request, const struct operand_texts *texts,
                                size_t max_bytes, struct problem *problem)
{
    struct options *options = &request->options;
    if (options->given & OPTIONS_OF_RAW)
        return problem_set(problem, ERR_OPTION,
                           "shape_a, shape_b and layout are for application/octet-stream bodies");
    options_settle_dtype(options);
    if (dtype_is_complex(options->dtype)) {
        problem_set(
            problem, ERR_UNSUPPORTED,
            "a list of numbers has no pairs for %s; send a JSON body with [re, im] elements",
            dtype_name(options->dtype));
        return pointer_set(problem, "/dtype");
    }
    enum error err = request_pairs(request, 1, problem);
    struct tensor_pair *pair = request->pair;
    if (err == ERR_OK)
        err = operand_read(request, texts->text[0], "a", max_bytes, &pair->a, problem);
    if (err == ERR_OK)
        err = operand_read(request, texts->text[1], "b", max_bytes, &pair->b, problem);
    return err;
}

enum error query_decode(struct request *request, const char *query, size_t max_bytes,
                        struct problem *problem)
{
    struct operand_texts texts = {0};
    enum error err = options_from_query(&request->options, query, keep_operand, &texts, problem);
    if (err == ERR_OK)
        err = operands_read(request, &texts, max_bytes, problem);
    free(texts.text[0]);
    free(texts.text[1]);
    return err;
}
