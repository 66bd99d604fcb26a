/* SPDX-License-Identifier: MIT */
/*
 * What a program does with its lock: waits, holds, extends, releases, breaks,
 * frees, lets it expire, hands its token on, and comes back to its handle
 * after that or after a loss. What it was told counts only from when it is
 * told, which may be long after the machine made up its mind.
 */
#include "sim/client.h"
#include "sim/world.h"

static void sleep_until(struct world *w, struct worker *k, uint64_t at)
{
    alarm_set(w, &k->next, at);
}

void program_sleeps(struct world *w, struct worker *k, uint64_t at)
{
    sleep_until(w, k, at);
}

bool program_holds(const struct world *w, const struct worker *k)
{
    return k->holding && lease_held(&k->life.lease, w->now);
}

static void rest(struct world *w, struct worker *k)
{
    k->state = PROGRAM_IDLE;
    k->holding = false;
    k->work.attempt = 0;
    if (!w->stopping)
        sleep_until(w, k, w->now + 1 + roll(w, w->setting.think_ns));
}

void program_rests(struct world *w, struct worker *k)
{
    rest(w, k);
}

static void hold_on(struct world *w, struct worker *k)
{
    k->state = PROGRAM_HOLDS;
    uint64_t ttl = ms_to_ns(k->life.terms.ttl_ms);
    /* Where a crowd waits, nobody holds a lock for long. */
    bool crowded = w->setting.crowd || w->setting.readers;
    uint64_t usual = crowded ? earlier(ttl, 60 * MS) : ttl;
    uint64_t pause = k->extends_left > 0 ? usual / 3 : roll(w, usual / 2);
    if (chance(w, 3))
        pause += ttl; /* it oversleeps */
    if (k->life.terms.renewed)
        pause += roll(w, 4 * usual);
    sleep_until(w, k, w->now + 1 + pause);
}

static void free_handle(struct world *w, struct worker *k)
{
    k->holding = false;
    handle_free(w, k);
    rest(w, k);
}

void program_frees(struct world *w, struct worker *k)
{
    free_handle(w, k);
}

/* ------------------------------------------------------- told of a result */

static void told_acquired(struct world *w, struct worker *k)
{
    bool heir = k->life.call == CALL_ADOPT;
    k->holding = true;
    k->extends_left = chance(w, heir ? 70 : 30) ? (unsigned)roll(w, 4) : 0;
    checker_granted(w, k);
    if (w->faults.allowed & 1u << TROUBLE_PAUSE && chance(w, 2))
        k->process->paused_until =
            w->now + roll(w, 2 * ms_to_ns(k->life.terms.ttl_ms));
    hold_on(w, k);
}

static void told_extended(
    struct world *w, struct worker *k, enum life_result result)
{
    if (result == LIFE_OK)
        checker_granted(w, k);
    if (result == LIFE_LOST)
        k->extends_left = 0; /* it is released all the same */
    hold_on(w, k);
}

static void told(struct world *w, struct worker *k)
{
    enum life_result result = handle_result(w, k);
    switch (k->life.call) {
    case CALL_EXTEND:
        told_extended(w, k, result);
        return;
    case CALL_BREAK: /* the lease is over, but not the handle */
        free_handle(w, k);
        return;
    case CALL_RELEASE:
        k->released = result == LIFE_OK && !k->life.min_hold ? k->token : 0;
        break;
    case CALL_BEGIN:
    case CALL_READ_RECORD:
    case CALL_TELL:
    case CALL_FORGET:
        work_told(w, k, result);
        return;
    case CALL_ADOPT:
    case CALL_ACQUIRE:
    case CALL_INSPECT:
    default:
        break;
    }
    bool granted =
        (k->life.call == CALL_ACQUIRE || k->life.call == CALL_ADOPT) &&
        result == LIFE_OK;
    if (granted)
        told_acquired(w, k);
    else
        rest(w, k);
}

void program_completed(struct world *w, struct worker *k)
{
    if (k->group) {
        group_completed(w, k);
        return;
    }
    k->state = PROGRAM_HANDED;
    if (w->options.setting)
        return;
    uint64_t at = w->now;
    if (w->faults.allowed & 1u << TROUBLE_PAUSE && chance(w, 3))
        at += roll(w, 2 * ms_to_ns(w->setting.max_ttl_ms));
    sleep_until(w, k, at);
}

/* ------------------------------------------------------------------ acting */

static struct share drawn_share(struct world *w)
{
    const struct setting *s = &w->setting;
    uint64_t percent = roll(w, 100);
    uint32_t permits = s->limit[roll(w, 2)];
    if (percent < s->exclusive)
        return (struct share){0, 0};
    if (percent < s->exclusive + s->sharing)
        return (struct share){1, 0};
    uint32_t weight = chance(w, 60) ? 1 : (uint32_t)roll_from(w, 1, permits);
    return (struct share){weight, permits};
}

/* With readers, the first worker of some processes. */
static bool wants_it_alone(const struct world *w, const struct worker *k)
{
    return k->index == 0 && k->process->index < w->setting.writers;
}

/* A ttl of least_ms or more, and now and then a limit of some kind. */
static struct wish drawn_wish(
    struct world *w, const struct worker *k, unsigned name, uint32_t least_ms)
{
    uint32_t most_ms = w->setting.max_ttl_ms;
    struct wish wish = {.name = name,
        .ttl_ms = (uint32_t)roll_from(w, least_ms, most_ms),
        .max_hold_ns = NEVER,
        .renewed = chance(w, 30) && !w->stopping};
    if (chance(w, wish.renewed ? 30 : 5))
        wish.max_hold_ns = 1 + roll(w, 4 * ms_to_ns(wish.ttl_ms));
    if (chance(w, 5))
        wish.min_hold_ms = (uint32_t)roll_from(w, 1, most_ms);
    if (w->setting.readers)
        wish.share.weight = !wants_it_alone(w, k);
    else if (w->setting.permits)
        wish.share = drawn_share(w);
    return wish;
}

struct wish program_wish(
    struct world *w, const struct worker *k, unsigned name, uint32_t least_ms)
{
    return drawn_wish(w, k, name, least_ms);
}

/* Acquires name with a ttl and a patience that are drawn. */
static void acquire_drawn(struct world *w, struct worker *k, unsigned name)
{
    static const uint64_t waits[] = {0, 50 * MS, 500 * MS, 3000 * MS, NEVER};
    static const uint64_t in_a_crowd[] = {
        500 * MS, 5000 * MS, 30000 * MS, 30000 * MS, NEVER};
    bool crowded = w->setting.crowd || w->setting.readers;
    uint64_t patience = (crowded ? 60000 : 5000) * MS;
    uint64_t wait = (crowded ? in_a_crowd : waits)[roll(w, 5)];
    struct wish wish = drawn_wish(w, k, name, w->setting.min_ttl_ms);
    k->state = PROGRAM_WAITS;
    k->holding = false;
    if (wait == NEVER) /* somebody gives up in the end */
        sleep_until(w, k, w->now + roll(w, patience));
    else
        sleep_until(w, k, NEVER);
    handle_wish(w, k, &wish);
    handle_acquire(w, k, wait);
}

static void adopt(
    struct world *w, struct worker *k, const struct wish *wish, uint64_t token)
{
    k->state = PROGRAM_WAITS;
    k->holding = false;
    sleep_until(w, k, NEVER);
    handle_wish(w, k, wish);
    handle_adopt(w, k, token);
}

static void inspect(struct world *w, struct worker *k)
{
    k->state = PROGRAM_WAITS;
    handle_inspect(w, k);
}

static void begin_drawn(struct world *w, struct worker *k)
{
    if (w->setting.once && chance(w, 95)) {
        work_begins(w, k);
        return;
    }
    if (k->released != 0 && chance(w, 30)) { /* it should find it gone */
        struct wish wish = drawn_wish(w, k, k->name, w->setting.min_ttl_ms);
        adopt(w, k, &wish, k->released);
    } else if (chance(w, 3)) {
        inspect(w, k);
    } else {
        acquire_drawn(w, k, (unsigned)roll(w, w->setting.names));
    }
}

static void begin(struct world *w, struct worker *k)
{
    uint64_t id = EVENT_BEGIN(
        k->process->index, k->index, w->begins[k->process->index][k->index]++);
    if (!event_happens(w, id)) {
        rest(w, k);
        return;
    }
    begin_drawn(w, k);
    event_over(w);
}

/* One that is idle (so it is another than who asks); NULL: none was found. */
static struct worker *some_heir(struct world *w)
{
    for (unsigned tries = 0; tries < 4; tries++) {
        struct process *p = &w->process[roll(w, w->setting.processes)];
        struct worker *heir = &p->worker[roll(w, w->setting.workers)];
        if (p->alive && !heir->group && heir->state == PROGRAM_IDLE &&
            w->now >= p->paused_until)
            return heir;
    }
    return NULL;
}

/* Another worker, perhaps in another process, is to go on with the lock. This
 * one does not forget it: it may renew and extend it until its own deadline,
 * and comes back to its handle before or after that. */
static bool hand_token(struct world *w, struct worker *k)
{
    struct worker *heir = some_heir(w);
    if (!heir)
        return false;
    struct process *p = heir->process;
    note(w, "c%llu.%llu hands t%llu to c%llu.%llu", NULL, k->process->index,
        k->index, k->token, p->index, heir->index);
    checker_handed(w, k->token, heir);
    if (chance(w, 30)) {
        k->extends_left = 1 + (unsigned)roll(w, 2);
        hold_on(w, k);
    } else {
        uint64_t left = k->life.lease.promised - w->now;
        uint64_t ttl = ms_to_ns(k->life.terms.ttl_ms);
        k->state = PROGRAM_HOLDS;
        sleep_until(w, k,
            w->now + 1 + (chance(w, 40) ? roll(w, left) : left + roll(w, ttl)));
    }
    struct wish wish = drawn_wish(w, heir, k->name, k->life.terms.ttl_ms);
    adopt(w, heir, &wish, k->token);
    process_turn(w, p);
    return true;
}

static void want_back(struct world *w, struct worker *k)
{
    struct wish wish = drawn_wish(w, k, k->name, w->setting.min_ttl_ms);
    note(w, "c%llu.%llu wants t%llu back", NULL, k->process->index, k->index,
        k->token);
    adopt(w, k, &wish, k->token);
}

static void release(struct world *w, struct worker *k, bool by_break)
{
    k->holding = false;
    k->state = PROGRAM_WAITS;
    if (!(by_break ? handle_break(w, k) : handle_release(w, k)))
        rest(w, k);
}

void program_releases(struct world *w, struct worker *k)
{
    release(w, k, false);
}

/* It is done with its lock; what it still believes of it may be true or not.
 */
static void end_hold(struct world *w, struct worker *k)
{
    uint64_t percent = roll(w, 100);
    bool again = !program_holds(w, k) && !w->stopping;
    if (percent < 3) {
        handle_leak(w, k);
        rest(w, k);
    } else if (percent < 20) {
        free_handle(w, k);
    } else if (percent < 35 && again) {
        acquire_drawn(w, k, k->name);
    } else if (percent < 45 && again) {
        want_back(w, k);
    } else {
        release(w, k, percent < 48);
    }
}

/* Asks for half of it in the end: less than may be left, which changes
 * nothing. Where programs wait in line sometimes for more, which no command
 * that is late may undo. */
static bool extend(struct world *w, struct worker *k)
{
    uint32_t ttl_ms = k->life.terms.ttl_ms;
    if (w->setting.in_line && chance(w, 30))
        ttl_ms = (uint32_t)roll_from(w, ttl_ms, w->setting.max_ttl_ms);
    if (k->extends_left == 0 || w->stopping)
        return false;
    k->extends_left--;
    k->state = PROGRAM_WAITS;
    if (handle_extend(w, k, k->extends_left ? ttl_ms : ttl_ms / 2))
        return true;
    k->state = PROGRAM_HOLDS;
    return false;
}

static void go_on(struct world *w, struct worker *k)
{
    if (extend(w, k))
        return;
    if (program_holds(w, k) && chance(w, 20) && !w->stopping &&
        hand_token(w, k))
        return;
    end_hold(w, k);
}

void program_lost(struct world *w, struct worker *k)
{
    if (k->group) {
        group_lost(w, k);
        return;
    }
    if (!w->options.setting && k->state == PROGRAM_HOLDS && chance(w, 30))
        sleep_until(
            w, k, w->now + roll(w, ms_to_ns(k->life.terms.ttl_ms) / 10));
}

/* The caller gives up, or the handle is freed with the call that runs. */
void program_cancel(struct world *w, struct worker *k)
{
    if (k->group)
        group_cancel(w, k);
    else if (chance(w, 20))
        free_handle(w, k);
    else
        handle_cancel(w, k);
}

static void next_rings(struct world *w, struct alarm *alarm)
{
    struct worker *k = list_entry(alarm, struct worker, next);
    if (w->now < k->process->paused_until) {
        sleep_until(w, k, k->process->paused_until);
        return;
    }
    switch (k->state) {
    case PROGRAM_IDLE:
        if (!w->stopping)
            begin(w, k);
        break;
    case PROGRAM_WAITS:
        handle_cancel(w, k);
        break;
    case PROGRAM_HANDED:
        if (chance(w, 1))
            free_handle(w, k); /* its event is never taken */
        else
            told(w, k);
        break;
    case PROGRAM_HOLDS:
        if (k->work.attempt)
            work_goes_on(w, k);
        else
            go_on(w, k);
        break;
    }
    process_turn(w, k->process);
}

void program_start(struct world *w, struct worker *k)
{
    alarm_init(w, &k->next, next_rings);
    if (!w->options.setting && !k->group)
        sleep_until(w, k, w->now + 1 + roll(w, w->setting.think_ns));
}

void program_end(struct world *w, struct worker *k)
{
    alarm_end(w, &k->next);
}
