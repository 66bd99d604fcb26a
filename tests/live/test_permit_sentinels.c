/* SPDX-License-Identifier: MIT */
/*
 * SENTINEL FAILOVER while all permits of a lock are held and others wait in
 * line for them: the holders keep theirs by renewal, nobody else is granted one
 * before the pause is over, and a release then grants it to a batch, of which
 * each confirms that by a write of its own (wait_replicas=1).
 */
#define TEST_TIMEOUT_S 240
#include "support/test.h"

#include "live/kinds_rig.h"
#include "live/sentinel_rig.h"

/* After a failover no lock is granted for 9 s. */
enum { TTL_MS = 6000, PAUSE_MS = 60000, MOST = 4 };

/* Older than any lease, and named for as long. */
static int start(void **state)
{
    return sentinels_start(12);
}

static nxl_client *client_by_sentinels(const char *more)
{
    char url[512];
    sentinels_url(url, sizeof(url), SENTINELS);
    snprintf(url + strlen(url), sizeof(url) - strlen(url),
        "/svc?max_ttl_ms=%d&timeout_ms=500%s", TTL_MS, more);
    return client_at(url);
}

static bool begins_failover(void)
{
    redisReply *reply = redis_commandf(&sentinels[0], "SENTINEL FAILOVER svc");
    bool begun = reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return begun;
}

/* The new primary, once most name it and it has a replica again. */
static struct redis *fail_over(void)
{
    struct redis *next = is_named(replica.plain_port) ? &server : &replica;
    assert_eventually(begins_failover());
    assert_eventually(is_named(next->plain_port));
    return next;
}

static struct crowd {
    nxl_client *client[MOST], *waits_for[MOST];
    nxl_lock *held[MOST], *lock[MOST];
    struct waiter waiter[MOST];
} crowd;

static int count_held(nxl_lock *const *lock)
{
    int held = 0;
    for (int i = 0; i < MOST; i++)
        held += nxl_lock_held(lock[i]);
    return held;
}

/* Four hold it, and so many of that kind wait in line. */
static void assemble(int held, int waiting)
{
    struct redis *primary = is_named(server.plain_port) ? &server : &replica;
    for (int i = 0; i < MOST; i++) {
        crowd.client[i] = client_by_sentinels("");
        crowd.held[i] = of_kind(crowd.client[i], held, TTL_MS, true);
        assert_result(
            nxl_lock_acquire(crowd.held[i], PAUSE_MS), NXL_OK, crowd.held[i]);
    }
    for (int i = 0; i < MOST; i++) {
        crowd.waits_for[i] = client_by_sentinels("&wait_replicas=1");
        crowd.lock[i] = of_kind(crowd.waits_for[i], waiting, TTL_MS, false);
        waiter_start(&crowd.waiter[i], crowd.lock[i], PAUSE_MS);
        assert_eventually(
            waiters_at(primary) == i + 1 && are_told(primary, i + 1));
    }
    assert_eventually(holders_at(primary) == MOST);
}

static void disperse(void)
{
    for (int i = 0; i < MOST; i++) {
        end(crowd.held[i], crowd.client[i]);
        end(crowd.lock[i], crowd.waits_for[i]);
    }
}

static nxl_stats stats_at(nxl_client *client)
{
    nxl_stats stats;
    assert_int_equal(nxl_client_stats(client, &stats, sizeof(stats)), NXL_OK);
    return stats;
}

/* Holders with permits, waiters with permits: one leaves after the other, and
 * never do more than four hold one. */
static void four_of_four_over_a_failover(void **state)
{
    (void)state;
    assemble(PERMITS, PERMITS);
    struct redis *next = fail_over();
    int64_t end_ms = test_now_ms() + 9000;
    while (test_now_ms() < end_ms) {
        assert_int_equal(count_held(crowd.held), MOST);
        assert_int_equal(count_held(crowd.lock), 0);
        test_pause_ms(20);
    }
    for (int i = 0; i < MOST; i++)
        assert_int_equal(stats_at(crowd.client[i]).failovers, 1);
    for (int i = 0; i < MOST; i++) {
        assert_result(nxl_lock_release(crowd.held[i]), NXL_OK, crowd.held[i]);
        int64_t waits_ms = test_now_ms() + 30000;
        while (count_held(crowd.lock) <= i) {
            assert_true(test_now_ms() < waits_ms);
            assert_true(
                count_held(crowd.held) + count_held(crowd.lock) <= MOST);
            test_pause_ms(5);
        }
    }
    for (int i = 0; i < MOST; i++) {
        assert_int_equal(waiter_join(&crowd.waiter[i]), NXL_OK);
        assert_true(stands(next, nxl_lock_token(crowd.lock[i])));
    }
    assert_int_equal(holders_at(next), MOST);
    disperse();
}

/* Holders with permits, waiters that share: the last of the four grants it to
 * the whole batch, and each sends a WAIT behind a write of its own. */
static void a_batch_after_a_failover(void **state)
{
    (void)state;
    assemble(PERMITS, SHARED);
    /* A shared lock goes with permits while these are not all held. */
    struct redis *next = fail_over();
    for (int i = 0; i < MOST; i++)
        assert_int_equal(nxl_lock_held(crowd.lock[i]), false);
    assert_eventually(waiters_at(next) == MOST && are_told(next, MOST));
    assert_int_equal(count_held(crowd.held), MOST);
    int64_t paused_ms = test_now_ms() + 12000;
    while (test_now_ms() < paused_ms) { /* in line, and behind the pause */
        assert_int_equal(count_held(crowd.lock), 0);
        test_pause_ms(50);
    }
    long waits = redis_calls(next, "wait");
    for (int i = 0; i < MOST; i++)
        assert_result(nxl_lock_release(crowd.held[i]), NXL_OK, crowd.held[i]);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(waiter_join(&crowd.waiter[i]), NXL_OK);
    assert_true(redis_calls(next, "wait") >= waits + MOST);
    assert_int_equal(count_held(crowd.lock), MOST);
    assert_int_equal(holders_at(next), MOST);
    disperse();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_of_four_over_a_failover),
        cmocka_unit_test(a_batch_after_a_failover),
    };
    return cmocka_run_group_tests_name(
        "permit Sentinels", tests, start, sentinels_stop);
}
