/* library.h - libmicrohttpd as a loop uses it: without threads, without a listening socket, and with
 * an epoll to sleep in.
 */
#ifndef SERVER_LIBRARY_H
#define SERVER_LIBRARY_H

#include <microhttpd.h>

struct loop;

/* Requests are exchange.h's, and loop is the closure of every callback. NULL: out of memory or
 * descriptors. */
struct MHD_Daemon *library_start(struct loop *loop, unsigned connections_max,
                                 MHD_NotifyConnectionCallback on_connection);

#endif
