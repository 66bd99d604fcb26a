/* SPDX-License-Identifier: MIT */
/*
 * Makes the connection to a server: its credentials (login.h), then its socket
 * (dial.h), one after the other.
 *
 * Invariant: both share the time of one attempt. Credentials come first, so
 * that they are as fresh as possible and no server waits for an AUTH.
 */
#include "net/connect.h"

#include "base/deadline.h"
#include "net/quote.h"

static enum dial_state dialled(
    const struct server *s, enum dial_state state, enum fault *fault)
{
    *fault = s->dial.fault;
    return state;
}

/* Goes on when the credentials may have come. */
static enum dial_state logged_in(struct server *s, enum login_state state,
    uint64_t now, struct transport *made, enum fault *fault)
{
    switch (state) {
    case LOGIN_READY:
        return dialled(s,
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
    return logged_in(
        s, login_start(&s->login, s->secrets, now, &s->why), now, made, fault);
}

enum dial_state connect_step(
    struct server *s, uint64_t now, struct transport *made, enum fault *fault)
{
    if (!s->login.busy)
        return dialled(
            s, dial_step(&s->dial, &s->to, now, made, &s->why), fault);
    if (now < s->connect_end)
        return logged_in(s, login_step(&s->login, s->secrets, now, &s->why),
            now, made, fault);
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
