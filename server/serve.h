/* serve.h - the process that serves, from start to end.
 *
 * Door: serve() opens the devices and the HTTP threads, says when it is ready, waits for signals
 * and drains. Its supervisor is at the other end of the lifeline; without one (supervise = off) it
 * opens the sockets and talks to the service manager itself.
 */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "server/config.h"
#include "server/lifeline.h"

enum {
    SERVE_DEVICE_LOST = 3, /* exit status: drained because a device failed; start it anew */
    /* A stop signal that follows another so soon is the same order: timeout(1) sends one to the
     * program and one to its group. */
    SERVE_SAME_STOP_MS = 100,
};

/* argc and argv: of config_load(), for SIGHUP. lifeline NULL: nobody supervises. Returns the exit
 * status: 0 when the work was drained, 1 when it could not start or the drain was cut short. */
int serve(const struct config *config, int argc, char **argv, const struct lifeline *lifeline);

#endif
