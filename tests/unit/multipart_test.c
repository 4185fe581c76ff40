/* multipart_test.c - forms as bodies: boundaries cut anywhere, operands of every kind, what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/encoding.h"
#include "proto/npy_head.h"
#include "proto/text.h"
#include "tests/random.h"
#include "tests/unit/feed.h"

enum { MAX_BYTES = 1 << 16 };

#define TYPE "multipart/form-data; boundary=xyz"

/* Decodes body in random pieces of at most so many bytes. */
static enum error decode(struct request *request, const struct sink *sink, const char *type,
                         const char *query, const char *body, size_t size, size_t most,
                         struct problem *problem)
{
    const struct feed_how how = {.encoding = &encoding_multipart,
                                 .sink = sink,
                                 .content_type = type,
                                 .query = query,
                                 .announced = most % 2 ? size : BODY_CHUNKED,
                                 .max_bytes = MAX_BYTES};
    return feed_request(request, &how, body, size, most, problem);
}

static void add_part(struct text *form, const char *disposition, const char *type, const void *data,
                     size_t size)
{
    text_printf(form, "--xyz\r\nContent-Disposition: form-data; %s\r\n", disposition);
    if (type != NULL)
        text_printf(form, "content-type: %s\r\n", type);
    text_string(form, "\r\n");
    text_append(form, data, size);
    text_string(form, "\r\n");
}

static void add_field(struct text *form, const char *name, const char *value)
{
    char disposition[80];
    (void)snprintf(disposition, sizeof disposition, "name=\"%s\"", name);
    add_part(form, disposition, NULL, value, strlen(value));
}

static void close_form(struct text *form)
{
    text_string(form, "--xyz--\r\n");
}

static const char *operand(const struct request *request, const struct tensor *tensor)
{
    return (const char *)request->buffer.block.data + tensor->offset;
}

static const size_t pieces[] = {1, 2, 5, 40, 9999};

/* Bytes that begin as a boundary does, and go on otherwise. */
static void bytes_like_a_boundary_are_the_operand_s(void **state)
{
    (void)state;
    static const char a[] = "\r\n--xy\r\n--xyy\r\r\n-\r\n--\r\n\r\n--xy\r";
    static const char b[] = "\n--xyz\r--xyz--xyz\n\r--xyz\n\r\n-xy";
    for (size_t i = 0; i < 5; i++) {
        for (int run = 0; run < 50; run++) {
            struct text form;
            struct request request;
            struct problem problem;
            text_init(&form);
            add_field(&form, "dtype", "int8");
            add_part(&form, "name=a", "application/octet-stream", a, sizeof a - 1);
            add_part(&form, "name=b", "application/octet-stream", b, sizeof b - 1);
            close_form(&form);
            assert_int_equal(
                decode(&request, NULL, TYPE, NULL, form.data, form.size, pieces[i], &problem),
                ERR_OK);
            assert_int_equal(tensor_length(&request.pair->a), sizeof a - 1);
            assert_int_equal(tensor_length(&request.pair->b), sizeof b - 1);
            assert_memory_equal(operand(&request, &request.pair->a), a, sizeof a - 1);
            assert_memory_equal(operand(&request, &request.pair->b), b, sizeof b - 1);
            request_fini(&request);
            text_fini(&form);
        }
    }
}

/* One form of two operands of bytes, which a decoder has to find between boundaries. */
static void check_found(const char *boundary, const char *operand_bytes, size_t size)
{
    struct text form;
    struct request request;
    struct problem problem;
    char type[128];
    (void)snprintf(type, sizeof type, "multipart/form-data; boundary=%s", boundary);
    text_init(&form);
    for (const char *name = "ab"; *name != '\0'; name++) {
        text_printf(&form, "--%s\r\nContent-Disposition: form-data; name=%c; filename=x\r\n\r\n",
                    boundary, *name);
        text_append(&form, operand_bytes, size);
        text_string(&form, "\r\n");
    }
    text_printf(&form, "--%s--\r\n", boundary);
    assert_int_equal(
        decode(&request, NULL, type, "dtype=uint8", form.data, form.size, form.size, &problem),
        ERR_OK);
    const struct tensor *tensors[] = {&request.pair->a, &request.pair->b};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tensor_length(tensors[i]), size);
        assert_memory_equal(operand(&request, tensors[i]), operand_bytes, size);
    }
    request_fini(&request);
    text_fini(&form);
}

/* The bytes before it are any, or its own, of which one cannot tell how far it is still. */
static void boundaries_of_all_lengths_are_found_at_all_distances(void **state)
{
    (void)state;
    char boundary[71] = "", any[200], own[200];
    for (size_t length = 1; length < sizeof boundary; length++) {
        boundary[length - 1] = (char)('a' + random_next() % 26);
        for (size_t i = 0; i < sizeof any; i++) {
            any[i] = (char)random_next();
            own[i] = random_next() % 4 == 0 ? '-' : boundary[random_next() % length];
        }
        for (size_t size = 1; size < sizeof any; size += 1 + random_next() % 4) {
            check_found(boundary, any, size);
            check_found(boundary, own, size);
        }
    }
}

/* (1, 2, 3) as float32, in every way in which an operand travels. */
static const struct kind {
    const char *disposition, *type, *data;
    size_t size;
    bool needs_dtype; /* before it, to be float32 */
} kinds[] = {
#define HEAD   "\x93NUMPY\x01\x00\x39\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
#define FLOATS "\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40"
    {"name=%c", NULL, "[1,2,3]", 7, true},
    {"name=\"%c\"", "application/json", " [1, 2.0, 3e0]\r\n", 16, true},
    {"name=\"%c\"; filename=\"x\\\"y.json\"", "text/json; charset=utf-8", "[1,2,3]", 7, true},
    {"name=%c; filename=x.bin", NULL, FLOATS, 12, true},
    {"filename=\"a;b\"; name=\"%c\"", "application/octet-stream", FLOATS, 12, true},
    {"name=%c", NULL, HEAD FLOATS, 10 + 57 + 12, false},
    {"name=%c; filename=x.npy", "application/octet-stream", HEAD FLOATS, 10 + 57 + 12, false},
    {"name=%c", "application/x-npy", HEAD FLOATS, 10 + 57 + 12, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void add_kind(struct text *form, const struct kind *kind, char name)
{
    char disposition[80];
    /* Each of them has one %c and nothing else. */
    const char *mark = strstr(kind->disposition, "%c");
    (void)snprintf(disposition, sizeof disposition, "%.*s%c%s", (int)(mark - kind->disposition),
                   kind->disposition, name, mark + 2);
    add_part(form, disposition, kind->type, kind->data, kind->size);
}

static void check_vectors(const struct request *request)
{
    static const float expected[] = {1, 2, 3};
    assert_int_equal(request->options.dtype, DTYPE_FLOAT32);
    const struct tensor *tensors[] = {&request->pair->a, &request->pair->b};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tensors[i]->dtype, DTYPE_FLOAT32);
        assert_int_equal(tensor_length(tensors[i]), 3);
        assert_int_equal(tensors[i]->offset % LIMIT_OPERAND_ALIGN, 0);
        assert_memory_equal(operand(request, tensors[i]), expected, sizeof expected);
    }
}

static void operands_of_every_kind_go_together_in_either_order(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS * KINDS * 4; i++) {
        const struct kind *first = &kinds[i % KINDS], *second = &kinds[i / KINDS % KINDS];
        bool is_swapped = i / KINDS / KINDS % 2, in_query = i / KINDS / KINDS / 2;
        struct text form;
        struct request request;
        struct problem problem;
        text_init(&form);
        if (!in_query)
            add_field(&form, "dtype", "f4");
        add_kind(&form, first, is_swapped ? 'b' : 'a');
        add_kind(&form, second, is_swapped ? 'a' : 'b');
        close_form(&form);
        assert_int_equal(decode(&request, NULL, TYPE, in_query ? "dtype=float32" : NULL, form.data,
                                form.size, pieces[i % 5], &problem),
                         ERR_OK);
        check_vectors(&request);
        request_fini(&request);
        text_fini(&form);
    }
}

/* Of two operands that tell no type before they come, a .npy array tells it for both. */
static void an_array_tells_the_type_of_the_other_operand(void **state)
{
    (void)state;
    static const int npy = KINDS - 1;
    for (int json = 0; json < 3; json++) {
        for (int order = 0; order < 2; order++) {
            struct text form;
            struct request request;
            struct problem problem;
            text_init(&form);
            add_kind(&form, &kinds[order ? npy : json], 'a');
            add_kind(&form, &kinds[order ? json : npy], 'b');
            close_form(&form);
            assert_int_equal(decode(&request, NULL, TYPE, NULL, form.data, form.size, 20, &problem),
                             ERR_OK);
            check_vectors(&request);
            request_fini(&request);
            text_fini(&form);
        }
    }
}

static void what_stands_around_the_parts_is_ignored(void **state)
{
    (void)state;
    static const char form[] =
        "this is\r\na preamble --xyz\r\n--xyz \t\r\n"
        "X-Custom: y\r\nCONTENT-DISPOSITION: Form-Data;name=\"a\";\r\n"
        "Content-Transfer-Encoding: binary\r\nContent-Type:text/plain\r\n\r\n"
        "[1,2]\r\n--xyz\r\nContent-Disposition: form-data; x=\"\\\"\"; NAME=b\r\n\r\n"
        "[3,4]\r\n--xyz--  and\r\n--xyz\r\nan epilogue";
    for (size_t i = 0; i < 5; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, NULL, "Multipart/Form-Data; charset=x; Boundary=\"xyz\"",
                                NULL, form, sizeof form - 1, pieces[i], &problem),
                         ERR_OK);
        assert_int_equal(request.options.dtype, DTYPE_FLOAT64);
        static const double a[] = {1, 2}, b[] = {3, 4};
        assert_memory_equal(operand(&request, &request.pair->a), a, sizeof a);
        assert_memory_equal(operand(&request, &request.pair->b), b, sizeof b);
        request_fini(&request);
    }
}

static void fields_are_the_options(void **state)
{
    (void)state;
    struct text form;
    struct request request;
    struct problem problem;
    text_init(&form);
    add_field(&form, "dtype", ">c8");
    add_field(&form, "conjugate", "true");
    add_field(&form, "id", "r-\xc3\xa9");
    add_field(&form, "shape_a", "2,1");
    add_field(&form, "accuracy", "fast");
    add_part(&form, "name=a", "application/octet-stream",
             "\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0\0\0\0\0", 16);
    add_part(&form, "name=b", "application/octet-stream", "\x3f\x80\0\0\0\0\0\0", 8);
    close_form(&form);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(decode(&request, NULL, TYPE, "accuracy=fast", form.data, form.size,
                                pieces[i], &problem),
                         ERR_OK);
        assert_int_equal(request.options.dtype, DTYPE_COMPLEX64);
        assert_true(request.options.conjugate);
        assert_string_equal(request.options.id, "r-\xc3\xa9");
        assert_int_equal(request.pair->a.shape.rank, 2);
        static const float a[] = {1, 2, 3, 0};
        assert_memory_equal(operand(&request, &request.pair->a), a, sizeof a);
        assert_int_equal(request_check(&request, 100, &problem), ERR_OK);
        request_fini(&request);
    }
    text_fini(&form);
}

/* b is stored nowhere, whatever a came as. */
static void one_row_is_handed_on(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        for (int j = 3; j < KINDS; j++) {
            struct text form;
            struct taken taken = {.element_size = 4};
            const struct sink sink = {.take = taken_add, .context = &taken, .min_bytes = 24};
            struct request request;
            struct problem problem;
            text_init(&form);
            add_field(&form, "dtype", "float32");
            add_kind(&form, &kinds[i], 'a');
            add_kind(&form, &kinds[j], 'b');
            close_form(&form);
            assert_int_equal(decode(&request, &sink, TYPE, NULL, form.data, form.size,
                                    pieces[(i + j) % 5], &problem),
                             ERR_OK);
            assert_true(request.is_streamed);
            assert_int_equal(request.buffer.used, 12);
            assert_int_equal(taken.size, 12);
            assert_memory_equal(taken.a, FLOATS, 12);
            assert_memory_equal(taken.b, FLOATS, 12);
            assert_int_equal(tensor_length(&request.pair->b), 3);
            request_fini(&request);
            text_fini(&form);
        }
    }
}

#define PART(name) "--xyz\r\nContent-Disposition: form-data; name=" name "\r\n\r\n"
#define RAW(name)                                                              \
    "--xyz\r\nContent-Disposition: form-data; name=" name "\r\nContent-Type: " \
    "application/octet-stream\r\n\r\n"
#define END "\r\n--xyz--\r\n"

struct wrong_form {
    const char *form;
    enum error error;
    const char *detail, *pointer;
    int64_t offset;
};

static void check_refused(const struct wrong_form *wrong)
{
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct request request;
        struct problem problem;
        enum error err = decode(&request, NULL, TYPE, NULL, wrong->form, strlen(wrong->form),
                                pieces[i], &problem);
        if (err != wrong->error || strstr(problem.detail, wrong->detail) == NULL ||
            strcmp(problem.pointer, wrong->pointer) != 0 || problem.offset != wrong->offset)
            fail_msg("%s: %s, %s, %s, %d", wrong->form, error_name(err), problem.detail,
                     problem.pointer, (int)problem.offset);
        request_fini(&request);
    }
}

static void wrong_parts_are_refused_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct wrong_form cases[] = {
        {"", ERR_SYNTAX, "last boundary, --xyz--", "", 0},
        {"--xyz--", ERR_VALUE, "a is missing", "/a", -1},
        {PART("a") "[1]" END, ERR_VALUE, "b is missing", "/b", -1},
        {PART("b") "[1]" END, ERR_VALUE, "a is missing", "/a", -1},
        {PART("a") "[1]\r\n" PART("b") "[1]", ERR_SYNTAX, "last boundary", "", 106},
        {PART("a") "[1]\r\n" PART("b") "[1]\r\n--xyz", ERR_SYNTAX, "last boundary", "", 113},
        {PART("a") "[1]\r\n" PART("a") "[1]" END, ERR_OPTION, "a is given twice", "/a", -1},
        {PART("c") "1" END, ERR_OPTION, "unknown field \"c\"; known are a, b, shape_a", "/c", -1},
        {PART("layout") "concat" END, ERR_OPTION, "each operand is a part", "/layout", -1},
        {PART("dtype") "f9" END, ERR_DTYPE, "\"f9\"", "/dtype", -1},
        {PART("id") "x\r\n" PART("id") "x" END, ERR_OPTION, "twice", "/id", -1},
        {PART("a") "[1]\r\n" PART("dtype") "f4" END, ERR_OPTION, "options stand before", "/dtype",
         -1},
        {PART("a") "[1,x]" END, ERR_SYNTAX, "'x'", "/a/1", 52},
        {PART("a") "[1e999]" END, ERR_VALUE, "range", "/a/0", 50},
        {PART("a") "  1" END, ERR_SYNTAX, "no array but '1'", "/a", 51},
        {PART("a") "[1] [2]" END, ERR_SYNTAX, "an array and then '['", "/a", 53},
        {PART("a") "[1,2" END, ERR_SYNTAX, "ends inside its array", "/a", 53},
        {PART("a") " " END, ERR_SYNTAX, "is empty", "/a", 50},
        {PART("a") "" END, ERR_SYNTAX, "is empty", "/a", 49},
        {RAW("a") "1234" END, ERR_OPTION, "field dtype", "/dtype", -1},
        {PART("dtype") "f4\r\n" RAW("a") "12345" END, ERR_LENGTH, "whole number", "/a", -1},
        {PART("dtype") "f4\r\n" PART("shape_a") "2\r\n" RAW("a") "1234" END, ERR_LENGTH,
         "fewer than the 8 bytes", "/a", -1},
        {PART("dtype") "i1\r\n" PART("shape_a") "2\r\n" RAW("a") "1234" END, ERR_LENGTH,
         "more than the 2 bytes", "/a", -1},
        {PART("dtype") "i1\r\n" RAW("a") "12\r\n" RAW("b") "1234" END, ERR_LENGTH,
         "more than the 2 bytes", "/b", -1},
        {PART("dtype") "i1\r\n" RAW("a") "12\r\n" RAW("b") "1" END, ERR_LENGTH,
         "fewer than the 2 bytes", "/b", -1},
        {PART("shape_b") "1\r\n" PART("b") "[1]" END, ERR_OPTION, "tells its shape", "/shape_b",
         -1},
        {"--xyz\r\nContent-Disposition: form-data; name=a\r\nContent-Type: image/png\r\n\r\n" END,
         ERR_MEDIA, "image/png", "/a", -1},
        {"--xyz\r\nContent-Disposition: form-data; name=a\r\nContent-Type: "
         "application/x-npy\r\n\r\n"
         "[1]" END,
         ERR_SYNTAX, "NUMPY", "/a", 82},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(&cases[i]);
}

static void wrong_heads_of_parts_are_refused_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct wrong_form cases[] = {
        {"--xyzz\r\n", ERR_SYNTAX, "neither a line's end", "", 5},
        {"--xyz -\r\n", ERR_SYNTAX, "neither a line's end", "", 6},
        {"--xyz\r\nno header\r\n", ERR_SYNTAX, "malformed", "", 17},
        {"--xyz\r\n: x\r\n", ERR_SYNTAX, "malformed", "", 11},
        {"--xyz\r\na: b\n", ERR_SYNTAX, "CR LF", "", 11},
        {"--xyz\r\na: b\r\r\n", ERR_SYNTAX, "CR LF", "", 12},
        {"--xyz\r\nA: b\r\n\r\n", ERR_SYNTAX, "no name", "", 14},
        {"--xyz\r\nA: b\r\n folded\r\n", ERR_SYNTAX, "malformed", "", 21},
        {"--xyz\r\nContent-Disposition: attachment; name=a\r\n", ERR_SYNTAX, "not form-data", "",
         47},
        {"--xyz\r\nContent-Disposition: form-data\r\n", ERR_SYNTAX, "not form-data", "", 38},
        {"--xyz\r\nContent-Disposition: form-data; name=\"a\r\n", ERR_SYNTAX, "not form-data", "",
         47},
        {"--xyz\r\nContent-Disposition: form-data; name=a; name=a\r\n", ERR_SYNTAX, "not form-data",
         "", 54},
        {"--xyz\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n",
         ERR_UNSUPPORTED, "base64", "", 81},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(&cases[i]);
}

static void heads_and_fields_are_bounded(void **state)
{
    (void)state;
    struct text form;
    struct request request;
    struct problem problem;
    text_init(&form);
    text_string(&form, "--xyz\r\n");
    for (int i = 0; i < LIMIT_PART_HEAD_BYTES / 8; i++)
        text_string(&form, "A: bcd\r\n");
    text_string(&form, "\r\n");
    assert_int_equal(decode(&request, NULL, TYPE, NULL, form.data, form.size, 999, &problem),
                     ERR_TOO_LARGE);
    assert_int_equal(problem.limit, LIMIT_PART_HEAD_BYTES);
    request_fini(&request);
    text_clear(&form);
    char long_value[LIMIT_FIELD_BYTES + 2];
    memset(long_value, 'x', sizeof long_value - 1);
    long_value[sizeof long_value - 1] = '\0';
    add_field(&form, "id", long_value);
    assert_int_equal(decode(&request, NULL, TYPE, NULL, form.data, form.size, 9, &problem),
                     ERR_TOO_LARGE);
    assert_string_equal(problem.pointer, "/id");
    request_fini(&request);
    text_clear(&form);
    add_part(&form, "name=id", NULL, "x\0y", 3);
    close_form(&form);
    assert_int_equal(decode(&request, NULL, TYPE, NULL, form.data, form.size, 9, &problem),
                     ERR_VALUE);
    request_fini(&request);
    text_fini(&form);
}

static void content_types_without_a_boundary_are_refused(void **state)
{
    (void)state;
    static const char *const types[] = {
        NULL,
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"xyz",
        "multipart/form-data; boundary=\"xyz \"",
        "multipart/form-data; boundary=x{z",
        "multipart/form-data; boundary=xyz; boundary=xyz",
        "multipart/form-data; boundary",
        "multipart/form-data; boundary="
        "12345678901234567890123456789012345678901234567890123456789012345678901",
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, NULL, types[i], NULL, "", 0, 1, &problem), ERR_SYNTAX);
        request_fini(&request);
    }
    struct request request;
    struct problem problem;
    assert_int_equal(
        decode(&request, NULL,
               "multipart/form-data; boundary="
               "1234567890123456789012345678901234567890123456789012345678901234567890",
               NULL, "", 0, 1, &problem),
        ERR_SYNTAX);
    assert_non_null(strstr(problem.detail, "ends before its last boundary"));
    request_fini(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_like_a_boundary_are_the_operand_s),
        cmocka_unit_test(boundaries_of_all_lengths_are_found_at_all_distances),
        cmocka_unit_test(operands_of_every_kind_go_together_in_either_order),
        cmocka_unit_test(an_array_tells_the_type_of_the_other_operand),
        cmocka_unit_test(what_stands_around_the_parts_is_ignored),
        cmocka_unit_test(fields_are_the_options),
        cmocka_unit_test(one_row_is_handed_on),
        cmocka_unit_test(wrong_parts_are_refused_where_they_are_wrong),
        cmocka_unit_test(wrong_heads_of_parts_are_refused_where_they_are_wrong),
        cmocka_unit_test(heads_and_fields_are_bounded),
        cmocka_unit_test(content_types_without_a_boundary_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
