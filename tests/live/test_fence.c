/* SPDX-License-Identifier: MIT */
/*
 * Fencing numbers of one server: in the order of the grants, whatever happens
 * to the holders, to the server's data or to an answer; and none where there
 * can be none.
 */
#include "live/proxy_rig.h"

#define COUNTER "{job}:f"

static nxl_lock *fenced_lock(nxl_client *client, const char *name, int64_t ttl)
{
    return lock_with(client, name, .ttl_ms = ttl, .fence = 1);
}

static uint64_t server_us(void)
{
    redisReply *reply = redis_command(&server, "TIME", NULL);
    uint64_t us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
                  strtoull(reply->element[1]->str, NULL, 10);
    freeReplyObject(reply);
    return us;
}

static uint64_t counter_at(const char *key)
{
    char value[64];
    return redis_get(&server, key, value, sizeof(value))
               ? strtoull(value, NULL, 10)
               : 0;
}

static void numbers_only_grow(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    nxl_lock *other = fenced_lock(client, "job", 5000);
    uint64_t last = server_us() - 1;
    assert_int_equal(nxl_lock_fence(lock), 0);
    assert_int_equal(nxl_lock_fence(NULL), 0);
    for (int i = 0; i < 100; i++) {
        nxl_lock *one = i % 3 ? lock : other;
        assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
        assert_true(nxl_lock_fence(one) > last);
        last = nxl_lock_fence(one);
        assert_int_equal(counter_at(COUNTER), last);
        assert_result(
            nxl_lock_acquire(one == lock ? other : lock, 0), NXL_BUSY, other);
        assert_int_equal(counter_at(COUNTER), last);
        assert_result(nxl_lock_extend(one, 6000), NXL_OK, one);
        assert_int_equal(nxl_lock_fence(one), last);
        assert_result(nxl_lock_release(one), NXL_OK, one);
    }
    assert_int_equal(redis_calls(&server, "psetex"), 200); /* the counter's */
    assert_int_equal(redis_calls(&server, "set"), 0);
    nxl_lock_free(other);
    end(lock, client);
}

/* A server that lost everything has a clock still. */
static void numbers_grow_over_a_loss_of_data(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_true(nxl_lock_fence(lock) > last);
        last = nxl_lock_fence(lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        redis_run(&server, "FLUSHALL", NULL);
        redis_run(&server, "SCRIPT", "FLUSH", NULL);
    }
    end(lock, client);
}

/* A clock that was set back is not followed. */
static void numbers_grow_over_a_clock_that_was_set_back(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    redis_run(&server, "SET", COUNTER, "9000000000000000", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_fence(lock) == UINT64_C(9000000000000001));
    end(lock, client);
}

/* ------------------------------------------------------ how long it is kept */

#define DAY_MS INT64_C(86400000)

static uint64_t draw(const char *parameters)
{
    nxl_client *client = new_client(parameters);
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t fence = nxl_lock_fence(lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    return fence;
}

/* A name that was used once leaves nothing for ever. */
static void counter_expires_after_a_day(void **state)
{
    uint64_t last = draw("");
    assert_between(redis_pttl(&server, COUNTER), DAY_MS - 60000, DAY_MS);
    /* Renewed by each ... */
    redis_run(&server, "PEXPIRE", COUNTER, "50000", NULL);
    assert_true(draw("") > last);
    assert_between(redis_pttl(&server, COUNTER), DAY_MS - 60000, DAY_MS);
    /* ... and for longer where a lease may be that long; never shorter. */
    last = draw("max_ttl_ms=86400000");
    for (int i = 0; i < 2; i++) {
        assert_between(
            redis_pttl(&server, COUNTER), 2 * DAY_MS - 60000, 2 * DAY_MS);
        assert_true(draw("") > last);
    }
    redis_run(&server, "PERSIST", COUNTER, NULL);
    last = draw("");
    assert_int_equal(redis_pttl(&server, COUNTER), -1);
    /* It goes on from the clock. */
    redis_run(&server, "PEXPIRE", COUNTER, "1", NULL);
    assert_eventually(!redis_exists(&server, COUNTER));
    assert_true(draw("") > last);
}

/* What the clock may not have reached when it would end, stays. */
static void counter_ahead_of_the_clock_does_not_expire(void **state)
{
    static const int64_t ahead_ms[] = {
        1000, DAY_MS / 2 - 60000, DAY_MS / 2 + 60000, 10 * DAY_MS};
    for (size_t i = 0; i < 4; i++) {
        char text[32];
        uint64_t far = server_us() + (uint64_t)ahead_ms[i] * 1000;
        snprintf(text, sizeof(text), "%llu", (unsigned long long)far);
        redis_run(&server, "SET", COUNTER, text, "PX", "60000", NULL);
        assert_int_equal(draw(""), far + 1);
        if (i < 2)
            assert_between(
                redis_pttl(&server, COUNTER), DAY_MS - 60000, DAY_MS);
        else
            assert_int_equal(redis_pttl(&server, COUNTER), -1);
    }
}

static void waiter_draws_a_number(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    stranger_sets("job", "somebody", 100);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_int_equal(nxl_lock_fence(lock), counter_at(COUNTER));
    end(lock, client);
}

static void counter_key_that_holds_something_else(void **state)
{
    static const char *const values[] = {"", "x", "-5", "1.5", "1e9", " 7",
        "9007199254740991", "99999999999999999999", "0x10"};
    nxl_client *client = new_client("");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    for (size_t i = 1; i < sizeof(values) / sizeof(values[0]); i++) {
        redis_run(&server, "SET", COUNTER, values[i], NULL);
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_WRONG_TYPE, lock);
        assert_contains(nxl_lock_errmsg(lock),
            "key '" COUNTER "' should hold the fencing counter");
        assert_false(redis_exists(&server, "job"));
        assert_value(COUNTER, values[i]);
    }
    redis_run(&server, "DEL", COUNTER, NULL);
    redis_run(&server, "LPUSH", COUNTER, "1", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_WRONG_TYPE, lock);
    assert_contains(nxl_lock_errmsg(lock),
        "key '" COUNTER "' should hold the fencing counter but holds "
        "something else; look at that key; if the name is in use for other");
    assert_false(redis_exists(&server, "job"));
    redis_run(&server, "DEL", COUNTER, NULL);
    redis_run(&server, "SET", COUNTER, "", NULL); /* as good as none */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
}

static void fencing_refused_with_scheme_timestamp(void **state)
{
    nxl_lock *lock;
    nxl_client *client = new_client("scheme=timestamp");
    assert_int_equal(nxl_lock_new(&lock, client, "job", &OPTIONS(.fence = 1)),
        NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "scheme=timestamp");
    nxl_client_free(client);
    client = new_client("");
    assert_int_equal(nxl_lock_new(&lock, client, "job", &OPTIONS(.fence = 2)),
        NXL_E_INVALID);
    assert_contains(nxl_client_errmsg(client), "fence is 2");
    nxl_client_free(client);
}

/* The number of an acquire that nobody heard of is never given again. */
static void number_of_a_lost_answer_is_not_given_again(void **state)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, "timeout_ms=200");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_true(nxl_lock_fence(lock) > last);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        proxy_hold(proxy, PROXY_DOWN, true);
        assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        proxy_hold(proxy, PROXY_DOWN, false);
        last = counter_at(COUNTER);
        assert_eventually(!redis_exists(&server, "job"));
    }
    end(lock, client);
    proxy_stop(proxy);
}

/* Adopting takes the lock over, not its number. */
static void adopted_lock_has_no_number(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = fenced_lock(client, "job", 5000);
    nxl_lock *heir = fenced_lock(client, "job", 5000);
    assert_result(nxl_lock_acquire(heir, 0), NXL_OK, heir);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
    assert_int_equal(nxl_lock_fence(heir), 0);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    nxl_lock_free(heir);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(numbers_only_grow),
        live_test(numbers_grow_over_a_loss_of_data),
        live_test(numbers_grow_over_a_clock_that_was_set_back),
        live_test(counter_expires_after_a_day),
        live_test(counter_ahead_of_the_clock_does_not_expire),
        live_test(waiter_draws_a_number),
        live_test(counter_key_that_holds_something_else),
        live_test(fencing_refused_with_scheme_timestamp),
        live_test(number_of_a_lost_answer_is_not_given_again),
        live_test(adopted_lock_has_no_number),
    };
    return live_run("fencing numbers");
}
