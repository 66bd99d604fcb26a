/* SPDX-License-Identifier: MIT */
/* The guards of what stands at the server, against a write that knows less
 * than its writer did: one that shortens, one that replaces, and one that is
 * undone although it may have come too late. */
#include "guards/guards_rig.h"
#include "live/proxy_rig.h"
#include "support/blanks.h"

#define STAMPS "scheme=timestamp"

/* ------------------------------------------------------- to extend shortens */

/* The holder asks for less than it has got, as one does who extends by the
 * same small step again and again, and counts on what it was told at first. */
static bool another_gets_it_early(void)
{
    nxl_client *client = new_client(""), *other = new_client("");
    nxl_lock *lock = new_lock(client, "k", 20000);
    nxl_lock *second = new_lock(other, "k", 10000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 300), NXL_OK, lock);
    /* Without an answer in time, on a busy machine, it does no harm either. */
    int rc = nxl_lock_acquire(second, 2500);
    assert_true(rc == NXL_OK || rc == NXL_BUSY || rc == NXL_UNKNOWN ||
                rc == NXL_E_UNREACHABLE);
    bool harm = rc == NXL_OK && nxl_lock_held(lock);
    end(second, other);
    end(lock, client);
    return harm;
}

static void test_shorten(void **state)
{
    (void)state;
    assert_needed(SHORTEN,
        "an extend by less than is left ends the key early; two hold",
        another_gets_it_early);
}

/* ------------------------------------------------------------ taking over */

#define PAST "1600000000" BLANKS

enum { REPLIES_TAKE_MS = 400, PATIENCE_MS = 10000, TRIES = 5 };

enum outcome { TOO_LATE, ONE_HOLDS, TWO_HOLD };

/* Two clients find the value of a dead program. After its command asked_by, the
 * write of the one is delayed until the other has the lock. TOO_LATE: on a busy
 * machine the write was sent before it could be delayed. */
static enum outcome take_over(
    struct proxy *proxy, nxl_lock *late, nxl_lock *lock, const char *asked_by)
{
    static struct waiter waiter;
    char value[160];
    assert_result(call(late), NXL_FREE, late);
    redis_run(&server, "SET", "k", PAST, NULL);
    long asked = redis_calls(&server, asked_by);
    proxy_delay(proxy, PROXY_DOWN, REPLIES_TAKE_MS);
    waiter_start(&waiter, late, PATIENCE_MS);
    assert_eventually(redis_calls(&server, asked_by) > asked);
    proxy_hold(proxy, PROXY_UP, true);
    uint64_t up = proxy_bytes(proxy, PROXY_UP);
    assert_true(redis_get(&server, "k", value, sizeof(value)));
    bool in_time = strcmp(value, PAST) == 0;
    if (in_time) {
        assert_true(proxy_await(proxy, PROXY_UP, up + 20));
        assert_result(nxl_lock_acquire(lock, PATIENCE_MS), NXL_OK, lock);
    }
    proxy_hold(proxy, PROXY_UP, false);
    int rc = waiter_join(&waiter);
    assert_true(rc == NXL_OK || rc == NXL_BUSY);
    if (!in_time)
        return TOO_LATE;
    assert_true(nxl_lock_held(lock));
    return rc == NXL_OK ? TWO_HOLD : ONE_HOLDS;
}

static bool both_take_over(const char *parameters, const char *asked_by)
{
    enum outcome outcome = TOO_LATE;
    for (int i = 0; i < TRIES && outcome == TOO_LATE; i++) {
        char slowly[64];
        snprintf(slowly, sizeof(slowly), "timeout_ms=10000%s", parameters);
        struct proxy *proxy = proxy_to_server();
        nxl_client *slow = via(proxy, slowly);
        nxl_client *client = new_client(parameters + 1);
        nxl_lock *late = new_lock(slow, "k", 10000);
        nxl_lock *lock = new_lock(client, "k", 20000);
        outcome = take_over(proxy, late, lock, asked_by);
        end(late, slow);
        end(lock, client);
        proxy_stop(proxy);
        redis_run(&server, "DEL", "k", NULL);
    }
    assert_true(outcome != TOO_LATE);
    return outcome == TWO_HOLD;
}

static bool both_by_script(void)
{
    return both_take_over("&poll=1", "time");
}

static bool both_by_transaction(void)
{
    return both_take_over("&" STAMPS, "multi");
}

static void test_take_over(void **state)
{
    (void)state;
    assert_needed(TAKE_OVER,
        "two take over what one dead program left; two hold", both_by_script);
    assert_needed(TAKE_OVER, "two replace one unix time that is past; two hold",
        both_by_transaction);
}

/* ------------------------------------------ a GETSET that came too late */

/* Whether a third one gets the name, while the winner relies on it. */
static bool third_gets_it(nxl_lock *winner)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *third = new_lock(client, "k", 1000);
    int rc = nxl_lock_acquire(third, 300);
    assert_true(rc == NXL_OK || rc == NXL_BUSY);
    assert_true(nxl_lock_held(winner));
    end(third, client);
    return rc == NXL_OK;
}

/* An acquire by GETSET, without WATCH, is stopped before the GETSET leaves. */
static void stall(struct proxy *proxy, nxl_lock *lock, struct waiter *waiter)
{
    redis_run(&server, "SET", "k", "1600000000", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_run(&server, "SET", "k", "1600000000", NULL);
    uint64_t up = proxy_bytes(proxy, PROXY_UP);
    uint64_t down = proxy_bytes(proxy, PROXY_DOWN);
    proxy_hold(proxy, PROXY_DOWN, true);
    waiter_start(waiter, lock, 0);
    assert_true(proxy_await(proxy, PROXY_UP, up + 100));
    assert_true(proxy_await(proxy, PROXY_DOWN, down + 14));
    proxy_hold(proxy, PROXY_UP, true);
    up = proxy_bytes(proxy, PROXY_UP);
    proxy_hold(proxy, PROXY_DOWN, false);
    assert_true(proxy_await(proxy, PROXY_UP, up + 80));
}

/* Two read a time that is past. The GETSET of one is held up until the other
 * one's has been answered and its own caller has given up: the value that it
 * puts there stands for another one's lock. */
static bool unanswered(void)
{
    static struct waiter waiter;
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", "-watch", "-multi",
        NULL);
    struct proxy *proxy = proxy_to_server();
    nxl_client *late = via(proxy, STAMPS "&timeout_ms=1500");
    nxl_client *client = new_client(STAMPS);
    nxl_lock *loser = new_lock(late, "k", 1000);
    nxl_lock *winner = new_lock(client, "k", 30000);
    stall(proxy, loser, &waiter);
    assert_result(nxl_lock_acquire(winner, 0), NXL_OK, winner);
    assert_int_equal(waiter_join(&waiter), NXL_UNKNOWN);
    proxy_hold(proxy, PROXY_UP, false);
    assert_true(call(loser) >= NXL_OK); /* behind whatever was undone */
    bool harm = third_gets_it(winner);
    end(loser, late);
    proxy_stop(proxy);
    end(winner, client);
    return harm;
}

static void test_clobber(void **state)
{
    (void)state;
    assert_needed(CLOBBER,
        "undoing a GETSET that came too late frees a held lock; two hold",
        unanswered);
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_shorten),
        guard_test(test_take_over),
        guard_test(test_clobber),
    };
    return live_run("guards of values");
}
