/* SPDX-License-Identifier: MIT */
/*
 * Acquire, extend and release behave alike with every strategy, and each uses
 * the strategy that its server supports, and no other.
 */
#include "live/strategies_rig.h"

#define KEY "invoice:42"
#define TTL 20000

static nxl_client *client;
static nxl_lock *lock;

static int open_client(void **state)
{
    place_clean(state);
    client = learnt_client("");
    lock = new_lock(client, KEY, TTL);
    return 0;
}

static int close_client(void **state)
{
    end(lock, client);
    return place_check(state);
}

static void hold(void)
{
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
}

/* A foreign value that begins with the token. */
static void add_to_value(const char *more)
{
    redis_run(&server, "APPEND", KEY, more, NULL);
}

/* ------------------------------------------------------------------ acquire */

static void acquire_free(void **state)
{
    uint64_t before = nxl_now_ns();
    assert_by(here->acquire, nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_held(lock));
    assert_ours(KEY, lock);
    assert_lasts(KEY, TTL - 2000, TTL);
    assert_between(nxl_lock_deadline(lock), before + LEASE_NS(TTL),
        nxl_now_ns() + LEASE_NS(TTL));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

static void acquire_what_we_hold(void **state)
{
    nxl_lock *second = new_lock(client, KEY, TTL);
    hold();
    char value[512];
    assert_ours(KEY, lock);
    assert_true(redis_get(&server, KEY, value, sizeof(value)));
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_by(here->acquire, nxl_lock_acquire(second, 0), NXL_BUSY, second);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_INVALID, lock);
    assert_false(nxl_lock_held(second));
    assert_true(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_deadline(lock), deadline);
    assert_value(KEY, value);
    nxl_lock_free(second);
    assert_value(KEY, value);
}

static void acquire_what_others_hold(void **state)
{
    static const int64_t ttls[] = {0, 40000};
    for (int i = 0; i < 2; i++) {
        stranger_sets(KEY, "other", ttls[i]);
        assert_by(here->acquire, nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        assert_false(nxl_lock_held(lock));
        assert_value(KEY, "other");
        if (i == 0)
            assert_int_equal(redis_pttl(&server, KEY), -1);
        else
            assert_between(redis_pttl(&server, KEY), 38000, 40000);
    }
}

static void acquire_when_it_gets_free(void **state)
{
    static struct waiter w;
    stranger_sets(KEY, "other", 0);
    waiter_start(&w, lock, 20000);
    struct ways begun = ways_so_far();
    assert_eventually(
        ways_so_far().n[here->acquire] > begun.n[here->acquire] + 2);
    redis_run(&server, "DEL", KEY, NULL);
    assert_result(waiter_join(&w), NXL_OK, lock);
    assert_ours(KEY, lock);
    assert_lasts(KEY, TTL - 2000, TTL + TTL / 10); /* longer in line */

    if (stamps_here())
        return; /* and then it does not wait for a ttl */
    stranger_sets(KEY, "other", 200);
    nxl_lock *second = new_lock(client, KEY, TTL);
    int64_t start = test_now_ms();
    assert_result(nxl_lock_acquire(second, 10000), NXL_OK, second);
    assert_between(test_now_ms() - start, 100, 200 + LATE_MS + 100);
    nxl_lock_free(second);
}

/* What programs of the scheme of unix times left: there it is taken over when
 * it is past, and not before; elsewhere only by order (interop). */
static void acquire_what_is_past(void **state)
{
    char value[64], now[64];
    time_stands(KEY, -3);
    assert_true(redis_get(&server, KEY, value, sizeof(value)));
    if (!stamps_here()) {
        assert_by(here->acquire, nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        assert_value(KEY, value);
        return;
    }
    long before = calls("getset");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(calls("getset"), before + 1);
    assert_ours(KEY, lock);
    assert_lasts(KEY, TTL - 2000, TTL);
    assert_by(here->extend, nxl_lock_extend(lock, 50000), NXL_OK, lock);
    assert_by(here->release, nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, KEY));

    time_stands(KEY, 30);
    assert_true(redis_get(&server, KEY, value, sizeof(value)));
    assert_by(here->acquire, nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_true(redis_get(&server, KEY, now, sizeof(now)));
    assert_string_equal(now, value);
    time_stands(KEY, 1);
    assert_true(redis_get(&server, KEY, value, sizeof(value)));
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    struct timespec now_is; /* time() lags behind */
    clock_gettime(CLOCK_REALTIME, &now_is);
    assert_true(now_is.tv_sec >= strtol(value, NULL, 10));
    assert_ours(KEY, lock);
}

/* ------------------------------------------------------------------- extend */

static void extend_longer(void **state)
{
    hold();
    uint64_t before = nxl_now_ns();
    assert_by(here->extend, nxl_lock_extend(lock, 50000), NXL_OK, lock);
    assert_lasts(KEY, 48000, 50000);
    assert_between(nxl_lock_deadline(lock), before + LEASE_NS(50000),
        nxl_now_ns() + LEASE_NS(50000));
    assert_ours(KEY, lock);
    assert_by(here->extend, nxl_lock_extend(lock, 55000), NXL_OK, lock);
    assert_lasts(KEY, 53000, 55000);
}

static void extend_shorter(void **state)
{
    hold();
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_by(here->extend, nxl_lock_extend(lock, 1000), NXL_OK, lock);
    assert_lasts(KEY, TTL - 5000, TTL);
    assert_true(nxl_lock_deadline(lock) >= deadline);
    assert_ours(KEY, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

static void extend_lost(void **state)
{
    hold();
    redis_run(&server, "DEL", KEY, NULL);
    assert_by(here->extend, nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_false(redis_exists(&server, KEY));
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
}

static void extend_foreign(void **state)
{
    hold();
    stranger_sets(KEY, "other", 5000);
    assert_by(here->extend, nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_value(KEY, "other");
    assert_between(redis_pttl(&server, KEY), 1, 5000);
    redis_run(&server, "DEL", KEY, NULL);

    hold();
    redis_run(&server, "PEXPIRE", KEY, "5000", NULL);
    add_to_value("x");
    assert_by(here->extend, nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_between(redis_pttl(&server, KEY), 1, 5000);
}

/* Who has the token prolongs for all who have it, and nobody shortens. */
static void extend_adopted(void **state)
{
    nxl_client *others = learnt_client("");
    nxl_lock *heir = new_lock(others, KEY, TTL);
    hold();
    assert_by(here->inspect, nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK,
        heir);
    assert_true(nxl_lock_held(heir));
    assert_true(
        nxl_lock_deadline(heir) <= nxl_now_ns() + LEASE_NS(TTL + later_ms()));
    assert_by(here->extend, nxl_lock_extend(heir, 50000), NXL_OK, heir);
    assert_lasts(KEY, 48000, 50000);
    assert_by(here->extend, nxl_lock_extend(lock, 30000), NXL_OK, lock);
    assert_lasts(KEY, 45000, 50000);
    assert_by(here->release, nxl_lock_release(heir), NXL_OK, heir);
    assert_by(here->extend, nxl_lock_extend(lock, 30000), NXL_LOST, lock);
    assert_false(redis_exists(&server, KEY));
    assert_by(here->inspect, nxl_lock_adopt(heir, nxl_lock_token(lock)),
        NXL_LOST, heir);
    end(heir, others);
}

static void extend_without_end(void **state)
{
    hold();
    redis_run(&server, "PERSIST", KEY, NULL);
    assert_by(here->extend, nxl_lock_extend(lock, 50000), NXL_OK, lock);
    assert_int_equal(redis_pttl(&server, KEY), -1);
    assert_ours(KEY, lock);
    nxl_lock *heir = new_lock(client, KEY, TTL);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
    assert_between(nxl_lock_remaining_ms(heir), 45000, 60000 + later_ms());
    assert_by(here->release, nxl_lock_release(heir), NXL_OK, heir);
    assert_false(redis_exists(&server, KEY));
    nxl_lock_free(heir);
}

/* ------------------------------------------------------------------ release */

static void release_own(void **state)
{
    hold();
    assert_by(here->release, nxl_lock_release(lock), NXL_OK, lock);
    assert_false(nxl_lock_held(lock));
    assert_false(redis_exists(&server, KEY));
}

static void release_twice(void **state)
{
    hold();
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    stranger_sets(KEY, "other", 5000);
    assert_result(nxl_lock_release(lock), NXL_E_INVALID, lock);
    assert_value(KEY, "other");
}

static void release_lost(void **state)
{
    hold();
    redis_run(&server, "DEL", KEY, NULL);
    assert_by(here->release, nxl_lock_release(lock), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_false(redis_exists(&server, KEY));
}

static void release_foreign(void **state)
{
    hold();
    stranger_sets(KEY, "other", 5000);
    assert_by(here->release, nxl_lock_release(lock), NXL_LOST, lock);
    assert_value(KEY, "other");
    assert_between(redis_pttl(&server, KEY), 1, 5000);
    redis_run(&server, "DEL", KEY, NULL);

    char more[600];
    memset(more, 'x', sizeof(more));
    for (size_t i = 1; i < sizeof(more); i += 597) {
        more[i] = '\0';
        hold();
        add_to_value(more);
        assert_by(here->release, nxl_lock_release(lock), NXL_LOST, lock);
        assert_true(redis_exists(&server, KEY));
        redis_run(&server, "DEL", KEY, NULL);
        more[i] = 'x';
    }
}

/* The key stays for the rest of min_hold_ms and no longer, however long a TTL
 * the extend set. The first release finds the way, the second one takes it. */
static void release_before_min_hold(void **state)
{
    enum { MIN_HOLD = 10000 };
    nxl_lock *once =
        lock_with(client, KEY, .ttl_ms = 1000, .min_hold_ms = MIN_HOLD);
    for (int i = 0; i < 2; i++) {
        int64_t start = test_now_ms();
        assert_result(nxl_lock_acquire(once, 0), NXL_OK, once);
        assert_result(nxl_lock_extend(once, TTL), NXL_OK, once);
        if (i == 0 || stamps_here())
            assert_result(nxl_lock_release(once), NXL_OK, once);
        else
            assert_by(here->extend, nxl_lock_release(once), NXL_OK, once);
        assert_ours(KEY, once);
        if (!stamps_here()) /* a time stays to the end of the lease */
            assert_between(redis_pttl(&server, KEY),
                MIN_HOLD - (test_now_ms() - start) - 100, MIN_HOLD);
        redis_run(&server, "DEL", KEY, NULL);
    }
    nxl_lock_free(once);
}

/* Freed while held: released without waiting, by the same strategy. */
static void release_by_free(void **state)
{
    hold();
    struct ways before = ways_so_far();
    end(lock, client);
    char value[512]; /* EXISTS would look like an inspection */
    assert_eventually(!redis_get(&server, KEY, value, sizeof(value)));
    assert_went(&before, here->release, __FILE__, __LINE__);
    client = client_here("");
    lock = new_lock(client, KEY, TTL);
}

/* --------------------------------------------------------------- and scripts
 */

/* Whoever has scripts finds them gone, and goes on. */
static void scripts_flushed(void **state)
{
    for (int i = 0; i < 3; i++) {
        hold();
        if (here->kind != RENAMED)
            redis_run(&server, "SCRIPT", "FLUSH", NULL);
        if (i == 0)
            assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
        if (i == 1)
            assert_result(look(lock), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_false(redis_exists(&server, KEY));
    }
}

static void the_way_is_told(void **state)
{
    char text[512];
    nxl_client_describe(client, text, sizeof(text));
    if (stamps_here()) {
        assert_contains(text, bare_here() ? "without WATCH (weakest promises)"
                                          : "timestamps (weaker promises)");
        return;
    }
    assert_contains(
        text, here->acquire == BY_SET ? "SET NX PX" : "SETNX script");
    static const char *const names[] = {
        [BY_SCRIPT] = "scripts", [BY_WATCH] = "WATCH"};
    assert_contains(text, names[here->extend]);
    assert_contains(text, names[here->release]);
}

#define strategies_test(function)                                              \
    cmocka_unit_test_setup_teardown(function, open_client, close_client)

int main(void)
{
    const struct CMUnitTest tests[] = {
        strategies_test(acquire_free),
        strategies_test(acquire_what_we_hold),
        strategies_test(acquire_what_others_hold),
        strategies_test(acquire_when_it_gets_free),
        strategies_test(acquire_what_is_past),
        strategies_test(extend_longer),
        strategies_test(extend_shorter),
        strategies_test(extend_lost),
        strategies_test(extend_foreign),
        strategies_test(extend_adopted),
        strategies_test(extend_without_end),
        strategies_test(release_own),
        strategies_test(release_twice),
        strategies_test(release_lost),
        strategies_test(release_foreign),
        strategies_test(release_before_min_hold),
        strategies_test(release_by_free),
        strategies_test(scripts_flushed),
        strategies_test(the_way_is_told),
    };
    int rc = 0;
    places_run(rc);
    return rc;
}
