/* options.c - the options of a request: their names, values and rules (see request.h). */
#include "proto/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/pointer.h"

const char *accuracy_name(enum accuracy accuracy)
{
    static const char *const names[] = {"default", "fast", "exact"};
    assert(accuracy <= ACCURACY_EXACT);
    return names[accuracy];
}

/* Each reads one value into its field. What failed besides ERR_DTYPE is told by the row's words. */
static enum error set_dtype(struct options *options, const char *value)
{
    return dtype_parse(value, &options->dtype, &options->order);
}

static enum error set_result_dtype(struct options *options, const char *value)
{
    enum byte_order order;
    enum error err = dtype_parse(value, &options->result_dtype, &order);
    if (err == ERR_OK && order != ORDER_LITTLE)
        return ERR_VALUE;
    return err;
}

static enum error set_accuracy(struct options *options, const char *value)
{
    for (enum accuracy accuracy = ACCURACY_FAST; accuracy <= ACCURACY_EXACT; accuracy++) {
        if (strcmp(value, accuracy_name(accuracy)) == 0) {
            options->accuracy = accuracy;
            return ERR_OK;
        }
    }
    return ERR_VALUE;
}

/* Copies text when it fits with its NUL. */
static bool set_text(char *field, size_t size, const char *value)
{
    size_t length = strlen(value);
    if (length >= size)
        return false;
    memcpy(field, value, length + 1);
    return true;
}

static enum error set_kernel(struct options *options, const char *value)
{
    bool fits = *value != '\0' && set_text(options->kernel, sizeof options->kernel, value);
    return fits ? ERR_OK : ERR_KERNEL;
}

static enum error set_id(struct options *options, const char *value)
{
    return set_text(options->id, sizeof options->id, value) ? ERR_OK : ERR_VALUE;
}

/* A whole number up to max, written in digits alone. */
static bool parse_uint(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value) || value > max)
            return false;
    }
    *ret = value;
    return true;
}

static enum error set_timeout_ms(struct options *options, const char *value)
{
    uint64_t timeout_ms;
    if (!parse_uint(value, INT64_MAX, &timeout_ms) || timeout_ms == 0)
        return ERR_VALUE;
    options->timeout_ms = timeout_ms;
    return ERR_OK;
}

static enum error set_device(struct options *options, const char *value)
{
    static const char *const words[] = {
        [PLACE_AUTO] = "auto", [PLACE_CPU] = "cpu", [PLACE_CUDA] = "cuda"};
    options->device_index = -1;
    for (enum placement placement = PLACE_AUTO; placement <= PLACE_CUDA; placement++) {
        if (strcmp(value, words[placement]) == 0) {
            options->placement = placement;
            return ERR_OK;
        }
    }
    uint64_t index;
    if (strncmp(value, "cuda:", 5) != 0 || !parse_uint(value + 5, INT32_MAX, &index))
        return ERR_VALUE;
    options->placement = PLACE_CUDA;
    options->device_index = (int)index;
    return ERR_OK;
}

static enum error set_bool(bool *field, const char *value)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return ERR_VALUE;
    *field = *value == 't';
    return ERR_OK;
}

static enum error set_diagnostics(struct options *options, const char *value)
{
    return set_bool(&options->diagnostics, value);
}

static enum error set_conjugate(struct options *options, const char *value)
{
    return set_bool(&options->conjugate, value);
}

static enum error set_shape_a(struct options *options, const char *value)
{
    return shape_parse(value, &options->shape_a);
}

static enum error set_shape_b(struct options *options, const char *value)
{
    return shape_parse(value, &options->shape_b);
}

/* "concat", "pairs", or "interleaved;block=1024". */
static enum error set_layout(struct options *options, const char *value)
{
    static const char interleaved[] = "interleaved;block=";
    uint64_t block = 0;
    options->holds_pairs = strcmp(value, "pairs") == 0;
    if (!options->holds_pairs && strcmp(value, "concat") != 0 &&
        (strncmp(value, interleaved, sizeof interleaved - 1) != 0 ||
         !parse_uint(value + sizeof interleaved - 1, INT64_MAX, &block) || block == 0))
        return ERR_VALUE;
    options->block = block;
    return ERR_OK;
}

#define SHAPE_WORDS "1 to 8 dimensions with commas between, such as 3,4"
static_assert(LIMIT_RANK == 8, "SHAPE_WORDS says so");

static const struct option_row rows[] = {
    {"dtype", OPTION_DTYPE, OPTION_TEXT, set_dtype, NULL},
    {"accuracy", OPTION_ACCURACY, OPTION_TEXT, set_accuracy, "fast or exact"},
    {"kernel", OPTION_KERNEL, OPTION_TEXT, set_kernel, "the name of a kernel"},
    {"result_dtype", OPTION_RESULT_DTYPE, OPTION_TEXT, set_result_dtype,
     "an element type in native order"},
    {"device", OPTION_DEVICE, OPTION_TEXT, set_device, "auto, cpu, cuda or cuda:N"},
    {"timeout_ms", OPTION_TIMEOUT_MS, OPTION_INTEGER, set_timeout_ms,
     "a whole number of milliseconds, 1 or more"},
    {"id", OPTION_ID, OPTION_TEXT, set_id, "at most 128 bytes"},
    {"diagnostics", OPTION_DIAGNOSTICS, OPTION_BOOLEAN, set_diagnostics, "true or false"},
    {"conjugate", OPTION_CONJUGATE, OPTION_BOOLEAN, set_conjugate, "true or false"},
    {"shape_a", OPTION_SHAPE_A, OPTION_RAW, set_shape_a, SHAPE_WORDS},
    {"shape_b", OPTION_SHAPE_B, OPTION_RAW, set_shape_b, SHAPE_WORDS},
    {"layout", OPTION_LAYOUT, OPTION_RAW, set_layout,
     "concat, pairs, or interleaved;block=N for N elements of each operand in turn"},
};
static_assert(LIMIT_ID_BYTES == 128, "the words of id say so");

enum { ROWS = sizeof rows / sizeof *rows };

size_t options_rows(const struct option_row **ret)
{
    *ret = rows;
    return ROWS;
}

/* Linear: a dozen names. */
const struct option_row *options_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (*rows[i].name == *name && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

enum error options_unknown(const char *what, const char *name, const char *others,
                           struct problem *problem)
{
    char known[LIMIT_DETAIL_BYTES] = "";
    size_t used = (size_t)snprintf(known, sizeof known, "%s", others != NULL ? others : "");
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].kind != OPTION_RAW || others == NULL)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     used > 0 ? ", " : "", rows[i].name);
    assert(used < sizeof known);
    problem_set(problem, ERR_OPTION, "unknown %s \"%.64s\"; known are %s", what, name, known);
    return pointer_key(problem, "", name);
}

static enum error bad_value(const struct option_row *row, enum error error, const char *value,
                            struct problem *problem)
{
    if (error == ERR_DTYPE)
        problem_set(problem, error, "%s \"%.64s\" is not known here; known are %s", row->name,
                    value, dtype_list());
    else if (row->bit == OPTION_ID)
        problem_set(problem, error, "id has %zu bytes, more than %d", strlen(value),
                    LIMIT_ID_BYTES);
    else
        problem_set(problem, error, "%s must be %s, not \"%.64s\"", row->name, row->words, value);
    return pointer_key(problem, "", row->name);
}

static bool shape_equals(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

static bool options_equal(const struct options *a, const struct options *b)
{
    return a->dtype == b->dtype && a->order == b->order && a->accuracy == b->accuracy &&
           strcmp(a->kernel, b->kernel) == 0 && a->result_dtype == b->result_dtype &&
           a->placement == b->placement && a->device_index == b->device_index &&
           a->timeout_ms == b->timeout_ms && strcmp(a->id, b->id) == 0 &&
           a->diagnostics == b->diagnostics && a->conjugate == b->conjugate &&
           shape_equals(&a->shape_a, &b->shape_a) && shape_equals(&a->shape_b, &b->shape_b) &&
           a->block == b->block && a->holds_pairs == b->holds_pairs;
}

/* Given before, elsewhere: by the value it had then. */
static enum error set_again(const struct options *options, unsigned *seen,
                            const struct option_row *row, const char *value,
                            struct problem *problem)
{
    struct options changed = *options;
    enum error err = row->set(&changed, value);
    if (err != ERR_OK)
        return bad_value(row, err, value, problem);
    if (!options_equal(options, &changed)) {
        problem_set(problem, ERR_OPTION, "%s \"%.64s\" contradicts the query string or a header",
                    row->name, value);
        return pointer_key(problem, "", row->name);
    }
    *seen |= row->bit;
    return ERR_OK;
}

enum error options_set(struct options *options, unsigned *seen, const char *name, const char *value,
                       struct problem *problem)
{
    const struct option_row *row = options_find(name);
    if (row == NULL)
        return options_unknown("parameter", name, NULL, problem);
    if (*seen & row->bit) {
        problem_set(problem, ERR_OPTION, "%s is given twice", name);
        return pointer_key(problem, "", name);
    }
    if (options->given & row->bit)
        return set_again(options, seen, row, value, problem);
    enum error err = row->set(options, value);
    if (err != ERR_OK)
        return bad_value(row, err, value, problem);
    options->given |= row->bit;
    *seen |= row->bit;
    return ERR_OK;
}

void options_settle_dtype(struct options *options)
{
    if (options->dtype == DTYPE_UNKNOWN)
        options->dtype = DTYPE_FLOAT64;
}
