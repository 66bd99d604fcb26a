/* SPDX-License-Identifier: MIT */
/*
 * Inspect and break, leases that end, keys of another type and names of any
 * bytes: alike with every strategy.
 */
#include "live/strategies_rig.h"

#define KEY "invoice:42"
#define TTL 20000

static nxl_client *client;
static nxl_lock *lock;
static nxl_holder holder = NXL_HOLDER_INIT;

static int open_client(void **state)
{
    place_clean(state);
    client = learnt_client("");
    lock = new_lock(client, KEY, TTL);
    memset(&holder, 0, sizeof(holder));
    holder.size = sizeof(holder);
    /* How a value that is no lock of ours is removed here. */
    stranger_sets(KEY, "other", 0);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_result(nxl_lock_break(lock, &holder), NXL_OK, lock);
    return 0;
}

static int close_client(void **state)
{
    end(lock, client);
    return place_check(state);
}

static int inspect(void)
{
    return nxl_lock_inspect(lock, &holder);
}

/* Bytes that a command line would not carry. */
static void set_bytes(const char *key, const char *value, size_t len)
{
    freeReplyObject(
        redis_commandf(&server, "SET %s %b PX 60000", key, value, len));
}

static void *filled(size_t len)
{
    char *value = test_malloc(len);
    memset(value, 'v', len);
    return value;
}

/* ------------------------------------------------------------------ inspect */

static void inspect_free(void **state)
{
    assert_by(here->inspect, inspect(), NXL_FREE, lock);
    assert_by(here->inspect, nxl_lock_inspect(lock, NULL), NXL_FREE, lock);
}

static void inspect_held(void **state)
{
    nxl_lock *named =
        lock_with(client, KEY, .ttl_ms = TTL, .label = "db7:41233:backup");
    assert_result(nxl_lock_acquire(named, 0), NXL_OK, named);
    assert_by(here->inspect, inspect(), NXL_OK, lock);
    assert_false(holder.ours);
    assert_value(KEY, holder.value);
    assert_ours(KEY, named);
    if (stamps_here()) /* who, but not by name */
        assert_null(holder.label);
    else
        assert_string_equal(holder.label, "db7:41233:backup");
    assert_between(holder.left_ms, TTL - 2000, TTL + later_ms());
    assert_result(nxl_lock_inspect(named, &holder), NXL_OK, named);
    assert_true(holder.ours);
    assert_int_equal(holder.value_length,
        stamps_here() ? 10 + 128 : strlen(nxl_lock_token(named)));
    assert_false(holder.truncated);
    nxl_lock_free(named);
}

static void inspect_foreign(void **state)
{
    stranger_sets(KEY, "other", 5000);
    assert_by(here->inspect, inspect(), NXL_OK, lock);
    assert_string_equal(holder.value, "other");
    assert_null(holder.label);
    assert_between(holder.left_ms, 1, 5000);

    stranger_sets(KEY, "other", 0);
    assert_result(inspect(), NXL_OK, lock);
    assert_int_equal(holder.left_ms, -1);

    set_bytes(KEY, "a\0b\r\n\xff", 6);
    assert_by(here->inspect, inspect(), NXL_OK, lock);
    assert_int_equal(holder.value_length, 6);
    assert_memory_equal(holder.value, "a\0b\r\n\xff", 7);
}

static void inspect_empty(void **state)
{
    set_bytes(KEY, "", 0);
    /* The script asks whether the key exists, too, by which reading is counted.
     */
    assert_result(inspect(), NXL_OK, lock);
    assert_int_equal(holder.value_length, 0);
    assert_false(holder.truncated);
    assert_between(holder.left_ms, 50000, 60000);
    assert_result(nxl_lock_break(lock, &holder), NXL_E_INVALID, lock);
    assert_true(redis_exists(&server, KEY));
}

static void inspect_long(void **state)
{
    static const size_t lengths[] = {510, 511, 512, 100 * 1024};
    for (size_t i = 0; i < 4; i++) {
        char *value = filled(lengths[i]);
        set_bytes(KEY, value, lengths[i]);
        assert_by(here->inspect, inspect(), NXL_OK, lock);
        assert_int_equal(holder.truncated, i > 1);
        assert_int_equal(holder.value_length, i > 0 ? 511 : 510);
        assert_memory_equal(holder.value, value, holder.value_length);
        test_free(value);
    }
}

/* -------------------------------------------------------------------- break */

/* A value is compared as it is, whatever it means: by the best way there. */
static enum way breaks(void)
{
    return stamps_here() && here->kind != AGED ? BY_SCRIPT : here->release;
}

static void break_what_was_seen(void **state)
{
    nxl_lock *owner = new_lock(client, KEY, TTL);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(inspect(), NXL_OK, lock);
    assert_by(breaks(), nxl_lock_break(lock, &holder), NXL_OK, lock);
    assert_false(redis_exists(&server, KEY));
    assert_by(breaks(), nxl_lock_break(lock, &holder), NXL_FREE, lock);
    assert_result(nxl_lock_extend(owner, 0), NXL_LOST, owner);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(nxl_lock_inspect(owner, &holder), NXL_OK, owner);
    assert_result(nxl_lock_break(owner, &holder), NXL_OK, owner);
    assert_false(nxl_lock_held(owner)); /* its own, so it knows */
    nxl_lock_free(owner);
}

static void break_spares_what_came_since(void **state)
{
    static const char *const later[] = {
        "a\0b\r\n\xfe", "a\0b\r\n", "a\0b\r\n\xff\n"};
    static const size_t lengths[] = {6, 5, 7};

    set_bytes(KEY, "a\0b\r\n\xff", 6);
    assert_result(inspect(), NXL_OK, lock);
    for (int i = 0; i < 3; i++) {
        set_bytes(KEY, later[i], lengths[i]);
        assert_by(breaks(), nxl_lock_break(lock, &holder), NXL_FREE, lock);
        assert_true(redis_exists(&server, KEY));
    }
    assert_result(inspect(), NXL_OK, lock);
    assert_by(breaks(), nxl_lock_break(lock, &holder), NXL_OK, lock);
    assert_false(redis_exists(&server, KEY));
}

static void break_the_longest(void **state)
{
    char *value = filled(512);
    set_bytes(KEY, value, 512);
    assert_result(inspect(), NXL_OK, lock);
    assert_result(nxl_lock_break(lock, &holder), NXL_E_INVALID, lock);
    assert_contains(nxl_lock_errmsg(lock), "too long to compare");
    holder.truncated = false; /* whose first 511 bytes are all they asked */
    (void)!nxl_lock_break(lock, &holder);
    assert_true(redis_exists(&server, KEY));
    set_bytes(KEY, value, 511);
    assert_result(inspect(), NXL_OK, lock);
    assert_by(breaks(), nxl_lock_break(lock, &holder), NXL_OK, lock);
    assert_false(redis_exists(&server, KEY));
    test_free(value);
}

/* ------------------------------------------------------------------- expiry */

/* Is the clock of this machine, and of the server, well before its next second?
 */
static bool second_is_young(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_nsec < 300000000;
}

/* Its time is over some seconds after the lease, and its key stays: the next
 * one gets it then, and what the late one does takes nothing from him. */
static void times_end(void)
{
    /* Without WATCH, to extend a lease into another second is to write a time
     * that is LONGEST_LOCK_MS away. */
    if (bare_here())
        assert_eventually(second_is_young());
    nxl_lock *brief = new_lock(client, KEY, 80);
    assert_result(nxl_lock_acquire(brief, 0), NXL_OK, brief);
    int64_t start = test_now_ms();
    uint64_t deadline = nxl_lock_deadline(brief);
    assert_true(deadline <= nxl_now_ns() + LEASE_NS(80));
    assert_result(nxl_lock_extend(brief, 200), NXL_OK, brief);
    deadline = nxl_lock_deadline(brief);
    int64_t end = test_now_ms() + left_of_stamp(KEY);
    int rc = nxl_lock_acquire(lock, 10000);
    if (rc == NXL_BUSY && bare_here()) {
        /* That happened, or an answer came too late, on a busy machine: without
         * WATCH what such a GETSET wrote cannot be taken back
         * (docs/guarantees.md). */
        redis_run(&server, "DEL", KEY, NULL);
        nxl_lock_free(brief);
        times_end();
        return;
    }
    assert_result(rc, NXL_OK, lock);
    assert_true(nxl_now_ns() > deadline);
    assert_true(test_now_ms() >= end - 5);
    assert_between(test_now_ms() - start, 200,
        (bare_here() ? 80 : 200) + later_ms() + LATE_MS);
    assert_false(nxl_lock_held(brief));
    assert_result(nxl_lock_extend(brief, 0), NXL_LOST, brief);
    assert_result(nxl_lock_release(brief), NXL_LOST, brief);
    nxl_lock_free(brief);
    assert_result(look(lock), NXL_OK, lock);
    assert_ours(KEY, lock);
}

static void leases_end(void **state)
{
    if (stamps_here()) {
        times_end();
        return;
    }
    nxl_lock *brief = new_lock(client, KEY, 80);
    for (int i = 0; i < 3; i++) {
        int64_t start = test_now_ms();
        assert_result(nxl_lock_acquire(brief, 0), NXL_OK, brief);
        int64_t left = redis_pttl(&server, KEY); /* -2: over already */
        assert_true(left != -1 && left <= 80);
        bool extends = i == 1;
        if (extends) {
            int rc = nxl_lock_extend(brief, 200);
            if (rc == NXL_LOST && test_now_ms() - start >= 70) {
                i--; /* this machine was too slow for so short a lease */
                assert_eventually(!redis_exists(&server, KEY));
                continue;
            }
            assert_result(rc, NXL_OK, brief);
            assert_between(redis_pttl(&server, KEY), 81, 200);
        }
        assert_eventually(!redis_exists(&server, KEY));
        assert_between(
            test_now_ms() - start, 60, (extends ? 200 : 80) + LATE_MS);
        assert_false(nxl_lock_held(brief));
        /* The server is not asked: its time is over. */
        if (i == 0)
            assert_result(nxl_lock_extend(brief, 0), NXL_LOST, brief);
        if (i == 1)
            assert_result(nxl_lock_release(brief), NXL_LOST, brief);
        assert_false(redis_exists(&server, KEY));
    }
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(brief);
    assert_result(look(lock), NXL_OK, lock);
    assert_value(KEY, nxl_lock_token(lock));
}

/* ------------------------------------------------------------- another type */

/* Is this user denied the script that knows the locks that several hold? */
static bool script_is_denied(void)
{
    return here->extend == BY_WATCH && here->without &&
           (here->kind == USER ||
               (here->kind == AGED && strcmp(here->words, AGED_NOPERM) == 0));
}

static void another_type(void **state)
{
    bool denied = script_is_denied();
    redis_run(&server, "RPUSH", KEY, "a", NULL);
    assert_by(here->acquire, nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    int result = denied ? NXL_E_DENIED : NXL_E_WRONG_TYPE;
    if (here->inspect == BY_SCRIPT)
        assert_by(BY_SCRIPT, inspect(), result, lock);
    assert_result(inspect(), result, lock); /* else it tries the script too */
    assert_contains(
        nxl_lock_errmsg(lock), denied ? "'evalsha'" : "wrong kind of value");
    for (int i = 0; i < 2; i++) {
        redis_run(&server, "DEL", KEY, NULL);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        redis_run(&server, "DEL", KEY, NULL);
        redis_run(&server, "RPUSH", KEY, nxl_lock_token(lock), NULL);
        if (i == 0)
            assert_by(
                here->extend, nxl_lock_extend(lock, 50000), NXL_LOST, lock);
        else
            assert_by(here->release, nxl_lock_release(lock), NXL_LOST, lock);
        assert_false(nxl_lock_held(lock));
        assert_int_equal(redis_run(&server, "LLEN", KEY, NULL), 1);
        assert_int_equal(redis_pttl(&server, KEY), -1);
    }
    nxl_holder seen = {.size = sizeof(seen), .value = "a", .value_length = 1};
    nxl_lock *other = new_lock(client, KEY, TTL);
    assert_by(breaks(), nxl_lock_break(other, &seen), NXL_FREE, other);
    nxl_lock_free(other);
    assert_int_equal(redis_run(&server, "LLEN", KEY, NULL), 1);
    assert_eventually(nobody_in_multi());
}

/* -------------------------------------------------------------------- names */

static void cycle(const char *name, size_t len)
{
    nxl_lock *named =
        lock_with(client, name, .ttl_ms = TTL, .name_length = len);
    assert_by(here->acquire, nxl_lock_acquire(named, 0), NXL_OK, named);
    redisReply *reply = redis_commandf(&server, "GET %b", name, len);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    if (stamps_here())
        assert_true(
            stamp_is_of(slice_of(reply->str), slice_of(nxl_lock_token(named))));
    else
        assert_string_equal(reply->str, nxl_lock_token(named));
    freeReplyObject(reply);
    assert_by(here->extend, nxl_lock_extend(named, 50000), NXL_OK, named);
    assert_by(here->inspect, nxl_lock_inspect(named, &holder), NXL_OK, named);
    assert_true(holder.ours);
    assert_by(here->release, nxl_lock_release(named), NXL_OK, named);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    nxl_lock_free(named);
}

static void names_of_any_bytes(void **state)
{
    char every[256];
    for (size_t i = 0; i < sizeof(every); i++)
        every[i] = (char)i;
    cycle(every, sizeof(every));
    cycle("\0", 1);
    cycle("a\r\n$5\r\nDEL b\r\n", 15);
    cycle("{tag} %s %b *", 13);
    char *longest = filled(NXL_NAME_MAX);
    cycle(longest, NXL_NAME_MAX);
    test_free(longest);
}

#define strategies_test(function)                                              \
    cmocka_unit_test_setup_teardown(function, open_client, close_client)

int main(void)
{
    const struct CMUnitTest tests[] = {
        strategies_test(inspect_free),
        strategies_test(inspect_held),
        strategies_test(inspect_foreign),
        strategies_test(inspect_empty),
        strategies_test(inspect_long),
        strategies_test(break_what_was_seen),
        strategies_test(break_spares_what_came_since),
        strategies_test(break_the_longest),
        strategies_test(leases_end),
        strategies_test(another_type),
        strategies_test(names_of_any_bytes),
    };
    int rc = 0;
    places_run(rc);
    return rc;
}
