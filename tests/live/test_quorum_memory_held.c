/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn while a lock of three servers is
 * held, looked at and let go: a call that fails changes nothing of what is
 * held, or lets it go for certain, and one failure costs one server at most.
 */
#include "live/loop_rig.h"
#include "live/quorum_memory_rig.h"

#include "support/alloc.h"

enum { SHORT_MS = 1000, KEPT_MS = 900 };

static size_t prolonged(int64_t beyond_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < SERVERS; i++)
        count += redis_pttl(&servers[i], "k") > beyond_ms;
    return count;
}

static void extending_by_another_time(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = plain_lock(client);
        connect_all(client);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        uint64_t deadline = nxl_lock_deadline(lock);
        fail_at(n);
        int rc = nxl_lock_extend(lock, 50000);
        bool failed = alloc_stop();
        assert_true(nxl_lock_held(lock));
        if (rc == NXL_OK) {
            assert_true(prolonged(LEASE_MS) >= MAJORITY);
            assert_true(nxl_lock_deadline(lock) > deadline);
        } else {
            assert_failed(rc, lock);
            assert_true(for_good);
            assert_true(nxl_lock_deadline(lock) == deadline);
        }
        assert_result(nxl_lock_extend(lock, 55000), NXL_OK, lock);
        assert_true(prolonged(50000) >= MAJORITY);
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

/* By a handle that has not released before. */
static void releasing(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = plain_lock(client);
        connect_all(client);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_lock_release(lock);
        bool failed = alloc_stop();
        assert_false(nxl_lock_held(lock));
        if (rc == NXL_OK)
            assert_true(standing(SERVERS, "k", lock) < MAJORITY);
        else
            assert_failed(rc, lock);
        assert_true(rc == NXL_OK || for_good);
        assert_works(lock, client);
        nxl_lock_free(lock);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            break;
        }
    }
    nxl_client_free(client);
}

/* Adopting changes nothing at a server, and what failed does not let go. */
static void adopting(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock *owner = plain_lock(client);
    connect_all(client);
    for (unsigned n = 1;; n++) {
        assert_result(nxl_lock_acquire(owner, 5000), NXL_OK, owner);
        assert_eventually(standing(SERVERS, "k", owner) == SERVERS);
        nxl_client *other = quorum_client(SERVERS, TERMS);
        nxl_lock *heir = plain_lock(other);
        fail_at(n);
        int rc = nxl_lock_adopt(heir, nxl_lock_token(owner));
        bool failed = alloc_stop();
        assert_true(nxl_lock_held(heir) == (rc == NXL_OK));
        if (rc != NXL_OK) {
            assert_true(for_good);
            assert_failed(rc, heir);
            nxl_lock_free(heir);
            heir = plain_lock(other);
            assert_result(nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK,
                heir);
        }
        assert_int_equal(standing(SERVERS, "k", owner), SERVERS);
        assert_result(nxl_lock_release(heir), NXL_OK, heir);
        assert_result(nxl_lock_release(owner), NXL_LOST, owner);
        assert_works(heir, other);
        end(heir, other);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            break;
        }
    }
    end(owner, client);
}

/* ------------------------------------------------------------------ asking */

/* Each server's part: what stands there, or why it did not tell. */
static size_t assert_told_of_each(const nxl_lock *lock)
{
    size_t told = 0;
    for (size_t i = 0; i < SERVERS; i++) {
        nxl_holder holder = {.size = sizeof holder};
        int rc = nxl_lock_holder_at(lock, i, &holder);
        if (rc == NXL_OK) {
            assert_string_equal(holder.value, "somebody");
            told++;
        } else {
            assert_out_of_memory(rc, nxl_lock_errmsg_at(lock, i));
        }
    }
    return told;
}

static void inspecting(void **state)
{
    (void)state;
    for (size_t i = 0; i < SERVERS; i++)
        redis_run(&servers[i], "SET", "k", "somebody", NULL);
    for (unsigned n = 1;; n++) {
        nxl_client *client = quorum_client(SERVERS, TERMS);
        nxl_lock *lock = plain_lock(client);
        nxl_holder holder = {.size = sizeof holder};
        fail_at(n);
        int rc = nxl_lock_inspect(lock, &holder);
        bool failed = alloc_stop();
        size_t told = assert_told_of_each(lock);
        if (rc == NXL_OK) {
            assert_string_equal(holder.value, "somebody");
            assert_true(told >= (for_good ? 1 : MAJORITY));
        } else { /* one that tells is enough: it cannot be called free */
            assert_int_equal(told, 0);
            assert_true(for_good);
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        }
        assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
        assert_string_equal(holder.value, "somebody");
        end(lock, client);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            return;
        }
    }
}

/* What was seen is removed, or may be removed again. */
static void breaking(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = quorum_client(SERVERS, TERMS);
        nxl_lock *lock = plain_lock(client);
        nxl_holder seen = {.size = sizeof seen};
        for (size_t i = 0; i < SERVERS; i++)
            redis_run(&servers[i], "SET", "k", "somebody", NULL);
        assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_lock_break(lock, &seen);
        bool failed = alloc_stop();
        if (rc == NXL_OK)
            assert_true(keys_at(SERVERS, "k") < MAJORITY);
        else
            assert_failed(rc, lock);
        assert_true(rc == NXL_OK || for_good);
        rc = nxl_lock_break(lock, &seen);
        assert_true(rc == NXL_OK || rc == NXL_FREE);
        assert_eventually(keys_at(SERVERS, "k") == 0);
        end(lock, client);
        if (!failed)
            return;
    }
}

/* ---------------------------------------------------------------- the ends */

/* Held handles are freed without any memory: their keys go by what was set
 * aside for that, or by their ttl. */
static void freeing(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = quorum_client(SERVERS, TERMS);
        int64_t ttl_ms = for_good ? SHORT_MS : LEASE_MS;
        nxl_lock *lock = n % 2 ? new_lock(client, "k", ttl_ms)
                               : kept_for(client, ttl_ms);
        connect_all(client);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        int64_t began = test_now_ms();
        fail_at(n);
        nxl_lock_free(lock);
        nxl_client_free(client);
        bool failed = alloc_stop();
        assert_between(test_now_ms() - began, 0, 1000 + LATE_MS);
        assert_eventually(keys_at(SERVERS, "k") == 0);
        if (!failed)
            return;
    }
}

/* A renewal that failed is tried again, and no lease was lost for it. */
static void renewing(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = quorum_client(SERVERS, TERMS);
        nxl_lock *lock = kept_for(client, KEPT_MS);
        memset(&loop, 0, sizeof loop);
        assert_result(nxl_lock_acquire_start(lock, 5000), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
        fail_at(n);
        loop_until_true(client, stats_of(client).renewals +
                                        stats_of(client).renewal_failures >
                                    0);
        bool failed = alloc_stop();
        loop_until_true(client, stats_of(client).renewals > 0);
        assert_true(nxl_lock_held(lock));
        assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
        assert_true(standing(SERVERS, "k", lock) >= MAJORITY);
        assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
        end(lock, client);
        assert_int_equal(keys_at(SERVERS, "k"), 0);
        if (!failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        memory_test(extending_by_another_time),
        memory_test(releasing),
        memory_test(adopting),
        memory_test(inspecting),
        memory_test(breaking),
        memory_test(freeing),
        memory_test(renewing),
    };
    return quorum_run("memory that runs out while several servers hold");
}
