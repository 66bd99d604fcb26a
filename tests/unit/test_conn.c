/* SPDX-License-Identifier: MIT */
/*
 * A connection as a stream, on a socket pair: what is sent when the socket
 * takes all or nothing, and what is left of commands that were taken back. That
 * exactly the others arrive is in test_conn_held.c, by random schedules. Linked
 * with --wrap=epoll_ctl: epoll refuses when the test says so, because a real
 * limit is one of the whole machine.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "net/conn.h"
#include "support/alloc.h"
#include "unit/stingy.h"

int __real_epoll_ctl(int epoll, int how, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int how, int fd, struct epoll_event *event);

static int refused_how; /* EPOLL_CTL_...; 0: none */

int __wrap_epoll_ctl(int epoll, int how, int fd, struct epoll_event *event)
{
    if (how != refused_how)
        return __real_epoll_ctl(epoll, how, fd, event);
    errno = how == EPOLL_CTL_ADD ? ENOSPC : ENOMEM;
    return -1;
}

struct pair {
    struct conn conn;
    struct poller poller;
    int peer;
    char got[1 << 20]; /* all that has come to the peer */
    size_t got_len;
};

static struct pair pair;
static struct text open_error;

static bool open_over(struct conn *c, int fd)
{
    struct transport t;
    assert_true(transport_open(&t, &transport_plain, fd, NULL, &open_error));
    bool open = conn_open(c, &t, &open_error);
    assert_int_equal(t.fd, -1); /* it is the connection's, or closed */
    return open;
}

static int set_up(void **state)
{
    (void)state;
    int ends[2];
    memset(&pair, 0, sizeof(pair));
    pair.conn.transport = TRANSPORT_CLOSED;
    pair.poller.fd = epoll_create1(EPOLL_CLOEXEC);
    pair.conn.poller = &pair.poller;
    if (socketpair(
            AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -1;
    pair.peer = ends[1];
    return open_over(&pair.conn, ends[0]) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    conn_free(&pair.conn);
    close(pair.poller.fd);
    if (pair.peer >= 0)
        close(pair.peer);
    return 0;
}

/* A command of those bytes with so many replies. */
static void add(const char *bytes, unsigned replies)
{
    struct conn *c = &pair.conn;
    assert_true(buf_append(&c->out, bytes, strlen(bytes)));
    assert_true(slots_reserve(&c->slots, replies));
    for (unsigned i = 0; i < replies; i++)
        slots_push(
            &c->slots, SLOT_REQUEST, NULL, 0, i == 0 ? strlen(bytes) : 0);
}

static void flush_allowing(size_t bytes)
{
    struct text why;
    pair.conn.blocked = false;
    stingy_allow(&pair.conn.transport, bytes);
    assert_true(conn_flush(&pair.conn, &why));
    pair.conn.transport.kind = &transport_plain;
}

static void flush(void)
{
    struct text why;
    pair.conn.blocked = false; /* the poller has reported room */
    assert_true(conn_flush(&pair.conn, &why));
}

static const char *arrived(void)
{
    ssize_t n;
    while ((n = recv(pair.peer, pair.got + pair.got_len,
                sizeof(pair.got) - 1 - pair.got_len, 0)) > 0)
        pair.got_len += (size_t)n;
    pair.got[pair.got_len] = '\0';
    return pair.got;
}

static void a_peer_that_is_gone(void **state)
{
    (void)state;
    struct text why;
    bool broken = true;

    close(pair.peer);
    pair.peer = -1;
    add("lost;", 1);
    assert_false(conn_flush(&pair.conn, &why)); /* and no SIGPIPE */
    assert_contains(why.data, "connection lost: ");
    assert_false(conn_read(&pair.conn, &why, &broken));
    assert_false(broken);
    assert_contains(why.data, "closed the connection");
}

static void too_much_is_a_broken_protocol(void **state)
{
    (void)state;
    struct text why;
    bool broken = false, more = true;
    char junk[4096];

    memset(junk, 'x', sizeof(junk));
    junk[0] = '+';
    for (size_t fed = 0; more && fed < 2 * READER_BACKLOG;
         fed += sizeof(junk)) {
        assert_int_equal(send(pair.peer, junk, sizeof(junk), 0), sizeof(junk));
        more = conn_read(&pair.conn, &why, &broken);
    }
    assert_false(more);
    assert_true(broken);
    assert_true(why.len > 0);
}

/* ------------------------------------------------------------- not yet gone */

/* The bytes behind are not moved for each one: that many would take long. */
static void withdrawn_ones_go_together(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        add("aaaa", 1);
    add("bb", 1);
    for (unsigned i = 1; i < 8; i++)
        conn_withdraw(&pair.conn, i, 1);
    assert_int_equal(buf_len(&pair.conn.out), 34);
    assert_int_equal(pair.conn.holes, 28);
    flush();
    assert_string_equal(arrived(), "aaaabb");
    assert_int_equal(pair.conn.holes, 0);
}

/* Nothing that needs room is left: to be told of room would be for ever. */
static void withdrawing_all_ends_the_wait_for_room(void **state)
{
    (void)state;
    add("aaaa", 1);
    flush_allowing(4);
    add("bb", 1);
    add("cc", 1);
    flush_allowing(0);
    assert_true(pair.conn.blocked);
    conn_withdraw(&pair.conn, 1, 1);
    assert_true(pair.conn.blocked); /* cc still wants to go */
    conn_withdraw(&pair.conn, 2, 1);
    assert_false(pair.conn.blocked);
    assert_false(pair.conn.polled_for_room);
    assert_int_equal(pair.conn.slots.count, 1);
}

/* -------------------------------------------------------- opening, closing */

static void closing_forgets_and_opening_begins_anew(void **state)
{
    (void)state;
    struct text why;
    bool broken;
    const struct reply *reply;
    int ends[2];

    add("old;", 1);
    flush_allowing(0);
    assert_true(pair.conn.blocked);
    pair.conn.dropped = 3;
    assert_int_equal(send(pair.peer, "+half", 5, 0), 5);
    assert_true(conn_read(&pair.conn, &why, &broken));
    int fd = pair.conn.transport.fd;
    conn_close(&pair.conn);
    assert_int_equal(pair.conn.transport.fd, -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(pair.conn.slots.count, 0);
    conn_close(&pair.conn);

    close(pair.peer);
    assert_int_equal(socketpair(AF_UNIX,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
        0);
    pair.peer = ends[1];
    assert_true(open_over(&pair.conn, ends[0]));
    assert_false(pair.conn.blocked);
    assert_int_equal(pair.conn.dropped, 0);
    add("new;", 1);
    flush();
    assert_string_equal(arrived(), "new;");
    assert_int_equal(send(pair.peer, ":5\r\n", 4, 0), 4);
    assert_true(conn_read(&pair.conn, &why, &broken));
    assert_int_equal(
        reader_next(pair.conn.reader, (struct expected){0}, &reply), 1);
    assert_int_equal(reply->kind, REPLY_INTEGER);
}

static void no_memory_closes_the_descriptor(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        struct conn c = {.transport = TRANSPORT_CLOSED};
        int fd = dup(pair.peer);
        alloc_fail_at(n);
        bool open = open_over(&c, fd);
        if (!alloc_stop()) {
            assert_true(open);
            conn_free(&c);
            return;
        }
        assert_false(open);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        conn_free(&c);
    }
}

/* ------------------------------------------------------------- epoll refuses
 */

/* Linux limits how many descriptors a user may have in epoll. */
static void epoll_takes_no_more(void **state)
{
    (void)state;
    struct conn c = {.poller = &pair.poller, .transport = TRANSPORT_CLOSED};
    refused_how = EPOLL_CTL_ADD;
    bool open = open_over(&c, dup(pair.peer));
    refused_how = 0;
    assert_false(open);
    assert_string_equal(open_error.data,
        "cannot add a descriptor to epoll: No space left on device (raise "
        "fs.epoll.max_user_watches)");
    conn_free(&c);
}

/* Nothing would say when the socket has room again. */
static void epoll_changes_nothing(void **state)
{
    (void)state;
    struct text why;
    add("PING", 1);
    stingy_allow(&pair.conn.transport, 2);
    refused_how = EPOLL_CTL_MOD;
    bool flushed = conn_flush(&pair.conn, &why);
    refused_how = 0;
    assert_false(flushed);
    assert_contains(why.data, "epoll: Cannot allocate memory");
    /* It was not changed, so it may be tried again. */
    flush_allowing(1);
    assert_true(pair.conn.blocked && pair.conn.polled_for_room);
}

#define conn_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        conn_test(a_peer_that_is_gone),
        conn_test(too_much_is_a_broken_protocol),
        conn_test(withdrawn_ones_go_together),
        conn_test(withdrawing_all_ends_the_wait_for_room),
        conn_test(closing_forgets_and_opening_begins_anew),
        conn_test(no_memory_closes_the_descriptor),
        conn_test(epoll_takes_no_more),
        conn_test(epoll_changes_nothing),
    };
    return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
