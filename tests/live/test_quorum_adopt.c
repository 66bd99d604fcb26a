/* SPDX-License-Identifier: MIT */
/*
 * An adoption that fails, because the token is being deleted at one server, has
 * not cancelled the cleanup of that token at another one.
 */
#include "support/test.h"

#include <poll.h>

#include "live/quorum_rig.h"

#define TERMS NO_GUARD "&timeout_ms=2000"

enum { LONG_MS = 20000 };

static nxl_client *client;

static void turn(void)
{
    struct pollfd fds[8];
    size_t count = nxl_client_pollfds(client, fds, 8, NULL);
    poll(fds, (nfds_t)count, 1);
    assert_int_equal(nxl_client_process(client), NXL_OK);
}

#define loop_until(condition) assert_eventually((turn(), condition))

static int result_of(const nxl_lock *lock)
{
    nxl_event event;
    loop_until(nxl_client_next_event(client, &event));
    assert_ptr_equal(event.lock, lock);
    return event.result;
}

static nxl_lock *long_lock(void)
{
    nxl_lock *lock;
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    options.ttl_ms = LONG_MS;
    assert_int_equal(nxl_lock_new(&lock, client, "k", &options), NXL_OK);
    return lock;
}

static bool all_connected(void)
{
    char text[4096];
    int count = 0;
    nxl_client_describe(client, text, sizeof(text));
    for (const char *at = text; (at = strstr(at, ", connected")); at++)
        count++;
    return count == 3;
}

/* A grant of a majority would leave out a server that is not connected yet. */
static void connect_all_three(void)
{
    nxl_lock *lock = long_lock();
    assert_int_equal(nxl_lock_acquire_start(lock, 5000), NXL_PENDING);
    assert_result(result_of(lock), NXL_OK, lock);
    loop_until(all_connected());
    assert_int_equal(nxl_lock_release_start(lock), NXL_PENDING);
    assert_result(result_of(lock), NXL_OK, lock);
    for (int i = 0; i < 3; i++)
        loop_until(!redis_exists(&servers[i], "k"));
    nxl_lock_free(lock);
}

static void a_failed_adoption_leaves_no_key(void **state)
{
    (void)state;
    client = proxied_client(3, TERMS);
    connect_all_three();
    nxl_lock *owner = long_lock(), *heir = long_lock();
    assert_int_equal(nxl_lock_acquire_start(owner, 5000), NXL_PENDING);
    assert_result(result_of(owner), NXL_OK, owner);
    for (int i = 0; i < 3; i++)
        loop_until(redis_exists(&servers[i], "k"));

    /* The answers are held up behind which the deletions go; the third server
     * is not reached. */
    proxy_refuse(proxies[2], true);
    proxy_cut(proxies[2], false);
    proxy_hold(proxies[0], PROXY_DOWN, true);
    proxy_hold(proxies[1], PROXY_DOWN, true);
    uint64_t sent = proxy_bytes(proxies[1], PROXY_UP);
    assert_int_equal(
        nxl_lock_adopt_start(heir, nxl_lock_token(owner)), NXL_PENDING);
    loop_until(proxy_bytes(proxies[1], PROXY_UP) > sent);
    sent = proxy_bytes(proxies[1], PROXY_UP);
    nxl_lock_free(owner);
    loop_until(proxy_bytes(proxies[1], PROXY_UP) > sent);
    loop_until(!redis_exists(&servers[1], "k"));
    proxy_hold(proxies[0], PROXY_DOWN, false);
    proxy_hold(proxies[1], PROXY_DOWN, false);
    assert_result(result_of(heir), NXL_LOST, heir);

    assert_true(redis_exists(&servers[2], "k"));
    proxy_refuse(proxies[2], false);
    loop_until(!redis_exists(&servers[2], "k"));
    nxl_lock_free(heir);
    nxl_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(a_failed_adoption_leaves_no_key),
    };
    return quorum_run("quorum_adopt");
}
