/* SPDX-License-Identifier: MIT */
/*
 * Sends what core/cleanup.c decides, and passes the replies to it.
 *
 * Invariant: where both CLIENT KILL and the compare-and-delete are due, both
 * are appended, or neither. No slot refers to a cleaner that was freed. Scripts
 * are sent with their text, which saves a round trip after a restart.
 */
#include "net/cleaner.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "wire/command.h"

static void set_key(struct cleaner *k, struct slice key)
{
    memcpy(k->bytes, key.data, key.len);
    k->verb.key = (struct slice){k->bytes, key.len};
    k->verb.token = (struct slice){k->bytes + key.len, 0};
}

struct cleaner *cleaner_new(struct slice key, size_t token_room)
{
    size_t room = key.len + token_room;
    struct cleaner *k = calloc(1, sizeof(*k) + room);
    if (!k)
        return NULL;
    list_init(&k->node);
    list_init(&k->idle_node);
    k->room = room;
    set_key(k, key);
    return k;
}

struct cleaner *cleaner_reuse(
    struct cleaner *k, struct slice key, size_t token_room)
{
    if (!k || k->room < key.len + token_room) {
        cleaner_free(k);
        return cleaner_new(key, token_room);
    }
    set_key(k, key);
    return k;
}

void cleaner_free(struct cleaner *k)
{
    if (!k)
        return;
    if (k->link)
        *k->link = NULL;
    list_remove(&k->node);
    list_remove(&k->idle_node);
    exchange_free(&k->exchange);
    free(k);
}

void cleaners_free(struct list *list)
{
    while (!list_empty(list))
        cleaner_free(list_entry(list->next, struct cleaner, node));
}

/* A record that was begun has no TTL: taking it back is tried for this long, if
 * the token's is shorter. */
#define UNBEGIN_NS (600 * NS_PER_S)

/* How long the token may be at the server, if no other request is sent. One in
 * line counts as alive for its window, and may be granted the lock at its end,
 * for another lease; if it holds the lock already, that is shorter. */
static uint64_t lasts_ns(const struct cleaner *k)
{
    const struct verb *verb = &k->verb;
    uint64_t ms = exchange_lasts_ms(&k->exchange, verb->ttl_ms);
    if (verb->client.len > 0)
        ms += (uint64_t)verb->window * 1000 / WINDOW_TICKS;
    return later(
        ms_to_ns(ms), verb_traits[verb->kind].undoes_for_ever ? UNBEGIN_NS : 0);
}

void cleaner_start(struct cleaner *k, enum cleanup_cause cause,
    const struct verb *of, uint64_t now)
{
    memcpy(k->bytes + k->verb.key.len, of->token.data, of->token.len);
    k->verb.token.len = of->token.len;
    k->verb.kind = verb_traits[of->kind].undo;
    k->verb.ttl_ms = of->ttl_ms;
    k->verb.client = of->client;
    k->verb.window = of->window;
    cleanup_start(&k->cleanup, cause, lasts_ns(k), of->not_after, now);
}

/* Appends the present step of the compare-and-delete and its slots. */
static bool format_delete(
    struct cleaner *k, struct conn *c, struct dialect *dialect, uint64_t now)
{
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, EXCHANGE_REPLIES) ||
        !exchange_may_send(&k->exchange, dialect))
        return false;
    dialect->now = now;
    unsigned due = exchange_encode(&k->exchange, dialect, &c->out);
    for (unsigned i = 0; i < due; i++)
        slots_push(&c->slots, SLOT_DELETE, k, now,
            i == 0 ? buf_len(&c->out) - before : 0);
    return due > 0;
}

/* Returns how many bytes were appended; 0: out of memory. */
static size_t format_kill(struct cleaner *k, struct conn *c, uint64_t now)
{
    size_t before = buf_len(&c->out);
    if (!slots_reserve(&c->slots, 1 + EXCHANGE_REPLIES) ||
        !command_client_kill(&c->out, k->cleanup.client_id))
        return 0;
    size_t bytes = buf_len(&c->out) - before;
    slots_push(&c->slots, SLOT_KILL, k, now, bytes);
    return bytes;
}

static bool format(struct cleaner *k, unsigned what, struct conn *c,
    struct dialect *dialect, uint64_t now)
{
    size_t before = buf_len(&c->out), killing = 0;
    if (what & CLEANUP_SEND_KILL) {
        killing = format_kill(k, c, now);
        if (!killing)
            return false;
    }
    if (!(what & CLEANUP_SEND_DELETE))
        return true;
    exchange_restart(&k->exchange, &k->verb, NULL);
    k->exchange.always_text = true;
    if (format_delete(k, c, dialect, now))
        return true;
    if (killing) {
        slots_unpush(&c->slots);
        buf_cut(&c->out, before, killing);
    }
    return false;
}

bool cleaner_send(struct cleaner *k, struct conn *c, struct dialect *dialect,
    const struct facts *facts, uint64_t now)
{
    unsigned what = cleanup_next(&k->cleanup, facts->run_id, now);
    if (!what)
        return true;
    if (!format(k, what, c, dialect, now)) {
        cleanup_put_off(&k->cleanup, now);
        return false;
    }
    list_remove(&k->idle_node);
    return true;
}

void cleaner_kill_answered(
    struct cleaner *k, const struct reply *reply, uint64_t now)
{
    /* An integer, even 0, says that the server no longer has this connection:
     * it has carried out all that came on it, or discarded it. */
    cleanup_kill_answered(&k->cleanup, reply->kind == REPLY_INTEGER, now);
}

void cleaner_delete_answered(struct cleaner *k, const struct reply *reply,
    struct conn *c, struct dialect *dialect, uint64_t now)
{
    switch (exchange_reply(&k->exchange, reply)) {
    case EXCHANGE_WAIT:
        break;
    case EXCHANGE_AGAIN:
        if (cleanup_too_late(&k->cleanup, now) ||
            !format_delete(k, c, dialect, now))
            cleanup_put_off(&k->cleanup, now);
        break;
    case EXCHANGE_DONE:
        cleanup_delete_answered(&k->cleanup, &k->exchange.outcome, now);
        break;
    }
}

void cleaner_link(struct cleaner *k, struct cleaner **link)
{
    if (k->link)
        *k->link = NULL;
    if (*link)
        (*link)->link = NULL;
    *link = k;
    k->link = link;
}
