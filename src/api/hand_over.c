/* SPDX-License-Identifier: MIT */
/*
 * What a client hears on its channel: a lock was handed over to one of its
 * tokens.
 *
 * Invariant: a message is only passed on to the lock whose token it names, and
 * whose state machine decides whether to believe it.
 */
#include "api/hand_over.h"

#include "api/drive.h"
#include "api/waiting.h"

/* Such a message only says that the token after it is the first in line. */
#define HINT '?'

static void take_message(
    struct nxl_client *client, struct slice payload, uint64_t now)
{
    bool hint = payload.len > 0 && payload.data[0] == HINT;
    struct slice token = {payload.data + hint, payload.len - hint};
    struct list *bucket = index_bucket(&client->joined, token);
    for (struct list *node = bucket->next; node != bucket; node = node->next) {
        struct nxl_lock *lock =
            list_entry(node, struct waiting, joined.node)->lock;
        if (!slice_equal(lock_token(lock), token))
            continue;
        if (hint)
            life_hinted(&lock->life, now);
        else
            life_told(&lock->life, waiting_connection(client), now);
        lock_run(lock, now);
        return;
    }
    /* Of a token that was given up: its cleanup is under way. Or of one that
     * was granted: another process may have adopted it. */
}

static void take_change(struct nxl_client *client, uint64_t now)
{
    struct list *node = client->in_line.next, *next;
    waiting_look_at_messages(client);
    for (; node != &client->in_line; node = next) {
        struct nxl_lock *lock = list_entry(node, struct waiting, node)->lock;
        next = node->next;
        life_messages_changed(&lock->life, now);
        lock_run(lock, now);
    }
}

void hand_over_init(struct nxl_client *client)
{
    list_init(&client->in_line);
    client->subscriber.on_message = take_message;
    client->subscriber.on_change = take_change;
}
