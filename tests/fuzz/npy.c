/* npy.c - NumPy arrays decode alike however they are cut, and whether they are kept or handed
 * on. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const queries[] = {NULL, "dtype=bf16", "dtype=float32", "conjugate=true"};
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    const struct decode_how how = {
        .encoding = &encoding_npy,
        .query = queries[choice & 3],
        .body_bytes = choice & 4 ? BODY_CHUNKED : input.size + (choice & 8 ? 1 : 0),
        .max_bytes = choice & 16 ? 64 : MAX_BYTES,
        .has_sink = (choice & 32) != 0,
        .sink_min_bytes = choice & 64 ? 48 : 0,
    };
    check_any_cuts(&how, input.data, input.size, cuts);
    return 0;
}
