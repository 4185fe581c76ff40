/* peer.c - one number for a client (see peer.h). */
#include "server/peer.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

/* The finish of splitmix64: a bijection, so that different sites stay different. Source: G. Steele,
 * D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t site6(const struct in6_addr *address)
{
    uint64_t site = 0;
    if (IN6_IS_ADDR_V4MAPPED(address))
        memcpy(&site, &address->s6_addr[12], 4);
    else
        memcpy(&site, address->s6_addr, sizeof site);
    return site;
}

uint64_t peer_client(const struct sockaddr *address, uint64_t seed)
{
    uint64_t site = 0;
    if (address != NULL && address->sa_family == AF_INET)
        memcpy(&site, &((const struct sockaddr_in *)address)->sin_addr, 4);
    else if (address != NULL && address->sa_family == AF_INET6)
        site = site6(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return mix(site ^ seed);
}
