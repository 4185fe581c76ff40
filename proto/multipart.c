/* multipart.c - multipart/form-data: parts a and b, and options as fields before them (see
 * encoding.h).
 *
 * An operand is a .npy array by its content, else what its part says it is: a JSON array, or raw
 * elements. Options come first, so that whatever follows can be read as it is meant, and a second
 * operand that makes one row be handed on as it arrives.
 */
#include "proto/encoding.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/npy.h"
#include "proto/npy_head.h"
#include "proto/numbers.h"
#include "proto/operands.h"
#include "proto/parts.h"
#include "proto/pointer.h"

enum part_kind {
    PART_FIELD,
    PART_UNTOLD, /* an operand of which not enough has come to tell .npy from what it says it is */
    PART_NPY,
    PART_RAW,
    PART_JSON,
};

struct multipart {
    const struct encoding *encoding; /* first: see encoding.h */
    struct request *request;
    size_t max_bytes;
    struct parts parts;
    struct operands operands;
    unsigned fields;  /* enum option bits: given by fields */
    unsigned present; /* bit 0: a has come, bit 1: b */

    /* the part in hand */
    enum part_kind kind, told; /* told: what an operand is unless it is .npy */
    bool is_b;
    bool is_done;       /* its array is whole */
    uint64_t start;     /* in the body; of JSON, of its array */
    size_t magic_bytes; /* of PART_UNTOLD: they are those of npy_magic */
    struct npy npy;
    char value[LIMIT_FIELD_BYTES + 1];
    size_t value_size;

    struct numbers *numbers[2]; /* of a and b: read before their type was known; owned */
};

static void multipart_destroy(struct decoder *decoder)
{
    struct multipart *body = (struct multipart *)decoder;
    for (int i = 0; i < 2; i++)
        numbers_destroy(body->numbers[i]);
    npy_fini(&body->npy);
    operands_fini(&body->operands);
    free(body);
}

static enum error no_layout(struct problem *problem)
{
    problem_set(problem, ERR_OPTION,
                "layout is for application/octet-stream bodies; in a form each operand is a part");
    return pointer_set(problem, "/layout");
}

static enum error multipart_create(struct decoder **ret, struct request *request,
                                   uint64_t body_bytes, size_t max_bytes, struct problem *problem)
{
    if (request->options.given & OPTION_LAYOUT)
        return no_layout(problem);
    struct multipart *body = calloc(1, sizeof *body);
    if (body == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for a decoder");
    body->encoding = &encoding_multipart;
    body->request = request;
    body->max_bytes = max_bytes;
    operands_init(&body->operands, request, body_bytes, max_bytes);
    npy_init(&body->npy);
    const char *type = request->content_type != NULL ? request->content_type : "";
    enum error err = parts_init(&body->parts, type, problem);
    if (err != ERR_OK) {
        multipart_destroy((struct decoder *)body);
        return err;
    }
    *ret = (struct decoder *)body;
    return ERR_OK;
}

static const char *pointer_of(const struct multipart *body)
{
    return body->is_b ? "/b" : "/a";
}

/* Where in the body, and in which operand, a part's problem lies. */
static enum error locate(const struct multipart *body, struct problem *problem)
{
    if (problem->offset >= 0)
        problem->offset += (int64_t)body->start;
    if (problem->pointer[0] != '\0')
        return problem->error;
    return pointer_set(problem, "%s", pointer_of(body));
}

/* ---- fields -------------------------------------------------------------------------------- */

static enum error field_begin(struct multipart *body, const char *name, struct problem *problem)
{
    const struct option_row *row = options_find(name);
    if (row == NULL)
        return options_unknown("field", name, "a, b, shape_a, shape_b", problem);
    if (row->bit == OPTION_LAYOUT)
        return no_layout(problem);
    if (body->present != 0) {
        problem_set(problem, ERR_OPTION, "%s stands behind an operand; options stand before them",
                    name);
        return pointer_key(problem, "", name);
    }
    body->kind = PART_FIELD;
    body->value_size = 0;
    return ERR_OK;
}

static enum error field_feed(struct multipart *body, const char *data, size_t size,
                             struct problem *problem)
{
    const char *name = body->parts.head.name;
    if (size > LIMIT_FIELD_BYTES - body->value_size) {
        problem_set(problem, ERR_TOO_LARGE, "%s has more than %d bytes", name, LIMIT_FIELD_BYTES);
        (void)problem_limit(problem, LIMIT_FIELD_BYTES, NULL);
        return pointer_key(problem, "", name);
    }
    memcpy(body->value + body->value_size, data, size);
    body->value_size += size;
    return ERR_OK;
}

static enum error field_end(struct multipart *body, struct problem *problem)
{
    const char *name = body->parts.head.name;
    body->value[body->value_size] = '\0';
    if (strlen(body->value) != body->value_size) {
        problem_set(problem, ERR_VALUE, "%s contains byte 0x00", name);
        return pointer_key(problem, "", name);
    }
    return options_set(&body->request->options, &body->fields, name, body->value, problem);
}

/* ---- operands: raw elements ---------------------------------------------------------------- */

static enum error no_shape(const struct multipart *body, struct problem *problem)
{
    const char *name = pointer_of(body) + 1;
    problem_set(problem, ERR_OPTION, "shape_%s is for raw elements; this %s tells its shape", name,
                name);
    return pointer_set(problem, "/shape_%s", name);
}

static bool has_shape(const struct multipart *body)
{
    unsigned bit = body->is_b ? OPTION_SHAPE_B : OPTION_SHAPE_A;
    return (body->request->options.given & bit) != 0;
}

static enum error raw_begin(struct multipart *body, struct problem *problem)
{
    const struct options *options = &body->request->options;
    if (options->dtype == DTYPE_UNKNOWN) {
        problem_set(problem, ERR_OPTION,
                    "bytes do not tell their type: say so in a field dtype before them; a JSON "
                    "array wants Content-Type: application/json in its part");
        return pointer_set(problem, "/dtype");
    }
    const struct elements elements = {
        .dtype = options->dtype,
        .order = options->order,
        .has_shape = has_shape(body),
        .shape = body->is_b ? options->shape_b : options->shape_a,
    };
    return operands_begin(&body->operands, body->is_b, &elements, problem);
}

/* ---- operands: JSON arrays ----------------------------------------------------------------- */

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static enum error json_begin(struct multipart *body, uint64_t offset, struct problem *problem)
{
    body->start = offset;
    enum error err = numbers_create(&body->numbers[body->is_b], &body->request->buffer,
                                    body->request->options.dtype, body->max_bytes);
    return err == ERR_OK ? err : problem_set(problem, err, "no memory for one more operand");
}

static enum error not_one_array(const struct multipart *body, char byte, uint64_t offset,
                                struct problem *problem)
{
    char shown[16];
    problem_set(problem, ERR_SYNTAX, "%s is %s %s; it is to be one JSON array",
                pointer_of(body) + 1, body->is_done ? "an array and then" : "no array but",
                byte_print(byte, shown));
    return problem_at(problem, offset - body->start);
}

/* Blanks may stand around the array, nothing else. */
static enum error json_feed(struct multipart *body, const char *data, size_t size, uint64_t offset,
                            struct problem *problem)
{
    struct numbers **numbers = &body->numbers[body->is_b];
    enum error err = ERR_OK;
    for (size_t used = 0, taken = 1; used < size; used += taken, taken = 1) {
        if (*numbers == NULL && data[used] == '[')
            err = json_begin(body, offset + used, problem);
        if (err != ERR_OK)
            return err;
        if (*numbers == NULL || body->is_done) {
            if (!is_blank(data[used]))
                return not_one_array(body, data[used], offset + used, problem);
            continue;
        }
        err = numbers_feed(*numbers, data + used, size - used, &taken, &body->is_done, problem);
        if (err != ERR_OK)
            return pointer_prefix(problem, pointer_of(body));
    }
    return ERR_OK;
}

/* Read as its type already, it is an operand; else it waits for the end. */
static enum error json_end(struct multipart *body, uint64_t offset, struct problem *problem)
{
    struct numbers **numbers = &body->numbers[body->is_b];
    if (!body->is_done) {
        problem_set(problem, ERR_SYNTAX,
                    *numbers == NULL ? "%s is empty; it is to be a JSON array"
                                     : "%s ends inside its array",
                    pointer_of(body) + 1);
        return problem_at(problem, offset - body->start);
    }
    if (body->request->options.dtype == DTYPE_UNKNOWN)
        return ERR_OK;
    operands_set(&body->operands, body->is_b, numbers_tensor(*numbers));
    numbers_destroy(*numbers);
    *numbers = NULL;
    return ERR_OK;
}

/* ---- operands: of whatever kind ------------------------------------------------------------ */

static bool is_json(const struct part_head *head)
{
    const char *type = head->type;
    size_t size = strlen(type);
    if (size == 0)
        return !head->has_filename; /* text/plain, says RFC 7578; of a file it says nothing */
    return strcasecmp(type, "application/json") == 0 || strncasecmp(type, "text/", 5) == 0 ||
           (size > 5 && strcasecmp(type + size - 5, "+json") == 0);
}

static enum error operand_begin(struct multipart *body, struct problem *problem)
{
    const struct part_head *head = &body->parts.head;
    const bool is_b = *head->name == 'b';
    if (body->present >> is_b & 1) {
        problem_set(problem, ERR_OPTION, "%s is given twice", head->name);
        return pointer_key(problem, "", head->name);
    }
    body->present |= 1U << is_b;
    body->is_b = is_b;
    body->is_done = false;
    body->start = body->parts.offset;
    body->kind = PART_UNTOLD;
    body->magic_bytes = 0;
    body->told = is_json(head) ? PART_JSON : PART_RAW;
    if (body->told == PART_JSON || *head->type == '\0' ||
        strcasecmp(head->type, "application/octet-stream") == 0)
        return ERR_OK;
    if (strcasecmp(head->type, "application/x-npy") == 0) {
        body->told = PART_NPY;
        return ERR_OK;
    }
    problem_set(problem, ERR_MEDIA,
                "%s has Content-Type \"%s\"; application/json, application/octet-stream and "
                "application/x-npy are read",
                head->name, head->type);
    return locate(body, problem);
}

static enum error kind_settle(struct multipart *body, enum part_kind kind, struct problem *problem)
{
    body->kind = kind;
    if (kind != PART_RAW && has_shape(body))
        return no_shape(body, problem);
    return kind == PART_RAW ? raw_begin(body, problem) : ERR_OK;
}

static enum error npy_part_feed(struct multipart *body, const char *data, size_t size,
                                uint64_t offset, struct problem *problem)
{
    size_t used = 0;
    enum error err = ERR_OK;
    if (!body->is_done)
        err = npy_feed(&body->npy, &body->operands, body->is_b, data, size, &used, &body->is_done,
                       problem);
    if (err != ERR_OK || used == size)
        return err;
    problem_set(problem, ERR_LENGTH, "%s goes on after its .npy array", pointer_of(body) + 1);
    return problem_at(problem, offset + used - body->start);
}

/* Bytes of an operand whose kind is known; the first of them is at offset of the body. */
static enum error told_feed(struct multipart *body, const char *data, size_t size, uint64_t offset,
                            struct problem *problem)
{
    if (body->kind == PART_NPY)
        return npy_part_feed(body, data, size, offset, problem);
    return body->kind == PART_JSON ? json_feed(body, data, size, offset, problem)
                                   : operands_feed(&body->operands, data, size, problem);
}

/* The kind is known: what was held back for that goes where it belongs. */
static enum error tell(struct multipart *body, enum part_kind kind, struct problem *problem)
{
    enum error err = kind_settle(body, kind, problem);
    if (err == ERR_OK && body->magic_bytes > 0)
        err = told_feed(body, npy_magic, body->magic_bytes, body->start, problem);
    return err;
}

static enum error operand_feed(struct multipart *body, const char *data, size_t size,
                               struct problem *problem)
{
    size_t used = 0;
    enum error err = ERR_OK;
    const uint64_t offset = body->parts.offset - size;
    while (body->kind == PART_UNTOLD && used < size && err == ERR_OK) {
        bool is_magic = data[used] == npy_magic[body->magic_bytes];
        used += is_magic;
        body->magic_bytes += is_magic;
        if (!is_magic || body->magic_bytes == NPY_MAGIC_BYTES)
            err = tell(body, is_magic ? PART_NPY : body->told, problem);
    }
    if (err == ERR_OK && used < size)
        err = told_feed(body, data + used, size - used, offset + used, problem);
    return err == ERR_OK ? err : locate(body, problem);
}

static enum error operand_end(struct multipart *body, struct problem *problem)
{
    const uint64_t end = body->parts.offset - body->parts.delimiter_size;
    enum error err = body->kind == PART_UNTOLD ? tell(body, body->told, problem) : ERR_OK;
    if (err == ERR_OK && body->kind == PART_JSON)
        err = json_end(body, end, problem);
    else if (err == ERR_OK && body->kind == PART_RAW)
        err = operands_end(&body->operands, problem);
    else if (err == ERR_OK && !body->is_done) {
        problem_set(problem, ERR_LENGTH, "%s ends inside its .npy array", pointer_of(body) + 1);
        err = problem_at(problem, end - body->start);
    }
    npy_fini(&body->npy);
    npy_init(&body->npy);
    return err == ERR_OK ? err : locate(body, problem);
}

/* ---- the body ------------------------------------------------------------------------------ */

static enum error part_begin(struct multipart *body, struct problem *problem)
{
    const char *name = body->parts.head.name;
    bool is_operand = strcmp(name, "a") == 0 || strcmp(name, "b") == 0;
    return is_operand ? operand_begin(body, problem) : field_begin(body, name, problem);
}

static enum error take_event(struct multipart *body, enum parts_event event,
                             struct problem *problem)
{
    const bool is_field = body->kind == PART_FIELD;
    const struct parts *parts = &body->parts;
    switch (event) {
    case PARTS_MORE:
        return ERR_OK;
    case PARTS_HEAD:
        return part_begin(body, problem);
    case PARTS_DATA:
        return is_field ? field_feed(body, parts->data, parts->size, problem)
                        : operand_feed(body, parts->data, parts->size, problem);
    case PARTS_END:
        break;
    }
    return is_field ? field_end(body, problem) : operand_end(body, problem);
}

static enum error multipart_feed(struct decoder *decoder, const char *data, size_t size,
                                 struct problem *problem)
{
    struct multipart *body = (struct multipart *)decoder;
    enum error err = ERR_OK;
    while (size > 0 && err == ERR_OK) {
        size_t used;
        enum parts_event event;
        err = parts_next(&body->parts, data, size, &used, &event, problem);
        if (err != ERR_OK)
            return err;
        err = take_event(body, event, problem);
        data += used;
        size -= used;
    }
    return err;
}

static enum error check_whole(const struct multipart *body, struct problem *problem)
{
    if (!parts_are_over(&body->parts)) {
        problem_set(problem, ERR_SYNTAX, "the body ends before its last boundary, %s--",
                    body->parts.delimiter + 2);
        return problem_at(problem, body->parts.offset);
    }
    if (body->present == 3)
        return ERR_OK;
    const char *name = body->present & 1 ? "b" : "a";
    problem_set(problem, ERR_VALUE, "%s is missing: both operands are needed", name);
    return pointer_key(problem, "", name);
}

/* Arrays that were read before their type was known. */
static enum error settle_numbers(struct multipart *body, struct problem *problem)
{
    for (int i = 0; i < 2; i++) {
        if (body->numbers[i] == NULL)
            continue;
        enum error err = numbers_convert(body->numbers[i], body->request->options.dtype, problem);
        if (err != ERR_OK)
            return pointer_prefix(problem, i == 0 ? "/a" : "/b");
        operands_set(&body->operands, i == 1, numbers_tensor(body->numbers[i]));
    }
    return ERR_OK;
}

static enum error multipart_finish(struct decoder *decoder, struct problem *problem)
{
    struct multipart *body = (struct multipart *)decoder;
    enum error err = check_whole(body, problem);
    if (err != ERR_OK)
        return err;
    options_settle_dtype(&body->request->options);
    err = settle_numbers(body, problem);
    if (err == ERR_OK)
        err = request_pairs(body->request, 1, problem);
    if (err == ERR_OK)
        *body->request->pair = body->operands.pair;
    return err;
}

const struct encoding encoding_multipart = {
    .create = multipart_create,
    .feed = multipart_feed,
    .finish = multipart_finish,
    .destroy = multipart_destroy,
};
