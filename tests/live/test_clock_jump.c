/* SPDX-License-Identifier: MIT */
/*
 * The machine is suspended in the middle of an acquire: the clock jumps beyond
 * the lease at one reading of it after another.
 *
 * Invariant: an acquire that returns NXL_OK is held; where it is renewed, a
 * loss since its last look at the clock is reported.
 */
#include "renew_rig.h"

#include <stdatomic.h>
#include <time.h>

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

enum { TTL_MS = 10000, JUMP_S = 15, READINGS = 16 };

static _Atomic int64_t ahead_s;
static _Atomic int readings_left; /* the clock jumps when it comes to 0 */

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    if (atomic_load(&readings_left) > 0 &&
        atomic_fetch_sub(&readings_left, 1) == 1)
        atomic_fetch_add(&ahead_s, JUMP_S);
    int rc = __real_clock_gettime(id, time);
    time->tv_sec += atomic_load(&ahead_s);
    return rc;
}

static void connect_first(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "connect", 1000);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock);
}

/* True when the acquire was granted and found lost only afterwards. */
static bool lost_after_ok(bool renew, int readings)
{
    nxl_client *client = new_client(""); /* has no thread that renews yet */
    connect_first(client);
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = TTL_MS, .renew = renew);
    atomic_store(&readings_left, readings);
    int rc = nxl_lock_acquire(lock, 0);
    atomic_store(&readings_left, 0);
    bool held = nxl_lock_held(lock);
    if (rc == NXL_OK && !held && renew) {
        assert_ptr_equal(await_loss(client, 5000), lock);
        assert_int_not_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
    } else if (rc != NXL_OK) {
        assert_false(held);
    }
    nxl_lock_free(lock);
    nxl_client_free(client);
    redis_run(&server, "DEL", "k", NULL);
    return rc == NXL_OK && !held;
}

static void a_jump_at_each_reading_of_the_clock(void **state)
{
    int late = 0;
    for (int readings = 1; readings <= READINGS; readings++) {
        assert_false(lost_after_ok(false, readings));
        late += lost_after_ok(true, readings);
    }
    assert_true(late > 0); /* else this test would prove nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(a_jump_at_each_reading_of_the_clock),
    };
    return live_run("the clock jumps");
}
