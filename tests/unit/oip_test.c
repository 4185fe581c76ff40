/* oip_test.c - inferences: bodies of JSON and bytes at every cut, and answers to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/oip.h"

enum { MAX_BYTES = 1 << 16, SUMMARY_BYTES = 1024 };

struct body {
    const char *json;
    const float *floats; /* follow it, [count]; NULL: nothing does, and no header says so */
    size_t count;
};

static const float eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};

#define A_BYTES                                            \
    "{\"name\":\"a\",\"shape\":[4],\"datatype\":\"FP32\"," \
    "\"parameters\":{\"binary_data_size\":16}}"
#define B_BYTES                                            \
    "{\"name\":\"b\",\"shape\":[4],\"datatype\":\"FP32\"," \
    "\"parameters\":{\"binary_data_size\":16}}"
#define A_DATA "{\"name\":\"a\",\"shape\":[4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}"
#define B_DATA "{\"name\":\"b\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[[5,6],[7,8]]}"
#define B_FLAT "{\"name\":\"b\",\"shape\":[4],\"datatype\":\"FP32\",\"data\":[5,6,7,8]}"

static void take(void *context, const void *a, const void *b, uint64_t n)
{
    float *sum = context;
    for (uint64_t i = 0; i < n; i++)
        *sum += ((const float *)a)[i] * ((const float *)b)[i];
}

/* The whole body, first bytes of it in one piece and then the rest. */
static enum error decode(struct request *request, struct oip_call *call, const struct body *body,
                         const struct sink *sink, size_t first, struct problem *problem)
{
    struct decoder *decoder = NULL;
    char length[24], *bytes;
    size_t json = strlen(body->json), size = json + body->count * sizeof(float);
    (void)snprintf(length, sizeof length, "%zu", json);
    bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, body->json, json);
    if (body->floats != NULL)
        memcpy(bytes + json, body->floats, size - json);
    *call = (struct oip_call){.model = oip_model_find("dot", 3)};
    request_init(request, &buffer_heap);
    request->sink = sink;
    problem_clear(problem);
    enum error err = oip_decoder_create(
        &decoder, call, request, body->floats != NULL ? length : NULL, size, MAX_BYTES, problem);
    first = first < size ? first : size;
    if (err == ERR_OK)
        err = decoder_feed(decoder, bytes, first, problem);
    if (err == ERR_OK && first < size)
        err = decoder_feed(decoder, bytes + first, size - first, problem);
    if (err == ERR_OK)
        err = decoder_finish(decoder, problem);
    if (err == ERR_OK)
        err = request_check(request, 100, problem);
    decoder_destroy(decoder);
    free(bytes);
    return err;
}

/* Everything that a decoding gave, as one text. */
static void summarize(char *ret, enum error err, const struct request *request,
                      const struct oip_call *call, const struct problem *problem)
{
    int used;
    if (err != ERR_OK) {
        (void)snprintf(ret, SUMMARY_BYTES, "%s %s %lld %s", error_name(err), problem->pointer,
                       (long long)problem->offset, problem->detail);
        return;
    }
    used = snprintf(ret, SUMMARY_BYTES,
                    "id '%s' timeout %llu binary %d results %llu:", request->options.id,
                    (unsigned long long)request->options.timeout_ms, call->wants_binary,
                    (unsigned long long)request->result_count);
    for (int i = 0; i < 8; i++) {
        const struct tensor *tensor = i < 4 ? &request->pair->a : &request->pair->b;
        float value;
        assert_int_equal(tensor->offset % LIMIT_OPERAND_ALIGN, 0);
        memcpy(&value, (const char *)request->buffer.block.data + tensor->offset + 4 * (i % 4), 4);
        used += snprintf(ret + used, SUMMARY_BYTES - (size_t)used, " %g", (double)value);
    }
}

static void check_every_cut(const struct body *body, const char *expected)
{
    size_t size = strlen(body->json) + body->count * sizeof(float);
    for (size_t first = 1; first <= size; first++) {
        struct request request;
        struct oip_call call;
        struct problem problem;
        char summary[SUMMARY_BYTES];
        enum error err = decode(&request, &call, body, NULL, first, &problem);
        summarize(summary, err, &request, &call, &problem);
        if (strncmp(summary, expected, strlen(expected)) != 0)
            fail_msg("%s cut at %zu: %s", body->json, first, summary);
        request_fini(&request);
    }
}

static void tensors_land_alike_wherever_they_stand_and_the_body_is_cut(void **state)
{
    static const char all[] = "id '' timeout 0 binary 0 results 1: 1 2 3 4 5 6 7 8";
    (void)state;
    check_every_cut(&(struct body){"{\"inputs\":[" A_DATA "," B_FLAT "]}", NULL, 0}, all);
    check_every_cut(&(struct body){"{\"inputs\":[" A_BYTES "," B_BYTES "]} ", eight, 8}, all);
    check_every_cut(&(struct body){"{\"inputs\":[" A_DATA "," B_BYTES "]}", eight + 4, 4}, all);
    check_every_cut(&(struct body){"{\"inputs\":[" B_FLAT "," A_BYTES "]}", eight, 4}, all);
}

static void bytes_come_in_the_order_of_the_inputs(void **state)
{
    (void)state;
    check_every_cut(&(struct body){"{\"inputs\":[" B_BYTES "," A_BYTES "]}", eight, 8},
                    "id '' timeout 0 binary 0 results 1: 5 6 7 8 1 2 3 4");
}

static void what_stands_beside_the_inputs_is_read(void **state)
{
    (void)state;
    check_every_cut(
        &(struct body){"{\"id\":\"7\",\"parameters\":{\"timeout\":1001,\"binary_data_output\":true,"
                       "\"x\":1},\"y\":[],\"inputs\":[" A_DATA "," B_FLAT "]}",
                       NULL, 0},
        "id '7' timeout 2 binary 1 results 1: 1 2 3 4 5 6 7 8");
}

static void refusals_are_alike_at_every_cut(void **state)
{
    static const struct {
        struct body body;
        const char *expected;
    } rows[] = {
        {{"{\"inputs\":[" A_BYTES "," B_BYTES "]}", eight, 7}, "bad-length  "},
        {{"{\"inputs\":[" A_BYTES "," B_FLAT "]}", eight, 5}, "bad-length  "},
        {{"{\"inputs\":[" A_DATA "," B_DATA "]}", NULL, 0}, "length-mismatch  -1 a has shape (4,)"},
        {{"{\"inputs\":[" A_DATA "," A_DATA "]}", NULL, 0}, "bad-value /inputs/1/name"},
        {{"{\"inputs\":[" A_DATA "]}", NULL, 0}, "bad-value /inputs -1 input b is missing"},
        {{"{\"inputs\":[" A_BYTES "," B_FLAT "]}", NULL, 0}, "bad-value  -1 binary_data_size says"},
        {{"{\"inputs\":[{\"data\":[1,true]}]}", NULL, 0}, "bad-value /inputs/0/data/1 22"},
        {{"{\"inputs\":[" A_DATA "," B_FLAT "]", NULL, 0}, "bad-syntax"},
        {{"{\"inputs\":[" A_BYTES "," B_BYTES "]", eight, 8}, "bad-syntax"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_every_cut(&rows[i].body, rows[i].expected);
}

static void a_row_of_bytes_goes_to_the_sink_and_is_not_kept(void **state)
{
    static const char *const orders[] = {"{\"inputs\":[" A_BYTES "," B_BYTES "]}",
                                         "{\"inputs\":[" B_BYTES "," A_BYTES "]}"};
    (void)state;
    for (size_t first = 1; first < 240; first++) {
        float sum = 0;
        const struct sink sink = {.take = take, .context = &sum, .min_bytes = 32};
        const struct body body = {orders[first % 2], eight, 8};
        struct request request;
        struct oip_call call;
        struct problem problem;
        assert_int_equal(decode(&request, &call, &body, &sink, first, &problem), ERR_OK);
        assert_true(request.is_streamed && request.buffer.used <= 16);
        assert_true(sum == 70);
        request_fini(&request);
    }
}

static void a_sink_that_wants_more_is_left_alone(void **state)
{
    float sum = 0;
    const struct sink sink = {.take = take, .context = &sum, .min_bytes = 33};
    const struct body body = {"{\"inputs\":[" A_BYTES "," B_BYTES "]}", eight, 8};
    struct request request;
    struct oip_call call;
    struct problem problem;
    (void)state;
    assert_int_equal(decode(&request, &call, &body, &sink, 50, &problem), ERR_OK);
    assert_false(request.is_streamed);
    assert_true(sum == 0);
    request_fini(&request);
}

static void the_header_must_be_a_length_within_the_body(void **state)
{
    static const char *const wrong[] = {
        "", "-1", "+1", "1 ", "0x1", "0", "11", "18446744073709551615", "18446744073709551616"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct oip_call call = {.model = oip_model(0)};
        struct request request;
        struct problem problem;
        struct decoder *decoder = NULL;
        request_init(&request, &buffer_heap);
        assert_int_equal(
            oip_decoder_create(&decoder, &call, &request, wrong[i], 10, MAX_BYTES, &problem),
            ERR_VALUE);
        assert_null(decoder);
        request_fini(&request);
    }
}

/* Encodes values as the results of a model, of shape (2,count/2). */
static void encode(struct text *text, const char *model, struct dot_value *value, size_t count,
                   bool wants_binary, size_t *ret_json)
{
    const struct oip_call call = {oip_model_find(model, strlen(model)), wants_binary};
    struct request request;
    struct problem problem;
    request_init(&request, &buffer_heap);
    assert_int_equal(request_pairs(&request, 1, &problem), ERR_OK);
    request.options.dtype = call.model->dtype;
    request.options.result_dtype = call.model->result_dtype;
    request.pair->result = (struct shape){2, {2, count / 2}};
    request.result_count = count;
    const struct result result = {.request = &request, .value = value};
    text_init(text);
    assert_int_equal(oip_encode(&result, &call, text, ret_json, &problem), ERR_OK);
    request_fini(&request);
}

static void an_answer_is_flat_and_has_words_for_what_is_not_finite(void **state)
{
    struct dot_value value[4] = {{.sum = 0.1},
                                 {.sum = __builtin_inf()},
                                 {.sum = -__builtin_inf()},
                                 {.sum = __builtin_nan("")}};
    struct text text;
    size_t json;
    (void)state;
    encode(&text, "dot_fp64", value, 4, false, &json);
    assert_string_equal(text.data,
                        "{\"model_name\": \"dot_fp64\", \"model_version\": \"1\", \"outputs\": "
                        "[{\"name\": \"result\", \"shape\": [2, 2, 1], \"data\": [0.1, Infinity, "
                        "-Infinity, NaN], \"datatype\": \"FP64\"}]}");
    assert_int_equal(json, text.size);
    text_fini(&text);
}

static void an_answer_in_bytes_has_them_behind_its_json(void **state)
{
    struct dot_value value[2] = {{.integer = {7}},
                                 {.integer = {UINT64_MAX, UINT64_MAX, UINT64_MAX}}};
    struct text text;
    size_t json;
    int64_t whole[2];
    (void)state;
    encode(&text, "dot_int8", value, 2, true, &json);
    assert_int_equal(text.size, json + sizeof whole);
    assert_memory_equal(text.data + json - 22, "\"datatype\": \"INT64\"}]}", 22);
    memcpy(whole, text.data + json, sizeof whole);
    assert_true(whole[0] == 7 && whole[1] == -1);
    text_fini(&text);
}

static void every_model_is_found_by_its_whole_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OIP_MODELS; i++) {
        const struct oip_model *model = oip_model(i);
        assert_ptr_equal(oip_model_find(model->name, strlen(model->name)), model);
        assert_int_equal(oip_model_index(model), i);
    }
    assert_null(oip_model_find("dot_", 4));
    assert_null(oip_model_find("do", 2));
    assert_null(oip_model_find("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_land_alike_wherever_they_stand_and_the_body_is_cut),
        cmocka_unit_test(bytes_come_in_the_order_of_the_inputs),
        cmocka_unit_test(what_stands_beside_the_inputs_is_read),
        cmocka_unit_test(refusals_are_alike_at_every_cut),
        cmocka_unit_test(a_row_of_bytes_goes_to_the_sink_and_is_not_kept),
        cmocka_unit_test(a_sink_that_wants_more_is_left_alone),
        cmocka_unit_test(the_header_must_be_a_length_within_the_body),
        cmocka_unit_test(an_answer_is_flat_and_has_words_for_what_is_not_finite),
        cmocka_unit_test(an_answer_in_bytes_has_them_behind_its_json),
        cmocka_unit_test(every_model_is_found_by_its_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
