/* SPDX-License-Identifier: MIT */
/*
 * A network that cuts a connection after every possible number of bytes, either
 * way, in the steps of a handle that shares its lock after which something may
 * be left behind: acquire, wait, release, and the cleanup after a cut. The
 * handshake, extend and inspect do not depend on the kind of lock: see
 * fake/test_cut_sweep.c.
 *
 * Another client holds one of two permits all the time. So a permit that a cut
 * has left behind would fill the pool, and the handle would find it busy. Each
 * sweep goes through three kinds of tokens: of the same kind as the other's, of
 * another limit, and of a shared lock.
 */
#include "live/permit_rig.h"
#include "live/proxy_rig.h"

/* A call that is cut ends because of the cut, long before its time is over. */
#define TERMS "timeout_ms=30000"
#define LONG_MS 30000
#define CUT_MS 10000

enum { KINDS = 3 };

static struct scene {
    struct proxy *proxy;
    nxl_client *client, *direct;
    nxl_lock *lock[KINDS];  /* of client, through the proxy */
    nxl_lock *beside, *two; /* of direct; beside always holds one of two */
} at;

static size_t stride(size_t usual)
{
    return getenv("NXLOCK_FULL") ? 1 : usual;
}

static size_t bytes_of(enum proxy_way way)
{
    return (size_t)proxy_bytes(at.proxy, way);
}

static long long used(void)
{
    return permit_check().used;
}

static bool is_holder(const nxl_lock *lock)
{
    redisReply *r =
        redis_command(&server, "ZSCORE", "k", nxl_lock_token(lock), NULL);
    bool found = r->type == REDIS_REPLY_STRING;
    freeReplyObject(r);
    return found;
}

#define assert_ends(call, expected, lock)                                      \
    do {                                                                       \
        int64_t ends_began = test_now_ms();                                    \
        assert_result(call, expected, lock);                                   \
        assert_between(test_now_ms() - ends_began, 0, CUT_MS);                 \
    } while (0)

static void connect_anew(const char *terms)
{
    if (at.client) {
        for (int i = 0; i < KINDS; i++)
            nxl_lock_free(at.lock[i]);
        nxl_client_free(at.client);
    }
    at.client = via(at.proxy, terms);
    at.lock[0] = lock_with(at.client, "k", .permits = 2, .ttl_ms = 30000);
    at.lock[1] = lock_with(at.client, "k", .permits = 4, .ttl_ms = 30000);
    at.lock[2] = lock_with(at.client, "k", .shared = 1, .ttl_ms = 30000);
}

static int set_up(void **state)
{
    live_clean(state);
    at = (struct scene){
        .proxy = proxy_to_server(), .direct = new_client("max_ttl_ms=600000")};
    at.beside = lock_with(at.direct, "k", .permits = 2, .ttl_ms = 600000);
    at.two = lock_with(at.direct, "k", .permits = 2, .ttl_ms = 600000);
    assert_result(nxl_lock_acquire(at.beside, 0), NXL_OK, at.beside);
    connect_anew(TERMS);
    return 0;
}

/* The permit of the other client was held all the time, and when all are gone
 * no key is left. */
static int tear_down(void **state)
{
    for (int i = 0; i < KINDS; i++)
        nxl_lock_free(at.lock[i]);
    nxl_client_free(at.client);
    assert_int_equal(used(), 1);
    assert_result(nxl_lock_release(at.beside), NXL_OK, at.beside);
    nxl_lock_free(at.two);
    end(at.beside, at.direct);
    proxy_stop(at.proxy);
    assert_int_equal(redis_lasting_keys(&server), 0);
    return 0;
}

/* The handle is granted a permit at once: a permit that was left behind would
 * fill the pool. */
static void assert_recovers(nxl_lock *lock)
{
    assert_false(nxl_lock_held(lock));
    assert_ends(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(is_holder(lock));
    assert_int_equal(used(), 2);
    assert_ends(nxl_lock_release(lock), NXL_OK, lock);
    assert_int_equal(used(), 1);
}

static int try_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 0);
}

static int inspect(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    return nxl_lock_inspect(lock, &holder);
}

/* A cut that is ordered and has not come yet will not; and if it came behind an
 * answer, that is found out now. */
static void cut_no_more(enum proxy_way way)
{
    proxy_cut_after(at.proxy, way, SIZE_MAX / 2);
    assert_result(inspect(at.lock[0]), NXL_OK, at.lock[0]);
}

/* How many bytes a call takes that way without a cut, of the kind of token that
 * takes most. */
static size_t measure(enum proxy_way way, int (*call)(nxl_lock *))
{
    size_t most = 0;
    assert_recovers(at.lock[0]); /* connected, and the scripts are there */
    for (int i = 0; i < KINDS; i++) {
        nxl_lock *lock = at.lock[i];
        bool acquires = call == try_acquire;
        if (!acquires)
            assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        size_t before = bytes_of(way);
        assert_result(call(lock), NXL_OK, lock);
        size_t size = bytes_of(way) - before;
        most = size > most ? size : most;
        if (call != nxl_lock_release)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    return most;
}

static void sweep_acquire(enum proxy_way way)
{
    size_t all = measure(way, try_acquire);
    for (size_t n = 0; n < all; n += way == PROXY_UP ? stride(5) : 1) {
        nxl_lock *lock = at.lock[n % KINDS];
        assert_recovers(lock);
        proxy_cut_after(at.proxy, way, n);
        assert_ends(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        assert_recovers(lock);
    }
}

/* Somebody waits for the permit, and is granted it. */
static void sweep_release(enum proxy_way way)
{
    static struct waiter waits;
    size_t all = measure(way, nxl_lock_release);
    for (size_t n = 0; n < all; n += way == PROXY_UP ? stride(9) : 1) {
        nxl_lock *lock = at.lock[n % KINDS];
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        waiter_start(&waits, at.two, LONG_MS);
        assert_eventually(redis_run(&server, "ZCARD", "{k}:nxl-l", NULL) == 1);
        proxy_cut_after(at.proxy, way, n);
        int rc = nxl_lock_release(lock);
        assert_true(rc == NXL_OK || (rc == NXL_UNKNOWN && way == PROXY_DOWN));
        assert_false(nxl_lock_held(lock));
        assert_false(is_holder(lock));
        assert_int_equal(waiter_join(&waits), NXL_OK);
        assert_between(waits.ended_ms - waits.began_ms, 0, CUT_MS);
        assert_int_equal(used(), 2);
        assert_result(nxl_lock_release(at.two), NXL_OK, at.two);
        assert_recovers(lock);
    }
}

/* Cut anywhere on either connection of a wait in line, its end and the release
 * afterwards. */
static void sweep_wait(enum proxy_way way)
{
    static struct waiter waits;
    size_t all = 0;
    for (size_t n = 0; n <= all; n += stride(37)) {
        nxl_lock *lock = at.lock[n % KINDS];
        size_t before = bytes_of(way);
        assert_result(nxl_lock_acquire(at.two, 0), NXL_OK, at.two);
        if (n > 0)
            proxy_cut_after(at.proxy, way, n);
        waiter_start(&waits, lock, LONG_MS);
        assert_eventually(redis_run(&server, "ZCARD", "{k}:nxl-l", NULL) > 0);
        assert_result(nxl_lock_release(at.two), NXL_OK, at.two);
        assert_int_equal(waiter_join(&waits), NXL_OK);
        assert_between(waits.ended_ms - waits.began_ms, 0, CUT_MS);
        assert_true(nxl_lock_held(lock));
        assert_true(is_holder(lock));
        assert_int_equal(used(), 2);
        int rc = nxl_lock_release(lock);
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        assert_int_equal(used(), 1);
        if (n == 0)
            all = bytes_of(way) - before;
        connect_anew(TERMS);
        assert_false(redis_exists(&server, "{k}:nxl-l"));
    }
}

/* The answer to an acquire is cut, and then the connection on which the cleanup
 * is sent. */
static void sweep_cleanup(enum proxy_way way)
{
    connect_anew(TERMS);
    size_t before = bytes_of(way);
    assert_result(inspect(at.lock[0]), NXL_OK, at.lock[0]);
    size_t shake = bytes_of(way) - before;
    size_t from = shake > 100 ? shake - 100 : 0;
    size_t past = way == PROXY_UP ? 500 : 24;
    for (size_t n = from; n < shake + past; n += stride(9)) {
        nxl_lock *lock = at.lock[n % KINDS];
        proxy_cut_after(at.proxy, PROXY_DOWN, 2);
        assert_ends(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
        proxy_cut_after(at.proxy, way, n);
        assert_ends(nxl_lock_acquire(lock, LONG_MS), NXL_OK, lock);
        assert_true(is_holder(lock));
        assert_int_equal(used(), 2);
        int rc = nxl_lock_release(lock); /* may meet the cut itself */
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        cut_no_more(way);
        assert_recovers(lock);
    }
}

struct cut {
    void (*sweep)(enum proxy_way way);
    enum proxy_way way;
};

static void play(void **state)
{
    const struct cut *cut = *state;
    cut->sweep(cut->way);
}

#define cut_test(sweep, way)                                                   \
    {                                                                          \
#sweep ", " #way, play, set_up, tear_down, &(struct cut)               \
        {                                                                      \
            sweep, way                                                         \
        }                                                                      \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cut_test(sweep_acquire, PROXY_UP),
        cut_test(sweep_acquire, PROXY_DOWN),
        cut_test(sweep_release, PROXY_UP),
        cut_test(sweep_release, PROXY_DOWN),
        cut_test(sweep_wait, PROXY_UP),
        cut_test(sweep_wait, PROXY_DOWN),
        cut_test(sweep_cleanup, PROXY_UP),
        cut_test(sweep_cleanup, PROXY_DOWN),
    };
    return live_run_long("permit cuts");
}
