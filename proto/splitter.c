/* splitter.c - takes the arrays of numbers out of a JSON body (see splitter.h). */
#include "proto/splitter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/pointer.h"

enum {
    SPLITTER_DEPTH = 62,               /* a valid request needs 3 */
    SPLITTER_VALUES = 4 * LIMIT_PAIRS, /* a valid request needs 2 a pair, and a few */
    SPLITTER_NAME_BYTES = 16,          /* of the names below, or of a dtype, with the NUL */
};

void splitter_init(struct splitter *splitter, const struct splitter_form *form,
                   struct buffer *buffer, enum dtype dtype, size_t max_bytes)
{
    *splitter = (struct splitter){
        .form = form, .buffer = buffer, .max_bytes = max_bytes, .dtype = dtype, .key = KEY_OTHER};
    text_init(&splitter->skeleton);
}

void splitter_fini(struct splitter *splitter)
{
    for (size_t i = 0; i < splitter->operand_count; i++)
        numbers_destroy(splitter->operand[i].numbers);
    free(splitter->operand);
    numbers_destroy(splitter->numbers);
    text_fini(&splitter->skeleton);
}

/* The character of "\u00XX" at escape, 0 for any other: names hold letters and digits only. What
 * strtoul() takes beyond four digits is no JSON, and the parser says so. */
static char unicode_letter(const char *escape, size_t size)
{
    char digits[5];
    if (size < 6 || escape[1] != 'u')
        return '\0';
    memcpy(digits, escape + 2, 4);
    digits[4] = '\0';
    char *end;
    unsigned long code = strtoul(digits, &end, 16);
    return *end == '\0' && code < 0x80 ? (char)code : '\0';
}

/* Decodes the string that has just ended in the skeleton. False when it cannot be a name that the
 * splitter looks for: too long, or with escapes of other characters. */
static bool string_decode(const struct splitter *splitter, char ret[static SPLITTER_NAME_BYTES])
{
    const char *text = splitter->skeleton.data + splitter->string_start;
    size_t size = splitter->skeleton.size - 1 - splitter->string_start;
    size_t used = 0;
    while (size > 0) {
        bool is_escape = *text == '\\';
        char letter = is_escape ? unicode_letter(text, size) : *text;
        if (letter == '\0' || used == SPLITTER_NAME_BYTES - 1)
            return false;
        ret[used++] = letter;
        text += is_escape ? 6 : 1;
        size -= is_escape ? 6 : 1;
    }
    ret[used] = '\0';
    return true;
}

static enum splitter_key key_read(const struct splitter *splitter)
{
    char name[SPLITTER_NAME_BYTES];
    const char *const *names = splitter->form->name;
    if (string_decode(splitter, name))
        for (enum splitter_key key = 0; key < KEY_OTHER; key++)
            if (names[key] != NULL && strcmp(name, names[key]) == 0)
                return key;
    return KEY_OTHER;
}

/* An element type that stands before the arrays lets them be read as it at once. A wrong one is
 * left to options_set(), once the document has been parsed. */
static void dtype_peek(struct splitter *splitter)
{
    char name[SPLITTER_NAME_BYTES];
    enum byte_order order;
    if (splitter->depth == 1 && splitter->key == KEY_DTYPE && splitter->dtype == DTYPE_UNKNOWN &&
        string_decode(splitter, name))
        (void)dtype_parse(name, &splitter->dtype, &order);
}

static void string_end(struct splitter *splitter)
{
    splitter->is_string = false;
    if (splitter->expect == EXPECT_KEY) {
        splitter->key = key_read(splitter);
        splitter->expect = EXPECT_COLON;
    } else if (splitter->expect == EXPECT_VALUE) {
        dtype_peek(splitter);
        splitter->expect = EXPECT_COMMA;
    }
}

static void string_byte(struct splitter *splitter, char byte)
{
    if (splitter->is_escape)
        splitter->is_escape = false;
    else if (byte == '\\')
        splitter->is_escape = true;
    else if (byte == '"')
        string_end(splitter);
}

static bool in_object(const struct splitter *splitter)
{
    return (splitter->is_object >> splitter->depth & 1) != 0;
}

/* Is the value that is expected an operand? */
static bool is_operand_place(const struct splitter *splitter)
{
    return splitter->expect == EXPECT_VALUE && (splitter->key == KEY_A || splitter->key == KEY_B) &&
           in_object(splitter) &&
           ((splitter->depth == 1 && splitter->form->at_root) ||
            (splitter->depth == 3 && splitter->in_pairs));
}

static enum error too_many(struct problem *problem, const char *what, uint64_t limit)
{
    problem_set(problem, ERR_TOO_LARGE, "the body holds more than %" PRIu64 " %s", limit, what);
    return problem_limit(problem, limit, NULL);
}

/* What the parser will allocate grows with the values, not with the bytes. */
static enum error count_value(struct splitter *splitter, struct problem *problem)
{
    if (++splitter->value_count > SPLITTER_VALUES)
        return too_many(problem, "values beside its arrays of numbers", SPLITTER_VALUES);
    return ERR_OK;
}

static enum error open_container(struct splitter *splitter, char byte, struct problem *problem)
{
    enum error err = count_value(splitter, problem);
    if (err != ERR_OK)
        return err;
    bool is_operand = byte == '{' && is_operand_place(splitter);
    if (splitter->depth == SPLITTER_DEPTH)
        return problem_set(problem, ERR_VALUE, "nested deeper than %d levels", SPLITTER_DEPTH);
    if (splitter->depth == 1) {
        splitter->in_pairs =
            byte == '[' && splitter->expect == EXPECT_VALUE && splitter->key == KEY_PAIRS;
        splitter->pair_index = 0;
    }
    splitter->depth++;
    if (is_operand) {
        splitter->object_depth = splitter->depth;
        splitter->object_key = splitter->key;
    }
    splitter->is_object &= ~(UINT64_C(1) << splitter->depth);
    splitter->is_object |= (uint64_t)(byte == '{') << splitter->depth;
    splitter->expect = byte == '{' ? EXPECT_KEY : EXPECT_VALUE;
    return ERR_OK;
}

static enum error comma(struct splitter *splitter, struct problem *problem)
{
    splitter->expect = in_object(splitter) ? EXPECT_KEY : EXPECT_VALUE;
    if (splitter->in_pairs && splitter->depth == 2 && ++splitter->pair_index == LIMIT_PAIRS)
        return too_many(problem, splitter->form->name[KEY_PAIRS], LIMIT_PAIRS);
    return count_value(splitter, problem);
}

/* One byte outside strings and arrays of numbers. What is out of place is left to the parser. */
static enum error structure_byte(struct splitter *splitter, char byte, struct problem *problem)
{
    switch (byte) {
    case '"':
        splitter->is_string = true;
        splitter->string_start = splitter->skeleton.size;
        break;
    case ':':
        if (splitter->expect == EXPECT_COLON)
            splitter->expect = EXPECT_VALUE;
        break;
    case ',':
        return comma(splitter, problem);
    case '{':
    case '[':
        return open_container(splitter, byte, problem);
    case '}':
    case ']':
        if (splitter->depth == splitter->object_depth)
            splitter->object_depth = 0;
        splitter->depth -= splitter->depth > 0;
        splitter->expect = EXPECT_COMMA;
        break;
    case ' ':
    case '\t':
    case '\n':
    case '\r':
        break;
    default:
        if (splitter->expect == EXPECT_VALUE)
            splitter->expect = EXPECT_COMMA;
    }
    return ERR_OK;
}

static enum error not_an_object(const struct splitter *splitter, char byte, struct problem *problem)
{
    char shown[16];
    return problem_set(problem, ERR_SYNTAX, "the body begins with %s and not with '{'%s",
                       byte_print(byte, shown), splitter->form->hint);
}

/* Skips a byte order mark, which may come in pieces. */
static bool skip_bom(struct splitter *splitter, char byte)
{
    static const char bom[] = "\xef\xbb\xbf";
    if (splitter->bom_bytes == 3 || splitter->body_bytes != (uint64_t)splitter->bom_bytes ||
        byte != bom[splitter->bom_bytes])
        return false;
    splitter->bom_bytes++;
    splitter->body_bytes++;
    return true;
}

/* A byte before the object's '{'. */
static enum error begin(struct splitter *splitter, char byte, struct problem *problem)
{
    bool is_broken_bom = splitter->bom_bytes == 1 || splitter->bom_bytes == 2;
    if (is_broken_bom)
        return not_an_object(splitter, '\xef', problem);
    if (byte == '{')
        splitter->has_begun = true;
    else if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r')
        return not_an_object(splitter, byte, problem);
    return ERR_OK;
}

static enum error skeleton_append(struct splitter *splitter, const char *data, size_t size,
                                  struct problem *problem)
{
    if (splitter->skeleton.size + size > LIMIT_SKELETON_BYTES)
        return too_many(problem, "bytes beside its arrays of numbers", LIMIT_SKELETON_BYTES);
    text_append(&splitter->skeleton, data, size);
    if (splitter->skeleton.failed)
        return problem_set(problem, ERR_NOMEM, "no memory for the document");
    return ERR_OK;
}

static enum error take_byte(struct splitter *splitter, char byte, struct problem *problem)
{
    enum error err = ERR_OK;
    if (!splitter->has_begun) {
        if (skip_bom(splitter, byte))
            return ERR_OK;
        err = begin(splitter, byte, problem);
    }
    if (err == ERR_OK)
        err = skeleton_append(splitter, &byte, 1, problem);
    if (err == ERR_OK && splitter->is_string)
        string_byte(splitter, byte);
    else if (err == ERR_OK)
        err = structure_byte(splitter, byte, problem);
    if (err != ERR_OK)
        return problem_at(problem, splitter->body_bytes);
    splitter->body_bytes++;
    return ERR_OK;
}

static bool begins_array(const struct splitter *splitter, char byte)
{
    return byte == '[' && !splitter->is_string && is_operand_place(splitter);
}

static bool begins_base64(const struct splitter *splitter, char byte)
{
    return byte == '"' && !splitter->is_string && splitter->expect == EXPECT_VALUE &&
           splitter->key == KEY_BASE64 && splitter->object_depth > 0 &&
           splitter->depth == splitter->object_depth;
}

/* The pointer of the array or the string that is being read. */
static void array_pointer(const struct splitter *splitter, char *ret, size_t size)
{
    const char *const *names = splitter->form->name;
    const bool is_string = splitter->in_base64;
    const char *name = names[is_string ? splitter->object_key : splitter->key];
    const char *end = is_string ? "/base64" : "";
    if (splitter->depth - is_string == 1)
        (void)snprintf(ret, size, "/%s%s", name, end);
    else
        (void)snprintf(ret, size, "/%s/%" PRIu64 "/%s%s", names[KEY_PAIRS], splitter->pair_index,
                       name, end);
}

static enum error array_begin(struct splitter *splitter, struct problem *problem)
{
    splitter->array_start = splitter->body_bytes;
    enum error err =
        numbers_create(&splitter->numbers, splitter->buffer, splitter->dtype, splitter->max_bytes);
    if (err == ERR_OK)
        return ERR_OK;
    problem_set(problem, err, "no memory for one more operand");
    return problem_at(problem, splitter->array_start);
}

static enum error operand_reserve(struct splitter *splitter, struct problem *problem)
{
    if (splitter->operand_count < splitter->operand_capacity)
        return ERR_OK;
    size_t capacity = splitter->operand_capacity == 0 ? 2 : 2 * splitter->operand_capacity;
    struct operand *operand = realloc(splitter->operand, capacity * sizeof *operand);
    if (operand == NULL)
        return problem_set(problem, ERR_NOMEM, "no memory for one more operand");
    splitter->operand = operand;
    splitter->operand_capacity = capacity;
    return ERR_OK;
}

/* Notes what has just ended and leaves its placeholder in the skeleton. */
static enum error operand_note(struct splitter *splitter, const char brackets[static 2],
                               struct operand **ret, struct problem *problem)
{
    enum error err = operand_reserve(splitter, problem);
    if (err == ERR_OK)
        err = skeleton_append(splitter, &brackets[0], 1, problem);
    if (err == ERR_OK) {
        text_uint(&splitter->skeleton, splitter->operand_count);
        err = skeleton_append(splitter, &brackets[1], 1, problem);
    }
    if (err != ERR_OK)
        return problem_at(problem, splitter->array_start);
    *ret = &splitter->operand[splitter->operand_count++];
    **ret =
        (struct operand){.skeleton_end = splitter->skeleton.size, .body_end = splitter->body_bytes};
    splitter->expect = EXPECT_COMMA;
    return ERR_OK;
}

static enum error array_end(struct splitter *splitter, struct problem *problem)
{
    struct operand *operand;
    enum error err = operand_note(splitter, "[]", &operand, problem);
    if (err != ERR_OK)
        return err;
    if (splitter->dtype == DTYPE_UNKNOWN) {
        operand->numbers = splitter->numbers;
    } else {
        operand->tensor = numbers_tensor(splitter->numbers);
        numbers_destroy(splitter->numbers);
    }
    splitter->numbers = NULL;
    return ERR_OK;
}

static enum error array_feed(struct splitter *splitter, const char *data, size_t size,
                             size_t *ret_used, struct problem *problem)
{
    bool done;
    enum error err = numbers_feed(splitter->numbers, data, size, ret_used, &done, problem);
    if (err != ERR_OK) {
        char pointer[32];
        array_pointer(splitter, pointer, sizeof pointer);
        if (problem->offset >= 0)
            problem->offset += (int64_t)splitter->array_start;
        return pointer_prefix(problem, pointer);
    }
    splitter->body_bytes += *ret_used;
    return done ? array_end(splitter, problem) : ERR_OK;
}

/* Room for what is still to come, so that the buffer need not grow and move: most of it is likely
 * base64. Where there is none, the buffer grows as bytes come. */
static void base64_reserve(struct splitter *splitter)
{
    struct buffer *buffer = splitter->buffer;
    if (splitter->announced <= splitter->body_bytes)
        return;
    uint64_t end = buffer->used + base64_room(splitter->announced - splitter->body_bytes);
    if (end <= splitter->max_bytes)
        (void)buffer_reserve(buffer, end);
}

/* The opening quote. */
static enum error base64_begin(struct splitter *splitter, struct problem *problem)
{
    splitter->array_start = splitter->body_bytes;
    if (buffer_align(splitter->buffer, &splitter->bytes_start) != ERR_OK) {
        problem_set(problem, ERR_NOMEM, "no memory for one more operand");
        return problem_at(problem, splitter->array_start);
    }
    base64_reserve(splitter);
    splitter->body_bytes++;
    splitter->base64 = (struct base64){0};
    splitter->in_base64 = true;
    return ERR_OK;
}

static enum error base64_end(struct splitter *splitter, struct problem *problem)
{
    struct operand *operand;
    enum error err = operand_note(splitter, "\"\"", &operand, problem);
    if (err != ERR_OK)
        return err;
    operand->tensor.offset = splitter->bytes_start;
    operand->size_bytes = splitter->buffer->used - splitter->bytes_start;
    splitter->in_base64 = false;
    return ERR_OK;
}

/* Straight into the buffer. */
static enum error base64_read(struct splitter *splitter, const char *data, size_t size,
                              size_t *ret_used, bool *ret_done, struct problem *problem)
{
    struct buffer *buffer = splitter->buffer;
    size_t written;
    if (size > LIMIT_PIECE_BYTES)
        size = LIMIT_PIECE_BYTES;
    if (buffer_reserve(buffer, buffer->used + base64_room(size)) != ERR_OK)
        return problem_set(problem, ERR_NOMEM, "no memory for the operands");
    enum error err =
        base64_feed(&splitter->base64, data, size, ret_used,
                    (char *)buffer->block.data + buffer->used, &written, ret_done, problem);
    splitter->body_bytes += *ret_used;
    if (written > 0 && buffer->used + written > splitter->max_bytes)
        return operands_too_large(splitter->max_bytes, problem);
    buffer->used += written;
    return err == ERR_OK ? err : problem_at(problem, splitter->body_bytes);
}

static enum error base64_piece(struct splitter *splitter, const char *data, size_t size,
                               size_t *ret_used, struct problem *problem)
{
    bool done;
    enum error err = base64_read(splitter, data, size, ret_used, &done, problem);
    if (err != ERR_OK) {
        char pointer[LIMIT_POINTER_BYTES];
        array_pointer(splitter, pointer, sizeof pointer);
        return pointer_set(problem, "%s", pointer);
    }
    return done ? base64_end(splitter, problem) : ERR_OK;
}

/* One byte, or as many as one reader takes. */
static enum error splitter_step(struct splitter *splitter, const char *data, size_t size,
                                size_t *ret_used, struct problem *problem)
{
    enum error err = ERR_OK;
    *ret_used = 1;
    if (splitter->in_base64)
        return base64_piece(splitter, data, size, ret_used, problem);
    if (splitter->numbers == NULL && begins_base64(splitter, *data))
        return base64_begin(splitter, problem);
    if (splitter->numbers == NULL && begins_array(splitter, *data))
        err = array_begin(splitter, problem);
    if (err != ERR_OK)
        return err;
    return splitter->numbers != NULL ? array_feed(splitter, data, size, ret_used, problem)
                                     : take_byte(splitter, *data, problem);
}

enum error splitter_feed(struct splitter *splitter, const char *data, size_t size,
                         struct problem *problem)
{
    enum error err = ERR_OK;
    while (size > 0 && err == ERR_OK) {
        size_t used;
        err = splitter_step(splitter, data, size, &used, problem);
        data += used;
        size -= used;
    }
    return err;
}

enum error splitter_finish(struct splitter *splitter, struct problem *problem)
{
    if (!splitter->has_begun) {
        problem_set(problem, ERR_SYNTAX, "the body is empty%s", splitter->form->hint);
        return problem_at(problem, splitter->body_bytes);
    }
    if (splitter->numbers == NULL && !splitter->in_base64)
        return ERR_OK;
    char pointer[LIMIT_POINTER_BYTES];
    array_pointer(splitter, pointer, sizeof pointer);
    problem_set(problem, ERR_SYNTAX, "the body ends inside %s",
                splitter->in_base64 ? "a string of base64" : "an array of numbers");
    (void)problem_at(problem, splitter->body_bytes);
    return pointer_set(problem, "%s", pointer);
}

uint64_t splitter_body_offset(const struct splitter *splitter, size_t offset)
{
    for (size_t i = splitter->operand_count; i > 0; i--) {
        const struct operand *operand = &splitter->operand[i - 1];
        if (operand->skeleton_end <= offset)
            return operand->body_end + (offset - operand->skeleton_end);
    }
    return (uint64_t)splitter->bom_bytes + offset;
}
