/* oip.c - inferences decode alike however they are cut; what is handed on is what would be kept. */
#include "proto/oip.h"
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

struct how {
    unsigned model;
    const char *length; /* of the JSON, as the header says; NULL: no header */
    uint64_t body_bytes;
    size_t max_bytes;
    bool has_sink;
};

static void infer(struct decoding *ret, struct oip_call *ret_call, const struct how *how,
                  const struct input *body, struct cuts cuts)
{
    struct decoder *decoder = NULL;
    *ret_call = (struct oip_call){.model = oip_model(how->model)};
    decoding_init(ret, how->has_sink, 0);
    ret->error = oip_decoder_create(&decoder, ret_call, &ret->request, how->length, how->body_bytes,
                                    how->max_bytes, &ret->problem);
    if (ret->error == ERR_OK)
        ret->error = feed(decoder, body->data, body->size, cuts, &ret->problem);
    decoder_destroy(decoder);
    decoding_judge(ret, how->max_bytes);
}

/* Whichever came first was called a. */
static void check_streamed(const struct decoding *streamed, struct how how,
                           const struct input *body)
{
    struct decoding kept;
    struct oip_call call;
    how.has_sink = false;
    infer(&kept, &call, &how, body, (struct cuts){0});
    if (kept.error == ERR_OK) { /* keeping both may take too much memory */
        size_t size_a, size_b;
        const struct tensor_pair *pair = kept.request.pair;
        const char *a = tensor_data(&kept.request, &pair->a, &size_a);
        const char *b = tensor_data(&kept.request, &pair->b, &size_b);
        bool swapped = pair->a.offset > pair->b.offset;
        CHECK(size_a == streamed->streamed_bytes && size_b == size_a, "%zu, %zu of %zu bytes",
              size_a, size_b, streamed->streamed_bytes);
        CHECK(memcmp(streamed->streamed[swapped], a, size_a) == 0, "a");
        CHECK(memcmp(streamed->streamed[!swapped], b, size_b) == 0, "b");
    }
    decoding_fini(&kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input), json = input_byte(&input);
    char length[16];
    (void)snprintf(length, sizeof length, "%u", json * 2);
    const struct how how = {
        .model = (choice & 7) % OIP_MODELS,
        .length = choice & 8 ? length : NULL,
        .body_bytes = choice & 16 ? BODY_CHUNKED : input.size,
        .max_bytes = choice & 32 ? 256 : MAX_BYTES,
        .has_sink = (choice & 64) != 0,
    };
    struct decoding whole, pieces;
    struct oip_call call, call_pieces;
    infer(&whole, &call, &how, &input, (struct cuts){0});
    infer(&pieces, &call_pieces, &how, &input, cuts);
    check_same_decoding(&whole, &pieces);
    CHECK(whole.error != ERR_OK || call.wants_binary == call_pieces.wants_binary, "outputs");
    if (whole.error == ERR_OK && whole.request.is_streamed)
        check_streamed(&whole, how, &input);
    decoding_fini(&whole);
    decoding_fini(&pieces);
    return 0;
}
