/* head.c - heads that pass are framed in one way only. The input is lines of "name:value". */
#include <strings.h>

#include "server/framing.h"
#include "tests/fuzz/fuzz.h"

enum { LINES_MAX = 64 };

struct line {
    char *name, *value; /* owned */
    size_t name_size, value_size;
};

static size_t lines_split(const struct input *input, struct line *line)
{
    const uint8_t *at = input->data, *end = at + input->size;
    size_t count = 0;
    while (at < end && count < LINES_MAX) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        const uint8_t *colon = memchr(at, ':', (size_t)(stop - at));
        const uint8_t *name_end = colon != NULL ? colon : stop,
                      *value = colon != NULL ? colon + 1 : stop;
        line[count].name_size = (size_t)(name_end - at);
        line[count].value_size = (size_t)(stop - value);
        line[count].name = text_of(at, line[count].name_size);
        line[count].value = text_of(value, line[count].value_size);
        count++;
        at = stop < end ? stop + 1 : end;
    }
    return count;
}

/* RFC 9110 section 5.6.2, spelled out once more. */
static bool is_token(const struct line *line)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return line->name_size > 0 && strspn(line->name, token) == line->name_size;
}

static bool has_control(const struct line *line)
{
    for (size_t i = 0; i < line->value_size; i++)
        if (((unsigned char)line->value[i] < ' ' && line->value[i] != '\t') ||
            line->value[i] == 0x7f)
            return true;
    return false;
}

/* The only line of that name, if there is one; ret_count says how many there are. */
static const struct line *find(const struct line *line, size_t count, const char *name,
                               unsigned *ret_count)
{
    const struct line *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(line[i].name, name) == 0) {
            found = &line[i];
            ++*ret_count;
        }
    return found;
}

/* RFC 9112 section 6.3: at most one of the two says where the body ends, and it says so plainly. */
static void check_framing(const struct head *head, const struct line *line, size_t count)
{
    unsigned lengths, codings;
    const struct line *length = find(line, count, "Content-Length", &lengths);
    const struct line *coding = find(line, count, "Transfer-Encoding", &codings);
    CHECK(lengths + codings <= 1, "%u lengths, %u codings", lengths, codings);
    if (coding != NULL)
        CHECK(strcasecmp(coding->value, "chunked") == 0, "%s", coding->value);
    if (length == NULL)
        return;
    char *end, spelled[32];
    unsigned long long value = strtoull(length->value, &end, 10);
    CHECK(*end == '\0' && strspn(length->value, "0123456789") == length->value_size &&
              value <= INT64_MAX,
          "%s", length->value);
    (void)snprintf(spelled, sizeof spelled, "%llu", value);
    CHECK(head->content_length == value &&
              strcmp(length->value + strspn(length->value, "0"), value == 0 ? "" : spelled) == 0,
          "%s", length->value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    bool is_old = (input_byte(&input) & 1) != 0;
    struct line line[LINES_MAX];
    struct head head = {0};
    struct problem problem;
    size_t count = lines_split(&input, line);
    const struct line *odd = NULL;
    problem_clear(&problem);
    for (size_t i = 0; i < count; i++) {
        if (!is_token(&line[i]) || has_control(&line[i]))
            odd = &line[i];
        head_add(&head, line[i].name, line[i].name_size, line[i].value, line[i].value_size);
    }
    enum error err = head_check(&head, is_old ? "HTTP/1.0" : "HTTP/1.1", &problem);
    CHECK(err == problem.error, "%d, %d", err, problem.error);
    if (err == ERR_OK) {
        CHECK(odd == NULL, "%s:%s", odd->name, odd->value);
        unsigned hosts;
        check_framing(&head, line, count);
        (void)find(line, count, "Host", &hosts);
        CHECK(hosts == 1 || (hosts == 0 && is_old), "%u hosts", hosts);
    }
    for (size_t i = 0; i < count; i++) {
        free(line[i].name);
        free(line[i].value);
    }
    return 0;
}
