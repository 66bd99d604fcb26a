/* SPDX-License-Identifier: MIT */
/*
 * Sockets: how they are set, and what becomes of a connection that is refused,
 * its own, or impossible. How one is made, or is not answered, is in
 * test_dial.c.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/socket.h"

static struct address loopback(int family)
{
    struct address a = {0};

    if (family == AF_INET) {
        struct sockaddr_in v4 = {.sin_family = AF_INET};
        v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        memcpy(&a.bytes, &v4, sizeof(v4));
        a.len = sizeof(v4);
    } else {
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
        v6.sin6_addr = in6addr_loopback;
        memcpy(&a.bytes, &v6, sizeof(v6));
        a.len = sizeof(v6);
    }
    return a;
}

/* Bound to a port the kernel chose, which *a then says; -1: no such family. */
static int bind_loopback(int family, struct address *a)
{
    struct sockaddr *bytes = (void *)&a->bytes;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *a = loopback(family);
    if (fd < 0 || bind(fd, bytes, a->len) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    assert_int_equal(getsockname(fd, bytes, &a->len), 0);
    return fd;
}

static void wait_for(int fd, short events)
{
    struct pollfd waiting = {.fd = fd, .events = events};
    assert_int_equal(poll(&waiting, 1, 10000), 1);
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void tcp_is_tuned(void **state)
{
    static const struct {
        uint64_t keepalive_s;
        int idle, interval, dead_ms;
    } rows[] = {
        {15, 15, 5, 30000},
        {1, 1, 1, 20000},
        {60, 60, 20, 120000},
        {32767, 32767, 75, 32992000},
    };
    struct address a;
    struct text error;
    int listener = bind_loopback(AF_INET, &a);

    (void)state;
    assert_int_equal(listen(listener, 8), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = socket_open_tcp(&a, rows[i].keepalive_s, &error);
        assert_true(fd >= 0);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
        assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), rows[i].idle);
        assert_int_equal(
            option(fd, IPPROTO_TCP, TCP_KEEPINTVL), rows[i].interval);
        assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
        assert_int_equal(
            option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), rows[i].dead_ms);
        close(fd);
    }
    close(listener);
}

static void a_closed_port_refuses(void **state)
{
    struct address a;
    struct text error;
    int bound = bind_loopback(AF_INET, &a); /* and nobody listens */

    (void)state;
    int fd = socket_open_tcp(&a, 15, &error);
    if (fd >= 0) {
        wait_for(fd, POLLOUT);
        assert_int_equal(socket_connected(fd, &error), SOCKET_FAILED);
        assert_int_equal(errno, ECONNREFUSED);
        assert_string_equal(error.data, "cannot connect: Connection refused");
        /* The kernel has told its reason; it still is no connection. */
        assert_int_equal(socket_connected(fd, &error), SOCKET_FAILED);
        close(fd);
    } else {
        assert_int_equal(errno, ECONNREFUSED);
        assert_contains(error.data, "Connection refused");
    }
    close(bound);
}

static void a_connection_to_itself_is_refused(int family)
{
    struct address a;
    struct text error;
    int fd = bind_loopback(family, &a);

    if (fd < 0)
        test_skip("no such loopback here");
    assert_int_equal(connect(fd, (void *)&a.bytes, a.len), 0);
    assert_int_equal(socket_connected(fd, &error), SOCKET_FAILED);
    assert_int_equal(errno, ECONNREFUSED);
    assert_contains(error.data, "refused");
    close(fd);
}

static void a_connection_to_itself_is_refused_ipv4(void **state)
{
    (void)state;
    a_connection_to_itself_is_refused(AF_INET);
}

static void a_connection_to_itself_is_refused_ipv6(void **state)
{
    (void)state;
    a_connection_to_itself_is_refused(AF_INET6);
}

static void no_way_there_is_told_at_once(void **state)
{
    struct address a = loopback(AF_INET);
    struct sockaddr_in *v4 = (void *)&a.bytes;
    struct text error;
    struct rlimit limit, none;

    (void)state;
    /* Connecting to a broadcast address needs a permission nobody gave. */
    v4->sin_addr.s_addr = htonl(INADDR_BROADCAST);
    v4->sin_port = htons(7000);
    assert_int_equal(socket_open_tcp(&a, 15, &error), -1);
    assert_true(errno != 0);
    assert_contains(error.data, "cannot connect to 255.255.255.255:7000: ");
    assert_contains(error.data, strerror(errno));

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int fd = socket_open_tcp(&a, 15, &error), cause = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(cause, EMFILE);
    assert_contains(error.data, strerror(EMFILE));
}

static void a_unix_socket_that_takes_no_more(void **state)
{
    char dir[] = "/tmp/nxlock-socket-XXXXXX", path[64];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct text error;
    int fds[8], count = 0;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(a.sun_path, path);
    assert_int_equal(bind(listener, (void *)&a, sizeof(a)), 0);
    assert_int_equal(socket_open_unix(path, &error), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_null(strstr(error.data, path)); /* it is in the server's name */

    assert_int_equal(listen(listener, 0), 0);
    do
        fds[count] = socket_open_unix(path, &error);
    while (fds[count] >= 0 && ++count < 8);
    assert_between(count, 1, 7);
    assert_int_equal(errno, EAGAIN);
    assert_contains(error.data, "queue of new connections is full");
    while (count > 0)
        close(fds[--count]);
    close(listener);
    unlink(path);
    rmdir(dir);
}

static void unix_paths_are_never_cut(void **state)
{
    char path[110];
    struct text error;

    (void)state;
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[107] = '\0';
    assert_int_equal(socket_open_unix(path, &error), -1);
    assert_int_equal(errno, ENOENT);
    path[107] = 'x';
    path[108] = '\0';
    assert_int_equal(socket_open_unix(path, &error), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_contains(error.data, "1 to 107 bytes");
    assert_int_equal(socket_open_unix("", &error), -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_is_tuned),
        cmocka_unit_test(a_closed_port_refuses),
        cmocka_unit_test(a_connection_to_itself_is_refused_ipv4),
        cmocka_unit_test(a_connection_to_itself_is_refused_ipv6),
        cmocka_unit_test(no_way_there_is_told_at_once),
        cmocka_unit_test(a_unix_socket_that_takes_no_more),
        cmocka_unit_test(unix_paths_are_never_cut),
    };
    return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
