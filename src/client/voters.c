/* SPDX-License-Identifier: MIT */
/*
 * Keeps each server's eligibility up to date.
 *
 * Invariant: an acquire is sent to a server only after its connection was
 * judged and the server found to have a vote, so every grant is a vote. What
 * counts is decided by core/weigh.h alone; the words about it are added here. A
 * reason that a person can remove is checked again with a new connection, at
 * most once a second.
 */
#include "client/voters.h"

#include "base/deadline.h"
#include "client/ineligible.h"
#include "core/weigh.h"
#include "wire/strategies.h"

/* Another node for the same server process; else n itself. The node that was
 * judged first has the vote. */
static const struct node *duplicate_of(const struct node *n)
{
    const char *id = n->server.facts.run_id;
    const struct node *other = nodes_first(&n->client->nodes);
    for (; id[0] && other; other = other->next) {
        const struct eligibility *e = &other->voter.eligibility;
        if (other != n && e->reason != REASON_DUPLICATE &&
            strcmp(e->lineage.run_id, id) == 0)
            return other;
    }
    return n;
}

static void add_reason(const struct node *n, uint64_t now, struct text *text)
{
    const struct voter *v = &n->voter;
    ineligible_explain(&v->eligibility, now, text);
    if (v->eligibility.reason == REASON_DUPLICATE) {
        text_add(text, " as ");
        text_add(text, v->duplicate->server.to.address->name.data);
        text_add(text, ": one vote, not two");
    }
}

void voters_explain(const struct node *n, uint64_t now, struct text *text)
{
    if (eligibility_matters(&n->voter.eligibility))
        add_reason(n, now, text);
}

uint64_t voters_quarantine_ms(const struct node *n, uint64_t now)
{
    const struct eligibility *e = &n->voter.eligibility;
    if (!eligibility_matters(e))
        return 0;
    return (eligibility_quarantine(e, now) + NS_PER_MS - 1) / NS_PER_MS;
}

static void refuse_requests(struct node *n, uint64_t now)
{
    const struct eligibility *e = &n->voter.eligibility;
    struct text words;
    text_clear(&words);
    add_reason(n, now, &words);
    requests_refuse(&n->server, eligibility_fault(e, now), &words);
}

struct eligibility_terms voters_terms(const struct node *n)
{
    const struct nxl_client *client = n->client;
    return (struct eligibility_terms){
        .max_ttl_ms = client->max_ttl_ms,
        .drift_ppm = client->drift_ppm,
        .longer_ttl_ms = client->longer_ttl_ms,
        .several_servers = client->server_count > 1,
        .guard = client->guards_restarts,
        .failover = client->guards_failover,
        .sentinels = client->sentinel_watch,
        .durable = n->server.to.settings->durable,
    };
}

static void explain_failover(
    const struct node *n, uint64_t seen_at, uint64_t now, struct text *text)
{
    text_clear(text);
    text_addf(text, "%s: ", n->server.to.address->name.data);
    ineligible_failover(&n->voter.eligibility, seen_at, now, text);
}

bool voters_take_failover(struct node *n, uint64_t now, struct text *text)
{
    uint64_t seen_at = n->voter.failover_at;
    if (!seen_at)
        return false;
    n->voter.failover_at = 0;
    explain_failover(n, seen_at, now, text);
    return true;
}

static void trace_failover(const struct node *n, uint64_t now)
{
    const struct nxl_client *client = n->client;
    uint64_t votes_at = n->voter.eligibility.votes_at;
    struct text words;
    if (!client->tracer)
        return;
    explain_failover(n, now, now, &words);
    nxl_trace trace = {
        .kind = NXL_TRACE_FAILOVER,
        .at_ns = now,
        .left_ms = (int64_t)(deadline_left(votes_at, now) / NS_PER_MS),
        .text = words.data,
    };
    client->tracer(client->tracer_arg, &trace);
}

static void note_failover(struct node *n, uint64_t now)
{
    struct nxl_client *client = n->client;
    if (client->warning) {
        n->voter.failover_at = now;
        atomic_fetch_or(&client->warning_due, 1U << WARNING_FAILOVER);
    }
    trace_failover(n, now);
}

bool voters_judge_new(struct node *n, uint64_t now)
{
    struct voter *v = &n->voter;
    const struct server *s = &n->server;
    struct server_info info = server_info_of(s);
    info.named_s = eligibility_named_s(&v->eligibility, now);
    struct eligibility_terms terms = voters_terms(n);
    v->judged = s->connections;
    v->duplicate = duplicate_of(n);
    unsigned failovers = v->eligibility.failovers;
    eligibility_judge(&v->eligibility, &info, &terms, v->duplicate != n, now);
    if (terms.failover && v->eligibility.failovers != failovers)
        note_failover(n, now);
    int64_t primary_s = eligibility_coordinated_s(&v->eligibility, &terms, now);
    if (primary_s >= 0)
        server_write_marker(&n->server, primary_s * 1000, now);
    if (eligibility_votes(&v->eligibility, now) ||
        !eligibility_matters(&v->eligibility))
        return false;
    refuse_requests(n, now);
    return true;
}

static void explain_refusal(const struct node *n, uint64_t now,
    struct outcome *refusal, struct text *words)
{
    text_clear(words);
    add_reason(n, now, words);
    refusal->text = (struct slice){words->data, words->len};
}

/* Without this, a client that only extends would never judge it again. */
static void judge_again(struct node *n, uint64_t now)
{
    if (eligibility_recheck(&n->voter.eligibility, now))
        server_require_reconnect(&n->server);
}

bool voters_may_send(struct node *n, enum verb_kind verb, uint64_t now,
    struct outcome *refusal, struct text *words)
{
    struct eligibility *e = &n->voter.eligibility;
    if (weigh_may_send(e, verb, now, refusal))
        return true;
    /* The connection on which it was judged has ended: another server may be
     * there, and is judged first. */
    if (e->reason != REASON_NONE && n->server.state == SERVER_DOWN)
        return true;
    if (eligibility_recheck(e, now)) {
        server_require_reconnect(&n->server);
        return true; /* the new connection is judged first */
    }
    explain_refusal(n, now, refusal, words);
    return false;
}

static bool copies_suffice(const struct server *s, enum verb_kind verb,
    const struct outcome *outcome, struct outcome *other)
{
    const struct copies_terms terms = {
        .replicas = s->replica_wait.wanted, .synced = s->replica_wait.aof};
    return weigh_copies(&terms, verb, outcome, other);
}

/* "0 of 1 replicas had it within 50ms" */
static void explain_copies(const struct server *s, const struct copies *copies,
    struct outcome *refusal, struct text *words)
{
    text_clear(words);
    if (!copies->known) {
        text_set(words, "nothing was written, because the lease is longer: how "
                        "many replicas have it is not known");
        refusal->text = (struct slice){words->data, words->len};
        return;
    }
    if (s->replica_wait.aof && !copies->synced)
        text_add(words, "its append-only file did not have it");
    else
        text_addf(words, "%u of %u %s had it%s", copies->replicas,
            s->replica_wait.wanted,
            s->replica_wait.wanted == 1 ? "replica" : "replicas",
            s->replica_wait.aof ? " in an append-only file" : "");
    text_add(words, " within ");
    text_add_duration(words, s->replica_wait.asked_ms, false);
    refusal->text = (struct slice){words->data, words->len};
}

const struct outcome *voters_weigh(struct node *n, enum verb_kind verb,
    const struct outcome *outcome, uint64_t deadline, uint64_t now,
    struct outcome *other, struct text *words)
{
    const struct server *s = &n->server;
    if (s->replica_wait.in_use && !copies_suffice(s, verb, outcome, other)) {
        explain_copies(s, &outcome->copies, other, words);
        return other;
    }
    const struct eligibility *e = &n->voter.eligibility;
    if (weigh_outcome(e, verb, outcome, s->alive_at, now, other) &&
        weigh_extension(e, verb, outcome, deadline, other)) {
        n->voter.unconfirmed += outcome->kind == OUTCOME_FAULT &&
                                fault_is_unconfirmed(outcome->fault);
        return outcome;
    }
    n->voter.unconfirmed += fault_is_unconfirmed(other->fault);
    judge_again(n, now);
    if (!other->text.data) /* else the server's own words */
        explain_refusal(n, now, other, words);
    return other;
}

bool voters_note_longer_lease(struct node *n, int64_t left_ms, uint64_t now)
{
    struct nxl_client *client = n->client;
    int64_t most =
        client->longer_ttl_ms ? client->longer_ttl_ms : client->max_ttl_ms;
    /* A unix time is read in seconds, and is not what a guard waits for. */
    if (left_ms <= most || !client->guards_restarts ||
        strategies_weak(&n->server.dialect))
        return false;
    client->longer_ttl_ms =
        (uint32_t)(left_ms < INT32_MAX ? left_ms : INT32_MAX);
    for (n = nodes_first(&client->nodes); n; n = n->next) {
        struct eligibility_terms terms = voters_terms(n);
        eligibility_lengthen(&n->voter.eligibility, &terms, now);
    }
    return true;
}

bool voters_believe(struct node *n, uint64_t sent_at, uint64_t now)
{
    if (weigh_message(&n->voter.eligibility, sent_at, n->server.alive_at, now))
        return true;
    n->voter.unconfirmed += !weigh_confirmed(&n->voter.eligibility, sent_at);
    judge_again(n, now);
    return false;
}
