/* SPDX-License-Identifier: MIT */
/*
 * Fencing tokens over several servers: a grant whose token does not reach a
 * majority is none, and those of threads grow in the order of the grants while
 * servers and connections fail. Without faults: scenes/quorum_fence.scenes.
 */
#include "support/test.h"

#include "live/quorum_rig.h"

#define TERMS NO_GUARD "&timeout_ms=600"
#define FAR UINT64_C(8000000000000000) /* beyond the clock's numbers */

static nxl_lock *fenced_lock(nxl_client *client, int64_t ttl_ms)
{
    return lock_with(
        client, "k", .ttl_ms = ttl_ms, .fence = 1, .retry_max_ms = 10);
}

static void counter_is(size_t i, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    redis_run(&servers[i], "SET", "{k}:f", text, NULL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        quorum_test(a_wait_goes_on),
        quorum_test(in_the_order_of_grants),
    };
    return quorum_run("fencing numbers over several servers");
}
