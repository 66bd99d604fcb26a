/* SPDX-License-Identifier: MIT */
/* Which request of an operation may have been applied without an answer. */
#include "client/unanswered.h"

#include <stdlib.h>

/* May the requests of this round have been applied at a quorum? */
static bool in_doubt(const struct operation *op)
{
    unsigned may = (unsigned)__builtin_popcount(op->unanswered->now.servers);
    return may + operation_count_notes(op, NOTE_YES) >=
           quorum_of(op->client->server_count);
}

static void remember(struct operation *op, unsigned server, bool applied,
    const struct text *words)
{
    if (!op->unanswered)
        op->unanswered = calloc(1, sizeof(*op->unanswered));
    if (!op->unanswered) /* the message will say less */
        return;
    struct unanswered_round *u = &op->unanswered->now;
    if (u->round != op->round)
        u->servers = 0;
    u->round = op->round;
    if (u->servers == 0)
        u->first = server;
    u->servers |= 1U << server;
    if (u->first == server) {
        u->applied = applied;
        text_copy(words, u->words, sizeof(u->words));
    }
    if (in_doubt(op))
        op->unanswered->last = *u;
}

void unanswered_outcome(
    struct operation *op, unsigned server, const struct outcome *outcome)
{
    struct text words;
    if (outcome->kind != OUTCOME_FAULT || !outcome->unsure)
        return;
    text_clear(&words);
    text_add_foreign(&words, outcome->text);
    remember(op, server, outcome->applied, &words);
}

void unanswered_abandon(struct operation *op, unsigned server)
{
    struct text words;
    if (op->requests[server].state != REQUEST_SENT)
        return;
    text_clear(&words);
    unanswered_add_silence(&words, op->requests[server].server);
    remember(op, server, false, &words);
}

void unanswered_add_silence(struct text *t, const struct server *s)
{
    if (s->state == SERVER_CONNECTING && !s->login.busy &&
        dial_explain(&s->dial, t))
        return;
    if (s->state == SERVER_UP)
        text_add(t, "no answer in time");
    else if (s->state == SERVER_SHAKING)
        text_add(t, "connected, but no answer to the first commands");
    else if (s->login.busy)
        text_add(t, "the credentials callback has not returned in time");
    else if (s->state == SERVER_CONNECTING && s->dial.transport.silence)
        text_add(t, s->dial.transport.silence);
    else if (s->state == SERVER_CONNECTING)
        text_add(t, "no connection in time; check the address, port and "
                    "firewall");
    else
        text_add(t, s->why.len ? s->why.data : "no connection");
}

/* NULL: there is none. */
static const struct unanswered_round *last_of(const struct operation *op)
{
    const struct unanswered *u = op->unanswered;
    return u && u->last.servers ? &u->last : NULL;
}

void unanswered_explain(const struct operation *op, struct text *t)
{
    const struct unanswered_round *u = last_of(op);
    const struct server *s = op->requests[0].server;
    size_t name = s->to.address->name.len + 2; /* and ": " */
    struct text last;
    if (!u || t->len < name)
        return;
    text_set(&last, t->data + name);
    text_set(t, s->to.address->name.data);
    if (u->applied)
        text_addf(t, ": the %s was applied, but a failover may lose it (%s)",
            op->name, u->words);
    else
        text_addf(t,
            ": the %s got no valid answer (%s) and may have been applied",
            op->name, u->words);
    if (strcmp(last.data, u->words) != 0)
        text_addf(t, "; then: %s", last.data);
}

void unanswered_add(const struct operation *op, struct text *t)
{
    const struct unanswered_round *u = last_of(op);
    if (!u)
        return;
    int others = __builtin_popcount(u->servers) - 1;
    text_addf(t, "the %s got no valid answer from %s (%s)", op->name,
        op->requests[u->first].server->to.address->name.data, u->words);
    if (others > 0)
        text_addf(t, " and %d %s", others, others > 1 ? "others" : "other");
    text_add(t, " and may have been applied; ");
}
