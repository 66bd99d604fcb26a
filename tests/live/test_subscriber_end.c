/* SPDX-License-Identifier: MIT */
/*
 * The connection on which a client listens, and the client's own life: several
 * servers, the client's end, a child, no memory, credentials of its own.
 */
#include "live/subscriber_rig.h"

#include "live/fork_rig.h"
#include "support/alloc.h"

static void several_servers(void **state)
{
    char urls[1024];
    snprintf(urls, sizeof(urls), "%s,redis://127.0.0.1:1", server_url);
    listening_open(urls);
    assert_null(subscriber_open(listening.subscriber, slice_of("k")));
    assert_string_equal(channel(), "-");
    close_it();
}

static void freed_while_it_connects(void **state)
{
    open_as("", "timeout_ms=5000");
    listening_want();
    listening_turn();
    redis_freeze(&server);
    int64_t began = test_now_ms();
    close_it();
    assert_true(test_now_ms() - began < LATE_MS);
    redis_thaw(&server);

    open_as("", "");
    listening_want();
    close_it();
}

static void child_frees(void *argument)
{
    struct nxl_client *client = argument;
    int before = count_fds();
    nxl_client_free(client);
    expect(count_fds() <= before - 3); /* with wake-up and poller */
}

static void a_child(void **state)
{
    open_up("");
    run_child(child_frees, listening.client);
    assert_int_equal(publish("x"), 1);
    listening_until(listening.messages == 1);
    assert_int_equal(listening_number(), 1);
    close_it();
}

/* At every place: no memory is a reason, or the connection is made. */
static void no_memory(void **state)
{
    bool failed = true;
    if (!alloc_counts())
        test_skip("a sanitizer has the allocator");
    if (live_tls())
        test_skip("OpenSSL has other words for it");
    for (unsigned n = 1; failed; n++) {
        open_as("", "");
        alloc_fail_at(n);
        listening.channel =
            subscriber_open(listening.subscriber, slice_of("k"));
        bool wanted = listening.channel;
        if (wanted)
            channel_want(listening.channel, clock_now());
        for (int i = 0; i < 10 && wanted && !listening_is(MESSAGES_UP); i++)
            listening_turn();
        failed = alloc_stop();
        assert_true(wanted || n <= 3);
        if (!wanted)
            assert_string_equal(channel(), "-");
        if (!wanted)
            listening_want();
        if (listening_is(MESSAGES_NONE))
            assert_contains(subscriber_words(listening.subscriber), "memory");
        else
            listening_until(listening_is(MESSAGES_UP));
        close_it();
    }
}

/* Asked anew for each connection. */
static bool give_password(void *arg, nxl_credentials *credentials)
{
    strcpy(credentials->user, "listener");
    strcpy(credentials->password, PASSWORD);
    atomic_fetch_add((_Atomic int *)arg, 1);
    return true;
}

static void a_callback(void **state)
{
    _Atomic int calls = 0;
    nxl_client *client;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.credentials = give_password;
    options.credentials_arg = &calls;
    redis_run(&server, "ACL", "SETUSER", "listener", "reset", "on",
        ">" PASSWORD, "~*", "+@all", "allchannels", NULL);
    assert_int_equal(nxl_client_new(&client, server_url, &options), NXL_OK);
    listening_watch(client);
    command();
    assert_int_equal(atomic_load(&calls), 1);
    listening_want();
    listening_until(listening_is(MESSAGES_UP));
    assert_int_equal(atomic_load(&calls), 2);
    assert_int_equal(client->nodes.secrets.count, 4);
    close_it();
}

/* The program may free the argument afterwards. */
static bool take_long(void *arg, nxl_credentials *credentials)
{
    test_pause_ms(300);
    atomic_store((_Atomic int *)arg, 1);
    return false;
}

static void freed_during_a_callback(void **state)
{
    _Atomic int over = 0;
    nxl_client *client;
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    options.credentials = take_long;
    options.credentials_arg = &over;
    assert_int_equal(nxl_client_new(&client, server_url, &options), NXL_OK);
    listening_watch(client);
    listening_want();
    listening_turn();
    close_it();
    assert_int_equal(atomic_load(&over), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        live_test(several_servers),
        live_test(freed_while_it_connects),
        live_test(a_child),
        live_test(no_memory),
        live_test(a_callback),
        live_test(freed_during_a_callback),
    };
    return live_run("subscriber_end");
}
