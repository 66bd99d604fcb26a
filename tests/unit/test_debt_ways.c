/* SPDX-License-Identifier: MIT */
/*
 * A debt at a server that takes no scripts: it is paid in another way, step by
 * step, and never within somebody else's transaction.
 */
#include "support/test.h"

#include "unit/debt_rig.h"

#define NOPERM "NOPERM this user has no permissions"

/* Every step of another way goes out behind its answers, in its own slots. */
static void refused_scripts_are_not_the_end(void **state)
{
    (void)state;
    owe(false);
    sent(START);
    gone();
    assert_int_equal(told_words(REPLY_ERROR, NOPERM, START + 1), DEBT_WAITS);
    assert_int_equal(debt->state, DEBT_SENT);
    assert_string_equal(said(), "*4\r\n$5\r\nDELEX\r\n$3\r\nkey\r\n"
                                "$4\r\nIFEQ\r\n$36\r\n" TOKEN "\r\n");
    assert_int_equal(conn.slots.count, 1);
    struct slot slot = *slots_at(&conn.slots, 0);
    assert_int_equal(slot.kind, SLOT_DEBT);
    assert_ptr_equal(slot.owner, debt);
    assert_int_equal(slot.bytes, strlen(said()));
    assert_int_equal(slot.sent_at, START + 1);
    assert_int_equal(told_number(1, START + 2), DEBT_PAID);
}

/* On the way that needs a transaction: nothing else goes meanwhile. */
static void watch_until_the_value(void)
{
    ladder.at[VERB_RELEASE] = 3;
    owe(false);
    assert_contains(sent(START), "$5\r\nWATCH\r\n");
    assert_int_equal(conn.slots.count, 5);
    assert_int_equal(slots_at(&conn.slots, 0)->bytes, strlen(said()));
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(slots_at(&conn.slots, i)->bytes, 0);
    assert_ptr_equal(ladder.alone, &debt->exchange);
    gone();
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), DEBT_WAITS);
}

static void a_transaction_pays_too(void **state)
{
    (void)state;
    watch_until_the_value();
    assert_int_equal(told_words(REPLY_STRING, TOKEN, START), DEBT_WAITS);
    assert_int_equal(told_number(500, START), DEBT_WAITS);
    assert_int_equal(told_number(1, START), DEBT_WAITS);
    assert_int_equal(buf_len(&conn.out), 0);
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), DEBT_WAITS);
    assert_contains(said(), "$3\r\nDEL\r\n$3\r\nkey\r\n");
    assert_contains(said(), "$4\r\nEXEC\r\n");
    assert_int_equal(conn.slots.count, 2);
    assert_int_equal(told_words(REPLY_STATUS, "QUEUED", START), DEBT_WAITS);
    struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
    struct reply result = {.kind = REPLY_ARRAY, .count = 1, .items = &one};
    assert_int_equal(told(result, START), DEBT_PAID);
    assert_null(ladder.alone);
}

static void another_value_pays_when_the_transaction_has_ended(void **state)
{
    (void)state;
    watch_until_the_value();
    assert_int_equal(told_words(REPLY_STRING, "another", START), DEBT_WAITS);
    assert_int_equal(told_number(500, START), DEBT_WAITS);
    assert_int_equal(told_number(1, START), DEBT_WAITS);
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), DEBT_WAITS);
    assert_string_equal(said(), "*1\r\n$7\r\nDISCARD\r\n");
    assert_ptr_equal(ladder.alone, &debt->exchange);
    assert_int_equal(told_words(REPLY_STATUS, "OK", START), DEBT_PAID);
    assert_null(ladder.alone);
}

static void refused_in_every_way_it_stands(void **state)
{
    enum debt_answer answer;
    unsigned replies = 1;

    (void)state;
    owe(false);
    sent(START);
    while ((answer = told_words(REPLY_ERROR, NOPERM, START)) == DEBT_WAITS)
        assert_true(++replies < 20);
    assert_int_equal(replies, 1 + 1 + 1 + 5 + 2);
    assert_int_equal(answer, DEBT_STANDS);
    assert_int_equal(debt->state, DEBT_OWED);
    assert_int_equal(debt->next_try, START + 20 * NS_PER_MS);
    assert_null(ladder.alone);
    assert_null(strstr(said(), "$3\r\nDEL\r\n"));
}

static void within_another_transaction_it_is_not_sent(void **state)
{
    struct exchange other;

    (void)state;
    owe_after_a_cut();
    ladder.alone = &other;
    assert_false(debt_send(debt, &conn, &ladder, &facts, START));
    assert_int_equal(buf_len(&conn.out), 0); /* nor is the kill */
    assert_int_equal(conn.slots.count, 0);
    assert_int_equal(debt->state, DEBT_OWED);
    assert_int_equal(debt->next_try, START + 20 * NS_PER_MS);

    /* Nor does it go on there. */
    ladder.alone = NULL;
    sent(START);
    gone();
    ladder.alone = &other;
    assert_int_equal(told_words(REPLY_ERROR, NOPERM, START), DEBT_STANDS);
    assert_int_equal(buf_len(&conn.out), 0);
    assert_int_equal(conn.slots.count, 0);
    assert_int_equal(debt->state, DEBT_OWED);
    assert_ptr_equal(ladder.alone, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        debt_test(refused_scripts_are_not_the_end),
        debt_test(a_transaction_pays_too),
        debt_test(another_value_pays_when_the_transaction_has_ended),
        debt_test(refused_in_every_way_it_stands),
        debt_test(within_another_transaction_it_is_not_sent),
    };
    return cmocka_run_group_tests_name("debt_ways", tests, NULL, NULL);
}
