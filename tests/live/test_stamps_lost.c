/* SPDX-License-Identifier: MIT */
/*
 * Locks by time whose answer is lost, at every byte of every step: nothing of
 * a token that nobody holds goes on standing in the way, and nobody else's
 * time is touched.
 */
#include "live/orphan_rig.h"
#include "live/stamp_rig.h"

enum { TTL_MS = 30000 };
#define QUICK STAMPS "&timeout_ms=300"

/* What stands at the name before. */
enum before { NOTHING, PAST };

static void prepare(enum before before)
{
    redis_run(&server, "DEL", "k", NULL);
    if (before == PAST)
        redis_run(&server, "SET", "k", "1600000000", NULL);
}

/* Another client gets the name at once: nothing of ours stands there. */
static void assert_free(void)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "k", 1000);
    assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static uint64_t size_of(
    struct proxy *proxy, nxl_lock *lock, enum proxy_way way, enum before before)
{
    prepare(before);
    uint64_t old = proxy_bytes(proxy, way);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t size = proxy_bytes(proxy, way) - old;
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    return size;
}

/* Acquire, with the connection cut behind every single byte. */
static void cut_everywhere(enum proxy_way way, enum before before)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, QUICK);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    (void)size_of(proxy, lock, way, before); /* and the clock is known */
    uint64_t size = size_of(proxy, lock, way, before);
    assert_true(size > (before == PAST ? 50 : 5));
    for (uint64_t at = 0; at < size; at++) {
        prepare(before);
        assert_true(call(lock) >= NXL_OK); /* a good connection */
        proxy_cut_after(proxy, way, at);
        int rc = nxl_lock_acquire(lock, 0);
        if (rc == NXL_OK) { /* by a second connection */
            assert_true(stamp_at("k") > 0);
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        } else {
            assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
            assert_false(nxl_lock_held(lock));
        }
        while (call(lock) < NXL_OK)
            ;
        assert_free();
    }
    end(lock, client);
    proxy_stop(proxy);
    assert_false(redis_exists(&server, "k"));
}

static void requests_cut(void **state)
{
    cut_everywhere(PROXY_UP, NOTHING);
    cut_everywhere(PROXY_UP, PAST);
}

static void replies_cut(void **state)
{
    cut_everywhere(PROXY_DOWN, NOTHING);
    cut_everywhere(PROXY_DOWN, PAST);
}

/* The caller gives up at each of the steps, and the server goes on. */
static void given_up(void **state)
{
    for (uint64_t more = 0; more < 3; more++) {
        struct proxy *proxy = proxy_to_server();
        nxl_client *client = via(proxy, STAMPS "&timeout_ms=300");
        nxl_lock *lock = new_lock(client, "k", TTL_MS);
        prepare(PAST);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        prepare(PAST);
        /* Each step's replies come so much later: one of them too late. */
        proxy_delay(proxy, PROXY_DOWN, more == 0 ? 360 : more == 1 ? 190 : 120);
        assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        proxy_delay(proxy, PROXY_DOWN, 0);
        assert_eventually(call(lock) >= NXL_OK);
        assert_free();
        assert_int_equal(proxy_accepted(proxy), 1); /* the same connection */
        end(lock, client);
        proxy_stop(proxy);
    }
}

static void server_stopped_meanwhile(void **state)
{
    nxl_client *client = new_client(STAMPS "&timeout_ms=100");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    for (int i = 0; i < 2; i++) {
        prepare(i ? PAST : NOTHING);
        assert_eventually(call(lock) >= NXL_OK);
        redis_freeze(&server);
        assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        redis_thaw(&server);
        assert_eventually(call(lock) >= NXL_OK);
        assert_free();
    }
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    redis_freeze(&server);
    assert_result(nxl_lock_release(lock), NXL_UNKNOWN, lock);
    redis_thaw(&server);
    assert_eventually(call(lock) == NXL_FREE);
    end(lock, client);
    assert_false(redis_exists(&server, "k"));
}

/* The connection goes with the release on it. */
static void a_release_is_cut(void **state)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, QUICK);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    for (size_t at = 0; at < 160; at += 3) {
        int way = (int)(at % 2);
        assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
        proxy_cut_after(proxy, way ? PROXY_DOWN : PROXY_UP, at);
        int rc = nxl_lock_release(lock);
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        while (call(lock) < NXL_OK)
            ;
        assert_eventually(!redis_exists(&server, "k"));
    }
    end(lock, client);
    proxy_stop(proxy);
}

/* Other locks' commands are no part of a transaction that was left. */
static void others_on_the_connection(void **state)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, STAMPS "&timeout_ms=150");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_lock *other = new_lock(client, "other", TTL_MS);
    for (int i = 0; i < 10; i++) {
        prepare(PAST);
        proxy_delay(proxy, PROXY_DOWN, 95);
        assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
        proxy_delay(proxy, PROXY_DOWN, 0);
        assert_eventually(call(lock) >= NXL_OK);
        assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
        assert_true(stamp_at("other") > 0);
        assert_result(nxl_lock_release(other), NXL_OK, other);
        assert_false(redis_exists(&server, "other"));
    }
    assert_int_equal(proxy_accepted(proxy), 1);
    nxl_lock_free(other);
    end(lock, client);
    proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(requests_cut),
        live_test(replies_cut),
        live_test(given_up),
        live_test(server_stopped_meanwhile),
        live_test(a_release_is_cut),
        live_test(others_on_the_connection),
    };
    return live_run_long("timestamps whose answers are lost");
}
