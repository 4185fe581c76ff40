/* call.c - requests on curl handles (see call.h).
 *
 * The body is never put together: curl asks for it in pieces, which are copied from where a and b
 * lie into curl's own buffer.
 */
#include "call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"

enum {
    TIMEOUT_MS = 60000,
    RETRIES = 3,
    URL_BYTES = 4096,
    UPLOAD_BYTES = 1 << 20, /* curl's buffer: 64 KiB are a system call each */
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are sent as they lie");

struct part {
    const char *data;
    uint64_t size;
};

struct call {
    const struct account *account; /* borrowed: the client outlives its calls */
    CURL *easy;
    struct part part[2]; /* borrowed from the caller until call_end() */
    uint64_t sent;       /* bytes of both */
    char *body;          /* owned: of the answer */
    size_t size, capacity;
    char url[URL_BYTES];
    size_t query; /* where timeout_ms goes in url */
    unsigned timeout_ms;
    char curl_error[CURL_ERROR_SIZE];
};

static size_t known_size(size_t callers, size_t ours)
{
    return callers < ours ? callers : ours;
}

static enum dotd_code add_header(struct account *account, const char *line)
{
    struct curl_slist *headers = curl_slist_append(account->headers, line);
    if (headers == NULL)
        return DOTD_NO_MEMORY;
    account->headers = headers;
    return DOTD_OK;
}

static enum dotd_code add_token(struct account *account, const char *token)
{
    char line[URL_BYTES];
    for (const char *at = token; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return DOTD_BAD_ARGUMENT;
    int length = snprintf(line, sizeof line, "Authorization: Bearer %s", token);
    return length < (int)sizeof line ? add_header(account, line) : DOTD_BAD_ARGUMENT;
}

/* An address is http or https, with nothing after its path. */
static bool is_address(const char *url)
{
    return (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) &&
           strpbrk(url, "?# \r\n") == NULL && strlen(url) < URL_BYTES / 2;
}

static enum dotd_code account_fill(struct account *account, const struct dotd_config *config)
{
    account->timeout_ms = config->timeout_ms != 0 ? config->timeout_ms : TIMEOUT_MS;
    account->retries = config->retries != 0 ? config->retries : RETRIES;
    if (config->retries == DOTD_NO_RETRY)
        account->retries = 0;
    account->url = strdup(config->url);
    account->numbers = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (account->url == NULL || account->numbers == (locale_t)0)
        return DOTD_NO_MEMORY;
    for (size_t end = strlen(account->url); end > 0 && account->url[end - 1] == '/';)
        account->url[--end] = '\0';
    enum dotd_code code = add_header(account, "Content-Type: application/octet-stream");
    if (code == DOTD_OK)
        code = add_header(account, "Accept: application/json");
    if (code == DOTD_OK && config->token != NULL)
        code = add_token(account, config->token);
    return code;
}

enum dotd_code account_init(struct account *ret, const struct dotd_config *config,
                            struct dotd_error *error)
{
    struct dotd_config known = {0};
    *ret = (struct account){0};
    memcpy(&known, config, known_size(config->size, sizeof known));
    if (known.url == NULL || !is_address(known.url))
        return error_set(error, DOTD_BAD_ARGUMENT, "url is no address like http://127.0.0.1:8080");
    enum dotd_code code = account_fill(ret, &known);
    if (code == DOTD_OK)
        return DOTD_OK;
    account_fini(ret);
    *ret = (struct account){0};
    return error_set(error, code,
                     code == DOTD_NO_MEMORY ? "no memory for a client"
                                            : "a token is made of visible ASCII characters");
}

void account_fini(struct account *account)
{
    free(account->url);
    curl_slist_free_all(account->headers);
    if (account->numbers != (locale_t)0)
        freelocale(account->numbers);
}

/* curl's callbacks; call is their closure. */

static size_t on_read(char *buffer, size_t size, size_t count, void *closure)
{
    struct call *call = closure;
    size_t room = size * count, given = 0;
    uint64_t offset = call->sent;
    for (int i = 0; i < 2 && given < room; i++) {
        const struct part *part = &call->part[i];
        if (offset >= part->size) {
            offset -= part->size;
            continue;
        }
        uint64_t left = part->size - offset;
        size_t piece = left < room - given ? (size_t)left : room - given;
        memcpy(buffer + given, part->data + offset, piece);
        given += piece;
        offset = 0;
    }
    call->sent += given;
    return given;
}

/* curl starts over when a kept connection turns out to have ended. */
static int on_seek(void *closure, curl_off_t offset, int origin)
{
    struct call *call = closure;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    call->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static size_t on_write(char *data, size_t size, size_t count, void *closure)
{
    struct call *call = closure;
    size_t more = size * count, needed = call->size + more;
    if (needed > call->capacity) {
        size_t capacity = 2 * needed;
        char *body = realloc(call->body, capacity);
        if (body == NULL)
            return 0;
        call->body = body;
        call->capacity = capacity;
    }
    memcpy(call->body + call->size, data, more);
    call->size = needed;
    return more;
}

static CURLcode set_up(struct call *call)
{
    CURL *easy = call->easy;
    CURLcode bad = CURLE_OK;
    bad |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L); /* threads may be about */
    bad |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= curl_easy_setopt(easy, CURLOPT_POST, 1L);
    bad |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->account->headers);
    bad |= curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
    bad |= curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    bad |= curl_easy_setopt(easy, CURLOPT_READDATA, call);
    bad |= curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    bad |= curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
    bad |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    bad |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    bad |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_error);
    return bad;
}

enum dotd_code call_create(struct call **ret, const struct account *account)
{
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return DOTD_NO_MEMORY;
    call->account = account;
    call->easy = curl_easy_init();
    if (call->easy == NULL || set_up(call) != CURLE_OK) {
        call_destroy(call);
        return DOTD_NO_MEMORY;
    }
    *ret = call;
    return DOTD_OK;
}

void call_destroy(struct call *call)
{
    if (call == NULL)
        return;
    curl_easy_cleanup(call->easy);
    free(call->body);
    free(call);
}

CURL *call_easy(const struct call *call)
{
    return call->easy;
}

unsigned call_timeout_ms(const struct call *call)
{
    return call->timeout_ms;
}

/* Appends to the URL; false: it is too long. */
__attribute__((format(printf, 2, 3))) static bool url_add(struct call *call, const char *format,
                                                          ...)
{
    va_list arguments;
    size_t room = URL_BYTES - call->query;
    va_start(arguments, format);
    int length = vsnprintf(call->url + call->query, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room)
        return false;
    call->query += (size_t)length;
    return true;
}

static bool url_add_text(struct call *call, const char *name, const char *value)
{
    if (value == NULL)
        return true;
    char *escaped = curl_easy_escape(call->easy, value, 0);
    bool ok = escaped != NULL && url_add(call, "&%s=%s", name, escaped);
    curl_free(escaped);
    return ok;
}

static bool url_add_shape(struct call *call, const char *name, const struct dotd_shape *shape)
{
    bool ok = url_add(call, "&%s=", name);
    for (unsigned i = 0; ok && i < shape->rank; i++)
        ok = url_add(call, "%s%" PRIu64, i > 0 ? "," : "", shape->dim[i]);
    return ok;
}

static bool url_make(struct call *call, const struct dotd_options *options)
{
    enum dotd_dtype dtype = options->dtype != DOTD_DEFAULT ? options->dtype : DOTD_FLOAT64;
    call->query = 0;
    bool ok = url_add(call, "%s/v1/dot?dtype=%s", call->account->url, dtype_name(dtype)) &&
              url_add_text(call, "result_dtype", dtype_name(options->result_dtype)) &&
              url_add_text(call, "accuracy", options->accuracy) &&
              url_add_text(call, "kernel", options->kernel) &&
              url_add_text(call, "device", options->device) &&
              url_add_text(call, "id", options->id) &&
              (!options->conjugate || url_add(call, "&conjugate=true")) &&
              (!options->diagnostics || url_add(call, "&diagnostics=true"));
    if (ok && options->shape_a.rank > 0)
        ok = url_add_shape(call, "shape_a", &options->shape_a) &&
             url_add_shape(call, "shape_b", &options->shape_b);
    return ok && URL_BYTES - call->query > 32; /* timeout_ms comes last */
}

/* Bytes of an operand; false: beyond counting. */
static bool operand_size(const struct dotd_shape *shape, size_t n, size_t element_size,
                         uint64_t *ret)
{
    uint64_t size = element_size;
    bool overflows = false;
    for (unsigned i = 0; i < shape->rank; i++)
        overflows |= __builtin_mul_overflow(size, shape->dim[i], &size);
    if (shape->rank == 0)
        overflows = __builtin_mul_overflow(size, n, &size);
    *ret = size;
    return !overflows && size <= INT64_MAX / 2;
}

static const char *fault_of(struct call *call, const void *a, const void *b, size_t n,
                            const struct dotd_options *options)
{
    enum dotd_dtype dtype = options->dtype != DOTD_DEFAULT ? options->dtype : DOTD_FLOAT64;
    size_t element_size = dotd_size(dtype);
    if (element_size == 0 || options->result_dtype > DOTD_COMPLEX128)
        return "no such type of elements";
    if (options->shape_a.rank > DOTD_RANK_MAX || options->shape_b.rank > DOTD_RANK_MAX ||
        (options->shape_a.rank == 0) != (options->shape_b.rank == 0))
        return "both shapes or neither, of 8 dimensions at most";
    if (!operand_size(&options->shape_a, n, element_size, &call->part[0].size) ||
        !operand_size(&options->shape_b, n, element_size, &call->part[1].size))
        return "more elements than can be counted";
    if ((a == NULL && call->part[0].size > 0) || (b == NULL && call->part[1].size > 0))
        return "an operand is NULL";
    return url_make(call, options) ? NULL : "the options are too long";
}

enum dotd_code call_begin(struct call *call, const void *a, const void *b, size_t n,
                          const struct dotd_options *options, struct dotd_error *error)
{
    struct dotd_options known = {0};
    if (options != NULL)
        memcpy(&known, options, known_size(options->size, sizeof known));
    const char *fault = fault_of(call, a, b, n, &known);
    if (fault != NULL)
        return error_set(error, DOTD_BAD_ARGUMENT, fault);
    call->part[0].data = a;
    call->part[1].data = b;
    call->timeout_ms = known.timeout_ms != 0 ? known.timeout_ms : call->account->timeout_ms;
    call_repeat(call, call->timeout_ms);
    return DOTD_OK;
}

void call_repeat(struct call *call, unsigned timeout_ms)
{
    call->sent = call->size = 0;
    call->curl_error[0] = '\0';
    snprintf(call->url + call->query, URL_BYTES - call->query, "&timeout_ms=%u", timeout_ms);
    curl_easy_setopt(call->easy, CURLOPT_URL, call->url);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)(call->part[0].size + call->part[1].size));
    curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
}

/* libcurl calls an answer that is not HTTP an unsupported protocol, as it does an address. */
static enum dotd_code code_of(CURLcode done, CURL *easy)
{
    long sent_bytes = 0;
    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent_bytes);
    switch (done) {
    case CURLE_OPERATION_TIMEDOUT:
        return DOTD_LATE;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_WRITE_ERROR: /* on_write() has no other reason */
        return DOTD_NO_MEMORY;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        return sent_bytes > 0 ? DOTD_BAD_ANSWER : DOTD_BAD_ARGUMENT;
    case CURLE_WEIRD_SERVER_REPLY:
        return DOTD_BAD_ANSWER;
    default:
        return DOTD_UNREACHABLE;
    }
}

static enum dotd_code refusal(struct call *call, struct json_span body, long status,
                              struct dotd_error *error)
{
    curl_off_t retry_after_s = 0;
    struct dotd_error made;
    answer_problem(body, (int)status, call->account->numbers, &made);
    curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    made.retry_after_s = retry_after_s > 0 ? (int)retry_after_s : -1;
    if (error != NULL)
        *error = made;
    return made.code;
}

enum dotd_code call_end(struct call *call, CURLcode done, struct dotd_result *ret,
                        struct dotd_error *error)
{
    long status = 0;
    struct json_span body = {call->body, call->body + call->size};
    if (call->size == 0)
        body = (struct json_span){"", ""};
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (done != CURLE_OK) {
        const char *why = call->curl_error[0] != '\0' ? call->curl_error : curl_easy_strerror(done);
        enum dotd_code code = error_set(error, code_of(done, call->easy), why);
        if (error != NULL)
            error->status = (int)status;
        return code;
    }
    if (status != 200)
        return refusal(call, body, status, error);
    enum dotd_code code = answer_result(body, call->account->numbers, ret);
    if (code == DOTD_OK)
        return DOTD_OK;
    return error_set(error, code,
                     code == DOTD_NO_MEMORY ? "no memory for the results"
                                            : "an answer of status 200 is not one of dotd's");
}
