/* SPDX-License-Identifier: MIT */
/*
 * Locks that several hold, when memory runs out at every place in turn: what a
 * call says is true, no permit stays behind, the other holder keeps its own,
 * and the same handle works afterwards (memory_rig.h).
 */
#include "live/memory_rig.h"

#include "live/kinds_rig.h"
#include "support/alloc.h"

/* A call with one permit of another client beside it. */
struct step {
    int kind;
    bool held_before;
    int (*call)(nxl_lock *lock);
};

static int try_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 0);
}

/* It has to wait in line until the other program's lease is over. */
static int wait_in_line(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 3000);
}

static int extend(nxl_lock *lock)
{
    return nxl_lock_extend(lock, 50000);
}

/* Without memory for all holders it shows one of them. */
static int inspect(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    if (rc == NXL_OK)
        assert_int_equal(holder.weight, 1);
    return rc;
}

static long long beside(const struct step *step)
{
    return step->call == wait_in_line ? 0 : 1;
}

/* After what was owed has been cleaned up. */
static void assert_free_again(
    const struct step *step, nxl_lock *lock, nxl_client *client)
{
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_true(stands(&servers[0], nxl_lock_token(lock)));
    assert_int_equal(holders_at(&servers[0]), 1 + beside(step));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(
        (connect_most(client), holders_at(&servers[0]) == beside(step)));
    assert_eventually((connect_most(client), waiters_at(&servers[0]) == 0));
}

static void at_each_place(void **state)
{
    const struct step *step = *state;
    nxl_client *other = usual_client();
    nxl_lock *stays = of_kind(other, step->kind, 50000, false);
    if (beside(step))
        assert_result(nxl_lock_acquire(stays, 0), NXL_OK, stays);
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = of_kind(client, step->kind, LEASE_MS, false);
        if (step->held_before)
            assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        if (step->call == wait_in_line)
            redis_run(&servers[0], "SET", "k", "x", "PX", "40", NULL);
        fail_at(n);
        int rc = step->call(lock);
        fail_no_more();
        if (rc != NXL_OK && rc != NXL_UNKNOWN)
            assert_failed(rc, lock);
        assert_int_equal(nxl_lock_held(lock),
            rc == NXL_OK ? step->call != nxl_lock_release
                         : step->call == extend || step->call == inspect);
        if (nxl_lock_held(lock))
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_free_again(step, lock, client);
        end(lock, client);
        assert_true(failed || rc == NXL_OK);
    }
    end(stays, other);
}

#define at_each_place_of(kind_, name, ...)                                     \
    memory_scene(at_each_place, name ", once", .for_good = false,              \
        .row = &(struct step){.kind = kind_, __VA_ARGS__}),                    \
        memory_scene(at_each_place, name ", for good", .for_good = true,       \
            .row = &(struct step){.kind = kind_, __VA_ARGS__})

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_each_place_of(PERMITS, "acquire", .call = try_acquire),
        at_each_place_of(SHARED, "acquire, shared", .call = try_acquire),
        at_each_place_of(PERMITS, "wait in line", .call = wait_in_line),
        at_each_place_of(
            PERMITS, "extend", .call = extend, .held_before = true),
        at_each_place_of(
            SHARED, "inspect", .call = inspect, .held_before = true),
        at_each_place_of(
            PERMITS, "release", .call = nxl_lock_release, .held_before = true),
    };
    return on_run(one_unix, "permit memory", tests);
}
