/* SPDX-License-Identifier: MIT */
/*
 * An acquire that the server applies after its caller gave up is undone, long
 * before its ttl and without another call: ROUNDS times out of ROUNDS. The
 * tests see that the server did apply it. With a call that follows, on the same
 * connection and on lost ones: tests/guards/test_cleanup.c.
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

/* No other call: the client is freed. */
static void undone_when_the_client_is_freed(void **state)
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
static void undone_when_a_waiter_is_cancelled(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(undone_when_the_client_is_freed),
        live_test(undone_when_a_waiter_is_cancelled),
    };
    return live_run_long("orphan");
}
