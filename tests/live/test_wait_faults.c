/* SPDX-License-Identifier: MIT */
/*
 * The table of wait_replicas (docs/failover.md) on real servers: each of
 * acquire, begin, extend and tell, with each fault of the replica or of the
 * connection, by a blocking call and by the event loop; and that it succeeds
 * when the fault is over.
 */
#include "support/test.h"

#include "live/loop_rig.h"
#include "live/replica_rig.h"

enum { TTL_MS = 20000, RECOVERY_MS = 30000 };

enum fault {
    FAULTLESS,
    STOPPED,       /* the replica, by SIGSTOP */
    LEFT,          /* it follows somebody else */
    KILLED,        /* the replica, while it is awaited */
    DEMOTED,       /* the server becomes a replica, while the call waits */
    NOT_WRITTEN,   /* as STOPPED, and EVALSHA is answered NOSCRIPT */
    NOT_CONNECTED, /* as that, on a connection that has written nothing */
    CUT_OFF,       /* from the server, while the call waits */
    FAULTS
};

static const char *const fault_names[FAULTS] = {
    "no fault",
    "the replica is stopped",
    "no replica is there",
    "the replica is killed during the wait",
    "the server is demoted during the wait",
    "the replica is stopped, and the script is unknown",
    "the replica is stopped, and the script and the connection are new",
    "the connection is lost during the wait",
};

/* For how long WAIT waits: during it the fault happens, or not. */
#define BRIEF "&wait_ms=60&timeout_ms=4000&poll=1"
#define LONG "&wait_ms=1300&timeout_ms=4000&poll=1"
#define PATIENT "&wait_ms=5000&timeout_ms=10000&poll=1"

static bool strikes_later(enum fault fault)
{
    return fault == KILLED || fault == DEMOTED || fault == CUT_OFF;
}

static void strike(enum fault fault)
{
    if (fault == NOT_WRITTEN || fault == NOT_CONNECTED)
        redis_run(&server, "SCRIPT", "FLUSH", NULL);
    if (fault == NOT_CONNECTED)
        redis_run(&server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    if (fault == LEFT) {
        redis_follow(&replica, "1");
        assert_eventually(
            server_number(&server, "replication", "connected_slaves") == 0);
    } else if (fault != FAULTLESS) {
        redis_freeze(&replica);
    }
}

static void strike_later(enum fault fault)
{
    if (fault == KILLED)
        redis_kill(&replica);
    if (fault == DEMOTED)
        redis_follow(&server, "1");
    if (fault == CUT_OFF)
        redis_run(
            &server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
}

/* ------------------------------------------------------------------- a call */

enum verb { ACQUIRE, BEGIN, EXTEND, TELL, VERBS };

static const char *const verb_names[VERBS] = {
    "acquire", "begin", "extend", "tell"};
static const int operations[VERBS] = {
    NXL_OP_ACQUIRE, NXL_OP_ONCE_BEGIN, NXL_OP_EXTEND, NXL_OP_ONCE_TELL};

static int call(enum verb verb, nxl_lock *lock)
{
    switch (verb) {
    case ACQUIRE:
        return nxl_lock_acquire(lock, 0);
    case BEGIN:
        return nxl_once_begin(lock, NULL, 0);
    case EXTEND:
        return nxl_lock_extend(lock, 2 * TTL_MS);
    case TELL:
    case VERBS:
        break;
    }
    return nxl_once_tell(lock, NXL_ONCE_DONE, 0, "x", 1);
}

static int call_start(enum verb verb, nxl_lock *lock)
{
    switch (verb) {
    case ACQUIRE:
        return nxl_lock_acquire_start(lock, 0);
    case BEGIN:
        return nxl_once_begin_start(lock, NULL, 0);
    case EXTEND:
        return nxl_lock_extend_start(lock, 2 * TTL_MS);
    case TELL:
    case VERBS:
        break;
    }
    return nxl_once_tell_start(lock, NXL_ONCE_DONE, 0, "x", 1);
}

/* Static, for a test that fails leaves its frame while the thread runs. */
static struct {
    pthread_t thread;
    enum verb verb;
    nxl_lock *lock;
    int result;
} blocking;

static void *run_blocking(void *unused)
{
    blocking.result = call(blocking.verb, blocking.lock);
    return unused;
}

static int play_blocking(enum verb verb, enum fault fault, nxl_lock *lock)
{
    blocking.verb = verb;
    blocking.lock = lock;
    assert_int_equal(
        pthread_create(&blocking.thread, NULL, run_blocking, NULL), 0);
    if (strikes_later(fault)) {
        assert_eventually(replica_is_awaited());
        strike_later(fault);
    }
    assert_int_equal(pthread_join(blocking.thread, NULL), 0);
    return blocking.result;
}

static int play_by_loop(
    enum verb verb, enum fault fault, nxl_client *client, nxl_lock *lock)
{
    size_t events = loop.count;
    assert_int_equal(call_start(verb, lock), NXL_PENDING);
    if (strikes_later(fault)) {
        loop_until_true(client, replica_is_awaited());
        strike_later(fault);
    }
    loop_until(client, events + 1);
    assert_int_equal(loop.event[events].operation, operations[verb]);
    return loop.event[events].result;
}

static int play(enum verb verb, enum fault fault, bool by_loop,
    nxl_client *client, nxl_lock *lock)
{
    return by_loop ? play_by_loop(verb, fault, client, lock)
                   : play_blocking(verb, fault, lock);
}

/* --------------------------------------------------------------- the table */

static bool grants(enum verb verb)
{
    return verb == ACQUIRE || verb == BEGIN;
}

static int expected(enum verb verb, enum fault fault)
{
    if (fault == FAULTLESS)
        return NXL_OK;
    bool answered = fault != CUT_OFF && fault != DEMOTED;
    return grants(verb) && answered ? NXL_E_REFUSED : NXL_UNKNOWN;
}

static void assert_words(enum verb verb, enum fault fault, const nxl_lock *lock)
{
    const char *words = nxl_lock_errmsg(lock);
    if (fault == FAULTLESS)
        assert_string_equal(words, "");
    else if (fault == DEMOTED)
        assert_contains(words, "WAIT was refused: UNBLOCKED");
    else if (fault == CUT_OFF && grants(verb))
        assert_contains(words, "connection");
    else /* an extension and a verdict are sent again to where it was cut off */
        assert_contains(words, strikes_later(fault)
                                   ? "0 of 1 replica had it within 1.3s"
                                   : "0 of 1 replica had it within 60ms");
    if (fault != FAULTLESS && fault != DEMOTED && !grants(verb))
        assert_contains(words, "was applied, but a failover may lose it");
}

/* The server knows the scripts: behind NOSCRIPT there would be another WAIT. */
static void load_scripts(void)
{
    nxl_client *client = client_at(server.unix_url);
    nxl_lock *lock = new_lock(client, "other", TTL_MS);
    assert_result(nxl_once_begin(lock, NULL, 0), NXL_OK, lock);
    assert_result(nxl_once_tell(lock, NXL_ONCE_DONE, 0, NULL, 0), NXL_OK, lock);
    end(lock, client);
}

/* What the call needs first. */
static void prepare(
    enum verb verb, bool by_loop, nxl_client *client, nxl_lock *lock)
{
    loop_reset(false);
    load_scripts();
    if (verb == EXTEND)
        assert_int_equal(
            play(ACQUIRE, FAULTLESS, by_loop, client, lock), NXL_OK);
    if (verb == TELL)
        assert_int_equal(play(BEGIN, FAULTLESS, by_loop, client, lock), NXL_OK);
}

/* Is it as if the call had not been? A verdict is recorded, if it came to the
 * server, and a longer lease is there; the program relies on neither. */
static void assert_undone(
    enum verb verb, const nxl_lock *lock, uint64_t deadline)
{
    assert_int_equal(nxl_lock_held(lock), verb == EXTEND);
    assert_true(nxl_lock_deadline(lock) == (verb == EXTEND ? deadline : 0));
}

static void recover(enum fault fault)
{
    if (fault == KILLED)
        redis_restart(&replica);
    redis_thaw(&replica);
    redis_promote(&server);
    replica_follow();
}

/* The same call again: what it has to say now. */
static void assert_recovers(
    enum verb verb, bool by_loop, nxl_client *client, nxl_lock *lock)
{
    int64_t end_ms = test_now_ms() + RECOVERY_MS;
    uint64_t deadline = nxl_lock_deadline(lock);
    int result;
    while ((result = play(verb, FAULTLESS, by_loop, client, lock)) != NXL_OK) {
        assert_true(grants(verb) ? result == NXL_E_REFUSED || result == NXL_BUSY
                                 : result == NXL_UNKNOWN);
        assert_true(test_now_ms() < end_ms);
    }
    assert_int_equal(nxl_lock_held(lock), verb != TELL);
    assert_true(verb == TELL || nxl_lock_deadline(lock) > deadline);
    assert_true(redis_exists(&replica, verb == TELL ? "{k}:once" : "k"));
}

static void play_cell(enum verb verb, enum fault fault, bool by_loop)
{
    nxl_client *client = waiting_client(fault == FAULTLESS     ? PATIENT
                                        : strikes_later(fault) ? LONG
                                                               : BRIEF);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    prepare(verb, by_loop, client, lock);
    uint64_t deadline = nxl_lock_deadline(lock);
    strike(fault);
    int result = play(verb, fault, by_loop, client, lock);
    live_assert_result(result, expected(verb, fault), nxl_lock_errmsg(lock),
        __FILE__, __LINE__);
    assert_words(verb, fault, lock);
    if (fault != FAULTLESS) {
        assert_undone(verb, lock, deadline);
        if (grants(verb) && !by_loop && (fault == STOPPED || fault == LEFT))
            assert_eventually(!redis_exists(&server, "k"));
        recover(fault);
        assert_recovers(verb, by_loop, client, lock);
    }
    end(lock, client);
}

static void play_row(void **state, enum verb verb)
{
    for (int fault = 0; fault < FAULTS; fault++)
        for (int by_loop = 0; by_loop < 2; by_loop++) {
            print_message("%s: %s (%s)\n", verb_names[verb], fault_names[fault],
                by_loop ? "event loop" : "blocking");
            assert_int_equal(replica_set_up(state), 0);
            play_cell(verb, (enum fault)fault, by_loop);
        }
}

static void an_acquire(void **state)
{
    play_row(state, ACQUIRE);
}

static void a_begin(void **state)
{
    play_row(state, BEGIN);
}

static void an_extension(void **state)
{
    play_row(state, EXTEND);
}

static void a_tell(void **state)
{
    play_row(state, TELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acquire),
        cmocka_unit_test(a_begin),
        cmocka_unit_test(an_extension),
        cmocka_unit_test(a_tell),
    };
    return cmocka_run_group_tests_name(
        "wait_replicas with faults", tests, replica_start, replica_stop);
}
