/* door.c - the daemon's HTTP side in this process (see door.h). */
#include "tests/fault/door.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gpu/backend.h"
#include "gpu/lab.h"
#include "server/http.h"
#include "server/http_priv.h"
#include "server/log.h"
#include "server/loop.h"
#include "server/setting.h"
#include "server/settle.h"

enum { WAIT_MS = 20000, ANSWERS_BYTES = 4 << 20, SEND_BYTES = 16384 };

static struct {
    struct config config;
    struct gpu *gpu;
    struct lab *lab;
    struct http *http;
    struct listen_set sockets;
    struct sockaddr_un address;
    socklen_t address_size;
    char answers[ANSWERS_BYTES];
} door;

/* ---- the server ---------------------------------------------------------------------------- */

static void door_close(void)
{
    (void)http_drain(door.http, WAIT_MS);
    lab_drain(door.lab);
    gpu_drain(door.gpu);
    http_close(door.http);
    lab_close(door.lab);
    gpu_close(door.gpu);
    listen_close(&door.sockets);
}

/* Bound to nothing but its family, a socket gets a name of its own. */
static bool listen_here(void)
{
    struct sockaddr *address = (struct sockaddr *)&door.address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address->sa_family = AF_UNIX;
    door.address_size = sizeof door.address;
    door.sockets.fd[0] = fd;
    door.sockets.count = 1;
    return fd >= 0 && bind(fd, address, sizeof address->sa_family) == 0 && listen(fd, 16) == 0 &&
           getsockname(fd, address, &door.address_size) == 0;
}

static void configure(void)
{
    setting_set_defaults(&door.config);
    door.config.http_threads = 1;
    door.config.max_connections = 64;
    door.config.max_body_bytes = DOOR_BODY_BYTES;
    door.config.memory_budget_bytes = DOOR_BUDGET_BYTES;
    door.config.max_results = 4096;
    door.config.inline_terms = DOOR_INLINE_TERMS;
    settle(&door.config);
    log_open(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT, NULL);
}

bool door_open(void)
{
    struct problem problem;
    char message[256];
    const struct lineage lineage = {0};
    const struct lab_config lab_config = {.queue_jobs = 8};
    static const struct backend *const backends[] = {&backend_cpu, &backend_faulty, NULL};
    configure();
    const struct gpu_config gpu_config = {.cuda = true,
                                          .cuda_min_bytes = DOOR_BODY_BYTES,
                                          .budget_bytes = door.config.memory_budget_bytes,
                                          .queue_jobs = 64,
                                          .queue_bytes = door.config.queue_bytes,
                                          .batch_jobs = 8,
                                          .inline_terms = DOOR_INLINE_TERMS};
    if (!listen_here() || gpu_open_backends(&door.gpu, &gpu_config, backends, &problem) != ERR_OK ||
        lab_open(&door.lab, door.gpu, &lab_config, &problem) != ERR_OK ||
        !http_open(&door.http, &door.config, door.gpu, door.lab, &door.sockets, &lineage, message,
                   sizeof message))
        return false;
    http_set_ready(door.http);
    http_accept(door.http);
    return atexit(door_close) == 0;
}

/* The exchange ends a moment after its answer is out. */
bool door_is_clear(void)
{
    time_t begun = time(NULL);
    while (loop_stats(door.http->loop[0]).connections > 0 || gpu_memory(door.gpu).used_bytes > 0 ||
           atomic_load(&door.http->answer_bytes) > 0) {
        if (time(NULL) - begun > WAIT_MS / 1000) {
            fprintf(stderr, "%u connections, %llu bytes of operands, %llu of answers stay\n",
                    loop_stats(door.http->loop[0]).connections,
                    (unsigned long long)gpu_memory(door.gpu).used_bytes,
                    (unsigned long long)atomic_load(&door.http->answer_bytes));
            return false;
        }
        (void)sched_yield();
    }
    return true;
}

/* ---- a client ------------------------------------------------------------------------------ */

static int connect_here(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&door.address, door.address_size) == 0)
        return fd;
    perror("door_talk");
    abort();
}

/* Sends what goes. Returns what is left. One who has closed already gets no more: then only its
 * answer counts. */
static size_t send_some(int fd, const char *data, size_t left, const struct door_manner *manner)
{
    size_t piece = left < SEND_BYTES ? left : SEND_BYTES;
    if (manner->next != NULL)
        piece = manner->next(manner->context, piece);
    ssize_t sent = send(fd, data, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent > 0 ? left - (size_t)sent : 0;
}

/* Waits for something to do. False: in vain. */
static bool wait_for(int fd, bool is_sent, const struct door_manner *manner, short *ret_events)
{
    struct pollfd event = {.fd = fd, .events = (short)(POLLIN | (is_sent ? 0 : POLLOUT))};
    if (is_sent && manner->patience_ms >= 0 && poll(&event, 1, manner->patience_ms) <= 0)
        (void)shutdown(fd, SHUT_WR); /* again and again makes no difference */
    int count;
    do
        count = poll(&event, 1, WAIT_MS);
    while (count < 0 && errno == EINTR); /* a fuzzer has its alarms */
    *ret_events = event.revents;
    return count == 1;
}

struct door_answers door_talk(const void *data, size_t size, const struct door_manner *manner)
{
    struct door_answers ret = {.data = door.answers};
    size_t left = size;
    int fd = connect_here();
    for (bool is_open = true; is_open && ret.wrong == NULL;) {
        short events;
        if (!wait_for(fd, left == 0, manner, &events))
            ret.wrong = "neither an answer nor the end came";
        if (left > 0 && (events & POLLOUT))
            left = send_some(fd, (const char *)data + size - left, left, manner);
        if (events & (POLLIN | POLLHUP | POLLERR)) {
            ssize_t got =
                recv(fd, door.answers + ret.size, ANSWERS_BYTES - 1 - ret.size, MSG_DONTWAIT);
            is_open = got > 0;
            ret.size += got > 0 ? (size_t)got : 0;
        }
        if (ret.size == ANSWERS_BYTES - 1)
            ret.wrong = "there is no end of answers";
    }
    (void)close(fd);
    door.answers[ret.size] = '\0';
    return ret;
}
