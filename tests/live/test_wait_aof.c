/* SPDX-License-Identifier: MIT */
/*
 * wait_aof on a real primary with one replica: it waits for append-only files,
 * the server's own and the replica's. Skipped before Redis 7.2.
 */
#include "support/test.h"

#include "live/replica_rig.h"

enum { TTL_MS = 20000 };

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

static int set_up(void **state)
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
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    assert_result(nxl_lock_extend(lock, 2 * TTL_MS), NXL_OK, lock);
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
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    end(lock, client);
}

static void what_its_file_does_not_have_is_undone(void **state)
{
    needs_waitaof();
    set_file(&server, "no"); /* nothing is known of it then */
    nxl_client *client = waiting_client("&wait_aof=1&wait_ms=60");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
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
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
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
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 10000), NXL_OK, lock);
    assert_true(redis_calls(&server, "waitaof") >= 1);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_files_have_counts, set_up),
        cmocka_unit_test_setup(
            a_file_that_is_written_each_second_counts, set_up),
        cmocka_unit_test_setup(what_its_file_does_not_have_is_undone, set_up),
        cmocka_unit_test_setup(a_replica_without_a_file_does_not_count, set_up),
        cmocka_unit_test_setup(its_own_file_may_be_all, set_up),
    };
    return cmocka_run_group_tests_name(
        "wait_aof", tests, replica_start, replica_stop);
}
