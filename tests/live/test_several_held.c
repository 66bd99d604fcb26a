/* SPDX-License-Identifier: MIT */
/*
 * Handles of several names that are held: the end of the hold, a name that is
 * lost, extensions, adoptions and the event loop. Nothing may be left on the
 * server.
 */
#include "live/several_rig.h"

/* Freed while it is held, or while it waits; or with its client. */
static void freed(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        nxl_client *client = new_client("");
        nxl_lock *lock =
            three_with(client, .ttl_ms = 20000, .renew = (int)(i % 2));
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        if (i < 2)
            nxl_lock_free(lock);
        nxl_client_free(client);
        if (i >= 2) {
            assert_false(nxl_lock_held(lock));
            assert_int_equal(nxl_lock_acquire(lock, 0), NXL_E_INVALID);
            nxl_lock_free(lock);
        }
        assert_nothing_held();
    }
    stranger_sets("gamma", "somebody", 20000);
    nxl_client *client = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 20000);
    struct pollfd fd;
    int timeout_ms;
    assert_int_equal(nxl_lock_acquire_start(lock, 20000), NXL_PENDING);
    for (int64_t until = test_now_ms() + 10000;
         !in_line("gamma") && test_now_ms() < until;) {
        nxl_client_pollfds(client, &fd, 1, &timeout_ms);
        poll(&fd, 1, 5);
        nxl_client_process(client);
    }
    assert_true(exists("alpha") && exists("beta"));
    end(lock, client);
    await(!exists("alpha") && !exists("beta") && !in_line("gamma"));
}

static void its_minimum_hold(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 20000, .min_hold_ms = 400);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(held_keys(), 3);
    await(held_keys() == 0);
    assert_between(test_now_ms() - began, 390, 400 + 2 * LATE_MS);
    end(lock, client);
}

/* ------------------------------------------------------------------- a loss */

static void one_is_lost(void **state)
{
    for (unsigned i = 0; i < 6; i++) {
        const char *name = sorted[i % 3];
        bool taken = i >= 3;
        nxl_client *client = new_client("");
        nxl_lock *lock = three_with(client, .ttl_ms = 300, .renew = 1);
        char why[256], quoted[32];
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        redis_run(&server, "DEL", name, NULL);
        if (taken)
            stranger_sets(name, "somebody", 20000);
        struct pollfd fd = {nxl_client_loss_fd(client), POLLIN, 0};
        assert_int_equal(poll(&fd, 1, 10000), 1);
        assert_false(nxl_lock_held(lock));
        assert_int_equal(nxl_client_holds(client, "alpha", 5), 0);
        nxl_event event;
        assert_true(nxl_client_next_event(client, &event));
        assert_ptr_equal(event.lock, lock);
        assert_int_equal(event.operation, NXL_OP_HOLD);
        assert_int_equal(event.result, NXL_LOST);
        assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)),
            taken ? NXL_LOSS_TAKEN : NXL_LOSS_REMOVED);
        snprintf(quoted, sizeof(quoted), "'%s': ", name);
        assert_contains(why, quoted);
        assert_contains(nxl_lock_errmsg(lock), quoted);
        /* The others are renewed: the program is still stopping. */
        for (int64_t until = test_now_ms() + 700; test_now_ms() < until;) {
            assert_int_equal(held_keys(), taken ? 3 : 2);
            usleep(10000);
        }
        assert_false(nxl_client_next_event(client, &event));
        assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
        assert_result(nxl_lock_release(lock), NXL_LOST, lock);
        assert_int_equal(held_keys(), taken ? 1 : 0);
        redis_run(&server, "DEL", name, NULL);
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        nxl_stats stats;
        assert_int_equal(
            nxl_client_stats(client, &stats, sizeof(stats)), NXL_OK);
        assert_int_equal(stats.losses, 1);
        assert_int_equal(stats.grants, 2);
        assert_int_equal(stats.hold.count, 2);
        end(lock, client);
        assert_nothing_held();
    }
}

/* Without renewal it is an extend or the release that finds out. */
static void lost_and_not_renewed(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 20000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_run(&server, "DEL", "beta", NULL);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "'beta': ");
    assert_false(nxl_lock_held(lock));
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_nothing_held();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_run(&server, "DEL", "gamma", NULL);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_contains(nxl_lock_errmsg(lock), "'gamma': ");
    assert_nothing_held();
    /* The next acquire gives back what a lost one still held. */
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_run(&server, "DEL", "alpha", NULL);
    assert_result(nxl_lock_extend(lock, 0), NXL_LOST, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_all_have_the_token(lock, ALONE);
    end(lock, client);
    assert_nothing_held();
}

static void its_maximum_hold(void **state)
{
    static struct waiter waiter;
    nxl_client *client = new_client(""), *other = new_client("");
    nxl_lock *lock =
        three_with(client, .ttl_ms = 300, .renew = 1, .max_hold_ms = 700);
    nxl_lock *busy = new_lock(other, "gamma", 20000);
    char why[256];
    assert_result(nxl_lock_acquire(busy, 0), NXL_OK, busy);
    waiter_start(&waiter, lock, 20000);
    await(in_line("gamma"));
    usleep(1000000); /* it counts from when all are held */
    assert_result(nxl_lock_release(busy), NXL_OK, busy);
    int64_t began = test_now_ms();
    assert_int_equal(waiter_join(&waiter), NXL_OK);
    struct pollfd fd = {nxl_client_loss_fd(client), POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 10000), 1);
    assert_between(test_now_ms() - began, 300, 700 + LATE_MS);
    assert_int_equal(nxl_lock_loss(lock, why, sizeof(why)), NXL_LOSS_EXPIRED);
    assert_contains(why, "max_hold_ms");
    nxl_lock_free(busy);
    nxl_client_free(other);
    end(lock, client);
}

/* ------------------------------------------------------- extend, adopt, unix
 */

static void extended(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_between(nxl_lock_remaining_ms(lock), 1, 5000);
    assert_result(nxl_lock_extend(lock, 20000), NXL_OK, lock);
    assert_between(nxl_lock_remaining_ms(lock), 15000, 20000);
    for (unsigned i = 0; i < 3; i++)
        assert_between(
            redis_run(&server, "PTTL", sorted[i], NULL), 15000, 20000);
    end(lock, client);
}

static void adopted(void **state)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        nxl_client *one = new_client(""), *two = new_client("");
        nxl_lock_options options = options_of((enum kind)kind, 0, 0);
        nxl_lock *first = several(one, three, 3, &options);
        nxl_lock *next = three_with(two, .ttl_ms = 20000, .renew = 1);
        char token[200];
        assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
        snprintf(token, sizeof(token), "%s", nxl_lock_token(first));
        assert_result(nxl_lock_adopt(next, token), NXL_OK, next);
        assert_string_equal(nxl_lock_token(next), token);
        assert_true(nxl_lock_held(next));
        assert_result(nxl_lock_release(next), NXL_OK, next);
        assert_int_equal(held_keys(), 0);
        assert_result(nxl_lock_release(first), NXL_LOST, first);

        assert_result(nxl_lock_acquire(first, 0), NXL_OK, first);
        snprintf(token, sizeof(token), "%s", nxl_lock_token(first));
        redis_run(&server, "DEL", "beta", NULL);
        assert_result(nxl_lock_adopt(next, token), NXL_LOST, next);
        assert_contains(nxl_lock_errmsg(next), "'beta': ");
        assert_false(nxl_lock_held(next));
        end(next, two);
        assert_int_equal(held_keys(), 2); /* they are not its own */
        end(first, one);
        assert_nothing_held();
    }
}

/* ------------------------------------------------------------ the event loop
 */

static nxl_event next_event(nxl_client *client)
{
    nxl_event event;
    int64_t until = test_now_ms() + 10000;
    while (!nxl_client_next_event(client, &event)) {
        struct pollfd fd;
        int timeout_ms;
        assert_true(test_now_ms() < until);
        nxl_client_pollfds(client, &fd, 1, &timeout_ms);
        poll(&fd, 1, timeout_ms < 0 || timeout_ms > 100 ? 100 : timeout_ms);
        assert_int_equal(nxl_client_process(client), NXL_OK);
    }
    return event;
}

static void expect_event(
    nxl_client *client, nxl_lock *lock, int operation, int result)
{
    nxl_event event = next_event(client);
    assert_ptr_equal(event.lock, lock);
    assert_ptr_equal(event.user, client);
    assert_int_equal(event.operation, operation);
    live_assert_result(
        event.result, result, nxl_lock_errmsg(lock), "event", operation);
}

static void in_an_event_loop(void **state)
{
    nxl_client *client = new_client(""), *other = new_client("");
    nxl_lock *lock =
        three_with(client, .ttl_ms = 300, .renew = 1, .user = client);
    nxl_lock *busy = new_lock(other, "beta", 20000);
    nxl_event event;
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_E_INVALID);
    expect_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    assert_int_equal(nxl_lock_extend_start(lock, 0), NXL_PENDING);
    expect_event(client, lock, NXL_OP_EXTEND, NXL_OK);
    assert_int_equal(nxl_lock_release_start(lock), NXL_PENDING);
    assert_false(nxl_lock_held(lock));
    expect_event(client, lock, NXL_OP_RELEASE, NXL_OK);
    assert_int_equal(held_keys(), 0);

    assert_result(nxl_lock_acquire(busy, 0), NXL_OK, busy);
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    expect_event(client, lock, NXL_OP_ACQUIRE, NXL_BUSY);
    assert_int_equal(nxl_lock_acquire_start(lock, 20000), NXL_PENDING);
    nxl_client_interrupt(client);
    expect_event(client, lock, NXL_OP_ACQUIRE, NXL_CANCELLED);
    assert_result(nxl_lock_release(busy), NXL_OK, busy);

    assert_int_equal(nxl_lock_acquire_start(lock, 20000), NXL_PENDING);
    expect_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    redis_run(&server, "DEL", "gamma", NULL);
    expect_event(client, lock, NXL_OP_HOLD, NXL_LOST);
    assert_false(nxl_client_next_event(client, &event));
    assert_int_equal(nxl_lock_release_start(lock), NXL_PENDING);
    expect_event(client, lock, NXL_OP_RELEASE, NXL_LOST);
    nxl_lock_free(busy);
    nxl_client_free(other);
    end(lock, client);
    assert_nothing_held();
}

/* A grant that expires while its event waits is no grant. */
static void expired_before_its_event(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = three_with(client, .ttl_ms = 300, .user = client);
    struct pollfd fd;
    int timeout_ms = 1;
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    for (int64_t until = test_now_ms() + 10000;
         timeout_ms != 0 && test_now_ms() < until;) {
        nxl_client_pollfds(client, &fd, 1, &timeout_ms);
        poll(&fd, 1, timeout_ms);
        nxl_client_process(client);
        nxl_client_pollfds(client, &fd, 1, &timeout_ms);
    }
    usleep(400000);
    expect_event(client, lock, NXL_OP_ACQUIRE, NXL_LOST);
    assert_false(nxl_lock_held(lock));
    end(lock, client);
    assert_nothing_held();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(freed),
        live_test(its_minimum_hold),
        live_test(one_is_lost),
        live_test(lost_and_not_renewed),
        live_test(its_maximum_hold),
        live_test(extended),
        live_test(adopted),
        live_test(in_an_event_loop),
        live_test(expired_before_its_event),
    };
    return live_run_with("several_held", tests, live_tcp, live_unix, live_stop);
}
