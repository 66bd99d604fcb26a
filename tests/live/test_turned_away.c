/* SPDX-License-Identifier: MIT */
/*
 * A load balancer closes two connections before it forwards the next ones to a
 * healthy server: that server must not be mistaken for a proxy that knows only
 * commands with a key, for then WATCH would not be used there.
 */
#include "live/stamp_rig.h"

static struct proxy *balancer;

static int open_balancer(void **state)
{
    live_clean(state);
    redis_run(
        &server, "ACL", "SETUSER", "default", "+@all", "-@scripting", NULL);
    balancer = proxy_to_server();
    proxy_turn_away(balancer, 2);
    return 0;
}

static int close_balancer(void **state)
{
    proxy_stop(balancer);
    redis_run(&server, "ACL", "SETUSER", "default", "+@all", NULL);
    return 0;
}

static void whole_cycle(nxl_client *client)
{
    nxl_lock *lock = new_lock(client, "k", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 40000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "k"));
    nxl_lock_free(lock);
}

/* WATCH is the only way to extend and release there. */
static void a_lock_without_scripts(void **state)
{
    nxl_client *client = via(balancer, "timeout_ms=2000");
    whole_cycle(client);
    assert_true(redis_calls(&server, "watch") > 0);
    assert_int_equal(proxy_accepted(balancer), 2); /* brief, then full */
    nxl_client_free(client);
}

static void timestamps_keep_watch(void **state)
{
    char text[512];
    nxl_client *client = via(balancer, STAMPS "&timeout_ms=2000");
    whole_cycle(client);
    nxl_client_describe(client, text, sizeof(text));
    assert_null(strstr(text, "without WATCH"));
    assert_true(redis_calls(&server, "watch") > 0);
    nxl_client_free(client);
}

/* The connection that worked is lost, and the balancer does it again. */
static void again_after_a_lost_connection(void **state)
{
    nxl_client *client = via(balancer, "timeout_ms=2000");
    whole_cycle(client);
    for (int i = 0; i < 2; i++) {
        proxy_turn_away(balancer, 2);
        proxy_cut(balancer, false);
        nxl_lock *lock = new_lock(client, "k", 30000);
        int rc = nxl_lock_acquire(lock, 5000); /* the first SET may be lost */
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        else
            assert_result(rc, NXL_UNKNOWN, lock);
        nxl_lock_free(lock);
        assert_eventually(!redis_exists(&server, "k"));
        whole_cycle(client);
    }
    nxl_client_free(client);
}

#define balancer_test(function)                                                \
    cmocka_unit_test_setup_teardown(function, open_balancer, close_balancer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        balancer_test(a_lock_without_scripts),
        balancer_test(timestamps_keep_watch),
        balancer_test(again_after_a_lost_connection),
    };
    return live_run("turned away");
}
