/* SPDX-License-Identifier: MIT */
/*
 * A model of src/api/hold.c around the real machine: renewals beside whatever
 * else a worker does with its lock. Keeps: they end before the lock is
 * released, left or handed on; a loss makes the worker stop believing at once.
 */
#include "base/deadline.h"
#include "base/guard.h"
#include "sim/client.h"
#include "sim/world.h"

#define AGAIN_FIRST (5 * MS)
#define AGAIN_MOST (100 * MS)

static void run(struct world *w, struct worker *k);

static void sleep_on(struct world *w, struct worker *k)
{
    struct keep *keep = &k->keep;
    uint64_t at = holding_wake(&keep->holding);
    if (keep->asking)
        at = earlier(at, round_wake(&keep->round));
    alarm_set(w, &keep->alarm, at);
}

void keep_begin(struct world *w, struct worker *k)
{
    struct holding_terms terms = {
        .ttl_ms = k->ttl_ms,
        .deadline = k->deadline,
        .ends = chance(w, 30) ? w->now + roll(w, 4 * ms_to_ns(k->ttl_ms))
                              : NEVER,
        .seed = roll(w, NEVER),
    };
    k->keep.on = true;
    holding_begin(&k->keep.holding, &terms, w->now);
    sleep_on(w, k);
}

void keep_end(struct world *w, struct worker *k)
{
    struct keep *keep = &k->keep;
    if (keep->asking) {
        round_cancel(&keep->round);
        run(w, k);
    }
    keep->on = keep->asking = false;
    alarm_set(w, &keep->alarm, NEVER);
}

static void lose(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu loses n%llu t%llu", NULL, k->process->index, k->index,
        k->name, k->token);
    checker_lost(w, k, k->keep.holding.deadline);
    k->deadline = 0;
    w->losses++;
    keep_end(w, k);
}

static void answered(struct world *w, struct worker *k, enum verdict verdict)
{
    struct keep *keep = &k->keep;
    keep->asking = false;
    if (!keep->on)
        return;
    bool lapsed = w->now >= k->deadline && guarded(GUARD_LAPSED);
    if (verdict == VERDICT_NO) {
        k->deadline = 0;
        lose(w, k);
        return;
    }
    if (lapsed) {
        keep->holding.asked_at = 0;
    } else if (verdict == VERDICT_YES) {
        k->deadline = later(k->deadline, keep->round.deadline);
        holding_prolonged(&keep->holding, k->deadline, w->now);
        checker_renewed(w, k);
        w->renewals++;
    } else {
        holding_failed(&keep->holding, w->now);
    }
    sleep_on(w, k);
}

static void run(struct world *w, struct worker *k)
{
    struct keep *keep = &k->keep;
    struct ask ask;
    while (round_next(&keep->round, &ask)) {
        struct request *r = &keep->request[ask.server];
        if (ask.kind == ASK_SEND) {
            r->message = (struct message){.kind = MESSAGE_EXTEND,
                .name = k->name,
                .token = k->token,
                .ttl_ms = keep->round.terms.ttl_ms};
            request_submit(w, r);
        } else {
            request_abandon(w, r, false);
        }
    }
    enum verdict verdict = round_verdict(&keep->round);
    if (verdict == VERDICT_OPEN)
        sleep_on(w, k);
    else
        answered(w, k, verdict);
}

static void ask(struct world *w, struct worker *k)
{
    struct keep *keep = &k->keep;
    struct round_terms terms = {
        .kind = ROUND_EXTEND,
        .servers = w->options.servers,
        .ttl_ms = holding_ttl_ms(&keep->holding, w->now),
        .drift_ppm = w->setting.drift_ppm,
        .end = holding_patience(
            &keep->holding, w->setting.timeout_ns, w->now),
    };
    holding_asked(&keep->holding, w->now);
    keep->asking = true;
    backoff_init(&keep->round.backoff, AGAIN_FIRST, AGAIN_MOST,
        roll(w, NEVER));
    round_start(&keep->round, &terms, w->now);
    run(w, k);
}

void keep_outcome(struct world *w, struct request *r, const struct outcome *o)
{
    struct worker *k = r->worker;
    if (!k->keep.asking)
        return;
    struct outcome outcome = *o;
    outcome.sent_at = r->sent_at;
    round_outcome(&k->keep.round, r->server, &outcome, w->now);
    run(w, k);
}

static void keep_rings(struct world *w, struct alarm *alarm)
{
    struct worker *k = list_entry(alarm, struct worker, keep.alarm);
    struct keep *keep = &k->keep;
    if (w->now < k->process->paused_until) {
        alarm_set(w, alarm, k->process->paused_until);
        return;
    }
    if (keep->asking) {
        round_tick(&keep->round, w->now);
        run(w, k);
    }
    if (keep->on)
        checker_lost(w, k, keep->holding.deadline);
    if (keep->on) {
        enum holding_due due = holding_due(&keep->holding, w->now);
        if (due == HOLDING_LOST)
            lose(w, k);
        else if (due == HOLDING_RENEW)
            ask(w, k);
        else
            sleep_on(w, k);
    }
    process_turn(w, k->process);
}

void keep_start(struct world *w, struct worker *k)
{
    alarm_init(w, &k->keep.alarm, keep_rings);
    for (unsigned i = 0; i < w->options.servers; i++)
        k->keep.request[i] =
            (struct request){.worker = k, .server = i, .renewal = true};
}
