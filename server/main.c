/* main.c - the command line, and which of three dotd is then.
 *
 * The supervisor holds the port and starts a worker, which is the same program again: it finds a
 * lifeline in its environment and serves. With supervise = off one process does both.
 *
 * Exit status: 0 when all went well or the work was drained, 1 when it could not start or a second
 * signal cut the drain short, 2 for a wrong command line, 3 when it drained because a device was
 * lost and nobody supervises.
 */
#include <fcntl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <stdio.h>
#include <unistd.h>

#include "server/config.h"
#include "server/lifeline.h"
#include "server/serve.h"
#include "server/supervisor.h"

enum { MESSAGE_BYTES = 512 };

static void version_print(void)
{
    printf("dotd %s (libmicrohttpd %s, jansson %s, %s CUDA)\n", DOTD_VERSION, MHD_get_version(),
           jansson_version_str(), DOTD_CUDA_BUILT ? "with" : "without");
}

/* A full disk must not look like success. */
static int stdout_status(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

static int work(int argc, char **argv, const struct lifeline *lifeline)
{
    struct config config;
    enum config_action action;
    char message[MESSAGE_BYTES];
    int copy = lifeline_copy(lifeline);
    if (config_load_copy(&config, &action, argc, argv, &copy, message, sizeof message))
        return serve(&config, argc, argv, lifeline);
    lifeline_say(lifeline, LIFELINE_FAILED, message);
    return 1;
}

static int run(int argc, char **argv)
{
    struct config config;
    enum config_action action;
    char message[MESSAGE_BYTES];
    int copy = -1;
    if (!config_load_copy(&config, &action, argc, argv, &copy, message, sizeof message)) {
        fprintf(stderr, "dotd: %s\n", message);
        return action == CONFIG_USAGE ? 2 : 1;
    }
    switch (action) {
    case CONFIG_HELP:
        config_help(stdout);
        return stdout_status();
    case CONFIG_VERSION:
        version_print();
        return stdout_status();
    case CONFIG_CHECK:
        puts(message);
        return stdout_status();
    case CONFIG_PRINT:
        config_print(stdout, &config);
        return stdout_status();
    default:
        return config.supervise != 0 ? supervise(&config, argc, argv, copy)
                                     : serve(&config, argc, argv, NULL);
    }
}

/* What is closed among the first three would be the number of a socket or an eventfd next, and the
 * log would be written into that. Opened for reading, so that whoever writes there is still
 * told. */
static bool standard_files_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct lifeline lifeline;
    if (!standard_files_open())
        return 1;
    switch (lifeline_adopt(&lifeline)) {
    case LIFELINE_ADOPTED:
        return work(argc, argv, &lifeline);
    case LIFELINE_BROKEN:
        fputs("dotd: the supervisor is gone, or of a version that this program does not know\n",
              stderr);
        return 1;
    default:
        return run(argc, argv);
    }
}
