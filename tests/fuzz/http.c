/* http.c - the HTTP door with a real loop behind it: whatever comes through a socket, what goes
 * back are whole answers, the connection ends, no memory stays taken, and the next client is
 * served. */
#include <jansson.h>
#include <strings.h>

#include "tests/fault/door.h"
#include "tests/fuzz/fuzz.h"

/* --- what comes back --- */

/* The value of a header line in head, or NULL. */
static const char *header(const char *head, const char *end, const char *name)
{
    for (const char *line = head; line != NULL && line < end;) {
        if (strncasecmp(line, name, strlen(name)) == 0)
            return line + strlen(name);
        line = strstr(line, "\r\n");
        line = line != NULL ? line + 2 : NULL;
    }
    return NULL;
}

static void check_json(const char *type, const char *body, size_t size, int status)
{
    json_error_t error;
    if (type == NULL || strncmp(type, "application/", 12) != 0 || strstr(type, "json") == NULL ||
        strstr(type, "json") > strstr(type, "\r\n"))
        return;
    if (size > 13 && strncmp(body, "{\"model_name\"", 13) == 0)
        return; /* of an inference, whose numbers may be NaN */
    json_t *root = json_loadb(body, size, JSON_REJECT_DUPLICATES, &error);
    CHECK(root != NULL, "%s: %.*s", error.text, (int)size, body);
    if (strncmp(type, "application/problem", 19) == 0)
        CHECK(json_integer_value(json_object_get(root, "status")) == status, "%.*s", (int)size,
              body);
    json_decref(root);
}

/* One answer at p; returns what comes behind it. Only an answer to HEAD has a length and no
 * body. */
static const char *check_answer(const char *p, const char *end)
{
    int status = 0;
    CHECK(sscanf(p, "HTTP/1.%*1[01] %3d ", &status) == 1 && status >= 100 && status < 600, "%.60s",
          p);
    const char *body = strstr(p, "\r\n\r\n");
    CHECK(body != NULL, "a head without an end: %.400s", p);
    body += 4;
    const char *length = header(p, body, "Content-Length:");
    size_t size = length != NULL ? strtoul(length, NULL, 10) : 0;
    CHECK(status < 200 || length != NULL, "no length: %.400s", p);
    if (size == 0 || body == end || strncmp(body, "HTTP/1.", 7) == 0)
        return body;
    CHECK(size <= (size_t)(end - body), "%zu of %zu bytes: %.400s", (size_t)(end - body), size, p);
    check_json(header(p, body, "Content-Type: "), body, size, status);
    return body + size;
}

static size_t next_piece(void *context, size_t left)
{
    return cuts_next(context, left);
}

static void check_serves(void)
{
    static const char request[] = "GET /v1/dot?a=1,2,3&b=4,5,6 HTTP/1.1\r\nHost: x\r\n"
                                  "Connection: close\r\n\r\n";
    const struct door_manner plain = {.patience_ms = -1};
    struct door_answers answers = door_talk(request, sizeof request - 1, &plain);
    CHECK(strncmp(answers.data, "HTTP/1.1 200 ", 13) == 0 &&
              strstr(answers.data, "\"result\": 32.0") != NULL,
          "%s", answers.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned count;
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    const struct door_manner manner = {
        .next = next_piece, .context = &cuts, .patience_ms = cuts.seed & 1 ? 2 : 0};
    if (input.size > DOOR_BODY_BYTES)
        return 0;
    if (count == 0)
        CHECK(door_open(), "the door does not open");
    struct door_answers answers = door_talk(input.data, input.size, &manner);
    CHECK(answers.wrong == NULL, "%s; before: %s", answers.wrong, answers.data);
    for (const char *p = answers.data; p < answers.data + answers.size;)
        p = check_answer(p, answers.data + answers.size);
    CHECK(door_is_clear(), "something stays");
    if (count++ % 16 == 0)
        check_serves();
    return 0;
}
