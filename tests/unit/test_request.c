/* SPDX-License-Identifier: MIT */
/*
 * Requests on a connection: each gets its own reply, or fails in its turn;
 * one that is given up before it has left does not leave.
 */
#include "server_rig.h"

#include "unit/stingy.h"

#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"
#define assert_eval(text, times)                                               \
    assert_int_equal(rig_count((text), "$4\r\nEVAL\r\n"), (times))

/* Formats what waits, and sends so many bytes of it. */
static void push_allowing(size_t bytes)
{
    stingy_allow(&rig.s.conn.transport, bytes);
    rig_push();
    rig.s.conn.transport.kind = &transport_plain;
}

/* Everything is answered and cleaned up. */
static void assert_settled(void)
{
    assert_int_equal(rig_cleanups(), 0);
    assert_int_equal(rig.s.conn.dropped, 0);
    assert_false(server_unfinished(&rig.s, NEVER));
}

/* ------------------------------------------------------------ to the end */

static void each_gets_its_own_reply(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 5; i++)
        rig_submit(i);
    rig_push();
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 5);
    uint64_t sent_at = rig.now;
    rig.now += NS_PER_MS;
    rig_send("+OK\r\n$-1\r\n-OOM no\r\n+OK\r\n$-1\r\n");
    static const enum outcome_kind kinds[] = {OUTCOME_GRANTED, OUTCOME_BUSY,
        OUTCOME_FAULT, OUTCOME_GRANTED, OUTCOME_BUSY};
    for (unsigned i = 0; i < 5; i++) {
        assert_ptr_equal(rig_turn(), &rig.request[i]);
        assert_int_equal(rig.last.outcome.kind, kinds[i]);
        assert_int_equal(rig.last.outcome.sent_at, sent_at);
        assert_int_equal(rig.request[i].state, REQUEST_IDLE);
    }
    assert_null(rig_turn());
    assert_settled();
}

static void the_script_travels_when_it_is_missing(void **state)
{
    (void)state;
    rig_up();
    rig_submit_release(0);
    rig_submit(1);
    rig_push();
    uint64_t sent_at = rig.now;
    assert_said("EVALSHA\r\n");
    rig.now += NS_PER_MS;
    assert_ptr_equal(rig_reply(NOSCRIPT "+OK\r\n"), &rig.request[1]);
    rig_push();
    assert_eval(rig_said(), 1);
    assert_ptr_equal(rig_reply(":1\r\n"), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_MINE);
    assert_int_equal(rig.last.outcome.sent_at, sent_at); /* of the first */
}

static void a_senseless_reply_is_the_last(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_submit(1);
    rig_submit(2);
    rig_push();
    assert_ptr_equal(rig_reply("+OK\r\n:1\r\n"), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    rig_assert_fault(FAULT_NOT_REDIS, true, "");
    assert_ptr_equal(rig_turn(), &rig.request[2]);
    rig_assert_fault(FAULT_NOT_REDIS, true, "");
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_int_equal(rig.request[1].acquire_cleaner->cleanup.client_id, 7);
}

/* Those under way first, in their order, then what is submitted later. */
static void the_failed_come_in_order(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 4; i++)
        rig_submit(i);
    rig_push();
    rig_hang_up();
    rig_unlisten();
    rig.s.end_fault = FAULT_UNREACHABLE; /* as a read has found out */
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_submit(4);
    rig_push(); /* no connection */
    for (unsigned i = 1; i < 5; i++) {
        assert_ptr_equal(rig_turn(), &rig.request[i]);
        rig_assert_fault(FAULT_UNREACHABLE, i < 4, "");
    }
    assert_null(rig_turn());
}

/* --------------------------------------------- given up before it has left */

static void given_up_while_it_waits(void **state)
{
    (void)state;
    rig_submit(0);
    rig_submit(1);
    rig_submit_release(2);
    rig_push(); /* the handshake comes first */
    assert_true(rig_abandon(0, true));
    assert_true(rig_abandon(1, false));
    assert_int_equal(rig_cleanups(), 0);
    assert_true(rig_abandon(2, true)); /* its key must go all the same */
    assert_int_equal(rig_cleanups(), 1);
    assert_int_equal(rig.request[0].state, REQUEST_IDLE);
    rig_shake(7, RIG_RUN_ID);
    rig_push();
    const char *said = rig_said();
    assert_null(strstr(said, "SET\r\n"));
    assert_eval(said, 1);
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

static void given_up_in_the_buffer(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].token = slice_of("first");
    rig.verb[1].token = slice_of("second");
    rig.verb[1].want_left = true; /* two replies */
    rig.verb[2].token = slice_of("third");
    for (unsigned i = 0; i < 3; i++)
        rig_submit(i);
    push_allowing(0);
    assert_true(rig_abandon(1, true));
    assert_int_equal(rig_cleanups(), 0);
    rig.s.conn.blocked = false;
    rig_push();
    const char *said = rig_said();
    assert_contains(said, "first");
    assert_null(strstr(said, "second"));
    assert_null(strstr(said, "PTTL"));
    assert_contains(said, "third");
    assert_ptr_equal(rig_reply("+OK\r\n$-1\r\n"), &rig.request[0]);
    assert_ptr_equal(rig_turn(), &rig.request[2]);
    assert_settled();
}

static void a_release_given_up_in_the_buffer(void **state)
{
    (void)state;
    rig_up();
    rig_submit_release(0);
    push_allowing(0);
    assert_true(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    assert_int_equal(rig.s.conn.slots.count, 0);
    rig.s.conn.blocked = false;
    rig_push();
    assert_eval(rig_said(), 1);
    assert_null(rig_reply(":0\r\n"));
    assert_settled();
}

/* One byte has left: the rest has to follow, and its undoing behind it. */
static void given_up_half_sent(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    push_allowing(1);
    assert_false(rig_abandon(0, true));
    rig.s.conn.blocked = false;
    rig_push();
    const char *said = rig_said();
    assert_contains(said, "SET\r\n");
    assert_eval(said, 1);
    assert_true(strstr(said, "SET\r\n") < strstr(said, "EVAL\r\n"));
    assert_null(rig_reply("+OK\r\n:1\r\n"));
    assert_settled();
}

/* ------------------------------------------------------------------- limits */

#define FEW SERVER_DROPPED_FEW
#define PATIENCE                                                               \
    (SERVER_PATIENCE_MS * NS_PER_MS) /* the rig's time-out, too                \
                                      */

static void give_up(unsigned i, bool undo)
{
    rig_submit(i);
    rig_push();
    rig_abandon(i, undo);
}

static void assert_refused(const char *words)
{
    struct request *r = rig_submit(FEW);
    rig_push();
    assert_silent();
    assert_ptr_equal(rig_turn(), r);
    rig_assert_fault(FAULT_TIMEOUT, false, words);
    rig_abandon(FEW, true);
}

static void too_many_for_too_long(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < FEW; i++)
        give_up(i, true);
    rig_push();
    rig_said();
    rig.now += PATIENCE;
    assert_refused("8 earlier commands are unanswered, the oldest for 500ms");

    assert_null(rig_reply("$-1\r\n:0\r\n")); /* one is answered: room again */
    struct request *r = rig_submit(FEW);
    rig_push();
    assert_said("SET\r\n");
    for (unsigned i = 1; i < FEW; i++)
        assert_null(rig_reply("$-1\r\n:0\r\n"));
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
    assert_settled();
}

/* However long they wait, if they are fewer. */
static void a_few_are_no_matter(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < FEW - 1; i++)
        give_up(i, false);
    rig.now += 3 * PATIENCE;
    rig_said();
    struct request *r = rig_submit(FEW);
    rig_push();
    assert_said("SET\r\n");
    for (unsigned i = 0; i < FEW - 1; i++)
        assert_null(rig_reply("+OK\r\n"));
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
    assert_settled();
}

/* A server that is not the first to answer: they are many, but young. Those
 * that were given up later have their time from the oldest on. */
static void many_at_once_are_no_matter(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 100; i++)
        give_up(i % FEW, false);
    rig.now += PATIENCE - 1;
    for (unsigned i = 0; i < 100; i++)
        give_up(i % FEW, false);
    assert_int_equal(rig.s.conn.dropped, 200);
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 200);
    rig.now += 1;
    assert_refused("200 earlier commands are unanswered");
    for (unsigned i = 0; i < 100; i++) /* then the oldest are young ones */
        assert_null(rig_reply("+OK\r\n"));
    give_up(0, false);
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 1);
    for (unsigned i = 0; i < 101; i++)
        assert_null(rig_reply("+OK\r\n"));
    assert_settled();
}

/* ... of the URL, if that is less. */
static void the_patience_is_the_time_out(void **state)
{
    (void)state;
    rig_tear_down(NULL);
    rig_init("?timeout_ms=40", true);
    rig_up();
    for (unsigned i = 0; i < FEW; i++)
        give_up(i, false);
    rig_said();
    rig.now += 40 * NS_PER_MS - 1;
    give_up(0, false);
    assert_said("SET\r\n");
    rig.now += 1;
    assert_refused("9 earlier commands are unanswered, the oldest for 40ms");
}

/* The answers have come, and wait to be read: the program was away. */
static void answers_are_read_first(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < FEW; i++)
        give_up(i, false);
    rig_said();
    rig.now += 2 * PATIENCE;
    rig_send("+OK\r\n");
    rig_submit(FEW);
    rig_push();
    assert_silent();
    assert_int_equal(server_deadline(&rig.s), 0);
    assert_null(rig_turn());
    rig_push();
    assert_said("SET\r\n");
}

/* What a server that hangs costs has an end. */
static void the_most(void **state)
{
    (void)state;
    size_t said = 0;
    rig_up();
    for (unsigned i = 0; i < SERVER_DROPPED_MAX; i++) {
        give_up(i % FEW, false);
        said += rig_count(rig_said(), "SET\r\n");
    }
    assert_int_equal(said, SERVER_DROPPED_MAX);
    assert_refused("8192 earlier commands are unanswered");
    assert_int_equal(rig.s.conn.slots.count, SERVER_DROPPED_MAX);
    assert_null(rig_reply("+OK\r\n"));
    give_up(0, false);
    assert_said("SET\r\n");
}

/* What says how long it can wait is not held up by the delay; once. */
static void a_request_may_cut_the_delay_short(void **state)
{
    (void)state;
    rig_unlisten();
    for (int i = 0; i < 12; i++) { /* the delay grows to its longest */
        rig_submit(0);
        rig.now = later(rig.now, server_deadline(&rig.s));
        rig_push();
        assert_ptr_equal(rig_turn(), &rig.request[0]);
    }
    rig_submit(2);
    uint64_t at = rig.now + 3 * NS_PER_MS;
    assert_true(server_deadline(&rig.s) > at);
    rig.verb[0].connect_by = at;
    rig.verb[1].connect_by = at + 1;
    rig_submit(0);
    rig_submit(1);
    assert_int_equal(server_deadline(&rig.s), at);
    rig.now = at - 1;
    rig_push();
    assert_null(rig_turn());
    rig.now = at;
    rig_push();
    assert_ptr_equal(rig_turn(), &rig.request[2]);
    rig_assert_fault(FAULT_UNREACHABLE, false, "No such file");
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    rig_submit(2);
    assert_true(server_deadline(&rig.s) > rig.now);
    rig.verb[0].connect_by = rig.now;
    rig_submit(0);
    assert_int_equal(server_deadline(&rig.s), rig.now);
    rig_abandon(0, true);
    rig_abandon(2, true);
    rig_push(); /* it has been given up: nothing is in a hurry any longer */
    rig_submit(2);
    assert_true(server_deadline(&rig.s) > rig.now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(each_gets_its_own_reply),
        rig_test(the_script_travels_when_it_is_missing),
        rig_test(a_senseless_reply_is_the_last),
        rig_test(the_failed_come_in_order),
        rig_test(given_up_while_it_waits),
        rig_test(given_up_in_the_buffer),
        rig_test(a_release_given_up_in_the_buffer),
        rig_test(given_up_half_sent),
        rig_test(too_many_for_too_long),
        rig_test(a_few_are_no_matter),
        rig_test(many_at_once_are_no_matter),
        rig_test(the_patience_is_the_time_out),
        rig_test(answers_are_read_first),
        rig_test(the_most),
        rig_test(a_request_may_cut_the_delay_short),
    };
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
