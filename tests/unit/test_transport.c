/* SPDX-License-Identifier: MIT */
/*
 * Transports: what the plain one reports, and that a connection does what a
 * transport wants that is not plain: a read that has to write, a write that has
 * to read, bytes that poll() does not show.
 */
#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include "net/conn.h"
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

/* -------------------------------------------- a connection over what is not */

static struct {
    struct conn conn;
    struct poller poller;
    int peer;
    struct text why;
    bool broken;
} over;

static int set_up(void **state)
{
    (void)state;
    int ends[2];
    memset(&over, 0, sizeof(over));
    scripted_reset();
    over.poller.fd = epoll_create1(EPOLL_CLOEXEC);
    over.conn.poller = &over.poller;
    if (socketpair(
            AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -1;
    over.peer = ends[1];
    struct transport t = open_over(&scripted_kind, ends[0]);
    struct text error;
    return conn_open(&over.conn, &t, &error) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    conn_free(&over.conn);
    close(over.peer);
    close(over.poller.fd);
    return 0;
}

/* What the poller reports. */
static uint32_t polled(void)
{
    struct epoll_event event = {.events = 0};
    int n = epoll_wait(over.poller.fd, &event, 1, 0);
    return n == 1 ? event.events : 0;
}

static void peer_sends(const char *bytes)
{
    assert_true(local_send(over.peer, bytes, strlen(bytes)));
}

static void assert_arrived(const char *expected)
{
    char bytes[256];
    ssize_t n = recv(over.peer, bytes, sizeof(bytes) - 1, 0);
    bytes[n > 0 ? n : 0] = '\0';
    assert_string_equal(bytes, expected);
}

static void add(const char *command)
{
    struct conn *c = &over.conn;
    assert_true(buf_append(&c->out, command, strlen(command)));
    assert_true(slots_reserve(&c->slots, 1));
    slots_push(&c->slots, SLOT_REQUEST, NULL, 0, strlen(command));
}

static void flush(void)
{
    assert_true(conn_flush(&over.conn, &over.why));
}

static void read_once(void)
{
    assert_true(conn_read(&over.conn, &over.why, &over.broken));
}

static bool can_send(void)
{
    const struct conn *c = &over.conn;
    return !c->blocked && (buf_len(&c->out) || c->transport.wants_write);
}

static void room_comes(void)
{
    assert_true(conn_ready(&over.conn, POLLOUT, &over.why, &over.broken));
}

static void assert_reply(const char *text)
{
    const struct reply *reply = NULL;
    assert_int_equal(
        reader_next(over.conn.reader, (struct expected){0}, &reply),
        text ? 1 : 0);
    if (text)
        assert_memory_equal(reply->bytes.data, text, strlen(text));
}

static void pending_bytes_are_no_news_to_poll(void **state)
{
    (void)state;
    peer_sends("+one\r\n+two\r\n");
    assert_int_equal(polled(), EPOLLIN);
    read_once();
    assert_reply(NULL); /* a portion is no reply yet */
    assert_int_equal(polled(), 0);
    assert_true(over.conn.transport.pending);
    assert_int_equal(transport_news(&over.conn.transport), TRANSPORT_TALKS);
    unsigned reads = 0;
    for (; over.conn.transport.pending; reads++)
        read_once();
    assert_int_equal(reads, 2);
    assert_reply("one");
    assert_reply("two");
    assert_int_equal(transport_news(&over.conn.transport), TRANSPORT_QUIET);
}

static void a_read_that_wants_to_write(void **state)
{
    (void)state;
    scripted.room = 0;
    peer_sends("\2+one\r\n");
    read_once();
    assert_true(over.conn.transport.wants_write);
    assert_false(over.conn.transport.pending); /* not before it has written */
    assert_true(over.conn.blocked);            /* nothing may be formatted */
    assert_false(can_send());
    assert_int_equal(polled(), EPOLLOUT);
    /* A command that is taken back does not end the wait for room. */
    add("first;");
    conn_withdraw(&over.conn, 0, 1);
    assert_true(over.conn.blocked);
    assert_int_equal(polled(), EPOLLOUT);
    room_comes();
    assert_true(can_send()); /* though no command waits */
    flush();
    assert_true(over.conn.blocked); /* there was no room after all */
    scripted.room = 1;
    room_comes();
    flush();
    assert_arrived("\4");
    assert_false(over.conn.blocked);
    assert_int_equal(polled(), 0);
    assert_true(over.conn.transport.pending);
    while (over.conn.transport.pending)
        read_once();
    assert_reply("one");
}

/* Its own bytes go first, and no byte of a command is counted for them. */
static void a_command_behind_own_bytes(void **state)
{
    (void)state;
    scripted.room = 0;
    peer_sends("\2");
    add("first;");
    add("second;");
    read_once();
    scripted.room = 3;
    room_comes();
    flush();
    assert_arrived("\4fi");
    assert_int_equal(conn_unsent_slots(&over.conn), 1);
    assert_int_equal(buf_len(&over.conn.out), 11);
    assert_true(over.conn.blocked);
    conn_withdraw(&over.conn, 1, 1);
    scripted.room = 100;
    room_comes();
    flush();
    assert_arrived("rst;");
    assert_false(over.conn.blocked);
    assert_int_equal(polled(), 0);
}

/* There is room all the time: polling for it would be a busy loop. */
static void a_write_that_wants_to_read(void **state)
{
    (void)state;
    scripted.needs_permit = true;
    add("first;");
    flush();
    assert_true(over.conn.transport.wants_read);
    assert_true(over.conn.blocked);
    assert_int_equal(polled(), 0);
    assert_arrived("");
    peer_sends("\1");
    read_once();
    assert_true(over.conn.blocked); /* it was not that */
    peer_sends("\3+one\r\n");
    assert_int_equal(polled(), EPOLLIN);
    assert_true(conn_ready(&over.conn, POLLIN, &over.why, &over.broken));
    assert_false(over.conn.blocked);
    assert_true(can_send());
    flush();
    assert_arrived("first;");
}

/* A read may send what waited for room, before the poller reports room. */
static void room_that_is_not_needed_any_longer(void **state)
{
    (void)state;
    scripted.room = 0;
    peer_sends("\2");
    read_once();
    assert_int_equal(polled(), EPOLLOUT);
    scripted.answers = 0;
    read_once();
    assert_false(over.conn.transport.wants_write);
    assert_int_equal(polled(), EPOLLOUT);
    room_comes();
    assert_false(over.conn.blocked);
    assert_false(can_send());
    assert_int_equal(polled(), 0);
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

#define over_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_moved),
        cmocka_unit_test(a_full_socket_takes_nothing),
        cmocka_unit_test(the_end_is_reported_without_a_signal),
        cmocka_unit_test(an_idle_connection_is_alive_or_not),
        cmocka_unit_test(what_cannot_be_opened_is_closed),
        cmocka_unit_test(closing_says_goodbye_except_in_a_child),
        over_test(pending_bytes_are_no_news_to_poll),
        over_test(a_read_that_wants_to_write),
        over_test(a_command_behind_own_bytes),
        over_test(a_write_that_wants_to_read),
        over_test(room_that_is_not_needed_any_longer),
        cmocka_unit_test(pending_ends_when_nothing_comes),
    };
    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
