/* SPDX-License-Identifier: MIT */
/*
 * Two extends of one token at the same time, on a server where extending takes
 * two commands (PTTL, then SET IFEQ), because it allows neither scripts nor
 * transactions.
 *
 * Invariant: whichever SET the server applies last, the key lives for at least
 * as long as either extend has promised.
 */
#include "api_rig.h"
#include "renew_rig.h"
#include "support/aged.h"
#include "support/proxy.h"

enum { SHORT_MS = 2000, LONG_MS = 30000 };

static struct aged *aged;
static struct proxy *proxy; /* before it, for the slower client */

static int start(void **state)
{
    if (redis_start(&server, NULL) != 0)
        return -1;
    aged = aged_start(AGED_DELIFEQ, &server);
    aged_refuse(aged, "WATCH MULTI", AGED_NOPERM);
    proxy = proxy_start(aged_path(aged), 0);
    return 0;
}

static int stop(void **state)
{
    proxy_stop(proxy);
    aged_stop(aged);
    redis_stop(&server);
    return 0;
}

static int clean(void **state)
{
    redis_run(&server, "FLUSHALL", NULL);
    aged_forget(aged);
    return 0;
}

static void turn_holding(nxl_client *client, const nxl_lock *lock)
{
    turn(client, 5);
    assert_true(nxl_lock_held(lock));
}

static void assert_key_lives_as_promised(const nxl_lock *lock)
{
    assert_true(nxl_lock_held(lock));
    assert_true(nxl_lock_remaining_ms(lock) > SHORT_MS);
    assert_true(redis_pttl(&server, "k") >= nxl_lock_remaining_ms(lock));
}

/* Its replies are held back, so that both PTTL are answered before either SET
 * is sent. */
static void a_renewal_beside_an_extend_by_hand(void **state)
{
    nxl_client *client = client_at(proxy_url(proxy));
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = 2 * SHORT_MS, .renew = 1);
    assert_int_equal(nxl_lock_acquire_start(lock, 2000), NXL_PENDING);
    assert_int_equal(next_event(client).result, NXL_OK);
    while (stats_of(client).renewals == 0) /* the way is known then */
        turn_holding(client, lock);
    aged_forget(aged);
    proxy_hold(proxy, PROXY_DOWN, true);
    assert_int_equal(nxl_lock_extend_start(lock, LONG_MS), NXL_PENDING);
    while (aged_count(aged, "PTTL") < 2)
        turn_holding(client, lock);
    proxy_hold(proxy, PROXY_DOWN, false);
    assert_int_equal(next_event(client).result, NXL_OK);
    while (aged_count(aged, "SET * * IFEQ") < 2)
        turn_holding(client, lock);
    assert_key_lives_as_promised(lock);
    end(lock, client);
}

/* The owner's SET is decided on before the heir's, and sent after it. */
static void the_owner_beside_the_heir(void **state)
{
    nxl_client *client = client_at(proxy_url(proxy));
    nxl_client *theirs = client_at(aged_url(aged));
    nxl_lock *owner = new_lock(client, "k", 2 * SHORT_MS);
    nxl_lock *heir = new_lock(theirs, "k", LONG_MS);
    assert_int_equal(nxl_lock_acquire_start(owner, 0), NXL_PENDING);
    assert_int_equal(next_event(client).result, NXL_OK);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, SHORT_MS), NXL_OK, heir);
    assert_int_equal(nxl_lock_extend_start(owner, 0), NXL_PENDING);
    assert_int_equal(
        next_event(client).result, NXL_OK); /* the way is known then */
    aged_forget(aged);
    proxy_hold(proxy, PROXY_DOWN, true);
    assert_int_equal(nxl_lock_extend_start(owner, SHORT_MS), NXL_PENDING);
    while (aged_count(aged, "PTTL") == 0)
        turn_holding(client, owner);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    proxy_hold(proxy, PROXY_DOWN, false);
    assert_int_equal(next_event(client).result, NXL_OK);
    assert_int_equal(aged_count(aged, "SET * * IFEQ"), 2);
    assert_key_lives_as_promised(heir);
    end(heir, theirs);
    end(owner, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_renewal_beside_an_extend_by_hand, clean),
        cmocka_unit_test_setup(the_owner_beside_the_heir, clean),
    };
    return cmocka_run_group_tests_name("extend races", tests, start, stop);
}
