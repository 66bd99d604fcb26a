/* SPDX-License-Identifier: MIT */
/*
 * A connection whose descriptor epoll refuses. Linked with --wrap=epoll_ctl,
 * because a real limit is one of the whole machine.
 */
#include "support/test.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "net/conn.h"
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

static struct poller poller;
static struct conn conn;
static struct text reason;
static int peer;

static bool open_conn(void)
{
    int ends[2];
    struct text error;
    struct transport t;
    poller.fd = epoll_create1(EPOLL_CLOEXEC);
    conn = (struct conn){.poller = &poller, .transport = TRANSPORT_CLOSED};
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    peer = ends[1];
    assert_true(transport_open(&t, &transport_plain, ends[0], NULL, &error));
    return conn_open(&conn, &t, &reason);
}

static void close_all(void)
{
    conn_free(&conn);
    close(peer);
    close(poller.fd);
}

/* Linux limits how many descriptors a user may have in epoll. */
static void it_takes_no_more(void **state)
{
    (void)state;
    refused_how = EPOLL_CTL_ADD;
    assert_false(open_conn());
    refused_how = 0;
    assert_string_equal(reason.data,
        "cannot add a descriptor to epoll: No space left on device (raise "
        "fs.epoll.max_user_watches)");
    close_all();
}

/* Nothing would say when the socket has room again. */
static void it_changes_nothing(void **state)
{
    (void)state;
    assert_true(open_conn());
    assert_true(buf_append(&conn.out, "PING", 4));
    assert_true(slots_reserve(&conn.slots, 1));
    slots_push(&conn.slots, SLOT_REQUEST, NULL, 0, 4);
    stingy_allow(&conn.transport, 2);
    refused_how = EPOLL_CTL_MOD;
    assert_false(conn_flush(&conn, &reason));
    refused_how = 0;
    assert_contains(reason.data, "epoll: Cannot allocate memory");
    /* It was not changed, so it may be tried again. */
    conn.blocked = false;
    stingy_allow(&conn.transport, 1);
    assert_true(conn_flush(&conn, &reason));
    assert_true(conn.blocked && conn.polled_for_room);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_no_more),
        cmocka_unit_test(it_changes_nothing),
    };
    return cmocka_run_group_tests_name("conn_epoll", tests, NULL, NULL);
}
