/* SPDX-License-Identifier: MIT */
/*
 * Keeps each server's eligibility up to date.
 *
 * Invariant: an acquire is sent to a server only after its connection was
 * judged and the server found to have a vote, so every grant is a vote. A
 * reason that a person can remove is checked again with a new connection, at
 * most once a second.
 */
#include "client/voters.h"

/* Another entry of the list for the same server process; else server itself.
 * The entry that was judged first has the vote. */
static unsigned duplicate_of(const struct nxl_client *client, unsigned server)
{
    const char *id = client->servers[server].facts.run_id;
    for (unsigned i = 0; id[0] && i < client->server_count; i++) {
        const struct eligibility *s = &client->voters[i].eligibility;
        if (i != server && s->reason != REASON_DUPLICATE &&
            strcmp(s->run_id, id) == 0)
            return i;
    }
    return server;
}

static void add_reason(const struct nxl_client *client, unsigned server,
    uint64_t now, struct text *text)
{
    const struct voter *v = &client->voters[server];
    eligibility_explain(&v->eligibility, now, text);
    if (v->eligibility.reason == REASON_DUPLICATE) {
        text_add(text, " as ");
        text_add(text, client->servers[v->duplicate].endpoint.name.data);
        text_add(text, ": one vote, not two");
    }
}

void voters_words(const struct nxl_client *client, unsigned server,
    uint64_t now, struct text *text)
{
    if (voters_matter(client, VERB_ACQUIRE))
        add_reason(client, server, now, text);
}

static void refuse_requests(
    struct nxl_client *client, unsigned server, uint64_t now)
{
    struct text words;
    text_clear(&words);
    add_reason(client, server, now, &words);
    requests_refuse(&client->servers[server],
        voters_matter(client, VERB_ACQUIRE),
        eligibility_fault(&client->voters[server].eligibility, now), &words);
}

bool voters_judge(struct nxl_client *client, unsigned server, uint64_t now)
{
    struct voter *v = &client->voters[server];
    struct server *s = &client->servers[server];
    if (!voters_unjudged(client, server))
        return false;
    struct server_info info = {
        .run_id = s->facts.run_id,
        .role = s->facts.role,
        .cluster = s->facts.cluster,
        .slots = s->facts.slots,
        .uptime_s = s->facts.uptime_s,
        .refused = s->facts.info_refused,
        .no_aof = s->facts.aof == AOF_OFF,
        .set_back = s->facts.set_back,
    };
    struct eligibility_terms terms = {
        .max_ttl_ms = client->max_ttl_ms,
        .drift_ppm = client->drift_ppm,
        .guard = client->guard,
        .durable = s->endpoint.settings.durable,
    };
    v->judged = s->connections;
    v->duplicate = duplicate_of(client, server);
    eligibility_judge(
        &v->eligibility, &info, &terms, v->duplicate != server, now);
    if (eligibility_votes(&v->eligibility, now) ||
        !voters_matter(client, VERB_BEGIN))
        return false;
    refuse_requests(client, server, now);
    return true;
}

static void explain_refusal(const struct nxl_client *client, unsigned server,
    uint64_t now, struct outcome *refusal, struct text *words)
{
    text_clear(words);
    add_reason(client, server, now, words);
    refusal->text = (struct slice){words->data, words->len};
}

bool voters_ask(struct nxl_client *client, unsigned server, enum verb_kind verb,
    uint64_t now, struct outcome *refusal, struct text *words)
{
    struct eligibility *e = &client->voters[server].eligibility;
    if (!voters_matter(client, verb) || eligibility_votes(e, now))
        return true;
    if (eligibility_recheck(e, now)) {
        server_reconnect(&client->servers[server]);
        return true; /* the new connection is judged first */
    }
    *refusal = eligibility_refusal(e, false, now);
    explain_refusal(client, server, now, refusal, words);
    return false;
}

const struct outcome *voters_weigh(struct nxl_client *client, unsigned server,
    enum verb_kind verb, const struct outcome *outcome, uint64_t now,
    struct outcome *other, struct text *words)
{
    struct eligibility *e = &client->voters[server].eligibility;
    if (!voters_matter(client, verb) ||
        eligibility_weigh(e, verb, outcome, now, other))
        return outcome;
    /* Without this, a client that only extends would never judge it again. */
    if (eligibility_recheck(e, now))
        server_reconnect(&client->servers[server]);
    explain_refusal(client, server, now, other, words);
    return other;
}
