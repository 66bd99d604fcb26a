/* SPDX-License-Identifier: MIT */
/*
 * guard_failover with each kind of lock. All that may hold it do, a replica is
 * promoted, and nobody else is granted it before the pause is over.
 *
 *     the replica has the holders    they go on, and extend at the new primary
 *     it has none of them            they lose it, before anybody is granted it
 *     waiters in line                are granted it by the new primary, after
 *                                    the pause, no more at once than fit
 */
#include "live/failover_rig.h"

enum { EXCLUSIVE, SHARED, PERMITS, KINDS };

/* together: how many handles are to hold it at once: as many as may, or some */
static const struct lock_kind {
    const char *name;
    int together;
    nxl_lock_options options;
} kinds[KINDS] = {
    {"exclusive", 1, {.size = sizeof(nxl_lock_options)}},
    {"shared", 4, {.size = sizeof(nxl_lock_options), .shared = 1}},
    {"permits", 4, {.size = sizeof(nxl_lock_options), .permits = 4}},
};

static nxl_lock *of_kind(
    nxl_client *client, int kind, int64_t ttl_ms, bool renew)
{
    nxl_lock_options options = kinds[kind].options;
    options.ttl_ms = ttl_ms;
    options.renew = renew;
    return live_lock(client, "k", &options, kinds[kind].name, kind);
}

static bool is_set(struct redis *r)
{
    redisReply *type = redis_command(r, "TYPE", "k", NULL);
    bool is = strcmp(type->str, "zset") == 0;
    freeReplyObject(type);
    return is;
}

/* How many hold "k" by that server, with those whose lease is over and whom
 * nothing has removed yet. */
static long long holders_at(struct redis *r)
{
    return is_set(r) ? redis_run(r, "ZCARD", "k", NULL) - 1
                     : redis_exists(r, "k");
}

static long long waiters_at(struct redis *r)
{
    return redis_run(r, "ZCARD", "{k}:nxl-l", NULL);
}

enum { MOST = 4 };

static struct holders {
    int kind, count;
    nxl_client *client[MOST];
    nxl_lock *lock[MOST];
} all;

/* As many as may hold it, or four that share it, each of its own client. */
static void hold_all(int kind)
{
    all = (struct holders){.kind = kind, .count = kinds[kind].together};
    for (int i = 0; i < all.count; i++) {
        all.client[i] = living(GUARDED);
        all.lock[i] = of_kind(all.client[i], kind, TTL_MS, false);
    }
}

static void all_acquire(void)
{
    for (int i = 0; i < all.count; i++)
        assert_result(nxl_lock_acquire(all.lock[i], 0), NXL_OK, all.lock[i]);
    assert_int_equal(holders_at(primary), all.count);
}

static int held_now(void)
{
    int held = 0;
    for (int i = 0; i < all.count; i++)
        held += nxl_lock_held(all.lock[i]);
    return held;
}

static void all_end(void)
{
    for (int i = 0; i < all.count; i++)
        end(all.lock[i], all.client[i]);
}

/* The one of the same kind for whom there is no room; of a shared lock, one
 * that wants it alone. */
static nxl_lock *one_too_many(nxl_client *client, int kind)
{
    return kind == SHARED ? new_lock(client, "k", TTL_MS)
                          : of_kind(client, kind, TTL_MS, false);
}

static void crash_and_promote(void)
{
    redis_run(primary, "CLIENT", "KILL", "TYPE", "normal", NULL);
    redis_freeze(primary);
    promote();
}

/* The replica has missed them all. */
static void nobody_else_before_the_pause_is_over(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        assert_int_equal(failover_set_up(state), 0);
        hold_all(kind);
        nxl_client *other = living(GUARDED), *fresh = client_of(GUARDED);
        nxl_lock *lock = one_too_many(other, kind);
        nxl_lock *late = one_too_many(fresh, kind);
        redis_follow(replica, "1");
        all_acquire();
        crash_and_promote();
        int64_t promoted = test_now_ms();
        while (held_now() > 0) {
            assert_int_not_equal(nxl_lock_acquire(lock, 0), NXL_OK);
            assert_int_not_equal(nxl_lock_acquire(late, 0), NXL_OK);
        }
        assert_result(nxl_lock_acquire(lock, 8000), NXL_OK, lock);
        assert_true(test_now_ms() - promoted >= TTL_MS);
        assert_int_equal(held_now(), 0);
        end(late, fresh);
        end(lock, other);
        all_end();
    }
}

/* Others are not granted it, and each extends its lease. False: one had run out
 * by then, for it was extended too late. */
static bool all_extend(nxl_lock *other, int64_t *extended_ms)
{
    const int64_t lease_ms = LEASE_NS(TTL_MS) / 1000000;
    int64_t began_ms = test_now_ms();
    bool kept = nxl_lock_acquire(other, 0) != NXL_OK;
    if (!kept)
        assert_true(held_now() < (all.kind == SHARED ? 1 : all.count));
    for (int i = 0; i < all.count; i++)
        kept &= nxl_lock_extend(all.lock[i], 0) == NXL_OK;
    assert_true(kept || test_now_ms() - *extended_ms >= lease_ms);
    *extended_ms = began_ms;
    return kept;
}

static bool they_go_on(int kind, nxl_lock *other)
{
    int64_t extended_ms = test_now_ms();
    all_acquire();
    assert_eventually(holders_at(replica) == all.count);
    crash_and_promote();
    int64_t end_ms = test_now_ms() + GUARD_MS + 2000;
    while (test_now_ms() < end_ms) {
        test_pause_ms(TTL_MS / 20);
        if (!all_extend(other, &extended_ms))
            return false;
    }
    assert_int_equal(holders_at(replica), all.count);
    for (int i = 0; i < all.count; i++) {
        assert_result(nxl_lock_release(all.lock[i]), NXL_OK, all.lock[i]);
        if (kind == PERMITS && i == 0)
            assert_result(nxl_lock_acquire(other, 2000), NXL_OK, other);
    }
    if (kind != PERMITS)
        assert_result(nxl_lock_acquire(other, 2000), NXL_OK, other);
    return true;
}

static bool kind_goes_on(int kind)
{
    hold_all(kind);
    nxl_client *client = living(GUARDED);
    nxl_lock *other = one_too_many(client, kind);
    bool kept = they_go_on(kind, other);
    end(other, client);
    all_end();
    return kept;
}

/* The replica has them all: each extends its lease there, and keeps it for as
 * long as it likes. Then the place of one that leaves is free. */
static void those_that_it_has_go_on(void **state)
{
    for (int kind = 0; kind < KINDS; kind++)
        assert_in_three_tries(
            failover_set_up(state) == 0 && kind_goes_on(kind));
}

/* Twice as many wait in line as may hold it. The line may be lost with the
 * primary; but all are granted it in the end, never too many at once. */
static void who_waits_is_granted_it_later(void **state)
{
    enum { WAITERS = 2 * MOST };
    static struct waiter waits[WAITERS];
    static nxl_client *client[WAITERS];
    static nxl_lock *lock[WAITERS];
    for (int kind = 0; kind < KINDS; kind++) {
        int together = kinds[kind].together, waiters = 2 * together;
        assert_int_equal(failover_set_up(state), 0);
        nxl_client *first = living(GUARDED);
        nxl_lock *alone = new_lock(first, "k", TTL_MS);
        for (int i = 0; i < waiters; i++) {
            client[i] = living(GUARDED);
            lock[i] = of_kind(client[i], kind, TTL_MS, false);
        }
        assert_result(nxl_lock_acquire(alone, 2000), NXL_OK, alone);
        for (int i = 0; i < waiters; i++)
            waiter_start(&waits[i], lock[i], 15000);
        assert_eventually(nxl_lock_extend(alone, 0) == NXL_OK &&
                          waiters_at(primary) == waiters);
        crash_and_promote();
        int granted = 0;
        for (int64_t end_ms = test_now_ms() + 20000; granted < waiters;) {
            int held = 0;
            test_pause_ms(1);
            assert_true(test_now_ms() < end_ms);
            for (int i = 0; i < waiters; i++)
                held += nxl_lock_held(lock[i]);
            assert_true(held <= together || kind == SHARED);
            assert_false(held > 0 && nxl_lock_held(alone));
            for (int i = 0; i < waiters; i++) {
                if (!waits[i].lock ||
                    pthread_tryjoin_np(waits[i].thread, NULL) != 0)
                    continue;
                assert_int_equal(waits[i].result, NXL_OK);
                waits[i].lock = NULL;
                assert_int_not_equal(nxl_lock_release(lock[i]), NXL_E_INVALID);
                granted++;
            }
        }
        for (int i = 0; i < waiters; i++)
            end(lock[i], client[i]);
        end(alone, first);
        assert_eventually(redis_lasting_keys(replica) <= 1); /* the marker */
    }
}

#define guard_test(f) cmocka_unit_test_setup(f, failover_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(nobody_else_before_the_pause_is_over),
        guard_test(those_that_it_has_go_on),
        guard_test(who_waits_is_granted_it_later),
    };
    return cmocka_run_group_tests_name(
        "permit failover", tests, failover_start, failover_stop);
}
