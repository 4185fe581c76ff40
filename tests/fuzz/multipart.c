/* multipart.c - forms decode alike however they are cut, and whether b is kept or handed on. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const queries[] = {NULL, "dtype=float32", "dtype=>i4", "dtype=int8"};
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    const struct decode_how how = {
        .encoding = &encoding_multipart,
        .query = queries[choice & 3],
        .content_type = choice & 4 ? "multipart/form-data; boundary=\"a-a\"" : "x;boundary=xyz",
        .body_bytes = choice & 8 ? BODY_CHUNKED : input.size,
        .max_bytes = choice & 16 ? 64 : MAX_BYTES,
        .has_sink = (choice & 32) != 0,
        .sink_min_bytes = choice & 64 ? 48 : 0,
    };
    check_any_cuts(&how, input.data, input.size, cuts);
    return 0;
}
