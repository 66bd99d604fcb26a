/* SPDX-License-Identifier: MIT */
/*
 * An acquire that the server applies after its caller gave up is undone, long
 * before its ttl: ROUNDS times out of ROUNDS, whatever became of the
 * connection it went on. The tests see that the server did apply it, or would
 * have done so.
 */
#include "support/test.h"

#include "live/orphan_rig.h"

#define ROUNDS 50

/* Soon: it does not take a fraction of the ttl. */
static void assert_gone_soon(const char *key)
{
    int64_t start = test_now_ms();
    assert_eventually(!redis_exists(&server, key));
    assert_between(test_now_ms() - start, 0, 1000);
}

/* ---------------------------------------------------- the same connection */

static void test_same_connection(void **state)
{
    nxl_client *client = new_client(TIMEOUT);
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    assert_eventually(call(lock) == NXL_FREE);
    for (int i = 1; i <= ROUNDS; i++) {
        redis_freeze(&server);
        assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        redis_thaw(&server);
        /* The undoing is on its way: no other call is needed. */
        assert_eventually(redis_calls(&server, "set") == i);
        assert_gone_soon("k");
        /* This takes the answers, so that they are not too many. */
        assert_eventually(call(lock) == NXL_FREE);
    }
    assert_result(nxl_lock_acquire(lock, 1000), NXL_OK, lock);
    end(lock, client);
}

/* ------------------------------------------------------ a lost connection */

static void lost_connection(enum lost when)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, TIMEOUT);
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    size_t size = size_of_acquire(proxy, lock);
    for (int i = 0; i < ROUNDS; i++) {
        assert_eventually(call(lock) == NXL_FREE);
        orphan(proxy, "k", lock, size, when);
        int rc;
        do
            rc = call(lock); /* one call, of any kind, that is in time */
        while (is_late(rc));
        assert_true(rc == NXL_OK || rc == NXL_FREE);
        assert_gone_soon("k");
    }
    assert_result(nxl_lock_acquire(lock, 1000), NXL_OK, lock);
    end(lock, client);
    proxy_stop(proxy);
}

static void test_lost_while_waiting(void **state)
{
    lost_connection(WHILE_WAITING);
}

static void test_lost_after_giving_up(void **state)
{
    lost_connection(AFTER_GIVING_UP);
}

/* No other call: the client is freed. */
static void test_lost_and_freed(void **state)
{
    struct proxy *proxy = proxy_to_server();
    for (int i = 0; i < ROUNDS; i++) {
        nxl_client *client = via(proxy, TIMEOUT);
        nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
        size_t size = size_of_acquire(proxy, lock);
        orphan(proxy, "k", lock, size, i % 2 ? WHILE_WAITING : AFTER_GIVING_UP);
        end(lock, client);
        assert_false(redis_exists(&server, "k"));
    }
    proxy_stop(proxy);
}

/* A waiter that is cancelled has given up as well. */
static void test_cancelled(void **state)
{
    static struct waiter w;
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, "timeout_ms=5000");
    nxl_lock *lock = new_lock(client, "k", ORPHAN_TTL_MS);
    assert_result(call(lock), NXL_FREE, lock);
    for (int i = 1; i <= ROUNDS; i++) {
        uint64_t sent = proxy_bytes(proxy, PROXY_UP);
        redis_freeze(&server);
        waiter_start(&w, lock, NXL_FOREVER);
        assert_true(proxy_await(proxy, PROXY_UP, sent + 1));
        assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
        assert_int_equal(waiter_join(&w), NXL_CANCELLED);
        redis_thaw(&server);
        assert_eventually(redis_calls(&server, "set") == i);
        assert_gone_soon("k");
    }
    end(lock, client);
    proxy_stop(proxy);
}

/* ------------------------------------- held up long after the connection */

struct late {
    nxl_client *client;
    nxl_lock *lock;
    char key[8];
};

/* *size: how much an acquire sends. */
static void late_open(
    struct late *l, int number, struct proxy *proxy, size_t *size)
{
    snprintf(l->key, sizeof(l->key), "k%02d", number);
    l->client = client_on_road();
    l->lock = new_lock(l->client, l->key, ORPHAN_TTL_MS);
    *size = size_of_acquire(proxy, l->lock);
}

/* A SET that is held up on the way is passed on when the client has dialled
 * anew, made its compare-and-delete, which found nothing, and gone. */
static void test_held_up_on_the_way(void **state)
{
    static struct late late[ROUNDS];
    size_t size = 0;
    struct proxy *proxy = proxy_on_road();
    for (int i = 0; i < ROUNDS; i++)
        late_open(&late[i], i, proxy, &size);
    proxy_hold(proxy, PROXY_UP, true);
    for (int i = 0; i < ROUNDS; i++)
        assert_result(
            nxl_lock_acquire(late[i].lock, 0), NXL_UNKNOWN, late[i].lock);
    lead_to(server.path);
    /* Until it finds the old connection stale, and dials. */
    for (int i = 0; i < ROUNDS; i++)
        assert_eventually(call(late[i].lock) == NXL_FREE);
    for (int i = 0; i < ROUNDS; i++)
        end(late[i].lock, late[i].client);
    proxy_cut_after(proxy, PROXY_UP, size);
    proxy_hold(proxy, PROXY_UP, false);
    assert_eventually(proxy_connections(proxy) == 0);
    for (int i = 0; i < ROUNDS; i++)
        assert_false(redis_exists(&server, late[i].key));
    unlink(road);
    proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(test_same_connection),
        live_test(test_lost_while_waiting),
        live_test(test_lost_after_giving_up),
        live_test(test_lost_and_freed),
        live_test(test_cancelled),
    };
    const struct CMUnitTest by_path[] = {
        live_test(test_held_up_on_the_way),
    };
    int failed = live_run_long("orphan");
    if (!live_tls())
        failed += cmocka_run_group_tests_name(
            "orphan (path)", by_path, live_unix, live_stop);
    return failed;
}
