/* npy_head.c - the header of NumPy's .npy format (see npy_head.h). */
#include "proto/npy_head.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PRELUDE_BYTES = 10,      /* magic, version, length; of version 1 */
    PRELUDE_LONG_BYTES = 12, /* and of the others */
};

const char npy_magic[NPY_MAGIC_BYTES] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

static enum error check_prelude(const char *data, size_t size, struct problem *problem)
{
    for (size_t i = 0; i < size && i < NPY_MAGIC_BYTES; i++) {
        if (data[i] != npy_magic[i]) {
            problem_set(problem, ERR_SYNTAX,
                        "a .npy array begins with \\x93NUMPY; numpy.save() writes one");
            return problem_at(problem, i);
        }
    }
    if (size <= NPY_MAGIC_BYTES || (data[NPY_MAGIC_BYTES] >= 1 && data[NPY_MAGIC_BYTES] <= 3))
        return ERR_OK;
    problem_set(problem, ERR_UNSUPPORTED,
                "version %d of the .npy format; versions 1, 2 and 3 are read",
                (unsigned char)data[NPY_MAGIC_BYTES]);
    return problem_at(problem, NPY_MAGIC_BYTES);
}

enum error npy_head_size(const char *data, size_t size, size_t *ret, struct problem *problem)
{
    enum error err = check_prelude(data, size, problem);
    if (err != ERR_OK)
        return err;
    size_t prelude = PRELUDE_BYTES;
    if (size > NPY_MAGIC_BYTES && data[NPY_MAGIC_BYTES] > 1)
        prelude = PRELUDE_LONG_BYTES;
    if (size < prelude) {
        *ret = prelude;
        return ERR_OK;
    }
    uint64_t length = 0;
    for (size_t i = prelude; i > PRELUDE_BYTES - 2; i--)
        length = length << 8 | (unsigned char)data[i - 1];
    if (prelude + length > LIMIT_HEADER_BYTES) {
        problem_set(problem, ERR_TOO_LARGE, "a .npy header of %" PRIu64 " bytes", prelude + length);
        return problem_limit(problem, LIMIT_HEADER_BYTES, NULL);
    }
    *ret = prelude + length;
    return ERR_OK;
}

/* ---- the dictionary ------------------------------------------------------------------------ */

struct cursor {
    const char *start, *at, *end; /* of the header */
};

static enum error not_well_formed(const struct cursor *cursor, const char *what,
                                  struct problem *problem)
{
    problem_set(problem, ERR_SYNTAX, "the .npy header is not well-formed: %s", what);
    return problem_at(problem, (size_t)(cursor->at - cursor->start));
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && memchr(" \t\r\n", *cursor->at, 4) != NULL)
        cursor->at++;
}

/* The next byte that is no blank; '\0' at the end. */
static char peek(struct cursor *cursor)
{
    skip_blanks(cursor);
    return cursor->at < cursor->end ? *cursor->at : '\0';
}

static bool take(struct cursor *cursor, char byte)
{
    if (peek(cursor) != byte)
        return false;
    cursor->at++;
    return true;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    size_t size = strlen(word);
    skip_blanks(cursor);
    if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, word, size) != 0)
        return false;
    cursor->at += size;
    return true;
}

/* A string in either quotes. No key and no type has an escape in it. */
static bool take_string(struct cursor *cursor, const char **ret, size_t *ret_size)
{
    char quote = peek(cursor);
    if (quote != '\'' && quote != '"')
        return false;
    const char *start = cursor->at + 1;
    const char *end = memchr(start, quote, (size_t)(cursor->end - start));
    if (end == NULL || memchr(start, '\\', (size_t)(end - start)) != NULL)
        return false;
    *ret = start;
    *ret_size = (size_t)(end - start);
    cursor->at = end + 1;
    return true;
}

/* Names the type as the header has it, cut to what a line holds. */
static enum error unknown_type(const char *text, size_t size, struct problem *problem)
{
    int shown = size < 64 ? (int)size : 64;
    if (*text == '[' || *text == '(')
        return problem_set(problem, ERR_UNSUPPORTED,
                           "records are not read: the elements' type is %.*s", shown, text);
    if (size == 2 && memcmp(text, "|O", 2) == 0)
        return problem_set(problem, ERR_UNSUPPORTED,
                           "Python objects are not read: the elements' type is |O");
    const char *hint =
        size == 3 && text[1] == 'V' && text[2] == '2' ? "; bfloat16 wants dtype=bfloat16" : "";
    return problem_set(problem, ERR_DTYPE,
                       "elements of type \"%.*s\" are not computed here; known are %s%s", shown,
                       text, dtype_list(), hint);
}

/* A NumPy code with its byte order, as numpy.save() always writes one. */
static enum error parse_type(const char *text, size_t size, enum dtype wanted, struct npy_head *ret,
                             struct problem *problem)
{
    char code[8]; /* the longest is "<c16" */
    if (size == 0 || size >= sizeof code || strchr("<>|", *text) == NULL)
        return unknown_type(text, size, problem);
    memcpy(code, text, size);
    code[size] = '\0';
    if (wanted == DTYPE_BFLOAT16 && strcmp(code + 1, "V2") == 0) {
        ret->dtype = DTYPE_BFLOAT16;
        ret->order = *code == '>' ? ORDER_BIG : ORDER_LITTLE;
        return ERR_OK;
    }
    if (dtype_parse(code, &ret->dtype, &ret->order) != ERR_OK)
        return unknown_type(text, size, problem);
    return ERR_OK;
}

static enum error read_type(struct cursor *cursor, enum dtype wanted, struct npy_head *ret,
                            struct problem *problem)
{
    const char *text;
    size_t size;
    char first = peek(cursor);
    if (first == '[' || first == '(')
        return unknown_type(cursor->at, (size_t)(cursor->end - cursor->at), problem);
    if (!take_string(cursor, &text, &size))
        return not_well_formed(cursor, "descr must be a string", problem);
    return parse_type(text, size, wanted, ret, problem);
}

/* False: no digit, or beyond 2^63 - 1. Python 2 wrote an L behind some. */
static bool take_dimension(struct cursor *cursor, uint64_t *ret)
{
    uint64_t value = 0;
    bool any = false;
    skip_blanks(cursor);
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        any = true;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*cursor->at - '0'), &value) ||
            value > INT64_MAX)
            return false;
    }
    (void)(any && take(cursor, 'L'));
    *ret = value;
    return any;
}

static enum error read_shape(struct cursor *cursor, struct npy_head *ret, struct problem *problem)
{
    struct shape shape = {0};
    if (!take(cursor, '('))
        return not_well_formed(cursor, "shape must be a tuple", problem);
    bool has_comma = true; /* (3) is no tuple in Python, (3,) is one */
    while (!take(cursor, ')')) {
        uint64_t dim;
        if (!has_comma || !take_dimension(cursor, &dim))
            return not_well_formed(cursor, "shape must hold whole numbers", problem);
        if (shape.rank == LIMIT_RANK)
            return problem_set(problem, ERR_VALUE, "more than %d dimensions", LIMIT_RANK);
        shape.dim[shape.rank++] = dim;
        has_comma = take(cursor, ',');
    }
    if (shape.rank == 1 && !has_comma)
        return not_well_formed(cursor, "shape must be a tuple", problem);
    ret->shape = shape;
    return ERR_OK;
}

static enum error read_order(struct cursor *cursor, bool *ret, struct problem *problem)
{
    *ret = take_word(cursor, "True");
    if (*ret || take_word(cursor, "False"))
        return ERR_OK;
    return not_well_formed(cursor, "fortran_order must be True or False", problem);
}

/* Where at most one dimension is longer than 1, the first index runs no quicker than the last. */
static enum error check_order(const struct shape *shape, struct problem *problem)
{
    int long_dimensions = 0;
    for (int axis = 0; axis < shape->rank; axis++)
        long_dimensions += shape->dim[axis] != 1;
    if (long_dimensions <= 1)
        return ERR_OK;
    char text[100];
    return problem_set(problem, ERR_UNSUPPORTED,
                       "elements of shape %s are in Fortran order; numpy.ascontiguousarray() puts "
                       "them into C order",
                       shape_print(shape, text, sizeof text));
}

enum { KEY_TYPE, KEY_ORDER, KEY_SHAPE, KEY_COUNT };

static int key_find(const char *text, size_t size)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    for (int key = 0; key < KEY_COUNT; key++)
        if (strlen(keys[key]) == size && memcmp(text, keys[key], size) == 0)
            return key;
    return KEY_COUNT;
}

/* One key with its value. */
static enum error read_entry(struct cursor *cursor, enum dtype wanted, unsigned *seen,
                             bool *is_fortran, struct npy_head *ret, struct problem *problem)
{
    const char *text;
    size_t size;
    if (!take_string(cursor, &text, &size))
        return not_well_formed(cursor, "a key must be a string", problem);
    int key = key_find(text, size);
    if (key == KEY_COUNT || (*seen >> key & 1))
        return not_well_formed(cursor, "the keys are descr, fortran_order and shape, each once",
                               problem);
    *seen |= 1U << key;
    if (!take(cursor, ':'))
        return not_well_formed(cursor, "a colon follows a key", problem);
    if (key == KEY_TYPE)
        return read_type(cursor, wanted, ret, problem);
    return key == KEY_SHAPE ? read_shape(cursor, ret, problem)
                            : read_order(cursor, is_fortran, problem);
}

static enum error read_dictionary(struct cursor *cursor, enum dtype wanted, struct npy_head *ret,
                                  struct problem *problem)
{
    unsigned seen = 0;
    bool is_fortran = false, has_comma = true;
    enum error err = ERR_OK;
    if (!take(cursor, '{'))
        return not_well_formed(cursor, "a dictionary begins with {", problem);
    while (err == ERR_OK && !take(cursor, '}')) {
        if (!has_comma)
            return not_well_formed(cursor, "a comma or } follows a value", problem);
        err = read_entry(cursor, wanted, &seen, &is_fortran, ret, problem);
        has_comma = err == ERR_OK && take(cursor, ',');
    }
    if (err != ERR_OK)
        return err;
    skip_blanks(cursor);
    if (cursor->at < cursor->end)
        return not_well_formed(cursor, "only blanks follow the dictionary", problem);
    if (seen != (1U << KEY_COUNT) - 1)
        return not_well_formed(cursor, "descr, fortran_order and shape must all be there", problem);
    return is_fortran ? check_order(&ret->shape, problem) : ERR_OK;
}

enum error npy_head_parse(const char *data, size_t size, enum dtype wanted, struct npy_head *ret,
                          struct problem *problem)
{
    size_t prelude = data[NPY_MAGIC_BYTES] > 1 ? PRELUDE_LONG_BYTES : PRELUDE_BYTES;
    struct cursor cursor = {data, data + prelude, data + size};
    struct npy_head head = {.dtype = DTYPE_UNKNOWN};
    enum error err = read_dictionary(&cursor, wanted, &head, problem);
    if (err == ERR_OK)
        *ret = head;
    return err;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* bfloat16 as the packages that bring it to NumPy have it. */
static const char *type_code(enum dtype dtype)
{
    static const char *const codes[] = {
#define X(code, size, name, alias, numpy, oip) [code] = (size) > 1 ? "<" numpy : "|" numpy,
        DTYPE_MAP(X)
#undef X
    };
    return dtype == DTYPE_BFLOAT16 ? "<V2" : codes[dtype];
}

void npy_head_write(enum dtype dtype, const struct shape *shape, struct text *text)
{
    enum { ALIGNMENT = 64 };
    char dictionary[256]; /* 70 and 20 digits and two separators a dimension */
    char dimensions[LIMIT_RANK * 22 + 1] = "";
    size_t used = 0;
    static_assert(LIMIT_RANK * 22 + 70 < sizeof dictionary, "the dictionary fits");
    for (int axis = 0; axis < shape->rank; axis++)
        used += (size_t)snprintf(dimensions + used, sizeof dimensions - used, "%" PRIu64 "%s",
                                 shape->dim[axis],
                                 axis + 1 < shape->rank ? ", "
                                 : shape->rank == 1     ? ","
                                                        : "");
    int size = snprintf(dictionary, sizeof dictionary,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                        type_code(dtype), dimensions);
    size_t total = PRELUDE_BYTES + (size_t)size + 1; /* with the line's end */
    size_t padding = -total % ALIGNMENT;
    size_t length = total + padding - PRELUDE_BYTES;
    const char version[] = {1, 0, (char)(length & 0xff), (char)(length >> 8)};
    text_append(text, npy_magic, sizeof npy_magic);
    text_append(text, version, sizeof version);
    text_append(text, dictionary, (size_t)size);
    text_printf(text, "%*s\n", (int)padding, "");
}
