/* query.c - query strings decode alike when any of their bytes are percent-encoded, into as many
 * elements as commas say. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 20, MAX_RESULTS = 1 };

struct reading {
    struct request request;
    enum error error;
    struct problem problem;
};

static void read_query(struct reading *ret, const char *query)
{
    request_init(&ret->request, &buffer_heap);
    problem_clear(&ret->problem);
    ret->error = query_decode(&ret->request, query, MAX_BYTES, &ret->problem);
    if (ret->error == ERR_OK)
        ret->error = request_check(&ret->request, MAX_RESULTS, &ret->problem);
    CHECK(ret->error == ret->problem.error, "error %d", ret->error);
}

/* Every byte that has no meaning of its own becomes %XX. */
static char *encode(const char *query)
{
    char *text = malloc(3 * strlen(query) + 1), *p = text;
    CHECK(text != NULL, "no memory");
    bool is_value = false;
    for (; *query != '\0'; query++) {
        bool is_mark = *query == '&' || (*query == '=' && !is_value);
        is_value = *query == '=' || (is_value && *query != '&');
        p += is_mark ? sprintf(p, "%c", *query) : sprintf(p, "%%%02x", (unsigned char)*query);
    }
    *p = '\0';
    return text;
}

static void check_encoded(const struct reading *plain, const char *query)
{
    struct reading encoded;
    char *text = encode(query);
    if (strlen(text) <= LIMIT_QUERY_BYTES) {
        read_query(&encoded, text);
        CHECK(plain->error == encoded.error, "%s, %s", plain->problem.detail,
              encoded.problem.detail);
        if (plain->error == ERR_OK)
            check_same_request(&plain->request, &encoded.request);
        request_fini(&encoded.request);
    }
    free(text);
}

static void check_options_alone(const char *query)
{
    struct request request;
    struct problem problem;
    request_init(&request, &buffer_heap);
    problem_clear(&problem);
    enum error err = options_from_query(&request.options, query, NULL, NULL, &problem);
    CHECK(err == problem.error, "error %d", err);
    request_fini(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading plain;
    char *query = text_of(data, size);
    read_query(&plain, query);
    if (strchr(query, '%') == NULL)
        check_encoded(&plain, query);
    check_options_alone(query);
    request_fini(&plain.request);
    free(query);
    return 0;
}
