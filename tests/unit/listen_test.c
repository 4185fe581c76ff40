/* Listening sockets: addresses in every form, ports chosen and taken, sockets handed over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/listen.h"
#include "server/systemd.h"

enum { MESSAGE_BYTES = 256, FIRST_PASSED = 3 };

static uint16_t port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port); /* at the same place in IPv6 */
}

static void assert_connects(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(close(fd), 0);
}

static void assert_refused(const char *address, const char *expected)
{
    char message[MESSAGE_BYTES] = "";
    struct listen_set set = {.count = -7};
    assert_int_equal(listen_open(&set, address, message, sizeof message), -1);
    assert_string_equal(message, expected);
    assert_int_equal(set.count, -7);
}

static void open_ok(struct listen_set *ret, const char *address)
{
    char message[MESSAGE_BYTES] = "";
    int result = listen_open(ret, address, message, sizeof message);
    assert_string_equal(message, "");
    assert_int_equal(result, 0);
}

static void port_0_gives_a_port_and_its_name(void **state)
{
    (void)state;
    struct listen_set set;
    char name[LISTEN_NAME_BYTES];
    open_ok(&set, "127.0.0.1:0");
    assert_int_equal(set.count, 1);
    uint16_t port = port_of(set.fd[0]);
    assert_int_not_equal(port, 0);
    (void)snprintf(name, sizeof name, "127.0.0.1:%u", port);
    assert_string_equal(set.name[0], name);
    assert_connects(port);
    listen_close(&set);
    assert_int_equal(set.count, 0);
}

static void sockets_do_not_block_and_are_not_inherited(void **state)
{
    (void)state;
    struct listen_set set;
    open_ok(&set, "127.0.0.1:0");
    assert_true(fcntl(set.fd[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(set.fd[0], F_GETFD) & FD_CLOEXEC);
    listen_close(&set);
}

static void names_are_resolved(void **state)
{
    (void)state;
    struct listen_set set;
    open_ok(&set, "localhost:0");
    assert_in_range(set.count, 1, 2);
    for (int i = 1; i < set.count; i++)
        assert_int_equal(port_of(set.fd[i]), port_of(set.fd[0]));
    listen_close(&set);
}

static void empty_host_is_every_address(void **state)
{
    (void)state;
    struct listen_set set;
    open_ok(&set, ":0");
    assert_in_range(set.count, 1, 2);
    assert_connects(port_of(set.fd[0]));
    listen_close(&set);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        (void)close(fd);
    return bound;
}

static void ipv6_stands_in_brackets(void **state)
{
    (void)state;
    struct listen_set set;
    char name[LISTEN_NAME_BYTES];
    if (!has_ipv6())
        skip();
    open_ok(&set, "[::1]:0");
    assert_int_equal(set.count, 1);
    (void)snprintf(name, sizeof name, "[::1]:%u", port_of(set.fd[0]));
    assert_string_equal(set.name[0], name);
    listen_close(&set);
}

static void taken_port_gives_one_clear_line(void **state)
{
    (void)state;
    struct listen_set set;
    char expected[MESSAGE_BYTES];
    open_ok(&set, "127.0.0.1:0");
    (void)snprintf(expected, sizeof expected, "cannot listen on %s: address already in use",
                   set.name[0]);
    assert_refused(set.name[0], expected);
    listen_close(&set);
}

static void closed_port_can_be_taken_again_at_once(void **state)
{
    (void)state;
    struct listen_set set;
    char name[LISTEN_NAME_BYTES];
    open_ok(&set, "127.0.0.1:0");
    strcpy(name, set.name[0]);
    assert_connects(port_of(set.fd[0])); /* leaves a connection that the kernel remembers */
    listen_close(&set);
    open_ok(&set, name);
    listen_close(&set);
}

static void addresses_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const addresses[] = {
        "", "127.0.0.1", "127.0.0.1:", "::1:80", "[::1]", "[::1]80", "[::1:80", "a:1:2",
    };
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        char expected[MESSAGE_BYTES];
        (void)snprintf(expected, sizeof expected,
                       "cannot listen on %s: it must be host:port, [v6]:port or :port",
                       addresses[i]);
        assert_non_null(listen_address_refusal(addresses[i]));
        assert_refused(addresses[i], expected);
    }
    assert_null(listen_address_refusal("127.0.0.1:65535"));
    assert_null(listen_address_refusal("localhost:http"));
}

static void ports_beyond_65535_are_told_as_such(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.0.0.1:65536", "[::1]:99999",
                                            ":99999999999999999999",
                                            ":9999999999999999999999999999999999999999"};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        char expected[MESSAGE_BYTES];
        (void)snprintf(expected, sizeof expected,
                       "cannot listen on %s: its port is out of range; it must be 0 to 65535, or a "
                       "service's name",
                       addresses[i]);
        assert_refused(addresses[i], expected);
    }
}

static void address_of_another_machine_is_refused(void **state)
{
    (void)state;
    assert_refused("192.0.2.1:0", /* RFC 5737: nobody's */
                   "cannot listen on 192.0.2.1:0: cannot assign requested address");
}

static void failure_opens_nothing(void **state)
{
    (void)state;
    int next = dup(0);
    assert_int_equal(close(next), 0);
    assert_refused("192.0.2.1:0", "cannot listen on 192.0.2.1:0: cannot assign requested address");
    int after = dup(0);
    assert_int_equal(close(after), 0);
    assert_int_equal(after, next);
}

static void sockets_for_another_process_are_not_taken(void **state)
{
    (void)state;
    struct listen_set set;
    assert_int_equal(setenv("LISTEN_PID", "1", 1), 0);
    assert_int_equal(setenv("LISTEN_FDS", "1", 1), 0);
    assert_int_equal(setenv("LISTEN_FDNAMES", "http", 1), 0);
    open_ok(&set, "127.0.0.1:0");
    assert_memory_equal(set.name[0], "127.0.0.1:", strlen("127.0.0.1:"));
    listen_close(&set);
    assert_null(getenv("LISTEN_PID"));
    assert_null(getenv("LISTEN_FDS"));
    assert_null(getenv("LISTEN_FDNAMES"));
}

/* How a child that was handed a descriptor as systemd does it saw listen_open() end. */
struct handed {
    int result, count, flags, descriptor_flags;
    bool environment_is_clear;
    char name[LISTEN_NAME_BYTES], message[MESSAGE_BYTES];
};

static void handed_open(int fd, struct handed *ret)
{
    struct listen_set set = {.count = 0};
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (fd != FIRST_PASSED && dup2(fd, FIRST_PASSED) < 0)
        return;
    (void)setenv("LISTEN_PID", pid, 1);
    (void)setenv("LISTEN_FDS", "1", 1);
    ret->result = listen_open(&set, "127.0.0.1:0", ret->message, sizeof ret->message);
    ret->count = set.count;
    ret->flags = fcntl(FIRST_PASSED, F_GETFL);
    ret->descriptor_flags = fcntl(FIRST_PASSED, F_GETFD);
    ret->environment_is_clear = getenv("LISTEN_PID") == NULL && getenv("LISTEN_FDS") == NULL;
    memcpy(ret->name, set.name[0], sizeof ret->name);
}

/* In a child, since descriptor 3 and the environment belong to the whole process. */
static struct handed hand_over(int fd)
{
    int channel[2], status;
    struct handed handed = {.result = -7};
    assert_int_equal(pipe(channel), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int out = fcntl(channel[1], F_DUPFD, 64); /* out of the way of descriptor 3 */
        handed_open(fd, &handed);
        _exit(write(out, &handed, sizeof handed) == sizeof handed ? 0 : 1);
    }
    assert_int_equal(close(channel[1]), 0);
    assert_int_equal(read(channel[0], &handed, sizeof handed), sizeof handed);
    assert_int_equal(close(channel[0]), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return handed;
}

static int socket_bound(int type)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, type, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void socket_handed_over_is_used_instead(void **state)
{
    (void)state;
    char name[LISTEN_NAME_BYTES];
    int fd = socket_bound(SOCK_STREAM);
    assert_int_equal(listen(fd, 1), 0);
    struct handed handed = hand_over(fd);
    (void)snprintf(name, sizeof name, "127.0.0.1:%u", port_of(fd));
    assert_int_equal(close(fd), 0);
    assert_string_equal(handed.message, "");
    assert_int_equal(handed.result, 0);
    assert_int_equal(handed.count, 1);
    assert_string_equal(handed.name, name);
    assert_true(handed.flags & O_NONBLOCK);
    assert_true(handed.descriptor_flags & FD_CLOEXEC);
    assert_true(handed.environment_is_clear);
}

static void assert_not_handed_over(int fd)
{
    struct handed handed = hand_over(fd);
    assert_int_equal(close(fd), 0);
    assert_int_equal(handed.result, -1);
    assert_string_equal(handed.message, "descriptor 3 from systemd is not a listening TCP socket");
}

static void what_is_no_listening_socket_is_refused(void **state)
{
    (void)state;
    assert_not_handed_over(socket_bound(SOCK_STREAM)); /* bound, not listening */
    assert_not_handed_over(socket_bound(SOCK_DGRAM));
    assert_not_handed_over(open("/dev/null", O_RDONLY));
}

/* A socket of the service manager's kind; leaves NOTIFY_SOCKET naming it. */
static int manager_open(bool is_abstract, char ret_path[32])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(ret_path, "/tmp/dotd-notify-XXXXXX");
    int unique = mkstemp(ret_path); /* for a name that nobody else has */
    assert_true(unique >= 0);
    assert_int_equal(close(unique), 0);
    assert_int_equal(unlink(ret_path), 0);
    size_t length = strlen(ret_path);
    memcpy(address.sun_path, ret_path, length);
    char variable[32];
    strcpy(variable, ret_path);
    if (is_abstract) {
        address.sun_path[0] = '\0';
        variable[0] = '@';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + !is_abstract);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", variable, 1), 0);
    return fd;
}

static void manager_hears_of_state(void **state)
{
    (void)state;
    for (int is_abstract = 0; is_abstract < 2; is_abstract++) {
        char path[32], heard[64] = "";
        int fd = manager_open(is_abstract, path);
        systemd_notify("READY=1"); /* a datagram is there once it is sent */
        ssize_t size = recv(fd, heard, sizeof heard - 1, 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
        if (!is_abstract)
            assert_int_equal(unlink(path), 0);
        assert_int_equal(size, strlen("READY=1"));
        assert_string_equal(heard, "READY=1");
    }
}

static void watchdog_is_for_this_process_only(void **state)
{
    (void)state;
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_int_equal(systemd_watchdog_us(), 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "30000000", 1), 0);
    assert_int_equal(systemd_watchdog_us(), 30000000);
    assert_int_equal(setenv("WATCHDOG_PID", "1", 1), 0);
    assert_int_equal(systemd_watchdog_us(), 0);
    assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
    assert_int_equal(systemd_watchdog_us(), 30000000);
    assert_int_equal(setenv("WATCHDOG_USEC", "30s", 1), 0);
    assert_int_equal(systemd_watchdog_us(), 0);
    assert_int_equal(unsetenv("WATCHDOG_USEC"), 0);
    assert_int_equal(unsetenv("WATCHDOG_PID"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_0_gives_a_port_and_its_name),
        cmocka_unit_test(sockets_do_not_block_and_are_not_inherited),
        cmocka_unit_test(names_are_resolved),
        cmocka_unit_test(empty_host_is_every_address),
        cmocka_unit_test(ipv6_stands_in_brackets),
        cmocka_unit_test(taken_port_gives_one_clear_line),
        cmocka_unit_test(closed_port_can_be_taken_again_at_once),
        cmocka_unit_test(addresses_that_are_none_are_refused),
        cmocka_unit_test(ports_beyond_65535_are_told_as_such),
        cmocka_unit_test(address_of_another_machine_is_refused),
        cmocka_unit_test(failure_opens_nothing),
        cmocka_unit_test(sockets_for_another_process_are_not_taken),
        cmocka_unit_test(socket_handed_over_is_used_instead),
        cmocka_unit_test(what_is_no_listening_socket_is_refused),
        cmocka_unit_test(manager_hears_of_state),
        cmocka_unit_test(watchdog_is_for_this_process_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
