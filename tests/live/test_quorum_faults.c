/* SPDX-License-Identifier: MIT */
/*
 * A minority that is dead or hung changes nothing, not even the time; with a
 * majority gone the call ends by its deadline and says who is missing. What a
 * stopped server still applies is cleaned up, and nobody storms it.
 */
#include "support/test.h"

#include "live/quorum_rig.h"

/* Well below the budget of a server in a round, 5 % of the ttl. */
#define AT_ONCE_MS 250

enum { TTL_MS = 6000, TIMEOUT_MS = 600 };
#define TERMS NO_GUARD "&timeout_ms=600" /* TIMEOUT_MS */

typedef void breaker(struct redis *);

/* What a stopped server had in its sockets is applied, and undone. */
static void mend(void)
{
    quorum_mend(NULL);
    assert_eventually(keys_at(QUORUM_MAX, "k") == 0);
}

static void cycles(nxl_lock *lock, int count)
{
    for (int i = 0; i < count; i++) {
        int64_t before = test_now_ms();
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_between(test_now_ms() - before, 0, AT_ONCE_MS);
    }
}

/* The first acquire after the failure is like all others. */
static void minority(size_t count, breaker *harm)
{
    nxl_client *client = quorum_client(count, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    cycles(lock, 3);
    for (size_t i = 0; i < (count - 1) / 2; i++)
        harm(&servers[i]);
    cycles(lock, 50);
    end(lock, client);
}

static void test_minority(void **state)
{
    minority(3, redis_kill);
    mend();
    minority(3, redis_freeze);
    mend();
    minority(5, redis_kill);
    mend();
    minority(5, redis_freeze);
    mend();
    minority(6, redis_freeze); /* two of six; a third would be too many */
}

/* It is no matter whether there were connections before. */
static void test_minority_from_the_start(void **state)
{
    redis_kill(&servers[0]);
    redis_freeze(&servers[1]);
    for (int i = 0; i < 5; i++) {
        nxl_client *client = quorum_client(5, TERMS);
        nxl_lock *lock = new_lock(client, "k", TTL_MS);
        cycles(lock, 5);
        end(lock, client);
    }
}

/* ------------------------------------------------------------- no majority */

static void no_majority(size_t count, size_t harmed, breaker *harm, int result)
{
    nxl_client *client = quorum_client(count, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    cycles(lock, 3);
    for (size_t i = 0; i < harmed; i++)
        harm(&servers[i]);
    static const int64_t waits[] = {0, 0, 300, 1000};
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        int64_t most = waits[i] > TIMEOUT_MS ? waits[i] : TIMEOUT_MS;
        int64_t before = test_now_ms();
        int rc = nxl_lock_acquire(lock, waits[i]);
        assert_between(test_now_ms() - before, 0, most + LATE_MS);
        assert_true(rc == result || rc == NXL_E_UNREACHABLE);
        assert_false(nxl_lock_held(lock));
        for (size_t j = 0; j < count; j++) {
            const char *name = j % 2 ? servers[j].url : servers[j].unix_url;
            assert_int_equal(
                strstr(nxl_lock_errmsg(lock), name) != NULL, j < harmed);
        }
    }
    /* Nothing is left where it can be cleaned up, and not for its ttl. */
    int64_t freed = test_now_ms();
    end(lock, client);
    for (size_t i = harmed; i < count; i++)
        assert_eventually(!redis_exists(&servers[i], "k"));
    assert_between(test_now_ms() - freed, 0, TTL_MS / 2);
}

static void test_majority_killed(void **state)
{
    no_majority(3, 2, redis_kill, NXL_E_UNREACHABLE);
    mend();
    no_majority(5, 3, redis_kill, NXL_E_UNREACHABLE);
    mend();
    no_majority(4, 2, redis_kill, NXL_E_UNREACHABLE);
}

static void test_majority_hung(void **state)
{
    /* A hung majority may have taken the token: unknown, or not reached. */
    no_majority(3, 2, redis_freeze, NXL_UNKNOWN);
    mend();
    no_majority(5, 3, redis_freeze, NXL_UNKNOWN);
    mend();
    no_majority(2, 1, redis_freeze, NXL_UNKNOWN);
}

/* A round is over after 5 % of the ttl, 50 ms at least, though the call could
 * take longer; then there is another one, if the wait allows it. */
static void test_budget(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=3000");
    nxl_lock *lock = new_lock(client, "k", 1000);
    connect_all(client);
    redis_freeze(&servers[0]);
    redis_freeze(&servers[1]);
    int64_t before = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    assert_between(test_now_ms() - before, 45, 50 + LATE_MS);
    before = test_now_ms();
    long tried = redis_calls(&servers[2], "set");
    int rc = nxl_lock_acquire(lock, 1000);
    assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    assert_between(redis_calls(&servers[2], "set") - tried, 3, 20);
    end(lock, client);
    mend();
}

/* Somebody else holds it at all that answer: that is busy, if those that do
 * not are too few to change it, and not reached otherwise. */
static void test_busy_or_broken(void **state)
{
    nxl_client *client = quorum_client(5, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    for (size_t i = 0; i < 5; i++)
        redis_run(&servers[i], "SET", "k", "other", "PX", "60000", NULL);
    redis_kill(&servers[0]);
    redis_freeze(&servers[1]);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_result(nxl_lock_acquire(lock, 200), NXL_BUSY, lock);
    assert_contains(nxl_lock_errmsg(lock), "another client holds the lock");
    redis_kill(&servers[1]);
    redis_kill(&servers[2]);
    int rc = nxl_lock_acquire(lock, 0);
    assert_true(rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN);
    assert_contains(nxl_lock_errmsg(lock), "3 of 5 servers are needed");
    end(lock, client);
}

/* -------------------------------------------------------------- afterwards */

/* What a stopped server had in its socket it applies when it goes on: the
 * undoing comes right behind. */
static void test_orphans(void **state)
{
    nxl_client *client = quorum_client(3, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    for (size_t i = 1; i < 3; i++)
        redis_freeze(&servers[i]);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    nxl_client_free(client); /* which leaves nothing but what it could pay */
    nxl_lock_free(lock);
    assert_eventually(!redis_exists(&servers[0], "k"));
    for (size_t i = 1; i < 3; i++)
        redis_thaw(&servers[i]);
    for (size_t i = 1; i < 3; i++) {
        assert_eventually(redis_calls(&servers[i], "set") == 1);
        assert_eventually(!redis_exists(&servers[i], "k"));
    }
}

/* Cycles until the first server, which hangs, is not asked; so many. */
static long cycles_until_refused(nxl_lock *lock)
{
    int64_t until = test_now_ms() + 10000;
    long count = 0;
    bool refused = false;
    while (!refused) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        refused = strstr(nxl_lock_errmsg_at(lock, 0), "unanswered");
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_between(test_now_ms(), 0, until);
        count++;
    }
    return count;
}

/* A lock that was held while a server was stopped leaves nothing there. */
static void test_late_minority(void **state)
{
    nxl_client *client = quorum_client(3, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    long before = redis_calls(&servers[0], "set");
    redis_freeze(&servers[0]);
    int64_t frozen = test_now_ms();
    long asked = cycles_until_refused(lock);
    assert_between(test_now_ms() - frozen, 495, 500 + LATE_MS);
    cycles(lock, 100); /* of these it does not hear */
    redis_thaw(&servers[0]);
    assert_eventually(redis_calls(&servers[0], "set") > before);
    cycles(lock, 1);
    assert_eventually(keys_at(3, "k") == 0);
    assert_between(redis_calls(&servers[0], "set") - before, 1, asked + 1);
    cycles(lock, 10);
    assert_eventually(keys_at(3, "k") == 0);
    end(lock, client);
}

/* Slow or stopped servers keep their connections; those that come and go are
 * not dialled more often than the delays allow. */
static void test_no_storm(void **state)
{
    nxl_client *client = proxied_client(3, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    proxy_delay(proxies[0], PROXY_DOWN, 300);
    redis_freeze(&servers[1]);
    int64_t before = test_now_ms();
    for (int i = 0; i < 10; i++) {
        int rc = nxl_lock_acquire(lock, 0);
        if (rc == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    redis_thaw(&servers[1]);
    proxy_delay(proxies[0], PROXY_DOWN, 0);
    assert_int_equal(proxy_accepted(proxies[0]), 1);
    assert_int_equal(proxy_accepted(proxies[2]), 1);
    /* Silent for SERVER_STALE_MS, it is given up, and dialled anew. Over TLS it
     * is silent from the handshake on, for which there is less time. */
    int64_t patience_ms = live_tls() ? TIMEOUT_MS : 2000;
    int64_t dials = 2 + (test_now_ms() - before) / patience_ms;
    assert_between(proxy_accepted(proxies[1]), 1, dials);
    redis_kill(&servers[2]); /* the proxy takes clients in and drops them */
    before = test_now_ms();
    while (test_now_ms() < before + 1000) {
        assert_result(nxl_lock_acquire(lock, 2000), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    assert_between(proxy_accepted(proxies[2]), 1, 20);
    end(lock, client);
}

/* An extend that a majority does not answer leaves the deadline; the lock is
 * lost when that comes, and not before. */
static void test_extend_unknown(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD "&timeout_ms=300");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    redis_freeze(&servers[0]);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_deadline(lock) > deadline);
    deadline = nxl_lock_deadline(lock);
    redis_freeze(&servers[1]);
    assert_result(nxl_lock_extend(lock, 0), NXL_UNKNOWN, lock);
    assert_contains(nxl_lock_errmsg(lock), "2 of 3 servers are needed");
    assert_true(nxl_lock_deadline(lock) == deadline);
    redis_thaw(&servers[1]);
    assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
    assert_true(nxl_lock_deadline(lock) > deadline);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* The end of a client pays all servers at once, and waits for no other. */
static void test_end_pays(void **state)
{
    nxl_client *client = proxied_client(5, TERMS);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    connect_all(client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_eventually(standing(5, "k", lock) == 5);
    for (size_t i = 0; i < 4; i++)
        proxy_delay(proxies[i], PROXY_UP, 150);
    redis_freeze(&servers[4]);
    int64_t before = test_now_ms();
    nxl_lock_free(lock);
    nxl_client_free(client);
    assert_between(test_now_ms() - before, 100, 500 + LATE_MS);
    assert_int_equal(keys_at(4, "k"), 0);
    redis_thaw(&servers[4]);
    assert_eventually(keys_at(5, "k") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(test_minority),
        quorum_test(test_minority_from_the_start),
        quorum_test(test_majority_killed),
        quorum_test(test_majority_hung),
        quorum_test(test_budget),
        quorum_test(test_busy_or_broken),
        quorum_test(test_orphans),
        quorum_test(test_late_minority),
        quorum_test(test_no_storm),
        quorum_test(test_extend_unknown),
        quorum_test(test_end_pays),
    };
    return quorum_run("quorum and faults");
}
