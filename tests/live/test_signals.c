/* SPDX-License-Identifier: MIT */
/*
 * The program's signals, random numbers and threads are its own: none is
 * raised, changed or used up by a call, and a storm of signals changes neither
 * a result nor the time it takes.
 */
#include "live/renew_rig.h"

#include <stdatomic.h>

#include "support/proxy.h"

/* ------------------------------------------------------------------ SIGPIPE */

static atomic_int pipes;
static struct sigaction by_default;

static void count_pipe(int number)
{
    (void)number;
    pipes++;
}

static int pipes_counted(void **state)
{
    struct sigaction mine = {.sa_handler = count_pipe};
    pipes = 0;
    return live_clean(state) | sigaction(SIGPIPE, &mine, &by_default);
}

static int pipes_none(void **state)
{
    struct sigaction now;
    int rc = sigaction(SIGPIPE, &by_default, &now);
    assert_true(now.sa_handler == count_pipe);
    assert_int_equal(pipes, 0);
    return rc;
}

/* None is raised in it. */
#define sigpipe_test(name)                                                     \
    cmocka_unit_test_setup_teardown(name, pipes_counted, pipes_none)

static void the_server_is_killed_between_calls(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 30000);

    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
        redis_kill(&server);
        int rc = NXL_OK;
        for (int j = 0; j < 3; j++)
            rc = nxl_lock_extend(lock, 0);
        assert_true(rc != NXL_OK && rc != NXL_LOST);
        assert_int_not_equal(nxl_lock_release(lock), NXL_OK);
        redis_restart(&server);
    }
    end(lock, client);
}

/* At any byte of what is sent. */
static void the_connection_is_cut_under_a_call(void **state)
{
    struct proxy *p = proxy_to(&server, true);
    nxl_client *client = client_at(proxy_tcp_url(p));
    nxl_lock *lock = new_lock(client, "name", 30000);

    for (int i = 0; i < 40; i++) {
        proxy_cut_after(p, i % 2 ? PROXY_UP : PROXY_DOWN, (size_t)(1 + 3 * i));
        int rc = nxl_lock_acquire(lock, 2000);
        if (rc == NXL_OK)
            rc = nxl_lock_release(lock);
        (void)rc;
        proxy_cut(p, true);
    }
    end(lock, client);
    proxy_stop(p);
}

static void dispositions_and_masks_stay(void **state)
{
    static struct sigaction before[65], after[65];
    sigset_t mask, mask_after;

    for (int i = 1; i < 65; i++)
        sigaction(i, NULL, &before[i]);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_kill(&server);
    assert_true(nxl_lock_release(lock) != NXL_OK);
    end(lock, client);
    for (int i = 1; i < 65; i++) {
        sigaction(i, NULL, &after[i]);
        assert_true(before[i].sa_handler == after[i].sa_handler);
        assert_int_equal(before[i].sa_flags, after[i].sa_flags);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &mask_after);
    for (int i = 1; i < 65; i++)
        assert_int_equal(sigismember(&mask, i), sigismember(&mask_after, i));
    redis_restart(&server);
}

/* ------------------------------------------------------------------- storms */

static atomic_uint storms;
static timer_t storm;

static void in_a_storm(int number)
{
    (void)number;
    storms++;
}

/* A signal every millisecond, without SA_RESTART: every wait is interrupted
 * again and again. (The alarm clock is the test watch's.) */
static int storm_up(void **state)
{
    struct sigaction action = {.sa_handler = in_a_storm};
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    if (live_clean(state) != 0)
        return -1;
    storms = 0;
    sigaction(SIGUSR1, &action, NULL);
    return timer_create(CLOCK_MONOTONIC, &event, &storm);
}

static void rage(void)
{
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    assert_int_equal(timer_settime(storm, 0, &often, NULL), 0);
}

static void calm(void)
{
    struct itimerspec never = {{0, 0}, {0, 0}};
    assert_int_equal(timer_settime(storm, 0, &never, NULL), 0);
}

static int storm_down(void **state)
{
    timer_delete(storm);
    signal(SIGUSR1, SIG_DFL);
    return 0;
}

#define storm_test(name)                                                       \
    cmocka_unit_test_setup_teardown(name, storm_up, storm_down)

/* A call, its result and how long it took, in the storm. */
static int stormy_acquire(nxl_lock *lock, int64_t wait_ms, int64_t *took_ms)
{
    unsigned before = storms;
    int64_t began = test_now_ms();
    rage();
    int rc = nxl_lock_acquire(lock, wait_ms);
    calm();
    *took_ms = test_now_ms() - began;
    if (*took_ms > 100)
        assert_true(storms - before > 5); /* it did rage, though fewer signals
                                           * arrive on a busy machine */
    return rc;
}

static void waits_in_a_storm(void **state)
{
    int64_t took_ms;
    nxl_client *client = new_client("timeout_ms=200");
    nxl_lock *lock = new_lock(client, "name", 30000);

    stranger_sets("name", "somebody", 0);
    assert_result(stormy_acquire(lock, 150, &took_ms), NXL_BUSY, lock);
    /* Sooner if no further attempt would end in time. */
    assert_between(took_ms, 75, 150 + LATE_MS);
    stranger_sets("name", "somebody", 600);
    assert_result(stormy_acquire(lock, 2000, &took_ms), NXL_OK, lock);
    assert_between(took_ms, 150, 600 + 250 + LATE_MS);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_freeze(&server);
    assert_result(stormy_acquire(lock, 0, &took_ms), NXL_UNKNOWN, lock);
    assert_between(took_ms, 199, 200 + LATE_MS);
    rage();
    redis_thaw(&server);
    calm();
    assert_result(stormy_acquire(lock, 1000, &took_ms), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_kill(&server);
    int rc = stormy_acquire(lock, 0, &took_ms); /* sent before it was seen? */
    assert_true(rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN);
    assert_between(took_ms, 0, 200 + LATE_MS);
    redis_restart(&server);
    end(lock, client);
}

static void cycles_in_a_storm(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 30000);

    rage();
    for (int i = 0; i < 500; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    calm();
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

/* Here each thread is hit by itself: the one that reads, and those asleep. */
static void followers_in_a_storm(void **state)
{
    static struct waiter waiter[4];
    nxl_client *client = new_client("");
    nxl_lock *lock[4];

    stranger_sets("name", "somebody", 0);
    for (int i = 0; i < 4; i++) {
        lock[i] = new_lock(client, "name", 30000);
        waiter_start(&waiter[i], lock[i], 300);
    }
    int64_t end_ms = test_now_ms() + 250;
    while (test_now_ms() < end_ms) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_kill(waiter[i].thread, SIGUSR1), 0);
        test_pause_ms(1);
    }
    assert_true(storms >= 20); /* 1000 where nothing else runs */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(waiter_join(&waiter[i]), NXL_BUSY);
        assert_between(
            waiter[i].ended_ms - waiter[i].began_ms, 299, 300 + LATE_MS);
        nxl_lock_free(lock[i]);
    }
    nxl_client_free(client);
}

/* ------------------------------------------------------- the program's own */

static void random_numbers_stay(void **state)
{
    int expected[12];
    long expected_long[12];
    double expected_real[12];

    srand(1);
    srand48(1);
    for (int i = 0; i < 12; i++) {
        expected[i] = rand();
        expected_long[i] = random();
        expected_real[i] = drand48();
    }
    srand(1);
    srand48(1);
    nxl_client *client = NULL;
    nxl_lock *lock = NULL;
    for (int i = 0; i < 12; i++) {
        if (i == 2)
            client = new_client("");
        if (i == 3)
            lock = new_lock(client, "name", 30000);
        if (i > 3 && i < 10) {
            assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        }
        if (i == 10)
            end(lock, client);
        assert_int_equal(rand(), expected[i]);
        assert_int_equal(random(), expected_long[i]);
        assert_true(drand48() == expected_real[i]);
    }
}

static void no_thread_is_started(void **state)
{
    int before = count_threads();
    char local[64];
    snprintf(local, sizeof(local), "%s://localhost:%u", server.scheme,
        (unsigned)server.port);
    nxl_client *clients[] = {new_client(""), client_at(local)};
    for (int i = 0; i < 2; i++) {
        nxl_lock *lock = new_lock(clients[i], "name", 30000);
        assert_result(nxl_lock_acquire(lock, 1000), NXL_OK, lock);
        assert_int_equal(count_threads(), before);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        end(lock, clients[i]);
    }
    assert_int_equal(count_threads(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        sigpipe_test(the_server_is_killed_between_calls),
        sigpipe_test(the_connection_is_cut_under_a_call),
        live_test(dispositions_and_masks_stay),
        storm_test(waits_in_a_storm),
        storm_test(cycles_in_a_storm),
        storm_test(followers_in_a_storm),
        live_test(random_numbers_stay),
        live_test(no_thread_is_started),
    };
    return live_run("signals");
}
