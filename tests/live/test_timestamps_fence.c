/* SPDX-License-Identifier: MIT */
/*
 * Takes over the expired timestamp of a dead holder: a waiter that draws a
 * fencing token does so as fast as one that does not, over one server and over
 * three, with the blocking API and with an event loop.
 */
#include "live/api_rig.h"
#include "support/blanks.h"

enum { TTL = 5000, WAIT = 6000 };

struct setup {
    size_t servers;
    bool fence, renew;
};

static const char *describe(const struct setup *s)
{
    static char text[120];
    snprintf(text, sizeof(text), "%zu server(s), %s fencing, renew %s, %s",
        s->servers, s->fence ? "with" : "without", s->renew ? "on" : "off",
        by_loop ? "event loop" : "blocking API");
    return text;
}

/* A program of the timestamp scheme died and left this at each server. */
static void leave_stamp(size_t count, int64_t offset_s)
{
    char value[160];
    for (size_t i = 0; i < count; i++) {
        redisReply *reply = redis_command(&servers[i], "TIME", NULL);
        long long now = strtoll(reply->element[0]->str, NULL, 10);
        freeReplyObject(reply);
        snprintf(
            value, sizeof(value), "%lld" BLANKS, now + (long long)offset_s);
        redis_run(&servers[i], "SET", "k", value, NULL);
    }
}

static nxl_lock *lock_of_setup(nxl_client *client, const struct setup *s)
{
    return lock_with(
        client, "k", .ttl_ms = TTL, .fence = s->fence, .renew = s->renew);
}

static void take_over(const struct setup *s)
{
    nxl_client *client = quorum_client(s->servers, NO_GUARD);
    nxl_lock *lock = lock_of_setup(client, s);

    /* A single attempt does not look at what is there. */
    leave_stamp(s->servers, -1);
    assert_result(CALL(client, acquire, lock, 0), NXL_BUSY, lock);
    int rc = CALL(client, acquire, lock, WAIT);
    if (rc != NXL_OK)
        print_error("%s:\n", describe(s));
    assert_result(rc, NXL_OK, lock);
    assert_true(nxl_lock_held(lock));
    assert_true(standing(s->servers, "k", lock) > s->servers / 2);
    for (size_t at = 0; at < s->servers; at++)
        if (stands_at(at, "k", lock))
            assert_between(redis_pttl(&servers[at], "k"), 1000, TTL);
    assert_int_equal(nxl_lock_fence(lock) != 0, s->fence);
    assert_result(CALL(client, release, lock), NXL_OK, lock);
    assert_eventually(standing(s->servers, "k", lock) == 0);
    end(lock, client);
    quorum_clean(NULL);
}

static void waiter_takes_over_with_and_without_fencing(void **state)
{
    for (unsigned i = 0; i < 8; i++)
        take_over(&(struct setup){.servers = i & 1 ? 3 : 1,
            .fence = (i & 2) != 0,
            .renew = (i & 4) != 0});
}

/* Only exactly what was read is replaced, and only once it is past. */
static void fenced_waiter_replaces_only_a_past_time(void **state)
{
    const struct setup fenced = {.servers = 1, .fence = true};
    nxl_client *client = quorum_client(1, "");
    nxl_lock *lock = lock_of_setup(client, &fenced);
    static const char *const never[] = {"1600000000", "somebody", "0"};

    leave_stamp(1, 60);
    assert_result(nxl_lock_acquire(lock, 300), NXL_BUSY, lock);
    leave_stamp(1, -1);
    redis_run(&servers[0], "PEXPIRE", "k", "60000", NULL);
    assert_result(nxl_lock_acquire(lock, 300), NXL_BUSY, lock);
    assert_false(redis_exists(&servers[0], "{k}:f"));
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        char value[64];
        nxl_lock *fresh = lock_of_setup(client, &fenced);
        redis_run(&servers[0], "SET", "k", never[i], NULL);
        assert_result(nxl_lock_acquire(fresh, 100), NXL_BUSY, fresh);
        assert_true(redis_get(&servers[0], "k", value, sizeof(value)));
        assert_string_equal(value, never[i]);
        nxl_lock_free(fresh);
    }
    end(lock, client);
}

/* Of several waiters, with fencing and without, exactly one gets it. */
static void one_of_four_waiters_takes_over(void **state)
{
    static struct waiter waiter[4];
    nxl_client *client[4];
    nxl_lock *lock[4];
    for (int i = 0; i < 4; i++) {
        const struct setup s = {.servers = 1, .fence = i % 2 == 0};
        client[i] = quorum_client(1, "");
        lock[i] = lock_of_setup(client[i], &s);
    }
    for (int round = 0; round < 10; round++) {
        int got = 0;
        leave_stamp(1, -3);
        for (int i = 0; i < 4; i++)
            waiter_start(&waiter[i], lock[i], 200);
        for (int i = 0; i < 4; i++)
            got += waiter_join(&waiter[i]) == NXL_OK;
        assert_true(got <= 1);
        for (int i = 0; i < 4; i++)
            if (waiter[i].result == NXL_OK)
                assert_result(nxl_lock_release(lock[i]), NXL_OK, lock[i]);
        redis_run(&servers[0], "DEL", "k", NULL);
    }
    for (int i = 0; i < 4; i++)
        end(lock[i], client[i]);
}

/* The fencing token comes from the same counter as any other. */
static void takeover_draws_from_the_fencing_counter(void **state)
{
    const struct setup fenced = {.servers = 1, .fence = true};
    nxl_client *client = quorum_client(1, "");
    nxl_lock *lock = lock_of_setup(client, &fenced);

    redis_run(&servers[0], "SET", "{k}:f", "8000000000000000", NULL);
    leave_stamp(1, -1);
    assert_result(nxl_lock_acquire(lock, WAIT), NXL_OK, lock);
    assert_true(nxl_lock_fence(lock) == UINT64_C(8000000000000001));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(waiter_takes_over_with_and_without_fencing),
        quorum_test(fenced_waiter_replaces_only_a_past_time),
        quorum_test(one_of_four_waiters_takes_over),
        quorum_test(takeover_draws_from_the_fencing_counter),
    };
    return quorum_run("expired timestamps and fencing");
}
