/* unpack.c - compressed bodies decode alike however they are cut, and as what was compressed. */
#include <zlib.h>

#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

/* Appends data compressed to packed[0..*used), as gzip or as zlib does. */
static void pack(enum coding coding, const void *data, size_t size, char *packed, size_t room,
                 size_t *used)
{
    z_stream stream = {0};
    int bits = coding == CODING_GZIP ? 16 + MAX_WBITS : MAX_WBITS;
    CHECK(deflateInit2(&stream, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK, "no memory");
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (unsigned)size;
    stream.next_out = (unsigned char *)packed + *used;
    stream.avail_out = (unsigned)(room - *used);
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "%u bytes left", stream.avail_in);
    *used = room - stream.avail_out;
    (void)deflateEnd(&stream);
}

/* What is compressed here, gzip in two members, must come back. */
static void check_packed(const struct decode_how *plain, enum coding coding, const uint8_t *data,
                         size_t size, struct cuts cuts)
{
    struct decoding expected, unpacked;
    struct decode_how how = *plain;
    size_t room = 2 * size + 200, used = 0, first = coding == CODING_GZIP ? size / 3 : 0;
    char *packed = malloc(room);
    CHECK(packed != NULL, "no memory");
    if (coding == CODING_GZIP)
        pack(coding, data, first, packed, room, &used);
    pack(coding, data + first, size - first, packed, room, &used);
    how.coding = coding;
    decode(&expected, plain, data, size, (struct cuts){0});
    decode(&unpacked, &how, packed, used, cuts);
    if (size <= how.max_unpacked_bytes)
        check_same_decoding(&expected, &unpacked);
    else
        CHECK(unpacked.error != ERR_OK, "%zu bytes", size);
    decoding_fini(&expected);
    decoding_fini(&unpacked);
    free(packed);
}

/* Whatever the input is taken for. Where compression is broken zlib notices a few bytes sooner or
 * later. */
static void check_any(const struct decode_how *plain, enum coding coding, const uint8_t *data,
                      size_t size, struct cuts cuts)
{
    struct decoding whole, pieces;
    struct decode_how how = *plain;
    how.coding = coding;
    decode(&whole, &how, data, size, (struct cuts){0});
    decode(&pieces, &how, data, size, cuts);
    whole.problem.offset = pieces.problem.offset;
    check_same_decoding(&whole, &pieces);
    decoding_fini(&whole);
    decoding_fini(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    const enum coding coding = choice & 1 ? CODING_GZIP : CODING_DEFLATE;
    const struct decode_how how = {
        .encoding = choice & 2 ? &encoding_json : &encoding_raw,
        .query = choice & 2 ? NULL : "dtype=i8&layout=interleaved;block=3",
        .body_bytes = BODY_CHUNKED,
        .max_bytes = MAX_BYTES,
        .max_unpacked_bytes = choice & 4 ? 20 : MAX_BYTES,
        .has_sink = true,
    };
    if (choice & 8)
        check_any(&how, coding, input.data, input.size, cuts);
    else
        check_packed(&how, coding, input.data, input.size, cuts);
    return 0;
}
