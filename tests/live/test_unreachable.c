/* SPDX-License-Identifier: MIT */
/*
 * Servers that cannot be reached, or are killed. A port that refuses
 * connections answers at once, so an acquire ends by wait_ms, however long the
 * client would wait before it connects again; and no call gives up without
 * having tried. The message of NXL_UNKNOWN says which request was not answered,
 * not only what the attempts after it met. With one server and with three,
 * through both APIs.
 */
#define QUORUM_MAX 3
#include "support/test.h"

#include <pthread.h>

#include "live/api_rig.h"

/* The longest reconnect delay is 500 ms, and at least half of that. */
enum { TTL_MS = 30000, DELAY_MS = 250, CALLS = 8 };

/* Enough for every server to get the request before the call takes it back. */
enum { ANSWERED_MS = 1000 };

static void refuse(bool refused)
{
    for (size_t i = 0; i < on.servers; i++)
        proxy_refuse(proxies[i], refused);
}

/* Until the reconnect delay has grown to its longest. */
static void be_refused_often(nxl_client *client, nxl_lock *lock)
{
    for (int i = 0; i < 10; i++)
        assert_int_equal(CALL(client, acquire, lock, 0), NXL_E_UNREACHABLE);
}

static void refused_calls_end_by_wait_ms(void **state)
{
    nxl_client *client = proxied_client(on.servers, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    refuse(true);
    be_refused_often(client, lock);
    for (int64_t wait_ms = 0; wait_ms <= 60; wait_ms += 60) {
        int64_t began = test_now_ms();
        for (int j = 0; j < CALLS; j++) {
            assert_result(
                CALL(client, acquire, lock, wait_ms), NXL_E_UNREACHABLE, lock);
            assert_contains(nxl_lock_errmsg(lock), "cannot connect");
        }
        /* Together less than one reconnect delay each. */
        assert_between(test_now_ms() - began, CALLS * (wait_ms / 2),
            CALLS * DELAY_MS - 500);
    }
    end(lock, client);
    refuse(false);
}

/* The reconnect delay does not keep a call from finding the server. */
static void first_call_finds_the_server_again(void **state)
{
    nxl_client *client = proxied_client(on.servers, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    refuse(true);
    be_refused_often(client, lock);
    refuse(false);
    assert_result(CALL(client, acquire, lock, 0), NXL_OK, lock);
    end(lock, client);
}

/* The last attempt is made near the end of the wait, not up to a second before.
 * One call of some: a busy machine may make an attempt seem long. */
static void wait_at_a_refusing_port_lasts_to_its_end(void **state)
{
    enum { WAIT_MS = 2000, NEAR_MS = 100, TRIES = 10 };
    nxl_client *client = proxied_client(on.servers, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    int64_t longest = 0;
    refuse(true);
    be_refused_often(client, lock);
    for (int i = 0; i < TRIES && longest < WAIT_MS - NEAR_MS; i++) {
        int64_t began = test_now_ms();
        assert_result(
            CALL(client, acquire, lock, WAIT_MS), NXL_E_UNREACHABLE, lock);
        assert_contains(nxl_lock_errmsg(lock), "cannot connect");
        int64_t took = test_now_ms() - began;
        longest = took > longest ? took : longest;
    }
    assert_between(longest, WAIT_MS - NEAR_MS, WAIT_MS + LATE_MS);
    end(lock, client);
    refuse(false);
}

/* As soon as every server has the key, while the proxies hold the replies:
 * these are lost with the connections, and the ports refuse. */
static void *lose_the_replies(void *unused)
{
    int64_t end_ms = test_now_ms() + 30000;
    while (keys_at(on.servers, "k") < on.servers && test_now_ms() < end_ms)
        test_pause_ms(1);
    refuse(true);
    for (size_t i = 0; i < on.servers; i++)
        proxy_cut(proxies[i], false);
    return NULL;
}

/* An acquire of ours was applied and its answer lost, and then the port
 * refuses: the key may exist, so the result is not "unreachable". */
static void lost_answer_stays_unknown_when_the_port_refuses(void **state)
{
    nxl_client *client = proxied_client(on.servers, NO_GUARD);
    nxl_lock *lock = new_lock(client, "k", TTL_MS);
    do {
        assert_result(CALL(client, acquire, lock, 5000), NXL_OK, lock);
        assert_result(CALL(client, release, lock), NXL_OK, lock);
    } while (!connected_to_all(client));
    assert_eventually(keys_at(on.servers, "k") == 0);
    for (size_t i = 0; i < on.servers; i++)
        proxy_hold(proxies[i], PROXY_DOWN, true);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, lose_the_replies, NULL), 0);
    int result = CALL(client, acquire, lock, ANSWERED_MS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_result(result, NXL_UNKNOWN, lock);
    /* The last of three may still have been told to remove it. */
    assert_true(keys_at(on.servers, "k") > on.servers / 2);
    assert_result(CALL(client, acquire, lock, 60), NXL_E_UNREACHABLE, lock);
    for (size_t i = 0; i < on.servers; i++)
        proxy_hold(proxies[i], PROXY_DOWN, false);
    refuse(false);
    end(lock, client);
    assert_eventually(keys_at(on.servers, "k") == 0);
}

/* ------------------------------------------ which request was not answered
 */

#define KEY "unknown"

struct step {
    const char *name;
    int (*start)(nxl_lock *lock);
    bool holds; /* it needs a lock that is held */
};

static int start_acquire(nxl_lock *lock)
{
    return nxl_lock_acquire_start(lock, 300);
}

static int start_extend(nxl_lock *lock)
{
    return nxl_lock_extend_start(lock, 0);
}

static int start_break(nxl_lock *lock)
{
    nxl_holder seen = {
        .size = sizeof(seen), .value = "x", .value_length = 1, .left_ms = 1000};
    return nxl_lock_break_start(lock, &seen);
}

static const struct step steps[] = {
    {.name = "acquire", .start = start_acquire},
    {.name = "extend", .start = start_extend, .holds = true},
    {.name = "release", .start = nxl_lock_release_start, .holds = true},
    {.name = "removal", .start = start_break},
};

static nxl_client *killable(void)
{
    return quorum_client(on.servers, "timeout_ms=800&" NO_GUARD);
}

static void kill_all(void)
{
    for (size_t i = 0; i < on.servers; i++)
        redis_kill(&servers[i]);
}

/* The step is sent to servers that cannot answer and are killed then. */
static void send_and_kill(const struct step *step)
{
    char words[64];
    nxl_client *client = killable();
    nxl_lock *lock = new_lock(client, KEY, 5000);
    assert_result(result_of(client, begin_inspect(lock)), NXL_FREE, lock);
    if (step->holds) /* it is connected */
        assert_result(CALL(client, acquire, lock, 0), NXL_OK, lock);
    for (size_t i = 0; i < on.servers; i++)
        redis_freeze(&servers[i]);
    assert_int_equal(step->start(lock), NXL_PENDING);
    turn(client, 10);
    kill_all();
    assert_int_equal(next_event(client).result, NXL_UNKNOWN);
    const char *said = nxl_lock_errmsg(lock);
    snprintf(words, sizeof(words), "the %s got no valid answer", step->name);
    assert_contains(said, words);
    assert_contains(said, "may have been applied");
    assert_contains(said, "onnection"); /* lost, or closed */
    assert_contains(said, "Connection refused");
    assert_contains(said, "check that the server is running");
    assert_string_equal(nxl_client_errmsg(client), said);
    end(lock, client);
}

static void unanswered_request_is_named(void **state)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        send_and_kill(&steps[i]);
        quorum_mend(NULL);
    }
}

/* Nothing was sent, so nothing is unknown. */
static void refused_connection_names_no_request(void **state)
{
    nxl_client *client = killable();
    nxl_lock *lock = new_lock(client, KEY, 5000);
    kill_all();
    assert_result(CALL(client, acquire, lock, 0), NXL_E_UNREACHABLE, lock);
    assert_contains(nxl_lock_errmsg(lock), "Connection refused");
    assert_null(strstr(nxl_lock_errmsg(lock), "no valid answer"));
    end(lock, client);
}

static void each_proxy_holds(bool held)
{
    for (size_t i = 0; i < on.servers; i++)
        proxy_hold(proxies[i], PROXY_DOWN, held);
}

/* A late reply and the end of its connection wait to be read. The next request
 * is not sent behind them: there, nothing would be known of it. */
static void request_is_not_sent_into_a_closed_connection(void **state)
{
    nxl_client *client = proxied_client(on.servers, "timeout_ms=300&" NO_GUARD);
    nxl_lock *held = new_lock(client, KEY, 20000);
    nxl_lock *lock = new_lock(client, KEY ":next", 5000);
    connect_all(client);
    assert_result(nxl_lock_acquire(held, 0), NXL_OK, held);
    each_proxy_holds(true);
    assert_result(nxl_lock_extend(held, 0), NXL_UNKNOWN, held);
    each_proxy_holds(false);
    for (size_t i = 0; i < on.servers; i++) {
        proxy_cut(proxies[i], false);
        assert_eventually(proxy_connections(proxies[i]) == 0);
    }
    assert_result(nxl_lock_acquire(lock, 0), NXL_OK, lock);
    assert_result(nxl_lock_release(lock), NXL_OK, lock);
    nxl_lock_free(held);
    end(lock, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(refused_calls_end_by_wait_ms),
        api_test(first_call_finds_the_server_again),
        api_test(wait_at_a_refusing_port_lasts_to_its_end),
        api_test(lost_answer_stays_unknown_when_the_port_refuses),
        api_loop_test(unanswered_request_is_named),
        api_test(refused_connection_names_no_request),
        quorum_test(request_is_not_sent_into_a_closed_connection),
    };
    return on_one_and_three_run("unreachable", tests);
}
