/* SPDX-License-Identifier: MIT */
/* The end of a lease, seen at every moment around it: what the handle says of
 * it agrees. All else of a lock: live/scenes/lock.scenes. */
#include "live/live_rig.h"

/* held, remaining and deadline are three views of one number. */
static void held_ends_with_the_deadline(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "job", 200);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock), before, after;
    bool held;
    do {
        before = nxl_now_ns();
        held = nxl_lock_held(lock);
        int64_t left = nxl_lock_remaining_ms(lock);
        after = nxl_now_ns();
        assert_true(held ? before < deadline : after >= deadline);
        assert_true(left <= (int64_t)(deadline - before) / 1000000 ||
                    (left == 0 && before >= deadline));
        uint64_t told = nxl_lock_deadline(lock);
        assert_true(
            told == deadline || (told == 0 && nxl_now_ns() >= deadline));
    } while (held);
    int rc = nxl_lock_release(lock); /* the server's end comes a bit later */
    assert_true(rc == NXL_OK || rc == NXL_LOST);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(held_ends_with_the_deadline),
    };
    return live_run_long("lease end");
}
