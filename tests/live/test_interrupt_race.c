/* SPDX-License-Identifier: MIT */
/*
 * Interrupts that another thread sends at the moment when an acquire begins or
 * is granted: each ends exactly one acquire. scenes/interrupt has those whose
 * moment is known.
 */
#define QUORUM_MAX 3
#include "live/quorum_rig.h"

enum { TTL_MS = 30000, TRIALS = 150 };

static pthread_barrier_t both_ready;

static void *interrupts(void *lock)
{
    pthread_barrier_wait(&both_ready);
    (void)nxl_lock_interrupt(lock);
    return NULL;
}

/* Another thread is about to enter the acquire, or just has. */
static void an_interrupt_is_never_lost(void **state)
{
    pthread_barrier_init(&both_ready, NULL, 2);
    nxl_client *client = quorum_client(on.servers, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "SET", "k", "stranger", NULL);
    for (int i = 0; i < TRIALS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, interrupts, lock);
        pthread_barrier_wait(&both_ready);
        for (volatile int spin = 3000 * i; spin > 0; spin--)
            ; /* one time this thread is first, one time the other one */
        int rc = nxl_lock_acquire(lock, NXL_FOREVER);
        pthread_join(thread, NULL);
        assert_int_equal(rc, NXL_CANCELLED);
    }
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "DEL", "k", NULL);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(nxl_lock_interrupt(NULL), NXL_E_INVALID);
    end(lock, client);
    pthread_barrier_destroy(&both_ready);
}

struct signal {
    nxl_client *client;
    int after_ms;
};

static void *interrupts_all(void *data)
{
    struct signal *signal = data;
    test_pause_ms(signal->after_ms);
    nxl_client_interrupt(signal->client);
    return NULL;
}

/* A grant that is decided and waits a moment for a server that is late, if
 * there is one, is neither ended nor does it swallow the interrupt. */
static void an_interrupt_of_all_is_never_lost(void **state)
{
    int trials = on.servers > 1 ? 40 : 10; /* of 2 ms more each time */
    for (int i = 0; i < trials; i++) {
        pthread_t thread;
        nxl_client *client =
            proxied_client(on.servers, NO_GUARD "&timeout_ms=2000");
        nxl_lock *lock = new_lock(client, "k", TTL_MS / 6);
        struct signal signal = {client, 2 * i};
        for (size_t s = 0; s < on.servers; s++)
            proxy_delay(proxies[s], PROXY_DOWN, 10);
        if (on.servers > 1) /* connected, and silent */
            proxy_hold(proxies[2], PROXY_DOWN, true);
        pthread_create(&thread, NULL, interrupts_all, &signal);
        int first = nxl_lock_acquire(lock, 0);
        pthread_join(thread, NULL);
        assert_true(first == NXL_OK || first == NXL_CANCELLED);
        if (first == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        int second = nxl_lock_acquire(lock, 1000);
        assert_int_equal(second, first == NXL_OK ? NXL_CANCELLED : NXL_OK);
        if (on.servers > 1)
            proxy_hold(proxies[2], PROXY_DOWN, false);
        end(lock, client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(an_interrupt_is_never_lost),
        quorum_test(an_interrupt_of_all_is_never_lost),
    };
    return on_one_and_three_run("interrupt", tests);
}
