/* SPDX-License-Identifier: MIT */
/*
 * A server over a transport that is not plain: its handshake comes before that
 * of Redis and has its share of the time, replies that poll() does not show are
 * taken, its own bytes are sent without a command, and a command of which it
 * holds a part counts as sent.
 */
#include "server_rig.h"

#include "transport_rig.h"

static int set_up(void **state)
{
    scripted_reset();
    rig_set_up(state);
    rig.s.dial.kind = &scripted_kind;
    return 0;
}

/* What poll() would say of the connection. */
static short polled(void)
{
    struct pollfd fd;
    return rig_poll(&fd) && poll(&fd, 1, 0) == 1 ? fd.revents : 0;
}

static void shake(void)
{
    assert_said("CLIENT\r\n");
    rig_send_handshake(7, RIG_RUN_ID);
    assert_null(rig_turn());
    assert_int_equal(rig.s.state, SERVER_UP);
}

/* Up and idle. */
static void up(void)
{
    rig_submit(RIG_REQUESTS - 1);
    rig_push();
    rig_accept();
    shake();
    rig_push();
    assert_said("SET\r\n");
    assert_non_null(rig_reply("+OK\r\n"));
}

/* -------------------------------------------------------- before its first
 * byte */

static void its_handshake_comes_first(void **state)
{
    (void)state;
    struct pollfd fd;
    scripted.hellos = 2;
    rig_submit(0);
    rig_push();
    rig_accept();
    assert_int_equal(rig.s.state, SERVER_CONNECTING);
    assert_true(rig_poll(&fd));
    assert_int_equal(fd.events, POLLIN); /* it wants to read, not to write */
    rig_send("\5");
    assert_null(rig_turn());
    rig_push();
    assert_int_equal(rig.s.state, SERVER_CONNECTING);
    assert_silent();
    rig_send("\5");
    assert_null(rig_turn());
    assert_int_equal(rig.s.state, SERVER_SHAKING);
    rig_push();
    shake();
    rig_push();
    assert_said("SET\r\n");
    assert_ptr_equal(rig_reply("+OK\r\n"), &rig.request[0]);
    assert_int_equal(scripted.opened, 1);
}

/* What the peer has said behind it, as one that is full does at once. */
static void bytes_behind_its_handshake(void **state)
{
    (void)state;
    scripted.hellos = 1;
    rig_submit(0);
    rig_push();
    rig_accept();
    rig_send("\5-ERR max number of clients reached\r\n");
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_assert_fault(FAULT_RETRY, false, "ERR max number of clients reached");
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_int_equal(scripted.closed, 1);
}

static void its_handshake_fails(void **state)
{
    (void)state;
    scripted.hellos = 1;
    scripted.refuses = true;
    rig_submit(0);
    rig_push();
    rig_accept();
    rig_send("\5");
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_assert_fault(FAULT_UNREACHABLE, false, "the wrong password");
    assert_int_equal(scripted.closed, 1);
    assert_int_equal(rig.s.dial.fd, -1);
}

static void its_handshake_has_an_end(void **state)
{
    (void)state;
    scripted.hellos = 1;
    rig_submit(0);
    rig_push();
    rig_accept();
    assert_int_equal(server_deadline(&rig.s), rig.now + ms_to_ns(500));
    rig.now += ms_to_ns(500) - 1;
    assert_null(rig_turn());
    rig.now++;
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_assert_fault(FAULT_UNREACHABLE, false,
        "no answer to the transport's handshake within 500ms");
    assert_int_equal(scripted.closed, 1);
}

static void given_up_in_its_handshake(void **state)
{
    (void)state;
    scripted.hellos = 1;
    rig_submit(0);
    rig_push();
    rig_accept();
    assert_true(rig_abandon(0, true));
    dial_cancel(&rig.s.dial);
    assert_int_equal(scripted.closed, 1);
    assert_int_equal(rig.s.dial.fd, -1);
    assert_string_equal(rig_said(), "\6");
}

/* ----------------------------------------------------------------- in its use
 */

static void replies_that_poll_does_not_show(void **state)
{
    (void)state;
    up();
    rig_submit(0);
    rig_submit(1);
    rig_push();
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 2);
    assert_ptr_equal(rig_reply("+OK\r\n+OK\r\n"), &rig.request[0]);
    assert_true(rig.s.conn.transport.pending);
    assert_int_equal(polled(), 0);
    assert_int_equal(server_deadline(&rig.s), 0); /* or it would sleep on it */
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    assert_int_equal(polled(), 0);
    assert_false(rig.s.conn.transport.pending);
}

/* Its answer is sent without a command, and then it gives the reply. */
static void a_demand_in_front_of_a_reply(void **state)
{
    (void)state;
    up();
    rig_submit(0);
    rig_push();
    assert_said("SET\r\n");
    scripted.room = 0;
    assert_null(rig_reply("\2+OK\r\n"));
    rig_submit(1);
    rig_push(); /* not formatted: it can still be given up for nothing */
    assert_int_equal(rig.request[1].state, REQUEST_QUEUED);
    assert_true(server_deadline(&rig.s) > rig.now);
    assert_true(rig_abandon(1, true));
    scripted.room = 1;
    assert_int_equal(polled(), POLLOUT);
    assert_null(rig_turn());
    rig_push();
    assert_string_equal(rig_said(), "\4");
    assert_int_equal(server_deadline(&rig.s), 0);
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
}

/* A ticket is no reply: the connection stays as good as it was. */
static void silence_is_no_unsolicited_reply(void **state)
{
    (void)state;
    up();
    unsigned connections = rig.s.connections;
    rig_send("\1\1");
    rig.now += NS_PER_S;
    assert_true(polled() & POLLIN);
    rig_submit(0);
    rig_push();
    assert_int_equal(rig.s.connections, connections);
    assert_said("SET\r\n");
    assert_ptr_equal(rig_reply("+OK\r\n"), &rig.request[0]);
}

static void pending_bytes_are_an_unsolicited_reply(void **state)
{
    (void)state;
    up();
    unsigned connections = rig.s.connections;
    rig_send("\1+what\r\n");
    /* Decrypted, and at once, so the system would not be asked again. */
    assert_int_equal(transport_news(&rig.s.conn.transport), TRANSPORT_TALKS);
    assert_int_equal(polled(), 0);
    rig_submit(0);
    assert_contains(rig.s.why.data, "unsolicited reply");
    assert_int_equal(rig.s.state, SERVER_DOWN);
    rig_push();
    assert_int_equal(rig.s.connections, connections + 1);
}

static void a_child_closes_without_a_goodbye(void **state)
{
    (void)state;
    up();
    server_close_in_child(&rig.s);
    assert_int_equal(scripted.closed, 0);
    assert_int_equal(recv(rig.peer, rig.said, sizeof(rig.said), 0), 0);
    assert_int_equal(rig.s.conn.transport.fd, -1);
    assert_int_equal(rig.s.dial.fd, -1);
}

/* ------------------------------------------------- what is in a record already
 */

/* The server counts so many bytes of the next command as sent, and the socket
 * has taken none. */
static void hold_records_of(size_t bytes)
{
    scripted.record = bytes;
    scripted.room = 0;
}

static void records_leave(void)
{
    scripted.room = SIZE_MAX;
    assert_int_equal(polled(), POLLOUT);
    assert_null(rig_turn());
    rig_push();
}

/* It may come to the server, and cannot be taken back: the whole command
 * follows, and then what removes its key. */
static void cancelled_in_a_held_record(void **state)
{
    (void)state;
    up();
    hold_records_of(9);
    rig_submit(0);
    rig_submit(1);
    rig_push();
    assert_silent();
    assert_int_equal(scripted.sealed_len, 9);
    assert_false(rig_abandon(0, true));
    assert_true(rig_abandon(1, true)); /* nothing of it is in the record */
    assert_int_equal(rig_cleanups(), 1);
    records_leave();
    const char *said = rig_said();
    assert_memory_equal(said, "*6\r\n$3\r\nSET\r\n", 13);
    assert_int_equal(rig_count(said, "SET\r\n"), 1);
    assert_int_equal(rig_count(said, "*5\r\n$4\r\nEVAL\r\n"), 1);
    assert_null(rig_reply("+OK\r\n:1\r\n"));
    assert_int_equal(rig_cleanups(), 0);
    assert_int_equal(rig.s.conn.slots.count, 0);
}

static void lost_with_a_held_record(void **state)
{
    (void)state;
    up();
    hold_records_of(9);
    rig_submit(0);
    rig_push();
    rig_hang_up();
    struct request *r = rig_turn();
    assert_ptr_equal(r, &rig.request[0]);
    rig_assert_fault(FAULT_UNREACHABLE, true, "closed");
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
}

/* The next command begins in the same record, and the third one does not. */
static void two_commands_in_a_held_record(void **state)
{
    (void)state;
    up();
    rig_block();
    rig_submit(0);
    rig_push();
    size_t one = buf_len(&rig.s.conn.out);
    rig.s.conn.transport.kind = &scripted_kind;
    hold_records_of(one + 1);
    rig_submit(1);
    rig_submit(2);
    rig.s.conn.blocked = false;
    rig_push();
    assert_int_equal(conn_unsent_slots(&rig.s.conn), 1);
    assert_true(rig_abandon(2, true));
    assert_false(rig_abandon(1, true));
    assert_int_equal(rig.request[0].state, REQUEST_SENT);
    records_leave();
    const char *said = rig_said();
    assert_int_equal(rig_count(said, "SET\r\n"), 2);
    assert_int_equal(rig_count(said, "*6\r\n"), 2);
    assert_ptr_equal(rig_reply("+OK\r\n$-1\r\n:0\r\n"), &rig.request[0]);
    assert_null(rig_turn());
    assert_int_equal(rig.s.conn.slots.count, 0);
}

#define over_test(name)                                                        \
    cmocka_unit_test_setup_teardown(name, set_up, rig_tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        over_test(its_handshake_comes_first),
        over_test(bytes_behind_its_handshake),
        over_test(its_handshake_fails),
        over_test(its_handshake_has_an_end),
        over_test(given_up_in_its_handshake),
        over_test(replies_that_poll_does_not_show),
        over_test(a_demand_in_front_of_a_reply),
        over_test(silence_is_no_unsolicited_reply),
        over_test(pending_bytes_are_an_unsolicited_reply),
        over_test(a_child_closes_without_a_goodbye),
        over_test(cancelled_in_a_held_record),
        over_test(lost_with_a_held_record),
        over_test(two_commands_in_a_held_record),
    };
    return cmocka_run_group_tests_name("server_transport", tests, NULL, NULL);
}
