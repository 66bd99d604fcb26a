/* SPDX-License-Identifier: MIT */
/*
 * Each name has a line of its own, whatever braces are in it: a release hands
 * the lock over to somebody who waits for this very name.
 */
#include "live/live_rig.h"

static struct waiter waiter;

/* While `other` is released, somebody waits for `name`, which stays held. */
static void assert_apart(const char *name, const char *other)
{
    nxl_client *client = new_client(""), *patient = new_client("");
    nxl_lock *held = new_lock(client, name, 20000);
    nxl_lock *released = new_lock(client, other, 20000);
    nxl_lock *waits = new_lock(patient, name, 20000);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    assert_result(nxl_lock_acquire(released, 0), NXL_OK, released);
    waiter_start(&waiter, waits, 700);
    /* Two locks, the line and its mark. */
    while (redis_run(&server, "DBSIZE", NULL) < 4)
        test_pause_ms(5);
    assert_result(nxl_lock_release(released), NXL_OK, released);
    assert_int_equal(waiter_join(&waiter), NXL_BUSY);
    assert_true(nxl_lock_held(held));
    assert_false(redis_exists(&server, other));
    assert_value(name, nxl_lock_token(held));
    nxl_lock_free(waits);
    nxl_client_free(patient);
    nxl_lock_free(released);
    end(held, client);
}

static void braces_around_the_name(void **state)
{
    assert_apart("{a}", "a");
    assert_apart("a", "{a}");
    assert_apart("{a}{b}", "a}{b");
    assert_apart("{{a}", "{a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(braces_around_the_name),
    };
    return live_run("names of locks in line");
}
