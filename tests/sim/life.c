/* SPDX-License-Identifier: MIT */
/*
 * What a worker does with its lock: waits, holds, extends, releases, lets it
 * run out, hands its token to another process. Keeps: what it was told counts
 * only from when it is told, by a fresh reading of the clock, as the library
 * does it; and that may be long after the machine made up its mind.
 */
#include "base/guard.h"
#include "sim/client.h"
#include "sim/world.h"

static void sleep_until(struct world *w, struct worker *k, uint64_t at)
{
    alarm_set(w, &k->life, at);
}

bool worker_held(const struct world *w, const struct worker *k)
{
    return k->holding && w->now < k->deadline;
}

static void rest(struct world *w, struct worker *k)
{
    keep_end(w, k);
    k->operation = DOING_NOTHING;
    k->life_state = LIFE_IDLE;
    k->holding = false;
    k->deadline = 0;
    if (!w->stopping)
        sleep_until(w, k, w->now + 1 + roll(w, w->setting.think_ns));
}

static void hold_on(struct world *w, struct worker *k)
{
    k->operation = DOING_NOTHING;
    k->life_state = LIFE_HOLDS;
    uint64_t ttl = ms_to_ns(k->ttl_ms);
    uint64_t pause = k->extends_left > 0 ? ttl / 3 : roll(w, ttl / 2);
    if (chance(w, 3))
        pause += ttl; /* it oversleeps */
    if (k->keep.on)
        pause += roll(w, 4 * ttl);
    sleep_until(w, k, w->now + 1 + pause);
}

/* ------------------------------------------------------- told of a result */

/* A grant that has gone stale on its way to the caller is given back. */
static bool stale(const struct world *w, const struct worker *k)
{
    return k->result == RESULT_OK && k->operation != RELEASING &&
           w->now >= k->deadline && guarded(GUARD_HAND_OVER);
}

static void told_acquired(struct world *w, struct worker *k)
{
    if (k->result != RESULT_OK) {
        rest(w, k);
        return;
    }
    k->holding = true;
    k->extends_left = chance(w, 30) ? (unsigned)roll(w, 4) : 0;
    checker_granted(w, k);
    if (!w->stopping && chance(w, 30))
        keep_begin(w, k);
    if (w->faults.allowed & 1u << TROUBLE_PAUSE && chance(w, 2))
        k->process->paused_until = w->now + roll(w, 2 * ms_to_ns(k->ttl_ms));
    hold_on(w, k);
}

static void told_extended(struct world *w, struct worker *k)
{
    if (k->result == RESULT_OK)
        checker_granted(w, k);
    if (k->result == RESULT_LOST)
        k->extends_left = 0; /* it is released all the same */
    hold_on(w, k);
}

static void told(struct world *w, struct worker *k)
{
    if (stale(w, k)) {
        note(w, "c%llu.%llu was told too late", NULL, k->process->index,
            k->index);
        k->result = RESULT_LOST;
        if (k->operation == ACQUIRING)
            worker_let_go(w, k);
        else
            checker_left(w, k->token);
        k->deadline = 0;
    }
    if (k->operation == EXTENDING) {
        told_extended(w, k);
    } else if (k->operation == RELEASING) {
        k->released = k->result == RESULT_OK ? k->token : 0;
        rest(w, k);
    } else {
        if (k->operation == ADOPTING && k->result != RESULT_OK)
            checker_left(w, k->token);
        told_acquired(w, k);
    }
}

void life_completed(struct world *w, struct worker *k)
{
    checker_ended(w, k);
    k->life_state = LIFE_HANDED;
    uint64_t at = w->now;
    if (w->faults.allowed & 1u << TROUBLE_PAUSE && chance(w, 3))
        at += roll(w, 2 * ms_to_ns(k->ttl_ms));
    sleep_until(w, k, at);
}

/* ------------------------------------------------------------------ acting */

static void begin_drawn(struct world *w, struct worker *k)
{
    static const uint64_t waits[] = {0, 50 * MS, 500 * MS, 3000 * MS, NEVER};
    uint64_t wait = waits[roll(w, 5)];
    k->life_state = LIFE_BUSY;
    if (k->released != 0 && chance(w, 15)) { /* it should find it gone */
        sleep_until(w, k, NEVER);
        worker_adopt(w, k, k->name, k->released);
        return;
    }
    k->ttl_ms =
        (uint32_t)roll_from(w, w->setting.min_ttl_ms, w->setting.max_ttl_ms);
    if (wait == NEVER) /* somebody gives up in the end */
        sleep_until(w, k, w->now + roll(w, 5000 * MS));
    worker_acquire(w, k, (unsigned)roll(w, w->setting.names), wait);
}

static void begin(struct world *w, struct worker *k)
{
    uint64_t id = EVENT_BEGIN(k->process->index, k->index,
        w->begins[k->process->index][k->index]++);
    if (!event_happens(w, id)) {
        rest(w, k);
        return;
    }
    begin_drawn(w, k);
    event_over(w);
}

/* Another process goes on with the lock, this one forgets it. */
static bool hand_token(struct world *w, struct worker *k)
{
    struct process *p = &w->process[roll(w, w->setting.processes)];
    struct worker *heir = &p->worker[roll(w, w->setting.workers)];
    if (p == k->process || !p->alive || heir->life_state != LIFE_IDLE ||
        w->now < p->paused_until)
        return false;
    keep_end(w, k);
    note(w, "c%llu.%llu hands t%llu to c%llu.%llu", NULL, k->process->index,
        k->index, k->token, p->index, heir->index);
    uint64_t token = k->token;
    checker_handed(w, token, heir);
    heir->ttl_ms = k->ttl_ms;
    heir->life_state = LIFE_BUSY;
    sleep_until(w, heir, NEVER);
    rest(w, k);
    worker_adopt(w, heir, k->name, token);
    process_turn(w, p);
    return true;
}

static void go_on(struct world *w, struct worker *k)
{
    k->life_state = LIFE_BUSY;
    if (w->stopping)
        k->extends_left = 0;
    if (k->extends_left > 0 && (worker_held(w, k) || !guarded(GUARD_LAPSED))) {
        k->extends_left--;
        worker_extend(w, k);
    } else if (worker_held(w, k) && chance(w, 8) && hand_token(w, k)) {
        return;
    } else if (chance(w, 3)) {
        note(w, "c%llu.%llu leaves t%llu to its ttl", NULL, k->process->index,
            k->index, k->token);
        checker_left(w, k->token);
        rest(w, k);
    } else {
        k->holding = false;
        worker_release(w, k);
    }
}

static void life_rings(struct world *w, struct alarm *alarm)
{
    struct worker *k = list_entry(alarm, struct worker, life);
    if (w->now < k->process->paused_until) {
        sleep_until(w, k, k->process->paused_until);
        return;
    }
    switch (k->life_state) {
    case LIFE_IDLE:
        if (!w->stopping)
            begin(w, k);
        break;
    case LIFE_BUSY:
        worker_cancel(w, k);
        break;
    case LIFE_HANDED:
        told(w, k);
        break;
    case LIFE_HOLDS:
        go_on(w, k);
        break;
    }
    process_turn(w, k->process);
}

void life_start(struct world *w, struct worker *k)
{
    alarm_init(w, &k->life, life_rings);
    sleep_until(w, k, w->now + 1 + roll(w, w->setting.think_ns));
}
