/* SPDX-License-Identifier: MIT */
/*
 * A cleaner on every way through its life: what it sends, which answers end it
 * and which do not, and when it expires.
 */
#include "support/test.h"

#include "support/alloc.h"
#include "unit/cleaner_rig.h"

static void a_record_has_room_for_all(void **state)
{
    (void)state;
    char token[512];
    struct slice key = {"k\0y", 3}, all = {token, sizeof(token)};
    struct verb of = {.token = all, .ttl_ms = 1000};

    memset(token, 't', sizeof(token));
    struct cleaner *d = cleaner_new(key, sizeof(token));
    assert_non_null(d);
    cleaner_start(d, CLEANUP_TOKEN, &of, START);
    assert_true(slice_equal(d->verb.key, key));
    assert_true(slice_equal(d->verb.token, all));
    assert_int_equal(d->verb.kind, VERB_RELEASE);
    memset(token, 'x', sizeof(token)); /* it has its own copy */
    assert_int_equal(d->verb.token.data[511], 't');
    cleaner_free(d);
    cleaner_free(NULL);
}

static void it_is_due_at_once(void **state)
{
    (void)state;
    begin(CLEANUP_TOKEN);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.next_try, START);
    assert_int_equal(cleaner->cleanup.until, START + TTL);
    assert_false(expired(START + TTL - 1));
    assert_true(expired(START + TTL));
    const char *text = sent(START);
    assert_contains(text, "EVAL\r\n"); /* whole, never EVALSHA */
    assert_contains(text, "$3\r\nkey\r\n");
    assert_contains(text, TOKEN);
    assert_null(strstr(text, "KILL"));
    assert_int_equal(conn.slots.count, 1);
    struct slot slot = *slots_at(&conn.slots, 0);
    assert_int_equal(slot.kind, SLOT_DELETE);
    assert_ptr_equal(slot.owner, cleaner);
    assert_int_equal(slot.bytes, strlen(text));
    assert_int_equal(slot.sent_at, START);
}

/* One that may be in line counts as alive there for its window, and is granted
 * a lease at the end of it at the latest; and what removes it from the line is
 * its whole place. */
static void a_token_in_line_lasts_longer(void **state)
{
    (void)state;
    struct verb of = {.token = slice_of(TOKEN),
        .ttl_ms = TTL_MS,
        .client = slice_of("c"),
        .window = 3 * WINDOW_TICKS};
    cleaner_start(cleaner, CLEANUP_TOKEN, &of, START);
    assert_true(slice_equal(cleaner->verb.client, of.client));
    assert_int_equal(cleaner->verb.window, of.window);
    assert_int_equal(cleaner->verb.ttl_ms, of.ttl_ms);
    assert_false(expired(START + TTL + 3 * NS_PER_S - 1));
    assert_true(expired(START + TTL + 3 * NS_PER_S));
    /* The record is used again, for a token that is in no line. */
    cleaner = cleaner_reuse(cleaner, slice_of("key"), 64);
    assert_non_null(cleaner);
    begin(CLEANUP_TOKEN);
    assert_int_equal(cleaner->verb.client.len, 0);
    assert_int_equal(cleaner->verb.window, 0);
    assert_true(expired(START + TTL));
}

static void an_answer_ends_it_when_nothing_can_follow(void **state)
{
    (void)state;
    begin(CLEANUP_TOKEN);
    sent(START);
    assert_true(answered(0, START + 1));
    sent(START);
    assert_true(answered(1, START + 1));
}

static void behind_the_acquire_it_is_exact(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_SENT);
    assert_int_equal(
        cleaner->cleanup.until, NEVER); /* its connection is open */
    assert_false(expired(START + 1000 * TTL));
    assert_null(strstr(sent(START), "KILL"));
    assert_true(answered(0, START + 1));
}

static void elsewhere_nothing_deleted_proves_nothing(void **state)
{
    (void)state;
    begin_after_a_cut();
    facts.run_id[0] = '\0';
    uint64_t now = START, interval = 20 * NS_PER_MS;
    while (now + interval < START + TTL) {
        sent(now);
        assert_false(answered(0, now));
        assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
        assert_int_equal(cleaner->cleanup.next_try, now + interval);
        now += interval;
        interval = earlier(2 * interval, NS_PER_S);
    }
    assert_true(interval == NS_PER_S); /* the longest was reached */
    assert_false(answered(0, START + TTL - 1));
    assert_true(answered(0, START + TTL)); /* it has expired */
}

static void elsewhere_a_deletion_ends_it(void **state)
{
    (void)state;
    begin_after_a_cut();
    facts.run_id[0] = '\0';
    sent(START);
    assert_true(answered(1, START));
}

static void the_old_connection_is_killed_first(void **state)
{
    (void)state;
    begin_after_a_cut();
    assert_int_equal(cleaner->cleanup.until, START + TTL);
    const char *text = sent(START);
    const char *kill = strstr(text, "KILL");
    assert_non_null(kill);
    assert_contains(text, "$2\r\nID\r\n$1\r\n7\r\n");
    assert_true(kill < strstr(text, "EVAL\r\n"));
    assert_int_equal(conn.slots.count, 2);
    assert_int_equal(slots_at(&conn.slots, 0)->kind, SLOT_KILL);
    assert_int_equal(slots_at(&conn.slots, 1)->kind, SLOT_DELETE);
    assert_ptr_equal(slots_at(&conn.slots, 0)->owner, cleaner);
    assert_int_equal(
        slots_at(&conn.slots, 0)->bytes + slots_at(&conn.slots, 1)->bytes,
        strlen(text));

    struct reply none = {.kind = REPLY_INTEGER, .integer = 0};
    /* No such client: that is as good as killed. */
    kill_answered(&none, START);
    assert_true(answered(0, START + 1));
}

static void a_kill_that_was_refused_counts_for_nothing(void **state)
{
    (void)state;
    begin_after_a_cut();
    sent(START);
    struct reply error = {.kind = REPLY_ERROR, .bytes = slice_of("NOPERM")};
    kill_answered(&error, START);
    assert_false(answered(0, START + 1));
    assert_contains(sent(START + NS_PER_S), "KILL"); /* again */
    struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
    kill_answered(&one, START);
    assert_true(answered(0, START + NS_PER_S));
}

static void killed_once_is_enough(void **state)
{
    (void)state;
    begin_after_a_cut();
    struct reply one = {.kind = REPLY_INTEGER, .integer = 1};
    kill_answered(&one, START);
    cleanup_connection_lost(
        &cleaner->cleanup, 9, RUN_A, START + 1); /* its own one was lost now */
    assert_null(strstr(sent(START + 1), "KILL"));
    assert_true(answered(0, START + 2));
}

static void only_the_same_process_is_asked_to_kill(void **state)
{
    (void)state;
    begin_after_a_cut();
    memcpy(facts.run_id, RUN_B, sizeof(facts.run_id));
    assert_null(strstr(sent(START), "KILL"));
    assert_false(answered(0, START));
    facts.run_id[0] = '\0';
    assert_null(strstr(sent(START), "KILL"));

    memcpy(facts.run_id, RUN_A, sizeof(facts.run_id));
    cleaner->cleanup.client_id = 0; /* it never told its id */
    assert_null(strstr(sent(START), "KILL"));
    cleaner->cleanup.client_id = 7;
    cleaner->cleanup.acquire = ACQUIRE_OVER;
    assert_null(strstr(sent(START), "KILL"));
}

/* Its acquire went on client 7; losing a later connection changes neither
 * that nor the time at which all is over. */
static void a_second_cut_changes_nothing(void **state)
{
    (void)state;
    begin_after_a_cut();
    sent(START);
    cleanup_connection_lost(&cleaner->cleanup, 9, RUN_B, START + NS_PER_S);
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.client_id, 7);
    assert_string_equal(cleaner->cleanup.run_id, RUN_A);
    assert_int_equal(cleaner->cleanup.until, START + TTL);
}

/* The server may end each connection at this very command. */
static void cut_off_again_and_again_it_grows_rare(void **state)
{
    (void)state;
    begin_after_a_cut();
    assert_int_equal(
        cleaner->cleanup.next_try, START); /* the first one was innocent */
    uint64_t now = START, interval = 20 * NS_PER_MS;
    for (int i = 0; i < 8; i++) {
        sent(now);
        cleanup_connection_lost(
            &cleaner->cleanup, 9, RUN_A, now); /* the kill's slot */
        cleanup_connection_lost(
            &cleaner->cleanup, 9, RUN_A, now); /* the other one's */
        assert_int_equal(cleaner->cleanup.next_try, now + interval);
        now += interval;
        interval = earlier(2 * interval, NS_PER_S);
    }
    assert_true(interval == NS_PER_S);
}

static void a_release_that_was_cut_off_may_be_late(void **state)
{
    (void)state;
    begin(CLEANUP_TOKEN);
    sent(START);
    cleanup_connection_lost(&cleaner->cleanup, 7, RUN_A, START + NS_PER_S);
    assert_int_equal(cleaner->cleanup.until, START + TTL);
    assert_null(strstr(sent(START + NS_PER_S), "KILL"));
    assert_true(answered(0, START + NS_PER_S));
}

static void an_answered_acquire_cannot_come_later(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_SENT);
    cleanup_acquire_answered(&cleaner->cleanup, false, START + NS_PER_S);
    assert_int_equal(cleaner->cleanup.until, START + NS_PER_S + TTL);
    cleanup_connection_lost(&cleaner->cleanup, 7, RUN_A, START + 2 * NS_PER_S);
    assert_int_equal(cleaner->cleanup.until, START + NS_PER_S + TTL);
    assert_null(strstr(sent(START + 2 * NS_PER_S), "KILL"));
    assert_true(answered(0, START + 2 * NS_PER_S));
}

static void an_error_proves_nothing(void **state)
{
    (void)state;
    begin(CLEANUP_TOKEN);
    sent(START);
    assert_false(refused(START));
    assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
    assert_int_equal(cleaner->cleanup.next_try, START + 20 * NS_PER_MS);
    sent(START + 20 * NS_PER_MS);
    assert_true(refused(START + TTL));
}

/* A server that takes no scripts: it must not go on for ever. */
static void an_error_behind_the_acquire_sets_an_end(void **state)
{
    (void)state;
    begin(CLEANUP_ACQUIRE_SENT);
    sent(START);
    assert_false(refused(START + 5));
    assert_int_equal(cleaner->cleanup.until, START + 5 + TTL);
    assert_false(refused(START + 9));
    assert_int_equal(cleaner->cleanup.until, START + 5 + TTL);
}

static void no_memory_for_a_record(void **state)
{
    (void)state;
    alloc_fail_at(1);
    struct cleaner *d = cleaner_new(slice_of("key"), 40);
    assert_true(alloc_stop());
    assert_null(d);
}

/* Without memory nothing of it may be under way: one that has expired is
 * freed as soon as it is not. */
static void no_memory_leaves_nothing_half_sent(void **state)
{
    (void)state;
    begin_after_a_cut();
    for (unsigned n = 1;; n++) {
        conn_free(&conn);
        assert_true(buf_append(&conn.out, "before", 6));
        alloc_fail_at(n);
        bool went = cleaner_send(cleaner, &conn, &dialect, &facts, START);
        bool failed = alloc_stop();
        if (!failed) {
            assert_true(went);
            assert_int_equal(conn.slots.count, 2);
            return;
        }
        assert_false(went);
        assert_int_equal(cleaner->cleanup.state, CLEANUP_IDLE);
        assert_int_equal(conn.slots.count, 0);
        assert_int_equal(buf_len(&conn.out), 6);
        /* ... and it is not tried at once again. */
        assert_true(cleaner->cleanup.next_try > START);
        cleaner->cleanup.next_try = START;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaner_test(a_record_has_room_for_all),
        cleaner_test(it_is_due_at_once),
        cleaner_test(a_token_in_line_lasts_longer),
        cleaner_test(an_answer_ends_it_when_nothing_can_follow),
        cleaner_test(behind_the_acquire_it_is_exact),
        cleaner_test(elsewhere_nothing_deleted_proves_nothing),
        cleaner_test(elsewhere_a_deletion_ends_it),
        cleaner_test(the_old_connection_is_killed_first),
        cleaner_test(a_kill_that_was_refused_counts_for_nothing),
        cleaner_test(killed_once_is_enough),
        cleaner_test(only_the_same_process_is_asked_to_kill),
        cleaner_test(a_second_cut_changes_nothing),
        cleaner_test(cut_off_again_and_again_it_grows_rare),
        cleaner_test(a_release_that_was_cut_off_may_be_late),
        cleaner_test(an_answered_acquire_cannot_come_later),
        cleaner_test(an_error_proves_nothing),
        cleaner_test(an_error_behind_the_acquire_sets_an_end),
        cleaner_test(no_memory_for_a_record),
        cleaner_test(no_memory_leaves_nothing_half_sent),
    };
    return cmocka_run_group_tests_name("cleaner", tests, NULL, NULL);
}
