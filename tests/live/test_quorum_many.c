/* SPDX-License-Identifier: MIT */
/*
 * Many contenders for one name: threads with a client each or with one for all,
 * writers alone or beside readers. Never do two hold it that exclude each
 * other, each kind is granted it, and nothing is left behind. Where there is no
 * line, a writer is granted the lock because readers are held back after it has
 * lost some rounds to them (wire/scripts/hold_back.lua). On a network that
 * answers late: test_quorum_late.c.
 */
#include "support/test.h"

#include <stdatomic.h>

#include "live/quorum_rig.h"

enum { THREADS = 10, ENOUGH = 30, HOLD_US = 5000, TTL_MS = 20000 };

struct crowd {
    size_t servers;
    unsigned readers, writers;
    const char *parameters;
    bool one_client, slow;
};

static struct {
    atomic_int readers, writers, grants[2]; /* of readers, of writers */
    atomic_int wrong;
    atomic_bool stop;
    unsigned long counter; /* guarded by the lock alone */
} now;

struct member {
    pthread_t thread;
    nxl_client *client;
    nxl_lock *lock;
    bool writes;
};

/* Alone, or among readers alone. */
static void hold(const struct member *m)
{
    atomic_int *mine = m->writes ? &now.writers : &now.readers;
    ++*mine;
    int writers = now.writers, readers = now.readers;
    now.wrong += writers > 1 || (writers && readers);
    if (m->writes)
        now.counter++;
    now.grants[m->writes]++;
    usleep(HOLD_US);
    now.wrong += !nxl_lock_held(m->lock);
    --*mine;
}

static void *take_turns(void *argument)
{
    struct member *m = argument;
    while (!now.stop) {
        if (nxl_lock_acquire(m->lock, 30000) != NXL_OK)
            continue;
        hold(m);
        now.wrong += nxl_lock_release(m->lock) != NXL_OK;
        if (m->writes) /* without a line the last holder is the quickest */
            usleep(HOLD_US);
    }
    return NULL;
}

static nxl_client *client_of(const struct crowd *crowd)
{
    return crowd->slow ? proxied_client(crowd->servers, crowd->parameters)
                       : quorum_client(crowd->servers, crowd->parameters);
}

static void start(const struct crowd *crowd, struct member *members)
{
    nxl_client *shared = crowd->one_client ? client_of(crowd) : NULL;
    for (unsigned i = 0; i < crowd->readers + crowd->writers; i++) {
        struct member *m = &members[i];
        m->writes = i >= crowd->readers;
        m->client = shared ? shared : client_of(crowd);
        m->lock =
            lock_with(m->client, "job", .shared = !m->writes, .ttl_ms = TTL_MS);
        assert_int_equal(pthread_create(&m->thread, NULL, take_turns, m), 0);
    }
}

/* Until each kind has been granted the lock often enough, however slow the
 * machine is. */
static void each_kind_is_granted_it(void **state)
{
    const struct crowd *crowd = *state;
    struct member members[THREADS];
    unsigned count = crowd->readers + crowd->writers;
    memset(&now, 0, sizeof(now));
    for (size_t i = 0; crowd->slow && i < crowd->servers; i++) {
        proxies[i] = proxy_to(&servers[i], false);
        proxy_delay(proxies[i], PROXY_DOWN, 1);
    }
    start(crowd, members);
    int64_t limit = test_now_ms() + 60000;
    while ((now.grants[0] < ENOUGH * (int)crowd->readers ||
               now.grants[1] < ENOUGH * (int)crowd->writers) &&
           test_now_ms() < limit)
        test_pause_ms(10);
    now.stop = true;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(members[i].thread, NULL);
        nxl_lock_free(members[i].lock);
        if (!crowd->one_client || i + 1 == count)
            nxl_client_free(members[i].client);
    }
    print_message("# %d grants to readers, %d to writers\n", now.grants[0],
        now.grants[1]);
    assert_int_equal(now.wrong, 0);
    assert_int_equal(now.counter, now.grants[1]);
    assert_true(now.grants[0] >= ENOUGH * (int)crowd->readers);
    assert_true(now.grants[1] >= ENOUGH * (int)crowd->writers);
    assert_eventually(keys_at(crowd->servers, "job") == 0);
}

static struct crowd writers_of_one_client = {.servers = 5,
    .writers = 8,
    .parameters = NO_GUARD "&timeout_ms=20000",
    .one_client = true};
static struct crowd a_writer_beside_readers = {.servers = 3,
    .readers = 8,
    .writers = 1,
    .parameters = NO_GUARD "&timeout_ms=20000",
    .slow = true};
static struct crowd two_writers_beside_readers = {.servers = 3,
    .readers = 8,
    .writers = 2,
    .parameters = NO_GUARD "&timeout_ms=20000",
    .slow = true};
static struct crowd a_writer_without_a_line = {.servers = 1,
    .readers = 8,
    .writers = 1,
    .parameters = "poll=1&timeout_ms=20000"};

#define crowd_test(crowd)                                                      \
    {                                                                          \
#crowd, each_kind_is_granted_it, quorum_clean, quorum_mend, &crowd     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        crowd_test(writers_of_one_client),
        crowd_test(a_writer_beside_readers),
        crowd_test(two_writers_beside_readers),
        crowd_test(a_writer_without_a_line),
    };
    return quorum_run("quorum and many");
}
