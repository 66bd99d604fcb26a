/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at every place in turn, once or for good: each call
 * ends in time with a clean error or manages without, nothing is held or left
 * behind by mistake, and afterwards the same handle works.
 */
#include "loop_rig.h"
#include "memory_rig.h"

#include "support/alloc.h"

#define memory_test(f) memory_scene(f, live_clean, NULL)

/* Afterwards the same handle works, and nothing is in its way. */
static void assert_works(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 1000), NXL_OK, lock);
    assert_value("name", nxl_lock_token(lock));
    assert_true(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_false(redis_exists(&server, "name"));
}

static void making_a_client(void **state)
{
    (void)state;
    makes_a_client_or_none(
        "redis://user:secret@some.host:7000/3?prefix=x%20y&timeout_ms=50",
        3);
}

static void making_a_lock(void **state)
{
    (void)state;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.label = "label";
    nxl_client *client = new_client("");
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = (nxl_lock *)client;
        fail_at(n);
        int rc = nxl_lock_new(&lock, client, "name", &options);
        if (!alloc_stop()) {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > 3);
            assert_works(lock);
            end(lock, client);
            return;
        }
        assert_null(lock);
        assert_int_equal(rc, NXL_E_NOMEM);
        assert_contains(nxl_client_errmsg(client), "memory");
    }
}

static void the_first_acquire(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = new_client("timeout_ms=500");
        nxl_lock *lock = new_lock(client, "name", 30000);
        int64_t began = test_now_ms();
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        bool failed = alloc_stop();
        assert_between(test_now_ms() - began, 0, 500 + LATE_MS);
        assert_true(nxl_lock_held(lock) == (rc == NXL_OK));
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        else
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        assert_works(lock);
        end(lock, client);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > 3);
            return;
        }
    }
}

/* Each cycle from the first on takes what it needs and keeps it. */
static void cycles_take_none(void **state)
{
    (void)state;
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "name", 30000);
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

/* With a nested answer, on a connection that is new or good. */
static void a_question(void **state)
{
    (void)state;
    static const char *const words[] = {"SCAN", "0"};
    redis_run(&server, "SET", "key", "value", NULL);
    for (unsigned n = 1;; n++) {
        nxl_client *client = new_client("timeout_ms=500");
        nxl_answer *answer = NULL, *again = NULL;
        fail_at(n);
        int rc = nxl_client_ask(client, 0, 2, words, NULL, &answer);
        bool failed = alloc_stop();
        assert_true((answer != NULL) == (rc == NXL_OK));
        if (rc != NXL_OK)
            assert_out_of_memory(rc, nxl_client_errmsg(client));
        assert_int_equal(
            nxl_client_ask(client, 0, 2, words, NULL, &again), NXL_OK);
        assert_int_equal(nxl_answer_count(again), 2);
        assert_string_equal(nxl_answer_item(again, 1, NULL), "key");
        nxl_answer_free(answer);
        nxl_answer_free(again);
        nxl_client_free(client);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            assert_true(n > 5);
            return;
        }
    }
}

/* On a connection that is good, with a handle that has never been used. */
static void a_cycle(void **state)
{
    (void)state;
    nxl_client *client = new_client("timeout_ms=500");
    nxl_lock *warm = new_lock(client, "warm", 30000);
    assert_result(nxl_lock_acquire(warm, 0), NXL_OK, warm);
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = new_lock(client, "name", 30000);
        fail_at(n);
        int rc = nxl_lock_acquire(lock, 0);
        int released = rc == NXL_OK ? nxl_lock_release(lock) : NXL_OK;
        bool failed = alloc_stop();
        assert_false(nxl_lock_held(lock));
        if (rc != NXL_OK)
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        if (released != NXL_OK)
            assert_out_of_memory(released, nxl_lock_errmsg(lock));
        assert_works(lock); /* what was not released is owed */
        nxl_lock_free(lock);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            assert_int_equal(released, NXL_OK);
            assert_true(n > 2);
            break;
        }
    }
    end(warm, client);
}

static void running_into_debt(void **state)
{
    (void)state;
    unsigned in_a_row = 0; /* neither with nor without needed so many */
    nxl_client *client = new_client("timeout_ms=100");
    for (unsigned n = 1; in_a_row < 2; n++) {
        nxl_lock *lock = new_lock(client, "name", 30000);
        assert_works(lock);
        redis_freeze(&server);
        /* The first takes what was set aside when the lock was made. */
        if (n % 2)
            assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        int64_t began = test_now_ms();
        fail_at((n + 1) / 2);
        int rc = nxl_lock_acquire(lock, 0);
        bool failed = alloc_stop();
        assert_between(test_now_ms() - began, 0, 100 + LATE_MS);
        redis_thaw(&server);
        if (rc != NXL_UNKNOWN)
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        assert_works(lock);
        nxl_lock_free(lock);
        in_a_row = failed ? 0 : in_a_row + 1;
        if (!failed)
            assert_int_equal(rc, NXL_UNKNOWN);
    }
    nxl_client_free(client);
}

static void extending_by_another_time(void **state)
{
    (void)state;
    nxl_client *client = new_client("");
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = new_lock(client, "name", 30000);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        uint64_t deadline = nxl_lock_deadline(lock);
        fail_at(n);
        int rc = nxl_lock_extend(lock, 50000);
        bool failed = alloc_stop();
        assert_true(nxl_lock_held(lock));
        if (rc != NXL_OK) {
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
            assert_true(nxl_lock_deadline(lock) == deadline);
        }
        assert_result(nxl_lock_extend(lock, 55000), NXL_OK, lock);
        assert_true(nxl_lock_deadline(lock) > deadline);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        nxl_lock_free(lock);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            break;
        }
    }
    nxl_client_free(client);
}

static void inspecting(void **state)
{
    (void)state;
    nxl_holder holder = {.size = sizeof holder};
    nxl_client *client = new_client("");
    stranger_sets("name", "somebody", 0);
    for (unsigned n = 1;; n++) {
        nxl_lock *lock = new_lock(client, "name", 30000);
        fail_at(n);
        int rc = nxl_lock_inspect(lock, &holder);
        bool failed = alloc_stop();
        if (rc != NXL_OK)
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
        assert_string_equal(holder.value, "somebody");
        nxl_lock_free(lock);
        if (!failed) {
            assert_int_equal(rc, NXL_OK);
            break;
        }
    }
    nxl_client_free(client);
}

static void the_one_descriptor(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = new_client("");
        fail_at(n);
        int fd = nxl_client_fd(client);
        bool failed = alloc_stop();
        if (fd < 0)
            assert_contains(nxl_client_errmsg(client), "memory");
        assert_true(nxl_client_fd(client) >= 0);
        nxl_client_free(client);
        if (!failed) {
            assert_true(fd >= 0);
            return;
        }
    }
}

/* Held handles are freed without any memory: their keys go by what was set
 * aside for that, or by their ttl. */
static void freeing(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = new_client("timeout_ms=100");
        nxl_lock *lock = new_lock(client, "name", 300);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        int64_t began = test_now_ms();
        fail_at(n);
        nxl_lock_free(lock);
        nxl_client_free(client);
        bool failed = alloc_stop();
        assert_between(test_now_ms() - began, 0, 100 + LATE_MS);
        if (!failed)
            break;
        assert_eventually(!redis_exists(&server, "name"));
    }
    assert_false(redis_exists(&server, "name"));
}

/* The loop goes on; what could not be sent comes with an event. */
static void looping(void **state)
{
    (void)state;
    for (unsigned n = 1;; n++) {
        nxl_client *client = new_client("timeout_ms=200");
        nxl_lock *lock = new_lock(client, "name", 30000);
        memset(&loop, 0, sizeof loop);
        loop.by_fd = n % 2;
        assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
        fail_at(n);
        loop_until(client, 1);
        bool failed = alloc_stop();
        int rc = loop.event[0].result;
        if (rc == NXL_OK) {
            assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
            assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
        } else {
            assert_out_of_memory(rc, nxl_lock_errmsg(lock));
        }
        assert_result(nxl_lock_acquire_start(lock, 1000), NXL_PENDING, lock);
        assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
        end(lock, client);
        assert_false(redis_exists(&server, "name"));
        if (!failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        memory_test(making_a_client),
        memory_test(making_a_lock),
        memory_test(the_first_acquire),
        memory_once(cycles_take_none, "cycles_take_none", live_clean, NULL),
        memory_test(a_question), memory_test(a_cycle),
        memory_test(running_into_debt),
        memory_test(extending_by_another_time),
        memory_test(inspecting),
        memory_test(the_one_descriptor),
        memory_test(freeing),
        memory_test(looping),
    };
    return live_run("no_memory");
}
