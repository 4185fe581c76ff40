/* peer.h - whose a connection is, as far as its address tells. */
#ifndef SERVER_PEER_H
#define SERVER_PEER_H

#include <stdint.h>

struct sockaddr;

/* One number for all connections of a client: of an IPv4 address, also when it is mapped into IPv6,
 * or of the /64 that an IPv6 address is in, which is the least that one site is given (RFC 6177).
 * Mixed with seed, so that nobody can choose addresses that meet. address NULL, or of another
 * family: all are one client. */
uint64_t peer_client(const struct sockaddr *address, uint64_t seed);

#endif
