/* SPDX-License-Identifier: MIT */
/*
 * A program that defines functions with the same names as all the library's
 * internal ones (own_names.c, generated). It is linked once with the shared
 * library and once with the archive. Invariant: the library never calls them,
 * so a clock_now() that stands still does not keep an expired lock held.
 */
#include "support/redis.h"
#include "support/test.h"

#include <nxlock.h>

#define TTL_MS 400

extern const char *volatile own_called; /* the last of them that was called */
long clock_now(void);

static struct redis server;

static int setup(void **state)
{
    (void)state;
    return redis_start(&server, NULL);
}

static int teardown(void **state)
{
    (void)state;
    redis_stop(&server);
    return 0;
}

static void test_the_lock_expires_locally(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_client *client;
    nxl_lock *lock;

    assert_int_equal(clock_now(), clock_now()); /* ours, not the library's */
    own_called = NULL;
    options.ttl_ms = TTL_MS;
    assert_int_equal(nxl_client_new(&client, server.unix_url, NULL), NXL_OK);
    assert_int_equal(nxl_lock_new(&lock, client, "own", &options), NXL_OK);
    int64_t start = test_now_ms();
    assert_int_equal(nxl_lock_acquire(lock, 5000), NXL_OK);
    assert_eventually(!nxl_lock_held(lock));
    if (test_now_ms() - start < TTL_MS / 2)
        fail_msg("the lease ended after %lld ms",
            (long long)(test_now_ms() - start));
    assert_int_equal(nxl_lock_acquire(lock, 5000), NXL_OK);
    /* A lease that was handed over is longer, by 100 ms at least. */
    assert_true(nxl_lock_remaining_ms(lock) <= TTL_MS + TTL_MS / 10 + 100);
    int rc = nxl_lock_release(lock);
    assert_true(rc == NXL_OK || rc == NXL_LOST); /* lost on a slow machine */
    nxl_lock_free(lock);
    nxl_client_free(client);
    if (own_called)
        fail_msg("the library called the program's %s()", own_called);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_lock_expires_locally)};
    return cmocka_run_group_tests_name("own_names", tests, setup, teardown);
}
