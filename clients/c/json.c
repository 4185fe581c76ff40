/* json.c - a reader of one object's fields (see json.h). */
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 512 }; /* an integer of 192 bits has 58 digits, a float64 at most 24 */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* at stands on the opening quote; past the closing one, or NULL. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : NULL;
}

/* Brackets are counted, not matched: the service's own answers are read, and a wrong one only
 * has to be safe. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    do {
        at = skip_blanks(at, end);
        if (at == end)
            return NULL;
        if (*at == '"') {
            at = skip_string(at, end);
            if (at == NULL)
                return NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return NULL;
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            if (depth == 0)
                return NULL;
            at++;
        } else {
            const char *begin = at;
            while (at < end && strchr(" \t\r\n,:]}\"", *at) == NULL)
                at++;
            if (at == begin)
                return NULL; /* a NUL */
        }
    } while (depth > 0);
    return at;
}

bool json_is(struct json_span value, const char *word)
{
    size_t size = strlen(word);
    return value.begin != NULL && (size_t)(value.end - value.begin) == size &&
           memcmp(value.begin, word, size) == 0;
}

static bool is_name(struct json_span key, const char *name)
{
    struct json_span bare = {key.begin + 1, key.end - 1};
    return json_is(bare, name);
}

bool json_fields(struct json_span text, const char *const *name, size_t count,
                 struct json_span *ret)
{
    memset(ret, 0, count * sizeof *ret);
    const char *end = text.end, *at = skip_blanks(text.begin, end);
    if (at == end || *at != '{')
        return false;
    do {
        struct json_span key = {.begin = skip_blanks(at + 1, end)};
        if (key.begin == end || *key.begin != '"')
            return false;
        key.end = skip_string(key.begin, end);
        at = key.end != NULL ? skip_blanks(key.end, end) : end;
        if (at == end || *at != ':')
            return false;
        struct json_span value = {.begin = skip_blanks(at + 1, end)};
        value.end = skip_value(value.begin, end);
        if (value.end == NULL)
            return false;
        for (size_t i = 0; i < count; i++)
            if (is_name(key, name[i]))
                ret[i] = value;
        at = skip_blanks(value.end, end);
    } while (at < end && *at == ',');
    return at < end && *at == '}';
}

/* The character of four hexadecimal digits as UTF-8; its length. A surrogate becomes a question
 * mark: the service's texts have none but of what a client sent. */
static size_t put_code(const char *digits, char *ret)
{
    char text[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};
    unsigned long code = strtoul(text, NULL, 16);
    if (code >= 0xd800 && code < 0xe000)
        code = '?';
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        ret[0] = (char)(0xc0 | code >> 6);
        ret[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    ret[0] = (char)(0xe0 | code >> 12);
    ret[1] = (char)(0x80 | (code >> 6 & 0x3f));
    ret[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

/* What a backslash and the letters after it stand for; moves *at past them. */
static size_t put_escape(const char **at, const char *end, char *ret)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char letter = *(*at)++;
    if (letter == 'u' && end - *at >= 4) {
        *at += 4;
        return put_code(*at - 4, ret);
    }
    const char *found = strchr(letters, letter);
    ret[0] = found != NULL && letter != '\0' ? meant[found - letters] : letter;
    return 1;
}

void json_text(struct json_span value, char *ret, size_t capacity)
{
    size_t size = 0;
    ret[0] = '\0';
    if (value.begin == NULL || *value.begin != '"')
        return;
    const char *at = value.begin + 1, *end = value.end - 1;
    while (at < end) {
        char put[4];
        size_t length = 1;
        if (*at == '\\' && end - at >= 2) {
            at++;
            length = put_escape(&at, end, put);
        } else {
            put[0] = *at++;
        }
        if (length >= capacity - size)
            break;
        memcpy(ret + size, put, length);
        size += length;
    }
    ret[size] = '\0';
}

double json_number(struct json_span value, locale_t numbers, double other)
{
    char text[NUMBER_BYTES];
    size_t size = value.begin != NULL ? (size_t)(value.end - value.begin) : 0;
    if (size == 0 || size >= sizeof text || strchr("-0123456789", *value.begin) == NULL)
        return other;
    memcpy(text, value.begin, size);
    text[size] = '\0';
    return strtod_l(text, NULL, numbers);
}

int64_t json_whole(struct json_span value, locale_t numbers, int64_t other)
{
    double number = json_number(value, numbers, NAN);
    return fabs(number) <= 0x1p53 ? (int64_t)number : other;
}

bool json_each(struct json_span value, bool (*each)(void *context, struct json_span leaf),
               void *context)
{
    const char *at = value.begin;
    while (at != NULL && at < value.end) {
        if (strchr(" \t\r\n,[]", *at) != NULL) {
            at++;
            continue;
        }
        struct json_span leaf = {at, skip_value(at, value.end)};
        if (leaf.end == NULL || !each(context, leaf))
            return false;
        at = leaf.end;
    }
    return at != NULL;
}
