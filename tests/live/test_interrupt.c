/* SPDX-License-Identifier: MIT */
/*
 * nxl_lock_cancel() and nxl_lock_interrupt() before, during and after each
 * operation, through both APIs, with one server and with three. A cancel is
 * forgotten when nothing is in progress; an interrupt ends exactly one
 * acquire, the one in progress or the next one.
 */
#define QUORUM_MAX 3
#include "api/private.h"
#include "support/test.h"

#include "live/api_rig.h"

enum { TTL_MS = 30000, WAIT_MS = 5000, TRIALS = 150 };

static nxl_client *client_now(void)
{
    return proxied_client(on.servers, NO_GUARD "&timeout_ms=5000");
}

/* ---------------------------------------------------- the operations */

enum kind { ACQUIRE, EXTEND, RELEASE, ADOPT, INSPECT, BREAK, KINDS };

static char foreign[64];                  /* the token to adopt */
static nxl_holder seen = NXL_HOLDER_INIT; /* what to break */

static int begin(enum kind kind, nxl_lock *lock)
{
    switch (kind) {
    case ACQUIRE:
        return BEGIN(acquire, lock, WAIT_MS);
    case EXTEND:
        return BEGIN(extend, lock, 0);
    case RELEASE:
        return BEGIN(release, lock);
    case ADOPT:
        return BEGIN(adopt, lock, foreign);
    case INSPECT:
        return begin_inspect(lock);
    default:
        return BEGIN(break, lock, &seen);
    }
}

/* Through the present API, to its result. */
static int done(nxl_client *client, enum kind kind, nxl_lock *lock)
{
    return result_of(client, begin(kind, lock));
}

/* One operation that another thread, or the loop, runs in the background. */
static struct background {
    pthread_t thread;
    nxl_client *client;
    nxl_lock *lock;
    enum kind kind;
    int result;
} back;

static void *back_run(void *unused)
{
    (void)unused;
    back.result = begin(back.kind, back.lock);
    return NULL;
}

static void back_start(nxl_client *client, nxl_lock *lock, enum kind kind)
{
    back = (struct background){.client = client, .lock = lock, .kind = kind};
    if (!by_loop) {
        int rc = pthread_create(&back.thread, NULL, back_run, NULL);
        assert_int_equal(rc, 0);
        return;
    }
    assert_int_equal(begin(kind, lock), NXL_PENDING);
    turn(client, 10);
}

static int back_end(void)
{
    if (by_loop)
        return next_event(back.client).result;
    assert_int_equal(pthread_join(back.thread, NULL), 0);
    return back.result;
}

static void everybody_holds(const char *key)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "SET", key, "stranger", NULL);
}

static void nobody_holds(const char *key)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_run(&servers[i], "DEL", key, NULL);
}

/* ----------------------------------------------------------- before */

static void an_interrupt_before_an_acquire_ends_it(void **state)
{
    nxl_client *client = client_now();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_lock *other = new_lock(client, "other", TTL_MS);
    everybody_holds("k");
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK); /* counts once */
    size_t accepted = proxy_accepted(proxies[0]);
    assert_result(done(client, ACQUIRE, lock), NXL_CANCELLED, lock);
    assert_contains(nxl_lock_errmsg(lock), "nxl_lock_interrupt()");
    assert_false(nxl_lock_held(lock));
    assert_int_equal(proxy_accepted(proxies[0]), accepted);
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
    assert_result(done(client, ACQUIRE, other), NXL_OK, other);
    assert_result(done(client, ACQUIRE, lock), NXL_CANCELLED, lock);
    nobody_holds("k");
    assert_result(done(client, ACQUIRE, lock), NXL_OK, lock);
    nxl_lock_free(other);
    end(lock, client);
}

static void a_cancel_before_an_acquire_is_forgotten(void **state)
{
    nxl_client *client = client_now();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_int_equal(nxl_lock_cancel(lock), NXL_OK);
    assert_result(done(client, ACQUIRE, lock), NXL_OK, lock);
    end(lock, client);
}

/* A call that is refused does not use the interrupt up. */
static void an_interrupt_outlasts_an_invalid_call(void **state)
{
    nxl_client *client = client_now();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(done(client, ACQUIRE, lock), NXL_OK, lock);
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
    assert_result(done(client, ACQUIRE, lock), NXL_E_INVALID, lock);
    assert_true(nxl_lock_held(lock));
    assert_result(done(client, RELEASE, lock), NXL_OK, lock);
    assert_result(done(client, ACQUIRE, lock), NXL_CANCELLED, lock);
    end(lock, client);
}

/* ----------------------------------------------------------- during */

static void both_end_an_acquire_in_progress(void **state)
{
    int (*const ways[])(nxl_lock *) = {nxl_lock_cancel, nxl_lock_interrupt};
    for (size_t i = 0; i < 2; i++) {
        nxl_client *client = client_now();
        nxl_lock *lock = new_lock(client, "k", TTL_MS);
        everybody_holds("k");
        long sets = redis_calls(&servers[0], "set");
        back_start(client, lock, ACQUIRE);
        while (redis_calls(&servers[0], "set") == sets)
            by_loop ? turn(client, 10) : test_pause_ms(1);
        assert_int_equal(ways[i](lock), NXL_OK);
        assert_result(back_end(), NXL_CANCELLED, lock);
        assert_contains(nxl_lock_errmsg(lock), "cancelled by");
        nobody_holds("k"); /* the next one is not cancelled */
        assert_result(done(client, ACQUIRE, lock), NXL_OK, lock);
        assert_result(done(client, RELEASE, lock), NXL_OK, lock);
        end(lock, client);
    }
}

/* Prepares a lock for an operation of that kind. */
static void prepare(
    nxl_client *client, nxl_lock *lock, nxl_lock *holder, enum kind kind)
{
    nxl_lock *held = kind == ADOPT || kind == BREAK ? holder : lock;
    assert_result(done(client, ACQUIRE, held), NXL_OK, held);
    snprintf(foreign, sizeof(foreign), "%s", nxl_lock_token(held));
    if (kind != BREAK)
        return;
    assert_result(done(client, INSPECT, lock), NXL_OK, lock);
    assert_int_equal(nxl_lock_holder(lock, &seen), NXL_OK);
}

static void hold_replies(bool held)
{
    for (size_t i = 0; i < on.servers; i++)
        proxy_hold(proxies[i], PROXY_DOWN, held);
}

/* Nothing that was sent before is still on its way to a server. */
static void await_quiet(nxl_client *client)
{
    const char *const ping[] = {"PING"};
    struct answer *answer;
    for (size_t i = 0; i < on.servers; i++) {
        int rc = client_ask(client, i, 1, ping, NULL, &answer);
        assert_int_equal(rc, NXL_OK);
        answer_free(answer);
    }
}

static uint64_t bytes_sent(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < on.servers; i++)
        sum += proxy_bytes(proxies[i], PROXY_UP);
    return sum;
}

/* The replies are held back until the operation has been sent, and way() has
 * been called. */
static int result_of_disturbed(
    nxl_client *client, nxl_lock *lock, enum kind kind, int (*way)(nxl_lock *))
{
    if (!by_loop) /* where the first turn sends it */
        await_quiet(client);
    uint64_t before = bytes_sent();
    hold_replies(true);
    back_start(client, lock, kind);
    int64_t limit = test_now_ms() + 5000;
    while (!by_loop && bytes_sent() == before && test_now_ms() < limit)
        test_pause_ms(1);
    int rc = way(lock);
    hold_replies(false);
    assert_int_equal(rc, NXL_OK);
    return back_end();
}

/* A cancel ends any of them but a release; an interrupt ends none, and is
 * there for the next acquire. */
static void during_the_other_operations(void **state)
{
    for (enum kind kind = EXTEND; kind < KINDS; kind++) {
        nxl_client *client = client_now();
        nxl_lock *lock = new_lock(client, "k", TTL_MS);
        nxl_lock *holder = new_lock(client, "k", TTL_MS);
        prepare(client, lock, holder, kind);
        assert_result(
            result_of_disturbed(client, lock, kind, nxl_lock_interrupt), NXL_OK,
            lock);
        if (nxl_lock_held(lock))
            assert_result(done(client, RELEASE, lock), NXL_OK, lock);
        nxl_lock_free(holder);
        nobody_holds("k");
        assert_result(done(client, ACQUIRE, lock), NXL_CANCELLED, lock);

        holder = new_lock(client, "k", TTL_MS);
        prepare(client, lock, holder, kind);
        assert_result(result_of_disturbed(client, lock, kind, nxl_lock_cancel),
            kind == RELEASE ? NXL_OK : NXL_CANCELLED, lock);
        nxl_lock_free(holder);
        end(lock, client);
    }
}

/* ------------------------------------------------------------ after */

/* It came too late for the acquire that was granted, and ends the next. */
static void an_interrupt_after_a_grant_ends_the_next_acquire(void **state)
{
    nxl_client *client = client_now();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(done(client, ACQUIRE, lock), NXL_OK, lock);
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
    assert_true(nxl_lock_held(lock));
    assert_result(done(client, EXTEND, lock), NXL_OK, lock);
    assert_result(done(client, INSPECT, lock), NXL_OK, lock);
    assert_result(done(client, RELEASE, lock), NXL_OK, lock);
    assert_result(done(client, ACQUIRE, lock), NXL_CANCELLED, lock);
    assert_result(done(client, ACQUIRE, lock), NXL_OK, lock);
    end(lock, client);
}

/* ------------------------------------------------------ at any time */

static pthread_barrier_t both_ready;

static void *interrupts(void *lock)
{
    pthread_barrier_wait(&both_ready);
    (void)nxl_lock_interrupt(lock);
    return NULL;
}

/* Another thread is about to enter the acquire, or just has. */
static void an_interrupt_is_never_lost(void **state)
{
    pthread_barrier_init(&both_ready, NULL, 2);
    nxl_client *client = client_now();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    everybody_holds("k");
    for (int i = 0; i < TRIALS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, interrupts, lock);
        pthread_barrier_wait(&both_ready);
        for (volatile int spin = 3000 * i; spin > 0; spin--)
            ; /* one time this thread is first, one time the other one */
        int rc = nxl_lock_acquire(lock, NXL_FOREVER);
        pthread_join(thread, NULL);
        assert_int_equal(rc, NXL_CANCELLED);
    }
    nobody_holds("k");
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, client);
    pthread_barrier_destroy(&both_ready);
}

struct signal {
    nxl_client *client;
    int after_ms;
};

static void *interrupts_all(void *data)
{
    struct signal *signal = data;
    test_pause_ms(signal->after_ms);
    nxl_client_interrupt(signal->client);
    return NULL;
}

/* A grant that is decided and waits a moment for a server that is late, if
 * there is one, is neither ended nor does it swallow the interrupt. */
static void an_interrupt_of_all_is_never_lost(void **state)
{
    int trials = on.servers > 1 ? 40 : 10; /* of 2 ms more each time */
    for (int i = 0; i < trials; i++) {
        pthread_t thread;
        nxl_client *client =
            proxied_client(on.servers, NO_GUARD "&timeout_ms=2000");
        nxl_lock *lock = new_lock(client, "k", TTL_MS / 6);
        struct signal signal = {client, 2 * i};
        for (size_t s = 0; s < on.servers; s++)
            proxy_delay(proxies[s], PROXY_DOWN, 10);
        if (on.servers > 1) /* connected, and silent */
            proxy_hold(proxies[2], PROXY_DOWN, true);
        pthread_create(&thread, NULL, interrupts_all, &signal);
        int first = nxl_lock_acquire(lock, 0);
        pthread_join(thread, NULL);
        assert_true(first == NXL_OK || first == NXL_CANCELLED);
        if (first == NXL_OK)
            assert_result(nxl_lock_release(lock), NXL_OK, lock);
        int second = nxl_lock_acquire(lock, 1000);
        assert_int_equal(second, first == NXL_OK ? NXL_CANCELLED : NXL_OK);
        hold_replies(false);
        end(lock, client);
    }
}

/* ------------------------------------------------------- the handles */

static void an_interrupted_lock_can_be_freed(void **state)
{
    nxl_client *client = client_now();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_lock *other = new_lock(client, "k", TTL_MS);
    assert_int_equal(nxl_lock_interrupt(lock), NXL_OK);
    nxl_lock_free(lock);
    assert_result(done(client, ACQUIRE, other), NXL_OK, other);
    nxl_client_free(client);
    assert_int_equal(nxl_lock_interrupt(other), NXL_E_INVALID);
    nxl_lock_free(other);
    assert_int_equal(nxl_lock_interrupt(NULL), NXL_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(an_interrupt_before_an_acquire_ends_it),
        api_test(a_cancel_before_an_acquire_is_forgotten),
        api_test(an_interrupt_outlasts_an_invalid_call),
        api_test(both_end_an_acquire_in_progress),
        api_test(during_the_other_operations),
        api_test(an_interrupt_after_a_grant_ends_the_next_acquire),
        api_test(an_interrupted_lock_can_be_freed),
        api_blocking_test(an_interrupt_is_never_lost),
        api_blocking_test(an_interrupt_of_all_is_never_lost),
    };
    return on_one_and_three_run("interrupt", tests);
}
