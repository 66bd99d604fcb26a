/* SPDX-License-Identifier: MIT */
/*
 * A cleanup at a server that takes no scripts is done in another way, step by
 * step, and never within somebody else's transaction.
 */
#include "support/test.h"

#include "unit/cleaner_rig.h"

#define NOPERM "NOPERM this user has no permissions"

/* Every step of another way goes out behind its answers, in its own slots. */
static void refused_scripts_are_not_the_end(void **state)
{
    (void)state;
    begin(CLEANUP_TOKEN);
    sent(START);
    gone();
    assert_int_equal(
        told_words(REPLY_ERROR, NOPERM, START + 1), CLEANUP_DELETING);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_DELETING);
    assert_contains(said(), "*2\r\n$5\r\nWATCH\r\n$3\r\nkey\r\n");
    assert_int_equal(conn.slots.count, 5);
    struct slot slot = *slots_at(&conn.slots, 0);
    assert_int_equal(slot.kind, SLOT_DELETE);
    assert_ptr_equal(slot.owner, cleaner);
    assert_int_equal(slot.bytes, strlen(said()));
    assert_int_equal(slot.sent_at, START + 1);
}

/* On the way that needs a transaction: nothing else goes meanwhile. */
static void watch_until_the_value(void)
{
    dialect.preferred[VERB_RELEASE] = 1;
    begin(CLEANUP_TOKEN);
    assert_contains(sent(START), "$5\r\nWATCH\r\n");
    assert_int_equal(conn.slots.count, 5);
    assert_int_equal(slots_at(&conn.slots, 0)->bytes, strlen(said()));
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(slots_at(&conn.slots, i)->bytes, 0);
    assert_ptr_equal(dialect.in_transaction, &cleaner->exchange);
    gone();
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), CLEANUP_DELETING);
}

static void a_transaction_ends_it_too(void **state)
{
    (void)state;
    watch_until_the_value();
    assert_int_equal(told_words(REPLY_STRING, TOKEN, START), CLEANUP_DELETING);
    assert_int_equal(told_number(500, START), CLEANUP_DELETING);
    assert_int_equal(told_number(1, START), CLEANUP_DELETING);
    assert_int_equal(buf_len(&conn.out), 0);
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), CLEANUP_DELETING);
    assert_contains(said(), "$3\r\nDEL\r\n$3\r\nkey\r\n");
    assert_contains(said(), "$4\r\nEXEC\r\n");
    assert_int_equal(conn.slots.count, 2);
    assert_int_equal(
        told_words(REPLY_STATUS, "QUEUED", START), CLEANUP_DELETING);
    struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
    struct reply result = {.kind = REPLY_ARRAY, .count = 1, .items = &one};
    assert_int_equal(told(result, START), CLEANUP_DONE);
    assert_null(dialect.in_transaction);
}

static void another_value_ends_it_when_the_transaction_has_ended(void **state)
{
    (void)state;
    watch_until_the_value();
    assert_int_equal(
        told_words(REPLY_STRING, "another", START), CLEANUP_DELETING);
    assert_int_equal(told_number(500, START), CLEANUP_DELETING);
    assert_int_equal(told_number(1, START), CLEANUP_DELETING);
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), CLEANUP_DELETING);
    assert_string_equal(said(), "*1\r\n$7\r\nDISCARD\r\n");
    assert_ptr_equal(dialect.in_transaction, &cleaner->exchange);
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), CLEANUP_DONE);
    assert_null(dialect.in_transaction);
}

static void refused_in_every_way_it_goes_on(void **state)
{
    enum cleanup_state answer;
    unsigned replies = 1;

    (void)state;
    begin(CLEANUP_TOKEN);
    sent(START);
    while (
        (answer = told_words(REPLY_ERROR, NOPERM, START)) == CLEANUP_DELETING)
        assert_true(++replies < 20);
    assert_int_equal(replies, 1 + 5 + 2);
    assert_int_equal(answer, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.next_try, START + 20 * NS_PER_MS);
    assert_null(dialect.in_transaction);
    assert_null(strstr(said(), "$3\r\nDEL\r\n"));
}

static void within_another_transaction_it_is_not_sent(void **state)
{
    struct exchange other;

    (void)state;
    begin_after_a_cut();
    dialect.in_transaction = &other;
    assert_false(cleaner_send(cleaner, &conn, &dialect, &facts, START));
    assert_int_equal(buf_len(&conn.out), 0); /* nor is the kill */
    assert_int_equal(conn.slots.count, 0);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.next_try, START + 20 * NS_PER_MS);

    /* Nor does it go on there. */
    dialect.in_transaction = NULL;
    sent(START);
    gone();
    dialect.in_transaction = &other;
    assert_int_equal(told_words(REPLY_ERROR, NOPERM, START), CLEANUP_IDLE);
    assert_int_equal(buf_len(&conn.out), 0);
    assert_int_equal(conn.slots.count, 0);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_ptr_equal(dialect.in_transaction, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaner_test(refused_scripts_are_not_the_end),
        cleaner_test(a_transaction_ends_it_too),
        cleaner_test(another_value_ends_it_when_the_transaction_has_ended),
        cleaner_test(refused_in_every_way_it_goes_on),
        cleaner_test(within_another_transaction_it_is_not_sent),
    };
    return cmocka_run_group_tests_name("cleaner_ways", tests, NULL, NULL);
}
