/* unpack_test.c - compressed bodies: cut anywhere, in members, bounded, and refused where they are
 * broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "proto/encoding.h"
#include "proto/text.h"
#include "tests/random.h"
#include "tests/unit/feed.h"

enum { MAX_BYTES = 1 << 20, GZIP = 16 + MAX_WBITS, ZLIB = MAX_WBITS };

/* Appends data compressed, as gzip or as zlib does. */
static void pack(struct text *text, int window_bits, const void *data, size_t size)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    size_t bound = deflateBound(&stream, size) + 64;
    unsigned char *out = malloc(bound);
    assert_non_null(out);
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (unsigned)size;
    stream.next_out = out;
    stream.avail_out = (unsigned)bound;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    text_append(text, (char *)out, bound - stream.avail_out);
    assert_int_equal(deflateEnd(&stream), Z_OK);
    free(out);
}

/* Decodes a compressed body of int8 in random pieces of at most so many bytes. */
static enum error decode(struct request *request, enum coding coding, const struct text *body,
                         size_t most, uint64_t max_bytes, struct problem *problem)
{
    const struct feed_how how = {.encoding = &encoding_raw,
                                 .query = "dtype=int8",
                                 .announced = BODY_CHUNKED,
                                 .max_bytes = MAX_BYTES,
                                 .coding = coding,
                                 .max_unpacked_bytes = max_bytes};
    return feed_request(request, &how, body->data, body->size, most, problem);
}

static void check(const struct request *request, const char *data, size_t size)
{
    assert_int_equal(tensor_length(&request->pair->a), size / 2);
    if (size > 0)
        assert_memory_equal(request->buffer.block.data, data, size);
}

static const size_t pieces[] = {1, 7, 100, 1000000};

static void fill(char *data, size_t size, bool is_plain)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(is_plain ? i / 1000 : random_next());
}

static void bodies_cut_anywhere_are_what_was_compressed(void **state)
{
    (void)state;
    static char data[200000];
    static const size_t sizes[] = {0, 2, 1000, 32768, 65536, sizeof data};
    for (size_t i = 0; i < 6 * 4 * 2 * 2; i++) {
        size_t size = sizes[i % 6];
        const bool is_gzip = i / 24 % 2, is_plain = i / 48;
        struct text body;
        struct request request;
        struct problem problem;
        text_init(&body);
        fill(data, size, is_plain);
        pack(&body, is_gzip ? GZIP : ZLIB, data, size);
        assert_int_equal(decode(&request, is_gzip ? CODING_GZIP : CODING_DEFLATE, &body,
                                pieces[i / 6 % 4], sizeof data, &problem),
                         ERR_OK);
        check(&request, data, size);
        request_fini(&request);
        text_fini(&body);
    }
}

static void members_of_gzip_follow_each_other(void **state)
{
    (void)state;
    static char data[3000];
    static const size_t ends[] = {0, 1, 1, 1000, 2999, 3000};
    fill(data, sizeof data, false);
    for (size_t i = 0; i < 4; i++) {
        struct text body;
        struct request request;
        struct problem problem;
        text_init(&body);
        for (size_t j = 0; j + 1 < sizeof ends / sizeof *ends; j++)
            pack(&body, GZIP, data + ends[j], ends[j + 1] - ends[j]);
        assert_int_equal(decode(&request, CODING_GZIP, &body, pieces[i], 3000, &problem), ERR_OK);
        check(&request, data, sizeof data);
        request_fini(&request);
        text_fini(&body);
    }
}

static void no_coding_needs_no_decompressor(void **state)
{
    (void)state;
    struct text body;
    struct request request;
    struct problem problem;
    text_init(&body);
    text_string(&body, "1234");
    assert_int_equal(decode(&request, CODING_NONE, &body, 3, 2, &problem), ERR_OK);
    check(&request, "1234", 4);
    request_fini(&request);
    text_fini(&body);
}

/* Every cut, any byte after the end, and every bit: none of them changes what is computed. */
static void broken_bodies_are_refused(void **state)
{
    (void)state;
    static char data[300];
    fill(data, sizeof data, false);
    for (int is_gzip = 0; is_gzip < 2; is_gzip++) {
        const enum coding coding = is_gzip ? CODING_GZIP : CODING_DEFLATE;
        struct text body;
        struct request request;
        struct problem problem;
        text_init(&body);
        pack(&body, is_gzip ? GZIP : ZLIB, data, sizeof data);
        const size_t whole = body.size;
        for (body.size = 0; body.size < whole; body.size++) {
            assert_int_equal(decode(&request, coding, &body, 50, MAX_BYTES, &problem), ERR_SYNTAX);
            assert_int_equal(problem.offset, body.size);
            assert_non_null(strstr(problem.detail, "too early"));
            request_fini(&request);
        }
        for (int byte = 0; byte < 256; byte++) {
            body.size = whole;
            const char more[] = {(char)byte};
            text_append(&body, more, 1);
            assert_int_equal(decode(&request, coding, &body, 50, MAX_BYTES, &problem), ERR_SYNTAX);
            request_fini(&request);
        }
        body.size = whole;
        for (size_t bit = 0; bit < 8 * whole; bit++) {
            body.data[bit / 8] ^= (char)(1 << bit % 8);
            enum error err = decode(&request, coding, &body, 50, MAX_BYTES, &problem);
            if (err == ERR_OK) /* of some bits nothing depends */
                check(&request, data, sizeof data);
            else
                assert_int_equal(err, ERR_SYNTAX);
            body.data[bit / 8] ^= (char)(1 << bit % 8);
            request_fini(&request);
        }
        text_fini(&body);
    }
}

static void what_grows_beyond_the_limit_is_refused_as_it_does(void **state)
{
    (void)state;
    static char data[1 << 19];
    for (size_t i = 0; i < 4; i++) {
        struct text body;
        struct request request;
        struct problem problem;
        text_init(&body);
        pack(&body, GZIP, data, sizeof data);
        assert_in_range(body.size, 1, 1000);
        assert_int_equal(decode(&request, CODING_GZIP, &body, pieces[i], sizeof data, &problem),
                         ERR_OK);
        request_fini(&request);
        assert_int_equal(decode(&request, CODING_GZIP, &body, pieces[i], sizeof data - 1, &problem),
                         ERR_TOO_LARGE);
        assert_int_equal(problem.limit, sizeof data - 1);
        assert_string_equal(problem.setting, "max_body_bytes");
        request_fini(&request);
        assert_int_equal(decode(&request, CODING_GZIP, &body, pieces[i], 1000, &problem),
                         ERR_TOO_LARGE);
        assert_in_range(request.buffer.used, 0, 1000);
        request_fini(&request);
        text_fini(&body);
    }
}

static void the_decoder_behind_refuses_as_it_always_does(void **state)
{
    (void)state;
    struct text body;
    struct request request;
    struct problem problem;
    text_init(&body);
    pack(&body, ZLIB, "123", 3);
    assert_int_equal(decode(&request, CODING_DEFLATE, &body, 5, 100, &problem), ERR_LENGTH);
    request_fini(&request);
    text_fini(&body);
}

static void codings_are_known_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum coding coding;
    } cases[] = {
        {NULL, CODING_NONE},   {"identity", CODING_NONE}, {"gzip", CODING_GZIP},
        {"GZip", CODING_GZIP}, {"x-gzip", CODING_GZIP},   {"deflate", CODING_DEFLATE},
    };
    static const char *const unknown[] = {"", "br", "zstd", "gzip, gzip", "gzip,", "compress"};
    struct problem problem;
    enum coding coding;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(coding_for(cases[i].name, &coding, &problem), ERR_OK);
        assert_int_equal(coding, cases[i].coding);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(coding_for(unknown[i], &coding, &problem), ERR_MEDIA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_cut_anywhere_are_what_was_compressed),
        cmocka_unit_test(members_of_gzip_follow_each_other),
        cmocka_unit_test(no_coding_needs_no_decompressor),
        cmocka_unit_test(broken_bodies_are_refused),
        cmocka_unit_test(what_grows_beyond_the_limit_is_refused_as_it_does),
        cmocka_unit_test(the_decoder_behind_refuses_as_it_always_does),
        cmocka_unit_test(codings_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
