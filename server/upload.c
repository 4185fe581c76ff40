/* upload.c - the rest of a long body (see upload.h). */
#include "server/upload.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "server/exchange.h"
#include "server/loop.h"

enum {
    REST_BYTES_MIN = 512 << 10,   /* below, taking and renewing the connection is not worth it */
    HELD_BYTES_MIN = 3 << 19,     /* likewise of what is not reduced as it comes */
    HEAD_BYTES_MOST = 4 << 10,    /* of an answer: what is not for each result */
    NUMBER_BYTES_MOST = 8,        /* of a result, of which a complex one has two */
    NUMBER_JSON_BYTES_MOST = 256, /* likewise, with its bits, its bounds and what is between */
    PIECE_BYTES = 256 << 10,      /* stays in the second cache until it is added */
    PLACED_BYTES_MIN = 128 << 10, /* of what is shorter a piece brings more */
    PLACED_BYTES_MAX = 1 << 20,   /* of an operand that is held */
    EVENT_BYTES = 1 << 20,        /* no more is read at an event after so much */
    ALIGN = 64,
};

static uint64_t least(uint64_t x, uint64_t y)
{
    return x < y ? x : y;
}

static uint64_t left_bytes(const struct exchange *exchange)
{
    return exchange->head.content_length - exchange->body_bytes;
}

/* So many bytes must be there before the socket is readable, or all that are left: waking up for
 * less costs more than copying it. */
static void set_low_water(const struct connection *connection, uint64_t left)
{
    int bytes = left > 0 ? (int)least(left, PIECE_BYTES) : 1; /* of the next request, any */
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

/* Of a body that is reduced as it comes, or whose bytes have a place. */
static bool is_long(const struct exchange *exchange)
{
    size_t room;
    if (exchange->route->body != dot_body || exchange->head.is_chunked)
        return false;
    if (exchange->dot.stream != NULL)
        return left_bytes(exchange) >= REST_BYTES_MIN;
    return left_bytes(exchange) >= HELD_BYTES_MIN &&
           decoder_place(exchange->dot.decoder, &room) != NULL;
}

/* The answer will be sent at once (connection_say()), so there must be room for it in the socket's
 * buffer: half the size that is told, the rest is for what the system keeps beside. An answer
 * before it may still be there. */
static bool has_room_for_answer(const struct exchange *exchange)
{
    const struct request *request = &exchange->dot.request;
    const unsigned number =
        exchange->dot.form == FORM_JSON ? NUMBER_JSON_BYTES_MOST : NUMBER_BYTES_MOST;
    const unsigned each = number * dtype_part_count(request->options.dtype);
    int size, unsent;
    socklen_t length = sizeof size;
    if (getsockopt(exchange->connection->fd, SOL_SOCKET, SO_SNDBUF, &size, &length) != 0 ||
        ioctl(exchange->connection->fd, SIOCOUTQ, &unsent) != 0)
        return false;
    const int room = size / 2 - unsent - HEAD_BYTES_MOST;
    return room > 0 && request->result_count > 0 && request->result_count <= (unsigned)room / each;
}

void upload_consider(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    if (exchange->is_paused || !is_long(exchange) || !has_room_for_answer(exchange))
        return;
    connection_take(loop_connections(exchange->loop), connection);
    set_low_water(connection, left_bytes(exchange));
}

/* Where the next bytes go: to their place, if enough fits there. A piece lies as it does in the
 * body and ends on a boundary there, so that raw elements are aligned, and the next ones may go to
 * their place. */
static char *place_of(const struct exchange *exchange, size_t *ret_room)
{
    static _Thread_local _Alignas(ALIGN) char piece[PIECE_BYTES];
    size_t room;
    char *place = decoder_place(exchange->dot.decoder, &room);
    if (place != NULL && room >= PLACED_BYTES_MIN) {
        *ret_room = least(room, PLACED_BYTES_MAX);
        return place;
    }
    const uint64_t over = exchange->body_bytes % ALIGN;
    *ret_room = least(left_bytes(exchange), PIECE_BYTES - over);
    return piece + over;
}

void upload_end(struct exchange *exchange)
{
    connection_give_back(loop_connections(exchange->loop), exchange->connection);
    connection_cut(exchange->connection);
}

/* Returns how much it read; 0: there is no more for now, or no more is wanted. */
static size_t read_some(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    size_t room;
    char *place = place_of(exchange, &room);
    ssize_t size = recv(connection->fd, place, room, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (size <= 0) {
        upload_end(exchange);
        return 0;
    }
    const uint64_t left = left_bytes(exchange) - (uint64_t)size;
    if (left < PIECE_BYTES)
        set_low_water(connection, left);
    exchange_on_read(exchange, place, (size_t)size);
    bool is_read_on = connection->is_taken && connection->phase == PHASE_BODY;
    return is_read_on && (size_t)size == room ? room : 0;
}

/* What of a came just now is still in the cache when its part of b is added. Others wait for the
 * copying of 2 MiB at the most. */
void upload_on_readable(struct connection *connection)
{
    size_t size = 1;
    for (size_t total = 0; size > 0 && total < EVENT_BYTES; total += size)
        size = read_some(connection);
}
