/* SPDX-License-Identifier: MIT */
/*
 * What docs/acl.md notes beside its table: patterns for reading or writing
 * alone, SCRIPT LOAD without EVAL, and counters that need SET.
 */
#include "live/acl_rig.h"

static nxl_client *client;
static nxl_lock *lock;

/* Without that rule, and with another one. */
static void begin(unsigned feature, const char *without, const char *with)
{
    set_up(feature, without);
    grant(with);
    client = alice("");
    lock = lock_with(
        client, NAME, .ttl_ms = TTL_MS, .fence = feature == ACL_FENCE);
}

static int finish(void **state)
{
    end(lock, client);
    lock = NULL;
    client = NULL;
    return 0;
}

static void who_can_only_write_cannot_release(void **state)
{
    begin(ACL_LOCK, ACL_KEY, "%W~" NAME);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_E_DENIED, lock);
    assert_between(redis_pttl(&server, NAME), 1, TTL_MS);
}

static void who_can_only_read_can_look_and_not_acquire(void **state)
{
    nxl_holder holder = NXL_HOLDER_INIT;

    begin(ACL_INSPECT, ACL_KEY, "%R~" NAME);
    stranger_sets(NAME, "stranger", TTL_MS);
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    assert_string_equal(holder.value, "stranger");
    finish(state);
    begin(ACL_LOCK, ACL_KEY, "%R~" NAME);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_false(redis_exists(&server, NAME));
}

static void loaded_scripts_work_until_they_are_forgotten(void **state)
{
    begin(ACL_LOCK, "+eval", "+script|load");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_run(&server, "SCRIPT", "FLUSH", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_E_DENIED, lock);
    assert_contains(nxl_lock_errmsg(lock), "'eval'");
    redis_run(&server, "DEL", NAME, NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_false(redis_exists(&server, NAME));
    finish(state);
    client = alice(""); /* a new connection loads them again */
    lock = new_lock(client, NAME, TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

/* Somebody has made the counter without a TTL; it is kept so, by SET. */
static void a_permanent_counter_needs_set(void **state)
{
    begin(ACL_FENCE, "+set", "+ping");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_run(&server, "SET", "{" NAME "}:f", "7", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_false(redis_exists(&server, NAME));
    grant("+set");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
}

/* The message says what to do, and is not that of a wrong password. */
static void the_message_names_the_command(void **state)
{
    begin(ACL_LOCK, "+set", "+ping");
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_DENIED, lock);
    assert_told(lock, server.url, "'set'", "see docs/acl.md");
    assert_null(strstr(nxl_lock_errmsg(lock), "password"));
    assert_true(logged("set"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(who_can_only_write_cannot_release, finish),
        cmocka_unit_test_teardown(
            who_can_only_read_can_look_and_not_acquire, finish),
        cmocka_unit_test_teardown(
            loaded_scripts_work_until_they_are_forgotten, finish),
        cmocka_unit_test_teardown(a_permanent_counter_needs_set, finish),
        cmocka_unit_test_teardown(the_message_names_the_command, finish),
    };
    return cmocka_run_group_tests_name(
        "acl_partly", tests, live_tcp, live_stop);
}
