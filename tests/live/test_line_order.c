/* SPDX-License-Identifier: MIT */
/*
 * First come, first served: who waits in line is served in the order in which
 * it came, whoever leaves the line meanwhile. Who does not wait in line is
 * served as well: the cell "pollers" of tests/faults.
 *
 * Invariant: never are two inside.
 */
#include "live/in_line_rig.h"

#include <stdatomic.h>
#include <sys/wait.h>

#define NAME "job"
#define MOST 12

/* ----------------------------------------------------------- who is inside */

static atomic_int inside, overlaps;
static atomic_int served;
static atomic_int order[MOST]; /* their numbers, as they were served */

static void enter(void)
{
    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_fetch_add(&overlaps, 1);
}

static void leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

static int order_clean(void **state)
{
    atomic_store(&inside, 0);
    atomic_store(&overlaps, 0);
    atomic_store(&served, 0);
    by_loop = false;
    return quorum_clean(state);
}

#define order_test(function)                                                   \
    cmocka_unit_test_setup_teardown(function, order_clean, quorum_mend)

/* --------------------------------------------------------------- the queue */

static struct customer {
    pthread_t thread;
    nxl_client *client;
    nxl_lock *lock;
    int number, result;
    int64_t wait_ms;
} customers[MOST];

static void *customer_run(void *argument)
{
    struct customer *c = argument;
    c->result = nxl_lock_acquire(c->lock, c->wait_ms);
    if (c->result != NXL_OK)
        return NULL;
    enter();
    atomic_store(&order[atomic_fetch_add(&served, 1)], c->number);
    test_pause_ms(2);
    leave();
    c->result = nxl_lock_release(c->lock);
    return NULL;
}

/* The next one in a line in which so many wait then. */
static void comes(int number, nxl_client *client, int64_t wait_ms, size_t count)
{
    struct customer *c = &customers[number];
    *c = (struct customer){.number = number, .wait_ms = wait_ms};
    c->client = client ? client : client_on(NO_GUARD);
    c->lock = new_lock(c->client, NAME, 30000);
    assert_int_equal(pthread_create(&c->thread, NULL, customer_run, c), 0);
    assert_eventually(line_listens(NAME, count));
}

static int goes(int number)
{
    assert_int_equal(pthread_join(customers[number].thread, NULL), 0);
    return customers[number].result;
}

static void gone(int number, bool with_client)
{
    nxl_lock_free(customers[number].lock);
    if (with_client)
        nxl_client_free(customers[number].client);
}

static void serve_as_they_come(bool one_client)
{
    nxl_client *client = client_on(NO_GUARD);
    nxl_lock *held = new_lock(client, NAME, 30000);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    for (int i = 0; i < MOST; i++)
        comes(i, one_client ? client : NULL, 60000, (size_t)i + 1);
    assert_result(nxl_lock_release(held), NXL_OK, held);
    for (int i = 0; i < MOST; i++)
        assert_result(goes(i), NXL_OK, customers[i].lock);
    assert_int_equal(overlaps, 0);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(order[i], i);
    assert_true(is_free(NAME));
    for (int i = 0; i < MOST; i++)
        gone(i, !one_client);
    end(held, client);
}

static void served_as_they_came(void **state)
{
    serve_as_they_come(false);
}

/* The threads of one client have one channel, and their places all the same. */
static void served_as_they_came_by_one_client(void **state)
{
    serve_as_they_come(true);
}

/* --------------------------------------------------------------- deserters */

/* A process that waits until it is killed. */
static pid_t doomed_process(size_t count)
{
    pid_t pid = test_fork();
    if (pid == 0) {
        nxl_client *client = client_on(NO_GUARD);
        nxl_lock *lock = new_lock(client, NAME, 30000);
        _exit(nxl_lock_acquire(lock, 60000));
    }
    assert_eventually(line_listens(NAME, count));
    return pid;
}

static void end_process(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* 0, 2, 4, 6 and 8 stay in line; between them a call is cancelled, one times
 * out, a handle is freed with its call in progress, and a process is killed. */
static void deserters_do_not_disturb(void **state)
{
    nxl_client *client = client_on(NO_GUARD),
               *loop_client = client_on(NO_GUARD);
    nxl_lock *held = new_lock(client, NAME, 30000);
    nxl_lock *freed = new_lock(loop_client, NAME, 30000);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    comes(0, NULL, 60000, 1);
    comes(1, NULL, NXL_FOREVER, 2);
    comes(2, NULL, 60000, 3);
    comes(3, NULL, 1000, 4);
    int64_t times_out = test_now_ms() + 1000;
    by_loop = true;
    begin_wait(NULL, loop_client, freed, 60000);
    await_with(loop_client, line_listens(NAME, 5));
    comes(4, NULL, 60000, 6);
    comes(6, NULL, 60000, 7);
    pid_t pid = doomed_process(8);
    comes(8, NULL, 60000, 9);

    assert_int_equal(nxl_lock_cancel(customers[1].lock), NXL_OK);
    assert_result(goes(1), NXL_CANCELLED, customers[1].lock);
    nxl_lock_free(freed);
    await_with(loop_client, line_length(NAME) <= 7);
    assert_result(goes(3), NXL_BUSY, customers[3].lock);
    assert_between(test_now_ms() - times_out, -100, LATE_MS);
    assert_eventually(line_length(NAME) == 6);
    end_process(pid);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_release(held), NXL_OK, held);
    for (int i = 0; i <= 8; i += 2)
        assert_result(goes(i), NXL_OK, customers[i].lock);
    /* The dead one is passed over at once. */
    assert_between(test_now_ms() - began, 0, LATE_MS);
    assert_int_equal(overlaps, 0);
    assert_int_equal(served, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(order[i], 2 * i);
    assert_false(redis_exists(servers, NAME));
    for (int i = 0; i < 9; i++)
        if (i % 2 == 0 || i == 1 || i == 3)
            gone(i, true);
    nxl_client_free(loop_client);
    end(held, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        order_test(served_as_they_came),
        order_test(served_as_they_came_by_one_client),
        order_test(deserters_do_not_disturb),
    };
    return on_run(one_unix, "line order", tests);
}
