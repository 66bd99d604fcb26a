/* SPDX-License-Identifier: MIT */
/*
 * An acquire that nobody waits for, because other servers have granted the
 * lock: what may still come of it, and what the end of a client waits for.
 */
#include "server_rig.h"

#include "support/alloc.h"

#define assert_kill(text, times)                                               \
    assert_int_equal(rig_count((text), "$4\r\nKILL\r\n"), (times))
#define assert_eval(text, times)                                               \
    assert_int_equal(rig_count((text), "$4\r\nEVAL\r\n"), (times))

static struct request *r = &rig.request[0];

/* Sent, and left without an answer. */
static void leave(void)
{
    rig_up();
    rig_submit(0);
    rig_push();
    assert_said("SET\r\n");
    assert_false(rig_abandon(0, false));
    assert_non_null(r->acquire_cleaner);
    assert_int_equal(r->acquire_cleaner->cleanup.state, CLEANUP_WATCHING);
    assert_true(list_empty(&rig.s.idle_cleaners));
    assert_true(server_unfinished(&rig.s, NEVER));
}

/* Its connection ends, and the next one is up. */
static void connect_anew(void)
{
    rig_hang_up();
    rig_turn();
    rig_push();
    rig_shake(8, RIG_RUN_ID);
    rig_push();
}

static void assert_settled(void)
{
    assert_int_equal(rig_cleanups(), 0);
    assert_null(r->acquire_cleaner);
    assert_false(server_unfinished(&rig.s, NEVER));
}

static void any_answer_ends_it(void **state)
{
    static const char *const answers[] = {"+OK\r\n", "$-1\r\n", "-ERR no\r\n"};
    for (size_t i = 0; i < 3; i++) {
        leave();
        assert_null(rig_reply(answers[i]));
        assert_settled();
        rig_push();
        assert_silent();
        rig_tear_down(state);
        rig_set_up(state);
    }
}

/* Its connection is ended while the lock is held, without a deletion. */
static void lost_it_is_killed(void **state)
{
    (void)state;
    leave();
    connect_anew();
    const char *said = rig_said();
    assert_kill(said, 1);
    assert_eval(said, 0);
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

/* A release that is answered "not mine" before the kill is: then the
 * cleanup deletes, too. */
static void released_it_is_killed_and_deleted(void **state)
{
    (void)state;
    leave();
    connect_anew();
    rig_submit_release(0);
    rig_push();
    assert_kill(rig_said(), 1);
    assert_null(rig_reply("-NOPERM no\r\n")); /* it may still be applied */
    assert_ptr_equal(rig_reply(":0\r\n"), r);
    assert_int_equal(rig_cleanups(), 1);
    assert_true(server_unfinished(&rig.s, NEVER));
    rig_push();
    const char *said = rig_said();
    assert_kill(said, 1);
    assert_eval(said, 1);
    assert_null(rig_reply(":1\r\n:0\r\n"));
    assert_settled();
}

/* The release is to say whether the lock was there, so nothing deletes the key
 * before it does. */
static void the_release_goes_before_the_cleanup(void **state)
{
    (void)state;
    leave();
    connect_anew();
    rig_said();
    assert_null(rig_reply("-NOPERM no\r\n")); /* CLIENT KILL */
    rig_submit_release(0);
    rig_push();
    const char *said = rig_said();
    assert_kill(said, 0);
    assert_eval(said, 0);
    assert_contains(said, "EVALSHA\r\n");
    assert_ptr_equal(rig_reply(":1\r\n"), r);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_MINE);
    rig_push();
    said = rig_said(); /* the acquire may be applied even now */
    assert_kill(said, 1);
    assert_eval(said, 1);
    assert_null(rig_reply(":1\r\n:0\r\n"));
    assert_settled();
}

/* A release that was cancelled deletes by its cleanup, and so does this one. */
static void cancelled_the_release_ends_its_use(void **state)
{
    (void)state;
    leave();
    connect_anew();
    rig_said();
    assert_null(rig_reply("-NOPERM no\r\n"));
    rig_submit_release(0);
    assert_true(r->acquire_cleaner->cleanup.in_use);
    assert_true(rig_abandon(0, true));
    assert_false(r->acquire_cleaner->cleanup.in_use);
    rig_push();
    assert_eval(rig_said(), 2);
    assert_null(rig_reply("-NOPERM no\r\n:1\r\n:0\r\n"));
    assert_int_equal(rig_cleanups(), 0);
}

/* In order on one connection: the release follows the SET. */
static void released_in_order_nothing_more_is_sent(void **state)
{
    (void)state;
    leave();
    rig_submit_release(0);
    rig_push();
    assert_kill(rig_said(), 0);
    assert_ptr_equal(rig_reply("+OK\r\n:1\r\n"), r);
    assert_settled();
    rig_push();
    assert_silent();
}

/* Both are lost: the deletion is not enough by itself. */
static void released_in_order_and_lost(void **state)
{
    (void)state;
    leave();
    server_clean_up(r, rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    assert_int_equal(rig_cleanups(), 2); /* the acquire, the release */
    assert_false(r->acquire_cleaner->cleanup.in_use);
    connect_anew();
    const char *said = rig_said();
    assert_kill(said, 1);
    assert_eval(said, 2);
    assert_null(rig_reply(":0\r\n:1\r\n:0\r\n"));
    assert_settled();
}

/* The handle acquires with a new token: the old one's cleanup is on its own. */
static void the_next_acquire_lets_go_of_it(void **state)
{
    (void)state;
    leave();
    rig.verb[0].token = slice_of("7f1d7c1e-0000-4000-8000-0123456789ab");
    rig_submit(0);
    assert_null(r->acquire_cleaner);
    assert_int_equal(rig_cleanups(), 1);
    rig_push();
    assert_ptr_equal(rig_reply("+OK\r\n+OK\r\n"), r);
    assert_settled();
}

/* What another token's release has to do with it: nothing. */
static void another_token_changes_nothing(void **state)
{
    (void)state;
    leave();
    rig.verb[1].token = slice_of("7f1d7c1e-0000-4000-8000-0123456789ab");
    server_clean_up(r, rig.verb[1].token, RIG_TTL_MS, 0, rig.now);
    assert_true(r->acquire_cleaner->cleanup.in_use);
}

/* By another handle. */
static void adopt(bool applied)
{
    struct slice key = rig.verb[0].key, token = rig.verb[0].token;
    assert_true(server_can_adopt(&rig.s, key, token));
    server_adopt(&rig.request[1], key, token, applied);
}

/* A token that is adopted again is not deleted, but its acquire must not be
 * applied after that one's release either. */
static void adopted_it_is_wanted_again(void **state)
{
    (void)state;
    leave();
    connect_anew();
    assert_kill(rig_said(), 1);
    server_clean_up(r, rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    adopt(false);
    assert_null(r->acquire_cleaner);
    assert_true(rig.request[1].acquire_cleaner->cleanup.in_use);
    assert_null(rig_reply(":1\r\n"));
    assert_null(rig.request[1].acquire_cleaner);
    assert_settled();
}

/* It was seen at this server: then nothing can come of it later. */
static void adopted_where_it_was_seen(void **state)
{
    (void)state;
    leave();
    server_clean_up(r, rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    rig_hang_up();
    rig_turn();
    assert_int_equal(rig_cleanups(), 2);
    adopt(true);
    assert_null(rig.request[1].acquire_cleaner);
    assert_settled();
}

/* Asking changes nothing: another server may say that it cannot be adopted. Of
 * the two cleanups the acquire's is kept and the release's is cancelled. */
static void adopted_only_when_all_servers_agree(void **state)
{
    (void)state;
    struct slice key = rig.verb[0].key, token = rig.verb[0].token;
    leave();
    rig_hang_up();
    rig_turn();
    server_clean_up(r, token, RIG_TTL_MS, 0, rig.now);
    assert_int_equal(rig_cleanups(), 2);
    assert_true(server_can_adopt(&rig.s, key, token));
    assert_int_equal(rig_cleanups(), 2);
    assert_false(r->acquire_cleaner->cleanup.in_use);
    adopt(false);
    assert_int_equal(rig_cleanups(), 1);
    assert_true(rig.request[1].acquire_cleaner->cleanup.in_use);
}

static void deleted_it_cannot_be_adopted(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_push();
    assert_ptr_equal(rig_reply("+OK\r\n"), r);
    server_clean_up(r, rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    rig_push();
    assert_eval(rig_said(), 1);
    assert_false(server_can_adopt(&rig.s, rig.verb[0].key, rig.verb[0].token));
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

/* What a bare GETSET wrote may hold another one's lock: never deleted. */
static void what_must_not_be_deleted_stays_in_use(void **state)
{
    (void)state;
    leave();
    r->acquire_cleaner->exchange.written = WRITTEN_OVER;
    server_clean_up(r, rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    assert_true(r->acquire_cleaner->cleanup.in_use);
}

/* Without memory the record for the release is not given away; but it is when
 * the connection is lost, for then there may be no release. */
static void without_memory_the_release_comes_first(void **state)
{
    (void)state;
    rig_up();
    rig_submit(0);
    rig_submit(1);
    rig_push();
    alloc_fail_from(1);
    assert_false(rig_abandon(0, false));
    rig_hang_up();
    assert_ptr_equal(rig_turn(), &rig.request[1]);
    assert_true(alloc_stop());
    assert_null(r->acquire_cleaner);
    assert_non_null(r->spare);
    assert_non_null(rig.request[1].acquire_cleaner);
    assert_null(rig.request[1].spare);
}

/* ------------------------------------------ what the end of a client awaits */

static void a_question_is_not_awaited(void **state)
{
    (void)state;
    rig_up();
    rig.verb[0].kind = VERB_INSPECT;
    rig_submit(0);
    rig_push();
    assert_true(server_unfinished(&rig.s, NEVER)); /* somebody waits for it */
    assert_false(rig_abandon(0, false));
    assert_int_equal(rig.s.conn.dropped, 1);
    assert_false(server_unfinished(&rig.s, NEVER));
    assert_null(rig_reply("*2\r\n$-1\r\n:-2\r\n"));
    assert_int_equal(rig.s.conn.dropped, 0);
}

/* A cleanup that is not tried again before the end keeps nobody. */
static void a_cleanup_of_later_is_not_awaited(void **state)
{
    (void)state;
    rig_unlisten();
    server_clean_up(r, rig.verb[0].token, RIG_TTL_MS, 0, rig.now);
    rig_push();
    assert_int_equal(rig.s.state, SERVER_DOWN);
    assert_true(rig.s.not_before > rig.now);
    assert_true(server_unfinished(&rig.s, rig.s.not_before + 1));
    assert_false(server_unfinished(&rig.s, rig.s.not_before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(any_answer_ends_it),
        rig_test(lost_it_is_killed),
        rig_test(released_it_is_killed_and_deleted),
        rig_test(the_release_goes_before_the_cleanup),
        rig_test(cancelled_the_release_ends_its_use),
        rig_test(released_in_order_nothing_more_is_sent),
        rig_test(released_in_order_and_lost),
        rig_test(the_next_acquire_lets_go_of_it),
        rig_test(another_token_changes_nothing),
        rig_test(adopted_it_is_wanted_again),
        rig_test(adopted_where_it_was_seen),
        rig_test(adopted_only_when_all_servers_agree),
        rig_test(deleted_it_cannot_be_adopted),
        rig_test(what_must_not_be_deleted_stays_in_use),
        rig_test(without_memory_the_release_comes_first),
        rig_test(a_question_is_not_awaited),
        rig_test(a_cleanup_of_later_is_not_awaited),
    };
    return cmocka_run_group_tests_name("request_late", tests, NULL, NULL);
}
