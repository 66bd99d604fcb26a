/* SPDX-License-Identifier: MIT */
/*
 * A thread stops between what it does with the clock and what it does with the
 * client: no call goes by a time before that, and no duration ends before it
 * begins.
 *
 * The library's calls of clock_gettime() and epoll_wait(), and the callback of
 * the tracer, stop the thread that is to stop.
 */
#include "live_rig.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <time.h>

enum { TTL_MS = 600, STOP_MS = 500 };

static _Atomic(pthread_t) slow; /* the thread that is to stop */
static atomic_bool armed, has_events, go_on;
static sem_t stopped;
static _Atomic(nxl_lock *) granted_late; /* it is to be over when it is seen */

static bool is_slow(void)
{
    return atomic_load(&armed) &&
           pthread_equal(atomic_load(&slow), pthread_self());
}

static void stop_slow(int64_t most_ms)
{
    atomic_store(&armed, false);
    sem_post(&stopped);
    int64_t end = test_now_ms() + most_ms;
    while (!atomic_load(&go_on) && test_now_ms() < end)
        test_pause_ms(1);
}

int __real_epoll_wait(int fd, struct epoll_event *list, int most, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *list, int most, int ms);

int __wrap_epoll_wait(int fd, struct epoll_event *list, int most, int ms)
{
    int count = __real_epoll_wait(fd, list, most, ms);
    if (is_slow())
        atomic_store(&has_events, count > 0);
    return count;
}

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

/* A thread that is about to read the clock stops, if that lock was granted, for
 * as long as it is held. */
static void stop_while_held(void)
{
    nxl_lock *lock = atomic_exchange(&granted_late, NULL);
    bool granted = nxl_lock_held(lock);
    while (nxl_lock_held(lock))
        test_pause_ms(1);
    atomic_store(&granted_late, granted ? NULL : lock);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    if (is_slow() && atomic_load(&granted_late))
        stop_while_held();
    int rc = __real_clock_gettime(id, time);
    if (is_slow() && atomic_load(&has_events))
        stop_slow(STOP_MS); /* it may have the mutex, so not for ever */
    return rc;
}

static void *acquire_slowly(void *argument)
{
    struct waiter *w = argument;
    atomic_store(&slow, pthread_self());
    atomic_store(&armed, true);
    w->result = nxl_lock_acquire(w->lock, 0);
    return NULL;
}

static void await_stopped(void)
{
    struct timespec end;
    __real_clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    assert_int_equal(sem_timedwait(&stopped, &end), 0);
}

static int set_up(void **state)
{
    atomic_store(&armed, false);
    atomic_store(&granted_late, NULL);
    atomic_store(&has_events, false);
    atomic_store(&go_on, false);
    sem_init(&stopped, 0, 0);
    return live_clean(state);
}

/* It reads for all of its client, as long as others hold that lock. */
static nxl_lock *begin_reading(
    struct waiter *reader, nxl_client *client, nxl_client *others)
{
    nxl_lock *taken = new_lock(others, "taken", 20000);
    assert_result(nxl_lock_acquire(taken, 0), NXL_OK, taken);
    waiter_start(reader, new_lock(client, "taken", 1000), 60000);
    assert_eventually(redis_run(&server, "ZCARD", "{taken}:nxl-l", NULL) == 1);
    return taken;
}

/* The reader of a client has read the clock, and stops. Another thread begins
 * an acquire, whose answer the reader then finds. */
static void a_wait_does_not_end_before_it_begins(void **state)
{
    static struct waiter waiter, caller;
    nxl_client *others = new_client(""), *client = new_client("");
    nxl_lock *taken = begin_reading(&waiter, client, others);
    atomic_store(&slow, waiter.thread);
    atomic_store(&armed, true);
    await_stopped();
    waiter_start(&caller, new_lock(client, "k", 20000), 0);
    int64_t most = test_now_ms() + STOP_MS;
    while (redis_run(&server, "EXISTS", "k", NULL) == 0 && test_now_ms() < most)
        test_pause_ms(1);
    test_pause_ms(5); /* the answer has come as well */
    atomic_store(&go_on, true);
    assert_result(waiter_join(&caller), NXL_OK, caller.lock);
    assert_result(nxl_lock_release(taken), NXL_OK, taken);
    assert_result(waiter_join(&waiter), NXL_OK, waiter.lock);
    nxl_stats stats;
    assert_int_equal(nxl_client_stats(client, &stats, sizeof(stats)), NXL_OK);
    assert_int_equal(stats.wait.count, 2);
    assert_int_equal(stats.wait.buckets[NXL_HISTOGRAM_BUCKETS - 1], 0);
    assert_true(stats.wait.sum_ns < UINT64_C(60000000000));
    nxl_lock_free(caller.lock);
    nxl_lock_free(waiter.lock);
    nxl_client_free(client);
    end(taken, others);
}

/* A caller sleeps while another thread reads for it. It is granted the lock,
 * wakes only when the lease is over, and looks at the clock before it returns.
 */
static void a_caller_that_wakes_too_late_has_lost(void **state)
{
    static struct waiter waiter, caller;
    nxl_client *others = new_client(""), *client = new_client("");
    nxl_lock *taken = begin_reading(&waiter, client, others);
    nxl_lock *lock = caller.lock = new_lock(client, "k", TTL_MS);
    atomic_store(&granted_late, lock);
    pthread_create(&caller.thread, NULL, acquire_slowly, &caller);
    assert_result(waiter_join(&caller), NXL_LOST, lock);
    assert_non_null(strstr(nxl_lock_errmsg(lock), "nothing is held"));
    assert_result(nxl_lock_release(taken), NXL_OK, taken);
    assert_result(waiter_join(&waiter), NXL_OK, waiter.lock);
    nxl_lock_free(lock);
    nxl_lock_free(waiter.lock);
    nxl_client_free(client);
    end(taken, others);
}

/* ----------------------------------------------------- while others have it */

static void slow_tracer(void *unused, const nxl_trace *trace)
{
    if (is_slow())
        stop_slow(20000);
}

static void *release(void *argument)
{
    struct waiter *w = argument;
    w->result = nxl_lock_release(w->lock);
    return NULL;
}

/* A release waits for the client's mutex until after the lock's deadline: it is
 * not sent, because from then on the key may be another's. */
static void a_release_that_waited_too_long_is_not_sent(void **state)
{
    static struct waiter slowly, releaser;
    nxl_client *client;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.tracer = slow_tracer;
    assert_int_equal(nxl_client_new(&client, server_url, &options), NXL_OK);
    slowly.lock = new_lock(client, "other", 20000);
    releaser.lock = new_lock(client, "k", TTL_MS);
    /* The script of a release is known to the server. */
    assert_result(nxl_lock_acquire(releaser.lock, 0), NXL_OK, releaser.lock);
    assert_result(nxl_lock_release(releaser.lock), NXL_OK, releaser.lock);
    assert_result(nxl_lock_acquire(releaser.lock, 0), NXL_OK, releaser.lock);
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    pthread_create(&slowly.thread, NULL, acquire_slowly, &slowly);
    await_stopped(); /* it has the mutex */
    pthread_create(&releaser.thread, NULL, release, &releaser);
    while (nxl_lock_held(releaser.lock))
        test_pause_ms(1);
    atomic_store(&go_on, true);
    assert_result(waiter_join(&slowly), NXL_OK, slowly.lock);
    assert_result(waiter_join(&releaser), NXL_LOST, releaser.lock);
    assert_int_equal(
        server_number(&server, "commandstats", "cmdstat_evalsha"), -1);
    nxl_lock_free(slowly.lock);
    end(releaser.lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_wait_does_not_end_before_it_begins, set_up),
        cmocka_unit_test_setup(a_caller_that_wakes_too_late_has_lost, set_up),
        cmocka_unit_test_setup(
            a_release_that_waited_too_long_is_not_sent, set_up),
    };
    return live_run_long("a stale clock");
}
