/* lifeline.c - the page and the sockets between a supervisor and its worker (see lifeline.h).
 *
 * Source: memfd_create(2), and fcntl(2) for its seals; unix(7) for SOCK_SEQPACKET, which keeps a
 * word and its text together and tells either side when the other has gone.
 */
#include "server/lifeline.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char variable[] = "_DOTD_LIFELINE"; /* the number of the page's descriptor */
static const char magic[8] = "dotd\0\r\n\2";     /* the last byte is the layout's version */

enum {
    PART_BYTES = 32,
    PERIODS_A_TIMEOUT = 8, /* a hang is noticed two eighths late, at the most */
    PERIOD_MS_MIN = 10,
    PERIOD_MS_MAX = 500, /* as soon as a lost device is noticed without a supervisor */
};

struct lifeline_page {
    char magic[sizeof magic];
    uint32_t size; /* of the page, as its writer knows it */
    /* fixed before the worker starts */
    pid_t supervisor;
    int talk, copy; /* numbers of descriptors, the same on both sides of the fork */
    struct listen_set sockets;
    struct lineage lineage;
    /* the supervisor writes: false to true, once */
    atomic_bool is_last;
    /* the worker's main thread writes. The part is for people: a reader may see half a change. */
    atomic_llong well_ns;
    _Atomic char part[PART_BYTES];
};

static_assert(sizeof(struct lifeline_page) <= 4096, "page_map() counts on one page of memory");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would not be shared between processes");

uint64_t lifeline_period_ms(uint64_t hang_timeout_ms)
{
    uint64_t ms = hang_timeout_ms / PERIODS_A_TIMEOUT;
    if (hang_timeout_ms == 0 || ms > PERIOD_MS_MAX)
        return PERIOD_MS_MAX;
    return ms > PERIOD_MS_MIN ? ms : PERIOD_MS_MIN;
}

/* ---- the supervisor's side ----------------------------------------------------------------- */

/* Sealed, so that no process that has it can pull the page from under the other's feet. */
static bool page_create(struct lifeline *lifeline)
{
    lifeline->page_fd = memfd_create("dotd-lifeline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (lifeline->page_fd < 0 || ftruncate(lifeline->page_fd, sizeof *lifeline->page) != 0 ||
        fcntl(lifeline->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return false;
    void *page = mmap(NULL, sizeof *lifeline->page, PROT_READ | PROT_WRITE, MAP_SHARED,
                      lifeline->page_fd, 0);
    if (page == MAP_FAILED)
        return false;
    lifeline->page = page;
    return true;
}

bool lifeline_create(struct lifeline *ret, const struct listen_set *sockets, int copy,
                     const struct lineage *lineage)
{
    struct lifeline lifeline = {.page_fd = -1, .talk = -1, .peer = -1};
    int pair[2];
    if (!page_create(&lifeline) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        int cause = errno;
        lifeline_close(&lifeline);
        errno = cause;
        return false;
    }
    lifeline.talk = pair[0];
    lifeline.peer = pair[1];
    struct lifeline_page *page = lifeline.page;
    memcpy(page->magic, magic, sizeof magic);
    page->size = sizeof *page;
    page->supervisor = getpid();
    page->talk = lifeline.peer;
    page->copy = copy;
    page->sockets = *sockets;
    page->lineage = *lineage;
    *ret = lifeline;
    return true;
}

void lifeline_close(struct lifeline *lifeline)
{
    const int fd[] = {lifeline->page_fd, lifeline->talk, lifeline->peer};
    for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++)
        if (fd[i] >= 0)
            (void)close(fd[i]);
    if (lifeline->page != NULL)
        (void)munmap(lifeline->page, sizeof *lifeline->page);
    *lifeline = (struct lifeline){.page_fd = -1, .talk = -1, .peer = -1};
}

static bool let_through(int fd)
{
    return fd < 0 || fcntl(fd, F_SETFD, 0) == 0;
}

bool lifeline_pass(const struct lifeline *lifeline)
{
    const struct lifeline_page *page = lifeline->page;
    char number[16];
    (void)snprintf(number, sizeof number, "%d", lifeline->page_fd);
    bool is_through =
        let_through(lifeline->page_fd) && let_through(page->talk) && let_through(page->copy);
    for (int i = 0; i < page->sockets.count; i++)
        is_through = is_through && let_through(page->sockets.fd[i]);
    return is_through && setenv(variable, number, 1) == 0;
}

void lifeline_passed(struct lifeline *lifeline)
{
    (void)close(lifeline->peer);
    lifeline->peer = -1;
}

enum lifeline_word lifeline_hear(struct lifeline *lifeline, char *text)
{
    char message[LIFELINE_TEXT_BYTES];
    ssize_t size = recv(lifeline->talk, message, sizeof message, 0);
    if (size <= 0)
        return 0;
    memcpy(text, message + 1, (size_t)size - 1);
    text[size - 1] = '\0';
    return (enum lifeline_word)message[0];
}

void lifeline_set_last(struct lifeline *lifeline)
{
    atomic_store(&lifeline->page->is_last, true);
}

int64_t lifeline_well_ns(const struct lifeline *lifeline, char *part)
{
    for (size_t i = 0; i < PART_BYTES; i++)
        part[i] = atomic_load_explicit(&lifeline->page->part[i], memory_order_relaxed);
    part[PART_BYTES - 1] = '\0';
    return atomic_load(&lifeline->page->well_ns);
}

/* ---- the worker's side --------------------------------------------------------------------- */

/* The page behind fd, when it is one that a supervisor has sealed. Another version's may be
 * shorter: what lies beyond its end in the same page of memory reads as zeros. */
static struct lifeline_page *page_map(int fd)
{
    struct stat status;
    if (fcntl(fd, F_GET_SEALS) != (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
        fstat(fd, &status) != 0 || status.st_size == 0)
        return NULL;
    void *map = mmap(NULL, sizeof(struct lifeline_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    struct lifeline_page *page = map;
    if (memcmp(page->magic, magic, sizeof magic - 1) == 0)
        return page;
    (void)munmap(map, sizeof *page);
    return NULL;
}

static bool is_of_this_version(const struct lifeline_page *page)
{
    return memcmp(page->magic, magic, sizeof magic) == 0 && page->size == sizeof *page;
}

static void keep_from_children(const struct lifeline_page *page, int page_fd)
{
    (void)fcntl(page_fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(page->talk, F_SETFD, FD_CLOEXEC);
    if (page->copy >= 0)
        (void)fcntl(page->copy, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < page->sockets.count; i++)
        (void)fcntl(page->sockets.fd[i], F_SETFD, FD_CLOEXEC);
}

enum lifeline_adoption lifeline_adopt(struct lifeline *ret)
{
    const char *number = getenv(variable);
    if (number == NULL)
        return LIFELINE_NONE;
    char *end;
    long fd = strtol(number, &end, 10);
    bool is_number = end != number && *end == '\0' && fd > STDERR_FILENO && fd <= INT32_MAX;
    (void)unsetenv(variable);
    struct lifeline_page *page = is_number ? page_map((int)fd) : NULL;
    if (page == NULL)
        return LIFELINE_NONE;
    if (!is_of_this_version(page) || page->supervisor != getppid()) {
        (void)munmap(page, sizeof *page);
        return LIFELINE_BROKEN;
    }
    keep_from_children(page, (int)fd);
    *ret = (struct lifeline){.page = page, .page_fd = (int)fd, .talk = page->talk, .peer = -1};
    return LIFELINE_ADOPTED;
}

void lifeline_sockets(const struct lifeline *lifeline, struct listen_set *ret)
{
    *ret = lifeline->page->sockets;
}

int lifeline_copy(const struct lifeline *lifeline)
{
    return lifeline->page->copy;
}

struct lineage lifeline_lineage(const struct lifeline *lifeline)
{
    return lifeline->page->lineage;
}

pid_t lifeline_supervisor(const struct lifeline *lifeline)
{
    return lifeline->page->supervisor;
}

bool lifeline_is_orphan(const struct lifeline *lifeline)
{
    return getppid() != lifeline->page->supervisor;
}

bool lifeline_is_last(const struct lifeline *lifeline)
{
    return atomic_load(&lifeline->page->is_last);
}

/* A full socket or a supervisor that has gone loses the word: neither waits for more of them. */
void lifeline_say(const struct lifeline *lifeline, enum lifeline_word word, const char *text)
{
    char message[LIFELINE_TEXT_BYTES];
    int length = snprintf(message, sizeof message, "%c%s", (char)word, text);
    size_t size = (size_t)length < sizeof message ? (size_t)length : sizeof message - 1;
    (void)send(lifeline->talk, message, size, MSG_NOSIGNAL);
}

void lifeline_beat(const struct lifeline *lifeline, int64_t well_ns, const char *part)
{
    size_t length = strlen(part);
    for (size_t i = 0; i < PART_BYTES; i++)
        atomic_store_explicit(&lifeline->page->part[i], i < length ? part[i] : '\0',
                              memory_order_relaxed);
    atomic_store(&lifeline->page->well_ns, well_ns);
}
