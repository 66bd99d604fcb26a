/* SPDX-License-Identifier: MIT */
/*
 * The timestamp scheme on one server: what an acquire writes, which values are
 * taken over, by clients of the scheme and by those of SET NX PX. How each verb
 * works there, and what is left when it is cut off, is tested, as for all
 * strategies, by test_strategies_*.c.
 */
#include "live/orphan_rig.h"
#include "live/timestamps_rig.h"
#include "support/blanks.h"

static void acquire_writes_the_time_and_release_removes_it(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    int64_t before = server_now_s();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_held(lock));
    /* Rounded up, one more, and the doubt about the clock. */
    assert_between(stamp_at("job"), before + 6, before + 9);
    assert_int_equal(redis_pttl(&server, "job"), -1);
    assert_between(nxl_lock_remaining_ms(lock), 4700, 4950);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "job"));
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    assert_int_equal(redis_calls(&server, "set"), 0);
    assert_int_equal(redis_calls(&server, "eval"), 0);
    assert_int_equal(redis_calls(&server, "evalsha"), 0);
    end(lock, client);
}

/* A busy answer takes one round trip and no transaction. */
static void busy_costs_one_round_trip(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    time_stands("job", 60);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    /* It was asked about WATCH, and no more. */
    assert_int_equal(redis_calls(&server, "watch"), 1);
    assert_int_equal(redis_calls(&server, "multi"), 0);
    assert_int_equal(redis_calls(&server, "setnx"), 1);
    end(lock, client);
}

/* Values of others: only a time that is past is taken over. */
static void only_a_past_time_is_taken_over(void **state)
{
    static const char *const for_ever[] = {
        "123e4567-e89b-42d3-a456-426614174000", "x", "0", "1", "-1",
        "999999999", "1600000000123", " 1600000000", "1600000000 ",
        "1600000000x", "+1600000000", "1600000000.", "1,6e9", "01600000000",
        "1600000000123456"};
    static const char *const past[] = {"1600000000", "1600000000.5",
        "1600000000.123456", "1000000000",
        "1600000000.123456789012345678901234567890123456789"};
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    for (size_t i = 0; i < sizeof(for_ever) / sizeof(for_ever[0]); i++) {
        stranger_sets("job", for_ever[i], 0);
        assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
        assert_value("job", for_ever[i]);
    }
    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
        stranger_sets("job", past[i], 0);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_true(stamp_at("job") > 0);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_false(redis_exists(&server, "job"));
    }
    redis_run(&server, "RPUSH", "job", "1600000000", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    redis_run(&server, "DEL", "job", NULL);
    stranger_sets("job", "", 0);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_value("job", "");
    end(lock, client);
}

/* Half a megabyte is not read to find that out. */
static void large_value_is_not_read(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    redis_run(&server, "SETRANGE", "job", "500000", "x", NULL);
    static const char bytes[] = "total_net_output_bytes";
    long long before = server_number(&server, "stats", bytes);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    long long after = server_number(&server, "stats", bytes);
    assert_true(after - before < 100000);
    end(lock, client);
}

/* A program that locks by SET k <unix time> PX holds it until its ttl. */
static void time_with_a_ttl_is_busy_until_the_ttl_ends(void **state)
{
    nxl_client *client = new_client(STAMPS);
    nxl_lock *lock = new_lock(client, "job", 5000);
    stranger_sets("job", "1600000000", 60000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    assert_value("job", "1600000000");
    stranger_sets("job", "1600000000", 300);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    end(lock, client);
}

/* ------------------------------------ clients that lock by SET NX PX by now
 */

/* In our own format, offset from now. */
static void stamp_stands(int64_t offset_s)
{
    char value[STAMP_VALUE];
    snprintf(value, sizeof(value), "%lld" BLANKS,
        (long long)server_now_s() + offset_s);
    redis_run(&server, "SET", "k", value, NULL);
}

/* It has an end afterwards, and a token. */
static void assert_taken_over(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 1000), NXL_OK, lock);
    assert_value("k", nxl_lock_token(lock));
    assert_between(redis_pttl(&server, "k"), 2500, 5000);
    assert_between(nxl_lock_remaining_ms(lock), 3500, 5000);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "k"));
}

static void take_over(const char *parameters)
{
    nxl_client *client = new_client(parameters);
    nxl_lock *lock = new_lock(client, "k", 5000);
    stamp_stands(-1);
    assert_taken_over(lock);
    redis_run(&server, "SET", "k", "1600000000" BLANKS, NULL);
    assert_taken_over(lock);
    end(lock, client);
}

static void set_nx_client_takes_over_a_past_time(void **state)
{
    take_over("");
    take_over("poll=1");
}

static int return_rights(void **state)
{
    freeReplyObject(
        redis_command(&server, "ACL", "SETUSER", "default", "+@all", NULL));
    return 0;
}

/* By a transaction where scripts are refused; where both are, it is busy. */
static void takeover_by_transaction_or_not_at_all_without_rights(void **state)
{
    redis_needs_acl(&server);
    nxl_client *client = new_client("timeout_ms=300");
    nxl_lock *lock = new_lock(client, "k", 5000);
    redis_run(&server, "ACL", "SETUSER", "default", "-@scripting", NULL);
    stamp_stands(-1);
    assert_taken_over(lock);
    redis_run(&server, "ACL", "SETUSER", "default", "-multi", NULL);
    stamp_stands(-1);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    redis_run(&server, "ACL", "SETUSER", "default", "+multi", "-watch", NULL);
    assert_result(nxl_lock_acquire(lock, 1500), NXL_BUSY, lock);
    redis_run(&server, "ACL", "SETUSER", "default", "+watch", "-time", NULL);
    assert_result(nxl_lock_acquire(lock, 1500), NXL_BUSY, lock);
    redis_run(&server, "ACL", "SETUSER", "default", "+time", "-psetex", NULL);
    assert_result(nxl_lock_acquire(lock, 1500), NXL_BUSY, lock);
    redis_run(&server, "ACL", "SETUSER", "default", "+psetex", NULL);
    test_pause_ms(1000); /* the last look was a moment ago */
    assert_taken_over(lock);
    end(lock, client);
}

static void set_nx_client_waits_for_a_valid_time(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 5000);
    stamp_stands(60);
    assert_result(nxl_lock_acquire(lock, 1500), NXL_BUSY, lock);
    assert_true(stamp_at("k") > 0);
    stamp_stands(-1);
    redis_run(&server, "PEXPIRE", "k", "60000", NULL); /* somebody cares */
    assert_result(nxl_lock_acquire(lock, 1500), NXL_BUSY, lock);
    stamp_stands(2);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock); /* then */
    assert_between(test_now_ms() - began, 1000, 4500);
    end(lock, client);
}

/* Not to ask all the time costs a waiter little. */
static void polling_waiter_asks_for_the_time_once_a_second(void **state)
{
    nxl_client *client = new_client("poll=1");
    nxl_lock *lock =
        lock_with(client, "k", .retry_min_ms = 5, .retry_max_ms = 5);
    stranger_sets("k", "somebody", 0);
    assert_result(nxl_lock_acquire(lock, 1500), NXL_BUSY, lock);
    assert_true(redis_calls(&server, "pttl") > 50);
    assert_between(redis_calls(&server, "time"), 1, 2);
    end(lock, client);
}

static void interop_takes_over_times_of_other_programs(void **state)
{
    nxl_client *client = new_client(""), *interop = new_client("interop=1");
    nxl_lock *lock = new_lock(client, "k", 5000);
    nxl_lock *other = new_lock(interop, "k", 5000);
    static const char *const never[] = {"1600000000123", "somebody", "0",
        "123e4567-e89b-42d3-a456-426614174000", " 1600000000"};
    time_stands("k", -10);
    assert_result(nxl_lock_acquire(lock, 100), NXL_BUSY, lock);
    assert_taken_over(other);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        stranger_sets("k", never[i], 0);
        nxl_lock *fresh = new_lock(interop, "k", 5000);
        assert_result(nxl_lock_acquire(fresh, 100), NXL_BUSY, fresh);
        assert_value("k", never[i]);
        nxl_lock_free(fresh);
    }
    time_stands("k", 60);
    nxl_lock *fresh = new_lock(interop, "k", 5000);
    assert_result(nxl_lock_acquire(fresh, 100), NXL_BUSY, fresh);
    nxl_lock_free(fresh);
    end(lock, client);
    end(other, interop);
}

/* Of many that see it, one gets it; so do both kinds of client. */
static void one_of_four_waiters_takes_over(void **state)
{
    static struct waiter waiter[4];
    nxl_client *client[4];
    nxl_lock *lock[4];
    for (int i = 0; i < 4; i++) {
        client[i] = new_client(i == 3 ? STAMPS : "");
        lock[i] = new_lock(client[i], "k", 30000);
    }
    for (int round = 0; round < 20; round++) {
        int got = -1;
        stamp_stands(-3);
        for (int i = 0; i < 4; i++)
            waiter_start(&waiter[i], lock[i], 100);
        for (int i = 0; i < 4; i++) {
            int rc = waiter_join(&waiter[i]);
            assert_true(rc == NXL_OK || rc == NXL_BUSY);
            assert_true(rc == NXL_BUSY || got < 0);
            if (rc == NXL_OK)
                got = i;
        }
        if (got >= 0)
            assert_result(nxl_lock_release(lock[got]), NXL_OK, lock[got]);
        redis_run(&server, "DEL", "k", NULL);
    }
    for (int i = 0; i < 4; i++)
        end(lock[i], client[i]);
}

/* Its value stands in the old form; so it is prolonged and released in it,
 * whatever the server can do by now. */
static void timestamp_lock_is_adopted_by_a_set_nx_client(void **state)
{
    nxl_client *old = new_client(STAMPS), *new = new_client("");
    nxl_lock *holder = new_lock(old, "k", 5000);
    nxl_lock *heir = new_lock(new, "k", 5000);
    nxl_lock *other = new_lock(new, "k", 5000);
    assert_result(nxl_lock_acquire(holder, 0), NXL_OK, holder);
    assert_result(nxl_lock_adopt(heir, nxl_lock_token(holder)), NXL_OK, heir);
    assert_result(nxl_lock_acquire(other, 50), NXL_BUSY, other);
    assert_result(nxl_lock_extend(heir, 30000), NXL_OK, heir);
    assert_true(stamp_at("k") >= server_now_s() + 30);
    nxl_holder seen = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(heir, &seen), NXL_OK, heir);
    assert_true(seen.ours);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_false(redis_exists(&server, "k"));
    assert_result(nxl_lock_acquire(heir, 0), NXL_OK, heir);
    assert_value("k", nxl_lock_token(heir));
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    nxl_lock_free(other);
    end(holder, old);
    end(heir, new);
}

enum { TTL_MS = 30000 };

/* Other locks' commands are no part of a transaction that was left. */
static void late_replies_do_not_enter_other_locks_transactions(void **state)
{
    struct proxy *proxy = proxy_to_server();
    nxl_client *client = via(proxy, STAMPS "&timeout_ms=150");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_lock *other = new_lock(client, "other", TTL_MS);
    for (int i = 0; i < 10; i++) {
        redis_run(&server, "SET", "k", "1600000000", NULL);
        proxy_delay(proxy, PROXY_DOWN, 95);
        assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
        proxy_delay(proxy, PROXY_DOWN, 0);
        assert_eventually(call(lock) >= NXL_OK);
        assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
        assert_true(stamp_at("other") > 0);
        assert_result(nxl_lock_release(other), NXL_OK, other);
        assert_false(redis_exists(&server, "other"));
    }
    assert_int_equal(proxy_accepted(proxy), 1);
    nxl_lock_free(other);
    end(lock, client);
    proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(acquire_writes_the_time_and_release_removes_it),
        live_test(busy_costs_one_round_trip),
        live_test(only_a_past_time_is_taken_over),
        live_test(large_value_is_not_read),
        live_test(time_with_a_ttl_is_busy_until_the_ttl_ends),
        live_test(set_nx_client_takes_over_a_past_time),
        cmocka_unit_test_setup_teardown(
            takeover_by_transaction_or_not_at_all_without_rights, live_clean,
            return_rights),
        live_test(set_nx_client_waits_for_a_valid_time),
        live_test(polling_waiter_asks_for_the_time_once_a_second),
        live_test(interop_takes_over_times_of_other_programs),
        live_test(one_of_four_waiters_takes_over),
        live_test(timestamp_lock_is_adopted_by_a_set_nx_client),
        live_test(late_replies_do_not_enter_other_locks_transactions),
    };
    return live_run_long("timestamps");
}
