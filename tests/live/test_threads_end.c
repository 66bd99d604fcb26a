/* SPDX-License-Identifier: MIT */
/*
 * Threads that the program ends with pthread_cancel() while they are in a
 * call: the call goes on to its end, and nobody else is left asleep, or locked
 * out, for it.
 */
#include "live_rig.h"

#include <semaphore.h>
#include <stdatomic.h>

static struct waiter waiter[8];
static sem_t ready, go;
static atomic_bool returned;

static int set_up(void **state)
{
    memset(waiter, 0, sizeof(waiter));
    returned = false;
    if (sem_init(&ready, 0, 0) != 0 || sem_init(&go, 0, 0) != 0)
        return -1;
    return live_clean(state);
}

#define ending_test(name) cmocka_unit_test_setup(name, set_up)

static void *run_acquire(void *argument)
{
    struct waiter *w = argument;
    w->began_ms = test_now_ms();
    w->result = nxl_lock_acquire(w->lock, w->wait_ms);
    w->ended_ms = test_now_ms();
    returned = true;
    pthread_testcancel();
    return NULL;
}

/* Ends the n-th of five threads that wait; the first of them leads. */
static void end_one_of_five(unsigned n)
{
    nxl_client *client = new_client("");
    nxl_lock *lock[5];
    void *how;

    stranger_sets("held", "somebody", 0);
    for (unsigned i = 0; i < 5; i++) {
        lock[i] = new_lock(client, "held", 30000);
        waiter[i] = (struct waiter){.lock = lock[i], .wait_ms = 1000};
        assert_int_equal(pthread_create(&waiter[i].thread, NULL,
                             i == n ? run_acquire : waiter_run, &waiter[i]),
            0);
        assert_eventually(redis_calls(&server, "set") >= 2 + (long)i);
    }
    assert_int_equal(pthread_cancel(waiter[n].thread), 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(pthread_join(waiter[i].thread, &how), 0);
        assert_true((how == PTHREAD_CANCELED) == (i == n));
        assert_int_equal(waiter[i].result, NXL_BUSY);
        assert_between(
            waiter[i].ended_ms - waiter[i].began_ms, 999, 1000 + LATE_MS);
    }
    assert_true(returned);
    redis_run(&server, "DEL", "held", NULL);
    for (unsigned i = 0; i < 5; i++) {
        assert_result(nxl_lock_acquire(lock[i], 0), NXL_OK, lock[i]);
        assert_result(nxl_lock_release(lock[i]), NXL_OK, lock[i]);
        nxl_lock_free(lock[i]);
    }
    nxl_client_free(client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

static void the_leader_is_ended(void **state)
{
    end_one_of_five(0);
}

static void a_follower_is_ended(void **state)
{
    end_one_of_five(3);
}

/* ----------------------------------------- an end that is due at the call */

static void *run_free(void *argument)
{
    nxl_lock_free(argument);
    return NULL;
}

static void *run_cancel(void *argument)
{
    (void)nxl_lock_cancel(argument);
    return NULL;
}

struct late {
    void *(*call)(void *);
    nxl_lock *lock;
};

/* Its end is due, and comes at the first function that is a point for it. */
static void *run_ended(void *argument)
{
    struct late *late = argument;
    int was;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    sem_post(&ready);
    while (sem_wait(&go) != 0)
        ;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &was);
    late->call(late->lock);
    returned = true;
    pthread_testcancel();
    return NULL;
}

/* The call is made by a thread whose end is due. It has to come back from it,
 * and others can use the client. */
static void call_when_the_end_is_due(
    void *(*call)(void *), nxl_lock *lock, nxl_lock *other)
{
    static struct late late;
    pthread_t thread;
    void *how;

    late = (struct late){call, lock};
    assert_int_equal(pthread_create(&thread, NULL, run_ended, &late), 0);
    while (sem_wait(&ready) != 0)
        ;
    assert_int_equal(pthread_cancel(thread), 0);
    sem_post(&go);
    assert_int_equal(pthread_join(thread, &how), 0);
    assert_ptr_equal(how, PTHREAD_CANCELED);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    assert_result(nxl_lock_release(other), NXL_OK, other);
    assert_true(returned);
}

static void freeing_a_held_lock(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "held", 30000);
    nxl_lock *other = new_lock(client, "other", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    call_when_the_end_is_due(run_free, lock, other);
    end(other, client);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
}

static void cancelling_an_operation(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "held", 30000);
    nxl_lock *other = new_lock(client, "other", 30000);
    stranger_sets("held", "somebody", 0);
    waiter_start(&waiter[0], lock, 20000);
    assert_eventually(redis_calls(&server, "pttl") >= 1);
    call_when_the_end_is_due(run_cancel, lock, other);
    assert_int_equal(waiter_join(&waiter[0]), NXL_CANCELLED);
    nxl_lock_free(lock);
    end(other, client);
    assert_value("held", "somebody");
}

static nxl_client *client_to_free;

static void *run_client_free(void *argument)
{
    (void)argument;
    nxl_client_free(client_to_free);
    return NULL;
}

/* Freeing a client waits for answers; it ends with nothing left open. */
static void freeing_a_client(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *other = new_lock(client, "other", 30000);
    client_to_free = new_client("");
    nxl_lock *lock = new_lock(client_to_free, "held", 30000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(lock);
    call_when_the_end_is_due(run_client_free, NULL, other);
    assert_false(redis_exists(&server, "held"));
    end(other, client);
}

/* ------------------------------------- a client that keeps locks alive */

enum { KEEPERS = 6, CLIENTS = 40 };

static struct kept_one {
    nxl_lock *lock;
    unsigned seed;
    pthread_t thread;
} kept[KEEPERS];

/* Until the client is gone. */
static void *hold_again_and_again(void *argument)
{
    struct kept_one *k = argument;
    int rc = NXL_OK;
    while (rc != NXL_E_INVALID) {
        rc = nxl_lock_acquire(k->lock, (int)(rand_r(&k->seed) % 40));
        if (rc != NXL_OK)
            continue;
        test_pause_ms((int)(rand_r(&k->seed) % 20));
        if (rand_r(&k->seed) % 2)
            (void)!nxl_lock_extend(k->lock, 0);
        rc = nxl_lock_release(k->lock);
    }
    nxl_lock_free(k->lock);
    return NULL;
}

static void client_is_freed_under_renewals(void **state)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = 300;
    options.renew = 1;
    for (unsigned i = 0; i < CLIENTS; i++) {
        nxl_client *client = new_client("timeout_ms=300");
        for (unsigned j = 0; j < KEEPERS; j++) {
            char name[8];
            snprintf(name, sizeof(name), "n%u", j % 3);
            kept[j].seed = i * KEEPERS + j;
            assert_int_equal(
                nxl_lock_new(&kept[j].lock, client, name, &options), NXL_OK);
            assert_int_equal(pthread_create(&kept[j].thread, NULL,
                                 hold_again_and_again, &kept[j]),
                0);
        }
        test_pause_ms((int)(i * 7 % 30));
        nxl_client_free(client);
        for (unsigned j = 0; j < KEEPERS; j++)
            pthread_join(kept[j].thread, NULL);
    }
}

/* ------------------------------------------------- the state of a thread */

static void *keeps_cancelling(void *lock)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    while (!returned)
        (void)nxl_lock_cancel(lock);
    return NULL;
}

/* The end of a client releases the mutex while it ends the renewal thread. */
static void freeing_leaves_the_cancel_state(void **state)
{
    int now;
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        nxl_client *client = new_client("");
        nxl_lock *lock = lock_with(client, "k", .ttl_ms = 5000, .renew = 1);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        returned = false;
        assert_int_equal(
            pthread_create(&thread, NULL, keeps_cancelling, lock), 0);
        nxl_client_free(client);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
        returned = true;
        assert_int_equal(pthread_join(thread, NULL), 0);
        nxl_lock_free(lock);
        assert_int_equal(now, PTHREAD_CANCEL_ENABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ending_test(the_leader_is_ended),
        ending_test(a_follower_is_ended),
        ending_test(freeing_a_held_lock),
        ending_test(cancelling_an_operation),
        ending_test(freeing_a_client),
        ending_test(client_is_freed_under_renewals),
        ending_test(freeing_leaves_the_cancel_state),
    };
    return live_run("threads_end");
}
