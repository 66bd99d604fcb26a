/* SPDX-License-Identifier: MIT */
/* The warnings of a client. */
#include "lock/warning.h"

#include "base/clock.h"
#include "base/redact.h"
#include "client/voters.h"
#include "lock/errmsg.h"
#include "wire/strategies.h"

static void mark_due(struct nxl_client *client, enum warning_kind kind)
{
    client->warned |= 1U << kind;
    atomic_fetch_or(&client->warning_due, 1U << kind);
}

static bool was_warned(const struct nxl_client *client, enum warning_kind kind)
{
    return client->warned & 1U << kind;
}

static void note_weak(struct nxl_client *client)
{
    struct text *text = &client->warning_text[WARNING_WEAK];
    for (struct node *n = nodes_first(&client->nodes); n; n = n->next) {
        const struct server *s = &n->server;
        if (!strategies_weak(&s->dialect))
            continue;
        text_clear(text);
        text_addf(text, "%s: it locks with ", s->to.address->name.data);
        strategies_describe(&s->dialect, text);
        text_add(text, ": see \"Locks by unix times\" in docs/guarantees.md");
        mark_due(client, WARNING_WEAK);
        return;
    }
}

/* What a restart of the server, or a crash of its machine, would lose. */
static void add_persistence(const struct server *s, struct text *t)
{
    const struct facts *f = &s->facts;
    if (f->aof == AOF_OFF)
        text_add(t, "it has no append-only file: a restart loses the records "
                    "of work that must be done once, and it may be done "
                    "again; set appendonly yes and appendfsync always");
    else if (f->aof == AOF_UNKNOWN)
        text_add(t, "whether it has an append-only file is unknown (INFO): "
                    "without one a restart loses the records of work that "
                    "must be done once");
    else if (f->asked_fsync && !f->appendfsync[0])
        text_add(t, "how often its append-only file is synced is unknown "
                    "(CONFIG GET): unless appendfsync is always, a crash of "
                    "its machine may lose the last records of work that "
                    "must be done once");
    else if (f->asked_fsync && strcmp(f->appendfsync, "always") != 0) {
        text_add(t, "its append-only file is synced by appendfsync ");
        redact_add(t, slice_of(f->appendfsync), FOREIGN_MAX, s->secrets);
        text_add(t, ": a crash of its machine may lose the last records of "
                    "work that must be done once; set appendfsync always");
    }
}

/* What was done expires, so the policies for keys that expire take it too. */
static void add_eviction(const struct server *s, struct text *t)
{
    const struct facts *f = &s->facts;
    bool any = strncmp(f->eviction, "allkeys-", 8) == 0;
    if (!f->eviction[0] || strcmp(f->eviction, "noeviction") == 0)
        return;
    text_addf(t, "%sits maxmemory-policy is ", t->len ? "; " : "");
    redact_add(t, slice_of(f->eviction), FOREIGN_MAX, s->secrets);
    text_addf(t,
        ": when its memory is full, %s may be evicted, and then the work may "
        "be done again; set maxmemory-policy noeviction",
        any ? "any record" : "records of what was done");
}

void warning_of_records(const struct server *s, struct text *t)
{
    struct text words;
    /* Nobody has begun anything; or what it says is not final. */
    if (!s->handshake_terms.asks_fsync || s->facts.loading)
        return;
    text_clear(&words);
    add_persistence(s, &words);
    add_eviction(s, &words);
    text_add(t, words.data);
}

static void note_records(const struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    const struct server *s = lock->operation.requests[0].server;
    struct text words;
    text_clear(&words);
    warning_of_records(s, &words);
    if (!words.len)
        return;
    struct text *text = &client->warning_text[WARNING_RECORDS];
    text_clear(text);
    text_addf(text, "%s: %s", s->to.address->name.data, words.data);
    mark_due(client, WARNING_RECORDS);
}

static void note_minority(const struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    bool young;
    struct text words;
    text_clear(&words);
    if (!errmsg_minority(&lock->operation, &young, &words))
        return;
    enum warning_kind kind = young ? WARNING_QUARANTINE : WARNING_MINORITY;
    if (was_warned(client, kind))
        return;
    client->warning_text[kind] = words;
    mark_due(client, kind);
    client->warned |=
        1U << WARNING_QUARANTINE; /* implied by the other warning */
}

/* Not for the first lock: a program that takes a single one is gone before
 * somebody reads of it, and nxlock doctor says so too. */
static void note_unguarded(struct nxl_client *client)
{
    const struct server *s = &nodes_first(&client->nodes)->server;
    int replicas = s->facts.replicas;
    struct text *text = &client->warning_text[WARNING_UNGUARDED];
    if (client->guards_failover ||
        s->to.settings->guard_failover != GUARD_SWITCH_AUTO)
        return; /* it is on, or somebody has decided */
    if (client->stats.grants < 1 || (replicas < 1 && !s->facts.replid2[0]))
        return;
    text_clear(text);
    text_addf(text, "%s: ", s->to.address->name.data);
    if (replicas > 0)
        text_addf(
            text, "it has %d replica%s", replicas, replicas == 1 ? "" : "s");
    else
        text_add(text, "it was promoted, or has started from an RDB file");
    text_add(text,
        ": after a failover that loses writes two clients can hold one lock; "
        "if one is possible here, write guard_failover=on in the URL of all "
        "programs (docs/failover.md), otherwise guard_failover=off");
    mark_due(client, WARNING_UNGUARDED);
}

void warning_note_grant(const struct nxl_lock *lock)
{
    struct nxl_client *client = lock->client;
    if (!client->warning)
        return;
    if (!was_warned(client, WARNING_WEAK))
        note_weak(client);
    if (lock->life.call == CALL_BEGIN && !was_warned(client, WARNING_RECORDS))
        note_records(lock);
    if (client->server_count > 1 && !was_warned(client, WARNING_MINORITY))
        note_minority(lock);
    if (client->server_count == 1 && !was_warned(client, WARNING_UNGUARDED))
        note_unguarded(client);
}

void warning_note_longer(
    const struct nxl_lock *lock, unsigned server, int64_t left_ms)
{
    struct nxl_client *client = lock->client;
    const struct server *s = lock->operation.requests[server].server;
    struct text *text = &client->warning_text[WARNING_LONGER];
    if (!client->warning || was_warned(client, WARNING_LONGER))
        return;
    text_clear(text);
    text_addf(text, "%s: the lock '", s->to.address->name.data);
    text_add_foreign_raw(text, lock->operation.verb.key, FOREIGN_MAX);
    text_add(text, "' is held for ");
    text_add_duration(text, (uint64_t)left_ms, false);
    text_add(text, " more, but max_ttl_ms is ");
    text_add_duration(text, client->max_ttl_ms, false);
    text_add(text,
        ": after a restart or a failover this program waits for leases of that "
        "length, but others may not, and then two clients can hold one lock; "
        "write the same max_ttl_ms in the URL of all programs");
    mark_due(client, WARNING_LONGER);
}

/* The words about the next failover that is due; false: there is none. */
static bool next_failover(struct nxl_client *client, struct text *words)
{
    bool found = false;
    client_lock(client);
    struct node *n = nodes_first(&client->nodes);
    for (; n && !found; n = n->next)
        found = voters_take_failover(n, clock_now(), words);
    client_unlock(client);
    return found;
}

static void deliver_failovers(struct nxl_client *client)
{
    struct text words;
    while (next_failover(client, &words))
        client->warning(client->warning_arg, words.data);
}

void warning_deliver(struct nxl_client *client)
{
    if (!atomic_load_explicit(&client->warning_due, memory_order_relaxed))
        return;
    unsigned due = atomic_exchange(&client->warning_due, 0);
    for (unsigned kind = 0; kind < WARNING_FAILOVER; kind++)
        if (due & 1U << kind)
            client->warning(
                client->warning_arg, client->warning_text[kind].data);
    if (due & 1U << WARNING_FAILOVER)
        deliver_failovers(client);
}
