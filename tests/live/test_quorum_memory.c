/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn while clients, locks and grants
 * of three servers are made: a grant is a majority's or none, what failed is
 * not left behind, and one failure costs one server at most.
 */
#include "live/fence_rig.h"
#include "live/quorum_memory_rig.h"

#include "support/alloc.h"

/* ------------------------------------------------------------------- making */

static void making_a_client(void **state)
{
    (void)state;
    makes_a_client_or_none(
        "redis://user:secret@one.host:7000/3?prefix=x%20y,"
        "redis://:secret@two.host?timeout_ms=50,unix:///three.sock",
        3 * SERVERS);
}

static void making_a_lock(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.label = "label";
    options.fence = options.renew = 1;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = (nxl_lock *)client;
        fail_at(n);
        int rc = nxl_lock_new(&lock, client, "k", &options);
        if (!alloc_stop()) {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > 2 * SERVERS);
            assert_works(lock, client);
            end(lock, client);
            return;
        }
        assert_null(lock);
        assert_int_equal(rc, NXL_E_NOMEM);
        assert_contains(nxl_client_errmsg(client), "memory");
    }
}

/* ---------------------------------------------------------------- acquiring */

static nxl_lock *own_fenced_lock(nxl_client *client)
{
    return fenced_lock(client, LEASE_MS);
}

static nxl_lock *own_kept_lock(nxl_client *client)
{
    return kept_for(client, LEASE_MS);
}

/* The numbers of grants grow, and a majority has the last; without a grant
 * there is none. */
static void assert_fence(int rc, const nxl_lock *lock)
{
    static uint64_t last;
    size_t have = 0;
    uint64_t fence = nxl_lock_fence(lock);
    if (rc != NXL_OK) {
        assert_int_equal(fence, 0);
        return;
    }
    assert_true(fence > last);
    for (size_t i = 0; i < SERVERS; i++)
        have += counter_at(i) >= fence;
    assert_true(have >= MAJORITY);
    last = fence;
}

struct way {
    nxl_lock *(*make)(nxl_client *);
    bool fenced;
    bool one_away; /* then the two others have to grant */
    int64_t wait_ms; /* one failure is waited out */
};

static nxl_client *client_for(const struct way *way)
{
    if (!way->one_away)
        return quorum_client(SERVERS, TERMS);
    nxl_client *client = proxied_client(SERVERS, TERMS);
    proxy_refuse(proxies[0], true);
    return client;
}

/* On connections that have to be made. One failure leaves two servers: enough,
 * but where a third is away, or connects too late to be raised. */
static void acquiring(const struct way *way)
{
    bool plain = !way->fenced && !way->one_away;
    int64_t most_ms = (way->wait_ms ? way->wait_ms : 1000) + LATE_MS;
    for (unsigned n = 1;; n++) {
        nxl_client *client = client_for(way);
        nxl_lock *lock = way->make(client);
        int64_t began = test_now_ms();
        fail_at(n);
        int rc = nxl_lock_acquire(lock, way->wait_ms);
        bool failed = alloc_stop();
        assert_between(test_now_ms() - began, 0, most_ms);
        assert_granted_or_not(rc, lock);
        if (way->fenced)
            assert_fence(rc, lock);
        if (!for_good && (plain || way->wait_ms))
            assert_result(rc, NXL_OK, lock);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_works(lock, client);
        end(lock, client);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > 3 * MAJORITY);
            return;
        }
    }
}

static void the_first_acquire(void **state)
{
    (void)state;
    acquiring(&(struct way){.make = plain_lock});
}

static void the_first_acquire_of_two_in_three(void **state)
{
    (void)state;
    acquiring(&(struct way){.make = plain_lock, .one_away = true});
}

static void the_first_wait_for_two_in_three(void **state)
{
    (void)state;
    acquiring(&(struct way){
        .make = plain_lock, .one_away = true, .wait_ms = 5000});
}

static void the_first_fenced_acquire(void **state)
{
    (void)state;
    acquiring(&(struct way){.make = own_fenced_lock, .fenced = true});
}

static void the_first_fenced_wait(void **state)
{
    (void)state;
    acquiring(&(struct way){
        .make = own_fenced_lock, .fenced = true, .wait_ms = 5000});
}

static void the_first_acquire_to_keep(void **state)
{
    (void)state;
    acquiring(&(struct way){.make = own_kept_lock});
}

/* On connections that are good, with counters that have to be raised. */
static void a_fence_that_is_raised(void **state)
{
    (void)state;
    static uint64_t ahead = FAR;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    for (unsigned n = 1;; n++, ahead += 10) {
        nxl_lock *lock = own_fenced_lock(client);
        connect_all(client);
        counter_is(n % SERVERS, ahead);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        bool failed = alloc_stop();
        assert_granted_or_not(rc, lock);
        assert_fence(rc, lock);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_works(lock, client);
        nxl_lock_free(lock);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            break;
        }
    }
    nxl_client_free(client);
}

/* Somebody has it at so many servers: in a minority he is in the way of one who
 * gets no memory for another. */
static void a_name_that_is_taken(size_t at)
{
    for (unsigned n = 1;; n++) {
        nxl_client *client = quorum_client(SERVERS, TERMS);
        nxl_lock *lock = plain_lock(client);
        for (size_t i = 0; i < at; i++)
            redis_run(&servers[i], "SET", "k", "somebody", NULL);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        bool failed = alloc_stop();
        assert_true(rc != NXL_OK || at < MAJORITY);
        if (rc == NXL_BUSY)
            assert_false(nxl_lock_held(lock));
        else
            assert_granted_or_not(rc, lock);
        end(lock, client);
        assert_int_equal(keys_at(SERVERS, "k"), at); /* theirs alone */
        if (!failed) {
            assert_int_equal(rc, at >= MAJORITY ? NXL_BUSY : NXL_OK);
            quorum_clean(NULL);
            return;
        }
    }
}

static void a_name_that_is_busy(void **state)
{
    (void)state;
    for (size_t at = 1; at <= SERVERS; at++)
        a_name_that_is_taken(at);
}

static void running_into_debt(void **state)
{
    (void)state;
    unsigned in_a_row = 0; /* neither with nor without needed so many */
    nxl_client *client = quorum_client(SERVERS, NO_GUARD "&timeout_ms=100");
    for (unsigned n = 1; in_a_row < 2; n++) {
        nxl_lock *lock = plain_lock(client);
        assert_works(lock, client);
        connect_all(client);
        redis_freeze(&servers[0]);
        redis_freeze(&servers[1]);
        /* The first takes what was set aside when the lock was made. */
        if (n % 2)
            assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        int64_t began = test_now_ms();
        fail_at((n + 1) / 2);
        int rc = nxl_lock_acquire(lock, 0);
        bool failed = alloc_stop();
        assert_between(test_now_ms() - began, 0, 100 + LATE_MS);
        assert_false(nxl_lock_held(lock));
        redis_thaw(&servers[0]);
        redis_thaw(&servers[1]);
        if (rc != NXL_UNKNOWN)
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        assert_works(lock, client);
        nxl_lock_free(lock);
        in_a_row = failed ? 0 : in_a_row + 1;
        if (!failed)
            assert_int_equal(rc, NXL_UNKNOWN);
    }
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        memory_test(making_a_client),
        memory_test(making_a_lock),
        memory_test(the_first_acquire),
        memory_test(the_first_acquire_of_two_in_three),
        memory_test_once(the_first_wait_for_two_in_three),
        memory_test(the_first_fenced_acquire),
        memory_test_once(the_first_fenced_wait),
        memory_test(the_first_acquire_to_keep),
        memory_test(a_fence_that_is_raised),
        memory_test(a_name_that_is_busy),
        memory_test(running_into_debt),
    };
    return quorum_run("memory that runs out over several servers");
}
