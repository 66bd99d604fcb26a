/* SPDX-License-Identifier: MIT */
/*
 * Servers that are killed and restarted without persistence forget locks: they
 * have no vote until every lock is over, and whoever waits is told why. That
 * two hold a lock without this guard, and none do with it: the cells
 * restart-empty and restart-guarded of tests/faults.
 */
#include "support/test.h"

#include "live/quorum_rig.h"
#include "live/renew_rig.h"

enum { SHORT_MAX_MS = 1500 };
#define SHORT_MAX "max_ttl_ms=1500" /* SHORT_MAX_MS */
/* Longer than these servers may be up when a test begins. */
#define YOUNG_MAX "max_ttl_ms=600000"
#define DURABLE_SERVERS 3

static long long uptime_s(struct redis *r)
{
    return server_number(r, "server", "uptime_in_seconds");
}

/* Until clients of SHORT_MAX_MS may count on the first count servers. */
static void grow_old(size_t count)
{
    for (size_t i = 0; i < count; i++)
        while (uptime_s(&servers[i]) <
               (SHORT_MAX_MS + SHORT_MAX_MS / 100) / 1000 + 2)
            test_pause_ms(20);
}

/* Who waits gets it as soon as it is safe, and not before. */
static void test_waits_it_out(void **state)
{
    grow_old(3);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = new_lock(client, "k", SHORT_MAX_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t lease_end = nxl_lock_deadline(lock);
    redis_restart(&servers[0]);
    redis_restart(&servers[1]);
    nxl_client *other = quorum_client(3, SHORT_MAX);
    nxl_lock *second = new_lock(other, "k", SHORT_MAX_MS);
    int64_t before = test_now_ms();
    assert_result(nxl_lock_acquire(second, 10000), NXL_OK, second);
    assert_true(nxl_now_ns() > lease_end);
    assert_false(nxl_lock_held(lock));
    /* ceil(1500 + 17 ms), and the second that uptime may be ahead. */
    assert_between(test_now_ms() - before, 1000, 3500 + LATE_MS);
    end(second, other);
    end(lock, client);
}

/* A server that came back with old data has forgotten that the lock was
 * released since: its token there is no reason to believe in it. */
static void test_old_tokens_are_not_adopted(void **state)
{
    char token[64];
    grow_old(3);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = new_lock(client, "k", SHORT_MAX_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    snprintf(token, sizeof(token), "%s", nxl_lock_token(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    for (size_t i = 0; i < 2; i++) {
        redis_restart(&servers[i]);
        redis_run(&servers[i], "SET", "k", token, "PX", "60000", NULL);
    }
    nxl_client *other = quorum_client(3, SHORT_MAX);
    nxl_lock *heir = new_lock(other, "k", SHORT_MAX_MS);
    int rc = nxl_lock_adopt(heir, token);
    assert_true(rc != NXL_OK);
    assert_false(nxl_lock_held(heir));
    end(heir, other);
    end(lock, client);
}

/* The client that saw the process before knows it by its run_id, and judges
 * from when it sees the next one. */
static void test_living_client(void **state)
{
    char text[2048];
    grow_old(3);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = new_lock(client, "k", 1000);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_restart(&servers[0]);
    redis_restart(&servers[1]);
    grow_old(2);
    /* Old enough for a stranger, but not for who knew the one before. */
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "restarted, promoted or replaced");
    nxl_client_describe(client, text, sizeof(text));
    assert_contains(text, "no vote: restarted, promoted or replaced ");
    assert_contains(text, "its vote counts again in 3");
    nxl_client *other = quorum_client(3, SHORT_MAX);
    nxl_lock *second = new_lock(other, "k", 1000);
    assert_result(nxl_lock_acquire(second, 0), NXL_OK, second);
    assert_result(nxl_lock_release(second), NXL_OK, second);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    end(second, other);
    end(lock, client);
}

/* A minority in quarantine is in nobody's way, and is named. */
static void test_minority(void **state)
{
    grow_old(3);
    redis_restart(&servers[0]);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = new_lock(client, "k", 1000);
    nxl_holder holder = NXL_HOLDER_INIT;
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_contains(nxl_lock_errmsg(lock), servers[0].unix_url);
    assert_contains(nxl_lock_errmsg(lock), "may have forgotten locks");
    assert_false(redis_exists(&servers[0], "k"));
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_true(holder.ours);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* That a forgetful server knows of no holder does not make the name free. */
static void test_inspect(void **state)
{
    grow_old(3);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = new_lock(client, "k", SHORT_MAX_MS);
    nxl_holder holder = NXL_HOLDER_INIT;
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(3, "k", lock) == 3);
    redis_restart(&servers[0]);
    redis_restart(&servers[1]);
    nxl_client *other = quorum_client(3, SHORT_MAX);
    nxl_lock *second = new_lock(other, "k", SHORT_MAX_MS);
    assert_result(nxl_lock_inspect(second, &holder), NXL_OK, second);
    assert_string_equal(holder.value, nxl_lock_token(lock));
    assert_int_equal(nxl_lock_holder_at(second, 0, 0, &holder), NXL_E_REFUSED);
    assert_int_equal(nxl_lock_holder_at(second, 2, 0, &holder), NXL_OK);
    end(second, other);
    end(lock, client);
}

/* ---------------------------------------------------------------- by right */

/* Without INFO nobody can tell: no vote, and the message names the right. */
static void test_info_refused(void **state)
{
    char list[URLS_ROOM] = "", url[LOCAL_PATH + 32];
    grow_old(3);
    redis_run(&servers[6], "ACL", "SETUSER", "carl", "reset", "on", ">Zqx7",
        "~*", "&*", "+@all", "-info", NULL);
    snprintf(url, sizeof(url), "%s://carl:Zqx7@127.0.0.1:%u", servers[6].scheme,
        (unsigned)servers[6].port);
    add_url(list, servers[0].unix_url, SHORT_MAX);
    add_url(list, url, "");
    nxl_client *client = client_at(list);
    nxl_lock *lock = new_lock(client, "k", 1000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_contains(nxl_lock_errmsg(lock), servers[6].url);
    assert_contains(nxl_lock_errmsg(lock), "+info");
    redis_run(&servers[6], "ACL", "SETUSER", "carl", "+info", NULL);
    assert_eventually(nxl_lock_acquire(lock, 0) == NXL_OK);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    /* Without the guard it is not asked for. */
    redis_run(&servers[6], "ACL", "SETUSER", "carl", "-info", NULL);
    *list = '\0';
    add_url(list, servers[0].unix_url, NO_GUARD);
    add_url(list, url, "");
    client = client_at(list);
    lock = new_lock(client, "k", 1000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
}

/* durable=1 exempts a server, if it keeps what it is told. */
static void test_durable(void **state)
{
    char list[URLS_ROOM] = "";
    for (size_t i = 0; i < DURABLE_SERVERS; i++)
        add_url(list, servers[i].unix_url, "durable=1&" YOUNG_MAX);
    nxl_client *client = client_at(list);
    nxl_lock *lock = new_lock(client, "k", 1000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_URL, lock);
    assert_contains(nxl_lock_errmsg(lock), "aof_enabled:0");
    end(lock, client);
    for (size_t i = 0; i < DURABLE_SERVERS; i++)
        redis_run(&servers[i], "CONFIG", "SET", "appendonly", "yes", NULL);
    client = client_at(list);
    lock = new_lock(client, "k", 1000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    for (size_t i = 0; i < DURABLE_SERVERS; i++)
        redis_run(&servers[i], "CONFIG", "SET", "appendonly", "no", NULL);
}

/* One server, of which the guard is asked for. */
static void test_one_server(void **state)
{
    redis_restart(&servers[0]);
    nxl_client *client = quorum_client(1, SHORT_MAX "&guard_restarts=on");
    nxl_lock *lock = new_lock(client, "k", 1000);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "it grants locks again in");
    assert_false(redis_exists(&servers[0], "k"));
    assert_int_equal(redis_calls(&servers[0], "set"), 0);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_E_REFUSED, lock);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* The lock outlives the restart of a minority, and the token counts that a
 * server in quarantine has kept since it was set. */
static void test_holder_goes_on(void **state)
{
    grow_old(3);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = new_lock(client, "k", SHORT_MAX_MS);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(3, "k", lock) == 3);
    redis_restart(&servers[0]);
    for (int i = 0; i < 6; i++) {
        assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
        test_pause_ms(SHORT_MAX_MS / 3);
    }
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* Nobody has taken it: what stands at the third is its own. */
static void test_forgotten_is_not_taken(void **state)
{
    char why[200];
    grow_old(3);
    nxl_client *client = quorum_client(3, SHORT_MAX);
    nxl_lock *lock = lock_with(
        client, "k", .ttl_ms = SHORT_MAX_MS, .renew = 1, .label = "me");
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(3, "k", lock) == 3);
    redis_restart(&servers[0]);
    redis_restart(&servers[1]);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_REMOVED);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(test_waits_it_out),
        quorum_test(test_old_tokens_are_not_adopted),
        quorum_test(test_living_client),
        quorum_test(test_minority),
        quorum_test(test_inspect),
        quorum_test(test_info_refused),
        quorum_test(test_durable),
        quorum_test(test_one_server),
        quorum_test(test_holder_goes_on),
        quorum_test(test_forgotten_is_not_taken),
    };
    return quorum_run("quorum and restarts");
}
