/* tensor.c - names of element types, arithmetic on shapes (see tensor.h). */
#include "proto/tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct row {
    size_t size;
    const char *name, *alias, *numpy, *oip;
};

static const struct row rows[] = {
#define X(code, size, name, alias, numpy, oip) [code] = {size, name, alias, numpy, oip},
    DTYPE_MAP(X)
#undef X
};

size_t dtype_size(enum dtype dtype)
{
    assert(dtype < DTYPE_COUNT);
    return rows[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    assert(dtype < DTYPE_COUNT);
    return rows[dtype].name;
}

const char *dtype_oip(enum dtype dtype)
{
    assert(dtype < DTYPE_COUNT);
    return rows[dtype].oip;
}

const char *dtype_list(void)
{
#define X(code, size, name, alias, numpy, oip) ", " name
    static const char list[] = DTYPE_MAP(X);
#undef X
    return list + 2; /* past the first separator */
}

bool dtype_is_complex(enum dtype dtype)
{
    return dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128;
}

bool dtype_is_integer(enum dtype dtype)
{
    return dtype == DTYPE_INT8 || dtype == DTYPE_UINT8 || dtype == DTYPE_INT32 ||
           dtype == DTYPE_INT64;
}

bool dtype_is_float(enum dtype dtype)
{
    assert(dtype < DTYPE_COUNT);
    return !dtype_is_integer(dtype) && !dtype_is_complex(dtype);
}

enum dtype dtype_part(enum dtype dtype)
{
    if (dtype == DTYPE_COMPLEX64)
        return DTYPE_FLOAT32;
    return dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : dtype;
}

unsigned dtype_part_count(enum dtype dtype)
{
    return dtype_is_complex(dtype) ? 2 : 1;
}

/* An empty column is no name. */
static bool is_same(const char *name, const char *column)
{
    return *column != '\0' && strcmp(name, column) == 0;
}

static bool row_is_named(const struct row *row, const char *name)
{
    return is_same(name, row->name) || is_same(name, row->alias) || is_same(name, row->numpy) ||
           is_same(name, row->oip);
}

/* A NumPy code with its byte order; a single byte has none and says so by '|'. */
static bool row_has_code(const struct row *row, const char *name)
{
    return (*name != '|' || row->size == 1) && is_same(name + 1, row->numpy);
}

enum error dtype_parse(const char *name, enum dtype *ret, enum byte_order *ret_order)
{
    bool has_order = *name == '<' || *name == '>' || *name == '|'; /* then a NumPy code follows */
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const struct row *row = &rows[dtype];
        if (has_order ? row_has_code(row, name) : row_is_named(row, name)) {
            *ret = dtype;
            *ret_order = *name == '>' ? ORDER_BIG : ORDER_LITTLE;
            return ERR_OK;
        }
    }
    return ERR_DTYPE;
}

enum error shape_count(const struct shape *shape, uint64_t *ret)
{
    uint64_t count = 1;
    bool overflow = false;
    for (int axis = 0; axis < shape->rank; axis++) {
        if (shape->dim[axis] == 0) { /* decides, whatever the other dimensions are */
            *ret = 0;
            return ERR_OK;
        }
        overflow |= __builtin_mul_overflow(count, shape->dim[axis], &count);
        overflow |= count > INT64_MAX;
    }
    if (overflow)
        return ERR_TOO_LARGE;
    *ret = count;
    return ERR_OK;
}

/* Reads digits at *text and moves it past them. False: no digit, or beyond 2^63 - 1. */
static bool dim_parse(const char **text, uint64_t *ret)
{
    const char *at = *text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value) || value > INT64_MAX)
            return false;
    }
    bool any = at != *text;
    *text = at;
    *ret = value;
    return any;
}

enum error shape_parse(const char *text, struct shape *ret)
{
    struct shape shape = {0};
    for (;;) {
        if (shape.rank == LIMIT_RANK || !dim_parse(&text, &shape.dim[shape.rank]))
            return ERR_VALUE;
        shape.rank++;
        if (*text == '\0')
            break;
        if (*text++ != ',')
            return ERR_VALUE;
    }
    *ret = shape;
    return ERR_OK;
}

char *shape_print(const struct shape *shape, char *text, size_t size)
{
    assert(size > 0 && shape->rank <= LIMIT_RANK);
    char full[LIMIT_RANK * 22 + 4]; /* 20 digits and a separator a dimension */
    size_t used = 0;
    full[used++] = '(';
    for (int axis = 0; axis < shape->rank; axis++)
        used += (size_t)snprintf(full + used, sizeof full - used,
                                 axis > 0 ? ",%" PRIu64 : "%" PRIu64, shape->dim[axis]);
    (void)snprintf(full + used, sizeof full - used, shape->rank == 1 ? ",)" : ")");
    (void)snprintf(text, size, "%s", full);
    return text;
}

static enum error shape_mismatch(const struct shape *a, const struct shape *b, const char *why,
                                 struct problem *problem)
{
    char a_text[100], b_text[100];
    return problem_set(problem, ERR_SHAPE, "a has shape %s and b has shape %s: %s",
                       shape_print(a, a_text, sizeof a_text), shape_print(b, b_text, sizeof b_text),
                       why);
}

/* The dimension `from_last` places before the last; 1 beyond the first, which broadcasts. */
static uint64_t dim_from_last(const struct shape *shape, int from_last)
{
    int axis = shape->rank - 1 - from_last;
    return axis >= 0 ? shape->dim[axis] : 1;
}

enum error shape_dot(const struct shape *a, const struct shape *b, struct shape *ret,
                     struct problem *problem)
{
    if (a->rank == 0 || b->rank == 0)
        return shape_mismatch(a, b, "a scalar has no dimension to sum over", problem);
    if (dim_from_last(a, 0) != dim_from_last(b, 0))
        return shape_mismatch(a, b, "their last dimensions must be equal", problem);

    struct shape shape = {.rank = (a->rank > b->rank ? a->rank : b->rank) - 1};
    for (int i = 1; i <= shape.rank; i++) {
        uint64_t dim_a = dim_from_last(a, i), dim_b = dim_from_last(b, i);
        if (dim_a != dim_b && dim_a != 1 && dim_b != 1)
            return shape_mismatch(a, b, "their leading dimensions do not broadcast", problem);
        shape.dim[shape.rank - i] = dim_a == 1 ? dim_b : dim_a;
    }
    *ret = shape;
    return ERR_OK;
}

uint64_t tensor_length(const struct tensor *tensor)
{
    assert(tensor->shape.rank > 0);
    return tensor->shape.dim[tensor->shape.rank - 1];
}
