/* document.c - whole JSON documents against jansson: what it takes for JSON is JSON, what it does
 * not is none but for NaN, Infinity and a byte order mark, and the numbers of both are the same. */
#include <jansson.h>
#include <math.h>

#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 20, DEPTH = LIMIT_RANK + 1 };

enum verdict { MAY_BE, MUST_BE, MUST_NOT_BE };

/* What an array of numbers nests as, by jansson's reading. */
struct nest {
    int rank; /* -1: it is no tensor */
    size_t dim[DEPTH];
};

static bool is_element(const json_t *value)
{
    if (json_is_number(value))
        return true;
    const char *text = json_string_value(value);
    return text != NULL && (strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 ||
                            strcmp(text, "-Infinity") == 0);
}

static struct nest nest_of(const json_t *value, int depth)
{
    struct nest nest = {.rank = is_element(value) ? 0 : -1};
    if (!json_is_array(value) || depth == DEPTH)
        return nest;
    nest = (struct nest){.rank = 1, .dim = {json_array_size(value)}};
    for (size_t i = 0; i < nest.dim[0]; i++) {
        struct nest row = nest_of(json_array_get(value, i), depth + 1);
        if (i == 0 && row.rank > 0) {
            memcpy(nest.dim + 1, row.dim, (DEPTH - 1) * sizeof *row.dim);
            nest.rank = 1 + row.rank;
        }
        if (row.rank != nest.rank - 1 ||
            memcmp(nest.dim + 1, row.dim, (size_t)row.rank * sizeof *row.dim) != 0)
            return (struct nest){.rank = -1};
    }
    return nest;
}

static double element_of(const json_t *value)
{
    if (json_is_number(value))
        return json_number_value(value);
    const char *text = json_string_value(value);
    return *text == 'N' ? (double)NAN : *text == '-' ? -INFINITY : INFINITY;
}

/* Returns what comes after the elements of value. */
static const double *check_elements(const json_t *value, const double *got)
{
    if (!json_is_array(value)) {
        double want = element_of(value);
        CHECK(memcmp(&want, got, sizeof want) == 0 || (isnan(want) && isnan(*got)), "%a, not %a",
              *got, want);
        return got + 1;
    }
    for (size_t i = 0; i < json_array_size(value); i++)
        got = check_elements(json_array_get(value, i), got);
    return got;
}

static void check_operand(const struct request *request, const struct tensor *tensor,
                          const json_t *value)
{
    struct nest nest = nest_of(value, 0);
    size_t size;
    CHECK(nest.rank == tensor->shape.rank, "rank %d, not %d", tensor->shape.rank, nest.rank);
    for (int i = 0; i < nest.rank; i++)
        CHECK(nest.dim[i] == tensor->shape.dim[i], "axis %d", i);
    const char *data = tensor_data(request, tensor, &size);
    if (tensor->dtype == DTYPE_FLOAT64 && size > 0)
        CHECK((const char *)check_elements(value, (const double *)(const void *)data) ==
                  data + size,
              "%zu bytes", size);
}

static void check_values(const struct request *request, const json_t *root)
{
    if (dtype_is_complex(request->options.dtype))
        return;
    const json_t *pairs = json_object_get(root, "pairs");
    for (size_t i = 0; i < request->pair_count; i++) {
        const json_t *object = pairs != NULL ? json_array_get(pairs, i) : root;
        check_operand(request, &request->pair[i].a, json_object_get(object, "a"));
        check_operand(request, &request->pair[i].b, json_object_get(object, "b"));
    }
}

static bool is_tensor(const json_t *value)
{
    int rank = nest_of(value, 0).rank;
    return rank > 0 && rank <= LIMIT_RANK;
}

/* Of a document with nothing but a and b everything is known, but whether their shapes match. */
static enum verdict verdict_of(const json_t *root)
{
    if (!json_is_object(root))
        return MUST_NOT_BE;
    const json_t *a = json_object_get(root, "a"), *b = json_object_get(root, "b");
    if (json_object_size(root) != 2 || a == NULL || b == NULL)
        return MAY_BE;
    return is_tensor(a) && is_tensor(b) ? MUST_BE : MUST_NOT_BE;
}

static bool holds(const char *text, size_t size, const char *word)
{
    return memmem(text, size, word, strlen(word)) != NULL;
}

/* An escape would make "NaN" of what the reader of arrays does not take for it. */
static void compare(const struct decoding *ours, const json_t *root, const char *body, size_t size)
{
    enum verdict verdict = holds(body, size, "\\") ? MAY_BE : verdict_of(root);
    bool is_right = ours->error == ERR_OK || ours->error == ERR_SHAPE;
    if (json_is_object(root)) /* no other document is ours */
        CHECK(ours->error != ERR_SYNTAX, "%s at %lld", ours->problem.detail,
              (long long)ours->problem.offset);
    if (verdict == MUST_BE)
        CHECK(is_right, "%s", ours->problem.detail);
    if (verdict == MUST_NOT_BE)
        CHECK(ours->error != ERR_OK, "taken");
    if (ours->error == ERR_OK)
        check_values(&ours->request, root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *body = (const char *)data;
    if (size >= LIMIT_NUMBER_BYTES) /* one number may be too long then */
        return 0;
    const struct decode_how how = {
        .encoding = &encoding_json, .body_bytes = size, .max_bytes = MAX_BYTES};
    struct decoding ours;
    json_error_t error;
    char *text = text_of(data, size);
    decode(&ours, &how, body, size, (struct cuts){0});
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
    bool has_nul = memchr(text, '\0', size) != NULL; /* jansson passes over some */
    bool is_extended = holds(body, size, "NaN") || holds(body, size, "Infinity") ||
                       (size >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0);
    if (has_nul)
        CHECK(ours.error != ERR_OK, "a NUL was taken");
    else if (root != NULL)
        compare(&ours, root, body, size);
    else if (!is_extended)
        CHECK(ours.error != ERR_OK, "jansson: %s at %d", error.text, error.position);
    json_decref(root);
    free(text);
    decoding_fini(&ours);
    return 0;
}
