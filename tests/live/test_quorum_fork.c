/* SPDX-License-Identifier: MIT */
/*
 * After fork() the child's copies of a client of three servers, and of its
 * lock, do nothing but say so, whatever state each connection is in; the
 * parent's lock stands at all of them, and is kept, prolonged and released.
 */
#include "live/fork_rig.h"
#include "live/loop_rig.h"
#include "live/quorum_rig.h"
#include "live/renew_rig.h"

enum { SERVERS = 3, KEPT_MS = 900 };

#define TERMS NO_GUARD "&timeout_ms=1000"

static size_t calls(const char *command)
{
    long count = 0;
    for (size_t i = 0; i < SERVERS; i++)
        count += redis_calls(&servers[i], command);
    return (size_t)count;
}

/* The parent's: it stands, can be prolonged, and goes with its release. */
static void assert_untouched(nxl_lock *lock)
{
    assert_true(nxl_lock_held(lock));
    assert_int_equal(standing(SERVERS, "k", lock), SERVERS);
    assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(keys_at(SERVERS, "k") == 0);
}

static void acquire_everywhere(nxl_client *client, nxl_lock *lock)
{
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_eventually(standing(SERVERS, "k", lock) == SERVERS);
}

/* ---------------------------------------------------------- what it is told */

static void every_call_says_so(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock *lock = new_lock(client, "k", 30000);
    struct handles h = {client, lock};
    nxl_holder holder = {.size = sizeof holder};

    run_child(expect_forked, &h); /* never connected */
    acquire_everywhere(client, lock);
    run_child(expect_forked_below, &h); /* and its own child */
    assert_result(nxl_lock_inspect(lock, &holder), NXL_OK, lock);
    run_child(expect_forked, &h); /* what it had seen of each is no answer */
    assert_true(holder.ours);
    assert_untouched(lock);
    end(lock, client);
}

/* An operation is in progress at all of them, and one is silent. */
static void every_call_of_a_loop_says_so(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock *lock = new_lock(client, "k", 30000);
    struct handles h = {client, lock};

    memset(&loop, 0, sizeof loop);
    redis_freeze(&servers[1]);
    assert_result(nxl_lock_acquire_start(lock, 0), NXL_PENDING, lock);
    run_child(expect_forked, &h);
    loop_wait(client, 0);
    run_child(expect_forked, &h);
    loop_until_true(client, nxl_lock_held(lock));
    run_child(expect_forked, &h); /* an event waits: it is the parent's */
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    redis_thaw(&servers[1]);
    assert_result(nxl_lock_release_start(lock), NXL_PENDING, lock);
    assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
    end(lock, client);
    assert_eventually(keys_at(SERVERS, "k") == 0);
}

/* ------------------------------------------------------------ what it frees */

static void freeing_sends_nothing(void **state)
{
    (void)state;
    struct freeing f = {.fds = count_fds()};
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock *lock = new_lock(client, "k", 30000);
    f.h = (struct handles){client, lock};

    acquire_everywhere(client, lock);
    size_t scripts = calls("eval") + calls("evalsha");
    run_child(expect_freed, &f);
    assert_int_equal(standing(SERVERS, "k", lock), SERVERS);
    for (size_t i = 0; i < SERVERS; i++)
        assert_int_equal(redis_clients(&servers[i]), 1);
    assert_int_equal(calls("eval") + calls("evalsha"), scripts);
    assert_untouched(lock);
    end(lock, client);
}

static void expect_freed_at_once(void *argument)
{
    struct handles *h = argument;
    int64_t began = test_now_ms();
    int fds = count_fds();
    nxl_lock_free(h->lock);
    nxl_client_free(h->client);
    expect(test_now_ms() - began <= LATE_MS);
    expect(count_fds() <= fds - 4); /* two connections, and what it waits by */
}

/* One does not answer, and to one there is no connection. */
static void freeing_with_one_left(void **state)
{
    (void)state;
    nxl_client *client = proxied_client(SERVERS, TERMS);
    nxl_lock *lock = new_lock(client, "k", 30000);
    struct handles h = {client, lock};

    acquire_everywhere(client, lock);
    proxy_hold(proxies[1], PROXY_UP, true);
    proxy_refuse(proxies[2], true);
    proxy_cut(proxies[2], true);
    assert_result(nxl_lock_extend(lock, 0), NXL_UNKNOWN, lock);
    uint64_t sent[2] = {proxy_bytes(proxies[0], PROXY_UP),
        proxy_bytes(proxies[1], PROXY_UP)};
    run_child(expect_freed_at_once, &h);
    proxy_refuse(proxies[2], false);
    test_pause_ms(20); /* what it had sent would be here by now */
    for (int i = 0; i < 2; i++)
        assert_true(proxy_bytes(proxies[i], PROXY_UP) == sent[i]);
    proxy_hold(proxies[1], PROXY_UP, false);
    connect_all(client);
    assert_untouched(lock);
    end(lock, client);
}

/* A lock that is kept: by a thread that the child has not. */
static void the_parent_keeps_its_lock(void **state)
{
    (void)state;
    struct freeing f = {.fds = count_fds()};
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = KEPT_MS;
    nxl_lock *lock = kept_lock(client, "k", &options);
    f.h = (struct handles){client, lock};

    acquire_everywhere(client, lock);
    for (int i = 0; i < 3; i++) {
        uint64_t renewals = stats_of(client).renewals;
        run_child(expect_forked, &f.h);
        run_child(expect_freed, &f);
        comes_true(stats_of(client).renewals > renewals, 10000);
        assert_int_equal(nxl_lock_loss(lock, NULL, 0), NXL_LOSS_NONE);
        assert_true(nxl_lock_held(lock));
    }
    assert_untouched(lock);
    end(lock, client);
}

/* ------------------------------------------------------ a client of its own */

static void use_an_own_client(void *argument)
{
    struct handles *parent = argument;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock *same, *other;
    expect(nxl_lock_new(&same, client, "k", NULL) == NXL_OK);
    expect(nxl_lock_new(&other, client, "other", NULL) == NXL_OK);
    expect(nxl_lock_acquire(same, 0) == NXL_BUSY);
    expect(nxl_lock_acquire(other, 5000) == NXL_OK);
    expect(nxl_lock_acquire(parent->lock, 0) == NXL_E_FORKED);
    /* Taking over is by the token. */
    expect(nxl_lock_adopt(same, nxl_lock_token(parent->lock)) == NXL_OK);
    expect(nxl_lock_held(same) && !nxl_lock_held(parent->lock));
    expect(nxl_lock_release(other) == NXL_OK);
    expect(nxl_lock_release(same) == NXL_OK);
    nxl_lock_free(same);
    nxl_lock_free(other);
    nxl_client_free(client);
}

static void a_child_makes_its_own(void **state)
{
    (void)state;
    nxl_client *client = quorum_client(SERVERS, TERMS);
    nxl_lock *lock = new_lock(client, "k", 30000);
    struct handles h = {client, lock};

    acquire_everywhere(client, lock);
    run_child(use_an_own_client, &h);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock); /* it took it over */
    end(lock, client);
    assert_int_equal(keys_at(SERVERS, "k"), 0);
    assert_int_equal(keys_at(SERVERS, "other"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(every_call_says_so),
        quorum_test(every_call_of_a_loop_says_so),
        quorum_test(freeing_sends_nothing),
        quorum_test(freeing_with_one_left),
        quorum_test(the_parent_keeps_its_lock),
        quorum_test(a_child_makes_its_own),
    };
    return quorum_run("fork with several servers");
}
