/* SPDX-License-Identifier: MIT */
/*
 * What a program hears and says besides results, as far as it is no scene
 * (live/scenes/interrupt.scenes, stats.scenes): an interruption out of a signal
 * handler; statistics are of any size; and the trace tells each decision once,
 * in order.
 */
#include "renew_rig.h"

#include <sys/wait.h>

/* ------------------------------------------------------------- interruption */

static nxl_client *interrupted; /* by the signal */

static void on_signal(int number)
{
    (void)number;
    nxl_client_interrupt(interrupted);
}

static void handle(nxl_client *client)
{
    struct sigaction action = {.sa_handler = on_signal};
    interrupted = client;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

/* A single thread, which is in the call when the signal comes. */
static void out_of_a_handler(void **state)
{
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 5000);
    stranger_sets("k", "somebody", 0);
    handle(client);
    for (int i = 0; i < 5; i++) {
        pid_t parent = getpid(), child = test_fork();
        if (child == 0) {
            test_pause_ms(50 + 10 * i);
            _exit(kill(parent, SIGUSR1) != 0);
        }
        assert_result(nxl_lock_acquire(lock, NXL_FOREVER), NXL_CANCELLED, lock);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    assert_result(nxl_lock_acquire(lock, 50), NXL_BUSY, lock);
    assert_value("k", "somebody");
    end(lock, client);
}

/* --------------------------------------------------------------- statistics */

static void of_any_size(void **state)
{
    struct {
        nxl_stats stats;
        uint64_t more[4];
    } s;
    uint64_t attempts[2] = {7, 7};
    nxl_client *client = new_client("");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    memset(&s, 255, sizeof(s));
    assert_int_equal(nxl_client_stats(client, &s.stats, sizeof(s)), NXL_OK);
    assert_int_equal(s.stats.attempts, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(s.more[i], 0);
    assert_int_equal(
        nxl_client_stats(client, (nxl_stats *)attempts, sizeof(attempts[0])),
        NXL_OK);
    assert_int_equal(attempts[0], 1);
    assert_int_equal(attempts[1], 7);
    assert_int_equal(nxl_client_stats(client, &s.stats, 0), NXL_E_INVALID);
    assert_int_equal(nxl_client_stats(client, NULL, 8), NXL_E_INVALID);
    assert_int_equal(nxl_client_stats(NULL, &s.stats, 8), NXL_E_INVALID);
    end(lock, client);
}

/* -------------------------------------------------------------------- trace */

enum { TRACES = 200 };
static struct told {
    nxl_trace trace[TRACES];
    char text[TRACES][100];
    size_t count;
} told;

static void on_trace(void *arg, const nxl_trace *trace)
{
    struct told *t = arg;
    if (t->count == TRACES)
        return;
    t->trace[t->count] = *trace;
    snprintf(t->text[t->count], sizeof(t->text[0]), "%s", trace->text);
    t->count++;
}

/* Of a client whose decisions are told. */
static nxl_lock *traced_lock(nxl_client **client)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    memset(&told, 0, sizeof(told));
    options.tracer = on_trace;
    options.tracer_arg = &told;
    assert_int_equal(nxl_client_new(client, server_url, &options), NXL_OK);
    return kept_lock(*client, "k", &OPTIONS(.user = &told));
}

static void assert_traced(
    size_t at, nxl_lock *lock, int kind, int operation, int result)
{
    const nxl_trace *t = &told.trace[at];
    assert_true(at < told.count);
    assert_int_equal(t->kind, kind);
    assert_int_equal(t->operation, operation);
    assert_int_equal(t->result, result);
    assert_ptr_equal(t->lock, lock);
    assert_ptr_equal(t->user, &told);
    assert_true(t->at_ns <= nxl_now_ns());
    assert_true(at == 0 || t->at_ns >= told.trace[at - 1].at_ns);
}

static void each_decision_is_told_in_order(void **state)
{
    nxl_client *client;
    nxl_lock *lock = traced_lock(&client);
    assert_int_equal(told.count, 0);
    stranger_sets("k", "somebody", 0);
    assert_result(nxl_lock_acquire(lock, 0), NXL_BUSY, lock);
    assert_int_equal(told.count, 2);
    assert_traced(0, lock, NXL_TRACE_ATTEMPT, 0, NXL_OK);
    assert_traced(1, lock, NXL_TRACE_END, NXL_OP_ACQUIRE, NXL_BUSY);
    redis_run(&server, "DEL", "k", NULL);

    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    comes_true(stats_of(client).renewals >= 2, 5000);
    redis_run(&server, "DEL", "k", NULL);
    assert_ptr_equal(await_loss(client, 5000), lock);
    assert_result(nxl_lock_release(lock), NXL_LOST, lock);
    assert_traced(2, lock, NXL_TRACE_ATTEMPT, 0, NXL_OK);
    assert_traced(3, lock, NXL_TRACE_END, NXL_OP_ACQUIRE, NXL_OK);
    assert_between(told.trace[3].left_ms, 1, RENEW_MS);
    size_t at = 4;
    for (; at < told.count && told.trace[at].kind == NXL_TRACE_RENEWAL; at++) {
        assert_traced(at, lock, NXL_TRACE_RENEWAL, 0, NXL_OK);
        assert_between(told.trace[at].left_ms, 1, RENEW_MS);
    }
    assert_int_equal(at - 4, stats_of(client).renewals);
    assert_traced(at, lock, NXL_TRACE_LOSS, 0, NXL_LOSS_REMOVED);
    assert_int_equal(told.trace[at].left_ms, 0);
    assert_contains(told.text[at], "removed");
    assert_traced(at + 1, lock, NXL_TRACE_END, NXL_OP_RELEASE, NXL_LOST);
    assert_int_equal(told.count, at + 2);
    end(lock, client);
}

static void what_fails_is_told(void **state)
{
    nxl_client *client;
    nxl_lock *lock = traced_lock(&client);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    redis_freeze(&server);
    assert_ptr_equal(await_loss(client, 5000), lock);
    redis_thaw(&server);
    end(lock, client);
    size_t failed = 0, at = 2;
    for (; told.trace[at].kind == NXL_TRACE_RENEWAL; at++) {
        failed += told.trace[at].result != NXL_OK;
        if (told.trace[at].result != NXL_OK)
            assert_string_not_equal(told.text[at], "");
    }
    assert_true(failed >= 2);
    assert_traced(at, lock, NXL_TRACE_LOSS, 0, NXL_LOSS_UNREACHABLE);
    assert_contains(told.text[at], "could not be renewed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(out_of_a_handler),
        live_test(of_any_size),
        live_test(each_decision_is_told_in_order),
        live_test(what_fails_is_told),
    };
    return live_run("what is told");
}
