/* SPDX-License-Identifier: MIT */
/*
 * wait_replicas and wait_aof on a real primary with one replica: what counts,
 * what is undone beside others, and what is said. Each verb with each fault of
 * the replica and of the connection: test_wait_faults.c.
 */
#include "support/test.h"

#include "live/loop_rig.h"
#include "live/renew_rig.h"
#include "live/replica_rig.h"

enum { TTL_MS = 5000, MANY = 64 };

/* ------------------------------------------------------------- what counts */

/* Longer than a busy machine needs. */
#define PATIENT "&wait_ms=5000&timeout_ms=10000"

static void each_write_waits_once(void **state)
{
    nxl_client *client = waiting_client(PATIENT);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    long waits = redis_calls(&server, "wait");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(redis_calls(&server, "wait"), waits + 1);
    assert_true(redis_exists(&replica, "k"));
    assert_result(nxl_lock_extend(lock, 2 * TTL_MS), NXL_OK, lock);
    assert_int_equal(redis_calls(&server, "wait"), waits + 2);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(redis_calls(&server, "wait"), waits + 2);
    end(lock, client);
}

static void those_that_leave_together_wait_together(void **state)
{
    nxl_client *client = waiting_client(PATIENT);
    nxl_lock *locks[MANY];
    loop_reset(false);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        locks[i] = new_lock(client, name, TTL_MS);
    }
    assert_int_equal(nxl_lock_acquire_start(locks[0], 0), NXL_PENDING);
    assert_event(client, locks[0], NXL_OP_ACQUIRE, NXL_OK);
    assert_int_equal(nxl_lock_release_start(locks[0]), NXL_PENDING);
    assert_event(client, locks[0], NXL_OP_RELEASE, NXL_OK);
    loop_reset(false);
    long waits = redis_calls(&server, "wait");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
    loop_until(client, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(loop.event[i].result, NXL_OK);
    assert_int_equal(redis_calls(&server, "wait"), waits + 1);
    for (int i = 0; i < MANY; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

/* ---------------------------------------------------------- no replica has it
 */

static void a_wait_goes_on_until_one_has_it(void **state)
{
    static struct waiter waiter;
    nxl_client *client = waiting_client("&wait_ms=60");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    redis_freeze(&replica);
    long waits = redis_calls(&server, "wait");
    waiter_start(&waiter, lock, 30000);
    assert_eventually(redis_calls(&server, "wait") > waits + 2);
    redis_thaw(&replica);
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    assert_true(redis_exists(&replica, "k"));
    end(lock, client);
}

/* What deletes the key of a grant that did not count is late; it must not take
 * away the next one's. */
static void each_try_has_its_own_token(void **state)
{
    static struct waiter waiter;
    char first[64];
    redis_needs_acl(&server);
    redis_run(&server, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*",
        "+@all", "-del", NULL);
    nxl_client *client =
        waiting_client("&user=app&password=secret&wait_ms=200&poll=1");
    nxl_lock *lock = new_lock(client, "k", 60000);
    redis_freeze(&replica);
    waiter_start(&waiter, lock, 30000);
    assert_eventually(replica_is_awaited());
    assert_true(redis_get(&server, "k", first, sizeof(first)));
    assert_eventually(!replica_is_awaited());
    redis_thaw(&replica);
    redis_run(&server, "DEL", "k", NULL); /* a failover may lose it */
    assert_result(waiter_join(&waiter), NXL_OK, lock);
    assert_string_not_equal(nxl_lock_token(lock), first);
    redis_run(&server, "ACL", "SETUSER", "app", "+del", NULL);
    end(lock, client);
}

/* Without scripts a longer lease is left alone: that proves nothing. */
static void an_extension_that_writes_nothing_is_unknown(void **state)
{
    redis_needs_acl(&server);
    redis_run(&server, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*",
        "+@all", "-@scripting", NULL);
    nxl_client *client =
        waiting_client("&user=app&password=secret&wait_ms=200");
    nxl_lock *lock = new_lock(client, "k", 4 * TTL_MS);
    assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 2 * TTL_MS), NXL_UNKNOWN, lock);
    assert_contains(nxl_lock_errmsg(lock), "nothing was written");
    end(lock, client);
}

/* The script writes a longer lease again, and that is what replicas confirm. */
static void a_longer_lease_is_confirmed(void **state)
{
    nxl_client *client = waiting_client(PATIENT);
    nxl_lock *lock = new_lock(client, "k", 4 * TTL_MS);
    assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, TTL_MS), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 8 * TTL_MS), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* Its lease in line is longer than its ttl. Another try would have another
 * token. */
static void a_grant_in_line_counts_when_replicas_have_it(void **state)
{
    static struct waiter waiter;
    nxl_client *client = waiting_client(PATIENT);
    nxl_client *plain = client_at(server.unix_url);
    nxl_lock *held = new_lock(plain, "k", 30000);
    nxl_lock *waits = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    waiter_start(&waiter, waits, 30000);
    assert_eventually(redis_exists(&server, "{k}:nxl-l"));
    redisReply *line =
        redis_command(&server, "ZRANGE", "{k}:nxl-l", "0", "-1", NULL);
    assert_int_equal(line->elements, 1);
    assert_result(nxl_lock_release(held), NXL_OK, held);
    assert_result(waiter_join(&waiter), NXL_OK, waits);
    assert_contains(line->element[0]->str, nxl_lock_token(waits));
    freeReplyObject(line);
    end(held, plain);
    end(waits, client);
}

/* Even twice, which it does behind a script that is unknown. The server may
 * end a WAIT a tenth of a second late. */
static void a_wait_fits_the_timeout(void **state)
{
    nxl_client *client = waiting_client("&timeout_ms=1200");
    nxl_lock *lock = new_lock(client, "k", 30000);
    redis_freeze(&replica);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "had it within 400ms");
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "had it within 400ms");
    end(lock, client);
}

/* With several servers its answer has to come within the time that an acquire
 * gives to each of them: 500 ms for this lease. */
static void a_wait_fits_the_time_of_one_server(void **state)
{
    char url[512];
    static const char *const more = "wait_replicas=1&guard_restarts=off";
    static struct redis other; /* has no replica */
    if (redis_start(&other, NULL) != 0)
        fail();
    snprintf(url, sizeof(url), "%s?%s,%s?%s", server.unix_url, more,
        other.unix_url, more);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", 10000);
    redis_freeze(&replica);
    int64_t end_ms = test_now_ms() + 20000;
    do { /* a busy machine needs longer */
        assert_true(test_now_ms() < end_ms);
        assert_int_not_equal(nxl_lock_acquire(lock, 0), NXL_OK);
    } while (
        !strstr(nxl_lock_errmsg(lock), "0 of 1 replica had it within 250ms"));
    end(lock, client);
    redis_stop(&other);
}

/* ------------------------------------------------- the connection, while WAIT
 */

static void cancelled_while_it_waits(void **state)
{
    nxl_client *client = waiting_client("&wait_ms=2000&timeout_ms=4000");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    loop_reset(false);
    redis_freeze(&replica);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    loop_until_true(client, redis_exists(&server, "k"));
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_CANCELLED);
    loop_until_true(client, !redis_exists(&server, "k"));
    end(lock, client);
}

/* ----------------------------------------------------------- beside others */

/* Of a waiter and a holder with short leases on the same connection, while no
 * replica answers. */
static void others_keep_place_and_lease(void **state)
{
    static struct waiter waiter;
    nxl_client *client = waiting_client("");
    nxl_client *plain = client_at(server.unix_url);
    nxl_lock *held = new_lock(plain, "w", 30000);
    nxl_lock *waits = lock_with(client, "w", .ttl_ms = 1000);
    nxl_lock *lock = new_lock(client, "k", 30000);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    waiter_start(&waiter, waits, 60000);
    assert_eventually(redis_exists(&server, "{w}:nxl-l"));
    redis_freeze(&replica);
    for (int i = 0; i < 10; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
        assert_contains(nxl_lock_errmsg(lock), "within 50ms");
        assert_true(redis_exists(&server, "{w}:nxl-l"));
    }
    redis_thaw(&replica);
    assert_result(nxl_lock_release(held), NXL_OK, held);
    assert_result(waiter_join(&waiter), NXL_OK, waits);
    nxl_lock_free(lock);
    end(held, plain);
    end(waits, client);
}

/* What a release hands over is confirmed by a write of the waiter's own. */
static void a_lock_that_is_handed_over_is_confirmed(void **state)
{
    static struct waiter waiter;
    nxl_client *client = waiting_client("&wait_ms=60");
    nxl_client *plain = client_at(server.unix_url);
    nxl_lock *held = new_lock(plain, "k", 30000);
    nxl_lock *waits = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    waiter_start(&waiter, waits, 30000);
    assert_eventually(redis_exists(&server, "{k}:nxl-l"));
    redis_freeze(&replica);
    long count = redis_calls(&server, "wait");
    assert_result(nxl_lock_release(held), NXL_OK, held);
    assert_eventually(redis_calls(&server, "wait") > count + 1);
    assert_false(nxl_lock_held(waits));
    redis_thaw(&replica);
    assert_result(waiter_join(&waiter), NXL_OK, waits);
    assert_true(redis_exists(&replica, "k"));
    end(held, plain);
    end(waits, client);
}

/* Cancelled, cut off, or too late: the key goes. */
static void what_the_line_granted_is_undone(void **state)
{
    enum { TOO_FEW, CANCELLED, CUT_OFF, WAYS };
    for (int how = 0; how < WAYS; how++) {
        assert_int_equal(replica_set_up(state), 0);
        nxl_client *client = waiting_client(
            how == TOO_FEW ? "&wait_ms=60" : "&wait_ms=2000&timeout_ms=4000");
        nxl_client *plain = client_at(server.unix_url);
        nxl_lock *held = new_lock(plain, "k", 60000);
        nxl_lock *waits = new_lock(client, "k", 60000);
        assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
        loop_reset(false);
        assert_int_equal(
            nxl_lock_acquire_start(waits, how == TOO_FEW ? 3000 : 60000),
            NXL_PENDING);
        loop_until_true(client, redis_exists(&server, "{k}:nxl-l"));
        redis_freeze(&replica);
        long count = redis_calls(&server, "wait");
        assert_result(nxl_lock_release(held), NXL_OK, held);
        loop_until_true(client, redis_calls(&server, "wait") > count);
        if (how == CANCELLED)
            assert_int_equal(nxl_lock_cancel(waits), NXL_OK);
        if (how == CUT_OFF) {
            redis_run(&server, "CLIENT", "KILL", "TYPE", "normal", NULL);
            redis_thaw(&replica);
        }
        loop_until(client, 1);
        if (how == CUT_OFF)
            assert_result(loop.event[0].result, NXL_OK, waits);
        else
            assert_int_equal(loop.event[0].result,
                how == TOO_FEW ? NXL_E_REFUSED : NXL_CANCELLED);
        if (how != CUT_OFF)
            loop_until_true(client, !redis_exists(&server, "k"));
        end(waits, client);
        end(held, plain);
    }
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

/* ----------------------------------------------------------------- records */

/* A begin that too few replicas had is taken back, and the next one has a token
 * of its own: the record does not know the old one any more. */
static void a_begin_is_tried_again(void **state)
{
    nxl_client *client = waiting_client("&wait_ms=60&poll=1");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    loop_reset(false);
    redis_freeze(&replica);
    long count = redis_calls(&server, "wait");
    assert_int_equal(nxl_once_begin_start(lock, NULL, 30000), NXL_PENDING);
    loop_until_true(client, redis_calls(&server, "wait") > count + 1);
    redis_thaw(&replica);
    loop_until(client, 1);
    assert_result(loop.event[0].result, NXL_OK, lock);
    end(lock, client);
}

static void a_record_needs_a_decision(void **state)
{
    nxl_client *client = client_at("redis://127.0.0.1:1/?guard_failover=on");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_E_URL, lock);
    assert_contains(nxl_lock_errmsg(lock), "write wait_replicas=1");
    assert_contains(nxl_lock_errmsg(lock), "wait_replicas=0 (HARM: ");
    end(lock, client);
}

/* --------------------------------------------------------------- what is said
 */

static void the_user_may_not_wait(void **state)
{
    redis_needs_acl(&server);
    redis_run(&server, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*",
        "+@all", "-wait", NULL);
    nxl_client *client = waiting_client("&user=app&password=secret");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_contains(nxl_lock_errmsg(lock), "WAIT was refused: NOPERM");
    assert_eventually(!redis_exists(&server, "k"));
    end(lock, client);
}

/* Before Redis 7.2, or because its append-only file is off. */
static void waitaof_is_refused_where_it_is_unknown(void **state)
{
    nxl_client *client = waiting_client("&wait_aof=1");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNSUPPORTED, lock);
    assert_contains(nxl_lock_errmsg(lock), "WAITAOF was refused: ERR ");
    assert_eventually(!redis_exists(&server, "k"));
    end(lock, client);
}

/* ------------------------------------- append-only files (from Redis 7.2 on)
 */

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
        replica_test(each_write_waits_once),
        replica_test(those_that_leave_together_wait_together),
        replica_test(a_wait_goes_on_until_one_has_it),
        replica_test(each_try_has_its_own_token),
        replica_test(an_extension_that_writes_nothing_is_unknown),
        replica_test(a_wait_fits_the_timeout),
        replica_test(a_wait_fits_the_time_of_one_server),
        replica_test(cancelled_while_it_waits),
        replica_test(others_keep_place_and_lease),
        replica_test(a_longer_lease_is_confirmed),
        replica_test(a_grant_in_line_counts_when_replicas_have_it),
        replica_test(a_lock_that_is_handed_over_is_confirmed),
        replica_test(what_the_line_granted_is_undone),
        replica_test(short_leases_stay_beside_a_wait),
        replica_test(a_begin_is_tried_again),
        replica_test(a_record_needs_a_decision),
        replica_test(the_user_may_not_wait),
        replica_test(waitaof_is_refused_where_it_is_unknown),
        aof_test(what_files_have_counts),
        aof_test(a_file_that_is_written_each_second_counts),
        aof_test(what_its_file_does_not_have_is_undone),
        aof_test(a_replica_without_a_file_does_not_count),
        aof_test(its_own_file_may_be_all),
    };
    return cmocka_run_group_tests_name(
        "wait_replicas", tests, replica_start, replica_stop);
}
