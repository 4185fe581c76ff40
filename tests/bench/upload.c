/* upload.c - POSTs with large bodies, sent from memory as fast as the sockets take them.
 *
 * Usage: upload [-l] [-s] [-n CONNECTIONS] PORT TARGET BYTES [ROUNDS [chunked]]
 *   -l  the last byte comes when all others have been read
 *   -n  as many requests at once in each round, each on a connection of its own
 *   -s  the sum in the answer is checked, and the device, if TARGET names one
 * The same mebibyte is sent again and again, so that the sender stays in its cache and the server
 * is what is measured. Its elements are multiples of 1/256 below 8, so that the sum of their
 * products is known; type and layout are read in TARGET. Prints for each round the seconds from the
 * first byte of the heads until the last answer is whole, and its status; with -l, also the
 * microseconds that an answer took at the most after its last byte was sent.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, ANSWER_BYTES = 64 * 1024, CONNECTIONS_MAX = 64, READ_MS = 100 };

struct plan {
    uint16_t port;
    const char *target;
    uint64_t bytes;
    bool is_chunked, holds_last, checks_sum;
    unsigned rounds, connections;
    bool is_float64;
    uint64_t block; /* elements of a, then of b; 0: all of a first */
    double sum;     /* that is to be answered, if it is checked */
    char *piece;
};

struct client {
    const struct plan *plan;
    pthread_t thread; /* of all but the first */
    int fd;           /* -1: to be connected */
    int status;
    double answered_us;
};

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

/* ---- the body ------------------------------------------------------------------------------ */

static int64_t element(uint64_t index)
{
    return (int64_t)((uint32_t)(index * 2654435761u) >> 20) - 2048;
}

static size_t element_size(const struct plan *plan)
{
    return plan->is_float64 ? sizeof(double) : sizeof(float);
}

static void fill(struct plan *plan)
{
    const size_t size = element_size(plan);
    plan->piece = malloc(PIECE_BYTES);
    if (plan->piece == NULL)
        fail("malloc");
    for (uint64_t i = 0; i < PIECE_BYTES / size; i++) {
        double wide = (double)element(i) / 256;
        float narrow = (float)wide;
        memcpy(plan->piece + i * size, plan->is_float64 ? (void *)&wide : (void *)&narrow, size);
    }
}

/* Of the elements of a piece, those of a have partners: themselves, as both operands are whole
 * pieces, or those a block further on. */
static void expect(struct plan *plan)
{
    const uint64_t count = PIECE_BYTES / element_size(plan), block = plan->block;
    int64_t sum = 0;
    if (plan->bytes % (2 * PIECE_BYTES) != 0 || (block > 0 && count % (2 * block) != 0)) {
        fprintf(stderr, "upload: the sum is known of whole pieces of %d bytes only\n", PIECE_BYTES);
        exit(2);
    }
    for (uint64_t i = 0; i < count; i++)
        if (block == 0)
            sum += element(i) * element(i);
        else if (i / block % 2 == 0)
            sum += element(i) * element(i + block);
    uint64_t pieces = plan->bytes / PIECE_BYTES;
    plan->sum = (double)sum * (double)(block == 0 ? pieces / 2 : pieces) / 65536;
}

/* ---- requests ------------------------------------------------------------------------------ */

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

static void send_head(int fd, const struct plan *plan)
{
    char head[1024], framing[64] = "Transfer-Encoding: chunked";
    if (!plan->is_chunked)
        (void)snprintf(framing, sizeof framing, "Content-Length: %llu",
                       (unsigned long long)plan->bytes);
    int size = snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                        "application/octet-stream\r\n%s\r\n\r\n",
                        plan->target, framing);
    send_all(fd, head, (size_t)size);
}

static void wait_until_read(void)
{
    struct timespec time = {.tv_nsec = READ_MS * 1000000};
    (void)nanosleep(&time, NULL);
}

static void send_piece(int fd, const struct plan *plan, size_t size, bool is_last)
{
    char line[24];
    if (plan->is_chunked)
        send_all(fd, line, (size_t)snprintf(line, sizeof line, "%zx\r\n", size));
    send_all(fd, plan->piece, size - 1);
    if (is_last && plan->holds_last)
        wait_until_read();
    send_all(fd, plan->piece + size - 1, 1);
    if (plan->is_chunked)
        send_all(fd, is_last ? "\r\n0\r\n\r\n" : "\r\n", is_last ? 7 : 2);
}

static void send_body(int fd, const struct plan *plan)
{
    for (uint64_t left = plan->bytes; left > 0;) {
        size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        left -= size;
        send_piece(fd, plan, size, left == 0);
    }
}

/* One answer, which fits ANSWER_BYTES and has a Content-Length. */
static void read_answer(int fd, char text[static ANSWER_BYTES + 1])
{
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
}

static void check_sum(const struct plan *plan, const char *text)
{
    const char *result = strstr(text, "\"result\":");
    if (result != NULL && strtod(result + 9, NULL) == plan->sum)
        return;
    fprintf(stderr, "upload: the sum is %.17g, not\n%s\n", plan->sum, text);
    exit(1);
}

/* A device that was lost would be stood in for. */
static void check_device(const struct plan *plan, const char *text)
{
    const char *asked = strstr(plan->target, "device="), *named = strstr(text, "\"device\": \"");
    if (asked == NULL)
        return;
    asked += strlen("device=");
    if (named != NULL && strncmp(named + strlen("\"device\": \""), asked, strcspn(asked, "&")) == 0)
        return;
    fprintf(stderr, "upload: computed elsewhere\n%s\n", text);
    exit(1);
}

static void *client_main(void *argument)
{
    struct client *client = argument;
    const struct plan *plan = client->plan;
    char *text = malloc(ANSWER_BYTES + 1);
    if (text == NULL)
        fail("malloc");
    if (client->fd < 0)
        client->fd = connect_to(plan->port);
    send_head(client->fd, plan);
    send_body(client->fd, plan);
    double sent_s = now_s();
    read_answer(client->fd, text);
    client->answered_us = (now_s() - sent_s) * 1e6;
    client->status = atoi(text + strlen("HTTP/1.1 "));
    if (plan->checks_sum) {
        check_sum(plan, text);
        check_device(plan, text);
    }
    if (strstr(text, "\nConnection: close\r") != NULL) {
        (void)close(client->fd);
        client->fd = -1;
    }
    free(text);
    return NULL;
}

/* The status of an answer that is none of success, if there is one. */
static int run_round(const struct plan *plan, struct client *client)
{
    double begun_s = now_s(), answered_us = 0;
    int status = 200;
    for (unsigned i = 1; i < plan->connections; i++)
        if (pthread_create(&client[i].thread, NULL, client_main, &client[i]) != 0)
            fail("thread");
    (void)client_main(&client[0]); /* one alone is not to wait for a thread */
    for (unsigned i = 0; i < plan->connections; i++) {
        if (i > 0)
            (void)pthread_join(client[i].thread, NULL);
        if (client[i].answered_us > answered_us)
            answered_us = client[i].answered_us;
        if (client[i].status != 200)
            status = client[i].status;
    }
    printf("%.6f %d", now_s() - begun_s, status);
    if (plan->holds_last)
        printf(" %.0f", answered_us);
    printf("\n");
    return status;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: upload [-l] [-s] [-n CONNECTIONS] PORT TARGET BYTES [ROUNDS [chunked]]\n");
    return 2;
}

static bool read_arguments(int argc, char **argv, struct plan *ret)
{
    *ret = (struct plan){.rounds = 1, .connections = 1};
    for (int option; (option = getopt(argc, argv, "lsn:")) != -1;) {
        ret->holds_last |= option == 'l';
        ret->checks_sum |= option == 's';
        if (option == 'n')
            ret->connections = (unsigned)atoi(optarg);
        else if (option == '?')
            return false;
    }
    argc -= optind;
    argv += optind;
    if (argc < 3 || argc > 5 || ret->connections > CONNECTIONS_MAX)
        return false;
    ret->port = (uint16_t)atoi(argv[0]);
    ret->target = argv[1];
    ret->bytes = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        ret->rounds = (unsigned)atoi(argv[3]);
    ret->is_chunked = argc == 5;
    ret->is_float64 = strstr(ret->target, "float64") != NULL;
    const char *block = strstr(ret->target, "block=");
    ret->block = block != NULL ? strtoull(block + 6, NULL, 10) : 0;
    return true;
}

int main(int argc, char **argv)
{
    struct plan plan;
    if (!read_arguments(argc, argv, &plan))
        return usage();
    fill(&plan);
    if (plan.checks_sum)
        expect(&plan);
    struct client client[CONNECTIONS_MAX];
    for (unsigned i = 0; i < plan.connections; i++)
        client[i] = (struct client){.plan = &plan, .fd = -1};
    int status = 200;
    for (unsigned i = 0; i < plan.rounds && status == 200; i++)
        status = run_round(&plan, client);
    free(plan.piece);
    return status == 200 ? 0 : 1;
}
