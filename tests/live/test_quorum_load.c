/* SPDX-License-Identifier: MIT */
/*
 * Many locks at once over healthy servers: each is held at every server, though
 * a majority decides. So when one server ends no lock is lost, and all can be
 * renewed.
 */
#include "support/test.h"

#include "live/api_rig.h"
#include "live/renew_rig.h"

enum { TTL_MS = 4000, THREADS = 32, EACH = 20, MOST = 1000, LAG_MS = 60 };
#define TERMS NO_GUARD "&timeout_ms=1000&max_ttl_ms=8000"

static nxl_lock *locks[MOST];

static void make(nxl_client *client, size_t count)
{
    char name[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "load:%zu", i);
        locks[i] = lock_with(client, name, .ttl_ms = TTL_MS, .renew = 1);
    }
}

static void end_all(nxl_client *client, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

static size_t held(size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += nxl_lock_held(locks[i]) == 1;
    return found;
}

/* How many servers of the first so many have that many keys. */
static size_t with_keys(size_t count, long long keys)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += redis_run(&servers[i], "DBSIZE", NULL) == keys;
    return found;
}

static bool is_everywhere(size_t count, size_t i)
{
    char name[32];
    size_t found = 0;
    snprintf(name, sizeof(name), "load:%zu", i);
    while (found < count && redis_exists(&servers[found], name))
        found++;
    return found == count;
}

/* Is each lock held at every server? On a busy machine one of them may have
 * answered too late to count: those locks are acquired anew. */
static bool all_everywhere(size_t count, size_t total)
{
    if (with_keys(count, (long long)total) == count)
        return true;
    for (size_t i = 0; i < total; i++) {
        if (is_everywhere(count, i))
            continue;
        assert_result(nxl_lock_release(locks[i]), NXL_OK, locks[i]);
        assert_result(nxl_lock_acquire(locks[i], 1000), NXL_OK, locks[i]);
    }
    return false;
}

/* -------------------------------------------------------------------- loop */

static size_t events;

static void take_turn(nxl_client *client, int most_ms)
{
    nxl_event event;
    turn(client, most_ms);
    while (nxl_client_next_event(client, &event)) {
        assert_result(event.result, NXL_OK, event.lock);
        events++;
    }
}

#define turn_until(client, condition)                                          \
    do {                                                                       \
        int64_t end_ms = test_now_ms() + 15000;                                \
        while (!(condition)) {                                                 \
            assert_between(test_now_ms(), 0, end_ms);                          \
            take_turn(client, 20);                                             \
        }                                                                      \
    } while (0)

static void turn_for(nxl_client *client, int64_t ms)
{
    int64_t end_ms = test_now_ms() + ms;
    while (test_now_ms() < end_ms)
        take_turn(client, 20);
}

/* A lock of its own, until each server has it. */
static void connect_by_loop(nxl_client *client, size_t count)
{
    make(client, 1);
    while (!connected_to_all(client)) {
        events = 0;
        assert_int_equal(nxl_lock_acquire_start(locks[0], 1000), NXL_PENDING);
        turn_until(client, events == 1);
        assert_int_equal(nxl_lock_release_start(locks[0]), NXL_PENDING);
        turn_until(client, events == 2);
    }
    nxl_lock_free(locks[0]);
    turn_until(client, with_keys(count, 0) == count);
}

/* Each is renewed, and stays held when one of the servers ends. */
static void assert_all_outlive_a_server(
    nxl_client *client, size_t total, bool turns)
{
    assert_int_equal(stats_of(client).renewal_failures, 0);
    redis_kill(&servers[1]);
    if (turns)
        turn_for(client, TTL_MS + TTL_MS / 4);
    else
        test_pause_ms(TTL_MS + TTL_MS / 4);
    assert_int_equal(held(total), total);
    assert_int_equal(stats_of(client).losses, 0);
    end_all(client, total);
}

/* So many at a time, each time with a turn. */
static void many_by_loop(
    nxl_client *client, size_t count, size_t total, size_t at_a_time)
{
    connect_by_loop(client, count);
    if (proxies[2])
        proxy_delay(proxies[2], PROXY_DOWN, LAG_MS);
    make(client, total);
    events = 0;
    for (size_t i = 0; i < total; i++) {
        assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
        if ((i + 1) % at_a_time == 0)
            take_turn(client, 0);
    }
    turn_until(client, events == total);
    turn_until(client, with_keys(count, (long long)total) == count);
    turn_until(client, stats_of(client).renewals >= total);
    assert_int_equal(stats_of(client).connections, count);
    assert_all_outlive_a_server(client, total, true);
}

static void test_loop_5(void **state)
{
    many_by_loop(quorum_client(5, TERMS), 5, MOST / 2, 100);
}

/* The third is far away: the others have decided all before it hears. */
static void test_loop_at_once_and_one_far(void **state)
{
    many_by_loop(proxied_client(3, TERMS), 3, MOST, MOST);
}

/* ----------------------------------------------------------------- threads */

static void *acquire_each(void *argument)
{
    nxl_lock **mine = argument;
    for (size_t i = 0; i < EACH; i++)
        if (nxl_lock_acquire(mine[i], 1000) != NXL_OK)
            return mine[i];
    return NULL;
}

static void test_threads(void **state)
{
    const size_t count = 3, total = (size_t)THREADS * EACH;
    pthread_t threads[THREADS];
    void *failed;
    nxl_client *client = quorum_client(count, TERMS);
    connect_all(client);
    assert_eventually(with_keys(count, 0) == count);
    make(client, total);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, acquire_each, &locks[i * EACH]),
            0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        if (failed)
            fail_msg("%s", nxl_lock_errmsg(failed));
    }
    assert_eventually(all_everywhere(count, total));
    assert_eventually(stats_of(client).renewals >= total);
    assert_all_outlive_a_server(client, total, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(test_loop_5),
        quorum_test(test_loop_at_once_and_one_far),
        quorum_test(test_threads),
    };
    return quorum_run("quorum under load");
}
