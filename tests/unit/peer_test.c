/* peer_test.c - which addresses are one client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "server/peer.h"

enum { SEED = 42 };

static uint64_t client4(const char *text, uint16_t port, uint64_t seed)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return peer_client((struct sockaddr *)&address, seed);
}

static uint64_t client6(const char *text, uint16_t port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    return peer_client((struct sockaddr *)&address, SEED);
}

static void an_ipv4_address_is_a_client(void **state)
{
    (void)state;
    assert_true(client4("192.0.2.1", 1, SEED) == client4("192.0.2.1", 2, SEED));
    assert_true(client4("192.0.2.1", 1, SEED) != client4("192.0.2.2", 1, SEED));
    assert_true(client6("::ffff:192.0.2.1", 3) == client4("192.0.2.1", 1, SEED));
}

static void a_network_of_ipv6_is_a_client(void **state)
{
    (void)state;
    assert_true(client6("2001:db8:1:2::1", 1) == client6("2001:db8:1:2:a:b:c:d", 2));
    assert_true(client6("2001:db8:1:2::1", 1) != client6("2001:db8:1:3::1", 1));
}

static void a_seed_tells_nothing_of_another(void **state)
{
    (void)state;
    assert_true(client4("192.0.2.1", 1, SEED) != client4("192.0.2.1", 1, SEED + 1));
}

static void what_has_no_address_is_one_client(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "x"};
    assert_true(peer_client(NULL, SEED) == peer_client((struct sockaddr *)&address, SEED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_address_is_a_client),
        cmocka_unit_test(a_network_of_ipv6_is_a_client),
        cmocka_unit_test(a_seed_tells_nothing_of_another),
        cmocka_unit_test(what_has_no_address_is_one_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
