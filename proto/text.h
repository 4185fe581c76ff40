/* text.h - a growing piece of output text. A failed allocation is remembered, so that a writer
 * appends without checks and asks once at the end. */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    char *data;      /* NUL-terminated when size > 0; owned */
    size_t size;     /* bytes in use, without the NUL */
    size_t capacity; /* bytes allocated */
    bool failed;     /* out of memory; later appends do nothing */
};

void text_init(struct text *text);
void text_fini(struct text *text);
void text_clear(struct text *text); /* empty again; keeps the memory for the next use */

/* What text_room() does when there is not enough: more memory, or NULL and failed. */
char *text_grow(struct text *text, size_t size);

/* Room for `size` more bytes: where to write, then text_advance() by what was written. NULL: it
 * failed. */
static inline char *text_room(struct text *text, size_t size)
{
    if (__builtin_expect(text->capacity - text->size > size, 1))
        return text->data + text->size; /* never once it has failed: capacity is size */
    return text_grow(text, size);
}

static inline void text_advance(struct text *text, size_t size)
{
    text->size += size;
    text->data[text->size] = '\0';
}

/* Inline: an answer is some forty appends of literals, each a store or two once its size is
 * known. */
static inline void text_append(struct text *text, const char *data, size_t size)
{
    char *room = text_room(text, size);
    if (room == NULL)
        return;
    memcpy(room, data, size);
    text_advance(text, size);
}

static inline void text_string(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_uint(struct text *text, uint64_t value);

/* A JSON string with its quotes: escapes what RFC 8259 requires, replaces bytes that are not UTF-8
 * by U+FFFD, so that the output is always strict JSON. */
void text_json_string(struct text *text, const char *string);

/* Writes in room that is there: where the next byte goes. text_end() then says that so much of it is
 * text. One check of room for all of a line costs half of one for each of its pieces. */
static inline char *text_put(char *to, const char *data, size_t size)
{
    memcpy(to, data, size);
    return to + size;
}

static inline void text_end(struct text *text, const char *end)
{
    text_advance(text, (size_t)(end - text->data) - text->size);
}

/* Sixteen digits, small letters; no NUL. */
void text_put_hex(char to[static 16], uint64_t value);

/* Nanoseconds as microseconds with three decimals ("12.345"), or as milliseconds with six: exact,
 * so that printed parts add up to the printed total. Takes room of TEXT_DURATION_BYTES. */
enum { TEXT_DURATION_BYTES = 24 };
char *text_put_us(char *to, int64_t ns);
char *text_put_ms(char *to, int64_t ns);

#endif
