/* SPDX-License-Identifier: MIT */
/*
 * A debt on every way through its life: what is sent for it, what counts as
 * paid and what does not, and when time alone has paid it.
 */
#include "support/test.h"

#include "support/alloc.h"
#include "unit/debt_rig.h"

static void a_record_has_room_for_all(void **state)
{
    (void)state;
    char token[512];
    struct slice key = {"k\0y", 3}, all = {token, sizeof token};

    memset(token, 't', sizeof token);
    struct debt *d = debt_new(key, sizeof token);
    assert_non_null(d);
    debt_incur(d, all, 1000, false, START);
    assert_true(slice_equal(d->verb.key, key));
    assert_true(slice_equal(d->verb.token, all));
    assert_int_equal(d->verb.kind, VERB_RELEASE);
    memset(token, 'x', sizeof token); /* it has its own copy */
    assert_int_equal(d->verb.token.data[511], 't');
    debt_free(d);
    debt_free(NULL);
}

static void a_debt_is_due_at_once(void **state)
{
    (void)state;
    owe(false);
    assert_int_equal(debt->state, DEBT_OWED);
    assert_int_equal(debt->next_try, START);
    assert_int_equal(debt->until, START + TTL);
    assert_false(debt_over(debt, START + TTL - 1));
    assert_true(debt_over(debt, START + TTL));
    const char *text = sent(START);
    assert_contains(text, "EVAL\r\n"); /* whole, never EVALSHA */
    assert_contains(text, "$3\r\nkey\r\n");
    assert_contains(text, TOKEN);
    assert_null(strstr(text, "KILL"));
    assert_int_equal(conn.slots.count, 1);
    struct slot slot = *slots_at(&conn.slots, 0);
    assert_int_equal(slot.kind, SLOT_DEBT);
    assert_ptr_equal(slot.owner, debt);
    assert_int_equal(slot.bytes, strlen(text));
    assert_int_equal(slot.sent_at, START);
}

static void an_answer_pays_when_nothing_can_follow(void **state)
{
    (void)state;
    owe(false);
    sent(START);
    assert_true(answered(0, START + 1));
    sent(START);
    assert_true(answered(1, START + 1));
}

static void behind_the_acquire_it_is_exact(void **state)
{
    (void)state;
    owe(true);
    assert_int_equal(debt->until, NEVER); /* its connection is open */
    assert_false(debt_over(debt, START + 1000 * TTL));
    debt->exact = true;
    assert_null(strstr(sent(START), "KILL"));
    assert_true(answered(0, START + 1));
}

static void elsewhere_nothing_deleted_proves_nothing(void **state)
{
    (void)state;
    owe_after_a_cut();
    facts.run_id[0] = '\0';
    uint64_t now = START, interval = 20 * NS_PER_MS;
    while (now + interval < START + TTL) {
        sent(now);
        assert_false(answered(0, now));
        assert_int_equal(debt->state, DEBT_OWED);
        assert_int_equal(debt->next_try, now + interval);
        now += interval;
        interval = earlier(2 * interval, NS_PER_S);
    }
    assert_true(interval == NS_PER_S); /* the longest was reached */
    assert_false(answered(0, START + TTL - 1));
    assert_true(answered(0, START + TTL)); /* time has paid */
}

static void elsewhere_a_deletion_pays(void **state)
{
    (void)state;
    owe_after_a_cut();
    facts.run_id[0] = '\0';
    sent(START);
    assert_true(answered(1, START));
}

static void the_old_connection_is_killed_first(void **state)
{
    (void)state;
    owe_after_a_cut();
    assert_int_equal(debt->until, START + TTL);
    const char *text = sent(START);
    const char *kill = strstr(text, "KILL");
    assert_non_null(kill);
    assert_contains(text, "$2\r\nID\r\n$1\r\n7\r\n");
    assert_true(kill < strstr(text, "EVAL\r\n"));
    assert_int_equal(conn.slots.count, 2);
    assert_int_equal(slots_at(&conn.slots, 0)->kind, SLOT_KILL);
    assert_int_equal(slots_at(&conn.slots, 1)->kind, SLOT_DEBT);
    assert_ptr_equal(slots_at(&conn.slots, 0)->owner, debt);
    assert_int_equal(
        slots_at(&conn.slots, 0)->bytes + slots_at(&conn.slots, 1)->bytes,
        strlen(text));

    struct reply none = {.kind = REPLY_INTEGER, .integer = 0};
    debt_kill_answered(debt, &none); /* no such client: as good as killed */
    assert_true(answered(0, START + 1));
}

static void a_kill_that_was_refused_counts_for_nothing(void **state)
{
    (void)state;
    owe_after_a_cut();
    sent(START);
    struct reply error = {.kind = REPLY_ERROR, .bytes = slice_of("NOPERM")};
    debt_kill_answered(debt, &error);
    assert_false(answered(0, START + 1));
    assert_contains(sent(START + NS_PER_S), "KILL"); /* again */
    struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
    debt_kill_answered(debt, &one);
    assert_true(answered(0, START + NS_PER_S));
}

static void killed_once_is_enough(void **state)
{
    (void)state;
    owe_after_a_cut();
    struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
    debt_kill_answered(debt, &one);
    debt_cut_off(debt, 9, RUN_A, START + 1); /* its own one was lost now */
    assert_null(strstr(sent(START + 1), "KILL"));
    assert_true(answered(0, START + 2));
}

static void only_the_same_process_is_asked_to_kill(void **state)
{
    (void)state;
    owe_after_a_cut();
    memcpy(facts.run_id, RUN_B, sizeof facts.run_id);
    assert_null(strstr(sent(START), "KILL"));
    assert_false(answered(0, START));
    facts.run_id[0] = '\0';
    assert_null(strstr(sent(START), "KILL"));

    memcpy(facts.run_id, RUN_A, sizeof facts.run_id);
    debt->old_client = 0; /* it never told its id */
    assert_null(strstr(sent(START), "KILL"));
    debt->old_client = 7;
    conn.slots.first = conn.slots.count = 0;
    assert_true(debt_send(debt, &conn, &ladder, NULL, START));
    assert_int_equal(conn.slots.count, 1);
    debt->may_come = false;
    assert_null(strstr(sent(START), "KILL"));
}

/* Its acquire went on client 7; losing a later connection changes neither
 * that nor the time at which all is over. */
static void a_second_cut_changes_nothing(void **state)
{
    (void)state;
    owe_after_a_cut();
    sent(START);
    debt_cut_off(debt, 9, RUN_B, START + NS_PER_S);
    assert_int_equal(debt->state, DEBT_OWED);
    assert_int_equal(debt->old_client, 7);
    assert_string_equal(debt->old_run_id, RUN_A);
    assert_int_equal(debt->until, START + TTL);
}

/* The server may end each connection at this very command. */
static void cut_off_again_and_again_it_grows_rare(void **state)
{
    (void)state;
    owe_after_a_cut();
    assert_int_equal(debt->next_try, START); /* the first one was innocent */
    uint64_t now = START, interval = 20 * NS_PER_MS;
    for (int i = 0; i < 8; i++) {
        sent(now);
        debt_cut_off(debt, 9, RUN_A, now); /* the kill's slot */
        debt_cut_off(debt, 9, RUN_A, now); /* the other one's */
        assert_int_equal(debt->next_try, now + interval);
        now += interval;
        interval = earlier(2 * interval, NS_PER_S);
    }
    assert_true(interval == NS_PER_S);
}

static void a_release_that_was_cut_off_may_be_late(void **state)
{
    (void)state;
    owe(false);
    sent(START);
    debt_cut_off(debt, 7, RUN_A, START + NS_PER_S);
    assert_int_equal(debt->until, START + TTL);
    assert_null(strstr(sent(START + NS_PER_S), "KILL"));
    assert_true(answered(0, START + NS_PER_S));
}

static void an_answered_acquire_cannot_come_later(void **state)
{
    (void)state;
    owe(true);
    debt_acquire_answered(debt, START + NS_PER_S);
    assert_int_equal(debt->until, START + NS_PER_S + TTL);
    debt_cut_off(debt, 7, RUN_A, START + 2 * NS_PER_S);
    assert_int_equal(debt->until, START + NS_PER_S + TTL);
    assert_null(strstr(sent(START + 2 * NS_PER_S), "KILL"));
    assert_true(answered(0, START + 2 * NS_PER_S));
}

static void an_error_pays_nothing(void **state)
{
    (void)state;
    owe(false);
    sent(START);
    assert_false(refused(START));
    assert_int_equal(debt->state, DEBT_OWED);
    assert_int_equal(debt->next_try, START + 20 * NS_PER_MS);
    sent(START + 20 * NS_PER_MS);
    assert_true(refused(START + TTL));
}

/* A server that takes no scripts: the debt must not live for ever. */
static void an_error_behind_the_acquire_sets_an_end(void **state)
{
    (void)state;
    owe(true);
    debt->exact = true;
    sent(START);
    assert_false(refused(START + 5));
    assert_int_equal(debt->until, START + 5 + TTL);
    assert_false(refused(START + 9));
    assert_int_equal(debt->until, START + 5 + TTL);
}

static void no_memory_for_a_record(void **state)
{
    (void)state;
    alloc_fail_at(1);
    struct debt *d = debt_new(slice_of("key"), 40);
    assert_true(alloc_stop());
    assert_null(d);
}

/* Without memory nothing of it may be under way: a debt that time has paid is
 * freed as soon as it is not. */
static void no_memory_leaves_nothing_half_sent(void **state)
{
    (void)state;
    owe_after_a_cut();
    for (unsigned n = 1;; n++) {
        conn_free(&conn);
        assert_true(buf_append(&conn.out, "before", 6));
        alloc_fail_at(n);
        bool went = debt_send(debt, &conn, &ladder, &facts, START);
        bool failed = alloc_stop();
        if (!failed) {
            assert_true(went);
            assert_int_equal(conn.slots.count, 2);
            return;
        }
        assert_false(went);
        assert_int_equal(debt->state, DEBT_OWED);
        assert_int_equal(conn.slots.count, 0);
        assert_int_equal(buf_len(&conn.out), 6);
        /* ... and it is not tried at once again. */
        assert_true(debt->next_try > START);
        debt->next_try = START;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        debt_test(a_record_has_room_for_all),
        debt_test(a_debt_is_due_at_once),
        debt_test(an_answer_pays_when_nothing_can_follow),
        debt_test(behind_the_acquire_it_is_exact),
        debt_test(elsewhere_nothing_deleted_proves_nothing),
        debt_test(elsewhere_a_deletion_pays),
        debt_test(the_old_connection_is_killed_first),
        debt_test(a_kill_that_was_refused_counts_for_nothing),
        debt_test(killed_once_is_enough),
        debt_test(only_the_same_process_is_asked_to_kill),
        debt_test(a_second_cut_changes_nothing),
        debt_test(cut_off_again_and_again_it_grows_rare),
        debt_test(a_release_that_was_cut_off_may_be_late),
        debt_test(an_answered_acquire_cannot_come_later),
        debt_test(an_error_pays_nothing),
        debt_test(an_error_behind_the_acquire_sets_an_end),
        debt_test(no_memory_for_a_record),
        debt_test(no_memory_leaves_nothing_half_sent),
    };
    return cmocka_run_group_tests_name("debt", tests, NULL, NULL);
}
