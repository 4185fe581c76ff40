/* http.h - the HTTP side as a whole: threads that accept, receive, answer.
 *
 * Door: http_open() starts the threads on the listening sockets; http_drain() stops taking work and
 * returns when everything accepted is answered; http_close() ends the threads.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stdbool.h>

#include "gpu/gpu.h"
#include "gpu/lab.h"
#include "server/config.h"
#include "server/listen.h"

struct http;

/* Borrows all four: they outlive the http. Returns false with one line in message. */
bool http_open(struct http **ret, const struct config *config, struct gpu *gpu, struct lab *lab,
               const struct listen_set *sockets, char *message, size_t message_size);

/* From now /readyz says yes: the self-test has passed. */
void http_set_ready(struct http *http);

/* A heartbeat for the watchdog: true when every thread has been round its loop since the last call,
 * or is idle. */
bool http_is_alive(struct http *http);

/* Refuses new work with 503 (probes are still answered), answers what was accepted, and returns when
 * no request is left, after timeout_ms at the latest. Returns how many are left then: 0 when all
 * went well. */
unsigned http_drain(struct http *http, uint64_t timeout_ms);

/* Stops listening and ends the threads. No job may be with a device or the lab any more:
 * lab_drain() and gpu_drain() first.
 * Takes NULL. */
void http_close(struct http *http);

#endif
