/* SPDX-License-Identifier: MIT */
/*
 * Makes the connection to a server, one after the other: its credentials
 * (login.h), its socket (dial.h), and the handshake on it (handshake.h).
 *
 * Invariants: the credentials and the socket share the time of one attempt.
 * Credentials come first, so that they are as fresh as possible and no server
 * waits for an AUTH. What a node of a Redis Cluster serves is known before a
 * lock command is sent to it.
 */
#include "net/connect.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "net/quote.h"

static enum dial_state on_dial(
    const struct server *s, enum dial_state state, enum fault *fault)
{
    *fault = s->dial.fault;
    return state;
}

/* Goes on when the credentials may have come. */
static enum dial_state on_login(struct server *s, enum login_state state,
    uint64_t now, struct transport *made, enum fault *fault)
{
    switch (state) {
    case LOGIN_READY:
        return on_dial(s,
            dial_start(&s->dial, &s->to, now, s->connect_end, made, &s->why),
            fault);
    case LOGIN_WAIT:
        return DIAL_WAIT;
    case LOGIN_FAILED:
        break;
    }
    *fault = s->login.fault;
    if (*fault == FAULT_DENIED) /* still those that were refused */
        quote_refusal(s);
    return DIAL_FAILED;
}

enum dial_state connect_start(
    struct server *s, uint64_t now, struct transport *made, enum fault *fault)
{
    return on_login(
        s, login_start(&s->login, s->secrets, now, &s->why), now, made, fault);
}

enum dial_state connect_step(
    struct server *s, uint64_t now, struct transport *made, enum fault *fault)
{
    if (!s->login.busy)
        return on_dial(
            s, dial_step(&s->dial, &s->to, now, made, &s->why), fault);
    if (now < s->connect_end)
        return on_login(s, login_step(&s->login, s->secrets, now, &s->why), now,
            made, fault);
    login_cancel(&s->login);
    text_set(&s->why, "the credentials callback has not returned within ");
    text_add_duration(&s->why, s->to.settings->timeout_ms, false);
    *fault = FAULT_CREDENTIALS;
    return DIAL_FAILED;
}

uint64_t connect_deadline(const struct server *s)
{
    return s->login.busy ? s->connect_end : dial_deadline(&s->dial);
}

void connect_cancel(struct server *s)
{
    login_cancel(&s->login);
    dial_cancel(&s->dial);
}

static enum fault handshake_done(struct server *s)
{
    if (s->handshake_terms.needs_info && s->handshake.facts.loading) {
        /* While the server loads, INFO does not show its final persistence
         * settings. */
        text_set(&s->why, "LOADING the server is reading its data in");
        return FAULT_RETRY;
    }
    if (!s->handshake.facts.answered_at)
        s->handshake.facts.answered_at = s->handshake.answered_at;
    s->state = SERVER_UP;
    s->trying = false;
    s->completed_handshake = true;
    s->facts = s->handshake.facts;
    s->logged_in = !s->facts.no_login;
    login_note_success(&s->login);
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

/* Asks what the answers so far have made a question. */
static enum fault ask_more(struct server *s)
{
    size_t before = buf_len(&s->conn.out);
    s->handshake.asked_at = s->heard_at;
    if (sent_early(s)) {
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
    slots_push(&s->conn.slots, SLOT_HANDSHAKE, NULL, s->heard_at,
        buf_len(&s->conn.out) - before);
    return FAULT_NONE;
}

enum fault connect_reply(struct server *s, const struct reply *reply)
{
    enum fault fault = FAULT_NONE;
    /* heard_at was read an unknown time before the reply came. */
    s->handshake.answered_at = later(s->heard_at, clock_now());
    switch (handshake_reply(&s->handshake, reply, &fault)) {
    case HANDSHAKE_WAIT:
        return FAULT_NONE;
    case HANDSHAKE_ASK:
        return ask_more(s);
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

void connect_explain_close(struct server *s)
{
    if (s->completed_handshake || s->listens || !reader_idle(s->conn.reader) ||
        !handshake_unanswered(&s->handshake))
        return;
    if (s->handshake_terms.sentinel) {
        text_add(&s->why, " before it answered INFO");
        if (!s->to.tls)
            text_add(&s->why, " (a TLS port? write rediss+sentinel://, or add "
                              "sentinel_tls=1 if the servers have no TLS)");
        return;
    }
    text_addf(&s->why,
        " before it answered CLIENT or INFO (%sa proxy for commands with keys "
        "only is not supported)",
        s->to.tls           ? ""
        : s->uses_sentinels ? "a TLS port? write rediss+sentinel://; "
                            : "a TLS port? write rediss://; ");
}
