/* SPDX-License-Identifier: MIT */
/*
 * A server that reads nothing, or answers nothing, as a caller meets it. What
 * is unanswered is bounded in number and in age: unit/test_request.c and
 * unit/scenes/server.scenes.
 */
#include "rig.h"

#define BIG 65536
#define MANY 12

static char *big_name(int which)
{
    static char name[BIG + 1];
    memset(name, 'a' + which, BIG);
    return name;
}

/* All of them are formatted in one turn, and the socket takes but some: a
 * command in the middle is then gone in part. */
static void what_did_not_leave_is_taken_back(void **state)
{
    (void)state;
    struct rig r = rig_open(
        SHAKE "WAIT-FOR read\nSERVE\n", 'u', "timeout_ms=150&prefix=x");
    nxl_lock *locks[MANY], *small = lock_of_name(r.client, "small", 30000);
    size_t unknown = 0, unreachable = 0;
    for (int i = 0; i < MANY; i++) {
        nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
        options.name_length = BIG - 1;
        assert_int_equal(
            nxl_lock_new(&locks[i], r.client, big_name(i), &options), NXL_OK);
    }
    assert_int_equal(nxl_lock_inspect_start(small), NXL_PENDING);
    assert_int_equal(event_result(r.client, small), NXL_E_UNREACHABLE);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
    for (int i = 0; i < MANY; i++) {
        int rc = event_result(r.client, NULL);
        unknown += rc == NXL_UNKNOWN;
        unreachable += rc == NXL_E_UNREACHABLE;
    }
    assert_int_equal(unknown + unreachable, MANY);
    assert_true(unknown > 0 && unreachable > 1);
    fake_signal(r.fake, "read");
    assert_idle(r.client);
    /* What left in whole or in part is done and undone; the rest is unheard
     * of; and the stream is in step. */
    assert_int_equal(fake_count(r.fake, 0, "SET"), unknown);
    assert_int_equal(fake_count(r.fake, 0, "EVAL"), unknown);
    assert_int_equal(acquire_by_loop(r.client, locks[MANY - 1], 0), NXL_OK);
    assert_int_equal(nxl_lock_release_start(locks[MANY - 1]), NXL_PENDING);
    assert_int_equal(event_result(r.client, NULL), NXL_OK);
    for (int i = 0; i < MANY; i++)
        nxl_lock_free(locks[i]);
    nxl_lock_free(small);
    rig_close(&r);
}

/* Too old: the connection is replaced while a call waits, and what it left is
 * undone on the new one. */
static void an_old_connection_is_replaced_during_a_call(void **state)
{
    (void)state;
    char set[256];
    struct rig r =
        rig_open(SHAKE "SILENCE\n" NEXT "SERVE\n", 'u', "timeout_ms=900");
    assert_takes(nxl_lock_acquire(r.lock, 8000), NXL_OK, 1995, 3000);
    snprintf(set, sizeof(set), "\n1 SET k %s ", nxl_lock_token(r.lock));
    assert_contains(fake_log(r.fake), set);
    assert_between(fake_count(r.fake, 0, "SET"), 2, 3);
    assert_true(fake_count(r.fake, 1, "EVAL") >= 2);
    assert_ends(nxl_lock_release(r.lock), NXL_OK, 200);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_did_not_leave_is_taken_back),
        cmocka_unit_test(an_old_connection_is_replaced_during_a_call),
    };
    return cmocka_run_group_tests_name("cleanup_full", tests, NULL, NULL);
}
