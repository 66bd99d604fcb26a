/* SPDX-License-Identifier: MIT */
/*
 * A release, or the cleanup of one, whose time is over (verb.not_after): from
 * then on another client may own the token, so what has not been sent yet is
 * withdrawn, wherever it waits.
 */
#include "unit/server_rig.h"

#define OVER (RIG_START + NS_PER_S) /* no time-out comes before */

static struct request *r = &rig.request[0];

static void submit_release(void)
{
    rig.verb[0].not_after = OVER;
    rig_submit_release(0);
    rig_push();
}

static void assert_too_late(struct request *completed)
{
    assert_ptr_equal(completed, r);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_FAULT);
    assert_false(server_unfinished(&rig.s, NEVER));
    rig_push();
    assert_silent();
}

/* Formatted, but the socket is full. */
static void it_waits_for_room(void **state)
{
    (void)state;
    rig_up();
    rig_block();
    submit_release();
    assert_int_equal(r->state, REQUEST_SENT);
    rig.now = OVER - 1;
    rig_push();
    assert_null(rig_turn());
    rig.now = OVER;
    rig_push();
    rig_unblock();
    assert_too_late(rig_turn());
}

/* The connection is lost meanwhile: that is another request's cause. */
static void it_keeps_its_own_cause(void **state)
{
    (void)state;
    rig_up();
    rig_block();
    submit_release();
    rig.now = OVER;
    rig_push();
    rig_hang_up();
    text_set(&rig.s.why, "the server closed the connection");
    assert_ptr_equal(rig_turn(), r);
    assert_contains(rig.last.outcome.text.data, "the lease ended");
}

/* Another connection is being made. */
static void it_waits_for_a_connection(void **state)
{
    (void)state;
    submit_release();
    assert_int_equal(r->state, REQUEST_QUEUED);
    rig.now = OVER;
    rig_accept();
    rig_push();
    assert_null(strstr(rig_said(), "EVAL"));
    rig_send_handshake(7, RIG_RUN_ID);
    struct request *completed = rig_turn();
    rig_push();
    assert_null(strstr(rig_said(), "EVAL"));
    assert_ptr_equal(completed ? completed : rig_turn(), r);
}

/* The server does not know the script: sending it whole would be too late. */
static void it_would_be_sent_again(void **state)
{
    (void)state;
    rig_up();
    submit_release();
    assert_said("EVALSHA\r\n");
    rig.now = OVER;
    assert_too_late(rig_reply("-NOSCRIPT no matching script\r\n"));
}

/* In time, the same is sent whole. */
static void it_is_sent_again(void **state)
{
    (void)state;
    rig_up();
    submit_release();
    assert_said("EVALSHA\r\n");
    rig.now = OVER - 1;
    assert_null(rig_reply("-NOSCRIPT no matching script\r\n"));
    rig_push();
    assert_said("EVAL\r\n");
    assert_ptr_equal(rig_reply(":1\r\n"), r);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_MINE);
}

/* The cleanup of a release that was not answered, formatted on the next
 * connection, whose socket is full. */
static void its_cleanup_waits_for_room(void **state)
{
    (void)state;
    rig_up();
    submit_release();
    assert_said("EVALSHA\r\n");
    assert_false(rig_abandon(0, true));
    assert_int_equal(rig_cleanups(), 1);
    rig_hang_up();
    rig_turn();
    rig_push();
    rig_shake(8, RIG_RUN_ID);
    rig_block();
    rig_push();
    assert_int_equal(rig_cleanups(), 1);
    rig.now = OVER;
    rig_push();
    rig_unblock();
    rig_push();
    assert_null(rig_turn());
    assert_null(strstr(rig_said(), "EVAL"));
    assert_int_equal(rig_cleanups(), 0);
}

/* It is never too late to tell what came of the work; only the key is left
 * alone then. */
static void what_is_told_waits_for_room(void **state)
{
    static const char left_alone[] = "$2\r\n-1\r\n";
    static struct once_terms terms = {.reported = ONCE_DONE};
    struct reply_values leaves = {0};
    (void)state;
    rig_up();
    rig_block();
    rig.verb[0].kind = VERB_TELL;
    rig.verb[0].not_after = OVER;
    rig.verb[0].once = &terms;
    rig.verb[0].values = &leaves;
    rig_submit(0);
    rig_push();
    rig.now = OVER - 1;
    rig_push();
    assert_int_equal(r->state, REQUEST_SENT);
    rig.now = OVER;
    rig_push();
    assert_int_equal(r->sent_at, OVER); /* not when it was taken back */
    rig_unblock();
    assert_null(rig_turn());
    rig_push();
    const char *said = rig_said();
    assert_int_equal(rig_count(said, "EVALSHA\r\n"), 1);
    assert_int_equal(rig_count(said, left_alone), 1);
    /* In time, the key is deleted. */
    assert_ptr_equal(rig_reply("*2\r\n:1\r\n:0\r\n"), r);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_MINE);
    rig.verb[0].not_after = OVER + 1;
    rig_submit(0);
    rig_push();
    said = rig_said();
    assert_int_equal(rig_count(said, "EVALSHA\r\n"), 1);
    assert_int_equal(rig_count(said, left_alone), 0);
    reply_values_free(&leaves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(it_waits_for_room),
        rig_test(it_keeps_its_own_cause),
        rig_test(what_is_told_waits_for_room),
        rig_test(it_waits_for_a_connection),
        rig_test(it_would_be_sent_again),
        rig_test(it_is_sent_again),
        rig_test(its_cleanup_waits_for_room),
    };
    return cmocka_run_group_tests_name("request_expired", tests, NULL, NULL);
}
