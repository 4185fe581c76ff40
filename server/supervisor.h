/* supervisor.h - the process that holds the listening sockets and keeps one worker serving.
 *
 * Door: supervise() opens the sockets, or takes the service manager's, starts a worker (serve.h)
 * from the program that it is itself, and starts the next when one dies, hangs or says that it must
 * go. Clients meanwhile wait in the backlog. It never touches a device: what a driver does to a
 * process does not reach it.
 *   SIGTERM, SIGINT   the worker drains, then both end; a second one, a moment
 *                     later (serve.h), ends both at once
 *   SIGHUP            the configuration is read again; a file that is not in order changes nothing
 *   SIGUSR2           the program and the configuration are read again for a new worker; when it is
 *                     ready the old one leaves, and no connection is lost
 */
#ifndef SERVER_SUPERVISOR_H
#define SERVER_SUPERVISOR_H

#include "server/config.h"

/* copy: of config_load_copy(), owned from now on; -1: none. Returns the exit status: the worker's
 * after a drain, 1 when the first worker did not start or the drain was cut short. */
int supervise(const struct config *config, int argc, char **argv, int copy);

#endif
