/* SPDX-License-Identifier: MIT */
/*
 * Locks that wait in line.
 *
 * Invariant: a lock is in client->in_line exactly while its state machine waits
 * in line, and in client->joined from then on that its present token may be in
 * the line. Whatever the line needs and does not get, the lock polls: waiting
 * in line is never the reason for a failure.
 */
#include "api/waiting.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "client/subscriber.h"
#include "wire/strategies.h"

#define NOT_TOLD "-" /* the channel of a token whose client is not told */

static struct slice no_channel(void)
{
    return slice_of(NOT_TOLD);
}

/* May this client's locks wait in line, now or (now is 0) as the last one found
 * out? If not, *why says why not. */
static bool has_line(
    const struct nxl_client *client, uint64_t now, struct text *why)
{
    const struct server *s = client->servers;
    if (client->server_count > 1)
        text_set(why, "several servers have no line");
    else if (s->endpoint.settings.poll)
        text_set(why, "poll=1");
    else
        return strategies_line(&s->dialect, now, why);
    return false;
}

unsigned waiting_connection(const struct nxl_client *client)
{
    const struct server *s = client->servers;
    return s->state == SERVER_UP && s->ended == FAULT_NONE ? s->connections : 0;
}

void waiting_look_at_messages(struct nxl_client *client)
{
    static const unsigned char states[] = {
        [SUBSCRIPTION_NONE] = MESSAGES_NONE,
        [SUBSCRIPTION_COMING] = MESSAGES_COMING,
        [SUBSCRIPTION_UP] = MESSAGES_UP,
    };
    struct messages *m = &client->messages;
    m->state =
        (__typeof__(m->state))states[subscriber_state(&client->subscriber)];
    m->number = subscriber_number(&client->subscriber);
}

/* ----------------------------------------------------- in line, or not at all
 */

static void line_up(struct nxl_lock *lock, uint64_t from, uint64_t now)
{
    struct nxl_client *client = lock->client;
    struct waiting *w = lock->waiting;
    struct text why;
    if (!has_line(client, now, &why))
        return;
    (void)subscriber_want(&client->subscriber, now); /* else it asks */
    waiting_look_at_messages(client);
    if (list_empty(&w->node))
        list_append(&client->in_line, &w->node);
    life_line_up(&lock->life, &w->line, &client->messages, from, now);
}

uint64_t waiting_from(const struct nxl_lock *lock)
{
    uint64_t gap_at = lock->life.gap_at;
    return gap_at ? deadline_after(gap_at, LINE_GAP) : 0;
}

void waiting_begin(struct nxl_lock *lock, uint64_t from, uint64_t now)
{
    if (lock->waiting && lock->waiting->line.has_waited)
        line_up(lock, from, now);
}

void waiting_line_up(struct nxl_lock *lock, uint64_t now)
{
    if (!lock->waiting) {
        struct waiting *w = calloc(1, sizeof(*w));
        if (!w)
            return;
        w->lock = lock;
        list_init(&w->node);
        index_entry_init(&w->joined);
        lock->waiting = w;
    }
    line_up(lock, 0, now);
}

void waiting_settle(struct nxl_lock *lock, uint64_t now)
{
    struct waiting *w = lock->waiting;
    if (list_empty(&w->node) || life_in_line(&lock->life))
        return;
    list_remove(&w->node);
    index_remove(&lock->client->joined, &w->joined);
    if (list_empty(&lock->client->in_line))
        subscriber_rest(&lock->client->subscriber, now);
}

/* ------------------------------------------------------------ what is sent */

void waiting_complete(struct nxl_lock *lock, struct verb *verb)
{
    struct nxl_client *client = lock->client;
    struct waiting *w = lock->waiting;
    if (verb->kind == VERB_JOIN) {
        index_put(&client->joined, &w->joined, lock_token(lock));
        w->channel = w->line.by_message
                         ? subscriber_channel(&client->subscriber)
                         : no_channel();
    }
    verb->channel = w->channel;
    verb->test = w->line.by_message && subscriber_untested(&client->subscriber,
                                           waiting_connection(client));
    w->tested_with = subscriber_number(&client->subscriber);
}

void waiting_answered(
    struct nxl_lock *lock, const struct outcome *outcome, uint64_t now)
{
    if (outcome->kind != OUTCOME_BUSY)
        return;
    subscriber_tested(&lock->client->subscriber, lock->waiting->tested_with,
        outcome->connection, outcome->deaf, now);
}

/* ------------------------------------------------------------- for people */

bool waiting_describe(const struct nxl_client *client, struct text *text)
{
    const struct subscriber *s = &client->subscriber;
    const char *unheard = s->listener ? subscriber_words(s) : "";
    struct text why;
    if (!has_line(client, 0, &why)) {
        text_addf(text, "by polling (%s)", why.data);
        return false;
    }
    text_add(text, "in line");
    if (*unheard)
        text_addf(text, " without messages (%s)", unheard);
    return true;
}
