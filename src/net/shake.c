/* SPDX-License-Identifier: MIT */
/*
 * The handshake on a server's connection. Invariant: what a node of a Redis
 * Cluster serves is known before a lock command is sent to it.
 */
#include "net/shake.h"

#include "net/quote.h"
#include "net/subscription.h"

static enum fault handshake_done(struct server *s)
{
    if (s->who.needs_info && s->handshake.facts.loading) {
        /* While the server loads, INFO does not show its final persistence
         * settings. */
        text_set(&s->why, "LOADING the server is reading its data in");
        return FAULT_RETRY;
    }
    s->state = SERVER_UP;
    s->trying = false;
    s->known = true;
    s->facts = s->handshake.facts;
    s->logged_in = !s->facts.no_login;
    login_accepted(&s->login);
    s->dialect.scripts_unverified =
        s->facts.no_scripts || s->dialect.ttl_in_values;
    return FAULT_NONE;
}

/* Has a lock command been sent together with the handshake? */
static bool sent_early(const struct server *s)
{
    const struct slots *slots = &s->conn.slots;
    for (size_t i = 0; i < slots->count; i++)
        if (slots_at(slots, i)->kind != SLOT_HANDSHAKE)
            return true;
    return false;
}

/* Asks a node of a Redis Cluster which slots it serves. */
static enum fault ask_slots(struct server *s)
{
    size_t before = buf_len(&s->conn.out);
    if (sent_early(s)) {
        /* Their answers would come before that about its slots. The next
         * connection sends nothing early. */
        text_set(&s->why, "it has become a node of a Redis Cluster");
        return FAULT_CLUSTER;
    }
    if (!slots_reserve(&s->conn.slots, 1) ||
        !handshake_ask_slots(&s->handshake, &s->conn.out)) {
        text_set(&s->why, "out of memory: cannot store the handshake");
        return FAULT_SYSTEM;
    }
    slots_push(&s->conn.slots, (struct slot){SLOT_HANDSHAKE, NULL, s->heard_at,
                                   buf_len(&s->conn.out) - before});
    return FAULT_NONE;
}

enum fault shake_reply(struct server *s, const struct reply *reply)
{
    enum fault fault = FAULT_NONE;
    switch (handshake_reply(&s->handshake, reply, &fault)) {
    case HANDSHAKE_WAIT:
        return FAULT_NONE;
    case HANDSHAKE_ASK_SLOTS:
        return ask_slots(s);
    case HANDSHAKE_DONE:
        return handshake_done(s);
    case HANDSHAKE_FAILED:
        if (s->handshake.why[0])
            quote_refusal(s);
        else
            quote_reply(s, reply->bytes);
        break;
    }
    return fault;
}

void shake_explain_close(struct server *s)
{
    if (s->known || s->listens || !reader_idle(s->conn.reader) ||
        !handshake_unanswered(&s->handshake))
        return;
    text_addf(&s->why,
        " before it answered CLIENT or INFO (%sa proxy for commands with keys "
        "only is not supported)",
        s->to.tls ? "" : "a TLS port? write rediss://; ");
}
