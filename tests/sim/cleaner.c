/* SPDX-License-Identifier: MIT */
/*
 * The records and messages of cleanups, which core/cleanup.c decides about; the
 * checker is told how each one ends.
 */
#include <stdlib.h>

#include "sim/client.h"
#include "sim/world.h"

/* A record that was begun has no TTL: taking it back is tried for this long. */
#define UNBEGIN_NS (600 * NS_PER_S)

/* How long its token may be at the server. One in line counts as alive for its
 * window, and may be granted the lock at the end of that. */
static uint64_t lasts_ns(const struct message *of)
{
    uint64_t ms = of->ttl_ms;
    if (of->channel)
        ms += of->ttl_ms + (uint64_t)of->window * 1000 / WINDOW_TICKS;
    return later(ms_to_ns(ms), of->kind == MESSAGE_BEGIN ? UNBEGIN_NS : 0);
}

struct cleaner *cleaner_begin(struct world *w, struct link *l,
    const struct message *of, enum cleanup_cause cause)
{
    if (cause == CLEANUP_NONE)
        return NULL;
    struct cleaner *k = calloc(1, sizeof(*k));
    if (!k)
        abort();
    list_init(&k->node);
    list_append(&l->cleaners, &k->node);
    k->message = *of;
    k->message.kind =
        of->kind == MESSAGE_BEGIN ? MESSAGE_UNBEGIN : MESSAGE_RELEASE;
    if (!guarded_here(SIM_GUARD_AS_JOINED))
        k->message.channel = of->channel ? CHANNEL_NONE : 0;
    cleanup_start(&k->cleanup, cause, lasts_ns(of), of->not_after, w->now);
    note(w, "c%llu has to clean up s%llu t%llu",
        k->cleanup.in_use                     ? "(in use)"
        : k->cleanup.acquire == ACQUIRE_AHEAD ? "(it may come)"
                                              : NULL,
        l->process->index, l->server, of->token);
    return k;
}

void cleaner_free(struct cleaner *k)
{
    list_remove(&k->node);
    free(k);
}

static struct cleaner *next_of(
    struct link *l, struct list *from, uint64_t token)
{
    for (struct list *n = from->next; n != &l->cleaners; n = n->next) {
        struct cleaner *k = list_entry(n, struct cleaner, node);
        if (k->message.token == token)
            return k;
    }
    return NULL;
}

struct cleaner *cleaner_in_use(struct link *l, uint64_t token)
{
    struct cleaner *k = next_of(l, &l->cleaners, token);
    while (k && !k->cleanup.in_use)
        k = next_of(l, &k->node, token);
    return k;
}

bool cleaners_owe(const struct link *l, const struct request *r)
{
    unsigned name = r->message.name;
    if (l->given_up != r->given_up)
        return true;
    for (struct list *n = l->cleaners.next; n != &l->cleaners; n = n->next) {
        const struct cleaner *k = list_entry(n, struct cleaner, node);
        if (k->message.name == name && !k->cleanup.in_use)
            return true;
    }
    return false;
}

void cleaner_send(struct world *w, struct link *l, struct cleaner *k)
{
    unsigned what = cleanup_next(&k->cleanup, l->run_id, w->now);
    if (what & CLEANUP_SEND_KILL) {
        struct message kill = {
            .kind = MESSAGE_KILL, .number = (uint64_t)k->cleanup.client_id};
        link_push_slot(l,
            (struct slot){.kind = SLOT_KILL, .cleaner = k, .sent_at = w->now});
        conn_send(w, l->conn, &kill);
    }
    if (what & CLEANUP_SEND_DELETE) {
        k->message.sent_at = w->now;
        link_push_slot(l, (struct slot){
                              .kind = SLOT_DELETE,
                              .cleaner = k,
                              .sent_at = w->now,
                          });
        conn_send(w, l->conn, &k->message);
    }
}

/* deleted: by a compare-and-delete, if it is done now. Two may be under way for
 * one token, and only the last one proves that nothing can come. */
static void settle(
    struct world *w, struct link *l, struct cleaner *k, bool deleted)
{
    uint64_t token = k->message.token;
    bool stray = k->cleanup.acquire == ACQUIRE_STRAY;
    bool expired = k->cleanup.state == CLEANUP_GIVEN_UP;
    if (!cleanup_over(&k->cleanup))
        return;
    cleaner_free(k);
    l->given_up += expired;
    if (expired)
        checker_lapsed(w, l->server, token, stray);
    else if (w->sentinels && (!l->conn || l->conn->server->former))
        checker_lapsed(w, l->server, token, false); /* not proved there */
    else if (deleted && !next_of(l, &l->cleaners, token))
        checker_settled(w, l->server, token);
    note(w, "c%llu has cleaned up s%llu t%llu", expired ? "(expired)" : NULL,
        l->process->index, l->server, token);
}

void cleaner_heard(struct world *w, struct link *l, const struct slot *slot,
    const struct message *m)
{
    struct cleaner *k = slot->cleaner;
    enum outcome_kind kind = m->outcome.kind;
    bool busy = kind == OUTCOME_BUSY &&
                (m->kind == MESSAGE_ACQUIRE || m->kind == MESSAGE_TAKE);
    if (slot->kind == SLOT_CANCELLED)
        cleanup_acquire_answered(&k->cleanup,
            busy || (kind == OUTCOME_FAULT && m->kind != MESSAGE_BEGIN),
            w->now);
    else if (slot->kind == SLOT_KILL)
        cleanup_kill_answered(&k->cleanup, kind != OUTCOME_FAULT, w->now);
    else
        cleanup_delete_answered(&k->cleanup, &m->outcome, w->now);
    settle(w, l, k, slot->kind == SLOT_DELETE);
}

uint64_t cleaners_due(struct world *w, struct link *l)
{
    uint64_t at = NEVER;
    struct list *node = l->cleaners.next, *next;
    for (; node != &l->cleaners; node = next) {
        next = node->next;
        struct cleaner *k = list_entry(node, struct cleaner, node);
        if (k->cleanup.state != CLEANUP_IDLE)
            continue;
        cleanup_tick(&k->cleanup, w->now);
        if (k->cleanup.state == CLEANUP_IDLE)
            at = earlier(at, k->cleanup.next_try);
        else
            settle(w, l, k, false);
    }
    return at;
}

/* ------------------------------------------------------- for link and worker
 */

void link_end_use(
    struct world *w, struct link *l, const struct message *release)
{
    struct cleaner *k = cleaner_in_use(l, release->token);
    if (!k)
        return;
    k->message.promised = release->promised;
    cleanup_not_in_use(&k->cleanup, release->not_after, w->now);
}

void cleaner_release_answered(struct world *w, struct link *l,
    const struct message *release, const struct outcome *outcome)
{
    struct cleaner *k = cleaner_in_use(l, release->token);
    if (!k)
        return;
    k->message.promised = release->promised;
    cleanup_release_answered(&k->cleanup, outcome, release->not_after, w->now);
}

void link_clean_up(struct world *w, struct link *l, const struct message *of)
{
    link_end_use(w, l, of);
    cleaner_begin(w, l, of, CLEANUP_TOKEN);
}

bool link_can_adopt(struct link *l, uint64_t token)
{
    struct cleaner *k = next_of(l, &l->cleaners, token);
    while (k && cleanup_can_cancel(&k->cleanup))
        k = next_of(l, &k->node, token);
    return !k;
}

void link_adopt(struct link *l, uint64_t token, bool applied)
{
    struct cleaner *next, *k = next_of(l, &l->cleaners, token);
    for (; k; k = next) {
        next = next_of(l, &k->node, token);
        cleanup_cancel(&k->cleanup, applied);
        if (cleanup_over(&k->cleanup))
            cleaner_free(k);
    }
}
