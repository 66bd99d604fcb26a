/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn while a lock of one server or
 * three is held, looked at and let go: a call that fails changes nothing of
 * what is held, or lets it go for certain, and one failure costs one of three
 * servers at most.
 */
#include "live/memory_rig.h"

#include "live/loop_rig.h"

#include "support/alloc.h"

enum { KEPT_MS = 900 };

static size_t prolonged(int64_t beyond_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < on.servers; i++)
        count += redis_pttl(&servers[i], "k") > beyond_ms;
    return count;
}

static void extending_by_another_time(void **state)
{
    nxl_client *client = usual_client();
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = plain_lock(client);
        connect_all(client);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        uint64_t deadline = nxl_lock_deadline(lock);
        fail_at(n);
        int rc = nxl_lock_extend(lock, 50000);
        fail_no_more();
        assert_true(nxl_lock_held(lock));
        if (rc == NXL_OK) {
            assert_true(prolonged(LEASE_MS) >= majority());
            assert_true(nxl_lock_deadline(lock) > deadline);
        } else {
            assert_failed(rc, lock);
            assert_true(may_fail());
            assert_true(nxl_lock_deadline(lock) == deadline);
        }
        assert_result(nxl_lock_extend(lock, 55000), NXL_OK, lock);
        assert_true(prolonged(50000) >= majority());
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_works(lock, client);
        nxl_lock_free(lock);
        assert_true(failed || rc == NXL_OK);
    }
    nxl_client_free(client);
}

/* By a handle that has not released before. */
static void releasing(void **state)
{
    nxl_client *client = usual_client();
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = plain_lock(client);
        connect_all(client);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_lock_release(lock);
        fail_no_more();
        assert_false(nxl_lock_held(lock));
        if (rc == NXL_OK)
            assert_true(standing(on.servers, "k", lock) < majority());
        else
            assert_failed(rc, lock);
        assert_true(rc == NXL_OK || may_fail());
        assert_works(lock, client);
        nxl_lock_free(lock);
        assert_true(failed || rc == NXL_OK);
    }
    nxl_client_free(client);
}

/* Adopting changes nothing at a server, and what failed does not let go. */
static void adopting(void **state)
{
    nxl_client *client = usual_client();
    nxl_lock *owner = plain_lock(client);
    connect_all(client);
    for (unsigned n = first_place(); failed; n++) {
        assert_result(nxl_lock_acquire(owner, 5000), NXL_OK, owner);
        assert_eventually(standing(on.servers, "k", owner) == on.servers);
        nxl_client *other = usual_client();
        nxl_lock *heir = plain_lock(other);
        fail_at(n);
        int rc = nxl_lock_adopt(heir, nxl_lock_token(owner));
        fail_no_more();
        assert_true(nxl_lock_held(heir) == (rc == NXL_OK));
        if (rc != NXL_OK) {
            if (rc != NXL_E_NOMEM) /* it was refused, nothing was sent */
                assert_true(may_fail());
            assert_failed(rc, heir);
            nxl_lock_free(heir);
            heir = plain_lock(other);
            assert_result(
                nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
        }
        assert_int_equal(standing(on.servers, "k", owner), on.servers);
        assert_result(nxl_lock_release(heir), NXL_OK, heir);
        assert_result(nxl_lock_release(owner), NXL_LOST, owner);
        assert_works(heir, other);
        end(heir, other);
        assert_true(failed || rc == NXL_OK);
    }
    end(owner, client);
}

/* ------------------------------------------------------------------ asking */

/* Each server's part: what stands there, or why it did not tell. One whose
 * answer a majority did not wait for is neither. */
static size_t assert_told_of_each(const nxl_lock *lock)
{
    size_t told = 0, late = 0;
    for (size_t i = 0; i < on.servers; i++) {
        nxl_holder holder = NXL_HOLDER_INIT;
        int rc = nxl_lock_holder_at(lock, i, 0, &holder);
        const char *why = nxl_lock_errmsg_at(lock, i);
        if (rc == NXL_OK) {
            assert_string_equal(holder.value, "somebody");
            told++;
        } else if (strstr(why, "no answer to the first commands")) {
            late++;
        } else {
            assert_out_of_memory(rc, why);
        }
    }
    assert_true(late == 0 || told >= majority());
    return told;
}

static void inspecting(void **state)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "SET", "k", "somebody", NULL);
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        nxl_holder holder = NXL_HOLDER_INIT;
        fail_at(n);
        int rc = nxl_lock_inspect(lock, &holder);
        fail_no_more();
        size_t told = assert_told_of_each(lock);
        if (rc == NXL_OK) {
            assert_string_equal(holder.value, "somebody");
            assert_true(told >= (for_good ? 1 : majority()));
        } else { /* one that tells is enough: it cannot be called free */
            assert_int_equal(told, 0);
            assert_true(may_fail());
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        }
        assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
        assert_string_equal(holder.value, "somebody");
        end(lock, client);
        assert_true(failed || rc == NXL_OK);
    }
}

/* What was seen is removed, or may be removed again. */
static void breaking(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        nxl_holder seen = NXL_HOLDER_INIT;
        for (size_t i = 0; i < on.servers; i++)
            redis_run(&servers[i], "SET", "k", "somebody", NULL);
        assert_result(nxl_lock_inspect(lock, &seen), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_lock_break(lock, &seen);
        fail_no_more();
        if (rc == NXL_OK)
            assert_true(keys_at(on.servers, "k") < majority());
        else
            assert_failed(rc, lock);
        if (rc != NXL_E_NOMEM) /* it was refused, nothing was sent */
            assert_true(rc == NXL_OK || may_fail());
        rc = nxl_lock_break(lock, &seen);
        assert_true(rc == NXL_OK || rc == NXL_FREE);
        assert_eventually(keys_at(on.servers, "k") == 0);
        end(lock, client);
    }
}

/* ---------------------------------------------------------------- the ends */

/* Held handles are freed without any memory: their keys go by what was set
 * aside for that, or by their ttl. */
static void freeing(void **state)
{
    int timeout_ms = on.servers > 1 ? 1000 : 100;
    int short_ms = on.servers > 1 ? 1000 : 300;
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = client_within(timeout_ms);
        int64_t ttl_ms = for_good ? short_ms : LEASE_MS;
        nxl_lock *lock =
            n % 2 ? new_lock(client, "k", ttl_ms) : kept_for(client, ttl_ms);
        connect_all(client);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        int64_t began = test_now_ms();
        fail_at(n);
        nxl_lock_free(lock);
        nxl_client_free(client);
        fail_no_more();
        assert_between(test_now_ms() - began, 0, timeout_ms + LATE_MS);
        assert_eventually(keys_at(on.servers, "k") == 0);
    }
}

/* Likewise a lock that was adopted. */
static void freeing_what_was_adopted(void **state)
{
    nxl_client *client = usual_client();
    connect_all(client); /* a grant by two would leave the third without it */
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *owner = plain_lock(client);
        assert_result(nxl_lock_acquire(owner, 5000), NXL_OK, owner);
        assert_eventually(standing(on.servers, "k", owner) == on.servers);
        nxl_client *other = usual_client();
        nxl_lock *heir = plain_lock(other);
        connect_all(other);
        assert_result(
            nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_OK, heir);
        fail_at(n);
        nxl_lock_free(heir);
        nxl_client_free(other);
        fail_no_more();
        assert_eventually(keys_at(on.servers, "k") == 0);
        nxl_lock_free(owner);
    }
    nxl_client_free(client);
}

/* A renewal that failed is tried again, and no lease was lost for it. */
static void renewing(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = kept_for(client, KEPT_MS);
        loop_reset(false);
        assert_result(nxl_lock_acquire_start(lock, 5000), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
        fail_at(n);
        loop_until_true(client,
            stats_of(client).renewals + stats_of(client).renewal_failures > 0);
        fail_no_more();
        loop_until_true(client, stats_of(client).renewals > 0);
        assert_true(nxl_lock_held(lock));
        assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
        assert_true(standing(on.servers, "k", lock) >= majority());
        assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
        end(lock, client);
        assert_int_equal(keys_at(on.servers, "k"), 0);
    }
}

/* The loop goes on; what could not be sent comes with an event. */
static void looping(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = client_within(200);
        nxl_lock *lock = plain_lock(client);
        loop_reset(n % 2);
        assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
        fail_at(n);
        loop_until(client, 1);
        fail_no_more();
        int rc = loop.event[0].result;
        if (rc == NXL_OK) {
            assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
            assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
        } else {
            assert_failed(rc, lock);
        }
        assert_result(nxl_lock_acquire_start(lock, 1000), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
        end(lock, client);
        assert_eventually(keys_at(on.servers, "k") == 0);
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
        memory_once(freeing_what_was_adopted),
        memory_test(renewing),
        memory_test(looping),
    };
    return on_each_run("no memory while a lock is held", tests);
}
