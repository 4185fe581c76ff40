/* upload.c - one POST with a large body, sent from memory as fast as the socket takes it.
 *
 * Usage: upload PORT TARGET BYTES [ROUNDS [chunked]]. The same megabyte is sent again and again, so
 * that the sender stays in its cache and the server is what is measured; all elements are alike, so
 * that it is a body of any layout. Prints for each round the seconds from the first byte of the head
 * until the whole answer is there, and the answer's status.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PIECE_BYTES = 1 << 20, ANSWER_BYTES = 64 * 1024 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect");
    return fd;
}

static void send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        data += sent;
        size -= (size_t)sent;
    }
}

struct upload {
    const char *target;
    uint64_t bytes;
    bool is_chunked;
};

static void send_head(int fd, const struct upload *upload)
{
    char head[1024], framing[64] = "Transfer-Encoding: chunked";
    if (!upload->is_chunked)
        (void)snprintf(framing, sizeof framing, "Content-Length: %llu",
                       (unsigned long long)upload->bytes);
    int size = snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                        "application/octet-stream\r\n%s\r\n\r\n",
                        upload->target, framing);
    send_all(fd, head, (size_t)size);
}

static void send_piece(int fd, const struct upload *upload, const char *piece, size_t size)
{
    char line[24];
    if (upload->is_chunked)
        send_all(fd, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", size));
    send_all(fd, piece, size);
    if (upload->is_chunked)
        send_all(fd, "\r\n", 2);
}

static void send_request(int fd, const struct upload *upload, const char *piece)
{
    send_head(fd, upload);
    for (uint64_t left = upload->bytes; left > 0;) {
        size_t now = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        send_piece(fd, upload, piece, now);
        left -= now;
    }
    if (upload->is_chunked)
        send_all(fd, "0\r\n\r\n", 5);
}

/* Reads one answer, which fits ANSWER_BYTES and has a Content-Length. Returns its status. */
static int read_answer(int fd)
{
    static char text[ANSWER_BYTES + 1];
    size_t size = 0, whole = SIZE_MAX;
    while (size < whole) {
        ssize_t got = recv(fd, text + size, ANSWER_BYTES - size, 0);
        if (got <= 0)
            fail("answer");
        size += (size_t)got;
        text[size] = '\0';
        const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (body != NULL && length != NULL)
            whole = (size_t)(body + 4 - text) + strtoull(length + 16, NULL, 10);
    }
    return atoi(text + strlen("HTTP/1.1 "));
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 6) {
        fprintf(stderr, "usage: upload PORT TARGET BYTES [ROUNDS [chunked]]\n");
        return 2;
    }
    const struct upload upload = {argv[2], strtoull(argv[3], NULL, 10), argc == 6};
    int rounds = argc > 4 ? atoi(argv[4]) : 1, status = 200;
    char *piece = malloc(PIECE_BYTES);
    if (piece == NULL)
        fail("malloc");
    for (size_t i = 0; i < PIECE_BYTES / sizeof(float); i++)
        memcpy(piece + i * sizeof(float), &(float){1.0f}, sizeof(float));
    int fd = connect_to((uint16_t)atoi(argv[1]));
    for (int i = 0; i < rounds && status == 200; i++) {
        double begun_s = now_s();
        send_request(fd, &upload, piece);
        status = read_answer(fd);
        printf("%.6f %d\n", now_s() - begun_s, status);
    }
    free(piece);
    return status == 200 ? 0 : 1;
}
