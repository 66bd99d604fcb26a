/* SPDX-License-Identifier: MIT */
/*
 * wait_replicas and wait_aof, as far as no scene of
 * live/scenes/wait_replicas.scenes shows it: leases that are renewed beside a
 * lock that waits for a stopped replica, and append-only files.
 */
#include "support/test.h"

#include "live/renew_rig.h"

static struct redis replica;

static void replica_follow(void)
{
    redis_copy(&replica, &server);
    assert_eventually(
        server_number(&server, "replication", "connected_slaves") == 1);
}

static int replica_start(void **state)
{
    if (redis_start(&server, "--repl-diskless-sync-delay", "0",
            "--repl-timeout", "60", NULL) != 0)
        return -1;
    return redis_start(&replica, NULL);
}

static int replica_stop(void **state)
{
    redis_thaw(&replica);
    redis_stop(&replica);
    return live_stop(state);
}

/* Whatever the last test has left, the server is a primary, the replica has all
 * of it, and the server has no scripts. */
static int replica_set_up(void **state)
{
    if (replica.pid == 0)
        redis_restart(&replica);
    redis_thaw(&replica);
    redis_promote(&server);
    replica_follow();
    redis_run(&server, "SET", "warm", "", NULL);
    assert_eventually(redis_run(&server, "WAIT", "1", "100", NULL) == 1);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    return live_clean(state);
}

#define replica_test(function) cmocka_unit_test_setup(function, replica_set_up)

static nxl_client *waiting_client(const char *more)
{
    char url[256];
    snprintf(url, sizeof(url), "%s?wait_replicas=1%s", server.unix_url, more);
    return client_at(url);
}

/* While the replica is stopped for as long as one WAIT takes: a lock that is
 * renewed is not lost. False: the machine was too busy to say so. */
static bool survives_a_stop(
    nxl_client *client, const nxl_lock *held, nxl_lock *lock)
{
    int64_t began_ms = test_now_ms();
    uint64_t deadline = nxl_lock_deadline(held);
    redis_freeze(&replica);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "within 50ms");
    redis_thaw(&replica);
    comes_true(nxl_lock_deadline(held) > deadline ||
                   nxl_lock_loss(held, NULL, 0) != NXL_LOSS_NONE,
        2000);
    bool in_time = test_now_ms() - began_ms < 250;
    if (in_time)
        assert_int_equal(nxl_lock_loss(held, NULL, 0), NXL_LOSS_NONE);
    return in_time && stats_of(client).renewals > 0;
}

/* While it is stopped for longer, the key is there for as long as the program
 * may rely on it, and that is until the deadline. */
static void is_kept_until_its_deadline(const nxl_lock *held, nxl_lock *lock)
{
    redis_freeze(&replica);
    uint64_t deadline = 0;
    while (nxl_lock_loss(held, NULL, 0) == NXL_LOSS_NONE) {
        bool exists = redis_exists(&server, "r");
        if (nxl_lock_held(held)) {
            assert_true(exists);
            deadline = nxl_lock_deadline(held);
        }
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
        assert_true(redis_exists(&server, "{w}:nxl-l"));
    }
    const uint64_t lead_ns = UINT64_C(25000000); /* it is told before the end */
    assert_true(nxl_now_ns() + lead_ns >= deadline);
    redis_thaw(&replica);
}

/* Of a waiter and of a lock of half a second that is renewed, beside a lock
 * that waits for a stopped replica on the same connection. */
static void short_leases_stay_beside_a_wait(void **state)
{
    static struct waiter waiter;
    nxl_client *client = waiting_client("");
    nxl_client *plain = client_at(server.unix_url);
    nxl_lock *first = new_lock(plain, "w", 60000);
    nxl_lock *waits = lock_with(client, "w", .ttl_ms = 1000);
    nxl_lock *held = lock_with(client, "r", .ttl_ms = 500, .renew = 1);
    nxl_lock *lock = new_lock(client, "k", 30000);
    assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
    waiter_start(&waiter, waits, 60000);
    assert_eventually(redis_exists(&server, "{w}:nxl-l"));
    int survived = 0;
    for (int tries = 0; survived < 5; tries++) {
        assert_true(tries < 50);
        if (!nxl_lock_held(held))
            assert_result(nxl_lock_acquire(held, 20000), NXL_OK, held);
        survived += survives_a_stop(client, held, lock);
        assert_true(redis_exists(&server, "{w}:nxl-l"));
    }
    is_kept_until_its_deadline(held, lock);
    assert_result(nxl_lock_release(first), NXL_OK, first);
    assert_result(waiter_join(&waiter), NXL_OK, waits);
    nxl_lock_free(held);
    nxl_lock_free(lock);
    end(first, plain);
    end(waits, client);
}

/* ------------------------------------ append-only files, from Redis 7.2 on */

enum { AOF_TTL_MS = 20000 };

static void set_file(struct redis *r, const char *fsync)
{
    redis_run(r, "CONFIG", "SET", "appendonly", fsync ? "yes" : "no", NULL);
    if (!fsync)
        return;
    redis_run(r, "CONFIG", "SET", "appendfsync", fsync, NULL);
    /* Nothing counts until its first file has been written. */
    assert_eventually(
        server_number(r, "persistence", "aof_enabled") == 1 &&
        server_number(r, "persistence", "aof_rewrite_in_progress") == 0 &&
        server_number(r, "persistence", "aof_rewrite_scheduled") == 0);
}

static bool has_waitaof(void)
{
    redisReply *reply = redis_command(&server, "WAITAOF", "0", "0", "1", NULL);
    bool has = reply->type == REDIS_REPLY_ARRAY;
    freeReplyObject(reply);
    return has;
}

static int aof_set_up(void **state)
{
    int rc = replica_set_up(state);
    if (!has_waitaof())
        return rc;
    set_file(&server, "always");
    set_file(&replica, "always");
    return rc;
}

static void needs_waitaof(void)
{
    if (!has_waitaof())
        test_skip("this server has no WAITAOF (before Redis 7.2)");
}

/* With the defaults. */
static void what_files_have_counts(void **state)
{
    needs_waitaof();
    nxl_client *client = waiting_client("&wait_aof=1");
    nxl_lock *lock = new_lock(client, "k", AOF_TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_result(nxl_lock_extend(lock, 2 * AOF_TTL_MS), NXL_OK, lock);
    assert_true(nxl_lock_deadline(lock) > deadline);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_result(nxl_once_begin(lock, NULL, 10000), NXL_OK, lock);
    assert_result(nxl_once_tell(lock, NXL_ONCE_DONE, 0, "x", 1), NXL_OK, lock);
    assert_true(redis_exists(&replica, "{k}:once"));
    assert_int_equal(redis_calls(&server, "wait"), 0);
    assert_true(redis_calls(&server, "waitaof") >= 4);
    end(lock, client);
}

static void a_file_that_is_written_each_second_counts(void **state)
{
    needs_waitaof();
    set_file(&server, "everysec");
    nxl_client *client = waiting_client("&wait_aof=1");
    nxl_lock *lock = new_lock(client, "k", AOF_TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    end(lock, client);
}

static void what_its_file_does_not_have_is_undone(void **state)
{
    needs_waitaof();
    set_file(&server, "no"); /* nothing is known of it then */
    nxl_client *client = waiting_client("&wait_aof=1&wait_ms=60");
    nxl_lock *lock = new_lock(client, "k", AOF_TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock),
        "its append-only file did not have it within 60ms");
    assert_eventually(!redis_exists(&server, "k"));
    end(lock, client);
}

/* It has the lock, but not on its disk. */
static void a_replica_without_a_file_does_not_count(void **state)
{
    needs_waitaof();
    set_file(&replica, NULL);
    nxl_client *client = waiting_client("&wait_aof=1");
    nxl_lock *lock = new_lock(client, "k", AOF_TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock),
        "0 of 1 replica had it in an append-only file within 1.5s");
    assert_eventually(!redis_exists(&server, "k"));
    end(lock, client);
}

static void its_own_file_may_be_all(void **state)
{
    needs_waitaof();
    char url[256];
    snprintf(url, sizeof(url), "%s?wait_aof=1", server.unix_url);
    redis_freeze(&replica);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", AOF_TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    assert_true(redis_calls(&server, "waitaof") >= 1);
    end(lock, client);
}

#define aof_test(function) cmocka_unit_test_setup(function, aof_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        replica_test(short_leases_stay_beside_a_wait),
        aof_test(what_files_have_counts),
        aof_test(a_file_that_is_written_each_second_counts),
        aof_test(what_its_file_does_not_have_is_undone),
        aof_test(a_replica_without_a_file_does_not_count),
        aof_test(its_own_file_may_be_all),
    };
    return cmocka_run_group_tests_name(
        "wait_aof", tests, replica_start, replica_stop);
}
