/* raw.c - raw bodies decode alike however they are cut, and whether they are kept or handed on. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

/* The same elements through a buffer that is not streamed. */
static void check_kept(const struct decoding *streamed, struct decode_how how, const void *body,
                       size_t size)
{
    struct decoding kept;
    how.has_sink = false;
    decode(&kept, &how, body, size, (struct cuts){0});
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

static uint64_t announced(unsigned choice, size_t size)
{
    if (choice & 1)
        return BODY_CHUNKED;
    return choice & 2 ? size : size + choice / 64 - 1 < size + 2 ? size + choice / 64 - 1 : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    const uint8_t *end = input.size > 0 ? memchr(input.data, '\n', input.size) : NULL;
    if (end == NULL)
        return 0;
    char *query = text_of(input.data, (size_t)(end - input.data));
    const uint8_t *body = end + 1;
    size_t body_size = (size_t)(data + size - body);
    const struct decode_how how = {
        .encoding = &encoding_raw,
        .query = query,
        .body_bytes = announced(choice, body_size),
        .max_bytes = choice & 4 ? 64 : MAX_BYTES,
        .has_sink = (choice & 8) != 0,
        .sink_min_bytes = choice & 16 ? 48 : 0,
    };
    struct decoding whole, pieces;
    decode(&whole, &how, body, body_size, (struct cuts){0});
    decode(&pieces, &how, body, body_size, cuts);
    check_same_decoding(&whole, &pieces);
    if (whole.error == ERR_OK && whole.request.is_streamed && whole.request.options.block == 0)
        check_kept(&whole, how, body, body_size);
    decoding_fini(&whole);
    decoding_fini(&pieces);
    free(query);
    return 0;
}
