/* raw.c - raw bodies decode alike however they are cut, and whether they are kept or handed on. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

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
    check_any_cuts(&how, body, body_size, cuts);
    free(query);
    return 0;
}
