/* SPDX-License-Identifier: MIT */
/*
 * Every fault at every step, on a real server: the call returns by its
 * deadline with what may be concluded and no more, nothing stands at the
 * server longer than its ttl, and when the fault is over the same handle
 * works again.
 */
#include "support/test.h"

#include <pthread.h>

#include "live/proxy_rig.h"

#define KEY "invoice:42"

/* QUIET_MS: before a connection that was silent for more than a millisecond
 * is used again, it is looked at; the tests of what is found then wait so
 * long. Within it a dead connection is met by the command itself. */
enum { TTL_MS = 20000, TIMEOUT_MS = 150, DELAY_MS = 200, QUIET_MS = 3 };

enum step { CONNECT, ACQUIRE, EXTEND, RELEASE, INSPECT, IDLE, STEPS };

struct rig {
    enum step step;
    struct proxy *proxy;
    nxl_client *client;
    nxl_lock *lock;
    pthread_t helper;
    bool helped;
    bool waited;       /* for the lock */
    uint64_t reply_at; /* bytes of replies before the step */
};

struct fault {
    const char *name;
    void (*begin)(struct rig *);
    void (*end)(struct rig *);
    int expected[STEPS];
};

/* ------------------------------------------------------------- the faults */

static void freeze(struct rig *rig)
{
    (void)rig;
    redis_freeze(&server);
}

static void thaw(struct rig *rig)
{
    (void)rig;
    redis_thaw(&server);
}

static void go_down(struct rig *rig)
{
    (void)rig;
    redis_kill(&server);
    test_pause_ms(QUIET_MS);
}

static void start_again(struct rig *rig)
{
    (void)rig;
    redis_restart(&server);
}

static void nothing(struct rig *rig)
{
    (void)rig;
}

/* When the server has answered, and not a byte of that has passed. */
static void *reset_on_reply(void *data)
{
    struct rig *rig = data;
    proxy_await(rig->proxy, PROXY_DOWN, rig->reply_at + 1);
    proxy_cut(rig->proxy, true);
    proxy_hold(rig->proxy, PROXY_DOWN, false);
    return NULL;
}

static void reset(struct rig *rig)
{
    if (rig->step == IDLE) {
        proxy_cut(rig->proxy, true);
        return;
    }
    rig->reply_at = proxy_bytes(rig->proxy, PROXY_DOWN);
    proxy_hold(rig->proxy, PROXY_DOWN, true);
    rig->helped = pthread_create(&rig->helper, NULL, reset_on_reply, rig) == 0;
    assert_true(rig->helped);
}

static void after_reset(struct rig *rig)
{
    if (rig->helped)
        pthread_join(rig->helper, NULL);
    rig->helped = false;
}

/* Behind the first two bytes of the reply: ":1" without its end. */
static void cut_reply(struct rig *rig)
{
    if (rig->step == IDLE)
        proxy_cut(rig->proxy, false);
    else
        proxy_cut_after(rig->proxy, PROXY_DOWN, 2);
}

static void cut_request(struct rig *rig)
{
    if (rig->step == IDLE)
        proxy_cut(rig->proxy, false);
    else
        proxy_cut_after(rig->proxy, PROXY_UP, 20);
}

static void delay(struct rig *rig)
{
    proxy_delay(rig->proxy, PROXY_DOWN, DELAY_MS);
}

/* It is over when the last late byte has come. */
static void hurry(struct rig *rig)
{
    test_pause_ms(DELAY_MS);
    proxy_delay(rig->proxy, PROXY_DOWN, 0);
}

static void drop(struct rig *rig)
{
    proxy_drop(rig->proxy, PROXY_DOWN, true);
}

/* A stream that lacks bytes cannot go on. */
static void after_drop(struct rig *rig)
{
    proxy_cut(rig->proxy, false);
    proxy_drop(rig->proxy, PROXY_DOWN, false);
}

/* What may be concluded: of a command that may have been applied, unknown;
 * of one that was not, or that changes nothing, that the server was not
 * reached. An extend or inspect whose connection broke is asked again. */
static const struct fault faults[] = {
    {"frozen", freeze, thaw,
        {NXL_E_UNREACHABLE, NXL_UNKNOWN, NXL_UNKNOWN, NXL_UNKNOWN,
            NXL_E_UNREACHABLE, NXL_OK}},
    {"killed", go_down, start_again,
        {NXL_E_UNREACHABLE, NXL_E_UNREACHABLE, NXL_E_UNREACHABLE,
            NXL_E_UNREACHABLE, NXL_E_UNREACHABLE, NXL_LOST}},
    {"restarted", start_again, nothing,
        {NXL_OK, NXL_OK, NXL_LOST, NXL_LOST, NXL_FREE, NXL_LOST}},
    /* A connection that is lost in its handshake is not made again at once: a
     * call that does not wait (wait_ms 0) has not reached the server. */
    {"reset", reset, after_reset,
        {NXL_E_UNREACHABLE, NXL_UNKNOWN, NXL_OK, NXL_UNKNOWN, NXL_OK, NXL_OK}},
    {"reply cut", cut_reply, nothing,
        {NXL_E_UNREACHABLE, NXL_UNKNOWN, NXL_OK, NXL_UNKNOWN, NXL_OK, NXL_OK}},
    {"request cut", cut_request, nothing,
        {NXL_E_UNREACHABLE, NXL_UNKNOWN, NXL_OK, NXL_OK, NXL_OK, NXL_OK}},
    {"late", delay, hurry,
        {NXL_E_UNREACHABLE, NXL_UNKNOWN, NXL_UNKNOWN, NXL_UNKNOWN,
            NXL_E_UNREACHABLE, NXL_OK}},
    {"dropped", drop, after_drop,
        {NXL_E_UNREACHABLE, NXL_UNKNOWN, NXL_UNKNOWN, NXL_UNKNOWN,
            NXL_E_UNREACHABLE, NXL_OK}},
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

/* ----------------------------------------------------------------- the rig */

#define URL_MORE "timeout_ms=150" /* TIMEOUT_MS */

static void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->proxy = proxy_to_server();
    rig->client = via(rig->proxy, URL_MORE);
    rig->lock = new_lock(rig->client, KEY, TTL_MS);
}

/* Past the proxy: what it makes of a dead server is not the server's word. */
static void rig_go_direct_with(struct rig *rig, const char *parameters)
{
    end(rig->lock, rig->client);
    rig->client = new_client(parameters);
    rig->lock = new_lock(rig->client, KEY, TTL_MS);
}

static void rig_go_direct(struct rig *rig)
{
    rig_go_direct_with(rig, URL_MORE);
}

static void rig_close(struct rig *rig)
{
    end(rig->lock, rig->client);
    proxy_stop(rig->proxy);
}

/* Whatever stands there has an end in time. A lease that was waited for in line
 * is a tenth longer. */
static void assert_leased(const struct rig *rig)
{
    int64_t left_ms = redis_pttl(&server, KEY);
    if (left_ms != -2) /* no such key */
        assert_between(left_ms, 1, rig->waited ? TTL_MS + TTL_MS / 10 : TTL_MS);
}

static bool stands(struct rig *rig)
{
    char value[512];
    return redis_get(&server, KEY, value, sizeof(value)) &&
           strcmp(value, nxl_lock_token(rig->lock)) == 0;
}

static void get_ready(struct rig *rig)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    if (rig->step == ACQUIRE) /* a connection, but no lock */
        assert_eventually(nxl_lock_inspect(rig->lock, &holder) == NXL_FREE);
    else if (rig->step != CONNECT)
        assert_result(nxl_lock_acquire(rig->lock, 5000), NXL_OK, rig->lock);
}

static int call(struct rig *rig)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    switch (rig->step) {
    case CONNECT:
    case ACQUIRE:
        return nxl_lock_acquire(rig->lock, 0);
    case EXTEND:
        return nxl_lock_extend(rig->lock, 0);
    case INSPECT:
        return nxl_lock_inspect(rig->lock, &holder);
    default:
        return nxl_lock_release(rig->lock);
    }
}

/* The lease the handle believes in after the call is one that it may. */
static void assert_held_rightly(struct rig *rig, int rc)
{
    bool held = nxl_lock_held(rig->lock);
    if (rig->step == CONNECT || rig->step == ACQUIRE)
        assert_int_equal(held, rc == NXL_OK);
    else if (rig->step == EXTEND)
        assert_int_equal(held, rc != NXL_LOST);
    else if (rig->step == INSPECT)
        assert_true(held);
    else
        assert_false(held);
}

/* The fault is over. */
static void assert_works_again(struct rig *rig)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    if (nxl_lock_held(rig->lock)) {
        int expected = stands(rig) ? NXL_OK : NXL_LOST;
        assert_result(nxl_lock_extend(rig->lock, 0), expected, rig->lock);
        assert_leased(rig);
        if (expected == NXL_OK)
            assert_result(nxl_lock_release(rig->lock), NXL_OK, rig->lock);
    }
    /* The next call takes along what an unknown has left behind. */
    int rc = nxl_lock_inspect(rig->lock, &holder);
    assert_true(rc == NXL_OK || rc == NXL_FREE);
    assert_eventually(!redis_exists(&server, KEY));
    assert_result(nxl_lock_acquire(rig->lock, 5000), NXL_OK, rig->lock);
    assert_true(stands(rig));
    assert_leased(rig);
    assert_result(nxl_lock_release(rig->lock), NXL_OK, rig->lock);
    assert_false(redis_exists(&server, KEY));
}

static void test_fault(void **state)
{
    size_t cell = *(const size_t *)*state;
    const struct fault *fault = &faults[cell / STEPS];
    struct rig rig;
    rig_open(&rig);
    rig.step = (enum step)(cell % STEPS);
    if (fault->end == thaw || fault->begin == go_down ||
        fault->begin == start_again)
        rig_go_direct(&rig);
    get_ready(&rig);
    fault->begin(&rig);
    if (rig.step == IDLE) {
        fault->end(&rig);
        test_pause_ms(QUIET_MS);
    }
    int64_t start = test_now_ms();
    int rc = call(&rig);
    int64_t took = test_now_ms() - start;
    if (rig.step != IDLE)
        fault->end(&rig);
    assert_result(rc, fault->expected[rig.step], rig.lock);
    assert_between(took, 0, TIMEOUT_MS + LATE_MS);
    if (rc != NXL_OK && rc != NXL_FREE)
        assert_true(*nxl_lock_errmsg(rig.lock) != '\0');
    assert_held_rightly(&rig, rc);
    assert_leased(&rig);
    assert_works_again(&rig);
    rig_close(&rig);
}

/* --------------------------------------------------------- by itself alone */

/* The caller of an unknown acquire never calls again: the ttl frees it. */
static void test_ttl_frees(void **state)
{
    struct rig rig;
    rig_open(&rig);
    nxl_lock *lock = new_lock(rig.client, KEY, 300);
    nxl_holder holder = NXL_HOLDER_INIT;
    assert_result(nxl_lock_inspect(lock, &holder), NXL_FREE, lock);
    proxy_cut_after(rig.proxy, PROXY_DOWN, 0);
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    int64_t gone = test_now_ms() + 300 + LATE_MS;
    assert_true(redis_exists(&server, KEY));
    assert_between(redis_pttl(&server, KEY), 1, 300);
    assert_eventually(!redis_exists(&server, KEY));
    assert_between(test_now_ms(), 0, gone);
    nxl_lock_free(lock);
    rig_close(&rig);
}

/* A server that is only slow keeps its connection. */
static void test_slow_keeps_connection(void **state)
{
    struct rig rig;
    rig_open(&rig);
    rig.step = ACQUIRE;
    get_ready(&rig);
    for (int i = 0; i < 5; i++) {
        delay(&rig);
        assert_result(nxl_lock_acquire(rig.lock, 0), NXL_UNKNOWN, rig.lock);
        hurry(&rig);
        assert_eventually(!redis_exists(&server, KEY));
        assert_result(nxl_lock_acquire(rig.lock, 2000), NXL_OK, rig.lock);
        assert_result(nxl_lock_release(rig.lock), NXL_OK, rig.lock);
    }
    assert_int_equal(proxy_accepted(rig.proxy), 1);
    rig_close(&rig);
}

/* ------------------------------------------------------------------ waiting */

static void gets_it(struct waiter *w, struct rig *rig)
{
    rig->waited = true;
    assert_result(waiter_join(w), NXL_OK, rig->lock);
    assert_true(nxl_lock_held(rig->lock) && stands(rig));
    assert_leased(rig);
    assert_works_again(rig);
    rig_close(rig);
}

static void waits_over(const struct fault *fault, const char *way, int64_t wait)
{
    struct rig rig;
    static struct waiter w;
    rig_open(&rig);
    stranger_sets(KEY, "other", 60000);
    rig_go_direct_with(&rig, way);
    redis_run(&server, "CONFIG", "RESETSTAT", NULL);
    waiter_start(&w, rig.lock, wait);
    assert_eventually(
        redis_calls(&server, "set") + redis_calls(&server, "evalsha") >= 4);
    fault->begin(&rig);
    test_pause_ms(4 * TIMEOUT_MS); /* so long it is down */
    fault->end(&rig);
    redis_run(&server, "EVAL", /* one that was killed has forgotten it */
        "return redis.call('GET', KEYS[1]) == 'other' and"
        " redis.call('DEL', KEYS[1]) or 0",
        "1", KEY, NULL);
    gets_it(&w, &rig);
}

static void test_waits_over(void **state)
{
    for (size_t i = 0; i < 2; i++) { /* in line, and by polling */
        const char *way = i ? URL_MORE "&poll=1" : URL_MORE;
        waits_over(&faults[0], way, NXL_FOREVER);
        waits_over(&faults[1], way, NXL_FOREVER);
        waits_over(&faults[1], way, 20000);
    }
}

static void test_waits_for_first_start(void **state)
{
    struct rig rig;
    static struct waiter w;
    rig_open(&rig);
    redis_kill(&server);
    rig_go_direct(&rig);
    waiter_start(&w, rig.lock, NXL_FOREVER);
    test_pause_ms(2 * TIMEOUT_MS);
    redis_restart(&server);
    gets_it(&w, &rig);
}

static void test_wait_ends_at_a_dead_server(void **state)
{
    struct rig rig;
    rig_open(&rig);
    rig_go_direct(&rig);
    redis_kill(&server);
    int64_t start = test_now_ms();
    assert_result(nxl_lock_acquire(rig.lock, 500), NXL_E_UNREACHABLE, rig.lock);
    assert_between(test_now_ms() - start, 300, 500 + LATE_MS);
    redis_restart(&server);
    assert_works_again(&rig);
    rig_close(&rig);
}

int main(void)
{
    static const char *const steps[] = {
        "connect", "acquire", "extend", "release", "inspect", "idle"};
    static char names[FAULTS * STEPS][48];
    static size_t cells[FAULTS * STEPS];
    struct CMUnitTest tests[FAULTS * STEPS + 5] = {
        live_test(test_ttl_frees),
        live_test(test_slow_keeps_connection),
        live_test(test_waits_over),
        live_test(test_waits_for_first_start),
        live_test(test_wait_ends_at_a_dead_server),
    };
    for (size_t i = 0; i < FAULTS * STEPS; i++) {
        cells[i] = i;
        snprintf(names[i], sizeof(names[i]), "%s at %s", faults[i / STEPS].name,
            steps[i % STEPS]);
        tests[5 + i] = (struct CMUnitTest){
            names[i], test_fault, live_clean, NULL, &cells[i]};
    }
    return live_run("recovery");
}
