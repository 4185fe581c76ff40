/* Whatever allocation fails in a request's life, once or from then on: the client gets its result,
 * a problem that says so, or the end of the connection; no memory stays taken; and the next request
 * is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fault/allocations.h"
#include "tests/fault/door.h"

enum { ALLOCATIONS_MAX = 2000 }; /* of one request: none has nearly so many */

struct sample {
    const char *head, *type, *body;
    size_t body_size; /* 0: of the text */
    const char *expected;
};

static const struct door_manner patient = {.patience_ms = -1};

static const char floats[64];       /* 8 float32 of each operand, all zero */
static const char bytes[300 << 10]; /* enough to be summed as it comes */

static char tensors[sizeof bytes + 512];

/* The bytes as two tensors of int8, one row, behind the JSON of an inference. Returns the size of
 * both. */
static size_t tensors_write(void)
{
    size_t n = sizeof bytes / 2;
    int json =
        snprintf(tensors, 512,
                 "{\"inputs\":[{\"name\":\"a\",\"shape\":[%zu],\"datatype\":\"INT8\","
                 "\"parameters\":{\"binary_data_size\":%zu}},{\"name\":\"b\",\"shape\":[%zu],"
                 "\"datatype\":\"INT8\",\"parameters\":{\"binary_data_size\":%zu}}]}",
                 n, n, n, n);
    assert_in_range(json, 1, 511);
    memcpy(tensors + json, bytes, sizeof bytes);
    return (size_t)json + sizeof bytes;
}

static struct sample sample_of(const char *head, const char *type, const char *body,
                               size_t body_size, const char *expected)
{
    return (struct sample){head, type, body, body_size, expected};
}

/* A request that closes its connection. Returns its size. */
static size_t request_write(const struct sample *sample, char *ret, size_t room)
{
    size_t body_size = sample->body_size > 0  ? sample->body_size
                       : sample->body != NULL ? strlen(sample->body)
                                              : 0;
    int used = snprintf(ret, room, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", sample->head);
    if (sample->type != NULL)
        used += snprintf(ret + used, room - (size_t)used, "Content-Type: %s\r\n", sample->type);
    if (sample->body != NULL)
        used += snprintf(ret + used, room - (size_t)used, "Content-Length: %zu\r\n", body_size);
    used += snprintf(ret + used, room - (size_t)used, "\r\n");
    assert_true((size_t)used + body_size < room);
    if (body_size > 0)
        memcpy(ret + used, sample->body, body_size);
    return (size_t)used + body_size;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* 500 is what the HTTP library may answer by itself. */
static void check_answer(const struct sample *sample, const struct door_answers *answers,
                         uint64_t first)
{
    bool is_right =
        starts(answers->data, "HTTP/1.1 200 ") && strstr(answers->data, sample->expected) != NULL;
    bool is_refused =
        starts(answers->data, "HTTP/1.1 503 ") || starts(answers->data, "HTTP/1.1 500 ");
    if (answers->wrong != NULL || !(answers->size == 0 || is_right || is_refused))
        fail_msg("%s, allocation %llu: %s\n%s", sample->head, (unsigned long long)first,
                 answers->wrong != NULL ? answers->wrong : "", answers->data);
    if (is_refused && starts(answers->data, "HTTP/1.1 503 ") &&
        ((strstr(answers->data, "out-of-memory") == NULL &&
          strstr(answers->data, "{\"error\": \"no memory ") == NULL) ||
         strstr(answers->data, "Retry-After") == NULL))
        fail_msg("%s, allocation %llu: %s", sample->head, (unsigned long long)first, answers->data);
}

static void check_serves(const struct sample *sample, const char *request, size_t size)
{
    struct door_answers answers = door_talk(request, size, &patient);
    if (answers.wrong != NULL || !starts(answers.data, "HTTP/1.1 200 ") ||
        strstr(answers.data, sample->expected) == NULL)
        fail_msg("%s: %s", sample->head, answers.data);
    assert_true(door_is_clear());
}

/* True when the request had as many allocations as to meet one that fails. */
static bool try_one(const struct sample *sample, const char *request, size_t size, uint64_t first,
                    bool is_lasting)
{
    allocations_fail(first, is_lasting ? UINT64_MAX : first);
    struct door_answers answers = door_talk(request, size, &patient);
    bool is_clear = door_is_clear();
    uint64_t count = allocations_allow();
    check_answer(sample, &answers, first);
    if (!is_clear)
        fail_msg("%s, allocation %llu: memory stays taken", sample->head,
                 (unsigned long long)first);
    check_serves(sample, request, size);
    return count >= first;
}

static void try_all(struct sample sample)
{
    static char request[sizeof tensors + 1024];
    size_t size = request_write(&sample, request, sizeof request);
    uint64_t first = 1;
    check_serves(&sample, request, size);
    while (first < ALLOCATIONS_MAX && try_one(&sample, request, size, first, false))
        first++;
    print_message("%s: %llu allocations\n", sample.head, (unsigned long long)first - 1);
    assert_in_range(first, 2, ALLOCATIONS_MAX - 1);
    for (uint64_t i = 1; i < first; i++)
        (void)try_one(&sample, request, size, i, true);
}

static void a_json_request_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot", "application/json",
                      "{\"a\":[1,2,3],\"b\":[4,5,6],\"id\":\"x\"}", 0, "\"result\": 32.0"));
}

static void a_json_request_for_a_worker_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(
        sample_of("POST /v1/dot", "application/json",
                  "{\"a\":[1,2,3,4,5,6,7,8,9,10],\"b\":[1,2,3,4,5,6,7,8,9,1e1],\"dtype\":\"f4\"}",
                  0, "\"result\": 385.0"));
}

static void a_json_request_of_many_results_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot", "application/json",
                      "{\"a\":[[1,2],[3,4],[5,6]],\"b\":[[[1,1]],[[2,2]]],\"accuracy\":\"fast\"}",
                      0, "\"shape\": [2, 3]"));
}

static void a_request_with_pairs_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of(
        "POST /v1/dot", "application/json",
        "{\"pairs\":[{\"a\":[1,2],\"b\":[3,4]},{\"a\":[5],\"b\":[6]}],\"diagnostics\":true}", 0,
        "\"result\": [11.0, 30.0]"));
}

static void a_raw_request_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot?dtype=float32&shape_a=2,4&shape_b=2,4",
                      "application/octet-stream", floats, sizeof floats, "\"result\": [0.0, 0.0]"));
}

static void an_interleaved_request_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot?dtype=>f4&layout=interleaved;block=3",
                      "application/octet-stream", floats, sizeof floats, "\"result\": 0.0"));
}

static void a_raw_body_that_is_summed_as_it_comes_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot?dtype=int8&device=cpu", "application/octet-stream", bytes,
                      sizeof bytes, "\"result\": 0"));
}

static void a_raw_body_in_slices_for_a_device_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot?dtype=int8&device=cuda", "application/octet-stream", bytes,
                      sizeof bytes, "\"result\": 0"));
}

static void base64_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("POST /v1/dot", "application/json",
                      "{\"a\":{\"base64\":\"AACAPwAAAEA=\",\"dtype\":\"f4\"},\"b\":[3,4]}", 0,
                      "\"result\": 11.0"));
}

static void numpy_arrays_survive_any_failed_allocation(void **state)
{
    (void)state;
#define ARRAY "\x93NUMPY\x01\x00\x37\x00{'descr': '|i1', 'fortran_order': False, 'shape': (3,)}"
    static const char body[] = ARRAY "\1\2\3" ARRAY "\4\5\6";
    try_all(
        sample_of("POST /v1/dot", "application/x-npy", body, sizeof body - 1, "\"result\": 32"));
}

static void a_form_survives_any_failed_allocation(void **state)
{
    (void)state;
#define PART(name, content) \
    "--xyz\r\nContent-Disposition: form-data; name=" name "\r\n\r\n" content "\r\n"
    try_all(sample_of("POST /v1/dot", "multipart/form-data; boundary=xyz",
                      PART("id", "x") PART("a", "[1,2,3]") PART("b", "[4,5,6]") "--xyz--\r\n", 0,
                      "\"result\": 32.0"));
}

static void a_compressed_body_survives_any_failed_allocation(void **state)
{
    (void)state;
    static const char body[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x4a\x54\xb2\x8a\x36\xd4\x31\xd2\x31\x8e"
        "\xd5\x51\x4a\x02\xb2\x4d\x74\x4c\x75\xcc\x62\x6b\x01\x9e\x35\xdb\x74\x19\x00\x00\x00";
    try_all(sample_of("POST /v1/dot", "application/json\r\nContent-Encoding: gzip", body,
                      sizeof body - 1, "\"result\": 32.0"));
}

static void a_query_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(sample_of("GET /v1/dot?a=1,2,3&b=4,5,6&timeout_ms=1000", NULL, NULL, 0,
                      "\"result\": 32.0"));
}

static void an_inference_survives_any_failed_allocation(void **state)
{
    (void)state;
    try_all(
        sample_of("POST /v2/models/dot_int8/infer", NULL,
                  "{\"inputs\":[{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"INT8\",\"data\":"
                  "[1,2,3,4]},{\"name\":\"b\",\"shape\":[2],\"datatype\":\"INT8\",\"data\":[5,6]}],"
                  "\"id\":\"x\",\"outputs\":[{\"name\":\"result\"}]}",
                  0, "\"data\": [17, 39]"));
}

static void an_inference_with_tensors_as_bytes_survives_any_failed_allocation(void **state)
{
    (void)state;
    size_t size = tensors_write();
    char type[96];
    (void)snprintf(type, sizeof type, "x\r\nInference-Header-Content-Length: %zu",
                   size - sizeof bytes);
    try_all(sample_of("POST /v2/models/dot_int8/infer", type, tensors, size, "\"data\": [0]"));
}

static void pages_survive_any_failed_allocation(void **state)
{
    (void)state;
    static const struct {
        const char *head, *expected;
    } pages[] = {{"GET /", "dotd"},
                 {"GET /livez", "true"},
                 {"GET /readyz", "true"},
                 {"GET /v1/status", "ready"},
                 {"GET /v1/devices", "cpu"},
                 {"GET /v1/limits", "max_body_bytes"},
                 {"GET /problems/", "busy"},
                 {"GET /problems/busy", "busy"},
                 {"GET /metrics", "dotd_"},
                 {"GET /v2", "binary_tensor_data"},
                 {"GET /v2/models/dot", "FP32"},
                 {"GET /v2/models/dot/config", "KIND_CPU"},
                 {"GET /v2/models/stats", "queue"},
                 {"GET /v2/repository/index", "READY"}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        try_all(sample_of(pages[i].head, NULL, NULL, 0, pages[i].expected));
}

static int open_door(void **state)
{
    (void)state;
    allocations_spare_thread();
    return door_open() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_request_survives_any_failed_allocation),
        cmocka_unit_test(a_json_request_for_a_worker_survives_any_failed_allocation),
        cmocka_unit_test(a_json_request_of_many_results_survives_any_failed_allocation),
        cmocka_unit_test(a_request_with_pairs_survives_any_failed_allocation),
        cmocka_unit_test(a_raw_request_survives_any_failed_allocation),
        cmocka_unit_test(an_interleaved_request_survives_any_failed_allocation),
        cmocka_unit_test(a_raw_body_that_is_summed_as_it_comes_survives_any_failed_allocation),
        cmocka_unit_test(a_raw_body_in_slices_for_a_device_survives_any_failed_allocation),
        cmocka_unit_test(base64_survives_any_failed_allocation),
        cmocka_unit_test(numpy_arrays_survive_any_failed_allocation),
        cmocka_unit_test(a_form_survives_any_failed_allocation),
        cmocka_unit_test(a_compressed_body_survives_any_failed_allocation),
        cmocka_unit_test(a_query_survives_any_failed_allocation),
        cmocka_unit_test(an_inference_survives_any_failed_allocation),
        cmocka_unit_test(an_inference_with_tensors_as_bytes_survives_any_failed_allocation),
        cmocka_unit_test(pages_survive_any_failed_allocation),
    };
    return cmocka_run_group_tests(tests, open_door, NULL);
}
