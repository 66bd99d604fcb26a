/* SPDX-License-Identifier: MIT */
/*
 * Many threads on one client: whoever reads, reads for all, and no thread is
 * ever left asleep, however the others come, go, are cancelled or wait longer.
 * A thread that is left behind hangs the test, which support/test.h ends.
 */
#include "api/private.h"
#include "live_rig.h"

#include <errno.h>
#include <stdatomic.h>

#define THREADS 16

/* A worker's assertions are counted, for cmocka's belong to the test. */
struct worker {
    pthread_t thread;
    unsigned number;
    nxl_client *client;
    nxl_lock *lock;
    int64_t wait_ms;
    unsigned cycles;
    unsigned wrong;   /* calls with a result that must not be */
    int wrong_result; /* the last of them */
    unsigned ok, busy;
    int64_t longest_ms; /* call */
    unsigned seed;
};

static struct worker worker[THREADS];
static atomic_bool stop;
static unsigned long counter; /* guarded by a lock at the server alone */

static int set_up(void **state)
{
    memset(worker, 0, sizeof(worker));
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].number = i;
        worker[i].seed = i + 1;
    }
    stop = false;
    counter = 0;
    return live_clean(state);
}

#define threads_test(name) cmocka_unit_test_setup(name, set_up)

/* Notes a result that is neither of two. */
static bool is_one_of(struct worker *w, int rc, int good, int also)
{
    if (rc == good || rc == also)
        return true;
    w->wrong++;
    w->wrong_result = rc;
    return false;
}

static int timed_acquire(struct worker *w, int64_t wait_ms)
{
    int64_t began = test_now_ms();
    int rc = nxl_lock_acquire(w->lock, wait_ms);
    int64_t took = test_now_ms() - began;
    if (took > w->longest_ms)
        w->longest_ms = took;
    w->ok += rc == NXL_OK;
    w->busy += rc == NXL_BUSY;
    return rc;
}

static void start(unsigned n, void *(*run)(void *))
{
    assert_int_equal(
        pthread_create(&worker[n].thread, NULL, run, &worker[n]), 0);
}

static void join(unsigned n)
{
    assert_int_equal(pthread_join(worker[n].thread, NULL), 0);
    if (worker[n].wrong)
        print_error("thread %u: %u wrong results, the last %s\n", n,
            worker[n].wrong, nxl_strerror(worker[n].wrong_result));
    assert_int_equal(worker[n].wrong, 0);
}

/* All of them at once. */
static void run_all(unsigned cycles, void *(*run)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].cycles = cycles;
        start(i, run);
    }
    for (unsigned i = 0; i < THREADS; i++)
        join(i);
}

static void make_locks(
    unsigned count, nxl_client *client, const char *name, int64_t ttl_ms)
{
    for (unsigned i = 0; i < count; i++) {
        char own[16];
        snprintf(own, sizeof(own), "own:%u", i);
        worker[i].client = client;
        worker[i].lock = new_lock(client, name ? name : own, ttl_ms);
    }
}

static void free_all(unsigned count, nxl_client *client)
{
    for (unsigned i = 0; i < count; i++)
        nxl_lock_free(worker[i].lock);
    nxl_client_free(client);
    assert_int_equal(redis_lasting_keys(&server), 0);
}

/* --------------------------------------------------------------- one client */

static void *run_own(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++) {
        if (!is_one_of(w, timed_acquire(w, 0), NXL_OK, NXL_OK))
            continue;
        w->wrong += !nxl_lock_held(w->lock);
        is_one_of(w, nxl_lock_extend(w->lock, 0), NXL_OK, NXL_OK);
        is_one_of(w, nxl_lock_release(w->lock), NXL_OK, NXL_OK);
        w->wrong += nxl_lock_held(w->lock);
    }
    return NULL;
}

static void each_its_own_lock(void **state)
{
    nxl_client *client = new_client("");
    make_locks(THREADS, client, NULL, 30000);
    run_all(LIVE_INSTRUMENTED ? 60 : 300, run_own);
    assert_int_equal(redis_clients(&server), 1); /* they shared it */
    free_all(THREADS, client);
}

static void *run_counter(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++) {
        if (!is_one_of(w, timed_acquire(w, 30000), NXL_OK, NXL_OK))
            continue;
        unsigned long seen = counter;
        sched_yield();
        counter = seen + 1;
        is_one_of(w, nxl_lock_release(w->lock), NXL_OK, NXL_OK);
    }
    return NULL;
}

/* That the counter is no data race is the lock's merit alone: under the thread
 * sanitizer two clients would not do, for it sees no order between them. */
static void one_name_guards_a_counter(void **state)
{
    nxl_client *client = new_client("");
    make_locks(THREADS, client, "counter", 30000);
    run_all(5, run_counter);
    assert_int_equal(counter, THREADS * 5);
    free_all(THREADS, client);
}

/* --------------------------------------------------------- different waits */

static void *run_wait(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++)
        is_one_of(w, timed_acquire(w, w->wait_ms), NXL_BUSY, NXL_BUSY);
    return NULL;
}

/* The longest wait leads, the short ones come and go beside it. */
static void short_waits_beside_a_long_one(void **state)
{
    nxl_client *client = new_client("");
    stranger_sets("held", "somebody", 0);
    make_locks(THREADS, client, "held", 30000);
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].wait_ms = i == 0 ? 1500 : 15 * i;
        worker[i].cycles = i == 0 ? 1 : 1200 / (15 * i);
        start(i, run_wait);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        join(i);
        assert_int_equal(worker[i].busy, worker[i].cycles);
        /* Sixteen threads on few processors are late by themselves. */
        assert_between(worker[i].longest_ms, worker[i].wait_ms - 1,
            worker[i].wait_ms + 2 * LATE_MS);
    }
    redis_run(&server, "DEL", "held", NULL);
    free_all(THREADS, client);
}

static struct waiter waiter[THREADS];

/* Each waits for a name of its own. Whoever reads for all gets its lock, by
 * and by, and another one has to read on. */
static void wait_and_leave(bool forwards)
{
    const unsigned count = 8;
    nxl_client *client = new_client("");
    for (unsigned i = 0; i < count; i++) {
        char own[16];
        snprintf(own, sizeof(own), "own:%u", i);
        stranger_sets(own, "somebody", 0);
    }
    make_locks(count, client, NULL, 30000);
    for (unsigned i = 0; i < count; i++)
        waiter_start(&waiter[i], worker[i].lock, 30000);
    assert_eventually(redis_calls(&server, "pttl") >= 2 * (long)count);
    for (unsigned n = 0; n < count; n++) {
        unsigned i = forwards ? n : count - 1 - n;
        char own[16];
        snprintf(own, sizeof(own), "own:%u", i);
        int64_t freed_ms = test_now_ms();
        redis_run(&server, "DEL", own, NULL);
        assert_int_equal(waiter_join(&waiter[i]), NXL_OK);
        /* By default it asks every 250 ms at least. */
        assert_between(waiter[i].ended_ms - freed_ms, 0, 250 + 2 * LATE_MS);
        assert_result(nxl_lock_release(worker[i].lock), NXL_OK, worker[i].lock);
    }
    free_all(count, client);
}

static void the_first_leaves_first(void **state)
{
    wait_and_leave(true);
}

static void the_last_leaves_first(void **state)
{
    wait_and_leave(false);
}

/* Who leads has nothing to do for a long time, the others have. */
static void a_sleepy_leader(void **state)
{
    nxl_client *client = new_client("timeout_ms=300&poll=1");
    nxl_lock *sleepy =
        lock_with(client, "held", .retry_min_ms = 50000, .retry_max_ms = 50000);
    nxl_lock *held = new_lock(client, "held", 30000);
    nxl_lock *lock = new_lock(client, "free", 30000);
    stranger_sets("held", "somebody", 0);
    waiter_start(&waiter[0], sleepy, 50000);
    assert_eventually(redis_calls(&server, "set") == 2);
    test_pause_ms(20); /* likely it sleeps now; it must not matter */
    for (int i = 0; i < 20; i++) {
        int64_t began = test_now_ms();
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
        assert_between(test_now_ms() - began, 0, 2 * LATE_MS);
    }
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(held, 100), NXL_BUSY, held);
    assert_between(test_now_ms() - began, 99, 100 + LATE_MS);
    /* Nothing that comes in wakes the leader for this one. */
    redis_freeze(&server);
    began = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 0), NXL_UNKNOWN, lock);
    assert_between(test_now_ms() - began, 299, 300 + LATE_MS);
    redis_thaw(&server);
    redis_kill(&server);
    began = test_now_ms();
    assert_true(nxl_lock_acquire(lock, 0) != NXL_OK);
    assert_between(test_now_ms() - began, 0, 300 + LATE_MS);
    assert_int_equal(nxl_lock_cancel(sleepy), NXL_OK);
    assert_int_equal(waiter_join(&waiter[0]), NXL_CANCELLED);
    redis_restart(&server);
    nxl_lock_free(sleepy);
    nxl_lock_free(held);
    end(lock, client);
}

/* ------------------------------------------------------------------ cancel */

static void *run_cancelled(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++) {
        int rc = timed_acquire(w, NXL_FOREVER);
        if (!is_one_of(w, rc, NXL_CANCELLED, NXL_OK) || rc != NXL_OK)
            continue;
        if (rand_r(&w->seed) % 2)
            sched_yield();
        is_one_of(w, nxl_lock_release(w->lock), NXL_OK, NXL_OK);
    }
    return NULL;
}

static void *run_canceller(void *argument)
{
    struct worker *w = argument;
    while (!stop) {
        nxl_lock *victim = worker[rand_r(&w->seed) % 8].lock;
        is_one_of(w, nxl_lock_cancel(victim), NXL_OK, NXL_OK);
        struct timespec pause = {0, rand_r(&w->seed) % 2000000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void cancel_at_random(const char *name, unsigned cycles)
{
    nxl_client *client = new_client("");
    make_locks(8, client, name, 30000);
    for (unsigned i = 0; i < 8; i++) {
        worker[i].cycles = cycles;
        start(i, run_cancelled);
    }
    start(8, run_canceller);
    for (unsigned i = 0; i < 8; i++)
        join(i);
    stop = true;
    join(8);
}

static void cancelled_while_waiting(void **state)
{
    stranger_sets("held", "somebody", 0);
    cancel_at_random("held", LIVE_INSTRUMENTED ? 40 : 150);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(worker[i].ok, 0);
    assert_value("held", "somebody");
    redis_run(&server, "DEL", "held", NULL);
    free_all(8, worker[0].client);
}

/* The moments hit everything: before it is sent, under way, granted. */
static void cancelled_or_granted(void **state)
{
    cancel_at_random(NULL, LIVE_INSTRUMENTED ? 200 : 1000);
    unsigned ok = 0;
    for (unsigned i = 0; i < 8; i++)
        ok += worker[i].ok;
    assert_true(ok > 0);
    free_all(8, worker[0].client);
}

/* ---------------------------------------------------- handles in threads */

static void *run_handles(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++) {
        char name[32];
        snprintf(name, sizeof(name), "mine:%u:%u", w->number, i % 3);
        if (nxl_lock_new(&w->lock, w->client, name, NULL) != NXL_OK) {
            w->wrong++;
            continue;
        }
        if (i % 4)
            is_one_of(w, timed_acquire(w, 1000), NXL_OK, NXL_OK);
        if (i % 8 == 1)
            is_one_of(w, nxl_lock_release(w->lock), NXL_OK, NXL_OK);
        nxl_lock_free(w->lock); /* held or not */
    }
    w->lock = NULL;
    return NULL;
}

static void locks_come_and_go(void **state)
{
    nxl_client *client = new_client("");
    for (unsigned i = 0; i < THREADS; i++)
        worker[i].client = client;
    run_all(LIVE_INSTRUMENTED ? 50 : 200, run_handles);
    free_all(THREADS, client);
}

/* ----------------------------------------------------- questions, a warning */

static void *run_ask(void *argument)
{
    struct worker *w = argument;
    char key[16];
    const char *words[] = {"STRLEN", key};
    for (unsigned i = 0; i < w->cycles; i++) {
        struct answer *answer = NULL;
        int length = (int)i % 100;
        snprintf(key, sizeof(key), "k%d", length);
        int rc = client_ask(w->client, 0, 2, words, NULL, &answer);
        if (is_one_of(w, rc, NXL_OK, NXL_OK))
            w->wrong += atoi(answer_item(answer, 0, NULL)) != length;
        answer_free(answer);
    }
    return NULL;
}

/* Each gets the answer to its own question. */
static void questions_beside_locks(void **state)
{
    char key[16], value[101] = "";
    nxl_client *client = new_client("timeout_ms=20000");
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        redis_run(&server, "SET", key, value, NULL);
        value[i] = 'x';
    }
    make_locks(THREADS, client, NULL, 30000);
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i].cycles = 100;
        start(i, i % 2 ? run_own : run_ask);
    }
    for (unsigned i = 0; i < THREADS; i++)
        join(i);
    assert_int_equal(redis_clients(&server), 1);
    redis_run(&server, "FLUSHALL", NULL);
    free_all(THREADS, client);
}

static nxl_client *warned;
static atomic_int warnings;

/* It may use the client. */
static void on_warning(void *arg, const char *text)
{
    char description[256];
    assert_true(
        nxl_client_describe(warned, description, sizeof(description)) > 0);
    nxl_lock_free(new_lock(warned, "other", 1000));
    warnings++;
}

static void warned_once(void **state)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    char url[512];
    snprintf(url, sizeof(url), "%s?scheme=timestamp", server_url);
    options.warning = on_warning;
    warnings = 0;
    assert_int_equal(nxl_client_new(&warned, url, &options), NXL_OK);
    make_locks(THREADS, warned, NULL, 30000);
    run_all(20, run_own);
    assert_int_equal(warnings, 1);
    free_all(THREADS, warned);
}

/* ------------------------------------------------- the server stands still */

static void a_frozen_server_under_waiting_threads(void **state)
{
    enum { WAIT_MS = 5000 }; /* all must be in it when the server freezes */
    nxl_client *client = new_client("timeout_ms=300");
    stranger_sets("held", "somebody", 0);
    make_locks(8, client, "held", 30000);
    for (unsigned i = 0; i < 8; i++)
        waiter_start(&waiter[i], worker[i].lock, WAIT_MS);
    assert_eventually(redis_calls(&server, "pttl") >= 8);
    redis_freeze(&server);
    for (unsigned i = 0; i < 8; i++) {
        int rc = waiter_join(&waiter[i]);
        assert_true(rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE);
        assert_between(
            waiter[i].ended_ms - waiter[i].began_ms, 0, WAIT_MS + LATE_MS);
        assert_false(nxl_lock_held(worker[i].lock));
    }
    redis_thaw(&server);
    redis_run(&server, "DEL", "held", NULL);
    for (unsigned i = 0; i < 8; i++) {
        /* What was owed may be in the way for a moment. */
        assert_result(
            nxl_lock_acquire(worker[i].lock, 2000), NXL_OK, worker[i].lock);
        assert_result(nxl_lock_release(worker[i].lock), NXL_OK, worker[i].lock);
    }
    free_all(8, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        threads_test(each_its_own_lock),
        threads_test(one_name_guards_a_counter),
        threads_test(short_waits_beside_a_long_one),
        threads_test(the_first_leaves_first),
        threads_test(the_last_leaves_first),
        threads_test(a_sleepy_leader),
        threads_test(cancelled_while_waiting),
        threads_test(cancelled_or_granted),
        threads_test(locks_come_and_go),
        threads_test(questions_beside_locks),
        threads_test(warned_once),
        threads_test(a_frozen_server_under_waiting_threads),
    };
    return live_run_long("threads");
}
