/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn, once or for good, while a handle
 * of several names is made, acquired and adopted, over one server and three:
 * all names are granted or none, and nothing is left behind by mistake.
 */
#include "live/memory_rig.h"

#include "support/alloc.h"

enum { NAMES = 3 };
static const char *const names[NAMES] = {"l", "k", "j"};

static nxl_lock *three_names(nxl_client *client)
{
    nxl_lock *lock;
    assert_int_equal(nxl_lock_new_many(&lock, client, names, NULL, NAMES,
                         &OPTIONS(.ttl_ms = LEASE_MS)),
        NXL_OK);
    return lock;
}

static void assert_all(int rc, const nxl_lock *lock)
{
    assert_int_equal(nxl_lock_held(lock), rc == NXL_OK);
    for (size_t i = 0; rc == NXL_OK && i < NAMES; i++)
        assert_true(standing(on.servers, names[i], lock) >= majority());
}

static size_t keys_left(void)
{
    size_t count = 0;
    for (size_t i = 0; i < NAMES; i++)
        count += keys_at(on.servers, names[i]);
    return count;
}

static void assert_all_works(nxl_lock *lock, nxl_client *client)
{
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_all(NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually((connect_most(client), keys_left() == 0));
}

static void making_it(void **state)
{
    nxl_client *client = usual_client();
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = (nxl_lock *)client;
        fail_at(n);
        int rc = nxl_lock_new_many(&lock, client, names, NULL, NAMES,
            &OPTIONS(.ttl_ms = LEASE_MS, .renew = 1));
        fail_no_more();
        if (failed) {
            assert_null(lock);
            assert_int_equal(rc, NXL_E_NOMEM);
            assert_contains(nxl_client_errmsg(client), "memory");
            continue;
        }
        assert_int_equal(rc, NXL_OK);
        assert_true(n > 4 * 3);
        assert_all_works(lock, client);
        nxl_lock_free(lock);
    }
    nxl_client_free(client);
}

/* On connections that are new, or good. */
static void the_first_acquire(void **state)
{
    const bool *connected = *state;
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = three_names(client);
        if (*connected)
            connect_all(client);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        fail_no_more();
        assert_all(rc, lock);
        assert_true(failed || rc == NXL_OK);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        else
            assert_failed(rc, lock);
        assert_all_works(lock, client);
        end(lock, client);
    }
}

/* The second name is taken, so it is waited for. */
static void one_is_waited_for(void **state)
{
    for (unsigned n = first_place(); failed; n++) {
        nxl_client *client = usual_client();
        nxl_lock *lock = three_names(client);
        connect_all(client);
        for (size_t i = 0; i < on.servers; i++)
            redis_run(&servers[i], "SET", "k", "somebody", "PX", "30", NULL);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 20000);
        fail_no_more();
        assert_all(rc, lock);
        assert_true(failed || rc == NXL_OK);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        else if (rc != NXL_UNKNOWN)
            assert_failed(rc, lock);
        assert_all_works(lock, client);
        end(lock, client);
    }
}

static void adopting(void **state)
{
    nxl_client *client = usual_client();
    nxl_lock *held = three_names(client);
    connect_all(client); /* a grant by two would leave the third without it */
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    assert_eventually(keys_left() == NAMES * on.servers);
    for (unsigned n = first_place(); failed; n++) {
        nxl_lock *lock = three_names(client);
        fail_at(n);
        int rc = nxl_lock_adopt(lock, nxl_lock_token(held));
        fail_no_more();
        assert_true(failed || rc == NXL_OK);
        assert_all(rc, lock);
        if (rc == NXL_OK) {
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
            assert_result(nxl_lock_release(held), NXL_LOST, held);
            assert_result(nxl_lock_acquire(held, 5000), NXL_OK, held);
            assert_eventually(keys_left() == NAMES * on.servers);
        } else {
            assert_failed(rc, lock);
            assert_int_equal(keys_left(), NAMES * on.servers);
        }
        nxl_lock_free(lock);
    }
    nxl_lock_free(held);
    nxl_client_free(client);
}

static void cycles_take_none(void **state)
{
    nxl_client *client = usual_client();
    nxl_lock *lock = three_names(client);
    connect_all(client);
    for (int i = 0; i < 50; i++) {
        unsigned long before = alloc_count();
        assert_int_equal(nxl_lock_acquire(lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_extend(lock, 0), NXL_OK);
        assert_int_equal(nxl_lock_release(lock), NXL_OK);
        if (i > 0)
            assert_int_equal(alloc_count(), before);
    }
    end(lock, client);
}

#define acquire_test(words, connected)                                         \
    memory_scene(the_first_acquire, "the first acquire" words " (once)",       \
        .row = &(const bool){connected}),                                      \
        memory_scene(the_first_acquire,                                        \
            "the first acquire" words " (for good)", .for_good = true,         \
            .row = &(const bool){connected})

int main(void)
{
    const struct CMUnitTest each[] = {
        memory_test(making_it),
        acquire_test("", false),
        acquire_test(", connected", true),
        memory_test(one_is_waited_for),
        memory_test(adopting),
    };
    const struct CMUnitTest one[] = {
        memory_once(cycles_take_none),
    };
    return on_each_run("several names without memory", each) +
           on_run(one_unix, "several names (one server, alone)", one);
}
