/* SPDX-License-Identifier: MIT */
/*
 * An interruption over several servers is never swallowed: either it ends the
 * acquire that is in progress, or the next one. A grant that is decided and
 * waits a moment for a server that is late is neither.
 */
#include "support/test.h"

#include "live/quorum_rig.h"

enum { TRIALS = 40, TTL_MS = 5000 };

struct signal {
    nxl_client *client;
    int after_ms;
};

static void *interrupts(void *data)
{
    struct signal *signal = data;
    test_pause_ms(signal->after_ms);
    nxl_client_interrupt(signal->client);
    return NULL;
}

static void at_any_time(void **state)
{
    (void)state;
    int granted = 0, cancelled = 0;
    for (int i = 0; i < TRIALS; i++) {
        pthread_t thread;
        nxl_client *client = proxied_client(3, NO_GUARD "&timeout_ms=2000");
        nxl_lock *lock = new_lock(client, "k", TTL_MS);
        struct signal signal = {client, 2 * i};
        for (size_t s = 0; s < 3; s++)
            proxy_delay(proxies[s], PROXY_DOWN, 10);
        proxy_hold(proxies[2], PROXY_DOWN, true); /* connected, and silent */
        pthread_create(&thread, NULL, interrupts, &signal);
        int first = nxl_lock_acquire(lock, 0);
        pthread_join(thread, NULL);
        assert_true(first == NXL_OK || first == NXL_CANCELLED);
        if (first == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        int second = nxl_lock_acquire(lock, 1000);
        assert_int_equal(
            second, first == NXL_OK ? NXL_CANCELLED : NXL_OK);
        granted += first == NXL_OK;
        cancelled += first == NXL_CANCELLED;
        end(lock, client);
        proxy_hold(proxies[2], PROXY_DOWN, false);
    }
    print_message("%d granted, %d cancelled\n", granted, cancelled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(at_any_time),
    };
    return quorum_run("interruptions");
}
