/* log.c - the daemon's log (see log.h).
 *
 * A line is built on the caller's stack, in ASCII, and written at once. It is at most PIPE_BUF
 * bytes: up to that size a pipe takes a line whole, so lines of several processes do not mix
 * either. Source: POSIX, write(); RFC 3629 (UTF-8); RFC 8259 section 7 (escapes);
 * https://no-color.org.
 */
#include "server/log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = PIPE_BUF,
    TAIL_BYTES = 32,    /* kept free for the mark of a cut line and its end */
    VALUE_BYTES = 1024, /* of a string value; the rest of it is left out */
};

static struct {
    atomic_int level; /* any thread, relaxed */
    /* log_open() only, before other threads start */
    bool is_json, is_coloured;
    char process[LOG_PROCESS_BYTES];
} output = {.level = LOG_LEVEL_INFO};

static const char *const level_name[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_ERROR] = "error",
};

/* Escape sequences of a terminal: grey, none, yellow, red. */
static const char *const level_colour[] = {
    [LOG_LEVEL_DEBUG] = "\033[90m",
    [LOG_LEVEL_INFO] = "",
    [LOG_LEVEL_WARNING] = "\033[33m",
    [LOG_LEVEL_ERROR] = "\033[31m",
};

struct line {
    char text[LINE_BYTES];
    size_t size;
    bool is_cut; /* something did not fit; nothing is added any more */
};

void log_open(enum log_level level, enum log_format format, const char *process)
{
    const char *no_color = getenv("NO_COLOR");
    bool is_terminal = isatty(STDERR_FILENO);
    log_set_level(level);
    (void)snprintf(output.process, sizeof output.process, "%s", process != NULL ? process : "");
    output.is_json = format == LOG_FORMAT_JSON || (format == LOG_FORMAT_AUTO && !is_terminal);
    output.is_coloured =
        !output.is_json && is_terminal && (no_color == NULL || no_color[0] == '\0');
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&output.level, (int)level, memory_order_relaxed);
}

__attribute__((format(printf, 2, 3))) static void line_add(struct line *line, const char *format,
                                                           ...)
{
    if (line->is_cut)
        return;
    size_t room = LINE_BYTES - TAIL_BYTES - line->size;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line->text + line->size, room, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < room)
        line->size += (size_t)length;
    else
        line->is_cut = true;
}

static void line_append(struct line *line, const char *data, size_t size)
{
    if (size < LINE_BYTES - TAIL_BYTES - line->size && !line->is_cut) {
        memcpy(line->text + line->size, data, size);
        line->size += size;
    } else {
        line->is_cut = true;
    }
}

/* The code point that begins at *text, which moves behind it; U+FFFD for a byte that is not UTF-8:
 * stray, overlong, a surrogate, beyond U+10FFFF or cut short. */
static uint32_t code_point_next(const unsigned char **text, const unsigned char *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* of so many bytes */
    const unsigned char *at = (*text)++;
    unsigned count = *at < 0x80             ? 1
                     : (*at & 0xe0) == 0xc0 ? 2
                     : (*at & 0xf0) == 0xe0 ? 3
                     : (*at & 0xf8) == 0xf0 ? 4
                                            : 0;
    if (count == 0 || (size_t)(end - at) < count)
        return 0xfffd;
    uint32_t code = count == 1 ? *at : *at & (0x7fu >> count);
    for (unsigned i = 1; i < count; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0xfffd;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if (code < least[count] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0xfffd;
    *text = at + count;
    return code;
}

static bool is_plain(uint32_t code)
{
    return code >= 0x20 && code < 0x7f && code != '"' && code != '\\';
}

/* How many bytes of value[0..size) come before the first that is not plain. */
static size_t plain_span(const char *value, size_t size)
{
    size_t span = 0;
    while (span < size && is_plain((unsigned char)value[span]))
        span++;
    return span;
}

/* Inside the quotes of both formats: what is not plain ASCII is a \u escape, so that neither a line
 * end nor a terminal's control sequence nor a change of writing direction comes from a value. */
static void line_escape(struct line *line, const char *value, size_t size)
{
    const unsigned char *at = (const unsigned char *)value, *end = at + size;
    for (;;) {
        size_t span = plain_span((const char *)at, (size_t)(end - at));
        line_append(line, (const char *)at, span);
        at += span;
        if (at == end)
            return;
        uint32_t code = code_point_next(&at, end);
        if (code == '"' || code == '\\')
            line_add(line, "\\%c", (char)code);
        else if (code == '\n')
            line_add(line, "\\n");
        else if (code < 0x10000)
            line_add(line, "\\u%04" PRIx32, code);
        else
            line_add(line, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((code - 0x10000) >> 10),
                     0xdc00 + ((code - 0x10000) & 0x3ff));
    }
}

/* True when a reader of the text format sees where the value ends without quotes. */
static bool is_bare(const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!is_plain((unsigned char)value[i]) || value[i] == ' ' || value[i] == '=')
            return false;
    return size > 0;
}

static void line_add_string(struct line *line, const char *value)
{
    size_t size = strnlen(value, VALUE_BYTES);
    if (!output.is_json && is_bare(value, size)) {
        line_append(line, value, size);
        return;
    }
    line_append(line, "\"", 1);
    line_escape(line, value, size);
    line_append(line, "\"", 1);
}

static void line_begin(struct line *line, enum log_level level, const char *event)
{
    struct timespec now;
    struct tm utc;
    char time[48];
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &utc);
    const char *name = level_name[level];
    if (output.is_json)
        line_add(line, "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"event\":\"%s\"", time,
                 now.tv_nsec / 1000000, name, event);
    else if (output.is_coloured)
        line_add(line, "%s.%03ldZ %s%s\033[0m %s", time, now.tv_nsec / 1000000, level_colour[level],
                 name, event);
    else
        line_add(line, "%s.%03ldZ %s %s", time, now.tv_nsec / 1000000, name, event);
}

/* A field that does not fit is left out whole, so that the line stays well-formed. */
static void line_add_field(struct line *line, const struct log_field *field)
{
    size_t size = line->size;
    if (output.is_json)
        line_add(line, ",\"%s\":", field->key);
    else
        line_add(line, " %s=", field->key);
    if (field->string != NULL)
        line_add_string(line, field->string);
    else
        line_add(line, "%" PRId64, field->number);
    if (line->is_cut)
        line->size = size;
}

static void line_end(struct line *line)
{
    const char *cut = output.is_json ? ",\"cut\":true" : " cut=true";
    int length = snprintf(line->text + line->size, TAIL_BYTES, "%s%s\n", line->is_cut ? cut : "",
                          output.is_json ? "}" : "");
    assert(length > 0 && length < TAIL_BYTES);
    line->size += (size_t)length;
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    if ((int)level < atomic_load_explicit(&output.level, memory_order_relaxed))
        return;
    struct line line = {.size = 0};
    line_begin(&line, level, event);
    if (output.process[0] != '\0')
        line_add_field(&line, &(const struct log_field)LOG_S("process", output.process));
    for (; fields->key != NULL; fields++)
        line_add_field(&line, fields);
    line_end(&line);
    ssize_t written;
    do
        written = write(STDERR_FILENO, line.text, line.size);
    while (written < 0 && errno == EINTR); /* other failures: there is nobody left to tell */
}
