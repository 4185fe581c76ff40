/* listen.c - the listening sockets (see listen.h).
 *
 * Source: sd_listen_fds(3) for the protocol of sockets handed over; RFC 3986 section 3.2.2 for the
 * brackets around IPv6; RFC 3493 section 5.3 for IPV6_V6ONLY.
 */
#include "server/listen.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/log.h"

enum {
    BACKLOG = 4096,   /* connections not yet accepted; net.core.somaxconn caps it */
    FIRST_PASSED = 3, /* systemd's sockets begin behind stdin, stdout and stderr */
    HOST_BYTES = 256  /* a name in DNS, with the NUL */
};

struct place {
    const char *address; /* as configured, for messages */
    char host[HOST_BYTES];
    char port[32]; /* number or name of a service */
};

__attribute__((format(printf, 3, 4))) static int refuse(char *message, size_t size,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, size, format, args);
    va_end(args);
    return -1;
}

static int refuse_address(const struct place *place, const char *why, char *message, size_t size)
{
    /* the library's texts begin as sentences do */
    return refuse(message, size, "cannot listen on %s: %c%s", place->address,
                  tolower((unsigned char)why[0]), why + 1);
}

/* Copies [begin, end) when it fits. */
static bool copy_part(char *ret, size_t size, const char *begin, const char *end)
{
    if ((size_t)(end - begin) >= size)
        return false;
    memcpy(ret, begin, (size_t)(end - begin));
    ret[end - begin] = '\0';
    return true;
}

/* A name, or a number that fits: the library would take the low 16 bits of a larger one. */
static bool port_is_valid(const char *port)
{
    size_t digits = strspn(port, "0123456789");
    return port[0] != '\0' && (port[digits] != '\0' || (digits <= 5 && atoi(port) <= 65535));
}

/* "host:port", "[v6]:port" or ":port". An IPv6 address without brackets is refused: which colon
 * begins the port would be a guess. NULL, or what is wrong. */
static const char *place_split(const char *address, struct place *ret)
{
    static const char form[] = "it must be host:port, [v6]:port or :port";
    const char *host = address, *host_end = strchr(address, ':'), *colon = host_end;
    if (address[0] == '[') {
        host = address + 1;
        host_end = strchr(host, ']');
        colon = host_end == NULL ? NULL : host_end + 1;
    }
    if (colon == NULL || *colon != ':' || colon[1] == '\0' || strchr(colon + 1, ':') != NULL)
        return form;
    ret->address = address;
    const char *port_end = address + strlen(address);
    /* What is too long for a port is no name of one, and as a number too large. */
    if (!copy_part(ret->port, sizeof ret->port, colon + 1, port_end) || !port_is_valid(ret->port))
        return "its port is out of range; it must be 0 to 65535, or a service's name";
    return copy_part(ret->host, sizeof ret->host, host, host_end) ? NULL : "its host is too long";
}

const char *listen_address_refusal(const char *address)
{
    struct place place;
    return place_split(address, &place);
}

static bool socket_name(int fd, char ret[LISTEN_NAME_BYTES])
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[LISTEN_NAME_BYTES - 8], port[6];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    (void)snprintf(ret, LISTEN_NAME_BYTES, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
                   host, port);
    return true;
}

static bool set_add(struct listen_set *set, int fd)
{
    if (set->count == LISTEN_SOCKETS || !socket_name(fd, set->name[set->count]))
        return false;
    set->fd[set->count++] = fd;
    return true;
}

/* A socket that listens on one address, or -1 with errno. */
static int socket_open(const struct addrinfo *info)
{
    const int on = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0)
        return -1;
    /* SO_REUSEADDR: a restart must not wait for the last connections' TIME_WAIT to end.
     * IPV6_V6ONLY: "::" would take the port of 0.0.0.0, which has a socket of its own. */
    bool opened = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                  (info->ai_family != AF_INET6 ||
                   setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
                  bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    if (opened)
        return fd;
    int cause = errno;
    (void)close(fd);
    errno = cause;
    return -1;
}

/* What the first socket got for port 0 is what the others ask for. */
static void port_copy(struct addrinfo *info, int first_fd)
{
    struct sockaddr_storage first;
    socklen_t size = sizeof first;
    if (getsockname(first_fd, (struct sockaddr *)&first, &size) != 0)
        return;
    /* the port lies at the same place in both families (RFC 3493 section 3.3) */
    ((struct sockaddr_in *)info->ai_addr)->sin_port = ((struct sockaddr_in *)&first)->sin_port;
}

/* True for what a machine without the one or the other IP says of its addresses. */
static bool is_missing_family(int cause)
{
    return cause == EAFNOSUPPORT || cause == EADDRNOTAVAIL || cause == EPROTONOSUPPORT;
}

/* Binds all that a name stands for: "localhost" is 127.0.0.1 and, where there is IPv6, ::1. */
static int addresses_open(struct listen_set *set, const struct place *place, struct addrinfo *list,
                          char *message, size_t size)
{
    int cause = 0;
    for (struct addrinfo *info = list; info != NULL; info = info->ai_next) {
        if (set->count > 0)
            port_copy(info, set->fd[0]);
        int fd = socket_open(info);
        if (fd < 0 && is_missing_family(errno)) {
            cause = errno;
            continue;
        }
        if (fd < 0)
            return refuse_address(place, strerror(errno), message, size);
        if (!set_add(set, fd)) {
            (void)close(fd);
            return refuse_address(place, "it stands for too many addresses", message, size);
        }
    }
    return set->count > 0 ? 0 : refuse_address(place, strerror(cause), message, size);
}

static int address_open(struct listen_set *set, const char *address, char *message, size_t size)
{
    struct place place;
    const char *wrong = place_split(address, &place);
    if (wrong != NULL)
        return refuse(message, size, "cannot listen on %s: %s", address, wrong);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    const char *host = place.host[0] == '\0' ? NULL : place.host;
    int failure = getaddrinfo(host, place.port, &hints, &list);
    if (failure != 0)
        return refuse_address(
            &place, failure == EAI_SYSTEM ? strerror(errno) : gai_strerror(failure), message, size);
    int result = addresses_open(set, &place, list, message, size);
    freeaddrinfo(list);
    return result;
}

/* Takes one socket that was handed over, once it is known to be what HTTP needs. */
static int passed_take(struct listen_set *set, int fd, char *message, size_t size)
{
    int listens = 0, type = 0, family = 0;
    socklen_t length = sizeof(int);
    bool fits = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0 &&
                getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM &&
                getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 &&
                (family == AF_INET || family == AF_INET6);
    if (!fits)
        return refuse(message, size, "descriptor %d from systemd is not a listening TCP socket",
                      fd);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || !set_add(set, fd))
        return refuse(message, size, "descriptor %d from systemd cannot be used: %s", fd,
                      strerror(errno));
    return 0;
}

/* How many sockets were handed to this very process. Clears the variables, so that a child does
 * not take them for its own: call it before there are threads that read the environment. */
static long passed_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    long count = 0;
    if (pid != NULL && fds != NULL && strtol(pid, NULL, 10) == getpid())
        count = strtol(fds, NULL, 10);
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return count;
}

int listen_open(struct listen_set *ret, const char *address, char *message, size_t message_size)
{
    struct listen_set set = {.count = 0};
    long passed = passed_count();
    int result = 0;
    if (passed > LISTEN_SOCKETS)
        return refuse(message, message_size, "systemd hands over %ld sockets; at most %d are taken",
                      passed, LISTEN_SOCKETS);
    for (int i = 0; i < passed && result == 0; i++)
        result = passed_take(&set, FIRST_PASSED + i, message, message_size);
    if (passed <= 0)
        result = address_open(&set, address, message, message_size);
    if (result != 0) {
        listen_close(&set);
        return -1;
    }
    *ret = set;
    return 0;
}

void listen_announce(const struct listen_set *set)
{
    for (int i = 0; i < set->count; i++) {
        log_event(LOG_LEVEL_INFO, "listening", LOG_S("address", set->name[i]));
        printf("dotd listening on http://%s\n", set->name[i]);
    }
    (void)fflush(stdout);
}

void listen_close(struct listen_set *set)
{
    while (set->count > 0)
        (void)close(set->fd[--set->count]);
}
