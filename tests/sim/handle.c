/* SPDX-License-Identifier: MIT */
/*
 * A worker's lock handle: drives the core's machine for the life of a lock.
 * What comes back and the time go in, its actions are carried out (actions.c),
 * its events go to the program and to the checker. Tokens are numbers.
 *
 * Invariant: nothing is decided here.
 */
#include <string.h>

#include "sim/client.h"
#include "sim/world.h"

#define RETRY_FIRST (10 * MS)

static const char *const calls[] = {
    [CALL_NONE] = "nothing",
    [CALL_ACQUIRE] = "acquire",
    [CALL_EXTEND] = "extend",
    [CALL_RELEASE] = "release",
    [CALL_ADOPT] = "adopt",
    [CALL_INSPECT] = "inspect",
    [CALL_BREAK] = "break",
    [CALL_BEGIN] = "begin",
    [CALL_READ_RECORD] = "look at the record",
    [CALL_TELL] = "tell",
    [CALL_FORGET] = "forget",
};

static const char *const results[] = {
    [LIFE_OK] = "ok",
    [LIFE_BUSY] = "busy",
    [LIFE_FREE] = "free",
    [LIFE_DONE] = "done",
    [LIFE_DOUBT] = "doubt",
    [LIFE_MISMATCH] = "mismatch",
    [LIFE_LOST] = "lost",
    [LIFE_UNKNOWN] = "unknown",
    [LIFE_FAULT] = "fault",
    [LIFE_CANCELLED] = "cancelled",
};

static const char *const losses[] = {
    [LOSS_NO_ANSWER] = "unheard",
    [LOSS_MAX_HOLD] = "maximum hold",
    [LOSS_STOPPED] = "stopped",
    [LOSS_TOKEN_GONE] = "refuted",
};

/* ------------------------------------------------------------------ events */

static void call_over(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu op %llu of n%llu t%llu ends:", results[k->life.result],
        k->process->index, k->index, k->life.call, k->name, k->token);
    checker_ended(w, k);
    if (k->life.call == CALL_ADOPT && k->life.result != LIFE_OK)
        checker_left(w, k->token);
    program_completed(w, k);
}

static void lost(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu loses n%llu t%llu:", losses[k->renewal.loss],
        k->process->index, k->index, k->name, k->token);
    checker_lost(w, k);
    w->sum.losses++;
    program_lost(w, k);
}

static void tell(struct world *w, struct worker *k, enum life_event event)
{
    switch (event) {
    case LIFE_CALL_OVER:
        call_over(w, k);
        break;
    case LIFE_RENEWED:
        checker_renewed(w, k);
        w->sum.renewals++;
        break;
    case LIFE_LEASE_LOST:
        lost(w, k);
        break;
    case LIFE_RENEWAL_FAILED:
    case LIFE_NOTHING:
        break;
    }
}

/* -------------------------------------------------------------------- turns */

static void look_at_links(struct world *w, struct process *p)
{
    for (unsigned i = 0; i < w->options.servers; i++) {
        const struct link *l = &p->link[i];
        p->peer[i].link = l->state == LINK_UP     ? PEER_UP
                          : l->state == LINK_DOWN ? PEER_DOWN
                                                  : PEER_CONNECTING;
        p->peer[i].since = l->since;
    }
}

static void turn(struct world *w, struct worker *k)
{
    struct life *l = &k->life;
    struct action action;
    enum life_event event;
    look_at_links(w, k->process);
    while (life_next(l, &action, w->now))
        handle_carry_out(w, k, &action);
    while ((event = life_event(l)) != LIFE_NOTHING)
        tell(w, k, event);
    alarm_set(w, &k->timer, earlier(l->wake, renewal_wake(l->renewal)));
}

void handle_outcome(struct world *w, struct request *r, const struct outcome *o)
{
    struct outcome outcome = *o;
    outcome.sent_at = r->sent_at;
    outcome.fence = r->message.number;
    r->unsure = outcome_wrote(o) || (o->kind == OUTCOME_FAULT && o->unsure);
    if (r->message.kind >= MESSAGE_BEGIN && r->message.kind < MESSAGE_FORGET &&
        o->kind != OUTCOME_FAULT)
        r->worker->work.seen = r->message.once.record;
    if (r->message.kind == MESSAGE_BEGIN && o->kind == OUTCOME_GRANTED)
        r->worker->work.before = r->message.once.before;
    if (o->kind == OUTCOME_BUSY && r->track == TRACK_CALL) {
        r->message.outcome = outcome;
        checker_busy_heard(w, r->worker, r->server, &r->message);
    }
    if (r->message.kind == MESSAGE_JOIN || r->message.kind == MESSAGE_STAY)
        checker_line_heard(w, r->worker, &outcome);
    life_outcome(&r->worker->life, r->track, r->server, &outcome, w->now);
    turn(w, r->worker);
    if (r->message.test && o->kind == OUTCOME_BUSY)
        subscription_tested(w, r->worker->process, o->no_listener);
}

static bool is_in_line(const struct worker *k)
{
    return k->life.running && life_in_line(&k->life);
}

void handle_told(struct world *w, struct worker *k)
{
    const struct link *l = &k->process->link[0];
    const struct request *r = &k->request[TRACK_CALL][0];
    checker_line_told(w, k);
    bool counts = weigh_message(&l->eligibility,
        line_last_sent_at(&k->line, r->sent_at), l->alive_at, w->now);
    if (is_in_line(k) && counts)
        line_on_granted(&k->line, l->state == LINK_UP ? l->number : 0, w->now);
    else if (is_in_line(k))
        line_on_unknown(&k->line, w->now);
    turn(w, k);
}

void handle_hinted(struct world *w, struct worker *k)
{
    checker_line_told(w, k);
    if (is_in_line(k))
        line_on_first(&k->line, w->now);
    turn(w, k);
}

void handle_told_to_ask(struct world *w, struct worker *k)
{
    checker_line_told(w, k);
    if (is_in_line(k))
        line_on_unknown(&k->line, w->now);
    turn(w, k);
}

void handle_messages_changed(struct world *w, struct worker *k)
{
    checker_line_told(w, k);
    if (is_in_line(k))
        line_messages_changed(&k->line, w->now);
    turn(w, k);
}

static void timer_rings(struct world *w, struct alarm *alarm)
{
    struct worker *k = list_entry(alarm, struct worker, timer);
    if (w->now < k->process->paused_until) {
        alarm_set(w, alarm, k->process->paused_until);
        return;
    }
    if (renewal_on(k->life.renewal))
        checker_lost(w, k);
    life_tick(&k->life, w->now);
    turn(w, k);
    process_turn(w, k->process);
}

/* ------------------------------------------------------------------- calls */

static struct life_terms terms_of(const struct world *w, const struct worker *k)
{
    const struct setting *s = &w->setting;
    return (struct life_terms){
        .servers = w->options.servers,
        .peers = k->process->peer,
        .max_ttl_ms = s->max_ttl_ms,
        .drift_ppm = s->drift_ppm,
        .max_hold_ns = NEVER,
        .timeout_ns = s->timeout_ns,
        .retry_first_ns = RETRY_FIRST,
        .retry_max_ns = RETRY_MAX,
        .fenced = s->fences,
    };
}

/* Another handle, which has no token yet. */
static void renew_handle(struct world *w, struct worker *k)
{
    struct life_terms terms = terms_of(w, k);
    k->life = (struct life){0};
    memset(k->ballots, 0, sizeof(k->ballots));
    k->renewal = (struct renewal){0};
    k->line = (struct line){0};
    k->own_token = false;
    life_init(&k->life, &terms, k->ballots, &k->renewal);
}

void handle_wish(struct world *w, struct worker *k, const struct wish *wish)
{
    bool idle = lease_state(&k->life.lease, w->now) == LEASE_NONE;
    if (wish->name != k->name || (w->setting.permits && idle)) {
        renew_handle(w, k);
        k->share = wish->share; /* an option of the handle */
    }
    struct life_terms terms = k->life.terms;
    k->name = wish->name;
    terms.ttl_ms = wish->ttl_ms;
    terms.copies_ns = link_wait_ms(w, wish->ttl_ms) * MS;
    terms.min_hold_ms = wish->min_hold_ms;
    terms.max_hold_ns = wish->max_hold_ns;
    terms.renewed = wish->renewed;
    life_set_terms(&k->life, &terms);
}

static void note_call(struct world *w, const struct worker *k)
{
    note(w, "c%llu.%llu begins op %llu of n%llu t%llu:", calls[k->life.call],
        k->process->index, k->index, k->life.call, k->name, k->token);
}

/* What a handle that has ended, or begun anew, has not begun to delete stays
 * until its ttl. */
static void left_unless_cleaned(
    struct world *w, const struct worker *k, uint64_t token, uint64_t promised)
{
    if (k->cleaned > 0)
        return;
    note(w, "c%llu.%llu leaves t%llu to its ttl", NULL, k->process->index,
        k->index, token);
    checker_left(w, token);
    w->sum.expired += w->now >= promised;
}

static void acquire(struct world *w, struct worker *k, uint64_t wait_ns,
    uint64_t end,
    void (*begin)(struct life *, uint64_t, uint64_t, uint64_t, uint64_t))
{
    bool parts = lease_state(&k->life.lease, w->now) != LEASE_NONE;
    uint64_t token = k->token, promised = checker_promised(w, k);
    struct process *p = k->process;
    k->began = w->now;
    w->checker.busy[p->index][k->index] = (struct busy){0};
    w->checker.load[p->index][k->index] = (struct load){0};
    k->cleaned = 0;
    if (parts)
        checker_gives_up(w, k);
    note(w, "c%llu.%llu acquires n%llu, ttl %llu", NULL, k->process->index,
        k->index, k->name, k->life.terms.ttl_ms);
    look_at_links(w, k->process);
    begin(&k->life, wait_ns, end, roll(w, NEVER), w->now);
    if (k->line.has_waited) { /* the last one did, so it begins with that */
        subscription_want(w, p);
        life_line_up(&k->life, &k->line, &p->subscription.messages, w->now);
    }
    turn(w, k);
    if (parts)
        left_unless_cleaned(w, k, token, promised);
}

void handle_acquire(struct world *w, struct worker *k, uint64_t wait_ns)
{
    acquire(w, k, wait_ns, NEVER, life_acquire_by);
}

void handle_acquire_by(
    struct world *w, struct worker *k, uint64_t wait_ns, uint64_t end)
{
    acquire(w, k, wait_ns, end, life_acquire_by);
}

static void begin_work(struct life *life, uint64_t wait_ns, uint64_t end,
    uint64_t seed, uint64_t now)
{
    (void)end;
    life_begin(life, wait_ns, seed, now);
}

void handle_begin(struct world *w, struct worker *k, uint64_t wait_ns)
{
    acquire(w, k, wait_ns, NEVER, begin_work);
}

void handle_all_granted(struct world *w, struct worker *k, bool renewed)
{
    life_all_granted(&k->life, renewed, NEVER, w->now);
    turn(w, k);
}

void handle_give_back(struct world *w, struct worker *k)
{
    uint64_t token = k->token, promised = checker_promised(w, k);
    note(w, "c%llu.%llu gives t%llu back", NULL, k->process->index, k->index,
        token);
    k->cleaned = 0;
    checker_gives_up(w, k);
    life_end_removing_key(&k->life, w->now);
    turn(w, k);
    left_unless_cleaned(w, k, token, promised);
}

void handle_adopt(struct world *w, struct worker *k, uint64_t token)
{
    bool own = k->own_token && k->token == token;
    k->began = w->now;
    k->adopts = token;
    if (own)
        checker_begins(w, k);
    else
        checker_gives_up(w, k);
    life_adopt(&k->life, own, roll(w, NEVER), w->now);
    note_call(w, k);
    turn(w, k);
}

bool handle_extend(struct world *w, struct worker *k, uint32_t ttl_ms)
{
    if (!life_extend(&k->life, ttl_ms, roll(w, NEVER), w->now))
        return false;
    note_call(w, k);
    turn(w, k);
    return true;
}

bool handle_release(struct world *w, struct worker *k)
{
    uint64_t promised = checker_promised(w, k);
    k->cleaned = 0;
    checker_releases(w, k, lease_held(&k->life.lease, w->now));
    if (!life_release(&k->life, roll(w, NEVER), w->now)) {
        left_unless_cleaned(w, k, k->token, promised);
        turn(w, k);
        return false;
    }
    checker_gives_up(w, k);
    note_call(w, k);
    turn(w, k);
    return true;
}

bool handle_break(struct world *w, struct worker *k)
{
    uint64_t promised = checker_promised(w, k);
    k->cleaned = 0;
    if (!life_break(&k->life, true, roll(w, NEVER), w->now)) {
        left_unless_cleaned(w, k, k->token, promised);
        turn(w, k);
        return false;
    }
    checker_gives_up(w, k);
    note_call(w, k);
    turn(w, k);
    return true;
}

bool handle_tell(struct world *w, struct worker *k)
{
    const struct work *work = &k->work;
    if (!life_tell(
            &k->life, work->verdict, !work->resolves, roll(w, NEVER), w->now))
        return false;
    note_call(w, k);
    turn(w, k);
    return true;
}

static void query(struct world *w, struct worker *k, enum life_call call)
{
    life_query(&k->life, call, roll(w, NEVER), w->now);
    note_call(w, k);
    turn(w, k);
}

void handle_inspect(struct world *w, struct worker *k)
{
    query(w, k, CALL_INSPECT);
}

void handle_look(struct world *w, struct worker *k)
{
    query(w, k, CALL_READ_RECORD);
}

void handle_forget(struct world *w, struct worker *k)
{
    query(w, k, CALL_FORGET);
}

void handle_cancel(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu is cancelled", NULL, k->process->index, k->index);
    life_cancel(&k->life);
    turn(w, k);
}

void handle_free(struct world *w, struct worker *k)
{
    uint64_t token = k->token, promised = checker_promised(w, k);
    if (k->life.call == CALL_TELL) /* what came of it may be unknown */
        checker_left(w, token);
    note(w, "c%llu.%llu frees its handle of t%llu", NULL, k->process->index,
        k->index, k->token);
    k->cleaned = 0;
    life_discard(&k->life);
    turn(w, k);
    bool parts = lease_state(&k->life.lease, w->now) != LEASE_NONE;
    if (parts)
        checker_gives_up(w, k);
    life_end_lease(&k->life, w->now);
    turn(w, k);
    if (parts)
        left_unless_cleaned(w, k, token, promised);
    renew_handle(w, k);
}

void handle_hurry(struct world *w, struct worker *k)
{
    renewal_hurry(k->life.renewal, w->now);
    turn(w, k);
}

void handle_renew_no_more(struct world *w, struct worker *k)
{
    k->life.terms.renewed = false;
    renewal_stop(k->life.renewal);
    turn(w, k);
}

void handle_leak(struct world *w, struct worker *k)
{
    note(w, "c%llu.%llu forgets t%llu", NULL, k->process->index, k->index,
        k->token);
    checker_left(w, k->token);
    handle_renew_no_more(w, k);
    renew_handle(w, k);
}

enum life_result handle_result(struct world *w, struct worker *k)
{
    if (life_grant_expired(&k->life, w->now)) {
        note(w, "c%llu.%llu was told too late", NULL, k->process->index,
            k->index);
        if (!k->life.unseen) /* else it is taken back */
            checker_left(w, k->token);
        life_drop_expired(&k->life, w->now);
        turn(w, k);
    }
    if (k->life.call == CALL_BEGIN && k->life.result == LIFE_OK)
        life_seen(&k->life);
    return k->life.result;
}

/* ------------------------------------------------------ beginning and ending
 */

void handle_start(
    struct world *w, struct worker *k, struct process *p, unsigned index)
{
    *k = (struct worker){.process = p, .index = index};
    if (w->setting.in_line) {
        k->waits_in_line = chance(w, w->setting.in_line);
        k->old = !k->waits_in_line && chance(w, 50);
    }
    for (unsigned track = 0; track < TRACKS; track++)
        for (unsigned i = 0; i < w->options.servers; i++)
            k->request[track][i] = (struct request){
                .worker = k, .server = i, .track = (enum life_track)track};
    alarm_init(w, &k->timer, timer_rings);
    renew_handle(w, k);
}

void handle_end(struct world *w, struct worker *k)
{
    alarm_end(w, &k->timer);
}
