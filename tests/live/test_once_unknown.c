/* SPDX-License-Identifier: MIT */
/*
 * Work that must be done once over a bad network, and on a server that hangs or
 * is killed: answers that are lost, requests that are lost, connections that
 * are cut at each byte, and what an attempt leaves behind whose verdict, or
 * whose begin, did not arrive. Through both APIs.
 *
 * Invariant: a verdict without an answer may be said again until there is one;
 * a begin without one is taken back, or else found in doubt, and no second
 * attempt begins on it. No name stays taken by a handle that no longer exists
 * or has begun anew.
 */
#include "live/once_rig.h"

#define TIMEOUT "timeout_ms=300"
/* Outlasts what a test does in the meantime, on a slow machine too. */
#define LONG_TIMEOUT "timeout_ms=1500"
#define RESULT "a receipt of some length"

static nxl_lock *lock;

static void open_all(const char *parameters)
{
    once_clean(NULL);
    own = proxied_client(1, parameters);
    theirs = client_on(NO_GUARD);
    lock = new_lock(own, NAME, 30000);
    assert_result(once_look(own, lock), NXL_FREE, lock);
}

static void close_all(void)
{
    end(lock, own);
    nxl_client_free(theirs);
    quorum_mend(NULL);
}

/* ----------------------------------------------------------- the bad moments
 */

enum fault { ANSWER_LOST, REQUEST_AWAITS_REPLICAS, FROZEN, CUT, FAULTS };
static const char *const faults[] = {
    "its answer is lost", "it is held up", "the server hangs", "it is cut"};

static void break_down(enum fault fault)
{
    switch (fault) {
    case ANSWER_LOST:
        proxy_drop(proxies[0], PROXY_DOWN, true);
        break;
    case REQUEST_AWAITS_REPLICAS:
        proxy_hold(proxies[0], PROXY_UP, true);
        break;
    case FROZEN:
        redis_freeze(servers);
        break;
    default:
        proxy_cut_after(proxies[0], PROXY_DOWN, 1);
        break;
    }
}

static void repair(enum fault fault)
{
    if (fault == ANSWER_LOST) { /* TCP loses none and goes on */
        proxy_cut(proxies[0], true);
        proxy_drop(proxies[0], PROXY_DOWN, false);
    }
    if (fault == REQUEST_AWAITS_REPLICAS)
        proxy_hold(proxies[0], PROXY_UP, false);
    redis_thaw(servers);
}

/* Said again until it is answered. */
static void say_again(int verdict, const char *result)
{
    int64_t end = test_now_ms() + 20000;
    int rc;
    while ((rc = once_tell(own, lock, verdict, 0, result)) != NXL_OK) {
        assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
        assert_true(*nxl_lock_errmsg(lock));
        assert_true(test_now_ms() < end);
    }
}

static void a_verdict_without_an_answer(void **state)
{
    static const int verdicts[] = {
        NXL_ONCE_DONE, NXL_ONCE_FAILED, NXL_ONCE_DOUBT};
    static const int found[] = {NXL_DONE, NXL_OK, NXL_DOUBT};
    for (int fault = 0; fault < FAULTS; fault++) {
        for (int i = 0; i < 3; i++) {
            print_message("           %s\n", faults[fault]);
            open_all(TIMEOUT);
            assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
            break_down((enum fault)fault);
            int rc =
                once_tell(own, lock, verdicts[i], 0, i == 0 ? RESULT : NULL);
            if (fault != CUT || rc != NXL_OK) /* that one it has said again */
                assert_result(rc, NXL_UNKNOWN, lock);
            assert_false(nxl_lock_held(lock));
            repair((enum fault)fault);
            say_again(verdicts[i], i == 0 ? RESULT : NULL);
            assert_shown(lock);
            assert_true(is_free(NAME));
            assert_found(NXL_ONCE_HALT, found[i]);
            close_all();
        }
    }
}

static void a_begin_without_an_answer(void **state)
{
    for (int fault = 0; fault < FAULTS; fault++) {
        print_message("           %s\n", faults[fault]);
        open_all(TIMEOUT);
        break_down((enum fault)fault);
        assert_result(once_begin(own, lock, NULL, 0), NXL_UNKNOWN, lock);
        assert_false(nxl_lock_held(lock));
        repair((enum fault)fault);
        settles(stats_of(own).cleanups > 0);
        assert_true(is_free(NAME));
        assert_string_not_equal(once_state(), "begun");
        assert_found(NXL_ONCE_HALT, NXL_OK);
        close_all();
    }
}

/* The same handle begins again at once: its first try is not in its way for
 * ever, and is never found as an attempt besides. */
static void begun_again_at_once(void **state)
{
    for (int fault = 0; fault < FAULTS; fault++) {
        open_all(TIMEOUT);
        break_down((enum fault)fault);
        assert_result(once_begin(own, lock, NULL, 0), NXL_UNKNOWN, lock);
        repair((enum fault)fault);
        int64_t end = test_now_ms() + 20000;
        int rc;
        while ((rc = once_begin(own, lock, NULL, 2000)) != NXL_OK) {
            assert_true(
                rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE || rc == NXL_BUSY);
            assert_true(test_now_ms() < end);
        }
        struct written w;
        assert_true(once_written(&w));
        assert_int_equal(w.doubts, 0);
        assert_true(holds(NAME, lock));
        say_again(NXL_ONCE_DONE, RESULT);
        assert_found(NXL_ONCE_HALT, NXL_DONE);
        close_all();
    }
}

/* The network keeps the begin and its connection, and passes it on when its
 * client is gone: it is in doubt, and one can make it right. */
static void a_begin_that_comes_too_late(void **state)
{
    static struct beginner beginner;
    open_all(LONG_TIMEOUT);
    nxl_lock *other = new_lock(theirs, NAME, 1000);
    proxy_hold(proxies[0], PROXY_UP, true);
    uint64_t bytes = proxy_bytes(proxies[0], PROXY_UP);
    beginner_start(&beginner, own, lock, &WORK(.mode = NXL_ONCE_HALT), 0);
    if (by_loop)
        turn(own, 0);
    assert_true(proxy_await(proxies[0], PROXY_UP, bytes + 100));
    proxy_refuse(proxies[0], true);
    proxy_strand(proxies[0]);
    assert_result(beginner_end(&beginner), NXL_UNKNOWN, lock);
    end(lock, own);
    own = NULL;
    lock = NULL;
    assert_string_equal(once_state(), "none");
    proxy_deliver(proxies[0]);
    proxy_hold(proxies[0], PROXY_UP, false);
    assert_eventually(strcmp(once_state(), "begun") == 0);
    redis_run(servers, "PEXPIRE", NAME, "1", NULL); /* its lease is over */
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(once_begin(theirs, other, NULL, 0), NXL_DOUBT, other);
    assert_result(
        once_tell(theirs, other, NXL_ONCE_FAILED, 0, NULL), NXL_OK, other);
    assert_result(once_begin(theirs, other, NULL, 0), NXL_OK, other);
    nxl_lock_free(other);
    close_all();
}

/* The connection is cut at each byte of the begin or of its answer. */
static void cut_at_each_byte_of_a_begin(enum proxy_way way)
{
    int unknown = 0, step = way == PROXY_UP ? 23 : 3;
    for (size_t byte = 1;; byte += (size_t)step) {
        open_all(TIMEOUT);
        uint64_t before = proxy_bytes(proxies[0], way);
        proxy_cut_after(proxies[0], way, byte);
        int rc = once_begin(own, lock, NULL, 0);
        bool cut = proxy_bytes(proxies[0], way) - before >= byte;
        if (rc == NXL_OK) {
            assert_true(holds(NAME, lock));
            say_again(NXL_ONCE_DONE, RESULT);
            assert_found(NXL_ONCE_HALT, NXL_DONE);
        } else {
            assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
            unknown += rc == NXL_UNKNOWN;
            settles(is_free(NAME) && strcmp(once_state(), "begun") != 0);
            assert_found(NXL_ONCE_HALT, NXL_OK);
        }
        close_all();
        if (!cut)
            break;
    }
    assert_true(unknown > 3);
}

static void begins_that_are_cut(void **state)
{
    cut_at_each_byte_of_a_begin(PROXY_UP);
}

static void answers_to_a_begin_that_are_cut(void **state)
{
    cut_at_each_byte_of_a_begin(PROXY_DOWN);
}

static void cut_at_each_byte_of_a_verdict(enum proxy_way way)
{
    int cuts = 0, step = way == PROXY_UP ? 23 : 3;
    for (size_t byte = 1;; byte += (size_t)step) {
        open_all(TIMEOUT);
        assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
        uint64_t before = proxy_bytes(proxies[0], way);
        proxy_cut_after(proxies[0], way, byte);
        int rc = once_tell(own, lock, NXL_ONCE_DONE, 0, RESULT);
        bool cut = proxy_bytes(proxies[0], way) - before >= byte;
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        cuts += stats_of(own).connections > 1;
        if (rc != NXL_OK)
            say_again(NXL_ONCE_DONE, RESULT);
        nxl_record r = NXL_RECORD_INIT;
        assert_true(is_free(NAME));
        assert_result(once_begin(own, lock, NULL, 5000), NXL_DONE, lock);
        assert_int_equal(nxl_once_record(lock, &r), NXL_OK);
        assert_int_equal(r.result_length, strlen(RESULT));
        assert_memory_equal(r.result, RESULT, strlen(RESULT));
        close_all();
        if (!cut)
            break;
    }
    assert_true(cuts > 3);
}

static void verdicts_that_are_cut(void **state)
{
    cut_at_each_byte_of_a_verdict(PROXY_UP);
}

static void answers_to_a_verdict_that_are_cut(void **state)
{
    cut_at_each_byte_of_a_verdict(PROXY_DOWN);
}

/* Forget and look change nothing by being lost. */
static void forgetting_without_an_answer(void **state)
{
    open_all(TIMEOUT);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    say_again(NXL_ONCE_DONE, RESULT);
    break_down(ANSWER_LOST);
    assert_result(once_forget(own, lock), NXL_UNKNOWN, lock);
    repair(ANSWER_LOST);
    note_forgotten();
    int again = once_forget(own, lock);
    assert_true(again == NXL_OK || again == NXL_FREE);
    assert_false(redis_exists(servers, RECORD_KEY));
    assert_result(once_look(own, lock), NXL_FREE, lock);
    break_down(REQUEST_AWAITS_REPLICAS);
    int rc = once_look(own, lock);
    assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    repair(REQUEST_AWAITS_REPLICAS);
    close_all();
}

/* A server that is gone: nothing was begun, and it says so. */
static void no_server(void **state)
{
    open_all(TIMEOUT);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    proxy_refuse(proxies[0], true);
    proxy_cut(proxies[0], true);
    int rc = once_tell(own, lock, NXL_ONCE_DONE, 0, RESULT);
    assert_true(rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN);
    assert_true(*nxl_lock_errmsg(lock));
    rc = once_tell(own, lock, NXL_ONCE_DONE, 0, RESULT);
    assert_result(rc, NXL_E_UNREACHABLE, lock);
    assert_result(once_begin(own, lock, NULL, 0), NXL_E_UNREACHABLE, lock);
    redis_run(servers, "DEL", NAME, NULL);
    assert_found(NXL_ONCE_HALT, NXL_DOUBT);
    proxy_refuse(proxies[0], false);
    close_all();
}

/* ------------------------------------------- verdicts that could not be sent
 */

#define SHORT_MS 150

static void open_short(void)
{
    open_all(TIMEOUT);
    nxl_lock_free(lock);
    lock = new_lock(own, NAME, SHORT_MS);
}

/* The request does not leave this process, or is held up on its way. */
static void tell_in_vain(void)
{
    proxy_hold(proxies[0], PROXY_UP, true);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_UNKNOWN, lock);
    proxy_refuse(proxies[0], true);
    proxy_cut(proxies[0], true);
    proxy_hold(proxies[0], PROXY_UP, false);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_E_UNREACHABLE, lock);
    assert_true(redis_exists(servers, NAME));
    proxy_refuse(proxies[0], false);
}

static void freed_after_a_verdict_in_vain(void **state)
{
    open_all(TIMEOUT);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    tell_in_vain();
    nxl_lock_free(lock);
    lock = NULL;
    settles(is_free(NAME));
    assert_found(NXL_ONCE_HALT, NXL_DOUBT);
    close_all();
}

static void begun_after_a_verdict_in_vain(void **state)
{
    open_all(TIMEOUT);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    tell_in_vain();
    assert_result(once_begin(own, lock, NULL, 5000), NXL_DOUBT, lock);
    assert_true(is_free(NAME));
    close_all();
}

static void freed_before_the_verdict_is_sent(void **state)
{
    if (!by_loop)
        return;
    open_all(TIMEOUT);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_int_equal(
        nxl_once_tell_start(lock, NXL_ONCE_DONE, 0, "x", 1), NXL_PENDING);
    nxl_lock_free(lock);
    lock = NULL;
    settles(is_free(NAME));
    assert_found(NXL_ONCE_HALT, NXL_DOUBT);
    close_all();
}

/* A lock that another process may own by now is left alone. */
static void freed_when_its_lease_is_over(void **state)
{
    nxl_lock *heir;
    open_short();
    heir = new_lock(theirs, NAME, LAST_MS);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, LAST_MS), NXL_OK, heir);
    assert_eventually(!nxl_lock_held(lock));
    proxy_refuse(proxies[0], true);
    proxy_cut(proxies[0], true);
    assert_true(once_tell(own, lock, NXL_ONCE_DOUBT, 0, NULL) != NXL_OK);
    proxy_refuse(proxies[0], false);
    nxl_lock_free(lock);
    lock = NULL;
    for (int i = 0; i < 10; i++)
        settle();
    assert_true(holds(NAME, heir));
    nxl_lock_free(heir);
    close_all();
}

/* The lease cannot be taken up again, but its work can be told of. */
static void told_after_adopting_in_vain(void **state)
{
    char token[256];
    open_short();
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(lock));
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(CALL_OF(own, adopt, lock, token), NXL_LOST, lock);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_found(NXL_ONCE_HALT, NXL_DONE);
    /* Another token's is another attempt. */
    assert_result(
        CALL_OF(own, adopt, lock, "00000000-0000-4000-8000-000000000000"),
        NXL_LOST, lock);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_E_INVALID, lock);
    close_all();
}

/* The begin was applied, its answer is lost, and the server is out of reach for
 * longer than its lease: it is taken back nonetheless. */
static void a_begin_taken_back_after_its_lease(void **state)
{
    open_short();
    proxy_refuse(proxies[0], true);
    proxy_cut_after(proxies[0], PROXY_DOWN, 1);
    assert_result(once_begin(own, lock, NULL, 0), NXL_UNKNOWN, lock);
    assert_string_equal(once_state(), "begun");
    assert_eventually(!redis_exists(servers, NAME));
    test_pause_ms(2 * SHORT_MS);
    proxy_refuse(proxies[0], false);
    assert_result(once_begin(own, lock, NULL, 5000), NXL_OK, lock);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(a_verdict_without_an_answer),
        once_test(a_begin_without_an_answer),
        once_test(begun_again_at_once),
        once_test(a_begin_that_comes_too_late),
        once_test(begins_that_are_cut),
        once_test(answers_to_a_begin_that_are_cut),
        once_test(verdicts_that_are_cut),
        once_test(answers_to_a_verdict_that_are_cut),
        once_test(forgetting_without_an_answer),
        once_test(no_server),
        once_test(freed_after_a_verdict_in_vain),
        once_test(begun_after_a_verdict_in_vain),
        once_test(freed_before_the_verdict_is_sent),
        once_test(freed_when_its_lease_is_over),
        once_test(told_after_adopting_in_vain),
        once_test(a_begin_taken_back_after_its_lease),
    };
    return on_run(one_unix, "once: no answer", tests);
}
