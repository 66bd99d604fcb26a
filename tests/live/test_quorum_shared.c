/* SPDX-License-Identifier: MIT */
/*
 * Locks that share (options.shared) over three servers: a majority of them
 * excludes a writer from readers, and readers from a writer. And how a writer
 * is granted the lock where there is no line: readers are held back after it
 * has lost some rounds to them (wire/scripts/hold_back.lua).
 */
#include "live/quorum_rig.h"

#include <stdatomic.h>

#define TERMS NO_GUARD "&timeout_ms=2000"

enum { TTL_MS = 20000 };

static long long holders_at(size_t i)
{
    return redis_run(&servers[i], "ZCARD", "job", NULL) - 1;
}

/* A call returns when a majority has answered. */
static bool all_have(long long holders)
{
    for (size_t i = 0; i < on.servers; i++)
        if (holders_at(i) != holders)
            return false;
    return true;
}

static nxl_lock *reader_of(nxl_client *client)
{
    return lock_with(client, "job", .shared = 1, .ttl_ms = TTL_MS);
}

static void together_or_alone(void **state)
{
    nxl_client *client = client_on(TERMS);
    nxl_lock *one = reader_of(client), *two = reader_of(client);
    nxl_lock *writer = new_lock(client, "job", TTL_MS);
    connect_all(client);
    for (unsigned turn = 0; turn < 3; turn++) {
        assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
        assert_result(nxl_lock_acquire(two, 0), NXL_OK, two);
        assert_eventually(all_have(2));
        assert_between(nxl_lock_remaining_ms(one), 10000, TTL_MS);
        assert_result(nxl_lock_acquire(writer, 0), NXL_BUSY, writer);
        assert_result(nxl_lock_extend(one, 0), NXL_OK, one);
        assert_result(nxl_lock_release(one), NXL_OK, one);
        assert_result(nxl_lock_acquire(writer, 0), NXL_BUSY, writer);
        assert_result(nxl_lock_release(two), NXL_OK, two);
        assert_eventually(keys_at(3, "job") == 0);

        assert_result(nxl_lock_acquire(writer, 0), NXL_OK, writer);
        assert_result(nxl_lock_acquire(one, 0), NXL_BUSY, one);
        assert_result(nxl_lock_release(writer), NXL_OK, writer);
        assert_eventually(keys_at(3, "job") == 0);
    }
    nxl_lock_free(one);
    nxl_lock_free(two);
    end(writer, client);
}

static void a_minority_is_down(void **state)
{
    nxl_client *client = client_on(TERMS);
    nxl_lock *one = reader_of(client), *two = reader_of(client);
    nxl_lock *writer = new_lock(client, "job", TTL_MS);
    assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
    redis_kill(&servers[1]);
    assert_result(nxl_lock_acquire(two, 0), NXL_OK, two);
    assert_result(nxl_lock_extend(one, 0), NXL_OK, one);
    assert_result(nxl_lock_acquire(writer, 0), NXL_BUSY, writer);
    assert_result(nxl_lock_release(one), NXL_OK, one);
    assert_result(nxl_lock_acquire(writer, 0), NXL_BUSY, writer);
    assert_result(nxl_lock_release(two), NXL_OK, two);
    assert_result(nxl_lock_acquire(writer, 0), NXL_OK, writer);
    assert_result(nxl_lock_acquire(one, 0), NXL_BUSY, one);
    assert_result(nxl_lock_release(writer), NXL_OK, writer);

    redis_kill(&servers[2]);
    assert_result(nxl_lock_acquire(one, 0), NXL_E_UNREACHABLE, one);
    assert_eventually(!redis_exists(&servers[0], "job"));
    nxl_lock_free(one);
    nxl_lock_free(two);
    end(writer, client);
}

/* Two servers lose a lock in a restart: those who held it have lost it. */
static void a_majority_forgets(void **state)
{
    nxl_client *client = client_on(TERMS);
    nxl_lock *one = reader_of(client), *two = reader_of(client);
    connect_all(client);
    assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
    assert_result(nxl_lock_acquire(two, 0), NXL_OK, two);
    assert_eventually(all_have(2));
    redis_run(&servers[0], "ZREM", "job", nxl_lock_token(one), NULL);
    assert_result(nxl_lock_extend(one, 0), NXL_OK, one);
    redis_run(&servers[2], "ZREM", "job", nxl_lock_token(one), NULL);
    assert_result(nxl_lock_extend(one, 0), NXL_LOST, one);
    assert_false(nxl_lock_held(one));
    assert_result(nxl_lock_extend(two, 0), NXL_OK, two);
    assert_result(nxl_lock_release(two), NXL_OK, two);
    nxl_lock_free(one);
    end(two, client);
}

static void adopted_and_inspected(void **state)
{
    nxl_client *client = client_on(TERMS), *other = client_on(TERMS);
    nxl_lock *one = reader_of(client), *two = reader_of(client);
    nxl_lock *heir = new_lock(other, "job", TTL_MS);
    nxl_holder holder = NXL_HOLDER_INIT;
    connect_all(client);
    assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
    assert_result(nxl_lock_acquire(two, 0), NXL_OK, two);
    assert_eventually(all_have(2));
    assert_result(nxl_lock_inspect(heir, &holder), NXL_OK, heir);
    assert_int_equal(holder.weight, 1);
    assert_int_equal(holder.permits, 0);

    assert_result(nxl_lock_adopt(heir, nxl_lock_token(one)), NXL_OK, heir);
    assert_result(nxl_lock_extend(heir, 0), NXL_OK, heir);
    assert_result(nxl_lock_release(heir), NXL_OK, heir);
    assert_eventually(all_have(1));
    assert_result(nxl_lock_release(two), NXL_OK, two);
    assert_eventually(keys_at(3, "job") == 0);
    nxl_lock_free(one);
    nxl_lock_free(two);
    nxl_client_free(client);
    end(heir, other);
}

/* Whether it was granted is unknown: then it is taken back at each server, and
 * the other reader's lease is not touched. */
static void a_lost_answer_is_undone(void **state)
{
    nxl_client *direct = client_on(TERMS);
    nxl_client *client = proxied_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock *one = reader_of(direct), *lost = reader_of(client);
    nxl_lock *writer = new_lock(direct, "job", TTL_MS);
    connect_all(direct);
    connect_all(client);
    assert_result(nxl_lock_acquire(one, 0), NXL_OK, one);
    assert_eventually(all_have(1));
    for (size_t i = 0; i < 3; i++)
        proxy_drop(proxies[i], PROXY_DOWN, true);
    assert_result(nxl_lock_acquire(lost, 0), NXL_UNKNOWN, lost);
    assert_false(nxl_lock_held(lost));
    for (size_t i = 0; i < 3; i++)
        proxy_drop(proxies[i], PROXY_DOWN, false);
    assert_eventually((connect_most(client), all_have(1)));
    assert_result(nxl_lock_extend(one, 0), NXL_OK, one);
    assert_result(nxl_lock_acquire(writer, 0), NXL_BUSY, writer);
    assert_result(nxl_lock_release(one), NXL_OK, one);
    assert_eventually(keys_at(3, "job") == 0);
    assert_result(nxl_lock_acquire(writer, 0), NXL_OK, writer);
    assert_result(nxl_lock_release(writer), NXL_OK, writer);
    nxl_lock_free(one);
    end(lost, client);
    end(writer, direct);
}

/* ------------------------------------------------------------------ a crowd */

enum { READERS = 8, ENOUGH = 30, HOLD_US = 5000 };

static struct {
    atomic_int readers, writers, worst, grants[2];
    atomic_bool stop;
    int64_t longest_ms[2];
    pthread_mutex_t mutex;
} crowd = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct member {
    pthread_t thread;
    nxl_client *client;
    nxl_lock *lock;
    bool writes;
};

static void note_wait(bool writes, int64_t ms)
{
    pthread_mutex_lock(&crowd.mutex);
    if (crowd.longest_ms[writes] < ms)
        crowd.longest_ms[writes] = ms;
    pthread_mutex_unlock(&crowd.mutex);
}

static void *take_turns(void *argument)
{
    struct member *m = argument;
    atomic_int *mine = m->writes ? &crowd.writers : &crowd.readers;
    while (!crowd.stop) {
        int64_t began = test_now_ms();
        if (nxl_lock_acquire(m->lock, 30000) != NXL_OK)
            continue;
        note_wait(m->writes, test_now_ms() - began);
        ++*mine;
        int writers = crowd.writers, readers = crowd.readers;
        if (writers > 1 || (writers && readers))
            crowd.worst++;
        crowd.grants[m->writes]++;
        usleep(HOLD_US);
        bool held = nxl_lock_held(m->lock);
        --*mine;
        if (!held || nxl_lock_release(m->lock) != NXL_OK)
            crowd.worst++;
        if (m->writes) /* without a line the last holder is the quickest */
            usleep(HOLD_US);
    }
    return NULL;
}

/* Until each kind has been granted the lock often enough, however slow the
 * machine is. */
static void run_crowd(unsigned writers, nxl_client *(*connect)(void))
{
    struct member members[READERS + 2];
    unsigned count = READERS + writers;
    crowd.readers = crowd.writers = crowd.worst = 0;
    crowd.grants[0] = crowd.grants[1] = 0;
    crowd.longest_ms[0] = crowd.longest_ms[1] = 0;
    crowd.stop = false;
    for (unsigned i = 0; i < count; i++) {
        struct member *m = &members[i];
        m->writes = i >= READERS;
        m->client = connect();
        m->lock = m->writes ? new_lock(m->client, "job", TTL_MS)
                            : reader_of(m->client);
        assert_int_equal(pthread_create(&m->thread, NULL, take_turns, m), 0);
    }
    int64_t began = test_now_ms(), limit = began + 60000;
    while ((crowd.grants[0] < ENOUGH * READERS || crowd.grants[1] < ENOUGH) &&
           test_now_ms() < limit)
        usleep(10000);
    int64_t took = test_now_ms() - began;
    crowd.stop = true;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(members[i].thread, NULL);
        end(members[i].lock, members[i].client);
    }
    print_message("in %lld ms %d grants to readers, %d to writers; the longest "
                  "waits: %lld and %lld ms\n",
        (long long)took, crowd.grants[0], crowd.grants[1],
        (long long)crowd.longest_ms[0], (long long)crowd.longest_ms[1]);
    assert_int_equal(crowd.worst, 0);
    assert_true(crowd.grants[0] >= ENOUGH * READERS);
    assert_true(crowd.grants[1] >= ENOUGH);
    assert_eventually(keys_at(on.servers, "job") == 0);
}

static nxl_client *over_a_slow_network(void)
{
    return proxied_client(3, TERMS);
}

static void slow_network(void)
{
    for (size_t i = 0; i < 3; i++) {
        proxies[i] = proxy_to(&servers[i], false);
        proxy_delay(proxies[i], PROXY_DOWN, 1);
    }
}

static void a_writer_beside_readers(void **state)
{
    slow_network();
    run_crowd(1, over_a_slow_network);
}

static void two_writers_beside_readers(void **state)
{
    slow_network();
    run_crowd(2, over_a_slow_network);
}

static nxl_client *that_polls(void)
{
    return quorum_client(1, "poll=1");
}

static void without_a_line(void **state)
{
    size_t servers_before = on.servers;
    on.servers = 1;
    run_crowd(1, that_polls);
    on.servers = servers_before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(together_or_alone),
        quorum_test(a_minority_is_down),
        quorum_test(a_majority_forgets),
        quorum_test(adopted_and_inspected),
        quorum_test(a_lost_answer_is_undone),
        quorum_test(a_writer_beside_readers),
        quorum_test(two_writers_beside_readers),
        quorum_test(without_a_line),
    };
    return cmocka_run_group_tests_name(
        "quorum_shared", tests, on_three, quorum_stop);
}
