/* SPDX-License-Identifier: MIT */
/*
 * A real server behind a network that cuts a connection after every possible
 * number of bytes, either way, in each step of a lock's life. The server is
 * asked what it did; the call may not have said anything else.
 */
#include "rig.h"

#include "support/proxy.h"
#include "support/redis.h"

static struct redis server;

static inline int start_server(void **state)
{
    (void)state;
    return redis_start(&server, NULL);
}

static inline int stop_server(void **state)
{
    (void)state;
    redis_stop(&server);
    return 0;
}

struct wire {
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
};

/* Held now, and the server agrees. */
static inline void assert_holds(const struct wire *w)
{
    char value[256];
    assert_true(nxl_lock_held(w->lock));
    assert_true(redis_get(&server, "k", value, sizeof(value)));
    assert_string_equal(value, nxl_lock_token(w->lock));
}

/* The handle works. timeout_ms is short, and a busy machine may be slower than
 * that: what was not answered is tried again, but busy it is never. */
static inline void assert_recovers_in_time(const struct wire *w)
{
    int rc;
    do {
        int64_t end = test_now_ms() + 10000;
        do
            rc = nxl_lock_acquire(w->lock, 0);
        while ((rc == NXL_E_UNREACHABLE || rc == NXL_UNKNOWN) &&
               test_now_ms() < end);
        assert_int_equal(rc, NXL_OK);
        assert_holds(w);
        rc = nxl_lock_release(w->lock);
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        assert_true(test_now_ms() < end);
    } while (rc != NXL_OK); /* else it is in the way of what is measured */
    assert_false(redis_exists(&server, "k"));
}

/* A call that is cut ends because of the cut, long before its time is over. */
#define TERMS "timeout_ms=30000"
#define LONG_MS 30000
#define CUT_MS 10000

static void wire_client(struct wire *w, const char *params)
{
    char url[256];
    snprintf(url, sizeof(url), "%s?%s", proxy_url(w->proxy), params);
    w->client = client_of(url);
    w->lock = lock_of_name(w->client, "k", 30000);
}

static struct {
    enum proxy_way way;
    size_t bytes;
} cut; /* the latest one, for the message of a failure */

static void cut_after(const struct wire *w, enum proxy_way way, size_t bytes)
{
    cut.way = way;
    cut.bytes = bytes;
    proxy_cut_after(w->proxy, way, bytes);
}

static int report_cut(void **state)
{
    (void)state;
    if (!test_state.finished && !test_state.skipped)
        print_error("the latest cut: after %zu bytes %s the server\n",
            cut.bytes, cut.way == PROXY_UP ? "to" : "from");
    return 0;
}

static struct wire wire_open(void)
{
    struct wire w = {.proxy = proxy_to(&server, false)};
    redis_run(&server, "FLUSHALL", NULL);
    return w;
}

/* Whatever was cut, nothing is left when the client is gone. */
static void wire_drop(struct wire *w)
{
    nxl_lock_free(w->lock);
    nxl_client_free(w->client);
    assert_false(redis_exists(&server, "k"));
}

/* The handle works, on a new connection where one is needed; what was left
 * undone before does not make it busy. */
static void assert_recovers(const struct wire *w)
{
    assert_ends(nxl_lock_acquire(w->lock, 0), NXL_OK, CUT_MS);
    assert_holds(w);
    assert_ends(nxl_lock_release(w->lock), NXL_OK, CUT_MS);
    assert_false(redis_exists(&server, "k"));
}

/* Over TLS there are more bytes, and connecting takes longer: only a full run
 * cuts behind as many of them as otherwise. */
static size_t stride(size_t usual)
{
    bool all = !server.tls_always || getenv("NXLOCK_FULL");
    return all ? usual : 4 * usual + 1;
}

static size_t bytes_of(const struct wire *w, enum proxy_way way)
{
    return (size_t)proxy_bytes(w->proxy, way);
}

/* How many bytes that way a call takes, without a cut. */
static size_t measure(
    const struct wire *w, enum proxy_way way, int (*call)(nxl_lock *))
{
    size_t before = bytes_of(w, way);
    assert_int_equal(call(w->lock), NXL_OK);
    return bytes_of(w, way) - before;
}

static int try_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire(lock, 0);
}

static int extend(nxl_lock *lock)
{
    return nxl_lock_extend(lock, 0);
}

static int inspect(nxl_lock *lock)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    int rc = nxl_lock_inspect(lock, &holder);
    if (rc == NXL_OK) {
        assert_true(holder.ours);
        assert_string_equal(holder.value, nxl_lock_token(lock));
    }
    return rc;
}

/* ---------------------------------------------------- a first connection */

/* With a shorter INFO than was measured the cut comes only now. */
static void release_perhaps_cut(const struct wire *w)
{
    int rc = nxl_lock_release(w->lock);
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
}

/* INFO is not always of the same length: the server is asked, not the count,
 * whether it came to the SET. */
static void check_first_try(struct wire *w, int rc, size_t n, size_t all)
{
    bool held = redis_exists(&server, "k");
    if (n + 160 < all) /* longer than SET and its reply; another handshake */
        assert_int_not_equal(rc, NXL_UNKNOWN); /* may have done after it */
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
    if (rc == NXL_E_UNREACHABLE)
        assert_false(held);
    assert_int_equal(nxl_lock_held(w->lock), rc == NXL_OK);
    if (rc == NXL_OK)
        release_perhaps_cut(w);
    assert_recovers(w);
}

static void sweep_first(enum proxy_way way, bool waits)
{
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    size_t all = measure(&w, way, try_acquire);
    wire_drop(&w);
    for (size_t n = 0; n < all + 2; n += stride(n + 150 < all ? 101 : 3)) {
        wire_client(&w, TERMS);
        cut_after(&w, way, n);
        int64_t start = test_now_ms();
        int rc = nxl_lock_acquire(w.lock, waits ? LONG_MS : 0);
        assert_between(test_now_ms() - start, 0, CUT_MS);
        if (waits) {
            assert_int_equal(rc, NXL_OK);
            assert_holds(&w);
            release_perhaps_cut(&w);
            assert_recovers(&w);
        } else {
            check_first_try(&w, rc, n, all);
        }
        wire_drop(&w);
    }
    proxy_stop(w.proxy);
}

static void first_try_up(void **state)
{
    (void)state;
    sweep_first(PROXY_UP, false);
}

static void first_try_down(void **state)
{
    (void)state;
    sweep_first(PROXY_DOWN, false);
}

static void first_wait_up(void **state)
{
    (void)state;
    sweep_first(PROXY_UP, true);
}

static void first_wait_down(void **state)
{
    (void)state;
    sweep_first(PROXY_DOWN, true);
}

/* ------------------------------------------------ an established connection */

static void sweep_acquire(enum proxy_way way)
{
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    assert_recovers(&w);
    size_t all = measure(&w, way, try_acquire);
    assert_int_equal(nxl_lock_release(w.lock), NXL_OK);
    for (size_t n = 0; n < all; n += stride(1)) {
        cut_after(&w, way, n);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, CUT_MS);
        assert_not_held(w.lock);
        assert_recovers(&w);
    }
    wire_drop(&w);
    proxy_stop(w.proxy);
}

static void acquire_up(void **state)
{
    (void)state;
    sweep_acquire(PROXY_UP);
}

static void acquire_down(void **state)
{
    (void)state;
    sweep_acquire(PROXY_DOWN);
}

/* Repeated on a new connection, and the deadline only ever goes forward. */
static void sweep_held(enum proxy_way way, int (*call)(nxl_lock *))
{
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    assert_int_equal(nxl_lock_acquire(w.lock, 0), NXL_OK);
    size_t all = measure(&w, way, call);
    for (size_t n = 0; n < all; n += stride(2)) {
        uint64_t deadline = nxl_lock_deadline(w.lock);
        cut_after(&w, way, n);
        assert_ends(call(w.lock), NXL_OK, CUT_MS);
        assert_true(nxl_lock_deadline(w.lock) >= deadline);
        assert_holds(&w);
        int64_t left = nxl_lock_remaining_ms(w.lock);
        assert_true(redis_pttl(&server, "k") >= left);
    }
    assert_int_equal(nxl_lock_release(w.lock), NXL_OK);
    wire_drop(&w);
    proxy_stop(w.proxy);
}

static void extend_up(void **state)
{
    (void)state;
    sweep_held(PROXY_UP, extend);
}

static void extend_down(void **state)
{
    (void)state;
    sweep_held(PROXY_DOWN, extend);
}

static void inspect_up(void **state)
{
    (void)state;
    sweep_held(PROXY_UP, inspect);
}

static void inspect_down(void **state)
{
    (void)state;
    sweep_held(PROXY_DOWN, inspect);
}

/* OK when the first try did not get there, UNKNOWN when it did; gone in any
 * case. */
static void sweep_release(enum proxy_way way)
{
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    assert_int_equal(nxl_lock_acquire(w.lock, 0), NXL_OK);
    size_t all = measure(&w, way, nxl_lock_release);
    for (size_t n = 0; n < all; n += stride(1)) {
        assert_int_equal(nxl_lock_acquire(w.lock, 0), NXL_OK);
        cut_after(&w, way, n);
        assert_ends(nxl_lock_release(w.lock),
            way == PROXY_UP ? NXL_OK : NXL_UNKNOWN, CUT_MS);
        assert_not_held(w.lock);
        assert_false(redis_exists(&server, "k"));
    }
    assert_recovers(&w);
    wire_drop(&w);
    proxy_stop(w.proxy);
}

static void release_up(void **state)
{
    (void)state;
    sweep_release(PROXY_UP);
}

static void release_down(void **state)
{
    (void)state;
    sweep_release(PROXY_DOWN);
}

/* --------------------------------------------------------------- clean-up */

/* The grant does not get through in time, and then the undoing behind it is
 * cut: it is done on the next connection. */
static void undoing_up(void **state)
{
    (void)state;
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    assert_recovers(&w);
    size_t set = measure(&w, PROXY_UP, try_acquire);
    assert_int_equal(nxl_lock_release(w.lock), NXL_OK);
    wire_drop(&w);
    wire_client(&w, "timeout_ms=40");
    assert_recovers_in_time(&w);
    size_t before = bytes_of(&w, PROXY_UP);
    proxy_hold(w.proxy, PROXY_DOWN, true);
    assert_int_equal(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN);
    assert_true(proxy_await(w.proxy, PROXY_UP, before + set + 100));
    size_t undoing = bytes_of(&w, PROXY_UP) - before - set;
    proxy_hold(w.proxy, PROXY_DOWN, false);
    assert_recovers_in_time(&w);
    for (size_t n = 1; n < undoing; n += stride(29)) {
        proxy_hold(w.proxy, PROXY_DOWN, true);
        cut_after(&w, PROXY_UP, set + n);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, CUT_MS);
        assert_eventually(proxy_connections(w.proxy) == 0);
        proxy_hold(w.proxy, PROXY_DOWN, false);
        rig_idle();
        assert_recovers_in_time(&w);
    }
    wire_drop(&w);
    proxy_stop(w.proxy);
}

/* The connection on which it is paid is cut as well. */
static void paying_up(void **state)
{
    (void)state;
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    size_t before = bytes_of(&w, PROXY_UP);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_int_equal(nxl_lock_inspect(w.lock, &holder), NXL_FREE);
    size_t shake = bytes_of(&w, PROXY_UP) - before;
    for (size_t n = shake - 100; n < shake + 400; n += stride(7)) {
        cut_after(&w, PROXY_DOWN, 2);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, CUT_MS);
        cut_after(&w, PROXY_UP, n);
        assert_ends(nxl_lock_acquire(w.lock, LONG_MS), NXL_OK, CUT_MS);
        assert_holds(&w);
        int rc = nxl_lock_release(w.lock); /* may meet the cut itself */
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        assert_false(redis_exists(&server, "k"));
    }
    wire_drop(&w);
    proxy_stop(w.proxy);
}

static void paying_down(void **state)
{
    (void)state;
    struct wire w = wire_open();
    wire_client(&w, TERMS);
    size_t before = bytes_of(&w, PROXY_DOWN);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_int_equal(nxl_lock_inspect(w.lock, &holder), NXL_FREE);
    size_t shake = bytes_of(&w, PROXY_DOWN) - before;
    for (size_t n = shake - 40; n < shake + 24; n += stride(1)) {
        cut_after(&w, PROXY_DOWN, 2);
        assert_ends(nxl_lock_acquire(w.lock, 0), NXL_UNKNOWN, CUT_MS);
        cut_after(&w, PROXY_DOWN, n);
        assert_ends(nxl_lock_acquire(w.lock, LONG_MS), NXL_OK, CUT_MS);
        assert_holds(&w);
        int rc = nxl_lock_release(w.lock); /* may meet the cut itself */
        assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
        assert_false(redis_exists(&server, "k"));
    }
    wire_drop(&w);
    proxy_stop(w.proxy);
}

#define sweep_test(test) cmocka_unit_test_teardown(test, report_cut)

int main(void)
{
    const struct CMUnitTest tests[] = {
        sweep_test(first_try_up),
        sweep_test(first_try_down),
        sweep_test(first_wait_up),
        sweep_test(first_wait_down),
        sweep_test(acquire_up),
        sweep_test(acquire_down),
        sweep_test(extend_up),
        sweep_test(extend_down),
        sweep_test(inspect_up),
        sweep_test(inspect_down),
        sweep_test(release_up),
        sweep_test(release_down),
        sweep_test(undoing_up),
        sweep_test(paying_up),
        sweep_test(paying_down),
    };
    return cmocka_run_group_tests_name(
        "cut_sweep", tests, start_server, stop_server);
}
