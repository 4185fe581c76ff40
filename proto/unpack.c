/* unpack.c - compressed bodies: a decoder in front of any other (see encoding.h).
 *
 * A piece is decompressed into a small buffer, again and again until it is used up, and each
 * filling goes on to the decoder behind. So memory stays flat whatever a body claims to be, and one
 * that grows beyond the limit is refused as soon as it does. Time is bounded by the limit: some 400
 * MB/s.
 * Source: RFC 9110 section 8.4.1 (codings), RFC 1952 (gzip), RFC 1950 (zlib, which is called
 * deflate).
 */
#include "proto/encoding.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

struct unpacker {
    const struct encoding *encoding; /* first: see encoding.h */
    struct decoder *behind;          /* owned */
    enum coding coding;
    z_stream stream;
    bool is_ended;           /* the stream, or a gzip member, is whole */
    uint64_t received_bytes; /* of the body */
    uint64_t unpacked_bytes;
    uint64_t max_bytes;                       /* of those */
    unsigned char out[LIMIT_PIECE_BYTES / 2]; /* stays in the second cache on its way */
};

static const char *const names[] = {
    [CODING_NONE] = "identity", [CODING_GZIP] = "gzip", [CODING_DEFLATE] = "deflate"};

enum error coding_for(const char *content_encoding, enum coding *ret, struct problem *problem)
{
    const char *name = content_encoding;
    if (name == NULL) {
        *ret = CODING_NONE;
        return ERR_OK;
    }
    if (strcasecmp(name, "x-gzip") == 0)
        name = "gzip"; /* the same, says RFC 9110 */
    for (enum coding coding = CODING_NONE; coding <= CODING_DEFLATE; coding++) {
        if (strcasecmp(name, names[coding]) == 0) {
            *ret = coding;
            return ERR_OK;
        }
    }
    return problem_set(problem, ERR_MEDIA,
                       "Content-Encoding is \"%.64s\"; one of gzip and deflate is read", name);
}

static void unpacker_destroy(struct decoder *decoder)
{
    struct unpacker *unpacker = (struct unpacker *)decoder;
    decoder_destroy(unpacker->behind);
    (void)inflateEnd(&unpacker->stream);
    free(unpacker);
}

static enum error no_memory(struct problem *problem)
{
    return problem_set(problem, ERR_NOMEM, "no memory to decompress with");
}

static enum error too_large(const struct unpacker *unpacker, struct problem *problem)
{
    problem_set(problem, ERR_TOO_LARGE, "the body is larger than %" PRIu64 " bytes, decompressed",
                unpacker->max_bytes);
    return problem_limit(problem, unpacker->max_bytes, "max_body_bytes");
}

/* what NULL: the stream itself does not say. */
static enum error not_well_formed(const struct unpacker *unpacker, const char *what,
                                  struct problem *problem)
{
    problem_set(problem, ERR_SYNTAX, "the body is not whole as %s: %s", names[unpacker->coding],
                what != NULL ? what : "it wants a dictionary");
    return problem_at(problem, unpacker->received_bytes - unpacker->stream.avail_in);
}

/* Decompresses as much as the buffer holds, and hands it on. */
static enum error unpack_some(struct unpacker *unpacker, bool *ret_is_full, struct problem *problem)
{
    z_stream *stream = &unpacker->stream;
    stream->next_out = unpacker->out;
    stream->avail_out = sizeof unpacker->out;
    int status = inflate(stream, Z_NO_FLUSH);
    size_t size = sizeof unpacker->out - stream->avail_out;
    uint64_t room = unpacker->max_bytes - unpacker->unpacked_bytes;
    bool is_too_large = size > room;
    size = is_too_large ? (size_t)room : size;
    *ret_is_full = stream->avail_out == 0;
    unpacker->is_ended = status == Z_STREAM_END;
    unpacker->unpacked_bytes += size;
    enum error err =
        size > 0 ? decoder_feed(unpacker->behind, (char *)unpacker->out, size, problem) : ERR_OK;
    if (err != ERR_OK)
        return err;
    if (is_too_large)
        return too_large(unpacker, problem);
    if (status == Z_MEM_ERROR)
        return no_memory(problem);
    /* Z_BUF_ERROR: there was nothing to do, which is no error. */
    if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR)
        return ERR_OK;
    return not_well_formed(unpacker, stream->msg, problem);
}

/* A gzip body may have several members; nothing else may follow. */
static enum error go_on(struct unpacker *unpacker, struct problem *problem)
{
    if (unpacker->coding != CODING_GZIP)
        return not_well_formed(unpacker, "bytes follow its end", problem);
    int status = inflateReset(&unpacker->stream);
    assert(status == Z_OK);
    unpacker->is_ended = false;
    return ERR_OK;
}

static enum error unpacker_feed(struct decoder *decoder, const char *data, size_t size,
                                struct problem *problem)
{
    struct unpacker *unpacker = (struct unpacker *)decoder;
    z_stream *stream = &unpacker->stream;
    bool is_full = false;
    enum error err = ERR_OK;
    assert(size <= UINT32_MAX);
    stream->next_in = (unsigned char *)(uintptr_t)data; /* zlib does not write there */
    stream->avail_in = (unsigned)size;
    unpacker->received_bytes += size;
    while (err == ERR_OK && (stream->avail_in > 0 || is_full)) {
        if (unpacker->is_ended && stream->avail_in == 0)
            break;
        if (unpacker->is_ended)
            err = go_on(unpacker, problem);
        if (err == ERR_OK)
            err = unpack_some(unpacker, &is_full, problem);
    }
    return err;
}

static enum error unpacker_finish(struct decoder *decoder, struct problem *problem)
{
    struct unpacker *unpacker = (struct unpacker *)decoder;
    if (!unpacker->is_ended)
        return not_well_formed(unpacker, "it ends too early", problem);
    return decoder_finish(unpacker->behind, problem);
}

static const struct encoding encoding_packed = {
    .feed = unpacker_feed,
    .finish = unpacker_finish,
    .destroy = unpacker_destroy,
};

enum error decoder_unpack(struct decoder **decoder, enum coding coding, uint64_t max_bytes,
                          struct problem *problem)
{
    if (coding == CODING_NONE)
        return ERR_OK;
    struct unpacker *unpacker = malloc(sizeof *unpacker);
    if (unpacker == NULL)
        return no_memory(problem);
    unpacker->encoding = &encoding_packed;
    unpacker->coding = coding;
    unpacker->stream = (z_stream){0};
    unpacker->is_ended = false;
    unpacker->received_bytes = unpacker->unpacked_bytes = 0;
    unpacker->max_bytes = max_bytes;
    if (inflateInit2(&unpacker->stream, coding == CODING_GZIP ? 16 + MAX_WBITS : MAX_WBITS) !=
        Z_OK) {
        free(unpacker);
        return no_memory(problem);
    }
    unpacker->behind = *decoder;
    *decoder = (struct decoder *)unpacker;
    return ERR_OK;
}
