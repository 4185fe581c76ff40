/* systemd.c - the two halves of sd_notify(3) that dotd needs, without its library (see
 * systemd.h). */
#include "server/systemd.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A leading @ stands for the NUL of an abstract socket, whose name has no end but its length. */
static bool address_make(const char *path, struct sockaddr_un *ret, socklen_t *ret_size)
{
    size_t length = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length >= sizeof ret->sun_path)
        return false;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, length);
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    if (path[0] == '@') {
        ret->sun_path[0] = '\0';
        (*ret_size)--;
    }
    return true;
}

/* Failures are not told: a manager that hears nothing acts on its own time limits. One that does
 * not read is not waited for either: whoever waits here watches nobody. */
void systemd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    socklen_t size;
    if (path == NULL || !address_make(path, &address, &size))
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address,
                 size);
    (void)close(fd);
}

/* The variables may have been meant for a parent that passed its environment on. */
static bool pid_is_ours(const char *pid)
{
    return pid == NULL || strtol(pid, NULL, 10) == getpid();
}

uint64_t systemd_watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC");
    if (text == NULL || !pid_is_ours(getenv("WATCHDOG_PID")))
        return 0;
    char *end;
    errno = 0;
    unsigned long long us = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' ? us : 0;
}
