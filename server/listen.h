/* listen.h - the listening sockets: made here, or handed over by systemd. */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include <stddef.h>

enum { LISTEN_SOCKETS = 8, LISTEN_NAME_BYTES = 64 };

struct listen_set {
    int fd[LISTEN_SOCKETS];                       /* non-blocking, close-on-exec, listening */
    char name[LISTEN_SOCKETS][LISTEN_NAME_BYTES]; /* "127.0.0.1:8080", with the port chosen */
    int count;
};

/* Clears LISTEN_PID and its like from the environment: call it before there are other threads.
 * Takes systemd's sockets (LISTEN_PID, LISTEN_FDS) when there are some, else binds address ("host:
 * port", "[v6]:port", ":port" for all addresses). Returns 0, or -1 with one clear line in message
 * ("cannot listen on 127.0.0.1:8080: address already in use"). */
int listen_open(struct listen_set *ret, const char *address, char *message, size_t message_size);
void listen_close(struct listen_set *set);

/* Says where: to people in the log, on stdout to whoever started the daemon on port 0. */
void listen_announce(const struct listen_set *set);

/* NULL when address has one of the three forms, whatever host and port stand for; else what it must
 * be, for the end of a sentence ("it must be host:port, [v6]:port or :port"). */
const char *listen_address_refusal(const char *address);

#endif
