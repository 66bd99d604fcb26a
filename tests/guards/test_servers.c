/* SPDX-License-Identifier: MIT */
/* The guards against servers that are not ready, forget, or come late. */
#include "guards/guards_rig.h"
#include "support/fake.h"

/* Both hold, at this moment. */
static bool both(const nxl_lock *first, const nxl_lock *second)
{
    return nxl_lock_held(first) && nxl_lock_held(second);
}

/* ----------------------------------------------------------- the handshake */

static bool lands_by(const char *url)
{
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", 30000);
    assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
    end(lock, client);
    return redis_exists(&server, "k");
}

/* The server has no db 99, and does what comes next in db 0. */
static bool lock_lands_in_another_db(void)
{
    char url[LOCAL_PATH + 64];
    bool tcp = server_url == server.url;
    snprintf(url, sizeof(url), "%s%s", server_url, tcp ? "/99" : "?db=99");
    return lands_by(url);
}

/* The server refuses the user, and does what comes next as its default. */
static bool lock_by_another_user(void)
{
    char url[LOCAL_PATH + 64];
    snprintf(url, sizeof(url), "redis://nobody:wrong@127.0.0.1:%u",
        (unsigned)server.port);
    return lands_by(url);
}

static void test_handshake(void **state)
{
    (void)state;
    assert_needed(HANDSHAKE,
        "the key is set in another database than the URL's",
        lock_lands_in_another_db);
    assert_needed(HANDSHAKE, "the key is set by another user than the URL's",
        lock_by_another_user);
}

/* ---------------------------------------------------------------- restarts */

/* The lease of the first is longer than the second one's max_ttl_ms, which that
 * has seen. */
static bool a_longer_lease_is_forgotten(void)
{
    nxl_client *client = new_client("max_ttl_ms=20000&guard_restarts=off");
    nxl_client *other = new_client("max_ttl_ms=1000&guard_restarts=on");
    nxl_lock *lock = new_lock(client, "k", 8000);
    nxl_lock *second = new_lock(other, "k", 1000);
    int rc = NXL_E_REFUSED;
    while (rc == NXL_E_REFUSED) /* the server is young */
        rc = nxl_lock_acquire(second, 5000);
    assert_result(rc, NXL_OK, second);
    assert_result(nxl_lock_release(second), NXL_OK, second);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    assert_result(nxl_lock_acquire(second, 500), NXL_BUSY, second);
    redis_restart(&server);
    rc = nxl_lock_acquire(second, 5000);
    assert_true(rc == NXL_OK || rc == NXL_E_REFUSED);
    bool harm = both(lock, second);
    end(second, other);
    end(lock, client);
    return harm;
}

static void test_longer(void **state)
{
    (void)state;
    assert_needed(LONGER,
        "a lease that is longer than max_ttl_ms is not waited for; two hold",
        a_longer_lease_is_forgotten);
}

/* ------------------------------------------------------------------- unfit */

/* Each of two active replicas of KeyDB, which overwrite each other's keys only
 * after they have granted. KeyDB is not packaged, so they are played. */
static bool both_replicas_grant(void)
{
    static const char script[] =
        "INFO # Server\\r\\nredis_version:6.3.4\\r\\nrun_id:aa\\r\\n"
        "uptime_in_seconds:864000\\r\\nrole:active-replica\\r\\n\nSERVE\n";
    struct fake *replica[2];
    nxl_client *client[2];
    nxl_lock *lock[2];
    for (int i = 0; i < 2; i++) {
        replica[i] = fake_start(script);
        client[i] = client_at(fake_url(replica[i]));
        lock[i] = new_lock(client[i], "k", 20000);
        int rc = nxl_lock_acquire(lock[i], 0);
        assert_true(rc == NXL_OK || rc == NXL_E_REFUSED);
    }
    bool harm = both(lock[0], lock[1]);
    for (int i = 0; i < 2; i++) {
        end(lock[i], client[i]);
        fake_free(replica[i]);
    }
    return harm;
}

static void test_unfit(void **state)
{
    (void)state;
    assert_needed(UNFIT, "two active replicas grant one lock; two hold",
        both_replicas_grant);
}

/* ------------------------------------------------------------ a late request
 */

/* A socket's path that leads to the proxy at first, and to the server then:
 * only what is dialled from now on goes another way. */
static char road[LOCAL_PATH];

static void lead_to(const char *path)
{
    char next[LOCAL_PATH + 8];
    snprintf(next, sizeof(next), "%s.next", road);
    assert_int_equal(symlink(path, next), 0);
    assert_int_equal(rename(next, road), 0);
}

static bool appears(const char *key, int within_ms)
{
    int64_t until = test_now_ms() + within_ms;
    while (test_now_ms() < until) {
        if (redis_exists(&server, key))
            return true;
        test_pause_ms(5);
    }
    return false;
}

/* On a busy machine any call may be too late for timeout_ms. */
static bool is_late(int rc)
{
    return rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE;
}

/* How many bytes an acquire sends. */
static size_t size_of_acquire(struct proxy *proxy, nxl_lock *lock)
{
    size_t size;
    int rc, released;
    do {
        assert_eventually(call(lock) == NXL_FREE);
        uint64_t before = proxy_bytes(proxy, PROXY_UP);
        rc = nxl_lock_acquire(lock, 0);
        size = (size_t)(proxy_bytes(proxy, PROXY_UP) - before);
        released = rc == NXL_OK ? nxl_lock_release(lock) : NXL_OK;
    } while (is_late(rc) || is_late(released));
    assert_result(rc, NXL_OK, lock);
    assert_result(released, NXL_OK, lock);
    return size;
}

/* The SET is held up on the way, and what follows it is lost, until the client
 * has dialled anew, undone what it found, which was nothing, and gone. */
static bool orphan_held_up_on_the_way(void)
{
    char url[LOCAL_PATH + 64];
    struct proxy *proxy = proxy_start(server.path, 0);
    local_path(road, server.dir, "road");
    lead_to(proxy_url(proxy) + strlen("unix://"));
    snprintf(url, sizeof(url), "unix://%s?timeout_ms=50", road);
    nxl_client *client = client_at(url);
    nxl_lock *lock = new_lock(client, "k", 30000);
    size_t size = size_of_acquire(proxy, lock);
    proxy_hold(proxy, PROXY_UP, true);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    lead_to(server.path);
    assert_eventually(call(lock) == NXL_FREE);
    end(lock, client);
    proxy_cut_after(proxy, PROXY_UP, size);
    proxy_hold(proxy, PROXY_UP, false);
    bool harm = appears("k", 1500);
    unlink(road);
    proxy_stop(proxy);
    return harm;
}

static void test_kill(void **state)
{
    (void)state;
    assert_needed(KILL,
        "a request that was held up on the way comes after its undoing",
        orphan_held_up_on_the_way);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        guard_test(test_handshake),
    };
    const struct CMUnitTest by_path[] = {
        guard_test(test_longer),
        guard_test(test_unfit),
        guard_test(test_kill),
    };
    return live_run("guards of servers") +
           cmocka_run_group_tests_name(
               "guards of servers (path)", by_path, live_unix, live_stop);
}
