/* parts.c - a multipart/form-data body cut into its parts (see parts.h). */
#include "proto/parts.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* ---- header values ------------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* Reads a token or a quoted string at text into ret, cut to size. Returns what follows it, or NULL:
 * a quote is not closed. */
static const char *read_value(const char *text, char *ret, size_t size)
{
    size_t used = 0;
    bool is_quoted = *text == '"';
    text += is_quoted;
    while (*text != '\0' && (is_quoted ? *text != '"' : strchr("; \t", *text) == NULL)) {
        if (is_quoted && *text == '\\' && text[1] != '\0')
            text++;
        if (used + 1 < size)
            ret[used++] = *text;
        text++;
    }
    ret[used] = '\0';
    if (!is_quoted)
        return text;
    return *text == '"' ? text + 1 : NULL;
}

/* Finds a parameter of a header's value ("form-data; name=a"). *ret_found tells if it is there;
 * false: the value is malformed. */
static bool find_parameter(const char *value, const char *name, char *ret, size_t size,
                           bool *ret_found)
{
    char ignored[1];
    *ret_found = false;
    value += strcspn(value, ";");
    while (*value != '\0') {
        value = skip_blanks(value + 1);
        size_t length = strcspn(value, "=; \t");
        if (length == 0 && *value == '\0')
            return true; /* a semicolon at the end */
        if (length == 0 || value[length] != '=')
            return false;
        bool is_it = length == strlen(name) && strncasecmp(value, name, length) == 0;
        if (is_it && *ret_found)
            return false;
        value = is_it ? read_value(value + length + 1, ret, size)
                      : read_value(value + length + 1, ignored, sizeof ignored);
        if (value == NULL)
            return false;
        *ret_found |= is_it;
        value = skip_blanks(value);
        if (*value != '\0' && *value != ';')
            return false;
    }
    return true;
}

/* ---- the boundary -------------------------------------------------------------------------- */

static bool is_boundary(const char *text)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "'()+_,-./:=? ";
    size_t size = strlen(text);
    return size > 0 && size <= PARTS_BOUNDARY_BYTES && strspn(text, allowed) == size &&
           text[size - 1] != ' ';
}

enum error parts_init(struct parts *parts, const char *content_type, struct problem *problem)
{
    char boundary[PARTS_BOUNDARY_BYTES + 2]; /* one that is too long shows */
    bool found;
    if (!find_parameter(content_type, "boundary", boundary, sizeof boundary, &found) || !found ||
        !is_boundary(boundary))
        return problem_set(problem, ERR_SYNTAX,
                           "Content-Type \"%.100s\" names no boundary of 1 to %d characters",
                           content_type, PARTS_BOUNDARY_BYTES);
    *parts = (struct parts){.state = PARTS_PREAMBLE};
    memcpy(parts->delimiter, "\r\n--", 4);
    memcpy(parts->delimiter + 4, boundary, strlen(boundary));
    parts->delimiter_size = 4 + strlen(boundary);
    for (size_t i = 0; i < parts->delimiter_size; i++)
        parts->is_in_delimiter[(unsigned char)parts->delimiter[i]] = true;
    parts->matched = 2; /* the first delimiter needs no line's end before it */
    return ERR_OK;
}

bool parts_are_over(const struct parts *parts)
{
    return parts->state == PARTS_EPILOGUE;
}

/* How far no delimiter begins, as two bytes of each stretch of nearly its length tell: where one of
 * them is none of a delimiter's, no delimiter lies across both. Of most bodies nearly all stretches
 * are passed over so. Were it one byte, of random bytes one in fourteen would not tell: a branch
 * that cannot be foretold so often costs as much as all the rest. */
static size_t skip_stretches(const struct parts *parts, const char *data, size_t size)
{
    const size_t length = parts->delimiter_size, step = length - 1;
    const bool *is_in = parts->is_in_delimiter;
    size_t skipped = 0;
    while (size - skipped >= length) {
        const char *stretch = data + skipped;
        const unsigned char *pair = (const unsigned char *)stretch + step - 1;
        if ((is_in[pair[0]] & is_in[pair[1]]) && memchr(stretch, '\r', step) != NULL)
            break;
        skipped += step;
    }
    return skipped;
}

/* The first place in data where a delimiter begins, if only with its first bytes; size: none
 * does. */
static size_t find_delimiter(const struct parts *parts, const char *data, size_t size)
{
    const char *end = data + size, *at = data;
    for (;;) {
        at += skip_stretches(parts, at, (size_t)(end - at));
        at = at < end ? memchr(at, '\r', (size_t)(end - at)) : NULL;
        if (at == NULL)
            return size;
        size_t left = (size_t)(end - at);
        size_t length = left < parts->delimiter_size ? left : parts->delimiter_size;
        if (memcmp(at, parts->delimiter, length) == 0)
            return (size_t)(at - data);
        at++;
    }
}

/* Bytes up to the next delimiter, or as much of it as is there. */
static size_t run_next(struct parts *parts, const char *data, size_t size, enum parts_event *ret)
{
    if (parts->matched == 0) {
        parts->data = data;
        parts->size = find_delimiter(parts, data, size);
        *ret = PARTS_DATA;
        if (parts->size > 0)
            return parts->size;
    }
    size_t used = 0;
    while (used < size && parts->matched < parts->delimiter_size &&
           data[used] == parts->delimiter[parts->matched]) {
        used++;
        parts->matched++;
    }
    *ret = PARTS_MORE;
    if (parts->matched == parts->delimiter_size) {
        parts->matched = 0;
        parts->last = '\0';
        *ret = PARTS_END;
    } else if (used < size) { /* it was none; a carriage return is only at a delimiter's start */
        parts->data = parts->delimiter;
        parts->size = parts->matched;
        parts->matched = 0;
        *ret = PARTS_DATA;
    }
    return used;
}

/* Behind a delimiter: two hyphens end the body, a line's end begins a head. */
static enum error after_delimiter(struct parts *parts, char byte, struct problem *problem)
{
    const char last = parts->last;
    if (last == '-' && byte == '-')
        parts->state = PARTS_EPILOGUE;
    else if (last == '\r' && byte == '\n')
        parts->state = PARTS_HEADER;
    else if ((last == '\0' && (byte == '-' || byte == '\r')) || (last == ' ' && byte == '\r'))
        parts->last = byte;
    else if ((last == '\0' || last == ' ') && (byte == ' ' || byte == '\t'))
        parts->last = ' ';
    else
        return problem_set(problem, ERR_SYNTAX,
                           "a boundary is followed by neither a line's end nor "
                           "two hyphens");
    parts->head = (struct part_head){0};
    parts->head_size = parts->line_size = 0;
    return ERR_OK;
}

/* ---- heads --------------------------------------------------------------------------------- */

/* The value of the header line if it is called name; NULL: it is not. */
static const char *value_of(const char *line, const char *name)
{
    size_t size = strlen(name);
    if (strncasecmp(line, name, size) != 0 || line[size] != ':')
        return NULL;
    return skip_blanks(line + size + 1);
}

static bool read_disposition(struct part_head *head, const char *value)
{
    char ignored[1];
    if (strncasecmp(value, "form-data", 9) != 0 || strchr("; \t", value[9]) == NULL ||
        head->has_name)
        return false;
    return find_parameter(value, "name", head->name, sizeof head->name, &head->has_name) &&
           head->has_name &&
           find_parameter(value, "filename", ignored, sizeof ignored, &head->has_filename);
}

static void read_type(struct part_head *head, const char *value)
{
    size_t size = strcspn(value, "; \t");
    size = size < sizeof head->type ? size : sizeof head->type - 1;
    memcpy(head->type, value, size);
    head->type[size] = '\0';
}

/* Bytes are read as they are, whatever the old word for that is. */
static bool is_plain(const char *coding)
{
    return strcasecmp(coding, "binary") == 0 || strcasecmp(coding, "8bit") == 0 ||
           strcasecmp(coding, "7bit") == 0;
}

/* A header line, without its end. Headers that say nothing here are ignored. */
static enum error header_read(struct part_head *head, const char *line, size_t size,
                              struct problem *problem)
{
    if (strlen(line) != size || strchr(line, ':') == NULL || *line == ':' || *line == ' ' ||
        *line == '\t')
        return problem_set(problem, ERR_SYNTAX, "a part has a malformed header line");
    const char *value = value_of(line, "Content-Disposition");
    if (value != NULL && !read_disposition(head, value))
        return problem_set(problem, ERR_SYNTAX,
                           "a part's Content-Disposition is not form-data with one name");
    value = value_of(line, "Content-Type");
    if (value != NULL)
        read_type(head, value);
    value = value_of(line, "Content-Transfer-Encoding");
    if (value != NULL && !is_plain(value))
        return problem_set(
            problem, ERR_UNSUPPORTED,
            "a part's Content-Transfer-Encoding is \"%.64s\"; parts are read as they "
            "are",
            value);
    return ERR_OK;
}

/* The line in hand is whole. */
static enum error line_end(struct parts *parts, enum parts_event *ret, struct problem *problem)
{
    size_t size = parts->line_size - 2;
    parts->line_size = 0;
    if (size > 0) {
        parts->line[size] = '\0';
        return header_read(&parts->head, parts->line, size, problem);
    }
    if (!parts->head.has_name)
        return problem_set(problem, ERR_SYNTAX,
                           "a part has no name: Content-Disposition says none");
    parts->state = PARTS_BODY;
    *ret = PARTS_HEAD;
    return ERR_OK;
}

static enum error header_byte(struct parts *parts, char byte, enum parts_event *ret,
                              struct problem *problem)
{
    if (++parts->head_size > LIMIT_PART_HEAD_BYTES) {
        problem_set(problem, ERR_TOO_LARGE, "the head of a part has more than %d bytes",
                    LIMIT_PART_HEAD_BYTES);
        return problem_limit(problem, LIMIT_PART_HEAD_BYTES, NULL);
    }
    bool is_after_cr = parts->line_size > 0 && parts->line[parts->line_size - 1] == '\r';
    parts->line[parts->line_size++] = byte;
    if (is_after_cr != (byte == '\n'))
        return problem_set(problem, ERR_SYNTAX, "header lines of parts end in CR LF");
    return byte == '\n' ? line_end(parts, ret, problem) : ERR_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* The bytes between parts, one by one: they are few. */
static enum error between_next(struct parts *parts, const char *data, size_t size, size_t *ret_used,
                               enum parts_event *ret, struct problem *problem)
{
    size_t used = 0;
    enum error err = ERR_OK;
    *ret = PARTS_MORE;
    while (used < size && *ret == PARTS_MORE && err == ERR_OK &&
           (parts->state == PARTS_DELIMITED || parts->state == PARTS_HEADER)) {
        err = parts->state == PARTS_HEADER ? header_byte(parts, data[used], ret, problem)
                                           : after_delimiter(parts, data[used], problem);
        used += err == ERR_OK;
    }
    parts->offset += used;
    *ret_used = used;
    return err == ERR_OK ? err : problem_at(problem, parts->offset);
}

enum error parts_next(struct parts *parts, const char *data, size_t size, size_t *ret_used,
                      enum parts_event *ret, struct problem *problem)
{
    if (parts->state == PARTS_EPILOGUE) {
        parts->offset += size;
        *ret_used = size;
        *ret = PARTS_MORE;
        return ERR_OK;
    }
    if (parts->state == PARTS_DELIMITED || parts->state == PARTS_HEADER)
        return between_next(parts, data, size, ret_used, ret, problem);
    bool is_preamble = parts->state == PARTS_PREAMBLE;
    *ret_used = run_next(parts, data, size, ret);
    parts->offset += *ret_used;
    if (*ret == PARTS_END)
        parts->state = PARTS_DELIMITED;
    if (is_preamble)
        *ret = PARTS_MORE;
    return ERR_OK;
}
