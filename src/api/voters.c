/* SPDX-License-Identifier: MIT */
/*
 * Keeps: no acquire leaves for a server before its connection was judged and
 * found to have a vote; so a grant is a vote. A bar that a person may lift is
 * looked at again with a new connection, but not more than once a second.
 */
#include "api/voters.h"

#include "base/deadline.h"

#define LOOK_AGAIN NS_PER_S

/* Another server with that process. The one that was judged first votes. */
static unsigned twin_of(const struct nxl_client *client, unsigned server)
{
    const char *id = client->servers[server].facts.run_id;
    for (unsigned i = 0; id[0] && i < client->server_count; i++) {
        const struct standing *s = &client->voters[i].standing;
        if (i != server && s->bar != STANDING_TWIN &&
            strcmp(s->run_id, id) == 0)
            return i;
    }
    return server;
}

void voters_words(const struct nxl_client *client, unsigned server,
    uint64_t now, struct text *text)
{
    const struct voter *v = &client->voters[server];
    standing_words(&v->standing, now, text);
    if (v->standing.bar == STANDING_TWIN) {
        text_add(text, " as ");
        text_add(text, client->servers[v->twin].endpoint.name.data);
        text_add(text, ": one vote, not two");
    }
}

static void refuse(struct nxl_client *client, unsigned server, uint64_t now)
{
    struct text words;
    text_clear(&words);
    voters_words(client, server, now, &words);
    server_refuse(&client->servers[server],
        standing_fault(&client->voters[server].standing, now), &words);
}

void voters_judge(struct nxl_client *client, unsigned server, uint64_t now)
{
    struct voter *v = &client->voters[server];
    struct server *s = &client->servers[server];
    if (s->state != SERVER_UP || v->judged == s->connections ||
        !voters_matter(client))
        return;
    struct told told = {
        .run_id = s->facts.run_id,
        .role = s->facts.role,
        .uptime_s = s->facts.uptime_s,
        .refused = s->facts.info_refused,
        .no_aof = s->facts.no_aof,
        .set_back = s->facts.set_back,
    };
    struct standing_terms terms = {
        .max_ttl_ms = client->max_ttl_ms,
        .drift_ppm = client->drift_ppm,
        .guard = client->guard,
        .durable = s->endpoint.settings.durable,
    };
    v->judged = s->connections;
    v->judged_at = now;
    v->twin = twin_of(client, server);
    standing_judge(&v->standing, &told, &terms, v->twin != server, now);
    if (!standing_votes(&v->standing, now))
        refuse(client, server, now);
}

static struct outcome no_vote(const struct nxl_client *client,
    unsigned server, bool unsure, uint64_t now, struct text *words)
{
    text_clear(words);
    voters_words(client, server, now, words);
    return (struct outcome){
        .kind = OUTCOME_FAULT,
        .fault = standing_fault(&client->voters[server].standing, now),
        .unsure = unsure,
        .left_ms = LEFT_UNKNOWN,
        .text = {words->data, words->len},
    };
}

bool voters_ask(struct nxl_client *client, unsigned server, uint64_t now,
    struct outcome *refusal, struct text *words)
{
    struct voter *v = &client->voters[server];
    if (standing_votes(&v->standing, now))
        return true;
    if (v->standing.bar != STANDING_FREE &&
        now >= deadline_after(v->judged_at, LOOK_AGAIN)) {
        v->judged_at = now;
        server_look_again(&client->servers[server]);
        return true; /* the new connection is judged first */
    }
    *refusal = no_vote(client, server, false, now, words);
    return false;
}

/* What it says about others, that it knows of none, needs a memory. */
static bool has_say(const struct standing *s, enum nxl_operation kind,
    const struct outcome *outcome, uint64_t now)
{
    switch (outcome->kind) {
    case OUTCOME_GRANTED:
        return standing_votes(s, outcome->sent_at);
    case OUTCOME_MINE:
        /* It may have forgotten that a token was released since; our own we
         * know of. */
        if (kind == NXL_OP_ADOPT)
            return standing_votes(s, now);
        return kind == NXL_OP_RELEASE || kind == NXL_OP_BREAK ||
               standing_proves(s);
    case OUTCOME_SEEN:
        return standing_proves(s);
    case OUTCOME_FREE:
        return standing_votes(s, now);
    case OUTCOME_BUSY:
    case OUTCOME_NOT_MINE:
    case OUTCOME_FAULT:
        break;
    }
    return true;
}

const struct outcome *voters_weigh(struct nxl_client *client,
    unsigned server, enum nxl_operation kind, const struct outcome *outcome,
    uint64_t now, struct outcome *other, struct text *words)
{
    struct voter *v = &client->voters[server];
    if (has_say(&v->standing, kind, outcome, now))
        return outcome;
    /* Who only extends would keep a judgement that is out of date. */
    if (v->standing.bar != STANDING_FREE &&
        now >= deadline_after(v->judged_at, LOOK_AGAIN)) {
        v->judged_at = now;
        server_look_again(&client->servers[server]);
    }
    bool granted = outcome->kind == OUTCOME_GRANTED;
    *other = no_vote(client, server, granted, now, words);
    if (other->fault == FAULT_NONE) /* between the two readings of a clock */
        other->fault = FAULT_RESTARTED;
    other->sent_at = outcome->sent_at;
    return other;
}
