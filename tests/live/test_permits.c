/* SPDX-License-Identifier: MIT */
/*
 * Locks that several hold (options.permits, weight, shared) through the public
 * interface. What they cross, and where that is tested:
 *
 *     wait, line    here; permit_scripts
 *     renew, loss   here
 *     extend, lapse here; permit_scripts (14)
 *     adopt, break  here
 *     free          here
 *     min_hold      permit_crossings; permit_scripts
 *     fence         here; permit_scripts. With permits refused
 *     once          refused: the_refusals
 *     several servers, scheme=timestamp   refused: the_refusals
 *     poll          permit_crossings
 *     max_ttl, break, passwords, thread, loop   permit_crossings
 *     faults        permit_cuts, permit_faults, permit_memory; tests/faults
 *     wait_replicas permit_copies
 *     failover      permit_failover, permit_sentinels
 */
#include "live/live_rig.h"

/* An entry of a table. */
#define KIND(...)                                                              \
    {                                                                          \
        .size = sizeof(nxl_lock_options), __VA_ARGS__                          \
    }
#define READER .shared = 1
#define PERMIT(n) .permits = (n)

#define await(condition)                                                       \
    do {                                                                       \
        int64_t await_end = test_now_ms() + 10000;                             \
        while (!(condition)) {                                                 \
            if (test_now_ms() > await_end)                                     \
                fail_msg("in vain: %s", #condition);                           \
            usleep(1000);                                                      \
        }                                                                      \
    } while (0)

static long long holders(const char *name)
{
    return redis_run(&server, "ZCARD", name, NULL) - 1;
}

static void four_of_four(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock[5];
    for (unsigned i = 0; i < 5; i++)
        lock[i] = lock_with(client, "pool", PERMIT(4), .label = "worker");
    for (unsigned i = 0; i < 4; i++) {
        assert_result(nxl_lock_acquire(lock[i], 0), NXL_OK, lock[i]);
        assert_true(nxl_lock_held(lock[i]));
        assert_contains(nxl_lock_token(lock[i]), "+1/4@worker");
        assert_between(nxl_lock_remaining_ms(lock[i]), 28000, 29698);
    }
    assert_int_equal(nxl_client_holds(client, "pool", 4), 4);
    assert_result(nxl_lock_acquire(lock[4], 0), NXL_BUSY, lock[4]);
    assert_contains(nxl_lock_errmsg(lock[4]), "held by this client itself for");
    assert_contains(nxl_lock_errmsg(lock[4]),
        ", by 4 other handles, and maybe by other clients, for at most ");
    assert_false(nxl_lock_held(lock[4]));
    assert_int_equal(holders("pool"), 4);

    assert_result(nxl_lock_release(lock[1]), NXL_OK, lock[1]);
    assert_result(nxl_lock_acquire(lock[4], 0), NXL_OK, lock[4]);
    assert_result(nxl_lock_acquire(lock[1], 0), NXL_BUSY, lock[1]);
    for (unsigned i = 0; i < 5; i++)
        nxl_lock_free(lock[i]);
    nxl_client_free(client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

static void who_excludes_whom(void **state)
{
    static const struct {
        nxl_lock_options first, second;
        int result;
    } rows[] = {
        {KIND(READER), KIND(READER), NXL_OK},
        {KIND(READER), KIND(.ttl_ms = 0), NXL_BUSY},
        {KIND(.ttl_ms = 0), KIND(READER), NXL_BUSY},
        {KIND(.ttl_ms = 0), KIND(PERMIT(4)), NXL_BUSY},
        {KIND(PERMIT(4)), KIND(.ttl_ms = 0), NXL_BUSY},
        {KIND(PERMIT(4)), KIND(PERMIT(1)), NXL_BUSY},
        {KIND(PERMIT(1)), KIND(PERMIT(4)), NXL_BUSY},
        {KIND(PERMIT(4)), KIND(PERMIT(2)), NXL_OK},
        {KIND(PERMIT(4), .weight = 3), KIND(PERMIT(4)), NXL_OK},
        {KIND(PERMIT(4), .weight = 4), KIND(PERMIT(4)), NXL_BUSY},
        {KIND(PERMIT(4), .weight = 3), KIND(PERMIT(4), .weight = 2), NXL_BUSY},
        {KIND(PERMIT(4), .weight = 3), KIND(PERMIT(3)), NXL_BUSY},
        {KIND(READER), KIND(PERMIT(2)), NXL_OK},
        {KIND(READER), KIND(PERMIT(2), .weight = 2), NXL_BUSY},
        {KIND(PERMIT(2), .weight = 2), KIND(READER), NXL_BUSY},
    };
    nxl_client *client = new_client("");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nxl_lock *one =
            live_lock(client, "job", &rows[i].first, __FILE__, (int)i);
        nxl_lock *two =
            live_lock(client, "job", &rows[i].second, __FILE__, (int)i);
        assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
        live_assert_result(nxl_lock_acquire(two, 0), rows[i].result,
            nxl_lock_errmsg(two), "row", (int)i);
        assert_result(nxl_lock_release(one), NXL_OK, one);
        nxl_lock_free(two);
        nxl_lock_free(one);
    }
    nxl_client_free(client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* All kinds wait in one line: who came first, and with whom it fits. */
static void one_line(void **state)
{
    static struct waiter waiters[4];
    nxl_client *client = new_client("");
    nxl_lock *writer = lock_with(client, "job", .ttl_ms = 20000);
    nxl_lock *lock[] = {lock_with(client, "job", READER),
        lock_with(client, "job", READER),
        lock_with(client, "job", .ttl_ms = 20000),
        lock_with(client, "job", READER)};
    assert_result(nxl_lock_acquire(writer, 0), NXL_OK, writer);
    for (unsigned i = 0; i < 4; i++) {
        waiter_start(&waiters[i], lock[i], 20000);
        await(redis_run(&server, "ZCARD", "{job}:nxl-l", NULL) == i + 1);
    }
    assert_result(nxl_lock_release(writer), NXL_OK, writer);
    assert_int_equal(waiter_join(&waiters[0]), NXL_OK);
    assert_int_equal(waiter_join(&waiters[1]), NXL_OK);
    assert_int_equal(holders("job"), 2);
    nxl_lock *late = lock_with(client, "job", READER);
    assert_result(nxl_lock_acquire(late, 0), NXL_BUSY, late);
    assert_result(nxl_lock_release(lock[0]), NXL_OK, lock[0]);
    assert_result(nxl_lock_release(lock[1]), NXL_OK, lock[1]);
    assert_int_equal(waiter_join(&waiters[2]), NXL_OK);
    assert_value("job", nxl_lock_token(lock[2]));
    assert_result(nxl_lock_release(lock[2]), NXL_OK, lock[2]);
    assert_int_equal(waiter_join(&waiters[3]), NXL_OK);
    assert_result(nxl_lock_acquire(late, 0), NXL_OK, late);
    for (unsigned i = 0; i < 4; i++)
        nxl_lock_free(lock[i]);
    nxl_lock_free(late);
    end(writer, client);
}

/* A writer gives up: those behind it do not wait for longer. */
static void a_waiter_gives_up(void **state)
{
    static struct waiter writes, reads;
    nxl_client *client = new_client("");
    nxl_lock *first = lock_with(client, "job", READER);
    nxl_lock *writer = lock_with(client, "job", .ttl_ms = 20000);
    nxl_lock *reader = lock_with(client, "job", READER);
    assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
    waiter_start(&writes, writer, 20000);
    await(redis_run(&server, "ZCARD", "{job}:nxl-l", NULL) == 1);
    /* A waiter that cannot be told yet is passed. */
    await(server_number(&server, "stats", "pubsub_channels") == 1);
    waiter_start(&reads, reader, 20000);
    await(redis_run(&server, "ZCARD", "{job}:nxl-l", NULL) == 2);
    int64_t began = test_now_ms();
    assert_int_equal(nxl_lock_cancel(writer), NXL_OK);
    assert_int_equal(waiter_join(&writes), NXL_CANCELLED);
    assert_int_equal(waiter_join(&reads), NXL_OK);
    assert_between(test_now_ms() - began, 0, LATE_MS);
    nxl_lock_free(writer);
    nxl_lock_free(reader);
    end(first, client);
}

static void a_permit_expires(void **state)
{
    nxl_client *one = new_client(""), *two = new_client("");
    nxl_lock *stays = lock_with(one, "job", PERMIT(2), .ttl_ms = 20000);
    nxl_lock *dies = lock_with(one, "job", PERMIT(2), .ttl_ms = 300);
    nxl_lock *next = lock_with(two, "job", PERMIT(2), .ttl_ms = 20000);
    assert_result(nxl_lock_acquire(stays, 0), NXL_OK, stays);
    assert_result(nxl_lock_acquire(dies, 0), NXL_OK, dies);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(next, 5000), NXL_OK, next);
    assert_between(test_now_ms() - began, 200, 300 + 100 + LATE_MS);
    assert_false(nxl_lock_held(dies));
    assert_result(nxl_lock_extend(dies, 0), NXL_LOST, dies);
    assert_result(nxl_lock_release(dies), NXL_LOST, dies);
    assert_true(nxl_lock_held(stays));
    assert_int_equal(holders("job"), 2);
    nxl_lock_free(dies);
    end(stays, one);
    end(next, two);
}

static void renewed_beside_others(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *renewed =
        lock_with(client, "job", PERMIT(3), .ttl_ms = 300, .renew = 1);
    nxl_lock *other = lock_with(client, "job", PERMIT(3), .ttl_ms = 20000);
    char why[256];
    assert_result(nxl_lock_acquire(renewed, 0), NXL_OK, renewed);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    usleep(900000);
    assert_true(nxl_lock_held(renewed));
    assert_int_equal(nxl_lock_loss(renewed, why, sizeof(why)), NXL_LOSS_NONE);
    /* Somebody removes it, and only it. */
    redis_run(&server, "ZREM", "job", nxl_lock_token(renewed), NULL);
    await(nxl_lock_loss(renewed, why, sizeof(why)) == NXL_LOSS_REMOVED);
    assert_false(nxl_lock_held(renewed));
    assert_true(nxl_lock_held(other));
    assert_result(nxl_lock_extend(other, 25000), NXL_OK, other);
    assert_result(nxl_lock_acquire(renewed, 0), NXL_OK, renewed);
    /* Somebody overwrites all of it. */
    stranger_sets("job", "stranger", 5000);
    await(nxl_lock_loss(renewed, why, sizeof(why)) == NXL_LOSS_TAKEN);
    assert_result(nxl_lock_extend(other, 0), NXL_LOST, other);
    assert_result(nxl_lock_release(other), NXL_LOST, other);
    assert_value("job", "stranger");
    nxl_lock_free(other);
    end(renewed, client);
}

static void adopted(void **state)
{
    nxl_client *one = new_client(""), *two = new_client("");
    nxl_lock *first = lock_with(one, "job", PERMIT(4), .weight = 3);
    nxl_lock *heir = new_lock(two, "job", 20000); /* of another kind */
    nxl_lock *other = lock_with(two, "job", PERMIT(4), .weight = 2);
    char token[256];
    assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(first));
    assert_result(nxl_lock_adopt(heir, token), NXL_OK, heir);
    assert_string_equal(nxl_lock_token(heir), token);
    assert_between(nxl_lock_remaining_ms(heir), 28000, 30000);
    assert_result(nxl_lock_extend(heir, 40000), NXL_OK, heir);
    assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_result(nxl_lock_extend(first, 0), NXL_LOST, first);
    assert_result(nxl_lock_release(first), NXL_LOST, first);
    assert_result(nxl_lock_adopt(heir, token), NXL_LOST, heir);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    assert_result(nxl_lock_adopt(heir, token), NXL_LOST, heir);
    /* Its own tokens are of its own kind again. */
    assert_result(nxl_lock_acquire(heir, 0), NXL_BUSY, heir);
    assert_result(nxl_lock_release(other), NXL_OK, other);
    assert_result(nxl_lock_acquire(heir, 0), NXL_OK, heir);
    assert_value("job", nxl_lock_token(heir));
    nxl_lock_free(other);
    end(first, one);
    end(heir, two);
}

static void holders_are_listed(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *a = lock_with(
        client, "job", PERMIT(9), .weight = 2, .label = "a", .ttl_ms = 20000);
    nxl_lock *b = lock_with(client, "job", READER, .ttl_ms = 10000);
    nxl_lock *looks = new_lock(client, "job", 20000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(looks, &holder), NXL_FREE, looks);
    assert_result(nxl_lock_acquire(b, 0), NXL_OK, b);
    assert_result(nxl_lock_acquire(a, 0), NXL_OK, a);

    assert_result(nxl_lock_inspect(a, &holder), NXL_OK, a);
    assert_true(holder.ours);
    assert_string_equal(holder.label, "a");
    assert_int_equal(holder.weight, 2);
    assert_int_equal(holder.permits, 9);
    assert_between(holder.left_ms, 18000, 20000);
    assert_int_equal(nxl_lock_holder_at(a, 0, 1, &holder), NXL_OK);
    assert_false(holder.ours);
    assert_null(holder.label);
    assert_int_equal(holder.weight, 1);
    assert_int_equal(holder.permits, 0);
    assert_between(holder.left_ms, 8000, 10000);
    assert_true(nxl_holder_is(&holder, nxl_lock_token(b)));
    assert_int_equal(nxl_lock_holder_at(a, 0, 2, &holder), NXL_FREE);

    /* One of them is removed. */
    assert_result(nxl_lock_break(looks, &holder), NXL_OK, looks);
    assert_result(nxl_lock_break(looks, &holder), NXL_FREE, looks);
    assert_result(nxl_lock_extend(b, 0), NXL_LOST, b);
    assert_result(nxl_lock_extend(a, 0), NXL_OK, a);
    assert_result(nxl_lock_inspect(looks, &holder), NXL_OK, looks);
    assert_false(holder.ours);
    assert_int_equal(nxl_lock_holder_at(looks, 0, 1, &holder), NXL_FREE);
    assert_result(nxl_lock_release(a), NXL_OK, a);
    /* Held alone. */
    assert_result(nxl_lock_acquire(looks, 0), NXL_OK, looks);
    assert_result(nxl_lock_inspect(looks, &holder), NXL_OK, looks);
    assert_true(holder.ours);
    assert_int_equal(holder.weight, 0);
    assert_int_equal(holder.permits, 0);
    assert_int_equal(nxl_lock_holder_at(looks, 0, 1, &holder), NXL_FREE);
    nxl_lock_free(a);
    nxl_lock_free(b);
    end(looks, client);
}

static void many_are_listed(void **state)
{
    enum { MANY = 200 };
    nxl_client *client = new_client("");
    static nxl_lock *lock[MANY];
    nxl_holder holder = NXL_HOLDER_INIT;
    for (unsigned i = 0; i < MANY; i++) {
        lock[i] = lock_with(client, "job", READER);
        assert_result(nxl_lock_acquire(lock[i], 0), NXL_OK, lock[i]);
    }
    assert_result(nxl_lock_inspect(lock[0], &holder), NXL_OK, lock[0]);
    unsigned ours = 0;
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(nxl_lock_holder_at(lock[0], 0, i, &holder), NXL_OK);
        assert_int_equal(holder.weight, 1);
        ours += holder.ours;
    }
    assert_int_equal(ours, 1);
    assert_int_equal(nxl_lock_holder_at(lock[0], 0, MANY, &holder), NXL_FREE);
    for (unsigned i = 0; i < MANY; i++)
        nxl_lock_free(lock[i]);
    nxl_client_free(client);
}

/* All readers between two writers have one fencing token, also those who were
 * granted the lock in line. */
static void fenced(void **state)
{
    static struct waiter waiters[2];
    nxl_client *client = new_client("");
    nxl_lock *writer = lock_with(client, "job", .fence = 1);
    nxl_lock *reader[] = {lock_with(client, "job", READER, .fence = 1),
        lock_with(client, "job", READER, .fence = 1)};
    nxl_lock *plain = lock_with(client, "job", READER);
    uint64_t last = 0;
    for (unsigned turn = 0; turn < 3; turn++) {
        assert_result(nxl_lock_acquire(writer, 0), NXL_OK, writer);
        assert_true(nxl_lock_fence(writer) > last);
        last = nxl_lock_fence(writer);
        for (unsigned i = 0; i < 2; i++) {
            waiter_start(&waiters[i], reader[i], 20000);
            await(redis_run(&server, "ZCARD", "{job}:nxl-l", NULL) == i + 1);
        }
        assert_result(nxl_lock_release(writer), NXL_OK, writer);
        assert_int_equal(waiter_join(&waiters[0]), NXL_OK);
        assert_int_equal(waiter_join(&waiters[1]), NXL_OK);
        assert_int_equal(nxl_lock_fence(reader[0]), nxl_lock_fence(reader[1]));
        assert_true(nxl_lock_fence(reader[0]) > last);
        last = nxl_lock_fence(reader[0]);

        assert_result(nxl_lock_release(reader[0]), NXL_OK, reader[0]);
        assert_result(nxl_lock_acquire(plain, 0), NXL_OK, plain);
        assert_int_equal(nxl_lock_fence(plain), 0);
        assert_result(nxl_lock_acquire(reader[0], 0), NXL_OK, reader[0]);
        assert_int_equal(nxl_lock_fence(reader[0]), last);
        assert_result(nxl_lock_release(plain), NXL_OK, plain);
        assert_result(nxl_lock_release(reader[0]), NXL_OK, reader[0]);
        assert_result(nxl_lock_release(reader[1]), NXL_OK, reader[1]);
    }
    for (unsigned i = 0; i < 2; i++)
        nxl_lock_free(reader[i]);
    nxl_lock_free(plain);
    end(writer, client);
}

static void no_lock_at_the_key(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = lock_with(client, "job", PERMIT(2));
    nxl_lock *alone = new_lock(client, "job", 20000);
    nxl_holder holder = NXL_HOLDER_INIT;
    redis_run(&server, "ZADD", "job", "1", "player", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_WRONG_TYPE, lock);
    assert_result(nxl_lock_acquire(lock, 1000), NXL_E_WRONG_TYPE, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_WRONG_TYPE, lock);
    assert_result(nxl_lock_acquire(alone, 0), NXL_BUSY, alone);
    assert_int_equal(redis_run(&server, "ZCARD", "job", NULL), 1);
    nxl_lock_free(alone);
    end(lock, client);
}

/* Nothing is sent. */
static void the_refusals(void **state)
{
    static const struct {
        const char *urls;
        nxl_lock_options options;
        int result;
        const char *words;
    } rows[] = {
        {"", KIND(PERMIT(-1)), NXL_E_INVALID, "permits is -1"},
        {"", KIND(PERMIT(2147483648)), NXL_E_INVALID, "2147483647"},
        {"", KIND(PERMIT(4), .weight = 5), NXL_E_INVALID, "weight is 5"},
        {"", KIND(PERMIT(4), .weight = -1), NXL_E_INVALID, "weight is -1"},
        {"", KIND(.weight = 2), NXL_E_INVALID, "weight is 2"},
        {"", KIND(.shared = 2), NXL_E_INVALID, "shared is 2"},
        {"", KIND(.shared = 1, PERMIT(2)), NXL_E_INVALID, "use one of them"},
        {"", KIND(PERMIT(2), .fence = 1), NXL_E_INVALID,
            "with fence: several holders are right at once"},
        {"?scheme=timestamp", KIND(PERMIT(2)), NXL_E_INVALID,
            "scheme=timestamp"},
        {"?scheme=timestamp", KIND(READER), NXL_E_INVALID, "scheme=timestamp"},
        {",redis://127.0.0.1:1,redis://127.0.0.1:2", KIND(PERMIT(2)),
            NXL_E_UNSUPPORTED, "majorities of them would grant more permits"},
        {",redis://127.0.0.1:1,redis://127.0.0.1:2",
            KIND(.shared = 1, .fence = 1), NXL_E_UNSUPPORTED,
            "with fence and several servers"},
        {",redis://127.0.0.1:1,redis://127.0.0.1:2", KIND(.shared = 1), NXL_OK,
            ""},
        {"", KIND(PERMIT(1), .fence = 1), NXL_OK, ""},
        {"", KIND(.shared = 1, .fence = 1), NXL_OK, ""},
    };
    long long connections =
        server_number(&server, "stats", "total_connections_received");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char url[512];
        snprintf(url, sizeof(url), "%s%s", server_url, rows[i].urls);
        nxl_client *client = client_at(url);
        nxl_lock *lock;
        live_assert_result(nxl_lock_new(&lock, client, "job", &rows[i].options),
            rows[i].result, nxl_client_errmsg(client), "row", (int)i);
        assert_int_equal(lock == NULL, rows[i].result != NXL_OK);
        assert_contains(nxl_client_errmsg(client), rows[i].words);
        nxl_lock_free(lock);
        nxl_client_free(client);
    }
    nxl_client *client = new_client("");
    for (int i = 0; i < 2; i++) {
        nxl_lock *lock = i == 0 ? lock_with(client, "job", READER)
                                : lock_with(client, "job", PERMIT(2));
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_E_INVALID, lock);
        assert_contains(nxl_lock_errmsg(lock), "exclusive");
        nxl_lock_free(lock);
    }
    nxl_client_free(client);
    assert_int_equal(
        server_number(&server, "stats", "total_connections_received"),
        connections);
}

/* Without scripts no command could count the permits and take some. */
static void without_scripts(void **state)
{
    struct redis bare = {0};
    static const nxl_lock_options kinds[] = {KIND(PERMIT(2)), KIND(READER)};
    if (redis_start(&bare, "--rename-command", "EVAL", "", "--rename-command",
            "EVALSHA", "", NULL) != 0)
        skip();
    nxl_client *client = client_at(bare.url);
    nxl_lock *alone = new_lock(client, "job", 20000);
    for (unsigned i = 0; i < 2; i++) {
        nxl_lock *lock =
            live_lock(client, "job", &kinds[i], __FILE__, __LINE__);
        for (unsigned wait_ms = 0; wait_ms <= 500; wait_ms += 500) {
            assert_result(
                nxl_lock_acquire(lock, wait_ms), NXL_E_UNSUPPORTED, lock);
            assert_contains(nxl_lock_errmsg(lock), "EVAL");
        }
        assert_int_equal(redis_run(&bare, "DBSIZE", NULL), 0);
        nxl_lock_free(lock);
    }
    assert_result(nxl_lock_acquire(alone, 0), NXL_OK, alone);
    assert_result(nxl_lock_release(alone), NXL_OK, alone);
    end(alone, client);
    redis_stop(&bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(four_of_four),
        live_test(who_excludes_whom),
        live_test(one_line),
        live_test(a_waiter_gives_up),
        live_test(a_permit_expires),
        live_test(renewed_beside_others),
        live_test(adopted),
        live_test(holders_are_listed),
        live_test(many_are_listed),
        live_test(fenced),
        live_test(no_lock_at_the_key),
        live_test(the_refusals),
        live_test(without_scripts),
    };
    return live_run_with("permits", tests, live_tcp, live_unix, live_stop);
}
