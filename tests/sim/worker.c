/* SPDX-License-Identifier: MIT */
/*
 * A model of src/api/operation.c around the real machines. Keeps: a lease's
 * deadline is set only from a machine's YES and cleared before a release is
 * sent; every ask is carried out before the verdict is read; an operation
 * ends exactly once.
 */
#include <string.h>

#include "base/guard.h"
#include "core/lease.h"
#include "sim/client.h"
#include "sim/world.h"

#define AGAIN_FIRST (5 * MS)
#define AGAIN_MOST (100 * MS)
#define RETRY_FIRST (10 * MS)
#define BUDGET_LEAST (50 * MS)
#define BUDGET_MOST (500 * MS)

static const char *const verdicts[] = {
    [VERDICT_OPEN] = "open",
    [VERDICT_YES] = "yes",
    [VERDICT_NO] = "no",
    [VERDICT_LATE] = "late",
    [VERDICT_UNKNOWN] = "unknown",
    [VERDICT_FAULT] = "fault",
    [VERDICT_CANCELLED] = "cancelled",
};

/* ---------------------------------------------- the three machines as one */

static bool next_ask(struct worker *k, struct ask *ask)
{
    if (k->operation == ACQUIRING)
        return acquire_next(&k->machine.acquire, ask);
    if (k->operation == FENCING)
        return fence_next(&k->raise, ask);
    return round_next(&k->machine.round, ask);
}

static enum verdict verdict_of(const struct worker *k)
{
    if (k->operation == ACQUIRING)
        return acquire_verdict(&k->machine.acquire);
    if (k->operation == FENCING)
        return fence_verdict(&k->raise);
    return round_verdict(&k->machine.round);
}

static uint64_t wake_of(const struct worker *k)
{
    if (k->operation == ACQUIRING)
        return acquire_wake(&k->machine.acquire);
    if (k->operation == FENCING)
        return fence_wake(&k->raise);
    return round_wake(&k->machine.round);
}

static void withdrawn(struct worker *k, unsigned server)
{
    if (k->operation == ACQUIRING)
        acquire_withdrawn(&k->machine.acquire, server);
    else if (k->operation != FENCING) /* which undoes nothing */
        round_withdrawn(&k->machine.round, server);
}

static void tick(struct worker *k, uint64_t now)
{
    if (k->operation == ACQUIRING)
        acquire_tick(&k->machine.acquire, now);
    else if (k->operation == FENCING)
        fence_tick(&k->raise, now);
    else
        round_tick(&k->machine.round, now);
}

static void cancel(struct worker *k)
{
    if (k->operation == ACQUIRING)
        acquire_cancel(&k->machine.acquire);
    else if (k->operation == FENCING)
        fence_cancel(&k->raise);
    else
        round_cancel(&k->machine.round);
}

/* -------------------------------------------------------------- completing */

static enum result result_of(const struct worker *k, enum verdict verdict)
{
    static const enum result results[] = {
        [VERDICT_YES] = RESULT_OK,
        [VERDICT_NO] = RESULT_LOST,
        [VERDICT_LATE] = RESULT_LOST,
        [VERDICT_UNKNOWN] = RESULT_UNKNOWN,
        [VERDICT_FAULT] = RESULT_FAULT,
        [VERDICT_CANCELLED] = RESULT_CANCELLED,
    };
    if (verdict == VERDICT_NO && k->operation == ACQUIRING)
        return RESULT_NO;
    return results[verdict];
}

/* What the result means for the lease. */
static void settle_lease(struct world *w, struct worker *k)
{
    if (k->operation == EXTENDING) {
        if (k->result == RESULT_LOST ||
            (w->now >= k->deadline && guarded(GUARD_LAPSED))) {
            k->result = RESULT_LOST;
            k->deadline = 0;
            keep_end(w, k);
        } else if (k->result == RESULT_OK) {
            k->deadline = later(k->deadline, k->machine.round.deadline);
            if (k->keep.on)
                holding_moved(&k->keep.holding, k->deadline, w->now);
        }
    } else if (k->result == RESULT_OK && k->operation == ACQUIRING) {
        k->deadline = k->machine.acquire.deadline;
    } else if (k->result == RESULT_OK && k->operation == ADOPTING) {
        bool stays = true;
        for (unsigned i = 0; i < w->options.servers; i++)
            stays &= link_forgive(&k->process->link[i], k->token);
        if (stays && k->machine.round.deadline > w->now)
            k->deadline = k->machine.round.deadline;
        else
            k->result = RESULT_LOST;
    }
}

static void run(struct world *w, struct worker *k);

/* The acquire has been granted; its fence has to be made to count. */
static void begin_fence(struct world *w, struct worker *k)
{
    const struct acquire_terms *of = &k->machine.acquire.terms;
    struct fence_terms terms = {.servers = w->options.servers,
        .end = earlier(earlier(k->deadline, of->end),
            deadline_after(w->now, of->budget_ns))};
    memcpy(terms.number, k->number, sizeof terms.number);
    k->operation = FENCING;
    fence_start(&k->raise, &terms);
    k->fence = k->raise.number;
    run(w, k);
}

static bool wants_fence(const struct world *w, const struct worker *k)
{
    return w->setting.fences && k->operation == ACQUIRING &&
           k->result == RESULT_OK;
}

/* Without its second half the first one must not stay, and it goes on. */
static void undo_fence(struct world *w, struct worker *k, enum verdict verdict)
{
    note(w, "c%llu.%llu undoes t%llu, for its fence is", verdicts[verdict],
        k->process->index, k->index, k->token);
    k->operation = ACQUIRING;
    k->fence = 0;
    worker_let_go(w, k);
    acquire_again(&k->machine.acquire, &k->raise, w->now);
}

static void complete(struct world *w, struct worker *k, enum verdict verdict)
{
    note(w, "c%llu.%llu op %llu of n%llu t%llu ends:", verdicts[verdict],
        k->process->index, k->index, k->operation, k->name, k->token);
    k->result = result_of(k, verdict);
    alarm_set(w, &k->timer, NEVER);
    settle_lease(w, k);
    if (k->operation == ACQUIRING && k->result == RESULT_OK)
        checker_won(w, k);
    if (wants_fence(w, k)) {
        begin_fence(w, k);
        return;
    }
    if (k->operation == FENCING)
        k->operation = ACQUIRING;
    life_completed(w, k);
}

/* ------------------------------------------------------------------ asking */

static void send_verb(struct world *w, struct worker *k, unsigned server)
{
    static const enum message_kind kinds[] = {
        [ACQUIRING] = MESSAGE_ACQUIRE,
        [FENCING] = MESSAGE_RAISE,
        [EXTENDING] = MESSAGE_EXTEND,
        [RELEASING] = MESSAGE_RELEASE,
        [ADOPTING] = MESSAGE_LOOK,
    };
    struct request *r = &k->request[server];
    r->message = (struct message){.kind = kinds[k->operation],
        .name = k->name,
        .token = k->token,
        .ttl_ms =
            k->operation == RELEASING ? w->setting.max_ttl_ms : k->ttl_ms};
    if (k->operation == EXTENDING)
        r->message.ttl_ms = k->machine.round.terms.ttl_ms;
    if (k->operation == ACQUIRING) {
        k->number[server] = 0;
        r->message.want_left = acquire_wants_left(&k->machine.acquire);
    } else if (k->operation == FENCING) {
        r->message.number = k->raise.number;
    }
    request_submit(w, r);
}

/* Carries out what the machine asks for until it asks no more. */
static void run(struct world *w, struct worker *k)
{
    struct ask ask;
    while (next_ask(k, &ask)) {
        struct request *r = &k->request[ask.server];
        switch (ask.kind) {
        case ASK_TOKEN:
            k->token = checker_token(w, k);
            break;
        case ASK_SEND:
            send_verb(w, k, ask.server);
            break;
        case ASK_UNDO:
            if (request_abandon(w, r, true))
                withdrawn(k, ask.server);
            break;
        case ASK_LEAVE:
            request_abandon(w, r, false);
            break;
        }
    }
    enum verdict verdict = verdict_of(k);
    if (k->operation == FENCING && verdict != VERDICT_OPEN &&
        verdict != VERDICT_YES) {
        undo_fence(w, k, verdict);
        verdict = verdict_of(k);
    }
    if (verdict == VERDICT_OPEN)
        alarm_set(w, &k->timer, wake_of(k));
    else
        complete(w, k, verdict);
}

void worker_outcome(struct world *w, struct request *r, const struct outcome *o)
{
    struct worker *k = r->worker;
    r->unsure = o->kind == OUTCOME_FAULT && o->unsure;
    if (r->renewal) {
        keep_outcome(w, r, o);
        return;
    }
    if (k->life_state != LIFE_BUSY)
        return; /* that operation is over */
    struct outcome outcome = *o;
    outcome.sent_at = r->sent_at;
    if (outcome.kind == OUTCOME_GRANTED)
        k->number[r->server] = r->message.number;
    if (k->operation == ACQUIRING)
        acquire_outcome(&k->machine.acquire, r->server, &outcome, w->now);
    else if (k->operation == FENCING)
        fence_outcome(
            &k->raise, r->server, &outcome, r->message.number);
    else
        round_outcome(&k->machine.round, r->server, &outcome, w->now);
    run(w, k);
}

static void timer_rings(struct world *w, struct alarm *alarm)
{
    struct worker *k = list_entry(alarm, struct worker, timer);
    if (w->now < k->process->paused_until) {
        alarm_set(w, alarm, k->process->paused_until);
        return;
    }
    tick(k, w->now);
    run(w, k);
    process_turn(w, k->process);
}

void worker_cancel(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu is cancelled", NULL, k->process->index, k->index);
    cancel(k);
    run(w, k);
}

/* ---------------------------------------------------------------- starting */

uint64_t worker_budget(const struct world *w, uint32_t ttl_ms)
{
    uint64_t usable =
        ms_to_ns(ttl_ms) - lease_drift_ns(ttl_ms, w->setting.drift_ppm);
    uint64_t timeout = w->setting.timeout_ns;
    if (w->options.servers == 1)
        return earlier(timeout, usable);
    uint64_t share = ms_to_ns(ttl_ms) / 20;
    share = earlier(later(share, BUDGET_LEAST), BUDGET_MOST);
    return earlier(earlier(share, usable / 2), timeout);
}

void worker_acquire(
    struct world *w, struct worker *k, unsigned name, uint64_t wait_ns)
{
    struct acquire *a = &k->machine.acquire;
    k->name = name;
    k->operation = ACQUIRING;
    k->began = w->now;
    k->fence = 0;
    memset(k->number, 0, sizeof k->number);
    struct acquire_terms terms = {
        .servers = w->options.servers,
        .ttl_ms = k->ttl_ms,
        .drift_ppm = w->setting.drift_ppm,
        .budget_ns = worker_budget(w, k->ttl_ms),
        .wait_until = deadline_after(w->now, wait_ns),
        .end = deadline_after(w->now, later(wait_ns, w->setting.timeout_ns)),
    };
    note(w, "c%llu.%llu acquires n%llu, ttl %llu", NULL, k->process->index,
        k->index, name, k->ttl_ms);
    backoff_init(&a->backoff, RETRY_FIRST, RETRY_MOST, roll(w, NEVER));
    acquire_start(a, &terms, w->now);
    run(w, k);
}

static void start_round(struct world *w, struct worker *k,
    enum operation operation, enum round_kind kind, uint64_t end)
{
    struct round *r = &k->machine.round;
    struct round_terms terms = {
        .kind = kind,
        .servers = w->options.servers,
        .ttl_ms = k->ttl_ms,
        .drift_ppm = w->setting.drift_ppm,
        .end = end,
    };
    /* The last one asks for less than may be left, which changes nothing. */
    if (operation == EXTENDING && k->extends_left == 0)
        terms.ttl_ms /= 2;
    k->operation = operation;
    note(w, "c%llu.%llu begins op %llu of n%llu t%llu", NULL, k->process->index,
        k->index, operation, k->name, k->token);
    backoff_init(&r->backoff, AGAIN_FIRST, AGAIN_MOST, roll(w, NEVER));
    round_start(r, &terms, w->now);
    run(w, k);
}

void worker_extend(struct world *w, struct worker *k)
{
    uint64_t end = w->now + w->setting.timeout_ns;
    if (guarded(GUARD_LAPSED))
        end = earlier(end, k->deadline);
    start_round(w, k, EXTENDING, ROUND_EXTEND, end);
}

void worker_release(struct world *w, struct worker *k)
{
    keep_end(w, k);
    k->deadline = 0;
    start_round(w, k, RELEASING, ROUND_RELEASE, w->now + w->setting.timeout_ns);
}

void worker_adopt(
    struct world *w, struct worker *k, unsigned name, uint64_t token)
{
    k->name = name;
    k->token = token;
    k->began = w->now;
    k->fence = 0; /* its owner had one */
    start_round(w, k, ADOPTING, ROUND_ADOPT, w->now + w->setting.timeout_ns);
}

void worker_let_go(struct world *w, struct worker *k)
{
    struct message release = {.kind = MESSAGE_RELEASE,
        .name = k->name,
        .token = k->token,
        .ttl_ms = w->setting.max_ttl_ms};
    k->deadline = 0;
    for (unsigned i = 0; i < w->options.servers; i++)
        debt_incur(w, &k->process->link[i], &release, false);
}

void worker_start(
    struct world *w, struct worker *k, struct process *p, unsigned index)
{
    *k = (struct worker){.process = p, .index = index};
    for (unsigned i = 0; i < w->options.servers; i++)
        k->request[i] = (struct request){.worker = k, .server = i};
    alarm_init(w, &k->timer, timer_rings);
    keep_start(w, k);
    life_start(w, k);
}

void worker_end(struct world *w, struct worker *k)
{
    alarm_end(w, &k->timer);
    alarm_end(w, &k->life);
    alarm_end(w, &k->keep.alarm);
}
