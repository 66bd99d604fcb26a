/* SPDX-License-Identifier: MIT */
/*
 * How long a lock is idle, or blocked with nobody to hold it, when those in
 * line have died in one of many ways: the bounds that docs/guarantees.md
 * promises.
 */
#include "live/live_rig.h"

#include <sys/wait.h>

#include "support/proxy.h"

enum { CROWDS = 10, CROWD_MAX = 20, TTL_MS = 1000, BEAT_MS = 100 };
enum { LEASE_MS = TTL_MS + BEAT_MS, LOOK_MS = 100 };
/* The first holder's: until all others are in line. */
enum { HELD_MS = 60000 };
/* What a busy machine adds. */
enum { SLACK_MS = 600 };
#define TTL "?timeout_ms=5000"

/* Processes that wait for "k", each with as many threads and one client. */
static struct crowd {
    pid_t pid[CROWDS];
    int processes;
} crowd;

static nxl_lock *lock_for(nxl_client *client, int ttl_ms)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    nxl_lock *lock;
    assert_int_equal(nxl_lock_new(&lock, client, "k", &options), NXL_OK);
    return lock;
}

static void *wait_for_ever(void *lock)
{
    while (nxl_lock_acquire(lock, 60000) != NXL_OK)
        ;
    pause();
    return NULL;
}

static void run_crowd(const char *url, int threads)
{
    char whole[2 * LOCAL_PATH];
    snprintf(whole, sizeof(whole), "%s" TTL, url);
    nxl_client *client = client_at(whole);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(
                &thread, NULL, wait_for_ever, lock_for(client, TTL_MS)) != 0)
            _exit(1);
    }
    for (;;)
        pause();
}

static long long in_line(void)
{
    return redis_run(&server, "ZCARD", "{k}:nxl-l", NULL);
}

/* All of them are in line, and can be told, on return. */
static void gather(const char *url, int processes, int threads)
{
    for (int i = 0; i < processes; i++) {
        crowd.pid[i] = test_fork();
        assert_true(crowd.pid[i] >= 0);
        if (crowd.pid[i] == 0)
            run_crowd(url, threads);
        crowd.processes = i + 1;
    }
    assert_eventually(in_line() == processes * threads);
    assert_eventually(
        server_number(&server, "stats", "pubsub_channels") == processes);
}

static void signal_all(int number)
{
    for (int i = 0; i < crowd.processes; i++)
        kill(crowd.pid[i], number);
}

static void await_dead(void)
{
    signal_all(SIGKILL);
    for (int i = 0; i < crowd.processes; i++)
        waitpid(crowd.pid[i], NULL, 0);
    crowd.processes = 0;
}

/* A holder, and one behind the crowd who is alive. */
static struct scene {
    nxl_client *client, *other;
    nxl_lock *held;
    struct live {
        nxl_lock *lock;
        pthread_t thread;
        uint64_t at;
        int result;
    } live;
} scene;

static void *live_run_wait(void *argument)
{
    struct live *live = argument;
    live->result = nxl_lock_acquire(live->lock, 60000);
    live->at = test_now_ns();
    return NULL;
}

static void hold(void)
{
    scene.client = new_client("timeout_ms=5000");
    scene.other = new_client("timeout_ms=5000");
    scene.held = lock_for(scene.client, HELD_MS);
    scene.live.lock = lock_for(scene.other, TTL_MS);
    assert_result(nxl_lock_acquire(scene.held, 0), NXL_OK, scene.held);
}

static void line_up_behind(void)
{
    long long before = in_line();
    assert_int_equal(
        pthread_create(&scene.live.thread, NULL, live_run_wait, &scene.live),
        0);
    assert_eventually(in_line() == before + 1);
    long long channels = crowd.processes + 1;
    assert_eventually(
        server_number(&server, "stats", "pubsub_channels") >= channels);
}

/* In ms since then; at most so many. */
static void assert_granted_within(const char *what, uint64_t since, int most)
{
    pthread_join(scene.live.thread, NULL);
    assert_int_equal(scene.live.result, NXL_OK);
    int64_t us = ((int64_t)scene.live.at - (int64_t)since) / 1000;
    print_message("# %s: %.3f ms, at most %d\n", what, (double)us / 1e3, most);
    assert_between(us / 1000, 0, most + SLACK_MS);
    assert_result(nxl_lock_release(scene.live.lock), NXL_OK, scene.live.lock);
    end(scene.held, scene.client);
    end(scene.live.lock, scene.other);
}

static uint64_t release(void)
{
    uint64_t since = test_now_ns();
    assert_result(nxl_lock_release(scene.held), NXL_OK, scene.held);
    return since;
}

static void test_host_dies(void **state)
{
    hold();
    gather(server.unix_url, CROWDS, 5);
    line_up_behind();
    signal_all(SIGSTOP);
    assert_granted_within(
        "50 stopped, sockets open", release(), LEASE_MS + LOOK_MS);
}

static void test_network_falls_silent(void **state)
{
    struct proxy *proxy = proxy_to(&server, false);
    hold();
    gather(proxy_url(proxy), CROWDS, 5);
    line_up_behind();
    proxy_hold(proxy, PROXY_UP, true);
    proxy_hold(proxy, PROXY_DOWN, true);
    assert_granted_within(
        "50 behind a silent network", release(), LEASE_MS + LOOK_MS);
    await_dead();
    proxy_stop(proxy);
}

static void test_many_are_killed(void **state)
{
    hold();
    gather(server.unix_url, CROWDS, CROWD_MAX);
    line_up_behind();
    await_dead();
    assert_eventually(server_number(&server, "stats", "pubsub_channels") == 1);
    assert_granted_within("200 killed", release(), 5);
}

static void test_no_message(void **state)
{
    redis_needs_acl(&server);
    hold();
    line_up_behind();
    redis_run(&server, "ACL", "SETUSER", "default", "-publish", NULL);
    uint64_t since = release();
    assert_granted_within("nobody told the first in line", since, LOOK_MS);
    redis_run(&server, "ACL", "SETUSER", "default", "+publish", NULL);
}

/* Of the crowd one holds the lock, the others are next. */
static void test_holder_and_next_die(void **state)
{
    hold();
    gather(server.unix_url, 2, 1);
    line_up_behind();
    assert_result(nxl_lock_release(scene.held), NXL_OK, scene.held);
    assert_eventually(in_line() == 2);
    uint64_t since = test_now_ns();
    signal_all(SIGSTOP);
    /* Its rest of the lease, then perhaps that of the next one. */
    assert_granted_within(
        "holder and next in line stopped", since, LEASE_MS + BEAT_MS + 2);
}

static int mend(void **state)
{
    await_dead();
    return 0;
}

#define bound_test(function)                                                   \
    cmocka_unit_test_setup_teardown(function, live_clean, mend)

int main(void)
{
    const struct CMUnitTest tests[] = {
        bound_test(test_host_dies),
        bound_test(test_network_falls_silent),
        bound_test(test_many_are_killed),
        bound_test(test_no_message),
        bound_test(test_holder_and_next_die),
    };
    return cmocka_run_group_tests_name(
        "bounds of the line", tests, live_unix, live_stop);
}
