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
#include "server/lifeline.h"
#include "server/listen.h"

struct http;

/* Starts the threads, which accept nobody yet. Borrows config, gpu, lab and sockets: they outlive
 * the http. Returns false with one line in message. */
bool http_open(struct http **ret, const struct config *config, struct gpu *gpu, struct lab *lab,
               const struct listen_set *sockets, const struct lineage *lineage, char *message,
               size_t message_size);

void http_accept(struct http *http); /* connections, from now on */

/* No more of them, for another process has the listeners: they are out of every thread's hands when
 * the call returns. Whoever is connected is served on, with an answer that closes, and disconnected
 * when nothing is asked for a moment. */
void http_accept_no_more(struct http *http);

/* Live settings are read from config from now on. The one before stays borrowed: a thread may be in
 * the middle of reading it. */
void http_set_config(struct http *http, const struct config *config);

/* From now /readyz says yes: the self-test has passed. */
void http_set_ready(struct http *http);

/* A process with CUDA follows this one, which has it no more: who asks for it is told to come again.
 * From any thread, before http_close(). */
void http_expect_cuda(struct http *http);

/* A heartbeat for the watchdog: until when every thread was seen to go round its loop, or to sleep
 * in it. It sees by comparing with its last call, so it is called again and again, by one
 * thread. */
int64_t http_well_ns(struct http *http, int64_t now_ns);

/* Refuses new work with 503 (probes are still answered), answers what was accepted, and returns
 * when no request is left, after timeout_ms at the latest. Returns how many are left then: 0 when
 * all went well. */
unsigned http_drain(struct http *http, uint64_t timeout_ms);

/* After http_accept_no_more(), instead of http_drain(): returns when nobody is connected any more,
 * after timeout_ms at the latest. Returns how many requests are left then. */
unsigned http_leave(struct http *http, uint64_t timeout_ms);

/* Stops listening and ends the threads. No job may be with a device or the lab any more:
 * lab_drain() and gpu_drain() first.
 * Takes NULL. */
void http_close(struct http *http);

#endif
