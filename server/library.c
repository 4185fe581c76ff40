/* library.c - what libmicrohttpd is asked for (see library.h). */
#include "server/library.h"

#include <stdarg.h>
#include <stddef.h>

#include "proto/limits.h"
#include "server/exchange.h"

enum {
    /* A head must fit it. The library clears it, and half of it again, for every request: 13 ns a
     * KiB. It reads into one half, but by growing that before each read it comes to 32 KiB in the
     * course of a large body, and uploads gain from no more. */
    CONNECTION_MEMORY_BYTES = LIMIT_HEAD_BYTES,
    CONNECTION_GROWTH_BYTES = 64 << 10, /* never free: it grows by what it can */
};

static void discard_library_log(void *closure, const char *format, va_list args)
{
    (void)closure, (void)format, (void)args; /* what clients do wrong is answered, not logged */
}

/* Version 1.0 can refuse folded lines and bare line feeds itself; 0.9 is watched by exchange.c. And
 * it begins with a connection that is added in its next run only, as with one from another thread,
 * unless it is told that there is none: then at once, as 0.9 does. */
#if MHD_VERSION >= 0x01000000
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#define ONE_THREAD MHD_USE_NO_THREAD_SAFETY
#else
#define STRICTNESS
#define ONE_THREAD 0
#endif

struct MHD_Daemon *library_start(struct loop *loop, unsigned connections_max,
                                 MHD_NotifyConnectionCallback on_connection)
{
    /* The flag for suspending also asks for a pipe to wake the library's own threads. There are
     * none here, and without the pipe a resume costs no system call. */
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG | ONE_THREAD |
                     (MHD_ALLOW_SUSPEND_RESUME & ~(unsigned)MHD_USE_ITC);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_on_request, loop, STRICTNESS MHD_OPTION_EXTERNAL_LOGGER,
        discard_library_log, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_MEMORY_INCREMENT,
        (size_t)CONNECTION_GROWTH_BYTES, MHD_OPTION_CONNECTION_LIMIT, connections_max,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, loop, MHD_OPTION_URI_LOG_CALLBACK,
        exchange_on_target, loop, MHD_OPTION_NOTIFY_COMPLETED, exchange_on_completed, loop,
        MHD_OPTION_END);
}
