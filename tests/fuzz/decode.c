/* decode.c - decoding in pieces, and comparing what it gave (see decode.h). */
#include "tests/fuzz/decode.h"

#include <inttypes.h>

enum { MAX_RESULTS = 1 << 20 };

static void take(void *context, const void *a, const void *b, uint64_t n)
{
    struct decoding *decoding = context;
    const void *operand[2] = {a, b};
    size_t bytes = n * dtype_size(decoding->request.options.dtype);
    CHECK(n > 0 && bytes <= LIMIT_PIECE_BYTES, "%" PRIu64 " elements at once", n);
    for (int i = 0; i < 2; i++) {
        char *grown = realloc(decoding->streamed[i], decoding->streamed_bytes + bytes);
        CHECK(grown != NULL, "no memory");
        decoding->streamed[i] = grown;
        memcpy(grown + decoding->streamed_bytes, operand[i], bytes);
    }
    decoding->streamed_bytes += bytes;
}

enum error feed(struct decoder *decoder, const void *body, size_t size, struct cuts cuts,
                struct problem *problem)
{
    enum error err = ERR_OK;
    for (size_t at = 0; err == ERR_OK && at < size;) {
        size_t piece = cuts_next(&cuts, size - at);
        char *copy = copy_of((const char *)body + at, piece);
        err = decoder_feed(decoder, copy, piece, problem);
        free(copy);
        at += piece;
    }
    return err == ERR_OK ? decoder_finish(decoder, problem) : err;
}

void decoding_init(struct decoding *decoding, bool has_sink, uint64_t sink_min_bytes)
{
    memset(decoding, 0, sizeof *decoding);
    request_init(&decoding->request, &buffer_heap);
    problem_clear(&decoding->problem);
    decoding->sink = (struct sink){.take = take, .context = decoding, .min_bytes = sink_min_bytes};
    if (has_sink)
        decoding->request.sink = &decoding->sink;
}

void decoding_judge(struct decoding *decoding, size_t max_bytes)
{
    struct request *request = &decoding->request;
    if (decoding->error == ERR_OK)
        decoding->error = request_check(request, MAX_RESULTS, &decoding->problem);
    CHECK(decoding->error == decoding->problem.error, "error %d, problem %d", decoding->error,
          decoding->problem.error);
    CHECK(request->buffer.used <= max_bytes || max_bytes == 0, "%zu bytes of %zu",
          request->buffer.used, max_bytes);
}

void decode(struct decoding *ret, const struct decode_how *how, const void *body, size_t size,
            struct cuts cuts)
{
    struct decoder *decoder = NULL;
    decoding_init(ret, how->has_sink, how->sink_min_bytes);
    ret->request.content_type = how->content_type;
    ret->error = options_from_query(&ret->request.options, how->query, NULL, NULL, &ret->problem);
    if (ret->error == ERR_OK)
        ret->error = decoder_create(&decoder, how->encoding, &ret->request, how->body_bytes,
                                    how->max_bytes, &ret->problem);
    if (ret->error == ERR_OK)
        ret->error = decoder_unpack(&decoder, how->coding, how->max_unpacked_bytes, &ret->problem);
    if (ret->error == ERR_OK)
        ret->error = feed(decoder, body, size, cuts, &ret->problem);
    decoder_destroy(decoder);
    decoding_judge(ret, how->max_bytes);
}

void decoding_fini(struct decoding *decoding)
{
    request_fini(&decoding->request);
    free(decoding->streamed[0]);
    free(decoding->streamed[1]);
}

static void check_same_shape(const struct shape *a, const struct shape *b)
{
    CHECK(a->rank == b->rank, "ranks %d and %d", a->rank, b->rank);
    for (int i = 0; i < a->rank; i++)
        CHECK(a->dim[i] == b->dim[i], "axis %d: %" PRIu64 " and %" PRIu64, i, a->dim[i], b->dim[i]);
}

void check_same_options(const struct options *a, const struct options *b)
{
    CHECK(a->given == b->given, "given %x and %x", a->given, b->given);
    CHECK(a->dtype == b->dtype && a->order == b->order && a->result_dtype == b->result_dtype,
          "types %d, %d", a->dtype, b->dtype);
    CHECK(a->accuracy == b->accuracy && strcmp(a->kernel, b->kernel) == 0, "%s, %s", a->kernel,
          b->kernel);
    CHECK(a->placement == b->placement && a->device_index == b->device_index, "%d, %d",
          a->device_index, b->device_index);
    CHECK(a->timeout_ms == b->timeout_ms && a->block == b->block, "%" PRIu64 ", %" PRIu64,
          a->timeout_ms, b->timeout_ms);
    CHECK(strcmp(a->id, b->id) == 0, "%s, %s", a->id, b->id);
    CHECK(a->diagnostics == b->diagnostics && a->conjugate == b->conjugate, "booleans");
    check_same_shape(&a->shape_a, &b->shape_a);
    check_same_shape(&a->shape_b, &b->shape_b);
}

void check_same_problem(const struct problem *a, const struct problem *b)
{
    CHECK(a->error == b->error, "errors %s: %s, %s: %s", error_name(a->error), a->detail,
          error_name(b->error), b->detail);
    CHECK(strcmp(a->detail, b->detail) == 0, "\n%s\n%s", a->detail, b->detail);
    CHECK(strcmp(a->pointer, b->pointer) == 0, "%s, %s", a->pointer, b->pointer);
    CHECK(a->offset == b->offset, "%" PRId64 ", %" PRId64 ": %s", a->offset, b->offset, a->detail);
    CHECK(a->limit == b->limit && a->setting == b->setting, "%" PRIu64 ", %" PRIu64, a->limit,
          b->limit);
}

const char *tensor_data(const struct request *request, const struct tensor *tensor,
                        size_t *ret_size)
{
    uint64_t count;
    CHECK(shape_count(&tensor->shape, &count) == ERR_OK, "rank %d", tensor->shape.rank);
    size_t size = count * dtype_size(tensor->dtype);
    CHECK(tensor->offset % dtype_size(tensor->dtype) == 0, "offset %zu", tensor->offset);
    CHECK(size == 0 || tensor->offset + size <= request->buffer.used, "%zu + %zu of %zu",
          tensor->offset, size, request->buffer.used);
    *ret_size = size;
    return size > 0 ? (const char *)request->buffer.block.data + tensor->offset : "";
}

void check_same_tensor(const struct request *a, const struct tensor *x, const struct request *b,
                       const struct tensor *y)
{
    size_t x_size, y_size;
    CHECK(x->dtype == y->dtype, "types %d, %d", x->dtype, y->dtype);
    check_same_shape(&x->shape, &y->shape);
    const char *x_data = tensor_data(a, x, &x_size), *y_data = tensor_data(b, y, &y_size);
    CHECK(x_size == y_size && memcmp(x_data, y_data, x_size) == 0, "operands of %zu, %zu bytes",
          x_size, y_size);
}

void check_same_request(const struct request *a, const struct request *b)
{
    check_same_options(&a->options, &b->options);
    CHECK(a->is_pairs == b->is_pairs && a->pair_count == b->pair_count, "%zu, %zu pairs",
          a->pair_count, b->pair_count);
    CHECK(a->result_count == b->result_count && a->term_count == b->term_count, "counts");
    CHECK(a->is_streamed == b->is_streamed, "streamed %d, %d", a->is_streamed, b->is_streamed);
    for (size_t i = 0; i < a->pair_count && !a->is_streamed; i++) {
        check_same_tensor(a, &a->pair[i].a, b, &b->pair[i].a);
        check_same_tensor(a, &a->pair[i].b, b, &b->pair[i].b);
    }
}

void check_same_decoding(const struct decoding *a, const struct decoding *b)
{
    check_same_problem(&a->problem, &b->problem);
    if (a->error != ERR_OK)
        return;
    check_same_request(&a->request, &b->request);
    CHECK(a->streamed_bytes == b->streamed_bytes, "%zu, %zu", a->streamed_bytes, b->streamed_bytes);
    for (int i = 0; i < 2 && a->streamed_bytes > 0; i++)
        CHECK(memcmp(a->streamed[i], b->streamed[i], a->streamed_bytes) == 0, "operand %d", i);
}

static void check_kept(const struct decoding *streamed, const struct decode_how *how,
                       const void *body, size_t size)
{
    struct decoding kept;
    struct decode_how without = *how;
    without.has_sink = false;
    decode(&kept, &without, body, size, (struct cuts){0});
    if (kept.error == ERR_OK) { /* else its operands are too large to be kept */
        size_t a_size, b_size;
        const char *a = tensor_data(&kept.request, &kept.request.pair->a, &a_size);
        const char *b = tensor_data(&kept.request, &kept.request.pair->b, &b_size);
        CHECK(a_size == streamed->streamed_bytes && b_size == a_size, "%zu, %zu of %zu", a_size,
              b_size, streamed->streamed_bytes);
        CHECK(memcmp(a, streamed->streamed[0], a_size) == 0, "a");
        CHECK(memcmp(b, streamed->streamed[1], a_size) == 0, "b");
    } else {
        CHECK(kept.error == ERR_TOO_LARGE, "%s", kept.problem.detail);
    }
    decoding_fini(&kept);
}

void check_any_cuts(const struct decode_how *how, const void *body, size_t size, struct cuts cuts)
{
    struct decoding whole, pieces;
    decode(&whole, how, body, size, (struct cuts){0});
    decode(&pieces, how, body, size, cuts);
    check_same_decoding(&whole, &pieces);
    if (whole.error == ERR_OK && whole.request.is_streamed && whole.request.options.block == 0)
        check_kept(&whole, how, body, size); /* blocks in turn would be kept in their order */
    decoding_fini(&whole);
    decoding_fini(&pieces);
}
