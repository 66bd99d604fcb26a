/* SPDX-License-Identifier: MIT */
/*
 * What one cleaner sends, at a server without a socket: a connection that only
 * collects what is to go out. When it is sent, and what ends it, is in
 * test_cleanup.c; with answers and requests, in unit/scenes/request.scenes.
 */
#include "support/test.h"

#include "base/deadline.h"
#include "net/cleaner.h"
#include "support/alloc.h"

#define START UINT64_C(5000000000)
#define TTL_MS 3000
#define TTL (TTL_MS * NS_PER_MS)
#define TOKEN "6f1d7c1e-0000-4000-8000-0123456789ab"
#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct conn conn;
static struct dialect dialect; /* of it */
static struct facts facts;     /* of the connection there is now */
static struct cleaner *cleaner;

static int set_up(void **state)
{
    (void)state;
    conn = (struct conn){.transport = TRANSPORT_CLOSED};
    dialect_begin(&dialect);
    facts = (struct facts){.client_id = 9};
    memcpy(facts.run_id, RUN_A, sizeof(facts.run_id));
    cleaner = cleaner_new(slice_of("key"), 64);
    return !cleaner;
}

static int tear_down(void **state)
{
    (void)state;
    cleaner_free(cleaner);
    cleaner = NULL;
    conn_free(&conn);
    return 0;
}

static void begin(enum cleanup_cause cause)
{
    struct verb of = {.token = slice_of(TOKEN), .ttl_ms = TTL_MS};
    cleaner_start(cleaner, cause, &of, START);
}

/* Would it expire by then? */
static bool expired(uint64_t now)
{
    struct cleanup copy = cleaner->cleanup;
    cleanup_tick(&copy, now);
    return copy.state == CLEANUP_GIVEN_UP;
}

/* What is to go out, as text (zero bytes do not occur). */
static const char *said(void)
{
    static char text[16384];
    assert_true(buf_len(&conn.out) < sizeof(text));
    if (buf_len(&conn.out) > 0)
        memcpy(text, buf_head(&conn.out), buf_len(&conn.out));
    text[buf_len(&conn.out)] = '\0';
    return text;
}

/* Sends what is due at now, and says what that is. */
static const char *sent(uint64_t now)
{
    conn.slots.first = conn.slots.count = 0;
    buf_clear(&conn.out);
    assert_true(cleaner_send(cleaner, &conn, &dialect, &facts, now));
    assert_true(cleaner->cleanup.state == CLEANUP_DELETING ||
                cleaner->cleanup.state == CLEANUP_KILL_DELETING);
    return said();
}

/* Its acquire went on a connection that is gone: client 7 of A. */
static void begin_after_a_cut(void)
{
    begin(CLEANUP_ACQUIRE_SENT);
    cleanup_connection_lost(&cleaner->cleanup, 7, RUN_A, START);
}

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

#define cleaner_test(name)                                                     \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cleaner_test(a_record_has_room_for_all),
        cleaner_test(it_is_due_at_once),
        cleaner_test(a_token_in_line_lasts_longer),
        cleaner_test(the_old_connection_is_killed_first),
        cleaner_test(no_memory_for_a_record),
        cleaner_test(no_memory_leaves_nothing_half_sent),
    };
    return cmocka_run_group_tests_name("cleaner", tests, NULL, NULL);
}
