/* upload.c - the rest of a long body (see upload.h). */
#include "server/upload.h"

#include <errno.h>
#include <sys/socket.h>

#include "server/exchange.h"
#include "server/loop.h"

enum {
    REST_BYTES_MIN = 1 << 20, /* below, taking and renewing the connection is not worth it */
    PIECE_BYTES = 256 << 10,  /* stays in the second cache until it is added */
    PLACED_BYTES = 1 << 20,   /* of an operand that is held */
    ALIGN = 64,
};

static uint64_t left_bytes(const struct exchange *exchange)
{
    return exchange->head.content_length - exchange->body_bytes;
}

/* So many bytes must be there before the socket is readable: waking up for less costs more than
 * copying it. */
static void set_low_water(const struct connection *connection, int bytes)
{
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

/* Only of a body that is reduced as it comes: its answer is short, and nothing else is to be
 * kept. */
void upload_consider(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    if (exchange->dot.stream == NULL || exchange->route->body != dot_body || exchange->is_paused ||
        exchange->head.is_chunked || left_bytes(exchange) < REST_BYTES_MIN)
        return;
    connection_take(loop_connections(exchange->loop), connection);
    set_low_water(connection, PIECE_BYTES);
}

/* Where the next bytes go: to their place, if much fits there. A piece lies as it does in the body
 * and ends on a boundary there, so that raw elements are aligned, and the next ones may go to their
 * place. */
static char *place_of(const struct exchange *exchange, size_t *ret_room)
{
    static _Thread_local _Alignas(ALIGN) char piece[PIECE_BYTES];
    size_t room;
    char *place = decoder_place(exchange->dot.decoder, &room);
    if (place != NULL && room >= PIECE_BYTES) {
        *ret_room = room < PLACED_BYTES ? room : PLACED_BYTES;
        return place;
    }
    const uint64_t left = left_bytes(exchange), over = exchange->body_bytes % ALIGN;
    *ret_room = left < PIECE_BYTES - over ? (size_t)left : PIECE_BYTES - over;
    return piece + over;
}

void upload_end(struct exchange *exchange)
{
    connection_give_back(loop_connections(exchange->loop), exchange->connection);
    connection_cut(exchange->connection);
}

/* Once at each event: others wait for the copying of 1 MiB at the most. */
void upload_on_readable(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    size_t room;
    char *place = place_of(exchange, &room);
    ssize_t size = recv(connection->fd, place, room, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        upload_end(exchange);
        return;
    }
    if (left_bytes(exchange) - (uint64_t)size < PIECE_BYTES)
        set_low_water(connection, 1);
    exchange_on_read(exchange, place, (size_t)size);
}
