/* SPDX-License-Identifier: MIT */
/*
 * A client whose second connection is driven by the test, turn by turn, with
 * notes on what it reports. No lock takes part.
 */
#ifndef NXLOCK_TEST_LISTENING_H
#define NXLOCK_TEST_LISTENING_H

#include "support/test.h"

#include <nxlock.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client/client.h"
#include "client/loop.h"

#define LISTENED 16

struct listening {
    nxl_client *client;
    struct subscriber *subscriber; /* the client's */
    struct channel *channel;       /* of the key "k"; NULL: not yet */
    size_t messages, changes;
    char message[LISTENED][64]; /* the first ones */
};

static struct listening listening;

static inline void listening_message(
    struct channel *channel, struct slice payload, uint64_t now)
{
    (void)now;
    assert_ptr_equal(channel, listening.channel);
    if (listening.messages < LISTENED)
        snprintf(listening.message[listening.messages],
            sizeof(listening.message[0]), "%.*s", (int)payload.len,
            payload.data);
    listening.messages++;
}

static inline void listening_change(struct channel *channel, uint64_t now)
{
    (void)now;
    assert_ptr_equal(channel, listening.channel);
    listening.changes++;
}

static inline void listening_watch(nxl_client *client)
{
    struct subscriber *s = &nodes_first(&client->nodes)->subscriber;
    listening = (struct listening){.client = client, .subscriber = s};
    s->on_message = listening_message;
    s->on_change = listening_change;
}

static inline void listening_open(const char *url)
{
    nxl_client *client;
    assert_int_equal(nxl_client_new(&client, url, NULL), NXL_OK);
    listening_watch(client);
}

static inline void listening_want(void)
{
    if (!listening.channel)
        listening.channel =
            subscriber_open(listening.subscriber, slice_of("k"));
    assert_non_null(listening.channel);
    channel_want(listening.channel, clock_now());
}

static inline void listening_rest(void)
{
    channel_unwant(listening.channel, clock_now());
}

static inline void listening_turn(void)
{
    struct loop_events events;
    nxl_client *client = listening.client;
    uint64_t now = clock_now();
    uint64_t most = deadline_after_ms(now, 20);
    loop_push(client, now);
    loop_epoll(
        client->poller.fd, &events, earlier(most, loop_deadline(client)), now);
    loop_process(client, &events, clock_now());
}

/* Turns until the condition holds, for so long at most; listening_until: for
 * 30 s. */
#define listening_until_within(limit_ms, condition)                            \
    do {                                                                       \
        int64_t listening_end = test_now_ms() + (limit_ms);                    \
        while (!(condition)) {                                                 \
            if (test_now_ms() > listening_end) {                               \
                print_error("never came true: %s; %s\n", #condition,           \
                    subscriber_words(listening.subscriber));                   \
                _fail(__FILE__, __LINE__);                                     \
            }                                                                  \
            listening_turn();                                                  \
        }                                                                      \
    } while (0)
#define listening_until(condition) listening_until_within(30000, condition)

/* MESSAGES_NONE, MESSAGES_COMING or MESSAGES_UP */
static inline bool listening_is(int state)
{
    return listening.channel && (int)listening.channel->messages.state == state;
}

static inline unsigned listening_number(void)
{
    return listening.channel->messages.number;
}

/* Turns for so long. */
static inline void listening_for(int64_t ms)
{
    int64_t end = test_now_ms() + ms;
    while (test_now_ms() < end)
        listening_turn();
}

#endif
