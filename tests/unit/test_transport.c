/* SPDX-License-Identifier: MIT */
/*
 * Transports: what the plain one reports, and how each is opened and closed.
 * What a connection does for one that is not plain is in
 * unit/scenes/transport.scenes and test_conn_held.c.
 */
#include "support/test.h"

#include <fcntl.h>
#include <poll.h>

#include "support/local.h"
#include "transport_rig.h"

static void wait_for(int fd, short events)
{
    struct pollfd waiting = {.fd = fd, .events = events};
    assert_int_equal(poll(&waiting, 1, 10000), 1);
}

static struct transport open_over(const struct transport_kind *kind, int fd)
{
    struct transport t;
    struct text error = {.len = 0};
    assert_true(transport_open(&t, kind, fd, NULL, &error));
    assert_int_equal(t.fd, fd);
    return t;
}

/* A plain transport over TCP; returns the peer's end. */
static int open_tcp(struct transport *t)
{
    uint16_t port = 0;
    int listener = local_listen_tcp(&port);
    assert_true(listener >= 0);
    int fd = local_connect(NULL, port);
    assert_true(fd >= 0);
    *t = open_over(&transport_plain, fd);
    int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(peer >= 0);
    close(listener);
    return peer;
}

/* ----------------------------------------------------------------- the plain
 */

static void bytes_are_moved(void **state)
{
    (void)state;
    char bytes[16];
    struct transport t;
    struct text error;
    int peer = open_tcp(&t);
    assert_int_equal(transport_handshake(&t, &error), TRANSPORT_READY);
    assert_int_equal(transport_receive(&t, bytes, sizeof(bytes)), 0);
    assert_int_equal(transport_send(&t, "PING", 4), 4);
    assert_int_equal(recv(peer, bytes, sizeof(bytes), 0), 4);
    assert_memory_equal(bytes, "PING", 4);
    assert_int_equal(send(peer, "PONG", 4, 0), 4);
    wait_for(t.fd, POLLIN);
    assert_int_equal(transport_receive(&t, bytes, 0), 0);
    assert_int_equal(transport_receive(&t, bytes, 3), 3);
    assert_memory_equal(bytes, "PON", 3);
    assert_int_equal(transport_receive(&t, bytes, 3), 1);
    assert_int_equal(transport_receive(&t, bytes, 3), 0);
    assert_false(t.wants_read || t.wants_write || t.pending);
    transport_close(&t);
    close(peer);
}

static void a_full_socket_takes_nothing(void **state)
{
    (void)state;
    static const char bytes[65536];
    size_t total = 0;
    ssize_t sent;
    struct transport t;
    int peer = open_tcp(&t);
    while ((sent = transport_send(&t, bytes, sizeof(bytes))) > 0)
        total += (size_t)sent;
    assert_int_equal(sent, 0);
    assert_true(total > 0);
    assert_false(t.wants_read || t.wants_write); /* it keeps no bytes itself */
    transport_close(&t);
    close(peer);
}

/* SIGPIPE would end this program: its disposition is the default one. */
static void the_end_is_reported_without_a_signal(void **state)
{
    (void)state;
    struct sigaction action;
    char bytes[16];
    struct transport t;
    sigaction(SIGPIPE, NULL, &action);
    assert_ptr_equal(action.sa_handler, SIG_DFL);

    int peer = open_tcp(&t);
    assert_int_equal(send(peer, "bye", 3, 0), 3);
    close(peer);
    wait_for(t.fd, POLLIN);
    assert_int_equal(transport_receive(&t, bytes, sizeof(bytes)), 3);
    wait_for(t.fd, POLLIN);
    errno = EIO;
    assert_int_equal(transport_receive(&t, bytes, sizeof(bytes)), -1);
    assert_int_equal(errno, 0);
    /* The first write is answered by a reset; after that there is no pipe. */
    assert_int_equal(transport_send(&t, "x", 1), 1);
    wait_for(t.fd, POLLHUP);
    assert_int_equal(transport_send(&t, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    transport_close(&t);

    peer = open_tcp(&t);
    local_make_reset(peer);
    close(peer);
    wait_for(t.fd, POLLIN);
    assert_int_equal(transport_receive(&t, bytes, sizeof(bytes)), -1);
    assert_int_equal(errno, ECONNRESET);
    transport_close(&t);
}

static void an_idle_connection_is_alive_or_not(void **state)
{
    (void)state;
    char byte;
    struct transport t;
    int peer = open_tcp(&t);
    assert_int_equal(transport_news(&t), TRANSPORT_QUIET);
    assert_int_equal(send(peer, "x", 1, 0), 1);
    wait_for(t.fd, POLLIN);
    assert_int_equal(transport_news(&t), TRANSPORT_TALKS);
    assert_int_equal(transport_news(&t), TRANSPORT_TALKS);
    assert_int_equal(transport_receive(&t, &byte, 1), 1);
    assert_int_equal(transport_news(&t), TRANSPORT_QUIET);
    assert_int_equal(send(peer, "x", 1, 0), 1);
    close(peer);
    wait_for(t.fd, POLLRDHUP); /* the byte is still to be read */
    assert_int_equal(transport_news(&t), TRANSPORT_OVER);
    transport_close(&t);
    assert_int_equal(transport_news(&t), TRANSPORT_OVER);

    peer = open_tcp(&t);
    local_make_reset(peer);
    close(peer);
    wait_for(t.fd, POLLIN);
    assert_int_equal(transport_news(&t), TRANSPORT_OVER);
    transport_close(&t);
}

/* --------------------------------------------------------- opening, closing */

static bool refuse_to_open(
    struct transport *t, const struct target *to, struct text *error)
{
    (void)t, (void)to;
    text_clear(error);
    text_add(error, "no certificate");
    return false;
}

static void what_cannot_be_opened_is_closed(void **state)
{
    (void)state;
    static const struct transport_kind refusing = {.open = refuse_to_open};
    struct transport t;
    struct text error = {.len = 0};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_false(transport_open(&t, &refusing, ends[0], NULL, &error));
    assert_string_equal(error.data, "no certificate");
    assert_int_equal(t.fd, -1);
    assert_int_equal(fcntl(ends[0], F_GETFD), -1);
    transport_close(&t);
    close(ends[1]);
}

static void closing_says_goodbye_except_in_a_child(void **state)
{
    (void)state;
    char bytes[4];
    for (int child = 0; child < 2; child++) {
        int ends[2];
        scripted_reset();
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        struct transport t = open_over(&scripted_kind, ends[0]);
        if (child)
            transport_close_in_child(&t);
        else
            transport_close(&t);
        assert_int_equal(t.fd, -1);
        assert_int_equal(fcntl(ends[0], F_GETFD), -1);
        assert_int_equal(recv(ends[1], bytes, sizeof(bytes), 0), child ? 0 : 1);
        transport_close(&t);
        transport_close_in_child(&t);
        assert_int_equal(scripted.closed, child ? 0 : 1);
        close(ends[1]);
    }
}

static ssize_t give_nothing(struct transport *t, void *bytes, size_t room)
{
    (void)t, (void)bytes, (void)room;
    return 0;
}

static void pending_ends_when_nothing_comes(void **state)
{
    (void)state;
    static const struct transport_kind empty = {.receive = give_nothing};
    char byte;
    struct transport t = {.kind = &empty, .fd = -1, .pending = true};
    assert_int_equal(transport_receive(&t, &byte, 1), 0);
    assert_false(t.pending);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_moved),
        cmocka_unit_test(a_full_socket_takes_nothing),
        cmocka_unit_test(the_end_is_reported_without_a_signal),
        cmocka_unit_test(an_idle_connection_is_alive_or_not),
        cmocka_unit_test(what_cannot_be_opened_is_closed),
        cmocka_unit_test(closing_says_goodbye_except_in_a_child),
        cmocka_unit_test(pending_ends_when_nothing_comes),
    };
    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
