/* SPDX-License-Identifier: MIT */
/*
 * What a client hears on the channel of a name: the lock was handed over to one
 * of its tokens, or that token may ask for it (at once, or soon), or something
 * that only a later version understands.
 *
 * Invariant: a message is only passed on to a lock of that name whose token it
 * has, and only if it counts as an answer of its server would (core/weigh.h);
 * then the lock's state machine decides whether to believe it. One that does
 * not count, or is not understood, only makes the lock ask at once.
 */
#include "lock/line_messages.h"

#include "client/voters.h"
#include "lock/drive.h"
#include "lock/waiting.h"
#include "model/token.h"

/* A message that begins so only says that the token after it is the first in
 * line; or that it is to ask at once. (What else is published: line.lua.) */
#define HINT '?'
#define MORE '!'

/* The lock that waits for messages of this channel with that token; or NULL. */
static struct nxl_lock *find(struct channel *channel, struct slice token)
{
    struct nxl_client *client = channel->subscriber->client;
    struct list *bucket = index_bucket(&client->joined, token);
    for (struct list *node = bucket->next; node != bucket; node = node->next) {
        struct waiting *w = list_entry(node, struct waiting, joined.node);
        if (w->channel == channel && slice_equal(lock_token(w->lock), token))
            return w->lock;
    }
    return NULL;
}

/* Reports an event to all that wait in line by the channel. */
static void report_to_all(struct channel *channel,
    void (*report)(struct line *line, uint64_t now), uint64_t now)
{
    struct list *node = channel->waiters.next, *next;
    for (; node != &channel->waiters; node = next) {
        struct nxl_lock *lock = list_entry(node, struct waiting, node)->lock;
        next = node->next;
        if (life_in_line(&lock->life))
            report(lock->life.vote.line, now);
        lock_run(lock, now);
    }
}

/* Does it count that the lock was handed over to its token? */
static bool counts(const struct nxl_lock *lock, uint64_t now)
{
    const struct request *r = &lock->operation.requests[0];
    return voters_believe(node_of(r->server),
        line_last_sent_at(&lock->name.waiting->line, r->sent_at), now);
}

static void take_message(
    struct channel *channel, struct slice payload, uint64_t now)
{
    bool hint = payload.len > 0 && payload.data[0] == HINT;
    bool more = payload.len > 0 && payload.data[0] == MORE;
    bool marked = hint || more;
    struct slice token = {payload.data + marked, payload.len - marked};
    struct nxl_lock *lock = find(channel, token);
    if (!token_valid(token)) {
        report_to_all(channel, line_on_unknown, now);
        return;
    }
    /* Without a lock, it is a token that was given up: its cleanup is under
     * way. Or one that was granted: another process may have adopted it. */
    if (!lock || !life_in_line(&lock->life))
        return;
    struct line *line = lock->life.vote.line;
    if (hint)
        line_on_first(line, now);
    else if (!more && counts(lock, now))
        line_on_granted(line, waiting_connection(lock), now);
    else
        line_on_unknown(line, now);
    lock_run(lock, now);
}

static void take_change(struct channel *channel, uint64_t now)
{
    report_to_all(channel, line_messages_changed, now);
}

void line_messages_init(struct nxl_client *client)
{
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        n->subscriber.on_message = take_message;
        n->subscriber.on_change = take_change;
    }
}
