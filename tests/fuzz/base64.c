/* base64.c - base64 in JSON decodes alike however it is cut, and back to the bytes it was made
 * of. */
#include "tests/fuzz/decode.h"

enum { MAX_BYTES = 1 << 16 };

static size_t append(char *text, size_t used, const char *more)
{
    size_t size = strlen(more);
    memcpy(text + used, more, size);
    return used + size;
}

/* The bytes as a writer of JSON may have them: style chooses alphabet, padding and escapes. */
static size_t print(const uint8_t *data, size_t size, unsigned style, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const char *const specials[] = {style & 1   ? "-"
                                    : style & 2 ? "\\u002b"
                                                : "+",
                                    style & 1   ? "_"
                                    : style & 2 ? "\\/"
                                                : "/"};
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (i + j < size ? data[i + j] : 0);
        for (size_t j = 0; j < 4; j++) {
            unsigned digit = bits >> (18 - 6 * j) & 63;
            if (i + j > size) /* of 1 byte 2 digits, of 2 bytes 3 */
                used = append(text, used, style & 4 ? "" : style & 2 ? "\\u003D" : "=");
            else if (digit >= 62)
                used = append(text, used, specials[digit - 62]);
            else
                text[used++] = digits[digit];
        }
    }
    return used;
}

static void check_bytes(const struct decode_how *how, const uint8_t *data, size_t size,
                        unsigned style, struct cuts cuts)
{
    struct decoding decoding;
    char *body = malloc(8 * size + 200);
    CHECK(body != NULL, "no memory");
    size_t used = append(body, 0, "{\"a\":{\"dtype\":\"u1\",\"base64\":\"");
    used += print(data, size, style, body + used);
    used = append(body, used, "\"},\"b\":{\"base64\":\"");
    used += print(data, size, style >> 3, body + used);
    used = append(body, used, "\"}}");
    decode(&decoding, how, body, used, cuts);
    CHECK(decoding.error == ERR_OK, "%.*s: %s", (int)used, body, decoding.problem.detail);
    const struct tensor *tensors[] = {&decoding.request.pair->a, &decoding.request.pair->b};
    for (int i = 0; i < 2; i++) {
        size_t got;
        const char *bytes = tensor_data(&decoding.request, tensors[i], &got);
        CHECK(got == size && (size == 0 || memcmp(bytes, data, size) == 0), "%zu of %zu", got,
              size);
    }
    decoding_fini(&decoding);
    free(body);
}

/* The input is the text of one operand, and whatever follows it. */
static void check_text(const struct decode_how *how, const uint8_t *data, size_t size,
                       struct cuts cuts)
{
    char *body = malloc(size + 100);
    CHECK(body != NULL, "no memory");
    size_t used = append(body, 0, "{\"b\":[],\"a\":{\"dtype\":\"u1\",\"base64\":\"");
    if (size > 0)
        memcpy(body + used, data, size);
    used = append(body, used + size, "\"}}");
    check_any_cuts(how, body, used, cuts);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct cuts cuts = {input_byte(&input)};
    unsigned choice = input_byte(&input);
    const struct decode_how how = {
        .encoding = &encoding_json, .body_bytes = BODY_CHUNKED, .max_bytes = MAX_BYTES};
    if (choice & 1)
        check_bytes(&how, input.data, input.size, choice >> 1, cuts);
    else
        check_text(&how, input.data, input.size, cuts);
    return 0;
}
