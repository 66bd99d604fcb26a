/* SPDX-License-Identifier: MIT */
/*
 * Handles of three servers made, used and freed again and again, while all of
 * them are well, and while some are down, come back, hang or are cut off:
 * neither a descriptor nor memory stays, nor a key. Also run under valgrind,
 * with fewer cycles.
 */
#include "live/leaks_rig.h"
#include "live/quorum_rig.h"

enum { SERVERS = 3 };

#define HASTY NO_GUARD "&timeout_ms=100"

static bool all_free(void)
{
    return keys_at(SERVERS, "name") + keys_at(SERVERS, "other") == 0;
}

/* ---------------------------------------------------------- all is well */

static nxl_lock *lock_with(nxl_client *client, int fence, int renew)
{
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    nxl_lock *lock;
    options.label = "host:1234:job";
    options.fence = fence;
    options.renew = renew;
    assert_int_equal(nxl_lock_new(&lock, client, "name", &options), NXL_OK);
    return lock;
}

static void healthy(unsigned n)
{
    nxl_holder holder = {.size = sizeof holder};
    nxl_client *client = quorum_client(SERVERS, NO_GUARD);
    nxl_lock *lock = lock_with(client, n % 8 > 3, n % 16 > 7);
    nxl_lock *other = labelled(client, "name");

    if (n % 4)
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    if (n % 4 == 2) {
        assert_result(nxl_lock_acquire(other, 0), NXL_BUSY, other);
        assert_result(nxl_lock_inspect(other, &holder), NXL_OK, other);
        assert_result(nxl_lock_extend(lock, 50000), NXL_OK, lock);
    }
    if (n % 4 == 3)
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock); /* held or not, used or not */
    nxl_lock_free(other);
    nxl_client_free(client);
}

static void while_all_are_well(void **state)
{
    (void)state;
    assert_steady(slow() ? 48 : 320, healthy);
    assert_eventually(all_free());
}

static void wrong_lists(unsigned n)
{
    static const char *const lists[] = {"redis://a,redis://b,redis://a",
        "redis://a,redis://b?timeout_ms=50,redis://c?timeout_ms=60",
        "redis://a,redis://:p%zz@b", "redis://a,redis://b,c",
        "redis://u:secret@a,redis://b,redis://c?what=1", "redis://a,",
        "redis://a,redis://b?scheme=timestamp"};
    nxl_client *client;
    assert_true(nxl_client_new(&client, lists[n % 7], NULL) < 0);
    assert_null(client);
}

static void with_a_wrong_list(void **state)
{
    (void)state;
    assert_steady(slow() ? 35 : 350, wrong_lists);
}

/* ------------------------------------------------------------ it goes wrong */

/* Two of three do it. */
static void cycle(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

static void without_one(unsigned n)
{
    nxl_client *client = quorum_client(SERVERS, NO_GUARD);
    nxl_lock *lock = labelled(client, "name"), *other = labelled(client, "o");
    cycle(lock);
    if (n % 2)
        assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
    nxl_lock_free(lock);
    nxl_lock_free(other);
    nxl_client_free(client);
}

static void with_one_that_is_down(void **state)
{
    (void)state;
    redis_kill(&servers[1]);
    assert_steady(slow() ? 20 : 100, without_one);
    redis_restart(&servers[1]);
    assert_eventually(all_free());
}

static void restarted(unsigned n)
{
    nxl_client *client = quorum_client(SERVERS, HASTY);
    nxl_lock *lock = labelled(client, "name"), *other = labelled(client, "o");
    struct redis *one = &servers[n % SERVERS];
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    redis_kill(one);
    if (n % 2)
        assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
    if (n % 4 > 1) /* what a majority of two has is lost with one of them */
        assert_true(nxl_lock_extend(lock, 0) != NXL_E_INVALID);
    redis_restart(one);
    if (n % 8 > 3) /* ... and so it may be here */
        assert_true(nxl_lock_release(lock) != NXL_E_INVALID);
    nxl_lock_free(lock);
    nxl_lock_free(other);
    nxl_client_free(client);
}

static void with_one_that_restarts(void **state)
{
    (void)state;
    assert_steady(slow() ? 4 : 16, restarted);
    assert_eventually(all_free());
}

/* One of them, and in every fifth cycle two. */
static void frozen(unsigned n)
{
    nxl_client *client = quorum_client(SERVERS, HASTY);
    nxl_lock *lock = labelled(client, "name"), *other = labelled(client, "o");
    struct redis *one = &servers[n % SERVERS];
    struct redis *two = &servers[(n + 1) % SERVERS];
    if (n % 2)
        assert_result(nxl_lock_acquire(other, 5000), NXL_OK, other);
    redis_freeze(one);
    if (n % 5 == 0) {
        redis_freeze(two);
        assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
    } else {
        assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    }
    if (n % 2)
        assert_true(nxl_lock_release(other) != NXL_E_INVALID);
    if (n % 4 < 2) /* freed with all of it open, or answered at last */
        redis_thaw(one);
    nxl_lock_free(lock);
    nxl_lock_free(other);
    nxl_client_free(client);
    redis_thaw(one);
    redis_thaw(two);
}

static void with_one_that_hangs(void **state)
{
    (void)state;
    assert_steady(slow() ? 10 : 40, frozen);
    assert_eventually(all_free());
}

/* One client and one lock through it all. */
static struct {
    nxl_client *client;
    nxl_lock *lock;
} kept;

static void cut(unsigned n)
{
    /* No number of bytes divides the commands' lengths. */
    for (unsigned i = 0; i < SERVERS; i++)
        if (i != n / 2 % SERVERS)
            proxy_cut_after(proxies[i], n % 2 ? PROXY_UP : PROXY_DOWN,
                1 + (37 * n + 411 * i) % 997);
    int rc = nxl_lock_acquire(kept.lock, 0);
    if (rc == NXL_OK)
        rc = nxl_lock_release(kept.lock);
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN || rc == NXL_BUSY ||
                rc == NXL_LOST || rc == NXL_E_UNREACHABLE);
    for (unsigned i = 0; i < SERVERS; i++)
        proxy_cut(proxies[i], n % 3);
    /* Nobody knows when the last one's end has come through. */
    assert_result(nxl_lock_acquire(kept.lock, 5000), NXL_OK, kept.lock);
    assert_result(nxl_lock_release(kept.lock), NXL_OK, kept.lock);
    connect_all(kept.client);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_eventually(proxy_connections(proxies[i]) == 1);
}

static void with_connections_that_are_cut(void **state)
{
    (void)state;
    kept.client = proxied_client(SERVERS, NO_GUARD);
    kept.lock = labelled(kept.client, "name");
    assert_steady(slow() ? 20 : 100, cut);
    end(kept.lock, kept.client);
    assert_eventually(all_free());
}

int main(int argc, char **argv)
{
    (void)argc;
    count_exactly(argv);
    const struct CMUnitTest tests[] = {
        quorum_test(while_all_are_well),
        quorum_test(with_a_wrong_list),
        quorum_test(with_one_that_is_down),
        quorum_test(with_one_that_restarts),
        quorum_test(with_one_that_hangs),
        quorum_test(with_connections_that_are_cut),
    };
    return quorum_run("leaks with several servers");
}
