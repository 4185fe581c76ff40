/* framing.c - the guards on a request's head (see framing.h). Source: RFC 9112 sections 2.2, 3.2,
 * 5 and 6; RFC 9110 sections 5.5 and 5.6.2. */
#include "server/framing.h"

#include <string.h>
#include <strings.h>

/* tchar of RFC 9110 section 5.6.2: what a field name may hold. */
static const bool is_tchar[256] = {
    ['!'] = true,         ['#' ... '\''] = true, ['*'] = true,         ['+'] = true,
    ['-'] = true,         ['.'] = true,          ['0' ... '9'] = true, ['A' ... 'Z'] = true,
    ['^' ... 'z'] = true, ['|'] = true,          ['~'] = true,
};

static bool is_token(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!is_tchar[(unsigned char)text[i]])
            return false;
    return size > 0;
}

/* The top bit of each byte of the word that is below 0x20, or 0x7f; bytes above the first of them
 * may be marked wrongly. */
static uint64_t controls8(const char *text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word, rubout;
    memcpy(&word, text, sizeof word);
    rubout = word ^ ones * 0x7f;
    return ((word - ones * 0x20) & ~word & ones * 0x80) | ((rubout - ones) & ~rubout & ones * 0x80);
}

static bool has_controls(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return true;
    }
    return false;
}

/* A value with a control character was cut or joined somewhere: NUL, bare CR, obs-fold. */
static bool is_field_value(const char *text, size_t size)
{
    size_t clean = 0;
    while (size - clean >= 8 && controls8(text + clean) == 0)
        clean += 8;
    return !has_controls(text + clean, size - clean);
}

static bool parse_length(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || value > (uint64_t)INT64_MAX / 10 - 1)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *ret = value;
    return true;
}

static void add_length(struct head *head, const char *value)
{
    head->length_count++;
    head->length_is_bad |= !parse_length(value, &head->content_length);
}

static void add_coding(struct head *head, const char *value)
{
    head->coding_count++;
    head->is_chunked = strcasecmp(value, "chunked") == 0;
}

static void add_host(struct head *head, const char *value)
{
    (void)value;
    head->host_count++;
}

/* A list of words with commas (RFC 9110 section 7.6.1). */
static void add_connection(struct head *head, const char *value)
{
    static const char between[] = " \t,", last[] = "close";
    while (*value != '\0') {
        size_t size = strcspn(value, between);
        head->is_last |= size == sizeof last - 1 && strncasecmp(value, last, size) == 0;
        value += size;
        value += strspn(value, between);
    }
}

static void add_expect(struct head *head, const char *value)
{
    bool is_continue = strcasecmp(value, "100-continue") == 0;
    head->expects_continue |= is_continue;
    head->expects_other |= !is_continue;
}

static void add_accept(struct head *head, const char *value)
{
    head->accept = value;
}

static void add_content_encoding(struct head *head, const char *value)
{
    head->repeats_encoding |= head->content_encoding != NULL;
    head->content_encoding = value;
}

static void add_content_type(struct head *head, const char *value)
{
    head->content_type = value;
}

static void add_request_id(struct head *head, const char *value)
{
    head->request_id = value;
}

static void add_timeout_ms(struct head *head, const char *value)
{
    head->repeats_timeout |= head->timeout_ms != NULL;
    head->timeout_ms = value;
}

/* Framing is judged as it stands, blanks and all: libmicrohttpd, which does not cut them off, goes
 * by it as well, and takes "chunked " for no coding that it knows. */
static const struct known {
    const char *name;
    size_t size;
    void (*add)(struct head *head, const char *value);
    bool is_framing;
} known[] = {
#define KNOWN(name, add, is_framing)            \
    {                                           \
        name, sizeof(name) - 1, add, is_framing \
    }
    KNOWN("Content-Length", add_length, true),
    KNOWN("Transfer-Encoding", add_coding, true),
    KNOWN("Connection", add_connection, true),
    KNOWN("Host", add_host, false),
    KNOWN("Expect", add_expect, false),
    KNOWN("Accept", add_accept, false),
    KNOWN("Content-Encoding", add_content_encoding, false),
    KNOWN("Content-Type", add_content_type, false),
    KNOWN("X-Request-Id", add_request_id, false),
    KNOWN("X-Timeout-Ms", add_timeout_ms, false),
#undef KNOWN
};

static void cut_blanks(char *value, size_t size)
{
    while (size > 0 && (value[size - 1] == ' ' || value[size - 1] == '\t'))
        value[--size] = '\0';
}

static void add_known(struct head *head, const char *name, size_t name_size, char *value,
                      size_t value_size)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == name_size && strncasecmp(known[i].name, name, name_size) == 0) {
            if (!known[i].is_framing)
                cut_blanks(value, value_size);
            known[i].add(head, value);
            return;
        }
}

void head_add(struct head *head, const char *name, size_t name_size, char *value, size_t value_size)
{
    if (!is_token(name, name_size))
        head->flaw = "a header name holds a character that is not allowed there (a space before "
                     "the colon, or a folded line)";
    else if (!is_field_value(value, value_size))
        head->flaw = "a header value holds a control character";
    else
        add_known(head, name, name_size, value, value_size);
}

static enum error check_codings(const struct head *head, struct problem *problem)
{
    if (head->coding_count > 1)
        return problem_set(problem, ERR_FRAMING, "more than one Transfer-Encoding");
    if (head->length_count > 0)
        return problem_set(problem, ERR_FRAMING, "Content-Length together with Transfer-Encoding");
    if (!head->is_chunked)
        return problem_set(problem, ERR_CODING, "Transfer-Encoding may only be chunked");
    return ERR_OK;
}

enum error head_check(const struct head *head, const char *version, struct problem *problem)
{
    if (head->flaw != NULL)
        return problem_set(problem, ERR_FRAMING, "%s", head->flaw);
    if (head->length_count > 1)
        return problem_set(problem, ERR_FRAMING, "more than one Content-Length");
    if (head->coding_count > 0) {
        enum error error = check_codings(head, problem);
        if (error != ERR_OK)
            return error;
    }
    if (head->length_is_bad)
        return problem_set(problem, ERR_TOO_LARGE, "Content-Length is not a size that can be met");
    if (head->host_count > 1)
        return problem_set(problem, ERR_FRAMING, "more than one Host");
    if (head->host_count == 0 && strcmp(version, "HTTP/1.0") != 0)
        return problem_set(problem, ERR_FRAMING, "no Host header (RFC 9112 section 3.2)");
    if (head->expects_other)
        return problem_set(problem, ERR_EXPECT, "Expect may only be 100-continue");
    return ERR_OK;
}
