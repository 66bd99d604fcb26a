/* SPDX-License-Identifier: MIT */
/* The guards of what stands at the server, against a write that knows less
 * than its writer did: one that shortens, and one that replaces. */
#include "guards/guards_rig.h"
#include "live/timestamps_rig.h"
#include "support/blanks.h"

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
    char value[STAMP_VALUE];
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_shorten),
        guard_test(test_take_over),
    };
    return live_run("guards of values");
}
