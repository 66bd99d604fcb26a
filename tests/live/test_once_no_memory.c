/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn, once or for good, while work is
 * begun, told of, forgotten and adopted: each call ends with a clean error or
 * manages without, a begin that fails leaves nothing in progress, and a verdict
 * that fails can be said again.
 */
#define QUORUM_MAX 3
#include "live/memory_rig.h"

#include "support/alloc.h"

#define RESULT "a receipt of some length, so that it takes memory of its own"

static void assert_refused(int rc, const nxl_lock *lock)
{
    if (rc == NXL_UNKNOWN)
        assert_contains(nxl_lock_errmsg(lock), "emory");
    else
        assert_out_of_memory(rc, nxl_lock_errmsg(lock));
}

static void fresh(void)
{
    quorum_clean(NULL);
}

/* What was begun and not granted is taken back. */
static void beginning(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        fresh();
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        nxl_once_options work = NXL_ONCE_OPTIONS_INIT;
        work.fingerprint = "100EUR";
        fail_at(n);
        int rc = nxl_once_begin(lock, &work, 0);
        fail_no_more();
        assert_true(failed || rc == NXL_OK);
        assert_true(nxl_lock_held(lock) == (rc == NXL_OK));
        if (rc != NXL_OK) {
            assert_refused(rc, lock);
            assert_result(nxl_once_begin(lock, &work, 5000), NXL_OK, lock);
        }
        assert_result(
            nxl_once_tell(lock, NXL_ONCE_DONE, 0, RESULT, sizeof(RESULT)),
            NXL_OK, lock);
        assert_result(nxl_once_begin(lock, &work, 0), NXL_DONE, lock);
        end(lock, client);
    }
}

static void assert_receipt(const nxl_lock *lock)
{
    nxl_record r = NXL_RECORD_INIT;
    assert_int_equal(nxl_once_record(lock, &r), NXL_OK);
    assert_int_equal(r.state, NXL_ONCE_DONE);
    assert_int_equal(r.result_length, sizeof(RESULT));
    assert_memory_equal(r.result, RESULT, sizeof(RESULT));
}

static void telling(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        fresh();
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_once_tell(lock, NXL_ONCE_DONE, 3, RESULT, sizeof(RESULT));
        fail_no_more();
        assert_true(failed || rc == NXL_OK);
        if (rc != NXL_OK) {
            assert_refused(rc, lock);
            assert_result(
                nxl_once_tell(lock, NXL_ONCE_DONE, 3, RESULT, sizeof(RESULT)),
                NXL_OK, lock);
        }
        assert_false(nxl_lock_held(lock));
        assert_eventually(keys_at(1, "k") == 0);
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_DONE, lock);
        assert_receipt(lock);
        end(lock, client);
    }
}

/* A result without memory for it is no result; looking again has it. */
static void finding(void **state)
{
    nxl_client *client = usual_client();
    nxl_lock *lock = plain_lock(client);
    fresh();
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
    assert_result(nxl_once_tell(lock, NXL_ONCE_DONE, 3, RESULT, sizeof(RESULT)),
        NXL_OK, lock);
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *other = usual_client();
        nxl_lock *late = plain_lock(other);
        fail_at(n);
        int rc = nxl_once_begin(late, NULL, 0);
        fail_no_more();
        if (rc == NXL_DONE) {
            assert_receipt(late);
        } else {
            assert_refused(rc, late);
            assert_true(failed);
            assert_result(nxl_once_begin(late, NULL, 0), NXL_DONE, late);
            assert_receipt(late);
        }
        assert_false(nxl_lock_held(late));
        end(late, other);
    }
    end(lock, client);
}

static void forgetting(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        fresh();
        nxl_client *client = usual_client();
        nxl_lock *lock = plain_lock(client);
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
        assert_result(
            nxl_once_tell(lock, NXL_ONCE_DONE, 3, NULL, 0), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_once_forget(lock);
        fail_no_more();
        if (rc != NXL_OK) {
            assert_refused(rc, lock);
            assert_true(failed);
            rc = nxl_once_forget(lock);
            assert_true(rc == NXL_OK || rc == NXL_FREE);
        }
        nxl_once_options look = NXL_ONCE_OPTIONS_INIT;
        look.mode = NXL_ONCE_LOOK;
        assert_result(nxl_once_begin(lock, &look, 0), NXL_FREE, lock);
        end(lock, client);
    }
}

/* In doubt at once, or, if not even that can be sent, with the lease. */
static void freeing_what_was_begun(void **state)
{
    nxl_client *other = usual_client();
    nxl_lock *late = plain_lock(other);
    for (unsigned n = first_place(); failed; n++) {
        fresh();
        nxl_client *client = usual_client();
        nxl_lock *lock = new_lock(client, "k", for_good ? 300 : LEASE_MS);
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
        fail_at(n);
        nxl_lock_free(lock);
        nxl_client_free(client);
        fail_no_more();
        assert_eventually(keys_at(1, "k") == 0);
        assert_result(nxl_once_begin(late, NULL, 0), NXL_DOUBT, late);
    }
    end(late, other);
}

/* Who adopts has to be able to tell. */
static void adopting_what_was_begun(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        fresh();
        nxl_client *client = usual_client(), *other = usual_client();
        nxl_lock *lock = plain_lock(client), *heir = plain_lock(other);
        assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
        fail_at(n);
        int rc = nxl_lock_adopt(heir, nxl_lock_token(lock));
        fail_no_more();
        assert_true(failed || rc == NXL_OK);
        if (rc != NXL_OK) {
            assert_refused(rc, heir);
            assert_result(
                nxl_lock_adopt(heir, nxl_lock_token(lock)), NXL_OK, heir);
        }
        assert_result(
            nxl_once_tell(heir, NXL_ONCE_DONE, 0, NULL, 0), NXL_OK, heir);
        end(heir, other);
        end(lock, client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        memory_test(beginning),
        memory_test(telling),
        memory_test(finding),
        memory_test(forgetting),
        memory_test(freeing_what_was_begun),
        memory_test(adopting_what_was_begun),
    };
    return on_run(one_unix, "no memory for work that is done once", tests);
}
