/* encoding.h - the forms in which a request's body travels, behind one interface.
 *
 * Door: encoding_for() picks one by Content-Type; decoder_create(), decoder_unpack() if the body is
 * compressed, decoder_feed() with pieces cut anywhere, decoder_finish(). A new encoding is one file
 * and one row of the table in encoding.c.
 */
#ifndef PROTO_ENCODING_H
#define PROTO_ENCODING_H

#include <stddef.h>
#include <stdint.h>

#include "proto/request.h"

struct decoder; /* each encoding's own; first member is its `const struct encoding *` */

struct encoding {
    enum error (*create)(struct decoder **ret, struct request *request, uint64_t body_bytes,
                         size_t max_bytes, struct problem *problem);
    enum error (*feed)(struct decoder *decoder, const char *data, size_t size,
                       struct problem *problem);
    enum error (*finish)(struct decoder *decoder, struct problem *problem);
    void (*destroy)(struct decoder *decoder);
    char *(*place)(struct decoder *decoder, size_t *ret_room); /* NULL: there is never one */
};

extern const struct encoding encoding_json;      /* json.c */
extern const struct encoding encoding_raw;       /* raw.c */
extern const struct encoding encoding_npy;       /* npy.c */
extern const struct encoding encoding_multipart; /* multipart.c */

extern const char encoding_types[]; /* that are read: the value of Accept-Post */

#define BODY_CHUNKED UINT64_MAX /* body_bytes of a body whose length is not known */

/* content_type NULL: none given. ERR_MEDIA lists what is read. */
enum error encoding_for(const char *content_type, const struct encoding **ret,
                        struct problem *problem);

/* Starts decoding a body of body_bytes (BODY_CHUNKED: not known) into request, whose options may
 * hold what the query string said. What can be refused by the length alone is refused here.
 * max_bytes bounds the operands' memory (the setting memory_budget_bytes). Here or while it is fed,
 * before the first elements are handed on, a body that turns out to be one row may go to
 * request->sink (request_stream()); the buffer then holds no operands for long. */
enum error decoder_create(struct decoder **ret, const struct encoding *encoding,
                          struct request *request, uint64_t body_bytes, size_t max_bytes,
                          struct problem *problem);
/* A failure is final: only destroy is allowed afterwards. */
enum error decoder_feed(struct decoder *decoder, const char *data, size_t size,
                        struct problem *problem);
enum error decoder_finish(struct decoder *decoder, struct problem *problem);

/* Where the next *ret_room bytes of the body will lie, until the next feed: who has them written
 * right there, and feeds them from there, saves a copy. NULL: anywhere. */
char *decoder_place(struct decoder *decoder, size_t *ret_room);
void decoder_destroy(struct decoder *decoder); /* takes NULL; the request stays */

/* How a body is compressed. content_encoding NULL: it is not. ERR_MEDIA: in a way that is not
 * read. */
enum coding { CODING_NONE, CODING_GZIP, CODING_DEFLATE };
enum error coding_for(const char *content_encoding, enum coding *ret, struct problem *problem);

/* Puts a decompressor in front of *decoder, which was created for a body of unknown length, and
 * takes it over; on failure it stays the caller's. max_bytes bounds what comes out
 * (max_body_bytes). Offsets of problems are of the decompressed body, but where it is the
 * compression that is at fault. */
enum error decoder_unpack(struct decoder **decoder, enum coding coding, uint64_t max_bytes,
                          struct problem *problem);

/* GET /v1/dot?a=1,2,3&b=4,5,6: the whole request from its query string. */
enum error query_decode(struct request *request, const char *query, size_t max_bytes,
                        struct problem *problem);

#endif
