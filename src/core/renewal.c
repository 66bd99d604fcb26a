/* SPDX-License-Identifier: MIT */
/* Renews a held lease: carries out the schedule in rounds of extends. */
#include "core/renewal.h"

#include "base/deadline.h"

/* A loss may be reported this much later, to find out who holds the name. */
#define INSPECT_MAX (250 * NS_PER_MS)

static void start_round(struct renewal *r, enum round_kind kind,
    uint32_t ttl_ms, uint64_t end, uint64_t now)
{
    struct round_terms terms = {
        .kind = kind,
        .servers = r->terms.servers,
        .ballots = r->terms.ballots,
        .ttl_ms = ttl_ms,
        .drift_ppm = r->terms.drift_ppm,
        .end = end,
    };
    backoff_init(
        &r->round.backoff, ROUND_AGAIN_FIRST, ROUND_AGAIN_MAX, r->seed ^ now);
    r->rounds++;
    round_start(&r->round, &terms, now);
}

void renewal_start(struct renewal *r, const struct renewal_terms *terms,
    const struct lease *lease, uint64_t seed, uint64_t now)
{
    struct schedule_terms schedule = {
        .ttl_ms = terms->ttl_ms,
        .deadline = lease->promised,
        .ends = lease->ends,
        .seed = seed,
        .copies_ns = terms->copies_ns,
    };
    r->terms = *terms;
    r->seed = seed;
    r->ticked = false;
    r->state = RENEWAL_WAITING;
    schedule_start(&r->schedule, &schedule, now);
}

void renewal_extended(
    struct renewal *r, const struct lease *lease, uint64_t now)
{
    if (renewal_on(r))
        schedule_extended(&r->schedule, lease->promised, now);
}

void renewal_limit(struct renewal *r, uint64_t ends)
{
    if (renewal_on(r))
        r->schedule.terms.ends = ends;
}

void renewal_hurry(struct renewal *r, uint64_t now)
{
    if (renewal_on(r))
        schedule_hurry(&r->schedule, now);
}

static void close_round(struct renewal *r, enum renewal_state next)
{
    if (renewal_busy(r)) {
        round_cancel(&r->round);
        r->state = RENEWAL_CLOSING;
        r->next = next;
    } else if (r->state == RENEWAL_CLOSING) {
        r->next = next;
    } else {
        r->state = next;
    }
}

void renewal_stop(struct renewal *r)
{
    if (r)
        close_round(r, RENEWAL_OFF);
}

static void on_token_gone(struct renewal *r, struct lease *lease, uint64_t now)
{
    uint64_t longest = earlier(INSPECT_MAX, r->terms.timeout_ns);
    lease_lose(lease, now);
    r->inspect_until =
        earlier(deadline_after(now, longest), schedule_lost_at(&r->schedule));
    r->inspect_verdict = VERDICT_OPEN;
    close_round(r, RENEWAL_INSPECTING);
    if (r->state == RENEWAL_INSPECTING) { /* there was no round to close */
        r->state = RENEWAL_CLOSING;
        r->next = RENEWAL_INSPECTING;
    }
}

void renewal_token_gone(struct renewal *r, struct lease *lease, uint64_t now)
{
    if (renewal_on(r))
        on_token_gone(r, lease, now);
}

bool renewal_next(struct renewal *r, struct effect *effect)
{
    return r && (renewal_busy(r) || r->state == RENEWAL_CLOSING) &&
           round_verdict(&r->round) == VERDICT_OPEN &&
           round_next(&r->round, effect);
}

void renewal_outcome(struct renewal *r, unsigned server,
    const struct outcome *outcome, uint64_t now)
{
    if (renewal_busy(r))
        round_outcome(&r->round, server, outcome, now);
}

void renewal_tick(struct renewal *r, uint64_t now)
{
    if (!r)
        return;
    if (renewal_busy(r))
        round_tick(&r->round, now);
    r->ticked = true;
}

static enum renewal_event lose(
    struct renewal *r, struct lease *lease, uint64_t now)
{
    const struct schedule *s = &r->schedule;
    uint64_t since = s->failing_since ? s->failing_since : s->begun_at;
    /* If this process was suspended during the extend, that is the cause of the
     * loss, not the missing answer. */
    bool unheard = s->failing_since || (s->begun_at && lease_held(lease, now));
    if (unheard)
        r->loss = LOSS_NO_ANSWER;
    else if (s->ends)
        r->loss = LOSS_MAX_HOLD;
    else
        r->loss = LOSS_STOPPED;
    r->unheard_ns = unheard ? elapsed(since, now) : 0;
    lease_lose(lease, now);
    renewal_stop(r);
    return RENEWAL_LOST;
}

static void ask(struct renewal *r, uint64_t now)
{
    uint64_t end = schedule_answer_by(&r->schedule, r->terms.timeout_ns, now);
    uint32_t ttl_ms = schedule_ttl_ms(&r->schedule, now);
    schedule_renewal_begun(&r->schedule, now);
    r->state = RENEWAL_EXTENDING;
    start_round(r, ROUND_EXTEND, ttl_ms, end, now);
}

static enum renewal_event answered(
    struct renewal *r, struct lease *lease, uint64_t now)
{
    enum verdict verdict = round_verdict(&r->round);
    r->state = RENEWAL_WAITING;
    if (verdict == VERDICT_NO && lease_held(lease, now)) {
        on_token_gone(r, lease, now);
        return RENEWAL_NOTHING;
    }
    if (!lease_extendable(lease, now)) {
        /* This process was suspended: the server is not to blame. */
        r->schedule.begun_at = 0;
        return RENEWAL_NOTHING;
    }
    if (verdict != VERDICT_YES) {
        schedule_failed(&r->schedule, now);
        return RENEWAL_FAILED;
    }
    lease_extend(lease, r->round.deadline);
    schedule_renewed(&r->schedule, lease->promised, now);
    return RENEWAL_RENEWED;
}

static enum renewal_event on_inspected(struct renewal *r)
{
    r->inspect_verdict = round_verdict(&r->round);
    r->loss = LOSS_TOKEN_GONE;
    r->state = RENEWAL_OFF;
    return RENEWAL_LOST;
}

/* All effects of the round that was closed have been taken. */
static enum renewal_event go_on(struct renewal *r, uint64_t now)
{
    r->state = r->next;
    if (r->next != RENEWAL_INSPECTING)
        return RENEWAL_NOTHING;
    if (now < r->inspect_until) {
        start_round(r, ROUND_INSPECT, r->terms.ttl_ms, r->inspect_until, now);
        return RENEWAL_NOTHING;
    }
    r->loss = LOSS_TOKEN_GONE; /* there is no time left to ask */
    r->state = RENEWAL_OFF;
    return RENEWAL_LOST;
}

enum renewal_event renewal_step(
    struct renewal *r, struct lease *lease, uint64_t now)
{
    bool over = round_verdict(&r->round) != VERDICT_OPEN;
    if (r->state == RENEWAL_CLOSING)
        return go_on(r, now);
    if (r->state == RENEWAL_INSPECTING)
        return over ? on_inspected(r) : RENEWAL_NOTHING;
    if (r->state == RENEWAL_EXTENDING && over)
        return answered(r, lease, now);
    if (!renewal_on(r) || !r->ticked)
        return RENEWAL_NOTHING;
    r->ticked = false;
    switch (schedule_due(&r->schedule, now)) {
    case SCHEDULE_LOST:
        return lose(r, lease, now);
    case SCHEDULE_RENEW:
        ask(r, now);
        break;
    case SCHEDULE_WAIT:
        break;
    }
    return RENEWAL_NOTHING;
}

uint64_t renewal_wake(const struct renewal *r)
{
    if (!r)
        return NEVER;
    switch (r->state) {
    case RENEWAL_OFF:
        return NEVER;
    case RENEWAL_WAITING:
        return schedule_wake(&r->schedule);
    case RENEWAL_EXTENDING:
        return earlier(schedule_wake(&r->schedule), round_wake(&r->round));
    case RENEWAL_INSPECTING:
        return round_wake(&r->round);
    case RENEWAL_CLOSING:
        break;
    }
    return 0; /* there is something to do at once */
}
