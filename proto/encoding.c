/* encoding.c - picks a body's encoding and passes its pieces on (see encoding.h). */
#include "proto/encoding.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* Every encoding's decoder begins like this. */
struct decoder {
    const struct encoding *encoding;
};

static const struct media {
    const char *type; /* "" is no type at all */
    size_t size;
    const struct encoding *encoding;
} medias[] = {
#define MEDIA(type, encoding)            \
    {                                    \
        type, sizeof(type) - 1, encoding \
    }
    MEDIA("application/json", &encoding_json),
    MEDIA("text/json", &encoding_json),
    MEDIA("", &encoding_json),
    /* curl -d says this whatever it sends; json.c refuses what is not an object. */
    MEDIA("application/x-www-form-urlencoded", &encoding_json),
    MEDIA("application/octet-stream", &encoding_raw),
    MEDIA("application/x-npy", &encoding_npy),
    MEDIA("multipart/form-data", &encoding_multipart),
#undef MEDIA
};

const char encoding_types[] =
    "application/json, application/octet-stream, application/x-npy, multipart/form-data";

/* The media type without blanks around it and without parameters (RFC 9110 section 8.3). */
static size_t type_trim(const char **type)
{
    *type += strspn(*type, " \t");
    size_t size = strcspn(*type, ";");
    while (size > 0 && ((*type)[size - 1] == ' ' || (*type)[size - 1] == '\t'))
        size--;
    return size;
}

static bool has_json_suffix(const char *type, size_t size)
{
    return size > 5 && strncasecmp(type + size - 5, "+json", 5) == 0 &&
           memchr(type, '/', size) != NULL;
}

enum error encoding_for(const char *content_type, const struct encoding **ret,
                        struct problem *problem)
{
    const char *type = content_type != NULL ? content_type : "";
    size_t size = type_trim(&type);
    for (size_t i = 0; i < sizeof medias / sizeof *medias; i++) {
        if (medias[i].size == size && strncasecmp(medias[i].type, type, size) == 0) {
            *ret = medias[i].encoding;
            return ERR_OK;
        }
    }
    if (has_json_suffix(type, size)) {
        *ret = &encoding_json;
        return ERR_OK;
    }
    return problem_set(
        problem, ERR_MEDIA,
        "Content-Type \"%.64s\" is not read here; text/json, types that end in +json, "
        "and these are: %s",
        type, encoding_types);
}

enum error decoder_create(struct decoder **ret, const struct encoding *encoding,
                          struct request *request, uint64_t body_bytes, size_t max_bytes,
                          struct problem *problem)
{
    struct decoder *decoder = NULL;
    enum error err = encoding->create(&decoder, request, body_bytes, max_bytes, problem);
    if (err != ERR_OK)
        return err;
    assert(decoder->encoding == encoding);
    *ret = decoder;
    return ERR_OK;
}

enum error decoder_feed(struct decoder *decoder, const char *data, size_t size,
                        struct problem *problem)
{
    return decoder->encoding->feed(decoder, data, size, problem);
}

enum error decoder_finish(struct decoder *decoder, struct problem *problem)
{
    return decoder->encoding->finish(decoder, problem);
}

char *decoder_place(struct decoder *decoder, size_t *ret_room)
{
    const struct encoding *encoding = decoder->encoding;
    return encoding->place != NULL ? encoding->place(decoder, ret_room) : NULL;
}

void decoder_destroy(struct decoder *decoder)
{
    if (decoder != NULL)
        decoder->encoding->destroy(decoder);
}
