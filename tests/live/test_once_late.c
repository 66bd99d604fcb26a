/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once, told of when its lease is over, was lost, or
 * after another attempt has begun. Through both APIs.
 *
 * Invariant: a done, once said, stays; said too late it is noted, and nobody
 * else's attempt is ended by it.
 */
#include "live/once_two_rig.h"

/* ---------------------------------------------------------------- too late */

static void told_after_the_lease(void **state)
{
    static const int verdicts[] = {
        NXL_ONCE_DONE, NXL_ONCE_FAILED, NXL_ONCE_DOUBT};
    static const char *const states[] = {"done", "failed", "doubt"};
    for (int i = 0; i < 3; i++) {
        once_clean(NULL);
        open_clients();
        nxl_lock *lock = begun(SHORT_MS, 0);
        assert_eventually(!nxl_lock_held(lock));
        assert_eventually(!redis_exists(servers, NAME));
        assert_result(
            once_tell(own, lock, NXL_ONCE_CLEAR, 0, NULL), NXL_LOST, lock);
        assert_result(once_tell(own, lock, verdicts[i], 0, NULL), NXL_OK, lock);
        assert_string_equal(once_state(), states[i]);
        assert_ends(KEPT_MS);
        nxl_lock_free(lock);
        close_clients();
    }
}

/* Another one holds the lock by then: it keeps it. */
static void told_while_another_one_holds_the_lock(void **state)
{
    open_clients();
    nxl_lock *lock = begun(SHORT_MS, 0), *other = new_lock(theirs, NAME, 30000);
    assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_true(holds(NAME, other));
    assert_string_equal(once_state(), "done");
    assert_result(nxl_lock_release(other), NXL_OK, other);
    nxl_lock_free(other);
    nxl_lock_free(lock);
    close_clients();
}

/* Another attempt has begun, by order: the late word is noted, and said again
 * it is as late. */
static void told_after_another_has_begun(void **state)
{
    open_clients();
    nxl_lock *lock = begun(SHORT_MS, 0), *other = new_lock(theirs, NAME, 30000);
    struct written w;
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(once_begin(theirs, other, &WORK(.mode = NXL_ONCE_RETRY), 0),
        NXL_OK, other);
    assert_result(
        once_tell(own, lock, NXL_ONCE_FAILED, 0, NULL), NXL_LOST, lock);
    for (int late = 1; late <= 2; late++) {
        assert_result(
            once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_LOST, lock);
        assert_true(*nxl_lock_errmsg(lock));
        assert_shown(lock);
        assert_true(once_written(&w));
        assert_int_equal(w.late, late);
        assert_string_equal(w.token, nxl_lock_token(other));
        assert_string_equal(w.state, "begun");
    }
    assert_true(holds(NAME, other));
    /* Its checker's no, and its own "nothing happened", are not believed. */
    assert_result(
        once_tell(theirs, other, NXL_ONCE_CLEAR, 0, NULL), NXL_LOST, other);
    assert_result(
        once_tell(theirs, other, NXL_ONCE_FAILED, 0, NULL), NXL_OK, other);
    assert_string_equal(once_state(), "doubt");
    nxl_lock_free(other);
    nxl_lock_free(lock);
    close_clients();
}

/* Of another one's attempt that has gone on meanwhile nothing is told: neither
 * the first time nor the second. */
static void a_confirm_that_is_too_late(void **state)
{
    open_clients();
    nxl_lock *gone = begun(SHORT_MS, 0), *other = new_lock(theirs, NAME, 30000);
    nxl_lock *lock = new_lock(own, NAME, 30000);
    struct written w;
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(once_begin(own, lock, NULL, 0), NXL_DOUBT, lock);
    assert_result(once_begin(theirs, other, &WORK(.mode = NXL_ONCE_RETRY), 0),
        NXL_OK, other);
    for (int i = 0; i < 3; i++) {
        int verdict = i < 2 ? NXL_ONCE_DONE : NXL_ONCE_FAILED;
        assert_result(once_tell(own, lock, verdict, 0, "x"),
            i == 0 ? NXL_LOST : NXL_E_INVALID, lock);
        assert_true(once_written(&w));
        assert_string_equal(w.state, "begun");
        assert_string_equal(w.token, nxl_lock_token(other));
        assert_true(holds(NAME, other));
    }
    assert_result(
        once_tell(theirs, other, NXL_ONCE_DONE, 0, "y"), NXL_OK, other);
    nxl_lock_free(gone);
    nxl_lock_free(other);
    nxl_lock_free(lock);
    close_clients();
}

/* ------------------------------------------------------------------- losses */

static void extended_lost_and_told(void **state)
{
    open_clients();
    nxl_lock *lock = begun(2000, 0);
    assert_result(CALL(own, extend, lock, 40000), NXL_OK, lock);
    assert_between(redis_pttl(servers, NAME), 39000, 40000);
    assert_string_equal(once_state(), "begun");
    redis_run(servers, "DEL", NAME, NULL);
    assert_found(NXL_ONCE_HALT, NXL_DOUBT);
    assert_result(CALL(own, extend, lock, 0), NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, lock);
    assert_found(NXL_ONCE_HALT, NXL_DONE);
    nxl_lock_free(lock);
    close_clients();
}

static void renewed_and_told(void **state)
{
    open_clients();
    nxl_lock *lock = begun(RENEW_MS, 1);
    uint64_t first = nxl_lock_deadline(lock);
    settles(nxl_lock_deadline(lock) > first + RENEW_MS * UINT64_C(1000000));
    assert_string_equal(once_state(), "begun");
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_true(is_free(NAME));
    nxl_lock_free(lock);
    close_clients();
}

static void lost_by_a_renewal_and_told(void **state)
{
    nxl_event event;
    open_clients();
    nxl_lock *lock = begun(RENEW_MS, 1);
    redis_run(servers, "SET", NAME, "somebody", NULL);
    settles(!nxl_lock_held(lock));
    settles(nxl_client_next_event(own, &event));
    assert_int_equal(event.operation, NXL_OP_HOLD);
    assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_TAKEN);
    assert_result(once_tell(own, lock, NXL_ONCE_DOUBT, 0, NULL), NXL_OK, lock);
    assert_string_equal(once_state(), "doubt");
    assert_true(redis_exists(servers, NAME)); /* the stranger's */
    nxl_lock_free(lock);
    close_clients();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(told_after_the_lease),
        once_test(told_while_another_one_holds_the_lock),
        once_test(told_after_another_has_begun),
        once_test(a_confirm_that_is_too_late),
        once_test(extended_lost_and_told),
        once_test(renewed_and_told),
        once_test(lost_by_a_renewal_and_told),
    };
    return on_run(one_unix, "once: late", tests);
}
