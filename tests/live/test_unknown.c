/* SPDX-License-Identifier: MIT */
/*
 * What the message of NXL_UNKNOWN says when the server was killed: which
 * request was not answered, not only what the attempts after it met. And what
 * is not sent, so that it does not become unknown.
 */
#define QUORUM_MAX 3
#include "live/api_rig.h"

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

static void the_request_is_named(void **state)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        send_and_kill(&steps[i]);
        quorum_mend(NULL);
    }
}

/* Nothing was sent, so nothing is unknown. */
static void a_refusal_alone_names_none(void **state)
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
static void not_sent_behind_the_end(void **state)
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
        api_loop_test(the_request_is_named),
        api_test(a_refusal_alone_names_none),
        quorum_test(not_sent_behind_the_end),
    };
    return on_one_and_three_run("unknown", tests);
}
