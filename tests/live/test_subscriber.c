/* SPDX-License-Identifier: MIT */
/*
 * The connection on which a client listens, as far as no scene can show it
 * (live/scenes/line_messages.scenes) and a real server is needed: the test
 * whether messages reach it, when it is checked, and the client's end. Time
 * passes by moving the clock that the library reads. Without memory:
 * test_no_memory.c; with a callback: live/scenes/line_callback.scenes.
 */
#include "live/live_rig.h"

#include <stdatomic.h>
#include <time.h>

#include "model/companion.h"
#include "support/listening.h"

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

static atomic_int passed_s;

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    int rc = __real_clock_gettime(id, time);
    time->tv_sec += passed_s;
    return rc;
}

static void open_with(const char *parameters)
{
    char url[512];
    snprintf(url, sizeof(url), "%s?%s", server_url, parameters);
    listening_open(url);
}

static void open_up(const char *parameters)
{
    open_with(parameters);
    listening_want();
    listening_until(listening_is(MESSAGES_UP));
}

static void close_it(void)
{
    nxl_client_free(listening.client);
}

static const char *channel(void)
{
    static char name[CHANNEL_MAX + 1];
    if (!listening.channel)
        return "-";
    snprintf(name, sizeof(name), "%.*s", (int)listening.channel->name.len,
        listening.channel->name.data);
    return name;
}

/* Returns how many listened. */
static long long publish(const char *payload)
{
    return redis_run(&server, "PUBLISH", channel(), payload, NULL);
}

static void kill_listener(void)
{
    assert_int_equal(
        redis_run(&server, "CLIENT", "KILL", "TYPE", "pubsub", NULL), 1);
}

/* Makes the connection for commands, or uses it. */
static void command(void)
{
    nxl_lock *lock = new_lock(listening.client, "k", 10000);
    assert_result(nxl_lock_acquire(lock, 5000), NXL_OK, lock);
    nxl_lock_free(lock);
}

static unsigned commands(void)
{
    return nodes_first(&listening.client->nodes)->server.connections;
}

/* It is checked after a silence, while a message waits to be read. */
static void a_message_before_the_check(void **state)
{
    open_up("");
    listening_rest();
    assert_int_equal(publish("x"), 1);
    test_pause_ms(5);
    channel_want(listening.channel, deadline_after_ms(clock_now(), 60000));
    listening_until(listening.messages == 1);
    assert_int_equal(redis_calls(&server, "subscribe"), 1);
    passed_s += 10;
    listening_until(redis_calls(&server, "subscribe") == 2);
    assert_int_equal(listening_number(), 1);
    close_it();
}

/* ------------------------------------------------------- what locks find out
 */

static void the_test_of_a_pair(void **state)
{
    open_up("");
    command();
    assert_true(channel_untested(listening.channel, commands()));
    unsigned first = subscriber_connection(listening.subscriber);
    subscriber_tested(
        listening.subscriber, first, commands(), false, clock_now());
    assert_false(channel_untested(listening.channel, commands()));
    listening_turn();
    assert_int_equal(listening.changes, 1);
    kill_listener();
    listening_until(listening_number() == 2);
    assert_true(channel_untested(listening.channel, commands()));

    /* A result for the one before counts no longer. */
    subscriber_tested(
        listening.subscriber, first, commands(), true, clock_now());
    listening_turn();
    assert_true(listening_is(MESSAGES_UP));
    assert_true(channel_untested(listening.channel, commands()));
    close_it();
}

static void found_deaf(void)
{
    subscriber_tested(listening.subscriber,
        subscriber_connection(listening.subscriber), commands(), true,
        clock_now());
}

static void deaf(void **state)
{
    open_up("");
    command();
    found_deaf();
    listening_until(listening_number() == 2);
    size_t changes = listening.changes;
    found_deaf();
    assert_contains(subscriber_words(listening.subscriber), "does not reach");
    listening_turn();
    assert_true(listening_is(MESSAGES_NONE));
    assert_int_equal(listening.changes, changes + 1);
    assert_false(channel_untested(listening.channel, commands()));
    listening_for(50);
    assert_true(listening_is(MESSAGES_NONE));

    redis_run(&server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    test_pause_ms(20);
    command();
    assert_int_equal(commands(), 2);
    listening_until(listening_is(MESSAGES_UP));
    assert_int_equal(listening_number(), 2);
    assert_true(channel_untested(listening.channel, commands()));
    close_it();
}

/* ------------------------------------------------------- the client's end */

static void freed_while_it_connects(void **state)
{
    open_with("timeout_ms=5000");
    listening_want();
    listening_turn();
    redis_freeze(&server);
    int64_t began = test_now_ms();
    close_it();
    assert_true(test_now_ms() - began < 1000 + LATE_MS);
    redis_thaw(&server);

    open_with("");
    listening_want();
    close_it();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(a_message_before_the_check),
        live_test(the_test_of_a_pair),
        live_test(deaf),
        live_test(freed_while_it_connects),
    };
    return live_run("subscriber");
}
