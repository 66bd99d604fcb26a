/* SPDX-License-Identifier: MIT */
/* The guard that a bare GETSET, once it may have come too late, is not undone:
 * the value that it put there stands for another one's lock. */
#include "guards/guards_rig.h"
#include "live/timestamps_rig.h"

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

/* Two read a time that is past. The GETSET of one is held up until the other
 * one's has been answered and its own caller has given up. */
static bool unanswered(void)
{
    struct stalled s;
    without_watch();
    stall(&s, STAMPS "&timeout_ms=1500", 0);
    nxl_client *client = new_client(STAMPS);
    nxl_lock *winner = new_lock(client, "k", 30000);
    assert_result(nxl_lock_acquire(winner, 0), NXL_OK, winner);
    assert_int_equal(waiter_join(s.waiter), NXL_UNKNOWN);
    proxy_hold(s.proxy, PROXY_UP, false);
    assert_true(call(s.lock) >= NXL_OK); /* behind whatever was undone */
    bool harm = third_gets_it(winner);
    stall_end(&s);
    end(winner, client);
    return harm;
}

static void test_unanswered_getset(void **state)
{
    (void)state;
    assert_needed(CLOBBER,
        "undoing a GETSET that came too late frees a held lock; two hold",
        unanswered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_unanswered_getset),
    };
    return live_run("guard of GETSET");
}
