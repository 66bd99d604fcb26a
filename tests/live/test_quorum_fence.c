/* SPDX-License-Identifier: MIT */
/*
 * Fencing numbers over several servers: they grow in the order of the grants,
 * also where two grants have only one server in common and the counters of all
 * are far apart; a grant whose number does not reach a majority is none.
 */
#include "support/test.h"

#include "live/fence_rig.h"
#include "wire/script.h"

#define TERMS NO_GUARD "&timeout_ms=600"
/* One attempt suffices, also on a machine that pauses for a second. */
#define ONE_ATTEMPT NO_GUARD "&timeout_ms=4000"

static void only_these(size_t count, unsigned set)
{
    for (size_t i = 0; i < count; i++)
        if (set & (1U << i))
            redis_thaw(&servers[i]);
        else
            redis_freeze(&servers[i]);
}

static uint64_t one_grant(nxl_client *client)
{
    nxl_lock *lock = fenced_lock(client, 6000);
    assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
    uint64_t fence = nxl_lock_fence(lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(lock);
    return fence;
}

static void a_majority_has_it(void **state)
{
    for (size_t count = 2; count <= 7; count++) {
        nxl_client *client = quorum_client(count, TERMS);
        uint64_t last = 0;
        for (int i = 0; i < 5; i++) {
            for (size_t s = 0; s < count; s++)
                counter_is(s, FAR + (uint64_t)((7 * s + 3 * count) % 11) * 100);
            size_t have = 0;
            /* It is for a majority to know the last one. */
            for (size_t s = 0; i > 0 && s <= count / 2; s++)
                counter_is(s, last);
            uint64_t fence = one_grant(client);
            assert_true(fence > last);
            for (size_t s = 0; s < count; s++)
                have += counter_at(s) >= fence;
            assert_true(have > count / 2);
            last = fence;
        }
        nxl_client_free(client);
        quorum_clean(NULL);
    }
}

/* X is granted by A, B and C, whose counters are 100, 1 and 1; Y by C, D and
 * E. The highest number that each is given would be 101, and then 2. */
static void one_server_in_common(void **state)
{
    nxl_client *client = quorum_client(5, ONE_ATTEMPT);
    for (size_t i = 0; i < 5; i++)
        counter_is(i, i == 0 ? FAR + 100 : FAR);
    connect_all(client);
    only_these(5, 0x07);
    uint64_t x = one_grant(client);
    assert_true(x == FAR + 101);
    only_these(5, 0x1c);
    uint64_t y = one_grant(client);
    assert_true(y > x);
    only_these(5, 0x1f);
    nxl_client_free(client);
}

/* Equal counters: nothing has to be raised. */
static void equal_numbers_cost_nothing(void **state)
{
    nxl_client *client = quorum_client(3, ONE_ATTEMPT);
    connect_all(client);
    one_grant(client);
    for (size_t i = 0; i < 3; i++)
        counter_is(i, FAR);
    redis_run(&servers[0], "CONFIG", "RESETSTAT", NULL);
    assert_true(one_grant(client) == FAR + 1);
    /* The grant and the release, no more; it may ask the one that was late. */
    assert_eventually(redis_calls(&servers[0], "evalsha") >= 2);
    assert_true(redis_calls(&servers[0], "evalsha") <= 3);
    nxl_client_free(client);
}

/* Raised, too, it has an end; but not ahead of the server's own clock. */
static void it_ends_at_all(void **state)
{
    nxl_client *client = quorum_client(3, NO_GUARD);
    connect_all(client);
    for (int i = 0; i < 10; i++) {
        one_grant(client);
        for (size_t s = 0; s < 3; s++)
            if (counter_at(s) != 0)
                assert_between(
                    redis_pttl(&servers[s], COUNTER), 86300000, 86400000);
    }
    counter_is(0, FAR);
    redis_run(&servers[0], "PEXPIRE", COUNTER, "80000", NULL);
    /* A grant may be decided before the first server has answered. */
    assert_eventually((one_grant(client), counter_at(1) >= FAR));
    assert_int_equal(redis_pttl(&servers[0], COUNTER), -1);
    assert_int_equal(redis_pttl(&servers[1], COUNTER), -1);
    nxl_client_free(client);
}

/* What another program keeps at the counter's key is not overwritten. */
static void what_is_no_counter_is_not_raised(void **state)
{
    (void)state;
    static const char token[] = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    struct slice raise = scripts[SCRIPT_RAISE].body;
    for (int list = 0; list < 2; list++) {
        redis_run(servers, "DEL", "job", COUNTER, NULL);
        redis_run(servers, "SET", "job", token, NULL);
        if (list)
            redis_run(servers, "RPUSH", COUNTER, "x", NULL);
        else
            redis_run(servers, "SET", COUNTER, "words", NULL);
        redisReply *reply = redis_command(servers, "EVAL", raise.data, "2",
            "job", COUNTER, token, "7", "1000", NULL);
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        assert_contains(reply->str, "should hold the fencing counter");
        freeReplyObject(reply);
    }
}

static void too_few_can_be_raised(void **state)
{
    redis_needs_acl(servers);
    nxl_client *client = quorum_client(3, TERMS);
    nxl_lock *lock = fenced_lock(client, 6000);
    connect_all(client);
    /* The script that grants runs; the one that raises does not. */
    for (size_t i = 0; i < 3; i++) {
        redis_run(&servers[i], "SCRIPT", "FLUSH", NULL);
        counter_is(i, FAR);
    }
    one_grant(client);
    for (size_t i = 1; i < 3; i++)
        redis_run(&servers[i], "ACL", "SETUSER", "default", "-eval", NULL);
    /* Whichever two are first, one of them would have to be raised. */
    counter_is(0, FAR + 1000);
    counter_is(1, FAR + 500);
    /* Not for ever, for they never will. */
    int rc = nxl_lock_acquire(lock, NXL_FOREVER);
    assert_result(rc, NXL_UNKNOWN, lock);
    assert_contains(nxl_lock_errmsg(lock), "NOPERM");
    assert_int_equal(nxl_lock_fence(lock), 0);
    assert_false(nxl_lock_held(lock));
    for (size_t i = 1; i < 3; i++)
        redis_run(&servers[i], "ACL", "SETUSER", "default", "+@all", NULL);
    assert_eventually(keys_at(3, "k") == 0);
    end(lock, client);
}

/* ------------------------------------------------- a wait goes on after it */

static struct attempt {
    nxl_lock *lock;
    int64_t wait_ms;
    _Atomic int result;
} attempt;

static void attempt_is(nxl_lock *lock, int64_t wait_ms)
{
    attempt.lock = lock;
    attempt.wait_ms = wait_ms;
    attempt.result = NXL_PENDING;
}

static void *attempts(void *arg)
{
    struct attempt *a = arg;
    a->result = nxl_lock_acquire(a->lock, a->wait_ms);
    return NULL;
}

static void hold_all(bool held)
{
    for (size_t i = 0; i < 3; i++)
        proxy_hold(proxies[i], PROXY_UP, held);
}

/* The grants arrive, the numbers do not: the last two servers would have to be
 * raised. *first is the token that was granted then. False: they did. */
static bool cut_short(const char *key, char *first, size_t size)
{
    pthread_t thread;
    for (size_t i = 0; i < 3; i++)
        proxy_delay(proxies[i], PROXY_DOWN, 150); /* it is granted meanwhile */
    pthread_create(&thread, NULL, attempts, &attempt);
    assert_eventually(keys_at(3, key) == 3 || attempt.result != NXL_PENDING);
    hold_all(true);
    redis_get(&servers[1], key, first, size);
    for (size_t i = 0; i < 3; i++)
        proxy_delay(proxies[i], PROXY_DOWN, 0);
    uint64_t raise = proxy_bytes(proxies[1], PROXY_UP) + 1;
    /* It is granted at once where no number had to be raised any more. */
    assert_eventually(proxy_bytes(proxies[1], PROXY_UP) >= raise ||
                      attempt.result != NXL_PENDING);
    uint64_t undo = proxy_bytes(proxies[1], PROXY_UP) + 1;
    bool undone = attempt.result == NXL_PENDING &&
                  proxy_await(proxies[1], PROXY_UP, undo);
    hold_all(false);
    pthread_join(thread, NULL);
    return undone;
}

/* On a busy machine the numbers may be there before they are held up. */
static void insist_on_cutting(nxl_lock *lock, char *first, size_t size)
{
    for (unsigned tries = 0;; tries++) {
        int64_t wait_ms = attempt.wait_ms;
        for (size_t i = 0; i < 3; i++)
            counter_is(i, FAR + (i == 0 ? 1000 : i));
        if (cut_short("k", first, size))
            return;
        assert_true(tries < 10);
        if (attempt.result == NXL_OK)
            (void)!nxl_lock_release(lock);
        assert_eventually(keys_at(3, "k") == 0);
        attempt_is(lock, wait_ms);
    }
}

static void a_wait_goes_on(void **state)
{
    char first[128] = "";
    nxl_client *client = proxied_client(3, TERMS);
    nxl_lock *lock = fenced_lock(client, 6000);
    connect_all(client);
    one_grant(client);
    for (int64_t wait_ms = 0; wait_ms <= 20000; wait_ms += 20000) {
        attempt_is(lock, wait_ms);
        insist_on_cutting(lock, first, sizeof(first));
        assert_result(attempt.result, wait_ms > 0 ? NXL_OK : NXL_UNKNOWN, lock);
        if (wait_ms > 0)
            continue;
        assert_contains(nxl_lock_errmsg(lock), "no answer in time");
        assert_eventually(keys_at(3, "k") == 0);
    }
    assert_string_not_equal(nxl_lock_token(lock), first);
    assert_true(standing(3, "k", lock) >= 2);
    assert_true(nxl_lock_fence(lock) > FAR + 1);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_eventually(keys_at(3, "k") == 0);
    end(lock, client);
}

/* ------------------------------------------------------------- with faults */

enum { THREADS = 4 };
#define GRANTS (getenv("NXLOCK_FULL") ? 2000 : 800)

static struct shared {
    pthread_mutex_t mutex;
    uint64_t last;
    int grants, bad;
    _Atomic bool over;
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *grants(void *arg)
{
    nxl_client *client = arg;
    nxl_lock *lock = fenced_lock(client, 5000);
    while (!shared.over) {
        if (nxl_lock_acquire(lock, 2000) != NXL_OK)
            continue;
        uint64_t fence = nxl_lock_fence(lock);
        pthread_mutex_lock(&shared.mutex);
        if (nxl_lock_held(lock)) {
            shared.bad += fence <= shared.last;
            shared.last = fence;
            shared.over = ++shared.grants >= GRANTS || shared.bad;
        }
        pthread_mutex_unlock(&shared.mutex);
        int rc = nxl_lock_release(lock);
        (void)rc;
    }
    nxl_lock_free(lock);
    return NULL;
}

static void in_the_order_of_grants(void **state)
{
    pthread_t thread[THREADS];
    nxl_client *client[THREADS];
    for (size_t i = 0; i < 5; i++)
        counter_is(i, FAR + i * 1000000);
    for (int i = 0; i < THREADS; i++) {
        client[i] = proxied_client(5, TERMS);
        pthread_create(&thread[i], NULL, grants, client[i]);
    }
    for (unsigned n = 0; !shared.over; n++) {
        size_t a = n % 5, b = (n * 3 + 1) % 5;
        switch (n % 4) {
        case 0:
            redis_freeze(&servers[a]);
            break;
        case 1:
            proxy_cut(proxies[a], n % 8 == 1);
            proxy_delay(proxies[b], PROXY_DOWN, 20);
            break;
        case 2:
            proxy_hold(proxies[a], PROXY_DOWN, true);
            break;
        default:
            redis_freeze(&servers[a]);
            proxy_delay(proxies[b], PROXY_UP, 15);
            break;
        }
        test_pause_ms(15);
        redis_thaw(&servers[a]);
        proxy_hold(proxies[a], PROXY_DOWN, false);
        proxy_delay(proxies[b], PROXY_DOWN, 0);
        proxy_delay(proxies[b], PROXY_UP, 0);
        test_pause_ms(2);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        nxl_client_free(client[i]);
    }
    if (shared.bad)
        print_error("HARM: a fencing number did not grow\n");
    assert_int_equal(shared.bad, 0);
    assert_true(shared.grants >= GRANTS);
    assert_eventually(keys_at(5, "k") == 0);
}

/* What the last server answers is not read. Even so it is sent the text of a
 * script that it does not have, if not by the first acquire, then by the second
 * one: else a lock would never be held there. */
static void the_last_one_holds_it_too(void **state)
{
    nxl_client *client = proxied_client(3, ONE_ATTEMPT);
    nxl_lock *locks[] = {fenced_lock(client, 20000),
        lock_with(client, "k", .ttl_ms = 20000, .shared = 1)};
    do { /* until it is connected */
        assert_result(nxl_lock_acquire(locks[1], 20000), NXL_OK, locks[1]);
        assert_result(nxl_lock_release(locks[1]), NXL_OK, locks[1]);
    } while (redis_calls(&servers[2], "eval") == 0);
    proxy_delay(proxies[2], PROXY_DOWN, 30);
    for (int i = 0; i < 6; i++) {
        nxl_lock *lock = locks[i % 2];
        for (int s = 0; s < 3; s++)
            redis_run(&servers[s], "SCRIPT", "FLUSH", NULL);
        for (int k = 0; k < 2; k++) {
            assert_result(nxl_lock_acquire(lock, 20000), NXL_OK, lock);
            if (k == 1)
                assert_eventually(redis_exists(&servers[2], "k"));
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
            /* The release goes on during calls. */
            assert_eventually(nxl_lock_inspect(lock, NULL) == NXL_FREE &&
                              keys_at(3, "k") == 0);
        }
    }
    nxl_lock_free(locks[1]);
    end(locks[0], client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(a_majority_has_it),
        quorum_test(one_server_in_common),
        quorum_test(equal_numbers_cost_nothing),
        quorum_test(it_ends_at_all),
        quorum_test(what_is_no_counter_is_not_raised),
        quorum_test(too_few_can_be_raised),
        quorum_test(a_wait_goes_on),
        quorum_test(in_the_order_of_grants),
        quorum_test(the_last_one_holds_it_too),
    };
    return quorum_run("fencing numbers over several servers");
}
