/* SPDX-License-Identifier: MIT */
/*
 * Two of three servers grant the lock while the SET for the third one is held
 * up on its connection, and that connection is lost. After the lock has ended,
 * in whatever way, the SET must not be applied: nothing would delete the key
 * before its ttl is over.
 */
#include "support/test.h"

#include "live/api_rig.h"

#define TERMS NO_GUARD "&timeout_ms=2000"

enum { LONG_MS = 20000, SHORT_MS = 600 };

/* When the third server's connection is lost. */
enum lost { BEFORE_THE_GRANT, AFTER_THE_GRANT, AFTER_THE_RELEASE, LOSTS };
enum ending { BY_RELEASE, BY_LOCK_FREE, BY_CLIENT_FREE, ENDINGS };

static struct scene {
    nxl_client *client;
    nxl_lock *lock;
    struct waiter waiter;
} scene;

/* ------------------------------------------------------------ both APIs */

/* By the event loop until the condition holds; by the blocking API the
 * library does its work in other threads or in the next call. */
#define scene_until(condition)                                                 \
    assert_eventually((by_loop ? turn(scene.client, 1) : (void)0, condition))

static void scene_open(bool loop, bool renew, int64_t ttl_ms)
{
    by_loop = loop;
    scene.client = proxied_client(3, TERMS);
    scene.lock = lock_with(scene.client, "k", .ttl_ms = ttl_ms, .renew = renew);
    assert_eventually((result_of(scene.client, begin_inspect(scene.lock)),
        connected_to_all(scene.client)));
}

static void begin_acquire(void)
{
    if (by_loop)
        assert_int_equal(nxl_lock_acquire_start(scene.lock, 5000), NXL_PENDING);
    else
        waiter_start(&scene.waiter, scene.lock, 5000);
}

static void await_grant(void)
{
    int rc =
        by_loop ? next_event(scene.client).result : waiter_join(&scene.waiter);
    assert_result(rc, NXL_OK, scene.lock);
    assert_int_equal(standing(2, "k", scene.lock), 2);
    assert_false(redis_exists(&servers[2], "k"));
}

static void release(void)
{
    assert_result(CALL(scene.client, release, scene.lock), NXL_OK, scene.lock);
}

static void end_scene(enum ending ending)
{
    if (ending == BY_RELEASE)
        release();
    if (ending != BY_CLIENT_FREE)
        nxl_lock_free(scene.lock);
    nxl_client_free(scene.client);
    if (ending == BY_CLIENT_FREE)
        nxl_lock_free(scene.lock);
}

/* --------------------------------------------------- the third server's SET */

/* The client closes its connection; what it sent stays on its way. */
static void lose_connection(void)
{
    proxy_strand(proxies[2]);
    proxy_drop(proxies[2], PROXY_UP, false);
    proxy_hold(proxies[2], PROXY_UP, false);
}

/* Granted by two servers, with the third one's SET on its way. */
static void acquire_with_late_set(enum lost lost)
{
    uint64_t sent = proxy_bytes(proxies[2], PROXY_UP);
    bool before = lost == BEFORE_THE_GRANT;
    proxy_hold(proxies[2], PROXY_UP, true);
    proxy_hold(proxies[1], PROXY_DOWN, before);
    begin_acquire();
    scene_until(proxy_bytes(proxies[2], PROXY_UP) > sent);
    if (before) {
        lose_connection();
        scene_until(
            !connected_to_all(scene.client) || proxy_accepted(proxies[2]) > 1);
        proxy_hold(proxies[1], PROXY_DOWN, false);
    }
    await_grant();
    if (lost == AFTER_THE_GRANT)
        lose_connection();
    if (lost == AFTER_THE_RELEASE)
        proxy_drop(proxies[2], PROXY_UP, true); /* what follows the SET */
}

static long sets(void)
{
    return redis_calls(&servers[2], "set");
}

/* The SET arrives, if the server still reads that connection. */
static void deliver(void)
{
    long before = sets();
    proxy_deliver(proxies[2]);
    assert_eventually(sets() > before || proxy_connections(proxies[2]) == 0);
}

static void play(enum lost lost, enum ending ending, bool loop, bool renew)
{
    quorum_clean(NULL);
    scene_open(loop, renew, LONG_MS);
    acquire_with_late_set(lost);
    if (lost == AFTER_THE_RELEASE) {
        release();
        lose_connection();
    }
    end_scene(ending);
    assert_int_equal(keys_at(3, "k"), 0);
    deliver();
    if (redis_exists(&servers[2], "k"))
        fail_msg("a key of ours appeared after the end, for %lld ms: lost %d, "
                 "ending %d, by_loop %d, renew %d",
            (long long)redis_pttl(&servers[2], "k"), (int)lost, (int)ending,
            (int)loop, (int)renew);
    quorum_mend(NULL);
}

static void no_key_appears_after_the_end(void **state)
{
    for (int lost = 0; lost < LOSTS; lost++)
        for (int ending = 0; ending < ENDINGS; ending++)
            for (int way = 0; way < 4; way++)
                if (lost != AFTER_THE_RELEASE || ending == BY_LOCK_FREE)
                    play(
                        (enum lost)lost, (enum ending)ending, way & 1, way & 2);
}

/* Freed after its lease has ended: then the token may be another client's,
 * which is why nothing is deleted, here or there. */
static void after_the_deadline_nothing_is_deleted(void **state)
{
    for (int whole = 0; whole < 2; whole++) {
        quorum_clean(NULL);
        nxl_client *theirs = quorum_client(3, NO_GUARD);
        nxl_lock *heir = new_lock(theirs, "k", LONG_MS);
        scene_open(false, false, SHORT_MS);
        acquire_with_late_set(AFTER_THE_GRANT);
        assert_result(
            nxl_lock_adopt(heir, nxl_lock_token(scene.lock)), NXL_OK, heir);
        assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
        assert_eventually(!nxl_lock_held(scene.lock));
        end_scene(whole ? BY_CLIENT_FREE : BY_LOCK_FREE);
        deliver();
        assert_false(redis_exists(&servers[2], "k"));
        assert_int_equal(standing(2, "k", heir), 2);
        assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
        assert_result(nxl_lock_release(heir), NXL_OK, heir);
        end(heir, theirs);
        quorum_mend(NULL);
    }
}

/* Where CLIENT KILL is not allowed the SET is applied, and its key is deleted
 * afterwards: also when the release came first. */
static void without_client_kill_the_key_is_deleted(void **state)
{
    redis_run(&servers[2], "ACL", "SETUSER", "default", "-client", NULL);
    scene_open(true, false, LONG_MS);
    acquire_with_late_set(AFTER_THE_GRANT);
    release();
    long before = sets();
    proxy_deliver(proxies[2]);
    scene_until(sets() > before);
    scene_until(!redis_exists(&servers[2], "k"));
    redis_run(&servers[2], "ACL", "SETUSER", "default", "+client", NULL);
    end_scene(BY_LOCK_FREE);
}

/* While the lock is held its key is never deleted, at whichever server. */
static void what_is_held_stays(void **state)
{
    scene_open(true, false, LONG_MS);
    acquire_with_late_set(AFTER_THE_GRANT);
    deliver();
    assert_true(stands_at(2, "k", scene.lock)); /* it was in time */
    scene_until(
        proxy_accepted(proxies[2]) > 1 && connected_to_all(scene.client));
    for (int i = 0; i < 3; i++) {
        assert_result(
            CALL(scene.client, extend, scene.lock, 0), NXL_OK, scene.lock);
    }
    assert_int_equal(standing(3, "k", scene.lock), 3);
    end_scene(BY_RELEASE);
    assert_int_equal(keys_at(3, "k"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(no_key_appears_after_the_end),
        quorum_test(after_the_deadline_nothing_is_deleted),
        quorum_test(without_client_kill_the_key_is_deleted),
        quorum_test(what_is_held_stays),
    };
    return quorum_run("quorum_stranded");
}
