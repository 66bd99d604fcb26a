/* SPDX-License-Identifier: MIT */
/*
 * How an attempt ends that is not simply told: freed at each moment, released,
 * adopted, forked, or told when its lease is over, was lost, or another attempt
 * has begun. Through both APIs.
 *
 * Invariant: what may have been done is found as begun or in doubt; what
 * certainly was not, because nobody learned that it had begun, is told as
 * failed. A done, once said, stays; said too late it is noted, and ends nobody
 * else's attempt.
 */
#include "live/once_rig.h"

#include "live/fork_rig.h"

#define SHORT_MS 200
#define RENEWED_MS 3000 /* renewed after a second */

static nxl_lock *begun(int64_t ttl_ms, int renew)
{
    nxl_lock *lock = lock_with(own, NAME, .ttl_ms = ttl_ms, .renew = renew);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    return lock;
}

/* --------------------------------------------------- before it is known of */

/* The answer is here, but the event has not been taken. */
static nxl_lock *begun_unseen(int64_t ttl_ms, int mode)
{
    nxl_lock *lock = new_lock(own, NAME, ttl_ms);
    uint64_t grants = stats_of(own).grants;
    assert_int_equal(
        nxl_once_begin_start(lock, &WORK(.mode = mode), 0), NXL_PENDING);
    settles(stats_of(own).grants > grants);
    assert_false(nxl_lock_held(lock));
    assert_int_equal(nxl_lock_remaining_ms(lock), 0);
    assert_string_equal(nxl_lock_token(lock), "");
    assert_string_equal(once_state(), "begun");
    assert_true(redis_exists(servers, NAME));
    return lock;
}

static void freed_before_the_event(void **state)
{
    open_clients();
    nxl_lock_free(begun_unseen(30000, NXL_ONCE_HALT));
    settles(is_free(NAME));
    assert_string_equal(once_state(), "failed");
    assert_ends(KEPT_MS);
    assert_found(NXL_ONCE_HALT, NXL_OK);
    /* That one is in doubt now, and what comes next is no more than before. */
    nxl_lock_free(begun_unseen(30000, NXL_ONCE_RETRY));
    settles(is_free(NAME));
    assert_string_equal(once_state(), "doubt");
    assert_found(NXL_ONCE_HALT, NXL_DOUBT);
    close_clients();
}

static void the_client_freed_before_the_event(void **state)
{
    open_clients();
    nxl_lock *lock = begun_unseen(30000, NXL_ONCE_HALT);
    nxl_client_free(own);
    own = NULL;
    nxl_lock_free(lock);
    assert_eventually(is_free(NAME));
    assert_string_equal(once_state(), "failed");
    close_clients();
}

static void its_lease_over_before_the_event(void **state)
{
    nxl_event event;
    open_clients();
    nxl_lock *lock = begun_unseen(SHORT_MS, NXL_ONCE_HALT);
    assert_eventually(!redis_exists(servers, NAME));
    event = next_event(own);
    assert_ptr_equal(event.lock, lock);
    assert_int_equal(event.operation, NXL_OP_ONCE_BEGIN);
    assert_result(event.result, NXL_LOST, lock);
    assert_false(nxl_lock_held(lock));
    settles(strcmp(once_state(), "failed") == 0);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_E_INVALID, lock);
    assert_found(NXL_ONCE_HALT, NXL_OK);
    nxl_lock_free(lock);
    close_clients();
}

/* A cancel after the answer comes too late: the event says that it began. */
static void cancelled_before_the_event(void **state)
{
    open_clients();
    nxl_lock *lock = begun_unseen(30000, NXL_ONCE_HALT);
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    nxl_event event = next_event(own);
    assert_int_equal(event.operation, NXL_OP_ONCE_BEGIN);
    if (event.result == NXL_OK) {
        assert_true(nxl_lock_held(lock));
        assert_true(holds(NAME, lock));
        assert_string_equal(once_state(), "begun");
    } else {
        assert_result(event.result, NXL_CANCELLED, lock);
        settles(is_free(NAME));
        assert_string_equal(once_state(), "failed");
    }
    nxl_lock_free(lock);
    close_clients();
}

/* Its request is under way: sent, but neither applied nor answered. */
static void ended_while_it_is_sent(void **state)
{
    for (int frees = 0; frees < 2; frees++) {
        once_clean(NULL);
        open_clients();
        nxl_lock *lock = new_lock(own, NAME, 30000);
        assert_result(once_look(own, lock), NXL_FREE, lock);
        redis_freeze(servers);
        assert_int_equal(nxl_once_begin_start(lock, NULL, 0), NXL_PENDING);
        turn(own, 0);
        if (frees) {
            nxl_lock_free(lock);
        } else {
            assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
            assert_result(next_event(own).result, NXL_CANCELLED, lock);
            nxl_lock_free(lock);
        }
        redis_thaw(servers);
        settles(stats_of(own).cleanups > 0);
        assert_true(is_free(NAME));
        assert_int_not_equal(strcmp(once_state(), "begun"), 0);
        assert_found(NXL_ONCE_HALT, NXL_OK);
        close_clients();
    }
}

/* ------------------------------------------------------------ once it holds */

enum moment { HELD, HELD_RENEWED, TELLING, TOLD, MOMENTS };

/* Freed: what was told stays, and what was not is in doubt. */
static void freed_at_each_moment(void **state)
{
    for (int moment = 0; moment < MOMENTS; moment++) {
        for (int whole = 0; whole < 2; whole++) {
            once_clean(NULL);
            open_clients();
            nxl_lock *lock = begun(30000, moment == HELD_RENEWED);
            if (moment == TELLING && by_loop) {
                assert_int_equal(
                    nxl_once_tell_start(lock, NXL_ONCE_DONE, 0, "x", 1),
                    NXL_PENDING);
                turn(own, 0);
            } else if (moment >= TELLING) {
                assert_result(
                    once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
            }
            if (!whole)
                nxl_lock_free(lock);
            nxl_client_free(own);
            own = NULL;
            if (whole)
                nxl_lock_free(lock);
            assert_eventually(is_free(NAME));
            assert_found(
                NXL_ONCE_HALT, moment >= TELLING ? NXL_DONE : NXL_DOUBT);
            close_clients();
        }
    }
}

/* It is the holder's own word that counts, also after a release. */
static void released_and_then_told(void **state)
{
    static const int verdicts[] = {
        NXL_ONCE_DONE, NXL_ONCE_FAILED, NXL_ONCE_DOUBT};
    for (int i = 0; i < 3; i++) {
        once_clean(NULL);
        open_clients();
        nxl_lock *lock = begun(30000, 0);
        assert_result(CALL(own, release, lock), NXL_OK, lock);
        assert_found(NXL_ONCE_HALT, NXL_DOUBT);
        assert_result(
            once_tell(own, lock, NXL_ONCE_CLEAR, 0, NULL), NXL_LOST, lock);
        assert_result(once_tell(own, lock, verdicts[i], 0, NULL), NXL_OK, lock);
        assert_found(NXL_ONCE_HALT, i == 0   ? NXL_DONE
                                    : i == 1 ? NXL_OK
                                             : NXL_DOUBT);
        nxl_lock_free(lock);
        close_clients();
    }
}

/* Who begins in doubt and then did nothing leaves the doubt as it was. */
static void failed_in_doubt(void **state)
{
    struct written before, w;
    open_clients();
    nxl_lock_free(begun(30000, 0));
    settles(is_free(NAME));
    assert_true(once_written(&before));
    nxl_lock *lock = new_lock(own, NAME, 30000);
    assert_result(
        once_begin(own, lock, &WORK(.mode = NXL_ONCE_RETRY), 0), NXL_OK, lock);
    assert_shown(lock);
    for (int i = 0; i < 2; i++) { /* it may be said again */
        assert_result(once_tell(own, lock, NXL_ONCE_FAILED, 3, i ? NULL : "x"),
            NXL_OK, lock);
        assert_shown(lock);
        assert_true(is_free(NAME));
        assert_true(once_written(&w));
        assert_string_equal(w.token, before.token);
        assert_string_equal(once_state(), "begun");
    }
    assert_found(NXL_ONCE_HALT, NXL_DOUBT);
    /* The next work of the handle is not that one. */
    assert_result(
        once_begin(own, lock, &WORK(.mode = NXL_ONCE_RETRY), 0), NXL_OK, lock);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_found(NXL_ONCE_RETRY, NXL_DONE);
    nxl_lock_free(lock);
    close_clients();
}

/* Nothing that is given beside FAILED changes what the record is about: such a
 * result looks like the line of one. */
static void failed_with_a_result(void **state)
{
    static const char *const results[] = {
        "once1 doubt B 5 3 0 111 222 333 7 0 600000 =f 0",
        "once1 begun B 5 3 0 111 222 333 7 0 600000 - 0\n", NULL};
    for (int i = 0; i < 6; i++) {
        struct written before, w;
        const char *result = results[i % 3];
        char line[LINE_ROOM];
        bool adopts = i < 3;
        once_clean(NULL);
        open_clients();
        nxl_lock_free(begun(30000, 0));
        settles(is_free(NAME));
        nxl_lock *lock = new_lock(own, NAME, 30000);
        nxl_lock *heir = new_lock(theirs, NAME, 30000);
        assert_result(once_begin(own, lock, &WORK(.mode = NXL_ONCE_RETRY), 0),
            NXL_OK, lock);
        assert_true(once_written(&before) && once_line(line));
        if (adopts)
            assert_result(
                nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
        else {
            nxl_lock_free(lock);
            lock = NULL;
            settles(is_free(NAME));
            assert_result(once_begin(theirs, heir, NULL, 0), NXL_DOUBT, heir);
        }
        if (!result) /* the record itself */
            result = line;
        assert_result(
            once_tell(theirs, heir, NXL_ONCE_FAILED, 3, result), NXL_OK, heir);
        assert_shown(heir);
        assert_true(once_written(&w));
        assert_string_equal(once_state(), "doubt");
        assert_string_equal(w.token, before.token);
        assert_int_equal(w.doubts, 1);
        nxl_lock_free(heir);
        nxl_lock_free(lock);
        close_clients();
    }
}

/* Another process adopts the lock, and it is that one that tells. */
static void adopted_and_told(void **state)
{
    open_clients();
    nxl_lock *lock = begun(30000, 0), *heir = new_lock(theirs, NAME, 30000);
    struct written w;
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    assert_result(
        once_tell(theirs, heir, NXL_ONCE_DONE, 4, "theirs"), NXL_OK, heir);
    assert_shown(heir);
    assert_true(once_written(&w));
    assert_string_equal(w.token, nxl_lock_token(lock));
    assert_int_equal(w.keep, KEPT_MS);
    assert_ends(KEPT_MS);
    assert_true(is_free(NAME));
    /* The first result stands, whoever says it. */
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 5, "own"), NXL_OK, lock);
    assert_shown(lock);
    assert_result(once_begin(own, lock, NULL, 0), NXL_DONE, lock);
    nxl_record r = NXL_RECORD_INIT;
    assert_int_equal(nxl_once_record(lock, &r), NXL_OK);
    assert_int_equal(r.code, 4);
    assert_int_equal(r.result_length, 6);
    assert_memory_equal(r.result, "theirs", 6);
    nxl_lock_free(heir);
    nxl_lock_free(lock);
    close_clients();
}

/* The other way round: this API adopts, with a keep that is not its own. */
static void adopts_and_tells(void **state)
{
    const int64_t hour = 3600000;
    open_clients();
    nxl_lock *lock = new_lock(theirs, NAME, 30000);
    nxl_lock *heir = lock_with(own, NAME, .ttl_ms = 30000, .renew = 1);
    assert_result(
        once_begin(theirs, lock, &WORK(.keep_ms = hour), 0), NXL_OK, lock);
    assert_result(CALL(own, adopt, heir, nxl_lock_token(lock)), NXL_OK, heir);
    assert_true(nxl_lock_held(heir));
    assert_result(
        once_tell(own, heir, NXL_ONCE_FAILED, 75, NULL), NXL_OK, heir);
    assert_false(nxl_lock_held(heir));
    assert_shown(heir);
    assert_ends(hour);
    assert_true(is_free(NAME));
    nxl_lock_free(heir);
    nxl_lock_free(lock);
    close_clients();
}

/* ----------------------------------------------------- and what is not an end
 */

/* A handle goes on to other work; the first cannot be told of any more. */
static void a_handle_is_used_again(void **state)
{
    open_clients();
    nxl_lock *lock = begun(30000, 0);
    assert_result(once_begin(own, lock, NULL, 0), NXL_E_INVALID, lock);
    assert_result(once_tell(own, lock, NXL_ONCE_FAILED, 0, NULL), NXL_OK, lock);
    for (int i = 2; i <= 5; i++) {
        struct written w;
        assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
        assert_true(once_written(&w));
        assert_int_equal(w.attempt, i);
        assert_result(
            once_tell(own, lock, NXL_ONCE_FAILED, 0, NULL), NXL_OK, lock);
    }
    assert_result(CALL(own, acquire, lock, 0), NXL_OK, lock);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_E_INVALID, lock);
    assert_result(CALL(own, release, lock), NXL_OK, lock);
    nxl_lock_free(lock);
    close_clients();
}

static void expect_forked_once(void *argument)
{
    struct handles *h = argument;
    nxl_record r = NXL_RECORD_INIT;
    expect(nxl_once_begin(h->lock, NULL, 0) == NXL_E_FORKED);
    expect(nxl_once_begin_start(h->lock, NULL, 0) == NXL_E_FORKED);
    expect(nxl_once_tell(h->lock, NXL_ONCE_DONE, 0, "x", 1) == NXL_E_FORKED);
    expect(
        nxl_once_tell_start(h->lock, NXL_ONCE_DONE, 0, "x", 1) == NXL_E_FORKED);
    expect(nxl_once_forget(h->lock) == NXL_E_FORKED);
    expect(nxl_once_forget_start(h->lock) == NXL_E_FORKED);
    expect(nxl_once_record(h->lock, &r) == NXL_E_FORKED);
    nxl_lock_free(h->lock);
    nxl_client_free(h->client);
}

static void a_child_of_fork(void **state)
{
    open_clients();
    nxl_lock *lock = begun(30000, 0);
    struct handles h = {own, lock};
    run_child(expect_forked_once, &h);
    assert_true(nxl_lock_held(lock));
    assert_true(holds(NAME, lock));
    assert_string_equal(once_state(), "begun");
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, NULL), NXL_OK, lock);
    nxl_lock_free(lock);
    close_clients();
}

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
    nxl_lock *lock = begun(RENEWED_MS, 1);
    uint64_t first = nxl_lock_deadline(lock);
    settles(nxl_lock_deadline(lock) > first + UINT64_C(900000000));
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
    nxl_lock *lock = begun(RENEWED_MS, 1);
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
        once_loop_test(freed_before_the_event),
        once_loop_test(the_client_freed_before_the_event),
        once_loop_test(its_lease_over_before_the_event),
        once_loop_test(cancelled_before_the_event),
        once_loop_test(ended_while_it_is_sent),
        once_test(freed_at_each_moment),
        once_test(released_and_then_told),
        once_test(failed_in_doubt),
        once_test(failed_with_a_result),
        once_test(adopted_and_told),
        once_test(adopts_and_tells),
        once_test(a_handle_is_used_again),
        once_test(a_child_of_fork),
        once_test(told_after_the_lease),
        once_test(told_after_another_has_begun),
        once_test(a_confirm_that_is_too_late),
        once_test(extended_lost_and_told),
        once_test(renewed_and_told),
        once_test(lost_by_a_renewal_and_told),
    };
    return on_run(one_unix, "once: ends", tests);
}
