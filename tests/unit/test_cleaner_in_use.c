/* SPDX-License-Identifier: MIT */
/*
 * A cleanup whose token may be in use: the old connection is ended, nothing is
 * deleted; once the token is not in use, it is a cleanup like any other.
 */
#include "support/test.h"

#include "unit/cleaner_rig.h"

static struct cleaner *late; /* as in a request */

static const struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
static const struct reply refusal = {
    .kind = REPLY_ERROR, .bytes = {"NOPERM", 6}};

static void begin_in_use(void)
{
    late = NULL;
    begin(CLEANUP_ACQUIRE_LOST);
    cleaner_link(cleaner, &late);
    assert_ptr_equal(late, cleaner);
    cleanup_connection_lost(&cleaner->cleanup, 7, RUN_A, START);
}

/* CLIENT KILL alone is sent. */
static void assert_kills(uint64_t now)
{
    gone();
    assert_true(cleaner_send(cleaner, &conn, &dialect, &facts, now));
    assert_int_equal(cleaner->cleanup.state, CLEANUP_KILLING);
    assert_contains(said(), "KILL\r\n$2\r\nID\r\n$1\r\n7\r\n");
    assert_null(strstr(said(), "EVAL"));
    assert_int_equal(conn.slots.count, 1);
    assert_int_equal(slots_at(&conn.slots, 0)->kind, SLOT_KILL);
}

static void killed_is_done(void **state)
{
    (void)state;
    begin_in_use();
    assert_kills(START);
    kill_answered(&one, START + 1);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_DONE);
    cleaner_free(cleaner);
    cleaner = NULL;
    assert_null(late); /* the request does not point to it any more */
}

/* Then it waits, without waking anybody, for the end of the token's use. */
static void refused_it_waits(void **state)
{
    (void)state;
    begin_in_use();
    assert_kills(START);
    kill_answered(&refusal, START + 1);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_true(cleaner->cleanup.next_try == NEVER);
    assert_int_equal(cleaner->cleanup.until, START + TTL);
    cleanup_not_in_use(&cleaner->cleanup, 0, START + 5);
    assert_int_equal(cleaner->cleanup.next_try, START + 5);
    const char *text = sent(START + 5);
    assert_contains(text, "KILL");
    assert_contains(text, "EVAL\r\n");
    kill_answered(&refusal, START + 6);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_DELETING);
    assert_false(answered(0, START + 6)); /* so it is repeated */
}

static void where_it_cannot_kill_it_waits(void **state)
{
    (void)state;
    begin_in_use();
    facts.run_id[0] = '\0';
    gone();
    assert_true(cleaner_send(cleaner, &conn, &dialect, &facts, START));
    assert_string_equal(said(), "");
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_true(cleaner->cleanup.next_try == NEVER);
    cleanup_not_in_use(&cleaner->cleanup, 0, START + 5);
    assert_contains(sent(START + 5), "EVAL\r\n");
}

/* From the deadline of the lease on, a program that adopted the token may use
 * it: the release is not repeated, the old connection is ended all the same. */
static void in_use_again_after_the_deadline(void **state)
{
    (void)state;
    begin_in_use();
    assert_kills(START);
    kill_answered(&refusal, START + 1);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    cleanup_not_in_use(&cleaner->cleanup, START + 10, START + 5);
    assert_contains(sent(START + 9), "EVAL\r\n");
    kill_answered(&refusal, START + 9);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_DELETING);
    assert_false(answered(0, START + 9));
    assert_kills(START + 10);
}

/* The release comes while CLIENT KILL is unanswered. */
static void not_in_use_while_it_kills(void **state)
{
    (void)state;
    begin_in_use();
    assert_kills(START);
    cleanup_not_in_use(&cleaner->cleanup, 0, START + 1);
    kill_answered(&one, START + 2);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.next_try, START + 2);
    const char *text = sent(START + 2);
    assert_null(strstr(text, "KILL")); /* once is enough */
    assert_contains(text, "EVAL\r\n");
    assert_true(answered(0, START + 3));
}

static void lost_while_it_kills(void **state)
{
    (void)state;
    begin_in_use();
    assert_kills(START);
    cleanup_connection_lost(&cleaner->cleanup, 9, RUN_A, START + 1);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_true(cleaner->cleanup.next_try >
                START + 1);                  /* that may be why it was lost */
    assert_kills(cleaner->cleanup.next_try); /* still the first one, 7 */
}

static void another_request_takes_it_over(void **state)
{
    (void)state;
    static struct cleaner *other; /* it is written to when it is freed */
    begin_in_use();
    cleanup_not_in_use(&cleaner->cleanup, 0, START);
    cleanup_cancel(&cleaner->cleanup, false); /* adopted by another handle */
    cleaner_link(cleaner, &other);
    assert_null(late);
    assert_ptr_equal(other, cleaner);
    assert_true(cleaner->cleanup.in_use);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaner_test(killed_is_done),
        cleaner_test(refused_it_waits),
        cleaner_test(where_it_cannot_kill_it_waits),
        cleaner_test(in_use_again_after_the_deadline),
        cleaner_test(not_in_use_while_it_kills),
        cleaner_test(lost_while_it_kills),
        cleaner_test(another_request_takes_it_over),
    };
    return cmocka_run_group_tests_name("cleaner_in_use", tests, NULL, NULL);
}
