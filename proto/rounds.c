/* rounds.c - two vectors that arrive in rounds (see rounds.h). */
#include "proto/rounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bytes.h"

enum {
    LARGE_BYTES = 16 << 20,   /* of one operand: more than a core's share of any cache */
    SCRATCH_BYTES = 16 << 10, /* stays in the first cache beside as much of a */
};

static uint64_t least(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

static bool rounds_are_sane(const struct rounds *rounds)
{
    return rounds->at <= 2 * rounds->half_bytes && rounds->half_bytes <= rounds->block_bytes &&
           rounds->scratch_used < rounds->element_size;
}

static void round_begin(struct rounds *rounds)
{
    assert(rounds->scratch_used == 0);
    rounds->at = 0;
    rounds->half_bytes = rounds->block_bytes;
    if (!rounds->is_known)
        return;
    rounds->half_bytes = least(rounds->block_bytes, rounds->left_bytes);
    rounds->left_bytes -= rounds->half_bytes;
}

/* Of a round, the bytes that are kept until the others come. */
static uint64_t held_bytes(const struct rounds *rounds)
{
    return rounds->is_known ? rounds->half_bytes : 2 * rounds->half_bytes;
}

enum error rounds_init(struct rounds *rounds, struct request *request, uint64_t block, uint64_t n)
{
    enum dtype dtype = request->options.dtype;
    const size_t size = dtype_size(dtype);
    assert(block > 0 && (n == ROUNDS_UNKNOWN || n <= UINT64_MAX / 2 / size));
    *rounds = (struct rounds){
        .sink = request->sink,
        .held = &request->buffer,
        .element_size = size,
        .number_size = dtype_size(dtype_part(dtype)),
        .is_a_big = request->options.order == ORDER_BIG,
        .is_b_big = request->options.order == ORDER_BIG,
        .is_known = n != ROUNDS_UNKNOWN,
        .block_bytes = least(block, n) * size,
        .left_bytes = n * size,
    };
    rounds->is_large = rounds->block_bytes >= LARGE_BYTES;
    round_begin(rounds);
    enum error err = buffer_reserve(rounds->held, held_bytes(rounds));
    if (err != ERR_OK)
        return err;
    rounds->held->used = held_bytes(rounds);
    rounds->scratch = malloc(SCRATCH_BYTES);
    return rounds->scratch != NULL ? ERR_OK : ERR_NOMEM;
}

enum error rounds_init_held(struct rounds *rounds, struct request *request, uint64_t n,
                            enum byte_order b_order)
{
    enum error err = rounds_init(rounds, request, n, n);
    rounds->is_a_big = false;
    rounds->is_b_big = b_order == ORDER_BIG;
    rounds->at = rounds->half_bytes;
    return err;
}

void rounds_fini(struct rounds *rounds)
{
    free(rounds->scratch);
    rounds->scratch = NULL;
}

/* A piece of b that belongs to a's bytes from offset on; each of them is used but once. */
static void hand_on(struct rounds *rounds, uint64_t offset, const char *b, size_t size)
{
    char *a = (char *)rounds->held->block.data + offset;
    if (rounds->is_a_big)
        swap_numbers(a, size, rounds->number_size);
    rounds->sink->take(rounds->sink->context, a, b, size / rounds->element_size);
}

/* half_bytes of each operand are held, b behind a. */
static void hand_on_held(struct rounds *rounds, uint64_t half_bytes)
{
    char *b = (char *)rounds->held->block.data + half_bytes;
    for (uint64_t offset = 0; offset < half_bytes; offset += LIMIT_PIECE_BYTES) {
        size_t size = least(half_bytes - offset, LIMIT_PIECE_BYTES);
        if (rounds->is_b_big)
            swap_numbers(b + offset, size, rounds->number_size);
        hand_on(rounds, offset, b + offset, size);
    }
}

/* Of b that is handed on: not in the middle of an element. */
static char *sink_place(const struct rounds *rounds, size_t *ret_room)
{
    const struct sink *sink = rounds->sink;
    if (sink->place == NULL || rounds->scratch_used > 0 || rounds->is_b_big)
        return NULL;
    char *place = sink->place(sink->context, ret_room);
    if (place != NULL)
        *ret_room = least(*ret_room, 2 * rounds->half_bytes - rounds->at);
    return place;
}

char *rounds_place(const struct rounds *rounds, size_t *ret_room)
{
    if (rounds->at >= held_bytes(rounds))
        return sink_place(rounds, ret_room);
    *ret_room = held_bytes(rounds) - rounds->at;
    return (char *)rounds->held->block.data + rounds->at;
}

static size_t hold(struct rounds *rounds, const char *data, size_t size)
{
    size_t room;
    char *place = rounds_place(rounds, &room);
    size_t piece = least(size, room);
    bytes_place(place, data, piece, rounds->is_large);
    return piece;
}

/* Through the scratch, where what is left of an element waits for its rest. */
static size_t pass_scratch(struct rounds *rounds, const char *data, size_t size)
{
    size_t piece = least(size, SCRATCH_BYTES - rounds->scratch_used);
    uint64_t offset = rounds->at - rounds->half_bytes - rounds->scratch_used;
    memcpy(rounds->scratch + rounds->scratch_used, data, piece);
    size_t used = rounds->scratch_used + piece, rest = used % rounds->element_size;
    if (used > rest) {
        if (rounds->is_b_big)
            swap_numbers(rounds->scratch, used - rest, rounds->number_size);
        hand_on(rounds, offset, rounds->scratch, used - rest);
        memmove(rounds->scratch, rounds->scratch + used - rest, rest);
    }
    rounds->scratch_used = rest;
    return piece;
}

/* b, of this round at the most. Returns how much it took. */
static size_t pass(struct rounds *rounds, const char *data, size_t size)
{
    size = least(size, 2 * rounds->half_bytes - rounds->at);
    size_t whole = size - size % rounds->element_size;
    bool is_aligned = (uintptr_t)data % rounds->number_size == 0;
    if (rounds->scratch_used > 0 || rounds->is_b_big || !is_aligned || whole == 0)
        return pass_scratch(rounds, data, size);
    static_assert(LIMIT_PIECE_BYTES % 16 == 0, "pieces of whole elements");
    size_t piece = least(whole, LIMIT_PIECE_BYTES);
    hand_on(rounds, rounds->at - rounds->half_bytes, data, piece);
    return piece;
}

/* A whole round lies in data and can stay there. */
static bool is_round(const struct rounds *rounds, const char *data, size_t size)
{
    return rounds->at == 0 && size / 2 >= rounds->half_bytes && !rounds->is_a_big &&
           !rounds->is_b_big && (uintptr_t)data % rounds->number_size == 0;
}

static size_t pass_round(struct rounds *rounds, const char *data)
{
    const struct sink *sink = rounds->sink;
    const char *b = data + rounds->half_bytes;
    for (uint64_t offset = 0; offset < rounds->half_bytes; offset += LIMIT_PIECE_BYTES) {
        size_t size = least(rounds->half_bytes - offset, LIMIT_PIECE_BYTES);
        sink->take(sink->context, data + offset, b + offset, size / rounds->element_size);
    }
    return 2 * rounds->half_bytes;
}

void rounds_feed(struct rounds *rounds, const char *data, size_t size)
{
    assert(rounds_are_sane(rounds));
    while (size > 0) {
        bool is_whole = is_round(rounds, data, size);
        bool is_held = rounds->at < held_bytes(rounds);
        size_t taken = is_whole  ? pass_round(rounds, data)
                       : is_held ? hold(rounds, data, size)
                                 : pass(rounds, data, size);
        assert(taken > 0);
        rounds->at += taken;
        data += taken;
        size -= taken;
        if (rounds->at < 2 * rounds->half_bytes)
            continue;
        if (!rounds->is_known && !is_whole)
            hand_on_held(rounds, rounds->half_bytes);
        round_begin(rounds);
    }
}

void rounds_finish(struct rounds *rounds)
{
    assert(rounds_are_sane(rounds));
    if (rounds->is_known)
        assert(rounds->at == 0 && rounds->half_bytes == 0);
    else
        hand_on_held(rounds, rounds->at / 2);
}
