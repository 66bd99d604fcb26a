/* SPDX-License-Identifier: MIT */
/*
 * A token that goes from hand to hand: a handle whose lease has run out leaves
 * alone what another one has adopted and prolonged, and what it prolonged
 * itself it takes back. What an adopted lock, or one that is prolonged by
 * hand, keeps of min_hold_ms and max_hold_ms.
 */
#include "renew_rig.h"

enum { SHORT_MS = 400, LONG_MS = 20000 };

/* A lease that was over at its owner, and is another one's. */
static nxl_lock *handed_over(nxl_lock *owner, nxl_client *theirs)
{
    nxl_lock *heir = new_lock(theirs, "k", LONG_MS);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    assert_eventually(!nxl_lock_held(owner));
    return heir;
}

static void assert_left_to(nxl_lock *heir)
{
    assert_true(nxl_lock_held(heir));
    assert_value("k", nxl_lock_token(heir));
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    nxl_lock_free(heir);
}

static void who_begins_anew_finds_it_busy(void **state)
{
    (void)state;
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(client, "k", SHORT_MS);
    for (int asks = 0; asks < 3; asks++) {
        nxl_lock *heir = handed_over(owner, theirs);
        for (int i = 0; i < asks; i++) /* what it is told changes nothing */
            assert_result(nxl_lock_extend(owner, 0), NXL_LOST, owner);
        assert_result(nxl_lock_acquire(owner, 0), NXL_BUSY, owner);
        assert_result(nxl_lock_acquire(owner, 50), NXL_BUSY, owner);
        assert_left_to(heir);
        assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
        assert_result(nxl_lock_release(owner), NXL_OK, owner);
    }
    end(owner, client);
    nxl_client_free(theirs);
}

static void who_ends_leaves_it(void **state)
{
    (void)state;
    nxl_client *theirs = new_client("");
    for (int whole = 0; whole < 2; whole++) {
        nxl_client *client = new_client("");
        nxl_lock *owner = new_lock(client, "k", SHORT_MS);
        nxl_lock *heir = handed_over(owner, theirs);
        if (whole)
            nxl_client_free(client);
        nxl_lock_free(owner);
        if (!whole)
            nxl_client_free(client);
        assert_left_to(heir);
    }
    nxl_client_free(theirs);
}

static void who_adopts_another_one_leaves_it(void **state)
{
    (void)state;
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(client, "k", SHORT_MS);
    nxl_lock *heir = handed_over(owner, theirs);
    assert_result(
        nxl_lock_adopt(owner, nxl_lock_token(heir)), NXL_OK, owner);
    assert_true(nxl_lock_held(owner));
    assert_left_to(heir);
    end(owner, client);
    nxl_client_free(theirs);
}

/* Nothing of its own stands in its way for longer than the drift. */
static void what_nobody_adopted_ends_by_itself(void **state)
{
    (void)state;
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", SHORT_MS);
    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
        assert_eventually(!nxl_lock_held(lock));
    }
    assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* A request of its own that was applied when nobody waited for its answer any
 * more would be in the way for all of its ttl. */
static void what_it_prolonged_itself_it_takes_back(void **state)
{
    (void)state;
    nxl_client *client = new_client("timeout_ms=200");
    nxl_lock *lock = new_lock(client, "k", SHORT_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    assert_result(nxl_lock_extend(lock, LONG_MS), NXL_UNKNOWN, lock);
    redis_thaw(&server);
    assert_eventually(!nxl_lock_held(lock));
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* ------------------------------------------------ the least and the longest */

static nxl_lock *kept_for(nxl_client *client, int64_t least, int64_t most)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = SHORT_MS;
    options.min_hold_ms = least;
    options.max_hold_ms = most;
    return kept_lock(client, "k", &options);
}

/* How long it had stood before is not known, so nothing is added to it. */
static void an_adopted_lock_has_no_minimum(void **state)
{
    (void)state;
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(theirs, "k", 5000);
    nxl_lock *heir = kept_for(client, 15000, 0);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_false(redis_exists(&server, "k"));
    end(heir, client);
    end(owner, theirs);
}

/* Its time is over, whatever it was prolonged to by hand, or stood for. */
static void no_hold_is_longer_than_the_longest(void **state)
{
    (void)state;
    char why[200];
    nxl_client *client = new_client(""), *theirs = new_client("");
    for (int adopts = 0; adopts < 2; adopts++) {
        nxl_lock *lock = kept_for(client, 0, 2 * SHORT_MS);
        nxl_lock *owner = new_lock(theirs, "k", LONG_MS);
        if (adopts) {
            assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
            assert_result(
                nxl_lock_adopt(lock, nxl_lock_token(owner)), NXL_OK, lock);
        } else {
            assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
            assert_result(nxl_lock_extend(lock, LONG_MS), NXL_OK, lock);
        }
        assert_true(nxl_lock_remaining_ms(lock) <= 2 * SHORT_MS);
        assert_ptr_equal(await_loss(client, 5000), lock);
        assert_false(nxl_lock_held(lock));
        assert_int_equal(
            nxl_lock_loss(lock, why, sizeof why), NXL_LOSS_EXPIRED);
        assert_contains(why, "max_hold_ms");
        nxl_lock_free(lock);
        nxl_lock_free(owner);
        assert_eventually(!redis_exists(&server, "k"));
    }
    nxl_client_free(client);
    nxl_client_free(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(who_begins_anew_finds_it_busy),
        live_test(who_ends_leaves_it),
        live_test(who_adopts_another_one_leaves_it),
        live_test(what_nobody_adopted_ends_by_itself),
        live_test(what_it_prolonged_itself_it_takes_back),
        live_test(an_adopted_lock_has_no_minimum),
        live_test(no_hold_is_longer_than_the_longest),
    };
    return live_run("handed over");
}
