/* child.c - starting, watching and ending a worker (see child.h).
 *
 * Source: prctl(2), PR_SET_PDEATHSIG; execveat(2) for executing a descriptor: a worker that
 * replaces a dead one runs the same program, also when the file has been replaced or deleted
 * meanwhile.
 */
#include "server/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/clock.h"

bool image_open(struct image *ret, const char *path, int copy)
{
    int exe = open(path, O_PATH | O_CLOEXEC);
    if (exe < 0)
        return false;
    *ret = (struct image){.exe = exe, .copy = copy};
    return true;
}

void image_close(struct image *image)
{
    if (image->exe >= 0)
        (void)close(image->exe);
    if (image->copy >= 0)
        (void)close(image->copy);
    *image = (struct image){.exe = -1, .copy = -1};
}

/* In the child, which must not outlive its parent: whose end before the prctl() would go unnoticed.
 * The service manager is told everything by the parent. Signals stay blocked through exec. */
static _Noreturn void become_worker(const struct lifeline *lifeline, int exe, char **argv,
                                    pid_t parent)
{
    const struct lifeline mine = {.page = lifeline->page, .talk = lifeline->peer};
    char message[LIFELINE_TEXT_BYTES];
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    if (lifeline_pass(lifeline))
        (void)fexecve(exe, argv, environ);
    (void)snprintf(message, sizeof message, "cannot execute %s: %s", argv[0], strerror(errno));
    lifeline_say(&mine, LIFELINE_FAILED, message);
    _exit(1);
}

bool child_start(struct child *ret, const struct image *image, char **argv,
                 const struct listen_set *sockets, const struct lineage *lineage)
{
    struct child child = {.generation = lineage->generation, .is_stopgap = lineage->is_stopgap};
    if (!lifeline_create(&child.lifeline, sockets, image->copy, lineage))
        return false;
    pid_t parent = getpid();
    child.pid = fork();
    if (child.pid == 0)
        become_worker(&child.lifeline, image->exe, argv, parent);
    if (child.pid < 0) {
        int cause = errno;
        lifeline_close(&child.lifeline);
        errno = cause;
        return false;
    }
    lifeline_passed(&child.lifeline);
    child_enter(&child, CHILD_STARTING);
    *ret = child;
    return true;
}

void child_enter(struct child *child, enum child_state state)
{
    child->state = state;
    child->since_ns = clock_ns();
    child->deadline_ns = INT64_MAX;
}

uint64_t child_age_ms(const struct child *child)
{
    return (uint64_t)(clock_ns() - child->since_ns) / 1000000;
}

void child_order(struct child *child, int signal, enum child_state state, uint64_t after_ms)
{
    assert(child->pid > 0);
    (void)kill(child->pid, signal);
    child_enter(child, state);
    child->deadline_ns = child->since_ns + (int64_t)after_ms * 1000000;
}

void child_kill(struct child *child)
{
    assert(child->pid > 0);
    (void)kill(child->pid, SIGKILL);
    child_enter(child, CHILD_KILLED);
}

uint64_t child_hung_ms(const struct child *child, char *part)
{
    assert(child->state == CHILD_SERVING);
    int64_t now_ns = clock_ns(), well_ns = lifeline_well_ns(&child->lifeline, part);
    if (part[0] == '\0') /* when last heard all moved: then that hangs from where it comes */
        (void)snprintf(part, LIFELINE_TEXT_BYTES, "%s", "the main thread");
    if (well_ns < child->since_ns)
        well_ns = child->since_ns;
    return now_ns > well_ns ? (uint64_t)(now_ns - well_ns) / 1000000 : 0;
}

void child_bury(struct child *child)
{
    lifeline_close(&child->lifeline);
    *child = (struct child){.state = CHILD_NONE};
}

void child_describe_end(int wait_status, char *ret, size_t size)
{
    if (WIFEXITED(wait_status)) {
        (void)snprintf(ret, size, "exited with status %d", WEXITSTATUS(wait_status));
        return;
    }
    const char *name = sigabbrev_np(WTERMSIG(wait_status));
    (void)snprintf(ret, size, "died of SIG%s", name != NULL ? name : "NAL");
}
