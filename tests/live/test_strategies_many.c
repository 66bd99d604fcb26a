/* SPDX-License-Identifier: MIT */
/*
 * Many locks on one client, with every strategy. Where a verb is a transaction
 * they take turns on the connection: none waits forever, and a waiting lock
 * uses no processor time. NXLOCK_FULL=1: a hundred locks, not forty.
 */
#include "live/strategies_rig.h"

#include "live/loop_rig.h"

#include <sys/resource.h>

enum { LOCKS_FULL = 100, TTL = 30000, THREADS = 8, CYCLES = 20 };
#define LOCKS (getenv("NXLOCK_FULL") ? LOCKS_FULL : 40)
/* So long nothing happens, and nothing is done. */
#define IDLE_MS (LIVE_INSTRUMENTED ? 500 : 100)

static nxl_client *client;
static nxl_lock *locks[LOCKS_FULL];

static void open_locks(const char *parameters)
{
    loop_reset(false);
    client = client_here(parameters);
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many:%d", i);
        locks[i] = new_lock(client, name, TTL);
    }
}

static void close_locks(void)
{
    for (int i = 0; i < LOCKS; i++)
        nxl_lock_free(locks[i]);
    nxl_client_free(client);
}

static void start(nxl_lock *lock, int operation)
{
    int rc = operation == NXL_OP_ACQUIRE   ? nxl_lock_acquire_start(lock, 0)
             : operation == NXL_OP_EXTEND  ? nxl_lock_extend_start(lock, 60000)
             : operation == NXL_OP_INSPECT ? nxl_lock_inspect_start(lock)
                                           : nxl_lock_release_start(lock);
    assert_result(rc, NXL_PENDING, lock);
}

static void start_all(int operation)
{
    for (int i = 0; i < LOCKS; i++)
        start(locks[i], operation);
}

static bool is_too_late(int rc)
{
    return rc == NXL_UNKNOWN || rc == NXL_E_UNREACHABLE;
}

/* All that was started ends so. */
static void all_end(int operation, int result)
{
    loop_until(client, LOCKS);
    for (int i = 0; i < LOCKS; i++)
        loop_check(&loop.event[i], loop.event[i].lock, operation, result);
    loop.count = 0;
}

static void all_do(int operation)
{
    start_all(operation);
    all_end(operation, NXL_OK);
}

static int64_t cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* ------------------------------------------------------------- one by one */

static void each_verb_of_all_locks_at_once(void **state)
{
    open_locks("");
    for (int i = 0; i < 2; i++) {
        all_do(NXL_OP_ACQUIRE);
        assert_int_equal(redis_run(&server, "DBSIZE", NULL), LOCKS);
        struct ways before = ways_so_far();
        all_do(NXL_OP_EXTEND);
        assert_true(
            ways_so_far().n[here->extend] - before.n[here->extend] >= LOCKS);
        assert_lasts("many:39", 50000, 60000);
        all_do(NXL_OP_INSPECT);
        all_do(NXL_OP_RELEASE);
        assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    }
    close_locks();
}

/* Acquires of some, while others are prolonged and released. */
static void different_verbs_at_once(void **state)
{
    open_locks("");
    all_do(NXL_OP_ACQUIRE);
    for (int i = 0; i < LOCKS; i += 2) /* these may be acquired anew */
        assert_result(nxl_lock_release_start(locks[i]), NXL_PENDING, locks[i]);
    loop_until(client, (size_t)LOCKS / 2);
    loop.count = 0;
    for (int i = 0; i < LOCKS; i++) {
        int rc = i % 2 == 0   ? nxl_lock_acquire_start(locks[i], 0)
                 : i % 4 == 1 ? nxl_lock_extend_start(locks[i], 60000)
                              : nxl_lock_release_start(locks[i]);
        assert_result(rc, NXL_PENDING, locks[i]);
    }
    loop_until(client, LOCKS);
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(loop.event[i].result, NXL_OK);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), LOCKS * 3 / 4);
    close_locks();
    assert_eventually(redis_run(&server, "DBSIZE", NULL) == 0);
}

/* Blocking calls of many threads on one client. */
static void *cycles(void *data)
{
    nxl_lock *lock = data;
    for (int i = 0; i < CYCLES; i++) {
        int rc = nxl_lock_acquire(lock, 10000);
        if (rc == NXL_OK && i % 2 == 0)
            rc = nxl_lock_extend(lock, 60000);
        if (rc == NXL_OK && i % 3 == 0)
            rc = look(lock);
        if (rc == NXL_OK)
            rc = nxl_lock_release(lock);
        if (rc != NXL_OK)
            return (void *)nxl_strerror(rc);
    }
    return NULL;
}

static void threads_share_a_client(void **state)
{
    static pthread_t threads[THREADS];
    open_locks("timeout_ms=20000");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, cycles, locks[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_no_text(wrong);
    }
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    close_locks();
}

/* --------------------------------------------------------- while one waits */

/* The first one's commands are under way, the others' perhaps not. */
static void waits_idly(int operation)
{
    redis_freeze(&server);
    start_all(operation);
    int64_t before = cpu_ms();
    loop.turns = 0;
    loop_for(client, IDLE_MS);
    assert_between(cpu_ms() - before, 0, IDLE_MS / 2);
    assert_between(loop.turns, 0, 20);
    assert_int_equal(loop.count, 0);
    redis_thaw(&server);
    all_end(operation, NXL_OK);
}

static void waiting_locks_use_no_processor_time(void **state)
{
    open_locks("timeout_ms=5000");
    all_do(NXL_OP_ACQUIRE);
    waits_idly(NXL_OP_EXTEND);
    waits_idly(NXL_OP_INSPECT);
    waits_idly(NXL_OP_RELEASE);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    close_locks();
}

/* With a short timeout_ms any of them may be too late on a busy machine. */
static void all_do_at_last(int operation)
{
    int64_t limit = test_now_ms() + 60000;
    bool done[LOCKS_FULL] = {false};
    for (int left = LOCKS; left > 0;) {
        size_t started = 0;
        assert_true(test_now_ms() < limit);
        for (int i = 0; i < LOCKS; i++)
            if (!done[i]) {
                start(locks[i], operation);
                started++;
            }
        loop_until(client, started);
        for (size_t i = 0; i < started; i++) {
            int rc = loop.event[i].result;
            assert_true(rc == NXL_OK || is_too_late(rc) || rc == NXL_BUSY);
            for (int j = 0; rc == NXL_OK && j < LOCKS; j++)
                done[j] |= locks[j] == loop.event[i].lock;
            left -= rc == NXL_OK;
        }
        loop.count = 0;
    }
}

static void all_are_too_late(int operation)
{
    redis_freeze(&server);
    start_all(operation);
    loop_until(client, LOCKS);
    for (int i = 0; i < LOCKS; i++) {
        assert_true(is_too_late(loop.event[i].result));
        assert_int_equal(nxl_lock_held(locks[i]), operation != NXL_OP_RELEASE);
    }
    loop.count = 0;
    redis_thaw(&server);
}

/* Nobody is answered in time; what is owed then is paid, one by one. */
static void no_answer_in_time_to_any_lock(void **state)
{
    open_locks("timeout_ms=100");
    all_do_at_last(NXL_OP_ACQUIRE);
    all_are_too_late(NXL_OP_RELEASE);
    loop_until_true(client, redis_run(&server, "DBSIZE", NULL) == 0);
    loop_until_true(client, nobody_in_multi());
    all_do_at_last(NXL_OP_ACQUIRE);
    all_are_too_late(NXL_OP_EXTEND);
    all_do_at_last(NXL_OP_EXTEND);
    for (int i = 0; i < LOCKS; i++)
        assert_result(nxl_lock_release_start(locks[i]), NXL_PENDING, locks[i]);
    loop_until(client, LOCKS);
    loop_until_true(client, redis_run(&server, "DBSIZE", NULL) == 0);
    loop_until_true(client, nobody_in_multi());
    close_locks();
}

/* Freed while held: the client's end takes them all along, as far as it comes
 * in the time that it may take for it. */
static void client_freed_while_all_are_held(void **state)
{
    open_locks("");
    all_do(NXL_OP_ACQUIRE);
    all_do(NXL_OP_EXTEND);
    int64_t start = test_now_ms();
    close_locks();
    if (test_now_ms() - start < 500)
        assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    else
        print_message("it took more than 500 ms\n");
}

/* Cancelled while the server stands still: in the transaction, and before. */
static void half_are_cancelled_while_the_server_hangs(void **state)
{
    open_locks("timeout_ms=5000");
    all_do(NXL_OP_ACQUIRE);
    all_do(NXL_OP_EXTEND);
    redis_freeze(&server);
    start_all(NXL_OP_EXTEND);
    loop_for(client, 20);
    for (int i = 0; i < LOCKS; i += 2)
        assert_int_equal(nxl_lock_cancel(locks[i]), NXL_OK);
    loop_until(client, (size_t)LOCKS / 2);
    redis_thaw(&server);
    loop_until(client, LOCKS);
    int cancelled = 0;
    for (int i = 0; i < LOCKS; i++) {
        cancelled += loop.event[i].result == NXL_CANCELLED;
        assert_true(loop.event[i].result == NXL_CANCELLED ||
                    loop.event[i].result == NXL_OK);
    }
    assert_int_equal(cancelled, LOCKS / 2);
    loop.count = 0;
    all_do(NXL_OP_RELEASE);
    assert_int_equal(redis_run(&server, "DBSIZE", NULL), 0);
    loop_until_true(client, nobody_in_multi());
    close_locks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(each_verb_of_all_locks_at_once),
        place_test(different_verbs_at_once),
        place_test(threads_share_a_client),
        place_test(waiting_locks_use_no_processor_time),
        place_test(no_answer_in_time_to_any_lock),
        place_test(client_freed_while_all_are_held),
        place_test(half_are_cancelled_while_the_server_hangs),
    };
    int rc = 0;
    places_run(rc);
    return rc;
}
