/* json.c - JSON bodies decode alike however they are cut, with their length known or not. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const queries[] = {
        NULL,         "dtype=float32", "dtype=i8",          "dtype=c64",
        "dtype=bf16", "dtype=float64", "id=x&accuracy=fast"};
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    const struct decode_how how = {
        .encoding = &encoding_json,
        .query = queries[choice % (sizeof queries / sizeof *queries)],
        .body_bytes = choice & 0x80 ? BODY_CHUNKED : input.size,
        .max_bytes = choice & 0x40 ? 256 : MAX_BYTES,
    };
    check_any_cuts(&how, input.data, input.size, cuts);
    return 0;
}
