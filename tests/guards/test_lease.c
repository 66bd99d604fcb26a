/* SPDX-License-Identifier: MIT */
/* The guards that end a lease here before it ends at the server. */
#include "guards/guards_rig.h"

#include <poll.h>

/* ---------------------------------------------------- the time of sending */

/* A busy machine may add two seconds to the delay. */
enum { SHORT_MS = 4000, DELAY_MS = 1000 };

/* The reply to the acquire, or to a later extend, takes its time. */
static bool two_hold_by_delay(bool extend)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, "timeout_ms=8000");
    nxl_lock *lock = new_lock(client, "k", SHORT_MS);
    assert_result(call(lock), NXL_FREE, lock);
    if (extend)
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    proxy_delay(proxy, PROXY_DOWN, DELAY_MS);
    assert_result(
        extend ? nxl_lock_extend(lock, SHORT_MS) : nxl_lock_acquire(lock, 0),
        NXL_OK, lock);
    other_gets_it(2 * SHORT_MS);
    bool harm = nxl_lock_held(lock);
    proxy_delay(proxy, PROXY_DOWN, 0);
    end(lock, client);
    proxy_stop(proxy);
    return harm;
}

static bool two_hold_after_acquire(void)
{
    return two_hold_by_delay(false);
}

static bool two_hold_after_extend(void)
{
    return two_hold_by_delay(true);
}

static void test_send_time(void **state)
{
    (void)state;
    assert_needed(SEND_TIME,
        "a slow reply to an acquire is counted from its end; two hold",
        two_hold_after_acquire);
    assert_needed(SEND_TIME,
        "a slow reply to an extend is counted from its end; two hold",
        two_hold_after_extend);
}

/* ------------------------------------------------------------ handing over */

/* The loop is busy with something else while the grant waits in its queue. */
static bool stale_grant_is_handed_over(void)
{
    struct pollfd fds[4];
    nxl_event event;
    int timeout_ms;
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 1000);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    while (nxl_lock_deadline(lock) == 0) {
        size_t count = nxl_client_pollfds(client, fds, 4, &timeout_ms);
        poll(fds, (nfds_t)count, timeout_ms);
        assert_int_equal(nxl_client_process(client), NXL_OK);
    }
    other_gets_it(5000);
    assert_true(nxl_client_next_event(client, &event));
    end(lock, client);
    return event.result == NXL_OK;
}

static void test_recheck(void **state)
{
    (void)state;
    assert_needed(RECHECK,
        "a grant is handed over when another one holds the lock",
        stale_grant_is_handed_over);
}

/* ---------------------------------------------------------- a lapsed lease */

/* What was not held any more, and perhaps given up for lost, is held again. */
static bool the_dead_revive(void)
{
    nxl_client *client = new_client("drift_ppm=500000");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(!nxl_lock_held(lock));
    assert_true(token_stands("k", lock));
    int rc = nxl_lock_extend(lock, 0);
    bool harm = nxl_lock_held(lock);
    assert_result(rc, harm ? NXL_OK : NXL_LOST, lock);
    end(lock, client);
    return harm;
}

static void test_lapsed(void **state)
{
    (void)state;
    assert_needed(LAPSED,
        "a lease that was over, and told to be, is held again",
        the_dead_revive);
}

/* ------------------------------------------------------- an expired handle */

/* Its token was handed over, and another process has extended the lease. */
static bool the_former_owner_frees_the_heirs_lock(void)
{
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(client, "k", 1500);
    nxl_lock *heir = new_lock(theirs, "k", 20000);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    assert_eventually(!nxl_lock_held(owner));
    end(owner, client);
    bool harm = !token_stands("k", heir);
    assert_true(nxl_lock_held(heir));
    if (harm)
        other_gets_it(0);
    end(heir, theirs);
    return harm;
}

static void test_expired(void **state)
{
    (void)state;
    assert_needed(EXPIRED,
        "a handle that is freed after its lease deletes an adopted key; "
        "two hold",
        the_former_owner_frees_the_heirs_lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_send_time),
        guard_test(test_recheck),
        guard_test(test_lapsed),
        guard_test(test_expired),
    };
    return live_run("guards of leases");
}
