/* decode.h - bodies decoded in pieces, and two decodings compared: they must agree in all they
 * say. */
#ifndef TESTS_FUZZ_DECODE_H
#define TESTS_FUZZ_DECODE_H

#include "proto/encoding.h"
#include "tests/fuzz/fuzz.h"

struct decoding {
    struct request request;
    enum error error;
    struct problem problem;
    struct sink sink;
    char *streamed[2]; /* owned: what went to the sink, of a and of b */
    size_t streamed_bytes;
};

struct decode_how {
    const struct encoding *encoding;
    const char *query;        /* NULL: none */
    const char *content_type; /* likewise */
    uint64_t body_bytes;      /* that are announced */
    enum coding coding;       /* of body */
    uint64_t max_unpacked_bytes;
    size_t max_bytes;
    bool has_sink;
    uint64_t sink_min_bytes;
};

/* Feeds body in pieces of exact size, to its end. */
enum error feed(struct decoder *decoder, const void *body, size_t size, struct cuts cuts,
                struct problem *problem);

/* Decodes body in pieces of exact size, and lets request_check() judge what came out: between
 * decoding_init() and decoding_judge(), which are for decoders that are made otherwise as well. */
void decode(struct decoding *ret, const struct decode_how *how, const void *body, size_t size,
            struct cuts cuts);
void decoding_init(struct decoding *decoding, bool has_sink, uint64_t sink_min_bytes);
void decoding_judge(struct decoding *decoding, size_t max_bytes);
void decoding_fini(struct decoding *decoding);

void check_same_options(const struct options *a, const struct options *b);
void check_same_problem(const struct problem *a, const struct problem *b);
void check_same_tensor(const struct request *a, const struct tensor *x, const struct request *b,
                       const struct tensor *y);
void check_same_request(const struct request *a, const struct request *b);
void check_same_decoding(const struct decoding *a, const struct decoding *b);

/* Decodes whole and cut up, which must agree, and what went to the sink once more without one: the
 * same elements must be kept. */
void check_any_cuts(const struct decode_how *how, const void *body, size_t size, struct cuts cuts);

/* The operand's bytes, in a buffer that holds it. */
const char *tensor_data(const struct request *request, const struct tensor *tensor,
                        size_t *ret_size);

#endif
