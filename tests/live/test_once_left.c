/* SPDX-License-Identifier: MIT */
/*
 * What an attempt leaves behind whose verdict, or whose begin, did not arrive.
 * Through both APIs.
 *
 * Invariant: no name stays taken by a handle that no longer exists or has begun
 * anew, nobody is left in doubt about work that certainly was not begun as long
 * as the client lives, and a verdict can be said as long as its handle has not
 * turned to other work.
 */
#include "live/once_rig.h"

#define TTL_MS 60000
#define SHORT_MS 150
#define TIMEOUT "timeout_ms=150"

static nxl_client *theirs;
static nxl_lock *lock;

static void open_all(int64_t ttl_ms)
{
    once_clean(NULL);
    own = proxied_client(1, TIMEOUT);
    theirs = client_on(NO_GUARD);
    lock = new_lock(own, NAME, ttl_ms);
    assert_result(once_look(own, lock), NXL_FREE, lock);
}

static void close_all(void)
{
    nxl_client_free(own);
    nxl_client_free(theirs);
    quorum_mend(NULL);
}

/* A call by which a blocking client gets on with its cleanups. */
static void settle(void)
{
    nxl_lock *other = NULL;
    if (by_loop) {
        turn(own, 5);
        return;
    }
    other = new_lock(own, "other", TTL_MS);
    if (nxl_lock_acquire(other, 0) != NXL_OK)
        test_pause_ms(5);
    nxl_lock_free(other);
}
#define settles(condition) assert_eventually((settle(), (condition)))

static void assert_found(int result)
{
    nxl_lock *next = new_lock(theirs, NAME, TTL_MS);
    assert_result(once_begin(theirs, next, NULL, 0), result, next);
    nxl_lock_free(next);
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
    open_all(TTL_MS);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    tell_in_vain();
    nxl_lock_free(lock);
    settles(is_free(NAME));
    assert_found(NXL_DOUBT);
    close_all();
}

static void begun_after_a_verdict_in_vain(void **state)
{
    open_all(TTL_MS);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    tell_in_vain();
    assert_result(once_begin(own, lock, NULL, 5000), NXL_DOUBT, lock);
    assert_true(is_free(NAME));
    nxl_lock_free(lock);
    close_all();
}

static void freed_before_the_verdict_is_sent(void **state)
{
    if (!by_loop)
        return;
    open_all(TTL_MS);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_int_equal(
        nxl_once_tell_start(lock, NXL_ONCE_DONE, 0, "x", 1), NXL_PENDING);
    nxl_lock_free(lock);
    settles(is_free(NAME));
    assert_found(NXL_DOUBT);
    close_all();
}

/* A lock that another process may own by now is left alone. */
static void freed_when_its_lease_is_over(void **state)
{
    nxl_lock *heir;
    open_all(SHORT_MS);
    heir = new_lock(theirs, NAME, TTL_MS);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, TTL_MS), NXL_OK, heir);
    assert_eventually(!nxl_lock_held(lock));
    proxy_refuse(proxies[0], true);
    proxy_cut(proxies[0], true);
    assert_true(once_tell(own, lock, NXL_ONCE_DOUBT, 0, NULL) != NXL_OK);
    proxy_refuse(proxies[0], false);
    nxl_lock_free(lock);
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
    open_all(SHORT_MS);
    assert_result(once_begin(own, lock, NULL, 0), NXL_OK, lock);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(lock));
    assert_eventually(!redis_exists(servers, NAME));
    assert_result(CALL_OF(own, adopt, lock, token), NXL_LOST, lock);
    assert_result(once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_OK, lock);
    assert_found(NXL_DONE);
    /* Another token's is another attempt. */
    assert_result(
        CALL_OF(own, adopt, lock, "00000000-0000-4000-8000-000000000000"),
        NXL_LOST, lock);
    assert_result(
        once_tell(own, lock, NXL_ONCE_DONE, 0, "x"), NXL_E_INVALID, lock);
    nxl_lock_free(lock);
    close_all();
}

/* The begin was applied, its answer is lost, and the server is out of reach for
 * longer than its lease: it is taken back nonetheless. */
static void a_begin_taken_back_after_its_lease(void **state)
{
    open_all(SHORT_MS);
    proxy_refuse(proxies[0], true);
    proxy_cut_after(proxies[0], PROXY_DOWN, 1);
    assert_result(once_begin(own, lock, NULL, 0), NXL_UNKNOWN, lock);
    assert_string_equal(once_state(), "begun");
    assert_eventually(!redis_exists(servers, NAME));
    test_pause_ms(2 * SHORT_MS);
    proxy_refuse(proxies[0], false);
    assert_result(once_begin(own, lock, NULL, 5000), NXL_OK, lock);
    nxl_lock_free(lock);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        once_test(freed_after_a_verdict_in_vain),
        once_test(begun_after_a_verdict_in_vain),
        once_test(freed_before_the_verdict_is_sent),
        once_test(freed_when_its_lease_is_over),
        once_test(told_after_adopting_in_vain),
        once_test(a_begin_taken_back_after_its_lease),
    };
    return on_run(one_unix, "once: left behind", tests);
}
