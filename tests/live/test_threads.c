/* SPDX-License-Identifier: MIT */
/*
 * Many threads on one client, at random: whoever reads, reads for all, and no
 * thread is ever left asleep, however the others come, go or are cancelled. A
 * thread that is left behind hangs the test, which support/test.h ends. What
 * threads that wait do to each other: live/scenes/threads_wait.scenes.
 */
#include "api/private.h"
#include "live_rig.h"

#include <stdatomic.h>

#define THREADS 16

/* A worker's assertions are counted, for cmocka's belong to the test. */
struct worker {
    pthread_t thread;
    unsigned number;
    nxl_client *client;
    nxl_lock *lock;
    unsigned cycles;
    unsigned wrong;   /* calls with a result that must not be */
    int wrong_result; /* the last of them */
    unsigned ok;      /* acquires */
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

static int acquire(struct worker *w, int64_t wait_ms)
{
    int rc = nxl_lock_acquire(w->lock, wait_ms);
    w->ok += rc == NXL_OK;
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

static void make_locks(unsigned count, nxl_client *client, const char *name)
{
    for (unsigned i = 0; i < count; i++) {
        char own[16];
        snprintf(own, sizeof(own), "own:%u", i);
        worker[i].client = client;
        worker[i].lock = new_lock(client, name ? name : own, 30000);
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
        if (!is_one_of(w, acquire(w, 0), NXL_OK, NXL_OK))
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
    make_locks(THREADS, client, NULL);
    run_all(LIVE_INSTRUMENTED ? 60 : 300, run_own);
    assert_int_equal(redis_clients(&server), 1); /* they shared it */
    free_all(THREADS, client);
}

static void *run_counter(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++) {
        if (!is_one_of(w, acquire(w, 30000), NXL_OK, NXL_OK))
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
    make_locks(THREADS, client, "counter");
    run_all(5, run_counter);
    assert_int_equal(counter, THREADS * 5);
    free_all(THREADS, client);
}

/* ------------------------------------------------------------------ cancel */

static void *run_cancelled(void *argument)
{
    struct worker *w = argument;
    for (unsigned i = 0; i < w->cycles; i++) {
        int rc = acquire(w, NXL_FOREVER);
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
    make_locks(8, client, name);
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
            is_one_of(w, acquire(w, 1000), NXL_OK, NXL_OK);
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
    make_locks(THREADS, client, NULL);
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
    make_locks(THREADS, warned, NULL);
    run_all(20, run_own);
    assert_int_equal(warnings, 1);
    free_all(THREADS, warned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        threads_test(each_its_own_lock),
        threads_test(one_name_guards_a_counter),
        threads_test(cancelled_while_waiting),
        threads_test(cancelled_or_granted),
        threads_test(locks_come_and_go),
        threads_test(questions_beside_locks),
        threads_test(warned_once),
    };
    return live_run_long("threads");
}
