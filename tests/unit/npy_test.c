/* npy_test.c - .npy arrays as bodies: what their headers say, where their elements go, what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/bytes.h"
#include "proto/encoding.h"
#include "proto/npy_head.h"
#include "tests/random.h"
#include "tests/unit/feed.h"

enum { MAX_BYTES = 1 << 20 };

/* One array: the header around the dictionary that is given, then elements. */
static void append_array(struct text *text, int version, const char *dictionary, const void *data,
                         size_t size)
{
    const size_t length = strlen(dictionary);
    const char prelude[] = {(char)version, 0, (char)length, (char)(length >> 8), 0, 0};
    text_append(text, npy_magic, sizeof npy_magic);
    text_append(text, prelude, version == 1 ? 4 : 6);
    text_append(text, dictionary, length);
    text_append(text, data, size);
}

static enum error parse(const char *dictionary, int version, enum dtype wanted,
                        struct npy_head *ret, struct problem *problem)
{
    struct text text;
    size_t size;
    text_init(&text);
    append_array(&text, version, dictionary, "", 0);
    problem_clear(problem);
    enum error err = npy_head_size(text.data, text.size, &size, problem);
    if (err == ERR_OK) {
        assert_int_equal(size, text.size);
        err = npy_head_parse(text.data, text.size, wanted, ret, problem);
    }
    text_fini(&text);
    assert_int_equal(problem->error, err);
    return err;
}

static void headers_are_read_as_numpy_means_them(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        enum dtype dtype;
        enum byte_order order;
        const char *shape;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", DTYPE_FLOAT32,
         ORDER_LITTLE, "(3,4)"},
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }\n", DTYPE_FLOAT64, ORDER_BIG,
         "(3,)"},
        {"{'shape':(),'fortran_order':False,'descr':'|i1'}", DTYPE_INT8, ORDER_LITTLE, "()"},
        {"{\"descr\": \"<i8\", \"fortran_order\": True, \"shape\": (7,)}", DTYPE_INT64,
         ORDER_LITTLE, "(7,)"},
        {"{'descr': '<i4', 'fortran_order': True, 'shape': (1, 7, 1)}", DTYPE_INT32, ORDER_LITTLE,
         "(1,7,1)"},
        {"{'descr': '>c16', 'fortran_order': False, 'shape': (2L, 3L)}", DTYPE_COMPLEX128,
         ORDER_BIG, "(2,3)"},
        {" { 'descr' : '<c8' , 'fortran_order' : False , 'shape' : ( 0 , 5 ) , } \n",
         DTYPE_COMPLEX64, ORDER_LITTLE, "(0,5)"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,9)}", DTYPE_FLOAT16,
         ORDER_LITTLE, "(1,1,1,1,1,1,1,9)"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,)}", DTYPE_UINT8,
         ORDER_LITTLE, "(9223372036854775807,)"},
        {"{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}", DTYPE_BFLOAT16, ORDER_LITTLE,
         "(2,)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int version = 1; version <= 3; version++) {
            struct npy_head head;
            struct problem problem;
            char shape[100];
            const enum dtype wanted =
                cases[i].dtype == DTYPE_BFLOAT16 ? DTYPE_BFLOAT16 : DTYPE_UNKNOWN;
            assert_int_equal(parse(cases[i].dictionary, version, wanted, &head, &problem), ERR_OK);
            assert_int_equal(head.dtype, cases[i].dtype);
            assert_int_equal(head.order, cases[i].order);
            assert_string_equal(shape_print(&head.shape, shape, sizeof shape), cases[i].shape);
        }
    }
}

#define REST "', 'fortran_order': False, 'shape': (1,)}"

static void headers_of_what_is_not_computed_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary;
        enum error error;
        const char *detail;
    } cases[] = {
        {"{'descr': [('x', '<f4'), ('y', '<i4')], 'fortran_order': False, 'shape': (1,)}",
         ERR_UNSUPPORTED, "[('x', '<f4'), ('y', '<i4')]"},
        {"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,)}", ERR_UNSUPPORTED,
         "('<f4', (2,))"},
        {"{'descr': '|O" REST, ERR_UNSUPPORTED, "objects"},
        {"{'descr': '<u2" REST, ERR_DTYPE, "\"<u2\""},
        {"{'descr': '|b1" REST, ERR_DTYPE, "\"|b1\""},
        {"{'descr': '<U10" REST, ERR_DTYPE, "float32, float64"},
        {"{'descr': '|V2" REST, ERR_DTYPE, "dtype=bfloat16"},
        {"{'descr': 'i8" REST, ERR_DTYPE, "\"i8\""},
        {"{'descr': 'float32" REST, ERR_DTYPE, "\"float32\""},
        {"{'descr': '<M8[ns]" REST, ERR_DTYPE, "\"<M8[ns]\""},
        {"{'descr': '" REST, ERR_DTYPE, "\"\""},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", ERR_UNSUPPORTED,
         "ascontiguousarray"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", ERR_VALUE,
         "more than 8"},
        {"", ERR_SYNTAX, "begins with {"},
        {"[]", ERR_SYNTAX, "begins with {"},
        {"{'descr': '<f4', 'fortran_order': False}", ERR_SYNTAX, "all be there"},
        {"{}", ERR_SYNTAX, "all be there"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", ERR_SYNTAX,
         "each once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", ERR_SYNTAX, "each once"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", ERR_SYNTAX, "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", ERR_SYNTAX, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", ERR_SYNTAX, "tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", ERR_SYNTAX, "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}", ERR_SYNTAX, "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", ERR_SYNTAX, "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", ERR_SYNTAX,
         "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", ERR_SYNTAX, "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", ERR_SYNTAX, "comma or }"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", ERR_SYNTAX, "comma or }"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (3,)}", ERR_DTYPE, "\"<f4, \""},
        {"{'descr': '\\x3cf4" REST, ERR_SYNTAX, "descr must be a string"},
        {"{'descr' '<f4" REST, ERR_SYNTAX, "colon"},
        {"{descr: '<f4" REST, ERR_SYNTAX, "key must be a string"},
        {"{'descr': '<f4" REST "x", ERR_SYNTAX, "only blanks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct npy_head head;
        struct problem problem;
        enum error err = parse(cases[i].dictionary, 1, DTYPE_UNKNOWN, &head, &problem);
        if (err != cases[i].error || strstr(problem.detail, cases[i].detail) == NULL)
            fail_msg("%s: %s, %s", cases[i].dictionary, error_name(err), problem.detail);
        if (err == ERR_SYNTAX)
            assert_in_range(problem.offset, 10, 10 + strlen(cases[i].dictionary));
    }
}

static void what_is_no_npy_array_is_refused_at_its_first_wrong_byte(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t size;
        enum error error;
        int64_t offset;
    } cases[] = {
        {"[1,2]", 1, ERR_SYNTAX, 0},
        {"\x93NUMPX", 6, ERR_SYNTAX, 5},
        {"\x93NUMPY\x04", 7, ERR_UNSUPPORTED, 6},
        {"\x93NUMPY\xff", 7, ERR_UNSUPPORTED, 6},
        {"\x93NUMPY\x02\x00\x00\x00\x01\x00", 12, ERR_TOO_LARGE, -1},
        {"\x93NUMPY\x01\x00\xff\xff", 10, ERR_TOO_LARGE, -1},
        {"\x93NUMPY\x03\x00\xff\xff\xff\xff", 12, ERR_TOO_LARGE, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct problem problem;
        size_t size;
        problem_clear(&problem);
        assert_int_equal(npy_head_size(cases[i].data, cases[i].size, &size, &problem),
                         cases[i].error);
        assert_int_equal(problem.offset, cases[i].offset);
    }
}

static void written_headers_are_aligned_and_read_back(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {0, {0}}, {1, {0}}, {1, {12345}}, {3, {2, 0, 7}}, {8, {1, 2, 3, 4, 5, 6, 7, INT64_MAX}}};
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            struct text text;
            struct npy_head head;
            struct problem problem;
            size_t size;
            text_init(&text);
            npy_head_write(dtype, &shapes[i], &text);
            assert_int_equal(text.size % 64, 0);
            assert_int_equal(npy_head_size(text.data, text.size, &size, &problem), ERR_OK);
            assert_int_equal(size, text.size);
            assert_int_equal(npy_head_parse(text.data, size, dtype, &head, &problem), ERR_OK);
            assert_int_equal(head.dtype, dtype);
            assert_int_equal(head.order, ORDER_LITTLE);
            assert_memory_equal(&head.shape, &shapes[i], sizeof head.shape);
            assert_int_equal(text.data[size - 1], '\n');
            text_fini(&text);
        }
    }
}

/* ---- bodies -------------------------------------------------------------------------------- */

static enum error accept_body(void *context, bool *ret_takes, struct problem *problem)
{
    (void)context, (void)problem;
    *ret_takes = true;
    return ERR_OK;
}

static enum error decline_body(void *context, bool *ret_takes, struct problem *problem)
{
    (void)context, (void)problem;
    *ret_takes = false;
    return ERR_OK;
}

/* Decodes body in random pieces of at most so many bytes. */
static enum error decode(struct request *request, const struct sink *sink, const char *query,
                         const struct text *body, uint64_t announced, size_t most,
                         struct problem *problem)
{
    const struct feed_how how = {.encoding = &encoding_npy,
                                 .sink = sink,
                                 .query = query,
                                 .announced = announced,
                                 .max_bytes = MAX_BYTES};
    return feed_request(request, &how, body->data, body->size, most, problem);
}

static const char *const codes[] = {"f4", "f8", "f2", "V2", "i1", "u1", "i4", "i8", "c8", "c16"};
static const size_t pieces[] = {1, 3, 40, 10000};

/* Two arrays of random bytes, in their own byte orders; a, b are what they are in native order. */
static void make_body(struct text *body, enum dtype dtype, const char *shape_a, const char *shape_b,
                      char *a, size_t a_size, char *b, size_t b_size, const char orders[2])
{
    char *const data[] = {a, b};
    const char *const shapes[] = {shape_a, shape_b};
    const size_t sizes[] = {a_size, b_size};
    const size_t number_size = dtype_size(dtype_part(dtype));
    for (int i = 0; i < 2; i++) {
        char dictionary[200];
        for (size_t j = 0; j < sizes[i]; j++)
            data[i][j] = (char)random_next();
        (void)snprintf(dictionary, sizeof dictionary,
                       "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }\n",
                       dtype_size(dtype) == 1 ? '|' : orders[i], codes[dtype], shapes[i]);
        append_array(body, 1 + (int)(random_next() % 3), dictionary, data[i], sizes[i]);
        if (orders[i] == '>')
            swap_numbers(data[i], sizes[i], number_size);
    }
}

static void check_operand(const struct request *request, const struct tensor *tensor,
                          const char *data, size_t size)
{
    uint64_t count;
    assert_int_equal(shape_count(&tensor->shape, &count), ERR_OK);
    assert_int_equal(count * dtype_size(tensor->dtype), size);
    assert_int_equal(tensor->offset % LIMIT_OPERAND_ALIGN, 0);
    if (size > 0)
        assert_memory_equal((char *)request->buffer.block.data + tensor->offset, data, size);
}

static void arrays_cut_anywhere_land_in_native_order(void **state)
{
    (void)state;
    static const char orders[][2] = {{'<', '<'}, {'>', '>'}, {'<', '>'}, {'>', '<'}};
    static char a[15 * 16], b[5 * 16];
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const size_t size = dtype_size(dtype);
        for (size_t i = 0; i < 4 * 4; i++) {
            struct text body;
            struct request request;
            struct problem problem;
            text_init(&body);
            make_body(&body, dtype, "(3, 5)", "(5,)", a, 15 * size, b, 5 * size, orders[i % 4]);
            const char *query = dtype == DTYPE_BFLOAT16 ? "dtype=bf16" : "";
            for (int chunked = 0; chunked < 2; chunked++) {
                assert_int_equal(decode(&request, NULL, query, &body,
                                        chunked ? BODY_CHUNKED : body.size, pieces[i / 4],
                                        &problem),
                                 ERR_OK);
                assert_int_equal(request.options.dtype, dtype);
                check_operand(&request, &request.pair->a, a, 15 * size);
                check_operand(&request, &request.pair->b, b, 5 * size);
                assert_int_equal(request_check(&request, 100, &problem), ERR_OK);
                assert_int_equal(request.result_count, 3);
                request_fini(&request);
            }
            text_fini(&body);
        }
    }
}

static void one_row_is_handed_on_and_b_is_stored_nowhere(void **state)
{
    (void)state;
    static const char orders[][2] = {{'<', '<'}, {'>', '>'}, {'<', '>'}, {'>', '<'}};
    static const char *const shapes[][2] = {{"(200,)", "(200,)"}, {"(1, 200)", "(200,)"}};
    static char a[200 * 16], b[200 * 16];
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const size_t size = dtype_size(dtype);
        for (size_t i = 0; i < 4 * 4; i++) {
            struct text body;
            struct taken taken = {.element_size = size};
            const struct sink sink = {.take = taken_add,
                                      .context = &taken,
                                      .min_bytes = 400 * size,
                                      .begin = accept_body};
            struct request request;
            struct problem problem;
            text_init(&body);
            make_body(&body, dtype, shapes[i % 2][0], shapes[i % 2][1], a, 200 * size, b,
                      200 * size, orders[i % 4]);
            const char *query = dtype == DTYPE_BFLOAT16 ? "dtype=bf16" : "";
            assert_int_equal(decode(&request, &sink, query, &body,
                                    i % 3 == 0 ? BODY_CHUNKED : body.size, pieces[i / 4], &problem),
                             ERR_OK);
            assert_true(request.is_streamed);
            assert_int_equal(request.buffer.used, 200 * size);
            assert_int_equal(taken.size, 200 * size);
            assert_memory_equal(taken.a, a, 200 * size);
            assert_memory_equal(taken.b, b, 200 * size);
            assert_int_equal(tensor_length(&request.pair->b), 200);
            request_fini(&request);
            text_fini(&body);
        }
    }
}

static void what_the_sink_does_not_take_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *shape_a, *shape_b;
        size_t a_count, b_count;
        uint64_t min_bytes;
        bool declines;
    } cases[] = {
        {"(4,)", "(4,)", 4, 4, 33, false},    {"(4,)", "(4,)", 4, 4, 0, true},
        {"(2, 4)", "(4,)", 8, 4, 0, false},   {"(4,)", "(2, 4)", 4, 8, 0, false},
        {"(2, 4)", "(2, 4)", 8, 8, 0, false}, {"(0,)", "(0,)", 0, 0, 0, false},
    };
    static char a[32], b[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text body;
        struct taken taken = {.element_size = 4};
        const struct sink sink = {.take = taken_add,
                                  .context = &taken,
                                  .min_bytes = cases[i].min_bytes,
                                  .begin = cases[i].declines ? decline_body : accept_body};
        struct request request;
        struct problem problem;
        text_init(&body);
        make_body(&body, DTYPE_FLOAT32, cases[i].shape_a, cases[i].shape_b, a, 4 * cases[i].a_count,
                  b, 4 * cases[i].b_count, "<>");
        assert_int_equal(decode(&request, &sink, "", &body, body.size, 50, &problem), ERR_OK);
        assert_false(request.is_streamed);
        assert_int_equal(taken.size, 0);
        check_operand(&request, &request.pair->a, a, 4 * cases[i].a_count);
        check_operand(&request, &request.pair->b, b, 4 * cases[i].b_count);
        request_fini(&request);
        text_fini(&body);
    }
}

#define FLOATS(shape)  "{'descr': '<f4', 'fortran_order': False, 'shape': " shape "}"
#define DOUBLES(shape) "{'descr': '<f8', 'fortran_order': False, 'shape': " shape "}"

static void wrong_bodies_are_refused_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *query, *a, *b;
        int a_size, b_size, extra;
        enum error error;
        const char *detail, *pointer;
    } cases[] = {
        {"", FLOATS("(2,)"), FLOATS("(2,)"), 8, 8, 1, ERR_LENGTH, "goes on after two", ""},
        {"", FLOATS("(2,)"), FLOATS("(2,)"), 8, 7, 0, ERR_LENGTH, "inside b", "/b"},
        {"", FLOATS("(2,)"), FLOATS("(2,)"), 8, 8, -9, ERR_LENGTH, "inside b", "/b"},
        {"", FLOATS("(2,)"), NULL, 7, 0, 0, ERR_LENGTH, "inside a", "/a"},
        {"", FLOATS("(2,)"), NULL, 8, 0, 0, ERR_LENGTH, "two .npy arrays", "/b"},
        {"", NULL, NULL, 0, 0, 0, ERR_LENGTH, "after 0 bytes, inside a", "/a"},
        {"", FLOATS("(2,)"), DOUBLES("(2,)"), 8, 16, 0, ERR_VALUE, "one type", "/b"},
        {"dtype=f64", FLOATS("(2,)"), FLOATS("(2,)"), 8, 8, 0, ERR_OPTION, "dtype says float64",
         "/a"},
        {"", FLOATS("(2,)"), FLOATS("(3,)"), 8, 12, 0, ERR_SHAPE, "(3,)", "/b"},
        {"", FLOATS("()"), FLOATS("(3,)"), 4, 12, 0, ERR_SHAPE, "scalar", "/b"},
        {"", FLOATS("(300000,)"), NULL, 8, 0, 0, ERR_TOO_LARGE, "operands need", "/a"},
        {"", FLOATS("(4611686018427387904, 8)"), NULL, 8, 0, 0, ERR_TOO_LARGE, "operands need",
         "/a"},
        {"shape_a=2", FLOATS("(2,)"), FLOATS("(2,)"), 8, 8, 0, ERR_OPTION, "tells its shape", ""},
        {"layout=concat", FLOATS("(2,)"), FLOATS("(2,)"), 8, 8, 0, ERR_OPTION, "tells its shape",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int how = 0; how < 4; how++) {
            static const char zeros[64];
            struct text body;
            struct request request;
            struct problem problem;
            text_init(&body);
            text_append(&body, "", 0);
            if (cases[i].a != NULL)
                append_array(&body, 1, cases[i].a, zeros, (size_t)cases[i].a_size);
            if (cases[i].b != NULL)
                append_array(&body, 2, cases[i].b, zeros, (size_t)cases[i].b_size);
            if (cases[i].extra > 0)
                text_append(&body, zeros, (size_t)cases[i].extra);
            else
                body.size -= (size_t)-cases[i].extra;
            enum error err =
                decode(&request, NULL, cases[i].query, &body, how % 2 ? BODY_CHUNKED : body.size,
                       how / 2 ? 1 : 1000, &problem);
            if (err != cases[i].error || strstr(problem.detail, cases[i].detail) == NULL ||
                strcmp(problem.pointer, cases[i].pointer) != 0)
                fail_msg("%zu: %s, %s, %s", i, error_name(err), problem.detail, problem.pointer);
            if (cases[i].extra > 0)
                assert_int_equal(problem.offset, body.size - (size_t)cases[i].extra);
            request_fini(&request);
            text_fini(&body);
        }
    }
}

/* A header that promises more than the body has is refused before memory is taken for it. */
static void what_the_announced_length_cannot_hold_is_refused_with_the_header(void **state)
{
    (void)state;
    struct text body;
    struct request request;
    struct problem problem;
    text_init(&body);
    append_array(&body, 1, FLOATS("(1000,)"), "", 0);
    assert_int_equal(decode(&request, NULL, "", &body, body.size + 3999, 1000, &problem),
                     ERR_LENGTH);
    assert_int_equal(problem.offset, body.size + 3999);
    request_fini(&request);
    text_fini(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_as_numpy_means_them),
        cmocka_unit_test(headers_of_what_is_not_computed_are_refused_by_name),
        cmocka_unit_test(what_is_no_npy_array_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(written_headers_are_aligned_and_read_back),
        cmocka_unit_test(arrays_cut_anywhere_land_in_native_order),
        cmocka_unit_test(one_row_is_handed_on_and_b_is_stored_nowhere),
        cmocka_unit_test(what_the_sink_does_not_take_is_kept),
        cmocka_unit_test(wrong_bodies_are_refused_where_they_are_wrong),
        cmocka_unit_test(what_the_announced_length_cannot_hold_is_refused_with_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
