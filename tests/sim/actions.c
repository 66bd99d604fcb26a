/* SPDX-License-Identifier: MIT */
/*
 * Carries out what a worker's lock handle wants done: makes requests of its
 * verbs, and takes them back.
 *
 * Invariant: nothing is decided here.
 */
#include "sim/client.h"
#include "sim/world.h"

/* A compare-and-delete of its token that nobody waits for. */
static struct message deletion(const struct world *w, const struct worker *k)
{
    return (struct message){
        .kind = k->life.clean_begun ? MESSAGE_BEGIN : MESSAGE_RELEASE,
        .name = k->name,
        .token = k->token,
        .ttl_ms = w->setting.max_ttl_ms,
        .not_after = k->life.clean_until,
        .promised = checker_promised(w, k),
        .plain = k->old};
}

static enum message_kind kind_of(const struct world *w, const struct worker *k,
    enum life_track track, enum verb_kind verb)
{
    switch (verb) {
    case VERB_ACQUIRE:
        return share_of(w, k->token).weight ? MESSAGE_TAKE : MESSAGE_ACQUIRE;
    case VERB_EXTEND:
        return MESSAGE_EXTEND;
    case VERB_RELEASE:
        return MESSAGE_RELEASE;
    case VERB_CAP_TTL:
        return MESSAGE_CAP;
    case VERB_RAISE:
        return MESSAGE_RAISE;
    case VERB_JOIN:
        return MESSAGE_JOIN;
    case VERB_STAY:
        return MESSAGE_STAY;
    case VERB_BEGIN:
        return MESSAGE_BEGIN;
    case VERB_READ_RECORD:
        return MESSAGE_LOOK_ONCE;
    case VERB_TELL:
        return MESSAGE_TELL;
    case VERB_FORGET:
        return MESSAGE_FORGET;
    default:
        return track == TRACK_CALL && k->life.call == CALL_ADOPT
                   ? MESSAGE_LOOK
                   : MESSAGE_INSPECT;
    }
}

/* What it says of a record. */
static void complete(const struct world *w, const struct worker *k,
    const struct verb *verb, struct message *m)
{
    const struct work *work = &k->work;
    m->once = (struct once_part){
        .retries =
            w->setting.work[k->name] != WORK_HALTS && verb->kind == VERB_BEGIN,
        .fingerprint = work->fingerprint,
        .verdict = work->verdict,
        .result = work->result,
        .keep_ms = work->keep_ms,
        .record = work->seen,
    };
    if (verb->kind == VERB_TELL && work->resolves)
        m->token = work->seen.token;
    else if (verb->kind == VERB_TELL && work->verdict == ONCE_FAILED)
        m->once.before = work->before;
}

/* The token stays in line as it joined. */
static void take_place(
    struct worker *k, const struct verb *verb, struct message *m)
{
    const struct process *p = k->process;
    if (verb->kind == VERB_JOIN)
        k->channel = p->subscription.messages.state == MESSAGES_NONE
                         ? CHANNEL_NONE
                         : subscription_channel(p);
    m->channel = k->channel;
    m->window = verb->window;
    m->test = k->channel != CHANNEL_NONE && subscription_untested(p);
}

static void send_verb(
    struct world *w, struct worker *k, const struct action *action)
{
    struct request *r = &k->request[action->track][action->server];
    struct verb verb = action->verb;
    r->message = (struct message){
        .kind = kind_of(w, k, action->track, verb.kind),
        .name = k->name,
        .token = k->token,
        .ttl_ms = verb.ttl_ms,
        .not_after = verb.not_after,
        .want_left = verb.want_left,
        .asks_kind = verb.asks_kind,
        .may_wait = verb.may_wait,
        .earlier_token_possible = verb.earlier_token_possible,
        .number = verb.fence,
        .plain = k->old,
        .followed = verb.has_waiters_behind,
    };
    if (verb.asks_kind)
        r->message.hold_back_ms = verb.hold_back_ms;
    else
        r->message.gap_ms = verb.gap_ms;
    r->message.held = verb.may_hold_token;
    if (verb.kind == VERB_JOIN || verb.kind == VERB_STAY)
        take_place(k, &verb, &r->message);
    if (verb.kind == VERB_JOIN || verb.kind == VERB_STAY)
        checker_line_asks(w, k);
    if (verb.kind == VERB_JOIN)
        checker_joins(w, k);
    if (verb.kind == VERB_RELEASE || verb.kind == VERB_CAP_TTL)
        r->message.promised = checker_promised(w, k);
    if (verb.kind == VERB_TELL && !k->work.resolves)
        r->message.promised = checker_promised(w, k);
    if (verb.kind == VERB_BEGIN || verb.kind == VERB_READ_RECORD ||
        verb.kind == VERB_TELL || verb.kind == VERB_FORGET)
        complete(w, k, &verb, &r->message);
    if (verb.kind == VERB_CAP_TTL)
        checker_left(w, k->token); /* the minimum hold */
    if (call_traits[k->life.call].acquires && action->track == TRACK_CALL)
        checker_asks(w, k);
    request_submit(w, r);
}

static void take_token(struct world *w, struct worker *k)
{
    if (k->group && !group_has_token(k)) {
        life_no_token(&k->life);
        return;
    }
    k->own_token = true;
    checker_begins(w, k); /* what the last call left has been cleaned up */
    if (k->life.call == CALL_ADOPT) {
        k->token = k->adopts;
        return;
    }
    k->token = checker_token(w, k);
}

void handle_carry_out(
    struct world *w, struct worker *k, const struct action *action)
{
    struct request *r = &k->request[action->track][action->server];
    struct link *link = &k->process->link[action->server];
    struct message release;
    switch (action->kind) {
    case ACTION_TOKEN:
        take_token(w, k);
        break;
    case ACTION_SEND:
        send_verb(w, k, action);
        break;
    case ACTION_SKIP:
        break;
    case ACTION_UNDO:
    case ACTION_ABANDON:
        if (request_abandon(w, r, action->kind == ACTION_UNDO))
            life_withdrawn(&k->life, action);
        break;
    case ACTION_CLEAN:
        release = deletion(w, k);
        link_clean_up(w, link, &release);
        k->cleaned++;
        break;
    case ACTION_CLAIM:
        if (!link_can_adopt(link, k->token))
            life_not_claimed(&k->life);
        break;
    case ACTION_ADOPT:
        link_adopt(
            link, k->token, k->life.vote.ballots[action->server].until != 0);
        break;
    case ACTION_LINE:
        if (!k->waits_in_line)
            break; /* it polls */
        subscription_want(w, k->process);
        life_line_up(
            &k->life, &k->line, &k->process->subscription.messages, w->now);
        break;
    }
}
