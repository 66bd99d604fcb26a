/* SPDX-License-Identifier: MIT */
/*
 * The connection on which a client listens to its channel, with a real server:
 * it is there only for who waits, messages come, it is made anew after every
 * loss, and a refusal is no more than a reason. Long times pass by moving the
 * clock that the library reads.
 */
#include "live/subscriber_rig.h"

#include <stdatomic.h>
#include <time.h>

#include "support/proxy.h"

int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

static atomic_int passed_s;

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    int rc = __real_clock_gettime(id, time);
    time->tv_sec += passed_s;
    return rc;
}

/* ------------------------------------------------------------------ messages
 */

static void messages_come(void **state)
{
    open_as("", "");
    assert_int_equal(redis_clients(&server), 0);
    assert_string_equal(channel(), "-");
    listening_want();
    listening_until(listening_is(MESSAGES_UP));
    assert_int_equal(redis_clients(&server), 1);
    assert_int_equal(strlen(channel()), 4 + 36 + 2);
    assert_string_equal(channel() + 40, ":k");
    assert_int_equal(strncmp(channel(), "nxl:", 4), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(publish("a token"), 1);
    listening_until(listening.messages == 3);
    assert_string_equal(listening.message[2], "a token");
    assert_int_equal(listening_number(), 1);
    assert_int_equal(listening.changes, 1);
    close_it();
    assert_eventually(redis_clients(&server) == 0);
}

/* More than the reader takes at once, and over TLS more than one record. */
static void many_messages(void **state)
{
    char text[3001];
    open_up("");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 300; i++)
        assert_int_equal(publish(text), 1);
    listening_until(listening.messages == 300);
    assert_int_equal(listening_number(), 1);
    close_it();
}

static void commands_are_not_disturbed(void **state)
{
    open_up("");
    for (int i = 0; i < 20; i++) {
        publish("x");
        command();
    }
    listening_until(listening.messages == 20);
    assert_int_equal(commands(), 1);
    assert_int_equal(listening_number(), 1);
    close_it();
}

/* -------------------------------------------------------------------- losses
 */

static void it_is_made_anew(void **state)
{
    open_up("");
    for (unsigned i = 2; i < 5; i++) {
        kill_listener();
        listening_until(listening_number() == i);
        assert_true(listening_is(MESSAGES_UP));
        assert_int_equal(publish("x"), 1);
        listening_until(listening.messages == i - 1);
    }
    close_it();
}

static void the_server_restarts(void **state)
{
    open_up("timeout_ms=200");
    redis_kill(&server);
    listening_until(listening_is(MESSAGES_COMING));
    listening_for(300);
    redis_restart(&server);
    listening_until(listening_number() == 2);
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == 1);
    close_it();
}

/* Messages that nobody reads: the server closes the connection. */
static void the_output_buffer_is_full(void **state)
{
    enum { SIZE = 30000, COUNT = 1000 };
    static char text[SIZE + 1];
    redis_run(&server, "CONFIG", "SET", "client-output-buffer-limit",
        "pubsub 100kb 0 0", NULL);
    open_up("");
    memset(text, 'x', SIZE);
    int sent = 0;
    while (sent < COUNT && publish(text) == 1)
        sent++;
    assert_true(sent < COUNT);
    listening_until(listening_number() == 2);
    assert_true(listening.messages <= (size_t)sent);
    size_t before = listening.messages;
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == before + 1);
    close_it();
}

static void nobody_waits(void **state)
{
    open_up("");
    listening_rest();
    listening_turn();
    assert_true(listening_is(MESSAGES_UP));
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == 1);
    kill_listener();
    listening_until(subscriber_connection(listening.subscriber) == 0);
    listening_for(50);
    assert_int_equal(redis_clients(&server), 0);
    listening_want();
    listening_until(listening_number() == 2);
    close_it();
}

/* In the blocking API nobody reads while no call is under way. */
static void closed_while_nobody_looked(void **state)
{
    open_up("");
    listening_rest();
    kill_listener();
    test_pause_ms(20);
    listening_want();
    listening_until(listening_number() == 2);
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == 1);
    close_it();
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

/* ------------------------------------------------------------------ refusals
 */

static void no_permission(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "listener", "reset", "on",
        ">" PASSWORD, "~*", "+@all", "resetchannels", NULL);
    open_as("listener:" PASSWORD "@", "");
    command();
    listening_want();
    listening_until(listening_is(MESSAGES_NONE));
    assert_contains(subscriber_words(listening.subscriber), "NOPERM");
    listening_for(50);
    assert_int_equal(redis_calls(&server, "subscribe"), 0);
    nxl_server_facts facts = NXL_SERVER_FACTS_INIT;
    assert_int_equal(
        nxl_client_server_facts(listening.client, 0, &facts), NXL_OK);
    assert_contains(facts.waiting, "in line without messages (NOPERM");

    /* A new connection for commands is a reason to try again. */
    redis_run(&server, "ACL", "SETUSER", "listener", "&nxl:*", NULL);
    redis_run(
        &server, "CLIENT", "KILL", "TYPE", "normal", "USER", "listener", NULL);
    test_pause_ms(20);
    command();
    listening_until(listening_is(MESSAGES_UP));
    assert_string_equal(subscriber_words(listening.subscriber), "");
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == 1);
    close_it();
}

/* No more than these. */
static void least_rights(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "listener", "reset", "on",
        ">" PASSWORD, "resetchannels", "&nxl:*", "+subscribe", NULL);
    open_as("listener:" PASSWORD "@", "");
    listening_want();
    listening_until(listening_is(MESSAGES_UP));
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == 1);
    close_it();
}

static void a_wrong_password(void **state)
{
    redis_run(&server, "ACL", "SETUSER", "listener", "reset", "on", ">other",
        "+@all", NULL);
    open_as("listener:" PASSWORD "@", "");
    listening_want();
    listening_until(listening_is(MESSAGES_NONE));
    assert_contains(subscriber_words(listening.subscriber), "WRONGPASS");
    assert_null(strstr(subscriber_words(listening.subscriber), PASSWORD));
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

/* The server answers commands but accepts no second connection: a limit of a
 * firewall or a proxy. If it answers nothing, it is only down. */
static void no_second_connection(void **state)
{
    struct proxy *proxy = proxy_to(&server, false);
    listening_open(proxy_url(proxy));
    command();
    proxy_refuse(proxy, true);
    listening_want();
    listening_for(1000);
    assert_true(listening_is(MESSAGES_COMING));
    int64_t end_ms = test_now_ms() + 10000;
    while (listening_is(MESSAGES_COMING)) {
        assert_true(test_now_ms() < end_ms);
        command();
        listening_turn();
    }
    assert_true(listening_is(MESSAGES_NONE));
    assert_null(strstr(subscriber_words(listening.subscriber), "SUBSCRIBE"));
    proxy_refuse(proxy, false);
    proxy_cut(proxy, false);
    listening_for(20);
    command(); /* over a new connection */
    /* It is tried again 30 s after the refusal, and no sooner. */
    passed_s += 20;
    listening_for(100);
    assert_true(listening_is(MESSAGES_NONE));
    passed_s += 10;
    listening_until(listening_is(MESSAGES_UP));
    close_it();
    proxy_stop(proxy);
}

/* Something closes each connection as soon as it listens. */
static void closed_again_and_again(void **state)
{
    open_up("");
    command();
    unsigned cut = 0;
    while (!listening_is(MESSAGES_NONE)) {
        listening_until(!listening_is(MESSAGES_COMING));
        if (listening_is(MESSAGES_UP))
            kill_listener();
        assert_in_range(++cut, 1, 20);
        listening_until(!listening_is(MESSAGES_UP));
    }
    assert_contains(subscriber_words(listening.subscriber), "closed");
    listening_for(100);
    assert_true(listening_is(MESSAGES_NONE));
    close_it();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(messages_come),
        live_test(many_messages),
        live_test(commands_are_not_disturbed),
        live_test(it_is_made_anew),
        live_test(the_server_restarts),
        live_test(the_output_buffer_is_full),
        live_test(nobody_waits),
        live_test(closed_while_nobody_looked),
        live_test(no_permission),
        live_test(least_rights),
        live_test(a_wrong_password),
        live_test(the_test_of_a_pair),
        live_test(deaf),
        live_test(closed_again_and_again),
        live_test(a_message_before_the_check),
        live_test(no_second_connection),
    };
    return live_run("subscriber");
}
