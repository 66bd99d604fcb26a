/* SPDX-License-Identifier: MIT */
/*
 * Requests that are given up under way, or whose connection is gone: nobody is
 * called back, and nothing stays at the server that nobody knows of.
 */
#include "server_rig.h"

#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"
#define assert_eval(text, times)                                               \
    assert_int_equal(rig_count((text), "$4\r\nEVAL\r\n"), (times))

/* Everything is answered and cleaned up. */
static void assert_settled(void)
{
    assert_int_equal(rig_cleanups(), 0);
    assert_int_equal(rig.s.conn.dropped, 0);
    assert_false(server_unfinished(&rig.s, NEVER));
}

/* ------------------------------------------------- given up under way */

static void an_acquire_is_undone_behind_it(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    assert_said("SET\r\n");
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig.s.conn.dropped, 1);
    assert_int_equal(rig_cleanups(), 1);
    assert_null(rig.request[0].spare); /* the cleanup took it */
    assert_true(spare_reserve(&rig.request[0], rig.verb[0].key));
    rig_submit(0); /* the same request may be used again at once */
    rig_push();
    const char *said = rig_said();
    assert_eval(said, 1);
    assert_true(strstr(said, "EVAL\r\n") < strstr(said, "SET\r\n"));
    assert_ptr_equal(rig_reply("+OK\r\n:1\r\n+OK\r\n"), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_settled();
}

static void an_acquire_with_half_its_answer(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].want_left = true;
    rig_submit(0);
    rig_push();
    assert_said("PTTL\r\n");
    assert_null(rig_reply("+OK\r\n")); /* granted, but PTTL is unanswered */
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    struct cleaner *d = list_entry(rig.s.cleaners.next, struct cleaner, node);
    assert_false(d->cleanup.acquire == ACQUIRE_AHEAD);
    assert_null(rig_reply(":5000\r\n"));
    assert_int_equal(rig_cleanups(), 1); /* PTTL's reply says nothing of it */
    rig_push();
    assert_eval(rig_said(), 1);
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

static void both_answers_of_one_given_up(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].want_left = true;
    rig_submit(0);
    rig_push();
    rig_said();
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig.s.conn.dropped, 2);
    rig_push();
    assert_null(rig_reply("$-1\r\n:5000\r\n:0\r\n"));
    assert_settled();
}

/* An error that a server has proves that nothing was set, so the undo, which
 * could not be carried out, is not repeated. Any other error may be a proxy's,
 * which did pass the acquire on. */
static void an_acquire_answered_by_an_error(void **state)
{
    static const struct {
        const char *error;
        bool sure;
    } rows[] = {{"-OOM command not allowed", true}, {"-NOPERM no", true},
        {"-READONLY no", true}, {"-ERR strange", false}, {"-ODD no", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char answers[128];
        snprintf(
            answers, sizeof(answers), "%s\r\n-LOADING wait\r\n", rows[i].error);
        rig_up();
        rig_submit(0);
        rig_push();
        assert_false(rig_abandon(0, true));
        rig_push();
        assert_eval(rig_said(), 1);
        assert_null(rig_reply(answers));
        assert_int_equal(rig_cleanups(), rows[i].sure ? 0 : 1);
        assert_int_equal(rig_tear_down(NULL), 0);
        assert_int_equal(rig_set_up(NULL), 0);
    }
}

static void what_does_no_harm_is_only_left(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].kind = VERB_INSPECT;
    rig_submit(0);
    rig_submit(1);
    rig_push();
    rig_said();
    assert_false(rig_abandon(0, false));
    assert_int_equal(rig_cleanups(), 0);
    assert_ptr_equal(rig_reply("*0\r\n+OK\r\n"), &rig.request[1]);
    rig_push();
    assert_silent();
    assert_settled();
}

static void a_release_is_its_own_undoing(void **state)
{
    (void)state;
    rig_up();
    rig_submit_release(0);
    rig_push();
    assert_said("EVALSHA\r\n");
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    rig_push();
    assert_silent();
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

static void a_release_without_its_script_is_tried_again(void **state)
{
    (void)state;
    rig_up();
    rig_submit_release(0);
    rig_push();
    rig_said();
    assert_false(rig_abandon(0, true));
    assert_null(rig_reply(NOSCRIPT));
    assert_int_equal(rig_cleanups(), 1);
    rig_push();
    assert_eval(rig_said(), 1);
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

/* A grant that comes too late to count was applied all the same, so its token
 * is not used again; what was refused has changed nothing. */
static void a_grant_that_was_answered_is_undone(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    rig_said();
    assert_ptr_equal(rig_reply("+OK\r\n"), &rig.request[0]);
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    rig_push();
    assert_eval(rig_said(), 1);
    assert_null(rig_reply(":0\r\n")); /* nothing of it can follow */
    assert_settled();
    rig_submit(1);
    rig_push();
    assert_ptr_equal(rig_reply("$-1\r\n"), &rig.request[1]);
    assert_true(rig_abandon(1, true));
}

/* ------------------------------------------------- the connection is gone */

/* A new connection, client 8, after the old one was lost. */
static void reconnect(const char *run_id)
{
    rig_hang_up();
    rig_turn();
    rig_push();
    rig_shake(8, run_id);
    rig_push();
}

static void undone_on_another_connection(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    assert_false(rig_abandon(0, true));
    rig_push();
    reconnect(RIG_RUN_ID);
    const char *said = rig_said();
    assert_contains(said, "KILL\r\n$2\r\nID\r\n$1\r\n7\r\n");
    assert_eval(said, 1);
    assert_null(rig_reply(":1\r\n:0\r\n"));
    assert_settled();
}

/* The call learned of the loss first, and then gives it up. */
static void undone_after_it_failed(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    reconnect(RIG_RUN_ID);
    assert_said("KILL\r\n$2\r\nID\r\n$1\r\n7\r\n");
    assert_null(rig_reply(":0\r\n:0\r\n"));
    assert_settled();
}

/* Given up before the completion was taken. */
static void given_up_while_it_is_in_the_failed_list(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].kind = VERB_INSPECT;
    rig_submit(0);
    rig_submit(1);
    rig_push();
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    assert_int_equal(rig.request[1].state, REQUEST_FAILED);
    assert_false(rig_abandon(1, true));
    assert_null(rig_turn()); /* it does not come any more */
    assert_int_equal(rig_cleanups(), 1);
    reconnect(RIG_RUN_ID);
    assert_said("KILL");
    assert_null(rig_reply(":1\r\n:0\r\n"));
    assert_settled();
}

/* What may be a token of the same call keeps the lock busy: its removal is not
 * done, or was given up although its acquire may be applied yet. */
static void busy_perhaps_by_its_own_token(void **state)
{
    enum { PROVED, UNDER_WAY, GIVEN_UP, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        rig_up();
        rig_submit(0);
        rig_push();
        rig_hang_up();
        assert_ptr_equal(rig_turn(), &rig.request[0]);
        assert_false(rig_abandon(0, true));
        assert_true(spare_reserve(&rig.request[0], rig.verb[0].key));
        rig.now += i == GIVEN_UP ? 60 * NS_PER_S : 0;
        rig.verb[0].earlier_token_possible = true;
        rig_submit(0);
        rig.now = later(rig.now, rig.s.not_before);
        rig_push();
        assert_int_equal(rig_cleanups(), i != GIVEN_UP);
        rig_shake(8, RIG_RUN_ID);
        rig_push();
        const char *answers[] = {
            ":1\r\n:0\r\n$-1\r\n", ":1\r\n-LOADING\r\n$-1\r\n", "$-1\r\n"};
        assert_ptr_equal(rig_reply(answers[i]), &rig.request[0]);
        assert_int_equal(rig.last.outcome.kind, OUTCOME_BUSY);
        assert_int_equal(
            rig.last.outcome.earlier_token_may_remain, i != PROVED);
        rig.verb[0].earlier_token_possible = false; /* another call */
        rig_submit(0);
        rig.verb[0].earlier_token_possible = true;
        rig_push();
        assert_ptr_equal(rig_reply("$-1\r\n"), &rig.request[0]);
        assert_int_equal(
            rig.last.outcome.earlier_token_may_remain, i == UNDER_WAY);
        rig_tear_down(state);
        rig_set_up(state);
    }
}

static void nothing_killed_in_another_process(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    assert_false(rig_abandon(0, true));
    rig_push();
    uint64_t end = rig.now + RIG_TTL_MS * NS_PER_MS;
    reconnect(RIG_OTHER_RUN_ID);
    unsigned tries = 0;
    while (rig_cleanups()) {
        const char *said = rig_said();
        assert_null(strstr(said, "KILL"));
        assert_eval(said, 1);
        assert_null(rig_reply(":0\r\n"));
        tries++;
        uint64_t at = server_deadline(&rig.s);
        assert_true(at > rig.now);
        rig.now = earlier(at, end);
        rig_push();
    }
    assert_true(rig.now >= end);
    assert_between(tries, 6, 20); /* 20, 40, ... 640 ms, then every second */
    assert_settled();
}

/* What is under way is not walked over: only what is due is in that list. */
static void what_is_under_way_is_not_due(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 4; i++) {
        rig_submit(i);
        rig_push();
        rig_abandon(i, true);
    }
    assert_int_equal(rig_cleanups(), 4);
    assert_true(list_empty(&rig.s.idle_cleaners));
    assert_true(server_unfinished(&rig.s, NEVER));
    assert_null(rig_reply("-ERR no\r\n-ERR no\r\n+OK\r\n-ERR no\r\n"));
    /* Nothing stands of the first; the second's acquire was done. */
    struct cleaner *d =
        list_entry(rig.s.idle_cleaners.prev, struct cleaner, idle_node);
    assert_ptr_equal(d->idle_node.next, &rig.s.idle_cleaners);
    assert_int_equal(d->cleanup.state, CLEANUP_IDLE);
    rig_hang_up();
    rig_turn();
    size_t due = 0;
    for (struct list *i = rig.s.idle_cleaners.next; i != &rig.s.idle_cleaners;
         i = i->next)
        due++;
    assert_int_equal(due, rig_cleanups());
    assert_true(due >= 2);
}

/* Out of the middle of many: the others' slots keep their numbers. */
static void those_that_did_not_leave_are_found(void **state)
{
    (void)state;
    rig_up();
    for (unsigned i = 0; i < 6; i++) {
        rig.verb[i].want_left = i % 2;
        rig_submit(i);
    }
    requests_format(&rig.s, rig.now); /* formatted, and not a byte sent */
    static const unsigned given_up[] = {1, 4, 0, 3};
    for (size_t i = 0; i < 4; i++)
        assert_true(rig_abandon(given_up[i], true));
    assert_int_equal(rig_cleanups(), 0);
    rig_push();
    assert_int_equal(rig_count(rig_said(), "SET\r\n"), 2);
    assert_false(rig_abandon(2, true)); /* it has left, and is found */
    rig_push();
    assert_eval(rig_said(), 1);
    assert_null(rig_reply("+OK\r\n"));
    assert_ptr_equal(rig_reply("+OK\r\n:5000\r\n:1\r\n"), &rig.request[5]);
    assert_null(rig_turn());
    assert_settled();
}

/* Not a byte of it has left: then nobody can have answered it. */
static void an_answer_before_the_question(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    requests_format(&rig.s, rig.now);
    assert_ptr_not_equal(rig_reply("+OK\r\n"), &rig.request[0]);
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_contains(rig.s.why.data, "unsolicited reply");
    assert_int_equal(rig.request[0].state, REQUEST_QUEUED);
}

static void an_inspection_leaves_nothing(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].kind = VERB_INSPECT;
    rig_submit(0);
    rig_push();
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[0]);
    rig_abandon(0, false);
    assert_int_equal(rig_cleanups(), 0);
    assert_int_equal(server_deadline(&rig.s), NEVER);
}

/* ------------------------------------- records that are there for others */

static void a_record_is_lent(void **state)
{
    (void)state;
    struct request *r = &rig.request[0], *other = &rig.request[1];
    struct cleaner *k = r->spare;
    spare_give_back(other);
    request_free(other); /* and with it one of those for others */
    assert_true(list_empty(&rig.spares));
    spare_give_back(r);
    assert_null(r->spare);
    assert_true(spare_reserve(other, slice_of("k2")));
    assert_ptr_equal(other->spare, k);
    assert_true(slice_equal(k->verb.key, slice_of("k2")));
    assert_true(list_empty(&rig.spares));

    /* A longer key gets another record in its place. */
    static const char key[] = "a key that has no room in a record for another";
    spare_give_back(other);
    assert_true(spare_reserve(r, slice_of(key)));
    assert_true(slice_equal(r->spare->verb.key, slice_of(key)));
    assert_true(list_empty(&rig.spares));
    request_free(other); /* it has none, and there is none */
    assert_non_null(r->spare);
}

/* What a request has cleaned up with is not there for others. */
static void a_record_in_use_is_not_lent(void **state)
{
    (void)state;
    struct request *r = &rig.request[0];
    rig_up();
    rig_submit(0);
    rig_push();
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    spare_give_back(r);
    assert_true(list_empty(&rig.spares));
    request_free(r);
    assert_int_equal(rig_cleanups(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(an_acquire_is_undone_behind_it),
        rig_test(an_acquire_with_half_its_answer),
        rig_test(both_answers_of_one_given_up),
        rig_test(an_acquire_answered_by_an_error),
        rig_test(what_does_no_harm_is_only_left),
        rig_test(a_release_is_its_own_undoing),
        rig_test(a_release_without_its_script_is_tried_again),
        rig_test(a_grant_that_was_answered_is_undone),
        rig_test(undone_on_another_connection),
        rig_test(undone_after_it_failed),
        rig_test(given_up_while_it_is_in_the_failed_list),
        rig_test(busy_perhaps_by_its_own_token),
        rig_test(nothing_killed_in_another_process),
        rig_test(what_is_under_way_is_not_due),
        rig_test(those_that_did_not_leave_are_found),
        rig_test(an_answer_before_the_question),
        rig_test(an_inspection_leaves_nothing),
        rig_test(a_record_is_lent),
        rig_test(a_record_in_use_is_not_lent),
    };
    return cmocka_run_group_tests_name("request_undo", tests, NULL, NULL);
}
