/* rounds_test.c - raw bodies that are one row: what goes to the sink, whatever way they arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/exact/sum.h"
#include "proto/bytes.h"
#include "proto/encoding.h"
#include "tests/random.h"
#include "tests/unit/feed.h"

enum { MAX_BYTES = 1 << 20, N_MAX = 5000, ELEMENT_MAX = 16 };

/* Adds what it is given, and checks that it may be given so. */
struct adder {
    struct exact_sum sum;
    enum dtype dtype;
    uint64_t n, calls;
    uint64_t placed;              /* calls with elements that lay in room already */
    _Alignas(16) char room[5000]; /* where it wants those of b */
};

static void add(void *context, const void *a, const void *b, uint64_t n)
{
    struct adder *adder = context;
    size_t part = dtype_size(dtype_part(adder->dtype));
    assert_true(n > 0 && n * dtype_size(adder->dtype) <= LIMIT_PIECE_BYTES);
    assert_true((uintptr_t)a % part == 0 && (uintptr_t)b % part == 0);
    exact_sum_add(&adder->sum, a, b, n);
    adder->n += n;
    adder->calls++;
    adder->placed += (const char *)b >= adder->room && (const char *)b <= adder->room + 4000;
}

/* Never the same place, nor as much room, twice. */
static char *place(void *context, size_t *ret_room)
{
    struct adder *adder = context;
    const size_t size = dtype_size(adder->dtype);
    *ret_room = (1 + adder->calls % 50) * size;
    return adder->room + adder->calls % 100 * size;
}

static struct sink sink_of(struct adder *adder, uint64_t min_bytes)
{
    return (struct sink){.take = add, .context = adder, .min_bytes = min_bytes, .place = place};
}

static struct adder adder_of(enum dtype dtype)
{
    struct adder adder = {.dtype = dtype};
    exact_sum_init(&adder.sum, NULL, dtype, false, false);
    return adder;
}

/* Two vectors as they are, and as a body of blocks; the body begins at any address. */
struct operands {
    char a[N_MAX * ELEMENT_MAX], b[N_MAX * ELEMENT_MAX];
    char body[2 * N_MAX * ELEMENT_MAX + ELEMENT_MAX];
};

static void fill(char *data, enum dtype dtype, uint64_t n)
{
    for (size_t i = 0; i < n * dtype_size(dtype); i++)
        data[i] = (char)random_next();
    if (dtype == DTYPE_FLOAT64 || dtype == DTYPE_COMPLEX128) /* no infinities: they hide errors */
        for (size_t i = 7; i < n * dtype_size(dtype); i += 8)
            data[i] &= (char)0xbf;
    if (dtype == DTYPE_FLOAT32 || dtype == DTYPE_COMPLEX64 || dtype == DTYPE_BFLOAT16)
        for (size_t i = dtype == DTYPE_BFLOAT16; i < n * dtype_size(dtype);
             i += dtype == DTYPE_BFLOAT16 ? 2 : 4)
            data[dtype == DTYPE_BFLOAT16 ? i : i + 3] &= (char)0xbf;
    if (dtype == DTYPE_FLOAT16)
        for (size_t i = 1; i < 2 * n; i += 2)
            data[i] &= (char)0xbf;
}

static void lay_out(const struct operands *operands, enum dtype dtype, uint64_t n, uint64_t block,
                    bool is_big, char *body)
{
    size_t size = dtype_size(dtype), done = 0;
    char *end = body;
    while (done < n) {
        size_t count = n - done < block ? n - done : block;
        memcpy(end, operands->a + done * size, count * size);
        memcpy(end + count * size, operands->b + done * size, count * size);
        end += 2 * count * size;
        done += count;
    }
    if (is_big)
        swap_numbers(body, 2 * n * size, dtype_size(dtype_part(dtype)));
}

/* Decodes a body in pieces of random sizes up to most. */
static enum error decode(struct request *request, const struct sink *sink, const char *query,
                         const char *body, size_t size, uint64_t announced, size_t most,
                         struct problem *problem)
{
    const struct feed_how how = {.encoding = &encoding_raw,
                                 .sink = sink,
                                 .query = query,
                                 .announced = announced,
                                 .max_bytes = MAX_BYTES};
    return feed_request(request, &how, body, size, most, problem);
}

static void check_sums(struct adder *adder, const struct operands *operands, uint64_t n)
{
    struct dot_value expected[2] = {0}, value[2] = {0};
    struct exact_sum whole;
    enum dtype result = dtype_is_complex(adder->dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64;
    exact_sum_init(&whole, NULL, adder->dtype, false, false);
    if (n > 0)
        exact_sum_add(&whole, operands->a, operands->b, n);
    exact_sum_round(&whole, result, expected);
    exact_sum_round(&adder->sum, result, value);
    assert_int_equal(adder->n, n);
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(&value[i].sum, &expected[i].sum, sizeof(double));
        assert_memory_equal(value[i].integer, expected[i].integer, sizeof value[i].integer);
    }
}

static const size_t pieces[] = {1, 7, 300, 70000};

/* Concatenated and interleaved, known and chunked, at every alignment. */
static void check_every_way(struct operands *operands, enum dtype dtype, uint64_t n, uint64_t block,
                            bool is_big, const char *query)
{
    size_t size = 2 * n * dtype_size(dtype);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        char *body = operands->body + random_next() % ELEMENT_MAX;
        lay_out(operands, dtype, n, block, is_big, body);
        for (int chunked = 0; chunked < 2; chunked++) {
            struct adder adder = adder_of(dtype);
            const struct sink sink = sink_of(&adder, 0);
            struct request request;
            struct problem problem;
            assert_int_equal(decode(&request, &sink, query, body, size,
                                    chunked ? BODY_CHUNKED : size, pieces[i], &problem),
                             ERR_OK);
            assert_true(request.is_streamed);
            check_sums(&adder, operands, n);
            assert_int_equal(tensor_length(&request.pair[0].a), n);
            assert_int_equal(tensor_length(&request.pair[0].b), n);
            request_fini(&request);
        }
    }
}

static void blocks_in_turn_are_the_whole_vectors(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 2, 5, 64, 1000, N_MAX},
                          blocks[] = {1, 3, 64, 1024, 6000};
    struct operands *operands = malloc(sizeof *operands);
    assert_non_null(operands);
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        for (int big = 0; big < 2; big++) {
            uint64_t n = lengths[random_next() % 7], block = blocks[random_next() % 5];
            char query[96];
            fill(operands->a, dtype, n);
            fill(operands->b, dtype, n);
            (void)snprintf(query, sizeof query, "dtype=%s&layout=interleaved;block=%d",
                           dtype_name(dtype), (int)block);
            check_every_way(operands, dtype, n, block, false, query);
            static const char *const codes[] = {">f4", ">f8", ">f2", NULL,  ">i1",
                                                ">u1", ">i4", ">i8", ">c8", ">c16"};
            if (codes[dtype] == NULL)
                continue;
            (void)snprintf(query, sizeof query, "dtype=%s&layout=interleaved%%3Bblock=%d",
                           codes[dtype], (int)block);
            check_every_way(operands, dtype, n, block, true, query);
        }
    }
    free(operands);
}

static void halves_of_a_known_length_are_the_whole_vectors(void **state)
{
    (void)state;
    struct operands *operands = malloc(sizeof *operands);
    assert_non_null(operands);
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        uint64_t n = 1 + random_next() % N_MAX;
        char query[96];
        fill(operands->a, dtype, n);
        fill(operands->b, dtype, n);
        for (int shapes = 0; shapes < 2; shapes++) {
            size_t size = 2 * n * dtype_size(dtype);
            (void)snprintf(query, sizeof query,
                           shapes ? "dtype=%s&shape_a=1,%d&shape_b=%d" : "dtype=%s",
                           dtype_name(dtype), (int)n, (int)n);
            for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
                char *body = operands->body + random_next() % ELEMENT_MAX;
                struct adder adder = adder_of(dtype);
                const struct sink sink = sink_of(&adder, size);
                struct request request;
                struct problem problem;
                lay_out(operands, dtype, n, n, false, body);
                assert_int_equal(decode(&request, &sink, query, body, size,
                                        shapes ? BODY_CHUNKED : size, pieces[i], &problem),
                                 ERR_OK);
                assert_true(request.is_streamed);
                assert_int_equal(request.buffer.used, size / 2); /* b is stored nowhere */
                assert_true(pieces[i] != 300 || size < 20 * pieces[i] || adder.placed > 0);
                check_sums(&adder, operands, n);
                request_fini(&request);
            }
        }
    }
    free(operands);
}

static void what_is_no_single_known_row_stays_in_the_buffer(void **state)
{
    (void)state;
    static const char body[64];
    static const struct {
        const char *query;
        uint64_t announced, min_bytes;
    } cases[] = {
        {"dtype=f4", BODY_CHUNKED, 0},
        {"dtype=f4", 64, 65},
        {"dtype=f4&shape_a=2,4&shape_b=2,4", 64, 0},
        {"dtype=f4&shape_a=3,4&shape_b=4", 64, 0},
        {"dtype=f4&shape_a=8", BODY_CHUNKED, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adder adder = adder_of(DTYPE_FLOAT32);
        const struct sink sink = sink_of(&adder, cases[i].min_bytes);
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, &sink, cases[i].query, body, sizeof body,
                                cases[i].announced, 9, &problem),
                         ERR_OK);
        assert_false(request.is_streamed);
        assert_int_equal(adder.calls, 0);
        request_fini(&request);
    }
}

static void wrong_interleaved_bodies_are_refused(void **state)
{
    (void)state;
    static const char body[64];
    static const struct {
        const char *query;
        size_t size;
        uint64_t announced;
        enum error error;
        const char *detail;
    } cases[] = {
        {"dtype=f4&layout=interleaved", 8, 8, ERR_VALUE, "block=N"},
        {"dtype=f4&layout=interleaved;block=0", 8, 8, ERR_VALUE, "block=N"},
        {"dtype=f4&layout=interleaved;block=-1", 8, 8, ERR_VALUE, "block=N"},
        {"dtype=f4&layout=blocks", 8, 8, ERR_VALUE, "concat"},
        {"dtype=f4&layout=interleaved;block=262145", 8, 8, ERR_TOO_LARGE, "1048576"},
        {"dtype=f4&layout=interleaved;block=9223372036854775807", 8, BODY_CHUNKED, ERR_TOO_LARGE,
         "1048576"},
        {"dtype=f4&layout=interleaved;block=2", 7, 7, ERR_LENGTH, "--data-binary"},
        {"dtype=f4&layout=interleaved;block=2", 7, BODY_CHUNKED, ERR_LENGTH, "--data-binary"},
        {"dtype=f4&layout=interleaved;block=2", 12, 12, ERR_LENGTH, "odd"},
        {"dtype=f4&layout=interleaved;block=2", 12, BODY_CHUNKED, ERR_LENGTH, "odd"},
        {"dtype=f4&layout=interleaved;block=2", 16, 24, ERR_LENGTH, "ends after 16"},
        {"dtype=f4&layout=interleaved;block=2", 16, 8, ERR_LENGTH, "goes on after 8"},
        {"dtype=f4&layout=interleaved;block=2&shape_a=3", 16, 16, ERR_SHAPE, "(3,)"},
        {"dtype=f4&layout=interleaved;block=2&shape_a=3", 16, BODY_CHUNKED, ERR_SHAPE, "(3,)"},
        {"dtype=f4&layout=interleaved;block=2&shape_a=2&shape_b=2", 24, BODY_CHUNKED, ERR_LENGTH,
         "goes on after 16"},
        {"dtype=f4&layout=interleaved;block=2&shape_a=2,2&shape_b=2,2", 32, 32, ERR_UNSUPPORTED,
         "two vectors"},
        {"dtype=f4&layout=interleaved;block=2&shape_a=2,2", 24, BODY_CHUNKED, ERR_UNSUPPORTED,
         "two vectors"},
        {"dtype=f4&layout=interleaved;block=2&shape_a=9223372036854775807&shape_b=1", 24,
         BODY_CHUNKED, ERR_TOO_LARGE, "more than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adder adder = adder_of(DTYPE_FLOAT32);
        const struct sink sink = sink_of(&adder, 0);
        struct request request;
        struct problem problem;
        assert_int_equal(decode(&request, &sink, cases[i].query, body, cases[i].size,
                                cases[i].announced, 40, &problem),
                         cases[i].error);
        if (strstr(problem.detail, cases[i].detail) == NULL)
            assert_string_equal(problem.detail, cases[i].detail);
        request_fini(&request);
    }
}

static void interleaved_bodies_need_somewhere_to_go(void **state)
{
    (void)state;
    static const char body[16];
    struct request request;
    struct problem problem;
    assert_int_equal(
        decode(&request, NULL, "dtype=f4&layout=interleaved;block=2", body, 16, 16, 16, &problem),
        ERR_UNSUPPORTED);
    assert_string_equal(problem.pointer, "/layout");
    request_fini(&request);
}

/* A length that no buffer holds, of which one block is in memory at a time. */
static void a_row_longer_than_memory_is_handed_on(void **state)
{
    (void)state;
    enum { BLOCK = 1 << 16, ROUNDS = 3 * MAX_BYTES / BLOCK };
    static char block[BLOCK];
    memset(block, 1, sizeof block);
    for (int chunked = 0; chunked < 2; chunked++) {
        struct adder adder = adder_of(DTYPE_INT8);
        const struct sink sink = sink_of(&adder, 0);
        struct request request;
        struct problem problem;
        struct decoder *decoder;
        request_init(&request, &buffer_heap);
        request.sink = &sink;
        assert_int_equal(options_from_query(&request.options,
                                            "dtype=int8&layout=interleaved;block=65536", NULL, NULL,
                                            &problem),
                         ERR_OK);
        assert_int_equal(decoder_create(&decoder, &encoding_raw, &request,
                                        chunked ? BODY_CHUNKED : 2 * ROUNDS * BLOCK, MAX_BYTES,
                                        &problem),
                         ERR_OK);
        for (int i = 0; i < 2 * ROUNDS; i++)
            assert_int_equal(decoder_feed(decoder, block, BLOCK, &problem), ERR_OK);
        assert_int_equal(decoder_finish(decoder, &problem), ERR_OK);
        decoder_destroy(decoder);
        assert_int_equal(adder.n, (uint64_t)ROUNDS * BLOCK);
        assert_int_equal(request.buffer.block.size, chunked ? 2 * BLOCK : BLOCK);
        struct dot_value value[2];
        exact_sum_round(&adder.sum, DTYPE_INT64, value);
        assert_int_equal(value[0].integer[0], (uint64_t)ROUNDS * BLOCK);
        request_fini(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_in_turn_are_the_whole_vectors),
        cmocka_unit_test(halves_of_a_known_length_are_the_whole_vectors),
        cmocka_unit_test(what_is_no_single_known_row_stays_in_the_buffer),
        cmocka_unit_test(wrong_interleaved_bodies_are_refused),
        cmocka_unit_test(interleaved_bodies_need_somewhere_to_go),
        cmocka_unit_test(a_row_longer_than_memory_is_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
