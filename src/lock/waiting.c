/* SPDX-License-Identifier: MIT */
/*
 * Locks that wait in line.
 *
 * Invariant: a lock is in its channel's list exactly while its state machine
 * waits in line, and in client->joined from then on that its present token may
 * be in the line. Whatever the line needs and does not get, the lock polls:
 * waiting in line is never the reason for a failure.
 */
#include "lock/waiting.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client/subscriber.h"
#include "model/companion.h"
#include "wire/strategies.h"

/* Of a lock without a channel. */
static const struct messages no_messages = {MESSAGES_NONE, 0};

/* The node where it waits. */
static struct node *node_of_lock(const struct nxl_lock *lock)
{
    return node_of(lock->operation.requests[0].server);
}

/* May locks wait in line there, now or (now is 0) as the last one found out? If
 * not, *why says why not. */
static bool has_line(const struct node *n, uint64_t now, struct text *why)
{
    const struct server *s = &n->server;
    if (n->client->server_count > 1)
        text_set(why, "several servers have no line");
    else if (s->to.settings->poll)
        text_set(why, "poll=1");
    else
        return strategies_allow_line(&s->dialect, now, why);
    return false;
}

unsigned waiting_connection(const struct nxl_lock *lock)
{
    const struct server *s = lock->operation.requests[0].server;
    return s->state == SERVER_UP && s->end_fault == FAULT_NONE ? s->connections
                                                               : 0;
}

/* ----------------------------------------------------- in line, or not at all
 */

static void line_up(struct nxl_lock *lock, uint64_t now)
{
    struct node *n = node_of_lock(lock);
    struct waiting *w = lock->name.waiting;
    struct text why;
    if (!has_line(n, now, &why) || lock->name.key.len > CHANNEL_KEY_MAX)
        return;
    if (!w->channel)
        w->channel = subscriber_open(&n->subscriber, lock->name.key);
    if (w->channel && list_empty(&w->node)) {
        list_append(&w->channel->waiters, &w->node);
        channel_want(w->channel, now);
    }
    life_line_up(&lock->life, &w->line,
        w->channel ? &w->channel->messages : &no_messages, now);
}

void waiting_begin(struct nxl_lock *lock, uint64_t now)
{
    if (lock->name.waiting && lock->name.waiting->line.has_waited)
        line_up(lock, now);
}

void waiting_line_up(struct nxl_lock *lock, uint64_t now)
{
    if (!lock->name.waiting) {
        struct waiting *w = calloc(1, sizeof(*w));
        if (!w)
            return;
        w->lock = lock;
        list_init(&w->node);
        index_entry_init(&w->joined);
        lock->name.waiting = w;
    }
    line_up(lock, now);
}

void waiting_update(struct nxl_lock *lock, uint64_t now)
{
    struct waiting *w = lock->name.waiting;
    if (life_in_line(&lock->life))
        return;
    index_remove(&lock->client->joined, &w->joined);
    if (list_empty(&w->node))
        return;
    list_remove(&w->node);
    channel_unwant(w->channel, now);
}

void waiting_free(struct waiting *w)
{
    if (!w)
        return;
    if (!list_empty(&w->node)) {
        list_remove(&w->node);
        channel_unwant(w->channel, clock_now());
    }
    if (w->channel)
        channel_close(w->channel, clock_now());
    free(w);
}

/* ------------------------------------------------------------ what is sent */

void waiting_complete(struct nxl_lock *lock, struct verb *verb)
{
    const struct subscriber *s = &node_of_lock(lock)->subscriber;
    struct waiting *w = lock->name.waiting;
    if (verb_traits[verb->kind].joins_line) {
        index_put(&lock->client->joined, &w->joined, lock_token(lock));
        w->client = w->line.by_message ? subscriber_id(s) : slice_of("-");
    }
    verb->client = w->client;
    verb->test_listener = w->line.by_message && channel_untested(w->channel,
                                                    waiting_connection(lock));
    w->tested_with = subscriber_connection(s);
}

void waiting_answered(
    struct nxl_lock *lock, const struct outcome *outcome, uint64_t now)
{
    if (outcome->kind != OUTCOME_BUSY)
        return;
    subscriber_tested(&node_of_lock(lock)->subscriber,
        lock->name.waiting->tested_with, outcome->connection,
        outcome->no_listener, now);
}

/* ------------------------------------------------------------- for people */

bool waiting_describe(const struct node *node, struct text *text)
{
    const struct subscriber *s = &node->subscriber;
    const char *no_messages_why = s->listener ? subscriber_words(s) : "";
    struct text why;
    if (!has_line(node, 0, &why)) {
        text_addf(text, "by polling (%s)", why.data);
        return false;
    }
    text_add(text, "in line");
    if (*no_messages_why)
        text_addf(text, " without messages (%s)", no_messages_why);
    return true;
}
