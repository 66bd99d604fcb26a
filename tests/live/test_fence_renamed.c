/* SPDX-License-Identifier: MIT */
/*
 * Draws fencing tokens at servers that have no PSETEX: renamed away, or denied
 * to the user. SET with PX does the same there.
 */
#include "live/live_rig.h"
#include "support/blanks.h"

enum { SERVERS = 3 };

static struct redis renamed[SERVERS];

static int start(void **state)
{
    for (int i = 0; i < SERVERS; i++)
        if (redis_start(&renamed[i], "--rename-command", "PSETEX", "", NULL))
            return -1;
    return redis_start(&server, NULL);
}

static int stop(void **state)
{
    for (int i = 0; i < SERVERS; i++)
        redis_stop(&renamed[i]);
    redis_stop(&server);
    return 0;
}

/* Key and counter have the ends that they have elsewhere. */
static void draws_twice(nxl_client *client, struct redis *at)
{
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = 5000, .fence = 1);
    uint64_t last = 0;
    for (int i = 0; i < 2; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_true(nxl_lock_fence(lock) > last);
        last = nxl_lock_fence(lock);
        assert_between(redis_pttl(at, "k"), 1000, 5000);
        assert_between(redis_pttl(at, "{k}:f"), 86000000, 86400000);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_eventually(!redis_exists(at, "k"));
    }
    end(lock, client);
}

static void without_psetex_on_one_server(void **state)
{
    draws_twice(client_at(renamed[0].url), &renamed[0]);
}

/* Their counters are apart, so that one has to be raised. */
static void without_psetex_on_three_servers(void **state)
{
    char urls[3 * (LOCAL_PATH + 40)];
    snprintf(urls, sizeof(urls),
        "%s?guard_restarts=off,%s?guard_restarts=off,%s"
        "?guard_restarts=off",
        renamed[0].url, renamed[1].url, renamed[2].url);
    draws_twice(client_at(urls), &renamed[0]);
}

static void psetex_denied_to_the_user(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "default", "-psetex", NULL);
    draws_twice(client_at(server.url), &server);
    redis_run(&server, "ACL", "SETUSER", "default", "-set", NULL);
    nxl_client *client = client_at(server.url);
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = 5000, .fence = 1);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_contains(nxl_lock_errmsg(lock), "+set +getrange +exists +pttl");
    assert_null(strstr(nxl_lock_errmsg(lock), "password"));
    assert_false(redis_exists(&server, "k"));
    redis_run(&server, "ACL", "SETUSER", "default", "+psetex", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", NULL);
}

/* The expired timestamp of a dead holder, with and without fencing. */
static void takeover_without_psetex(void **state)
{
    for (int fence = 0; fence < 2; fence++) {
        nxl_client *client = client_at(renamed[0].url);
        nxl_lock *lock = lock_with(client, "k", .ttl_ms = 5000, .fence = fence);
        redis_run(&renamed[0], "SET", "k", "1600000000" BLANKS, NULL);
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
        assert_between(redis_pttl(&renamed[0], "k"), 1000, 5000);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        end(lock, client);
    }
}

/* A server that is out of memory says so, and is not taken for one that knows
 * neither command. */
static void out_of_memory_is_not_taken_for_a_missing_command(void **state)
{
    nxl_client *client = client_at(renamed[0].url);
    nxl_lock *lock = lock_with(client, "k", .ttl_ms = 5000, .fence = 1);
    redis_run(&renamed[0], "CONFIG", "SET", "maxmemory", "1", NULL);
    int rc = nxl_lock_acquire(lock, 0);
    redis_run(&renamed[0], "CONFIG", "SET", "maxmemory", "0", NULL);
    assert_result(rc, NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "OOM");
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_psetex_on_one_server),
        cmocka_unit_test(without_psetex_on_three_servers),
        cmocka_unit_test(psetex_denied_to_the_user),
        cmocka_unit_test(takeover_without_psetex),
        cmocka_unit_test(out_of_memory_is_not_taken_for_a_missing_command),
    };
    return cmocka_run_group_tests_name(
        "fencing without PSETEX", tests, start, stop);
}
