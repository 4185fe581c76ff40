/* feed.h - a body given to a decoder in random pieces, and what a sink gets of it. Included by
 * cmocka programs. */
#ifndef TESTS_UNIT_FEED_H
#define TESTS_UNIT_FEED_H

#include <stdlib.h>
#include <string.h>

#include "proto/encoding.h"
#include "tests/random.h"

/* In pieces of at most `most` bytes, to its end. Each is a copy, so that a sanitizer sees a read
 * beyond it, or at its place already. Returns the first error, or decoder_finish()'s. */
static inline enum error feed(struct decoder *decoder, const char *body, size_t size, size_t most,
                              struct problem *problem)
{
    enum error err = ERR_OK;
    for (size_t at = 0; err == ERR_OK && at < size;) {
        size_t piece = 1 + random_next() % most;
        piece = piece < size - at ? piece : size - at;
        size_t room;
        char *place = random_next() % 2 == 0 ? decoder_place(decoder, &room) : NULL;
        if (place != NULL && room < piece)
            piece = room;
        char *copy = place != NULL ? place : malloc(piece);
        assert_non_null(copy);
        memcpy(copy, body + at, piece);
        err = decoder_feed(decoder, copy, piece, problem);
        if (copy != place)
            free(copy);
        at += piece;
    }
    return err == ERR_OK ? decoder_finish(decoder, problem) : err;
}

struct feed_how {
    const struct encoding *encoding;
    const struct sink *sink; /* NULL: none; so with the next two */
    const char *content_type, *query;
    uint64_t announced;          /* bytes of the body */
    size_t max_bytes;            /* of the operands */
    enum coding coding;          /* of the body */
    uint64_t max_unpacked_bytes; /* where it has one */
};

/* A request from its query to the end of its body, fed as above. */
static inline enum error feed_request(struct request *request, const struct feed_how *how,
                                      const char *body, size_t size, size_t most,
                                      struct problem *problem)
{
    struct decoder *decoder = NULL;
    request_init(request, &buffer_heap);
    request->sink = how->sink;
    request->content_type = how->content_type;
    problem_clear(problem);
    enum error err = options_from_query(&request->options, how->query, NULL, NULL, problem);
    if (err == ERR_OK)
        err = decoder_create(&decoder, how->encoding, request, how->announced, how->max_bytes,
                             problem);
    if (err == ERR_OK)
        err = decoder_unpack(&decoder, how->coding, how->max_unpacked_bytes, problem);
    if (err == ERR_OK)
        err = feed(decoder, body, size, most, problem);
    decoder_destroy(decoder);
    assert_int_equal(problem->error, err);
    return err;
}

struct taken {
    char a[4096], b[4096];
    size_t size, element_size;
};

/* The take() of a struct sink. */
static inline void taken_add(void *context, const void *a, const void *b, uint64_t n)
{
    struct taken *taken = (struct taken *)context;
    size_t size = n * taken->element_size;
    assert_in_range(taken->size + size, 1, sizeof taken->a);
    memcpy(taken->a + taken->size, a, size);
    memcpy(taken->b + taken->size, b, size);
    taken->size += size;
}

#endif
