/* SPDX-License-Identifier: MIT */
/*
 * A server that was locked by times and is locked by SET NX PX now: what the
 * living hold stays theirs, and what the dead left does not stand for ever.
 */
#include "live/stamp_rig.h"
#include "support/blanks.h"

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

static void what_the_dead_left_is_taken_over(void **state)
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
static void with_fewer_rights(void **state)
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

static void what_the_living_hold_is_not(void **state)
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
static void a_look_now_and_then(void **state)
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

static void other_programs_only_by_order(void **state)
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
static void one_gets_it(void **state)
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
static void a_holder_lives_on(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(what_the_dead_left_is_taken_over),
        cmocka_unit_test_setup_teardown(
            with_fewer_rights, live_clean, return_rights),
        live_test(what_the_living_hold_is_not),
        live_test(a_look_now_and_then),
        live_test(other_programs_only_by_order),
        live_test(one_gets_it),
        live_test(a_holder_lives_on),
    };
    return live_run_long("timestamps of the past");
}
