/* SPDX-License-Identifier: MIT */
/*
 * What a client with guard_failover does when a replica takes over, with the
 * latest lock or without, and what happens without the guard.
 */
#include "live/failover_rig.h"
#include "wire/script.h"

#define MARKER "nxl-p"
/* With this the guard lasts for 7 s. */
#define LONG_GUARDED "timeout_ms=5000&max_ttl_ms=5000&guard_failover=on"
enum { LONG_GUARD_MS = 7000 };

/* The replica is cut off, so that it misses what comes now. */
static void cut_off(void)
{
    redis_follow(replica, "1");
}

/* This server has been the primary for a minute, as a client has noted: by a
 * key that stays for 400 days (marker.lua). */
static void mark_as_old(struct redis *r)
{
    char mark[128], history[64] = "";
    redisReply *info = redis_command(r, "INFO", "replication", NULL);
    const char *id = strstr(info->str, "master_replid:");
    assert_non_null(id);
    assert_int_equal(sscanf(id, "master_replid:%63[0-9a-f]", history), 1);
    freeReplyObject(info);
    snprintf(mark, sizeof(mark), "%s 60000", history);
    redis_run(r, "SET", MARKER, mark, "PX", "34560000000", NULL);
}

/* ------------------------------------------------------------------- crash */

struct crash {
    nxl_client *holder, *other;
    nxl_lock *held, *wanted;
};

/* The lock is granted, not replicated, and the primary is stopped. */
static struct crash crash(const char *parameters)
{
    struct crash c = {living(parameters), living(parameters), NULL, NULL};
    c.held = new_lock(c.holder, "k", TTL_MS);
    c.wanted = new_lock(c.other, "k", TTL_MS);
    cut_off();
    assert_result(nxl_lock_acquire(c.held, 0), NXL_OK, c.held);
    redis_run(primary, "CLIENT", "KILL", "TYPE", "normal", NULL);
    redis_freeze(primary);
    promote();
    return c;
}

static void crash_ends(struct crash *c)
{
    end(c->held, c->holder);
    end(c->wanted, c->other);
}

static void a_living_client_waits_for_the_last_lease(void **state)
{
    struct crash c = crash(GUARDED);
    int64_t promoted = test_now_ms();
    assert_result(nxl_lock_acquire(c.wanted, 0), NXL_E_REFUSED, c.wanted);
    assert_contains(nxl_lock_errmsg(c.wanted), "it grants locks again in");
    assert_result(nxl_lock_acquire(c.wanted, 8000), NXL_OK, c.wanted);
    assert_false(nxl_lock_held(c.held));
    assert_waited_once(promoted);
    crash_ends(&c);
}

/* The first one sets the marker; those that come later count from then. */
static void fresh_clients_wait_as_long_and_once(void **state)
{
    struct crash c = crash(GUARDED);
    int64_t promoted = test_now_ms();
    nxl_client *first = client_of(GUARDED);
    nxl_lock *lock = new_lock(first, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "may have forgotten locks");
    assert_true(redis_exists(replica, MARKER));
    assert_true(redis_pttl(replica, MARKER) > INT64_C(34000000000));
    end(lock, first);
    int rc = NXL_E_REFUSED;
    /* Each process is a new one. */
    while ((rc == NXL_E_REFUSED || rc == NXL_E_UNREACHABLE) &&
           test_now_ms() < promoted + 30000) {
        nxl_client *next = client_of(GUARDED);
        lock = new_lock(next, "k", TTL_MS);
        rc = nxl_lock_acquire(lock, 0);
        if (rc == NXL_OK)
            assert_false(nxl_lock_held(c.held));
        end(lock, next);
        test_pause_ms(50);
    }
    assert_int_equal(rc, NXL_OK);
    assert_waited_once(promoted);
    crash_ends(&c);
}

/* The former primary is woken, and a connection to it is still open: it would
 * grant the lock that the new one has granted. */
static void a_woken_primary_is_asked_first(void **state)
{
    nxl_client *client = living(GUARDED);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    cut_off();
    long infos = redis_calls(primary, "info"), own = 0;
    redis_freeze(primary);
    test_pause_ms(1100); /* now the connection was silent for a second */
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_UNREACHABLE, lock);
    redis_thaw(primary);
    assert_eventually(redis_calls(primary, "info") > infos + ++own);
    assert_false(redis_exists(primary, "k"));
    end(lock, client);
}

/* It was a replica meanwhile, and its connections stayed. */
static void the_same_process_is_promoted_again(void **state)
{
    nxl_client *client = living(GUARDED);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    redis_follow(primary, "1");
    redis_promote(primary);
    test_pause_ms(1100);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock), "promoted");
    assert_result(nxl_lock_acquire(lock, 8000), NXL_OK, lock);
    end(lock, client);
}

/* Sends both at once; they are carried out when the server is woken. */
static void send_release_and_demotion(redisContext *c)
{
    struct slice release = scripts[SCRIPT_RELEASE].body;
    int done = 0;
    redisAppendCommand(c, "EVAL %b 1 k H", release.data, release.len);
    redisAppendCommand(c, "REPLICAOF 127.0.0.1 1");
    while (!done)
        assert_int_equal(redisBufferWrite(c, &done), REDIS_OK);
}

/* False: it began so late that it asked for a sign of life first. */
static bool is_unknown_after_a_freeze(nxl_lock *lock)
{
    struct waiter waiter;
    assert_result(nxl_lock_acquire(lock, 8000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    redis_freeze(primary);
    waiter_start(&waiter, lock, 0);
    test_pause_ms(1500); /* that long a sign of life does not last */
    redis_thaw(primary);
    if (waiter_join(&waiter) != NXL_OK) {
        assert_result(waiter.result, NXL_UNKNOWN, lock);
        return true;
    }
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    return false;
}

/* A grant that is answered too late does not count, but it was applied: that is
 * unknown until it has been undone, and not "unreachable". */
static void a_grant_that_comes_too_late_is_unknown(void **state)
{
    (void)state;
    nxl_client *client =
        client_of("timeout_ms=4000&max_ttl_ms=5000&guard_failover=on");
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_in_three_tries(is_unknown_after_a_freeze(lock));
    assert_false(nxl_lock_held(lock));
    assert_eventually(!redis_exists(primary, "k"));
    end(lock, client);
}

/* The former primary is woken, hands the lock over to a waiter of its line, and
 * is told that it is a replica. The message comes over connections that are
 * still open; but the last sign of life is older than a second, so the waiter
 * asks before it believes that. */
static void a_message_of_a_woken_primary_does_not_count(void **state)
{
    enum { LEASE_MS = 5000 };
    struct waiter waiter;
    mark_as_old(primary);
    nxl_client *client = client_of(LONG_GUARDED);
    nxl_client *other = client_of("");
    nxl_lock *waits = new_lock(client, "k", LEASE_MS);
    nxl_lock *lock = new_lock(other, "k", 20000);
    redisContext *admin = redisConnectUnix(primary->path);
    assert_true(admin && !admin->err);
    cut_off();
    redis_run(primary, "SET", "k", "H", "PX", "20000", NULL);
    waiter_start(&waiter, waits, 4000);
    assert_eventually(redis_run(primary, "ZCARD", "{k}:nxl-l", NULL) == 1 &&
                      server_number(primary, "stats", "pubsub_channels") == 1);
    redis_freeze(primary);
    test_pause_ms(200); /* the waiter asks whether it is its turn */
    send_release_and_demotion(admin);
    promote();
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    test_pause_ms(1500); /* the age of the sign of life is what matters */
    redis_thaw(primary);
    assert_int_not_equal(waiter_join(&waiter), NXL_OK);
    assert_false(nxl_lock_held(waits));
    assert_true(nxl_lock_held(lock));
    redisFree(admin);
    end(lock, other);
    end(waits, client);
}

/* ---------------------------------------------------------------- hand-over */

/* FAILOVER loses nothing; the former primary says so while the address leads
 * to it, once it follows the new one, and the client tells all others. */
static void after_a_hand_over_a_second_is_enough(void **state)
{
    mark_as_old(primary);
    nxl_client *client = living(LONG_GUARDED);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    redis_run(primary, "FAILOVER", NULL);
    assert_eventually(redis_has_copied(primary));
    /* The first call is refused, the next one asks the server what it is. */
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    lead_front_to(replica);
    assert_result(nxl_lock_acquire(lock, LONG_GUARD_MS - 2000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_client *fresh = client_of(LONG_GUARDED);
    nxl_lock *other = new_lock(fresh, "k", TTL_MS);
    assert_result(nxl_lock_acquire(other, 0), NXL_OK, other);
    end(other, fresh);
    end(lock, client);
}

/* ------------------------------------------------------------ no promotion */

static void a_wait_goes_on_while_it_is_a_replica(void **state)
{
    nxl_client *client = living(GUARDED);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    lead_front_to(replica);
    nxl_client *other = client_of(GUARDED);
    nxl_lock *fresh = new_lock(other, "k", TTL_MS);
    assert_result(nxl_lock_acquire(fresh, 300), NXL_E_REFUSED, fresh);
    assert_contains(nxl_lock_errmsg(fresh), "a replica");
    end(fresh, other);
    end(lock, client);
    client = client_of(UNGUARDED); /* which ends at once */
    lock = new_lock(client, "k", TTL_MS);
    int64_t began = test_now_ms();
    assert_result(nxl_lock_acquire(lock, 5000), NXL_E_REFUSED, lock);
    assert_between(test_now_ms() - began, 0, 1000 + LATE_MS);
    end(lock, client);
}

/* It may have been promoted, so the client looks for the primary anew, once. */
static void a_replica_leaves_and_the_lock_stays(void **state)
{
    nxl_stats before, after;
    mark_as_old(primary);
    nxl_client *client = living(LONG_GUARDED);
    nxl_lock *lock = new_lock(client, "k", 5000);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_int_equal(nxl_client_stats(client, &before, sizeof(before)), NXL_OK);
    cut_off();
    assert_eventually(
        server_number(primary, "replication", "connected_slaves") == 0);
    int64_t end_ms = test_now_ms() + 3 * TTL_MS;
    while (test_now_ms() < end_ms) {
        assert_result(nxl_lock_extend(lock, 0), NXL_OK, lock);
        test_pause_ms(TTL_MS / 9);
    }
    assert_int_equal(nxl_client_stats(client, &after, sizeof(after)), NXL_OK);
    assert_int_equal(after.reconnects - before.reconnects, 1);
    end(lock, client);
}

static void a_freed_backlog_is_no_promotion(void **state)
{
    cut_off();
    nxl_client *client = living(GUARDED);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    redis_run(primary, "CONFIG", "SET", "repl-backlog-ttl", "1", NULL);
    assert_eventually(
        server_number(primary, "replication", "repl_backlog_active") == 0);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    nxl_lock_free(lock);
    nxl_client *fresh = client_of(GUARDED);
    lock = new_lock(fresh, "k2", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    end(lock, fresh);
    nxl_client_free(client);
    redis_run(primary, "CONFIG", "SET", "repl-backlog-ttl", "3600", NULL);
}

/* ----------------------------------------------------------------- warning */

static int warnings;
static char warned[1024];

static void note(void *arg, const char *text)
{
    warnings++;
    snprintf(warned, sizeof(warned), "%s", text);
}

/* A program that hears of failovers. */
static nxl_trace traced;
static char traced_text[1024];
static int traces;

static void hear(void *arg, const nxl_trace *trace)
{
    if (trace->kind != NXL_TRACE_FAILOVER)
        return;
    traces++;
    traced = *trace;
    snprintf(traced_text, sizeof(traced_text), "%s", trace->text);
}

/* Other warnings are not counted. */
static void note_failover(void *arg, const char *text)
{
    if (strstr(text, "a failover was seen: "))
        note(arg, text);
}

static nxl_client *hearing(const char *url)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.warning = note_failover;
    options.tracer = hear;
    warnings = traces = 0;
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    return client;
}

static void get_and_release(nxl_lock *lock)
{
    assert_result(nxl_lock_acquire(lock, 8000), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
}

/* The other server takes over, and what leads to the former one is cut. */
static void fail_over(void)
{
    struct redis *former = primary;
    promote();
    redis_run(former, "CLIENT", "KILL", "TYPE", "normal", NULL);
    primary = replica;
    replica = former;
}

static void each_failover_is_told_of_once(void **state)
{
    nxl_client *client = hearing(front_url(GUARDED));
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    get_and_release(lock);
    for (int i = 1; i <= 2; i++) {
        fail_over();
        assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
        assert_int_equal(warnings, i);
        assert_int_equal(traces, i);
        assert_contains(warned, front);
        assert_contains(warned, ": a failover was seen: promoted ");
        assert_contains(warned, "s ago; it may have forgotten locks; "
                                "it grants locks again in ");
        assert_contains(traced_text, front);
        assert_contains(traced_text, "; it grants locks again in ");
        assert_null(traced.lock);
        assert_null(traced.user);
        assert_between(traced.left_ms, 1, GUARD_MS);
        get_and_release(lock); /* when the guard is over: nothing more */
        get_and_release(lock);
        assert_int_equal(warnings, i);
        assert_int_equal(traces, i);
        follow();
    }
    end(lock, client);
}

/* The call that saw the failover returns when the guard is over. */
static void the_warning_is_right_when_it_is_given(void **state)
{
    nxl_client *client = hearing(front_url(GUARDED));
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    get_and_release(lock);
    fail_over();
    get_and_release(lock);
    assert_int_equal(warnings, 1);
    assert_contains(warned, "; it granted no locks until ");
    assert_contains(traced_text, "; it grants locks again in ");
    end(lock, client);
}

/* Without the guard no lock pauses. */
static void without_the_guard_there_is_no_warning(void **state)
{
    nxl_client *client = hearing(front_url(UNGUARDED "&guard_failover=off"));
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    get_and_release(lock);
    fail_over();
    get_and_release(lock);
    assert_int_equal(warnings, 0);
    assert_int_equal(traces, 0);
    end(lock, client);
}

static bool is_met(nxl_client *client, size_t number)
{
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(nxl_client_server_facts(client, number, &facts), NXL_OK);
    return facts.role != NXL_ROLE_UNKNOWN;
}

/* One of three servers fails over: the others grant the lock. */
static void of_several_the_vote_pauses(void **state)
{
    struct redis others[2];
    char url[3 * sizeof(front) + 128];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(redis_start(&others[i], NULL), 0);
        while (server_number(&others[i], "server", "uptime_in_seconds") < 3)
            test_pause_ms(20);
    }
    snprintf(url, sizeof(url), "%s,unix://%s,unix://%s", front_url(UNGUARDED),
        others[0].path, others[1].path);
    nxl_client *client = hearing(url);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    while (!is_met(client, 0)) /* two others are enough for a lock */
        get_and_release(lock);
    fail_over();
    while (traces == 0)
        get_and_release(lock);
    get_and_release(lock);
    assert_int_equal(traces, 1);
    assert_int_equal(warnings, 1);
    assert_contains(warned, front);
    assert_contains(warned, "; its vote counts again in ");
    end(lock, client);
    for (int i = 0; i < 2; i++)
        redis_stop(&others[i]);
}

/* The holder's program has a larger max_ttl_ms: this client has seen that, and
 * waits for as long. */
static void a_longer_lease_is_waited_for(void **state)
{
    enum { LONG_MS = 5000 };
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *holder = living("max_ttl_ms=5000"), *client;
    nxl_lock *held = new_lock(holder, "k", LONG_MS);
    options.warning = note;
    assert_int_equal(
        nxl_client_new(&client, front_url(GUARDED), &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    get_and_release(lock);
    cut_off();
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    warnings = 0;
    for (int i = 0; i < 2; i++) {
        assert_result(nxl_lock_acquire(lock, 150), NXL_BUSY, lock);
        assert_int_equal(warnings, 1); /* once */
    }
    assert_contains(warned, "front: the lock 'k' is held for ");
    assert_contains(warned, " more, but max_ttl_ms is 900ms: ");
    redis_run(primary, "CLIENT", "KILL", "TYPE", "normal", NULL);
    redis_freeze(primary);
    promote();
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(
        nxl_lock_errmsg(lock), "forgotten locks, some of which last for ");
    assert_result(nxl_lock_acquire(lock, 12000), NXL_OK, lock);
    assert_false(nxl_lock_held(held));
    end(lock, client);
    end(held, holder);
}

#define failover_test(function)                                                \
    cmocka_unit_test_setup(function, failover_set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        failover_test(a_living_client_waits_for_the_last_lease),
        failover_test(fresh_clients_wait_as_long_and_once),
        failover_test(a_woken_primary_is_asked_first),
        failover_test(a_grant_that_comes_too_late_is_unknown),
        failover_test(a_message_of_a_woken_primary_does_not_count),
        failover_test(the_same_process_is_promoted_again),
        failover_test(after_a_hand_over_a_second_is_enough),
        failover_test(a_wait_goes_on_while_it_is_a_replica),
        failover_test(a_replica_leaves_and_the_lock_stays),
        failover_test(a_freed_backlog_is_no_promotion),
        failover_test(each_failover_is_told_of_once),
        failover_test(the_warning_is_right_when_it_is_given),
        failover_test(without_the_guard_there_is_no_warning),
        failover_test(of_several_the_vote_pauses),
        failover_test(a_longer_lease_is_waited_for),
    };
    return cmocka_run_group_tests_name(
        "failover", tests, failover_start, failover_stop);
}
