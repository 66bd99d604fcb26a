/* SPDX-License-Identifier: MIT */
/*
 * What acts on a token that may be another process's by now, as far as no scene
 * of live/scenes/handed_over.scenes can show it: an adoption without a thread
 * to renew the lock, and bytes that wait for room in a socket.
 *
 * Invariant: whoever adopted a lock keeps it from the former owner's deadline
 * on.
 */
#include "api_rig.h"
#include "renew_rig.h"

#include <errno.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*start)(void *), void *arg);

enum {
    SHORT_MS = 600,
    LONG_MS = 20000,
    BIG_NAME = 60000,
    BIG_NAMES = 12,
    BIG_NAMES_TLS = 120
};

static bool no_threads;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*start)(void *), void *arg)
{
    return no_threads ? EAGAIN
                      : __real_pthread_create(thread, attr, start, arg);
}

/* -------------------------------------------------- an adoption that fails */

static void an_adoption_without_a_thread_leaves_it_to_its_owner(void **state)
{
    nxl_client *client = new_client(""), *theirs = new_client("");
    nxl_lock *owner = new_lock(client, "k", LONG_MS);
    nxl_lock *heir = kept_lock(theirs, "k", NULL);
    assert_result(nxl_lock_acquire(owner, 0), NXL_OK, owner);
    no_threads = true;
    assert_result(
        nxl_lock_adopt(heir, nxl_lock_token(owner)), NXL_E_SYSTEM, heir);
    no_threads = false;
    assert_contains(nxl_lock_errmsg(heir), "not adopted");
    assert_false(nxl_lock_held(heir));
    end(heir, theirs);
    assert_left_to(owner);
    nxl_client_free(client);
}

/* ----------------------------------------------------------- an event loop */

static int await_event(nxl_client *client, const nxl_lock *lock)
{
    nxl_event event;
    do
        event = next_event(client);
    while (event.lock != lock);
    return event.result;
}

static nxl_lock *acquired_in_a_loop(nxl_client *client, int64_t ttl_ms)
{
    nxl_lock *lock = new_lock(client, "k", ttl_ms);
    assert_int_equal(nxl_lock_acquire_start(lock, 2000), NXL_PENDING);
    assert_int_equal(await_event(client, lock), NXL_OK);
    return lock;
}

/* Of a TCP connection, which is what TLS has, both ends take more. */
static size_t big_names(void)
{
    return live_tls() ? BIG_NAMES_TLS : BIG_NAMES;
}

/* So many bytes that the socket of a server that stands still takes no more. */
static void fill_the_socket(nxl_client *client, nxl_lock **locks)
{
    static char name[BIG_NAME];
    for (size_t i = 0; i < big_names(); i++) {
        memset(name, 'a' + (int)i, sizeof(name));
        locks[i] = lock_with(client, name, .name_length = sizeof(name));
        assert_int_equal(nxl_lock_acquire_start(locks[i], 0), NXL_PENDING);
    }
    turn(client, 0);
}

static void bytes_that_wait_for_room_do_not_leave_late(void **state)
{
    nxl_client *theirs = new_client("");
    for (int frees = 0; frees < 2; frees++) {
        nxl_client *client = client_at(server.unix_url);
        nxl_lock *big[BIG_NAMES_TLS];
        nxl_lock *owner = acquired_in_a_loop(client, 2 * SHORT_MS);
        nxl_lock *heir = adopt_from(owner, theirs, LONG_MS);
        uint64_t deadline = nxl_lock_deadline(owner);
        redis_freeze(&server);
        fill_the_socket(client, big);
        if (frees)
            nxl_lock_free(owner);
        else
            assert_int_equal(nxl_lock_release_start(owner), NXL_PENDING);
        turn(client, 0);
        assert_eventually(nxl_now_ns() >= deadline);
        redis_thaw(&server);
        if (!frees)
            assert_int_equal(await_event(client, owner), NXL_LOST);
        nxl_lock *last = new_lock(client, "last", LONG_MS);
        assert_int_equal(nxl_lock_acquire_start(last, 5000), NXL_PENDING);
        assert_int_equal(await_event(client, last), NXL_OK);
        nxl_lock_free(last); /* all that was before it has left */
        for (size_t i = 0; i < big_names(); i++)
            nxl_lock_free(big[i]);
        if (!frees)
            nxl_lock_free(owner);
        nxl_client_free(client);
        assert_left_to(heir);
    }
    nxl_client_free(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(an_adoption_without_a_thread_leaves_it_to_its_owner),
        live_test(bytes_that_wait_for_room_do_not_leave_late),
    };
    return live_run_long("expired token");
}
