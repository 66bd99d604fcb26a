/* SPDX-License-Identifier: MIT */
/*
 * The life of a connection: when it is made, what may travel before its
 * handshake has ended, how it is lost, and when it is tried again.
 */
#include "server_rig.h"

#include <fcntl.h>

static void nothing_to_say_no_connection(void **state)
{
    (void)state;
    struct pollfd fd;
    rig_push();
    assert_false(server_next(&rig.s, &rig.last, rig.now));
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_false(rig_poll(&fd));
    assert_int_equal(server_deadline(&rig.s), NEVER);
    assert_false(server_unfinished(&rig.s, NEVER));
    assert_int_equal(accept(rig.listener, NULL, NULL) < 0 ? errno : 0, EAGAIN);
}

static int set_up_waiting(void **state)
{
    rig_set_up(state);
    return fcntl(rig.listener, F_SETFL, O_NONBLOCK);
}

static void the_first_handshake_goes_alone(void **state)
{
    (void)state;
    struct pollfd fd;
    struct request *r = rig_submit(0);
    assert_true(server_deadline(&rig.s) <= rig.now); /* wants a push */
    rig_push();
    assert_int_equal(rig.s.state, SERVER_SHAKING);
    assert_false(server_unfinished(&rig.s, NEVER));
    assert_true(rig_poll(&fd));
    assert_int_equal(fd.events, POLLIN);
    rig_accept();
    const char *said = rig_said();
    assert_contains(said, "CLIENT\r\n");
    assert_contains(said, "INFO\r\n");
    assert_int_equal(rig_count(said, "LOAD\r\n"), SCRIPTS_LOADED);
    assert_null(strstr(said, "SET\r\n"));
    assert_null(strstr(said, "AUTH"));
    rig_send_handshake(7, RIG_RUN_ID);
    assert_null(rig_turn());
    assert_int_equal(server_deadline(&rig.s), 0); /* wants a push */
    rig_push();
    assert_said("SET\r\n");
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_int_equal(rig.s.facts.client_id, 7);
    assert_string_equal(rig.s.facts.run_id, RIG_RUN_ID);
    assert_false(server_unfinished(&rig.s, NEVER));
}

static void later_ones_take_commands_along(void **state)
{
    (void)state;
    rig_up();
    rig_hang_up();
    assert_null(rig_turn());
    assert_int_equal(rig.s.state, SERVER_DOWN);
    struct request *r = rig_submit(0);
    rig_push(); /* at once: the connection had been good */
    rig_accept();
    const char *said = rig_said();
    assert_contains(said, "CLIENT\r\n");
    assert_contains(said, "SET\r\n");
    rig_send_handshake(8, RIG_RUN_ID);
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
}

static void not_with_a_password_and_not_among_others(void **state)
{
    (void)state;
    static const char *const with[] = {
        "?password=secret", "?db=3", "" /* not the only server */};
    rig_tear_down(NULL);
    for (unsigned i = 0; i < 3; i++) {
        rig_init(with[i], *with[i] != '\0');
        rig.s.completed_handshake = true;
        rig_submit(0);
        rig_push();
        rig_accept();
        const char *said = rig_said();
        assert_contains(said, "CLIENT\r\n");
        assert_null(strstr(said, "SET\r\n"));
        if (*with[i] != '\0')
            rig_send("+OK\r\n");
        rig_send_handshake(7, RIG_RUN_ID);
        assert_null(rig_turn());
        rig_push();
        assert_said("SET\r\n");
        if (i < 2)
            rig_tear_down(NULL);
    }
}

static void a_refused_password_ends_it(void **state)
{
    (void)state;
    rig_tear_down(NULL);
    rig_init("?password=secret", true);
    rig_submit(0);
    rig_submit(1);
    rig_push();
    rig_accept();
    assert_said("AUTH\r\n$6\r\nsecret\r\n");
    assert_null(rig_reply("-WRONGPASS invalid\r\n:7\r\n"));
    assert_silent(); /* but for INFO's answer it would be over */
    assert_ptr_equal(rig_reply("-NOAUTH x\r\n"), &rig.request[0]);
    rig_assert_fault(FAULT_DENIED, false, "WRONGPASS invalid");
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_silent();
    assert_int_equal(recv(rig.peer, rig.said, 1, 0), 0); /* closed */
}

/* Whatever ends the connection before INFO is answered. */
static void a_refusal_outlives_the_connection(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        rig_tear_down(NULL);
        rig_init("?password=secret", true);
        rig_submit(0);
        rig_push();
        rig_accept();
        assert_said("AUTH\r\n$6\r\nsecret\r\n");
        assert_null(rig_reply("-WRONGPASS invalid\r\n"));
        if (!silent)
            rig_hang_up();
        else
            rig.now += ms_to_ns(SERVER_STALE_MS);
        assert_ptr_equal(rig_turn(), &rig.request[0]);
        rig_assert_fault(FAULT_DENIED, false, "WRONGPASS invalid");
    }
}

static void turned_away_at_the_door(void **state)
{
    (void)state;
    rig_submit(0);
    rig_push();
    rig_accept();
    assert_ptr_equal(
        rig_reply("-ERR max number of clients reached\r\n"), &rig.request[0]);
    rig_assert_fault(FAULT_RETRY, false, "max number of clients");
}

static void somebody_else_answers(void **state)
{
    (void)state;
    rig_submit(0);
    rig_push();
    rig_accept();
    assert_ptr_equal(
        rig_reply("HTTP/1.1 400 Bad Request\r\n\r\n"), &rig.request[0]);
    rig_assert_fault(FAULT_NOT_REDIS, false, "");
    assert_true(rig.last_text[0] != '\0');
}

/* ----------------------------------------------------------- no connection */

static void refused_and_tried_again_later(void **state)
{
    (void)state;
    uint64_t longest = 0;
    rig_unlisten();
    for (int i = 0; i < 12; i++) {
        rig_submit(0);
        rig_push();
        assert_int_equal(server_deadline(&rig.s), 0); /* to be taken now */
        assert_ptr_equal(rig_turn(), &rig.request[0]);
        rig_assert_fault(FAULT_UNREACHABLE, false, "No such file");
        assert_int_equal(rig.last.outcome.sent_at, 0);
        assert_int_equal(server_deadline(&rig.s), NEVER);

        rig_submit(0);
        uint64_t at = server_deadline(&rig.s);
        assert_between(at - rig.now, 5 * NS_PER_MS, 250 * NS_PER_MS);
        longest = later(longest, at - rig.now);
        rig.now = at - 1;
        rig_push(); /* too early: it waits */
        assert_null(rig_turn());
        assert_int_equal(rig.request[0].state, REQUEST_QUEUED);
        rig_abandon(0, true);
        rig.now = at;
    }
    assert_true(longest >= 125 * NS_PER_MS);
    rig_listen();
    rig_up(); /* ... and being refused is forgotten */
    rig_hang_up();
    rig_turn();
    rig_submit(0);
    assert_true(server_deadline(&rig.s) <= rig.now);
}

static void a_full_socket_is_waited_for(void **state)
{
    (void)state;
    rig_up();
    struct pollfd fd;
    rig_block();
    rig_submit(0);
    rig_push();
    assert_true(rig_poll(&fd));
    assert_int_equal(fd.events, POLLIN | POLLOUT);
    rig_submit(1);
    rig_push(); /* not formatted: it can still be given up for nothing */
    assert_int_equal(rig.request[1].state, REQUEST_QUEUED);
    assert_true(server_deadline(&rig.s) > rig.now);
    rig_unblock();
    assert_null(rig_turn()); /* there is room */
    rig_push();
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 2);
    assert_true(rig_poll(&fd));
    assert_int_equal(fd.events, POLLIN);
}

/* ----------------------------------------------------------- how it is lost */

static void lost_with_commands_under_way(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    rig_submit(1);
    rig_push();
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_assert_fault(FAULT_UNREACHABLE, true, "");
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    rig_assert_fault(FAULT_UNREACHABLE, true, "");
    assert_int_equal(rig.last.outcome.sent_at, rig.now);
    assert_null(rig_turn());
    assert_non_null(rig.request[0].acquire_cleaner);
    assert_int_equal(rig.request[0].acquire_cleaner->cleanup.client_id, 7);
    assert_string_equal(
        rig.request[0].acquire_cleaner->cleanup.run_id, RIG_RUN_ID);
}

static void what_came_before_the_end_counts(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_submit(1);
    rig_push();
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 2);
    rig_send("+OK\r\n");
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    rig_assert_fault(FAULT_UNREACHABLE, true, "closed the connection");
}

static void too_long_without_an_answer(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    rig.now += 500 * NS_PER_MS;
    rig_submit(1);
    rig_push();
    uint64_t end = rig.now + 1500 * NS_PER_MS; /* of the oldest */
    assert_int_equal(server_deadline(&rig.s), end);
    rig.now = end - 1;
    assert_null(rig_turn());
    assert_int_equal(rig.s.state, SERVER_UP);
    rig.now = end;
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_assert_fault(FAULT_TIMEOUT, true, "no answer for 2s");
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    assert_int_equal(rig.s.state, SERVER_DOWN);
}

/* Messages about a later call say why the server is down. */
static void the_fault_of_a_lost_connection_is_kept(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    rig.now += 2000 * NS_PER_MS;
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_int_equal(rig.s.why_fault, FAULT_TIMEOUT);
}

/* The program was stopped meanwhile: what has come counts. */
static void an_answer_that_is_there_is_not_late(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_submit(1);
    rig_push();
    rig_send("+OK\r\n");
    rig.now += 60 * NS_PER_S;
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    rig_assert_fault(FAULT_TIMEOUT, true, "no answer for");
}

static void patience_grows_with_the_timeout(void **state)
{
    (void)state;
    rig_tear_down(NULL);
    rig_init("?timeout_ms=4000", true);
    rig_up();
    rig_submit(0);
    rig_push();
    assert_int_equal(server_deadline(&rig.s), rig.now + 8 * NS_PER_S);
}

static void an_answer_to_nothing(void **state)
{
    (void)state;
    rig_up();
    assert_null(rig_reply("+OK\r\n"));
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_contains(rig.s.why.data, "unsolicited reply");
}

/* A server that closes what is idle: nobody is to notice. */
static void a_dead_connection_is_replaced_before_use(void **state)
{
    (void)state;
    rig_up();
    rig_hang_up();
    rig.now += 10 * NS_PER_MS;
    struct request *r = rig_submit(0);
    rig_push();
    rig_accept();
    assert_said("SET\r\n");
    rig_send_handshake(8, RIG_RUN_ID);
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
}

static void not_the_primary_any_more(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_submit(1);
    rig_push();
    assert_ptr_equal(
        rig_reply("-READONLY You can't write\r\n"), &rig.request[0]);
    rig_assert_fault(FAULT_NOT_PRIMARY, false, "READONLY");
    rig_submit(2); /* one is unanswered: the connection stays for it */
    assert_int_equal(rig.s.state, SERVER_UP);
    rig_abandon(2, true);
    assert_ptr_equal(rig_reply("-READONLY again\r\n"), &rig.request[1]);
    struct request *r = rig_submit(3);
    assert_int_equal(rig.s.state, SERVER_DOWN); /* look where the name leads */
    rig_push();
    rig_accept();
    rig_send_handshake(8, RIG_OTHER_RUN_ID);
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
    rig_submit(4);
    assert_int_equal(rig.s.state, SERVER_UP);
}

/* ---------------------------------------------------------------- cleanups */

static void leave_a_cleanup(uint32_t ttl_ms)
{
    struct request *r = &rig.request[1];
    server_clean_up(r, slice_of(RIG_TOKEN), ttl_ms, 0, rig.now);
    assert_null(r->spare); /* the cleanup took it */
}

static void a_cleanup_makes_a_connection(void **state)
{
    (void)state;
    leave_a_cleanup(1000);
    assert_true(server_unfinished(&rig.s, NEVER));
    assert_true(server_deadline(&rig.s) <= rig.now);
    rig_push();
    rig_shake(7, RIG_RUN_ID);
    rig_push();
    assert_said("EVAL\r\n");
    assert_null(rig_reply(":1\r\n"));
    assert_int_equal(rig_cleanups(), 0);
    assert_false(server_unfinished(&rig.s, NEVER));
}

static void cleanups_leave_before_requests(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    leave_a_cleanup(1000);
    rig_push();
    const char *said = rig_said();
    assert_true(strstr(said, "EVAL\r\n") < strstr(said, "SET\r\n"));
    assert_ptr_equal(rig_reply(":0\r\n+OK\r\n"), &rig.request[0]);
    assert_int_equal(rig_cleanups(), 0);
}

/* A server that does not come back, and a cleanup that expires: nothing
 * is left to do, so nobody is to be woken for it, again and again. */
static void a_cleanup_ends_without_a_connection(void **state)
{
    (void)state;
    rig_unlisten();
    leave_a_cleanup(1000);
    uint64_t end = rig.now + NS_PER_S;
    for (unsigned turns = 0; rig_cleanups(); turns++) {
        assert_true(turns < 100);
        uint64_t at = server_deadline(&rig.s);
        rig.now = later(at, rig.now);
        assert_true(rig.now <= end + 500 * NS_PER_MS);
        assert_null(rig_turn());
        rig_push();
    }
    assert_true(rig.now >= end);
    assert_int_equal(server_deadline(&rig.s), NEVER);
    assert_false(server_unfinished(&rig.s, NEVER));
}

static void freed_in_the_midst_of_it(void **state)
{
    (void)state;
    rig_up();
    leave_a_cleanup(1000);
    rig_submit(0);
    rig_push(); /* the tear-down frees; nothing may be left */
    leave_a_cleanup(1000);
    rig_submit(1);
}

#define waiting_test(name)                                                     \
    cmocka_unit_test_setup_teardown(name, set_up_waiting, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        waiting_test(nothing_to_say_no_connection),
        rig_test(the_first_handshake_goes_alone),
        rig_test(later_ones_take_commands_along),
        rig_test(not_with_a_password_and_not_among_others),
        rig_test(a_refused_password_ends_it),
        rig_test(a_refusal_outlives_the_connection),
        rig_test(turned_away_at_the_door),
        rig_test(somebody_else_answers),
        rig_test(refused_and_tried_again_later),
        rig_test(a_full_socket_is_waited_for),
        rig_test(lost_with_commands_under_way),
        rig_test(what_came_before_the_end_counts),
        rig_test(too_long_without_an_answer),
        rig_test(the_fault_of_a_lost_connection_is_kept),
        rig_test(an_answer_that_is_there_is_not_late),
        rig_test(patience_grows_with_the_timeout),
        rig_test(an_answer_to_nothing),
        rig_test(a_dead_connection_is_replaced_before_use),
        rig_test(not_the_primary_any_more),
        rig_test(a_cleanup_makes_a_connection),
        rig_test(cleanups_leave_before_requests),
        rig_test(a_cleanup_ends_without_a_connection),
        rig_test(freed_in_the_midst_of_it),
    };
    return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
