/* SPDX-License-Identifier: MIT */
/*
 * The handshake on a server's connection. Invariant: a connection with a brief
 * handshake is used for locks only after the peer was found to be a proxy that
 * needs it. On an ordinary server such a lock might turn out to be impossible
 * to release.
 */
#include "net/shake.h"

#include "net/quote.h"
#include "net/subscription.h"
#include "wire/classify.h"

/* After this many full handshakes in a row were closed without an answer, the
 * next one is brief. */
#define HUNG_UP_FEW 2

static enum fault handshake_done(struct server *s)
{
    if (s->who.needs_info && s->handshake.facts.loading) {
        /* While the server loads, INFO does not show its final persistence
         * settings. */
        text_set(&s->why, "LOADING the server is reading its data in");
        return FAULT_RETRY;
    }
    if (!s->who.brief)
        s->met_proxy = s->no_proxy = false;
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

/* Sends what the handshake asks after its other replies. */
static enum fault ask_more(struct server *s)
{
    size_t before = buf_len(&s->conn.out);
    if (s->handshake.facts.cluster && sent_early(s)) {
        /* Their answers would come before that about its slots. The next
         * connection sends nothing early. */
        text_set(&s->why, "it has become a node of a Redis Cluster");
        return FAULT_CLUSTER;
    }
    if (!slots_reserve(&s->conn.slots, 1) ||
        !handshake_ask(&s->handshake, &s->conn.out)) {
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
    case HANDSHAKE_ASK:
        return ask_more(s);
    case HANDSHAKE_DONE:
        return handshake_done(s);
    case HANDSHAKE_FULL:
        text_set(&s->why, "the peer answers CLIENT ID but closes the "
                          "connection on INFO and SCRIPT LOAD");
        return FAULT_UNREACHABLE;
    case HANDSHAKE_FAILED:
        if (s->handshake.why[0])
            quote_refusal(s);
        else
            quote_reply(s, reply->bytes, reply->cut);
        break;
    }
    return fault;
}

/* Counts how often the peer has hung up in a row. Returns -1 if the way in
 * which this handshake ended is no reason to reconnect at once. */
static int count_hang_ups(struct server *s)
{
    const struct handshake *h = &s->handshake;
    if (h->probe == PROBE_ANSWERED) {
        /* Only once: a peer that answers the probe but closes every full
         * handshake would make us reconnect without end. */
        bool first = !s->no_proxy;
        s->no_proxy = true;
        return first ? 0 : -1;
    }
    if (!reader_idle(s->conn.reader))
        return -1;
    if (h->probe == PROBE_SENT) {
        s->met_proxy = true;
        return HUNG_UP_FEW;
    }
    /* With several servers INFO is needed, so a brief handshake would not
     * do. */
    bool early = !s->who.brief && !s->who.needs_info && handshake_unanswered(h);
    return early ? s->hung_up + 1 : -1;
}

bool shake_again(struct server *s, enum fault fault)
{
    if (subscription_is(s)) /* brief in any case, which says nothing */
        return false;
    int count = fault == FAULT_UNREACHABLE && s->state == SERVER_SHAKING
                    ? count_hang_ups(s)
                    : -1;
    s->hung_up = (unsigned char)(count > 0 ? count : 0);
    s->who.brief = s->hung_up == HUNG_UP_FEW;
    s->who.probe = s->who.brief && !s->met_proxy;
    return count >= 0;
}
