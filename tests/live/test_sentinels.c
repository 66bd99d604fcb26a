/* SPDX-License-Identifier: MIT */
/*
 * A primary with a replica, and three Sentinels that watch them: how the client
 * finds the primary, whom it believes, how it follows a failover, and what it
 * says when it cannot.
 *
 * Leases of at most 3 s: after a failover no lock is granted for 6 s.
 */
#define TEST_TIMEOUT_S 240
#include "support/test.h"

#include <netdb.h>
#include <stdatomic.h>

#include "api/private.h"
#include "base/text.h"
#include "live/loop_rig.h"
#include "live/renew_rig.h"
#include "live/sentinel_rig.h"

enum { TTL_MS = 6000, PAUSE_MS = 40000 };

/* Older than any lease, and named for as long. */
static int start(void **state)
{
    return sentinels_start(12);
}

/* Behind a failover, where the first server is a replica soon. */
static int thaw(void **state)
{
    (void)state;
    for (int i = 0; i < SENTINELS; i++)
        redis_thaw(&sentinels[i]);
    return 0;
}

static int set_up(void **state)
{
    (void)thaw(state);
    return live_clean(state);
}

/* The first count Sentinels. */
static nxl_client *client_by(int count, const char *service, const char *more)
{
    char url[512];
    sentinels_url(url, sizeof(url), count);
    snprintf(url + strlen(url), sizeof(url) - strlen(url),
        "/%s?max_ttl_ms=%d&timeout_ms=3000%s", service, TTL_MS, more);
    return client_at(url);
}

/* ---------------------------------------------------------------- its place */

static void note_warning(void *arg, const char *text)
{
    struct text *warned = arg;
    text_add(warned, text);
}

/* With Sentinels it is on without being written. */
static void the_guard_is_not_asked_for(void **state)
{
    (void)state;
    char url[512];
    static struct text warned;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    options.warning = note_warning;
    options.warning_arg = &warned;
    sentinels_url(url, sizeof(url), SENTINELS);
    snprintf(url + strlen(url), sizeof(url) - strlen(url),
        "/svc?max_ttl_ms=%d&timeout_ms=3000", TTL_MS);
    assert_int_equal(nxl_client_new(&client, url, &options), NXL_OK);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    for (int i = 0; i < 3; i++) {
        assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
        assert_result(nxl_lock_release(lock), NXL_OK, lock);
    }
    assert_null(strstr(warned.data, "guard_failover"));
    nxl_lock_free(lock);
    nxl_client_free(client);
}

static void the_primary_is_found(void **state)
{
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    char line[512];
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_true(redis_exists(&server, "k"));
    nxl_client_describe(client, line, sizeof(line));
    assert_contains(line, server.url);
    assert_result(nxl_lock_extend(lock, TTL_MS), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

static void loop_gets_and_releases(nxl_client *client, nxl_lock *lock)
{
    assert_int_equal(nxl_lock_acquire_start(lock, 0), NXL_PENDING);
    assert_event(client, lock, NXL_OP_ACQUIRE, NXL_OK);
    assert_int_equal(nxl_lock_release_start(lock), NXL_PENDING);
    assert_event(client, lock, NXL_OP_RELEASE, NXL_OK);
}

/* Nothing is asked while nothing is held or wanted. */
static void in_an_event_loop_idle_clients_ask_nobody(void **state)
{
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    loop_gets_and_releases(client, lock);
    loop_for(client, 2500); /* more than two looks */
    assert_int_equal(nxl_client_server_facts(client, 0, &facts), NXL_OK);
    assert_true(facts.confirmed_ms >= 2000);
    loop_gets_and_releases(client, lock);
    end(lock, client);
}

/* ------------------------------------------------------- one name for several
 */

int __real_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list);

#define NOBODY "127.0.0.77" /* "half.test": the first Sentinel, and nobody */
static atomic_int named = SENTINELS; /* so many are addresses of "sen.test" */

int __wrap_getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    int rc = EAI_AGAIN;
    if (!(hints->ai_flags & AI_NUMERICHOST) && !strcmp(host, "half.test")) {
        rc = __real_getaddrinfo(addresses[0], service, hints, list);
        return rc ? rc
                  : __real_getaddrinfo(
                        NOBODY, service, hints, &(*list)->ai_next);
    }
    if (hints->ai_flags & AI_NUMERICHOST || strcmp(host, "sen.test") != 0)
        return __real_getaddrinfo(host, service, hints, list);
    for (int i = atomic_load(&named) - 1; i >= 0; i--) {
        rc = __real_getaddrinfo(addresses[i], service, hints, list);
        if (rc != 0)
            break;
        list = &(*list)->ai_next;
    }
    return rc;
}

static nxl_client *client_by_name(void)
{
    char url[128];
    snprintf(url, sizeof(url),
        "redis+sentinel://sen.test:%u/svc?max_ttl_ms=%d&timeout_ms=3000",
        (unsigned)sentinels[0].plain_port, TTL_MS);
    return client_at(url);
}

static void each_address_of_a_name_is_one(void **state)
{
    nxl_client *client = client_by_name();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
    atomic_store(&named, 1);
    client = client_by_name();
    lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_URL, lock);
    end(lock, client);
    atomic_store(&named, SENTINELS);
}

static nxl_client *client_by_half(void)
{
    char url[256];
    unsigned port = (unsigned)sentinels[0].plain_port;
    snprintf(url, sizeof(url),
        "redis+sentinel://half.test:%u,%s:%u,%s:%u/svc?max_ttl_ms=%d"
        "&timeout_ms=500",
        port, addresses[1], port, addresses[2], port, TTL_MS);
    return client_at(url);
}

/* Is it the last one, and no other? */
static bool last_is_spare(nxl_lock *lock, nxl_client *client)
{
    struct sentinel_facts facts;
    int spare = 0;
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    for (size_t i = 0; client_sentinel(client, i, &facts); i++)
        spare += facts.is_spare ? i == SENTINELS ? 1 : 100 : 0;
    return spare == 1;
}

/* The other address of a name may lead to nobody, which does not matter; unless
 * a Sentinel is missing. */
static void an_address_may_be_spare(void **state)
{
    (void)state;
    struct sentinel_facts facts;
    nxl_client *client = client_by_half();
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_eventually(last_is_spare(lock, client));
    end(lock, client);
    redis_freeze(&sentinels[2]);
    client = client_by_half();
    lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    for (size_t i = 0; client_sentinel(client, i, &facts); i++)
        assert_false(facts.is_spare);
    end(lock, client);
}

/* ------------------------------------------------------------- who confirms */

static void one_may_be_down(void **state)
{
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    redis_freeze(&sentinels[1]);
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    end(lock, client);
}

/* Nothing can be asked while none of them answers: an event loop sleeps. */
static void a_loop_sleeps_while_none_answers(void **state)
{
    (void)state;
    struct pollfd fds[16];
    nxl_client *other = client_by(SENTINELS, "svc", "");
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *lock = new_lock(other, "k", TTL_MS);
    nxl_lock *waits = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    assert_int_equal(nxl_lock_acquire_start(waits, NXL_FOREVER), NXL_PENDING);
    int64_t begun = test_now_ms();
    bool frozen = false;
    int at_once = 0;
    for (int64_t now = begun; now < begun + 5000; now = test_now_ms()) {
        int timeout_ms = 0;
        if (now >= begun + 500 && !frozen) {
            for (int i = 0; i < SENTINELS; i++)
                redis_freeze(&sentinels[i]);
            frozen = true;
        }
        nfds_t n = (nfds_t)nxl_client_pollfds(client, fds, 16, &timeout_ms);
        at_once += frozen && timeout_ms == 0;
        (void)poll(fds, n, timeout_ms);
        (void)nxl_client_process(client);
    }
    assert_between(at_once, 0, 1000);
    end(waits, client);
    end(lock, other);
}

static void a_minority_confirms_nothing(void **state)
{
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_lock *other = new_lock(client, "other", TTL_MS);
    redis_freeze(&sentinels[0]);
    redis_freeze(&sentinels[2]);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_REFUSED, lock);
    assert_contains(nxl_lock_errmsg(lock),
        "2 of 3 Sentinels must name the same primary, and only 1 does");
    redis_thaw(&sentinels[0]);
    /* It has to be connected to again, which a try does not wait for. */
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    redis_freeze(&sentinels[0]);
    /* What has been confirmed lasts for two seconds. */
    assert_eventually(nxl_lock_acquire(other, 0) != NXL_OK ||
                      nxl_lock_release(other) != NXL_OK);
    end(other, NULL);
    end(lock, client);
}

static void all_have_to_be_listed(void **state)
{
    nxl_client *client = client_by(1, "svc", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    char other[32];
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_URL, lock);
    assert_contains(nxl_lock_errmsg(lock),
        "2 Sentinels must name the primary, and the URL has only 1");
    snprintf(other, sizeof(other), "%s:%u", addresses[2],
        (unsigned)sentinels[0].plain_port);
    assert_contains(nxl_lock_errmsg(lock), other);
    end(lock, client);
}

static void an_unknown_service(void **state)
{
    nxl_client *client = client_by(SENTINELS, "orders", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(lock, 0), NXL_E_URL, lock);
    assert_contains(nxl_lock_errmsg(lock),
        "it knows no service 'orders'; it monitors svc at 127.0.0.1:");
    end(lock, client);
}

/* ----------------------------------------------------------------- failovers
 */

static bool begins_failover(void)
{
    redisReply *reply = redis_commandf(&sentinels[0], "SENTINEL FAILOVER svc");
    bool begun = reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return begun;
}

/* The one that most Sentinels name. */
static struct redis *find_primary(void)
{
    return is_named(replica.plain_port) ? &replica : &server;
}

static struct redis *other_than(const struct redis *one)
{
    return one == &server ? &replica : &server;
}

/* It is begun again where the first Sentinel has given it up: on a busy machine
 * it may have looked for a replica while none had answered for 5 s. */
static bool has_failed_over(
    const struct redis *former, const struct redis *next)
{
    if (names(&sentinels[0], former->plain_port))
        (void)begins_failover();
    return is_named(next->plain_port);
}

/* SENTINEL FAILOVER, until most name the other server, which is returned. */
static struct redis *fail_over(void)
{
    struct redis *former = find_primary(), *next = other_than(former);
    assert_eventually(has_failed_over(former, next));
    return next;
}

static bool is_at(nxl_client *client, const char *url)
{
    char line[512];
    nxl_client_describe(client, line, sizeof(line));
    return strstr(line, url) && strstr(line, ", connected");
}

static void a_renewed_lock_is_kept(void **state)
{
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *held = kept_lock(client, "k", &OPTIONS(.ttl_ms = TTL_MS));
    nxl_lock *other = new_lock(client, "other", TTL_MS);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    const struct redis *next = fail_over();
    assert_eventually(is_at(client, next->url));
    assert_true(nxl_lock_held(held));
    assert_result(nxl_lock_acquire(other, 0), NXL_E_REFUSED, other);
    assert_contains(nxl_lock_errmsg(other), "it grants locks again in");
    assert_result(nxl_lock_acquire(other, PAUSE_MS), NXL_OK, other);
    assert_true(nxl_lock_held(held));
    assert_result(nxl_lock_release(held), NXL_OK, held);
    end(other, NULL);
    end(held, client);
}

/* The former primary has not been confirmed for long when this client asks. */
static void a_short_lease_is_renewed_after_a_failover(void **state)
{
    nxl_client *idle = client_by(SENTINELS, "svc", "");
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *held = kept_lock(idle, "k", &OPTIONS(.ttl_ms = 2600));
    nxl_lock *other = new_lock(client, "k", TTL_MS);
    assert_result(nxl_lock_acquire(held, PAUSE_MS), NXL_OK, held);
    assert_result(nxl_lock_release(held), NXL_OK, held);
    (void)fail_over();
    assert_result(nxl_lock_acquire(other, PAUSE_MS), NXL_OK, other);
    assert_result(nxl_lock_release(other), NXL_OK, other);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    test_pause_ms(3000); /* more than its lease */
    assert_true(nxl_lock_held(held));
    assert_result(nxl_lock_release(held), NXL_OK, held);
    end(other, client);
    end(held, idle);
}

/* It waits until the lease of another client is over, and the primary has been
 * confirmed by then. */
static bool is_confirmed_in_time(
    nxl_lock *lock, nxl_client *client, nxl_lock *other)
{
    assert_result(nxl_lock_acquire(other, PAUSE_MS), NXL_OK, other);
    uint64_t unconfirmed = stats_of(client).unconfirmed;
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    bool confirmed = stats_of(client).unconfirmed == unconfirmed;
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    return confirmed;
}

/* Which has to extend its lease first, so that a replica has it. */
static void a_waiter_is_granted_the_lock_after_a_failover(void **state)
{
    nxl_client *client = client_by(SENTINELS, "svc", "&wait_replicas=1");
    nxl_client *theirs = client_by(SENTINELS, "svc", "");
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    nxl_lock *other = new_lock(theirs, "k", 1000);
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    const char *url = fail_over()->url;
    /* Unknown, if another Sentinel still names the former primary. */
    int rc = nxl_lock_release(lock);
    assert_true(rc == NXL_OK || rc == NXL_UNKNOWN);
    assert_result(nxl_lock_acquire(lock, PAUSE_MS), NXL_OK, lock);
    assert_true(is_at(client, url));
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    assert_in_three_tries(is_confirmed_in_time(lock, client, other));
    end(other, theirs);
    end(lock, client);
}

/* All permits are held, and others wait in line for them. The holders keep
 * theirs by renewal; then, one for each that leaves, the others are granted
 * one, which they confirm by a write of their own. */
static void permits_are_kept_over_a_failover(void **state)
{
    enum { PERMITS = 2 };
    static struct waiter waits[PERMITS];
    nxl_client *client[2 * PERMITS];
    nxl_lock *lock[2 * PERMITS];
    for (int i = 0; i < 2 * PERMITS; i++) {
        bool holds = i < PERMITS;
        client[i] =
            client_by(SENTINELS, "svc", holds ? "" : "&wait_replicas=1");
        lock[i] = lock_with(client[i], "k", .ttl_ms = TTL_MS,
            .permits = PERMITS, .renew = holds);
        if (holds)
            assert_result(nxl_lock_acquire(lock[i], PAUSE_MS), NXL_OK, lock[i]);
        else
            waiter_start(&waits[i - PERMITS], lock[i], PAUSE_MS);
    }
    struct redis *next = fail_over();
    assert_eventually(redis_run(next, "ZCARD", "{k}:nxl-l", NULL) == PERMITS);
    long confirmed = redis_calls(next, "wait");
    for (int i = 0; i < PERMITS; i++)
        assert_eventually(stats_of(client[i]).failovers == 1);
    for (int i = 0; i < PERMITS; i++) {
        assert_true(nxl_lock_held(lock[i]));
        assert_int_equal(
            nxl_lock_held(lock[PERMITS]) + nxl_lock_held(lock[PERMITS + 1]), i);
        assert_result(nxl_lock_release(lock[i]), NXL_OK, lock[i]);
        assert_eventually(
            nxl_lock_held(lock[PERMITS]) + nxl_lock_held(lock[PERMITS + 1]) >
            i);
    }
    for (int i = 0; i < PERMITS; i++)
        assert_int_equal(waiter_join(&waits[i]), NXL_OK);
    assert_int_equal(redis_run(next, "ZCARD", "k", NULL), PERMITS + 1);
    assert_true(redis_calls(next, "wait") >= confirmed + PERMITS);
    for (int i = 0; i < 2 * PERMITS; i++)
        end(lock[i], client[i]);
}

static void told(struct redis *r, const char *command)
{
    redisReply *reply = redis_commandf(r, command);
    if (reply->type != REDIS_REPLY_STATUS)
        fail_msg("%s: %s", command, reply->str);
    freeReplyObject(reply);
}

static bool has_taken_over(struct redis *r)
{
    return server_number(r, "replication", "connected_slaves") == 1;
}

/* As after SENTINEL FAILOVER ... COORDINATED of Valkey 9. */
static void hand_over(struct redis *former, struct redis *next)
{
    char monitor[64];
    assert_eventually(has_taken_over(former));
    told(former, "FAILOVER");
    assert_eventually(has_taken_over(next));
    snprintf(monitor, sizeof(monitor), "SENTINEL MONITOR svc 127.0.0.1 %u 2",
        (unsigned)next->plain_port);
    for (int i = 0; i < SENTINELS; i++) {
        told(&sentinels[i], "SENTINEL REMOVE svc");
        told(&sentinels[i], monitor);
    }
}

/* The former primary has handed over all its locks, so others need not wait for
 * the pause of 9 s: a client has asked it in time. */
static bool goes_on_after_a_hand_over(void)
{
    struct redis *former = find_primary(), *next = other_than(former);
    nxl_client *client = client_by(SENTINELS, "svc", "");
    nxl_lock *held = kept_lock(client, "k", &OPTIONS(.ttl_ms = TTL_MS));
    nxl_lock *other = new_lock(client, "other", TTL_MS);
    assert_result(nxl_lock_acquire(held, PAUSE_MS), NXL_OK, held);
    hand_over(former, next);
    bool granted = nxl_lock_acquire(other, 5000) == NXL_OK;
    if (granted) {
        assert_true(is_at(client, next->url));
        assert_true(nxl_lock_held(held));
        assert_result(nxl_lock_release(held), NXL_OK, held);
    } else
        print_message("%s\n", nxl_lock_errmsg(other));
    end(other, NULL);
    end(held, client);
    return granted;
}

/* A client on a busy machine may not ask in time. */
static void a_hand_over_needs_no_pause(void **state)
{
    assert_in_three_tries(goes_on_after_a_hand_over());
}

#define sentinel_test(function) cmocka_unit_test_setup(function, set_up)
#define failover_test(function) cmocka_unit_test_setup(function, thaw)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        sentinel_test(the_primary_is_found),
        sentinel_test(the_guard_is_not_asked_for),
        loop_test_poll(in_an_event_loop_idle_clients_ask_nobody),
        sentinel_test(each_address_of_a_name_is_one),
        /* A Sentinel that was stopped takes part in no failover for 30 s. */
        sentinel_test(a_renewed_lock_is_kept),
        failover_test(a_waiter_is_granted_the_lock_after_a_failover),
        failover_test(permits_are_kept_over_a_failover),
        failover_test(a_short_lease_is_renewed_after_a_failover),
        failover_test(an_address_may_be_spare),
        failover_test(one_may_be_down),
        failover_test(a_loop_sleeps_while_none_answers),
        failover_test(a_minority_confirms_nothing),
        failover_test(all_have_to_be_listed),
        failover_test(an_unknown_service),
        failover_test(a_hand_over_needs_no_pause),
    };
    return cmocka_run_group_tests_name(
        "Sentinels", tests, start, sentinels_stop);
}
