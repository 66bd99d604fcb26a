/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once: what becomes of a BEGIN that nobody waits for.
 * It is told that nothing happened, by UNBEGIN, behind everything that could
 * still begin it.
 */
#include "server_rig.h"

#define LINE "once1 begun T 5 1 0 1 2 3 0 0 9 =f 0"
#define BEGUN "*3\r\n:1\r\n:5\r\n$36\r\n" LINE "\r\n"
#define BUSY "*2\r\n:5\r\n:900\r\n"
#define UNBEGUN "$7\r\nunbegun\r\n"
#define KILL "KILL\r\n$2\r\nID\r\n$1\r\n7\r\n"

static struct reply_values leaves;
static struct once_terms terms = {.reported = ONCE_DONE};

static void submit(enum verb_kind kind)
{
    rig.verb[0].kind = kind;
    rig.verb[0].once = &terms;
    rig.verb[0].values = &leaves;
    rig_submit(0);
    rig_push();
    assert_said("EVALSHA\r\n");
}

static void assert_unbegins(void)
{
    const char *said = rig_said();
    assert_int_equal(rig_count(said, "$4\r\nEVAL\r\n"), 1);
    assert_int_equal(rig_count(said, UNBEGUN), 1);
    assert_contains(said, "$10\r\n{key}:once\r\n");
}

static void assert_settled(void)
{
    assert_int_equal(rig_cleanups(), 0);
    assert_int_equal(rig.s.conn.dropped, 0);
    assert_false(server_unfinished(&rig.s, NEVER));
}

/* Whatever its answer is, that of UNBEGIN decides. */
static void given_up_under_way(void **state)
{
    static const char *const answers[] = {
        BEGUN ":1\r\n", BUSY ":0\r\n", "-OOM x\r\n:0\r\n"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        rig_up();
        submit(VERB_BEGIN);
        assert_false(rig_abandon(0, true));
        rig_push();
        assert_unbegins();
        assert_null(rig_reply(answers[i]));
        assert_settled();
        rig_tear_down(state);
        rig_set_up(state);
    }
}

/* On the next connection, when nothing of the old one can follow. Until it is
 * sure that it had begun, UNBEGIN is tried again. */
static void its_connection_is_lost(void **state)
{
    (void)state;
    rig_up();
    submit(VERB_BEGIN);
    assert_false(rig_abandon(0, true));
    rig_hang_up();
    rig_turn();
    rig_push();
    rig_shake(8, RIG_RUN_ID);
    rig_push();
    assert_contains(rig_said(), KILL);
    assert_contains(rig.said, UNBEGUN);
    assert_null(rig_reply("-ERR no\r\n:0\r\n")); /* it cannot be killed */
    assert_int_equal(rig_cleanups(), 1);
    rig.now += NS_PER_S;
    rig_push();
    assert_contains(rig_said(), UNBEGUN);
    assert_null(rig_reply("-ERR no\r\n:1\r\n"));
    assert_settled();
}

/* It was granted, but its caller never learned of it. */
static void taken_back(void **state)
{
    (void)state;
    rig_up();
    submit(VERB_BEGIN);
    assert_ptr_equal(rig_reply(BEGUN), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_int_equal(rig.last.outcome.fence, 5);
    assert_int_equal(leaves.count, 3);
    server_undo_begin(&rig.request[0], rig.verb[0].token, RIG_TTL_MS, rig.now);
    assert_int_equal(rig_cleanups(), 1);
    rig_push();
    assert_unbegins();
    assert_null(rig_reply(":1\r\n"));
    assert_settled();
}

/* The server does not know the script: it is sent again with its text. */
static void without_its_script(void **state)
{
    (void)state;
    rig_up();
    submit(VERB_BEGIN);
    assert_null(rig_reply("-NOSCRIPT No matching script.\r\n"));
    rig_push();
    const char *said = rig_said();
    assert_int_equal(rig_count(said, "$4\r\nEVAL\r\n"), 1);
    assert_int_equal(rig_count(said, UNBEGUN), 0);
    assert_ptr_equal(rig_reply(BEGUN), &rig.request[0]);
    assert_int_equal(rig.last.outcome.kind, OUTCOME_GRANTED);
    assert_int_equal(leaves.count, 3);
}

/* Nothing is to be undone of the others, and their answers are dropped. */
static void others_given_up(void **state)
{
    static const struct {
        enum verb_kind kind;
        const char *answer;
    } others[] = {
        {VERB_READ_RECORD, "*4\r\n:2\r\n:0\r\n$36\r\n" LINE "\r\n$1\r\nx\r\n"},
        {VERB_TELL, "*3\r\n:1\r\n:1\r\n$36\r\n" LINE "\r\n"},
        {VERB_FORGET, ":1\r\n"},
    };
    (void)state;
    rig_up();
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        submit(others[i].kind);
        assert_false(rig_abandon(0, false));
        assert_null(rig_reply(others[i].answer));
        assert_settled();
        rig_push();
        assert_silent();
    }
}

static int tear_down(void **state)
{
    reply_values_free(&leaves);
    return rig_tear_down(state);
}

#define once_test(name)                                                        \
    cmocka_unit_test_setup_teardown(name, rig_set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(given_up_under_way),
        once_test(its_connection_is_lost),
        once_test(taken_back),
        once_test(without_its_script),
        once_test(others_given_up),
    };
    return cmocka_run_group_tests_name("request_once", tests, NULL, NULL);
}
