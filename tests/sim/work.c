/* SPDX-License-Identifier: MIT */
/*
 * What a program does that has work which must be done once: begins, does it
 * now, late, or never, and tells, or does not; it repeats what got no answer.
 * Whoever finds it in doubt asks a provider that knows what was done.
 *
 * Invariant: nobody says what is not true. That nothing happened is said only
 * of an attempt that has not acted, and cannot act any more.
 */
#include "sim/client.h"
#include "sim/world.h"

#define TRIES 4 /* to tell */

static void wait_for(struct world *w, struct worker *k)
{
    k->state = PROGRAM_WAITS;
    k->holding = false;
    program_sleeps(w, k, NEVER);
}

static void go_on_in(struct world *w, struct worker *k, uint64_t ns)
{
    k->state = PROGRAM_HOLDS;
    program_sleeps(w, k, w->now + 1 + roll(w, ns));
}

static uint64_t ttl_ns(const struct worker *k)
{
    return ms_to_ns(k->life.terms.ttl_ms);
}

/* -------------------------------------------------------------------- begin
 */

void work_begins(struct world *w, struct worker *k)
{
    static const uint64_t waits[] = {0, 50 * MS, 500 * MS, 3000 * MS};
    unsigned name = (unsigned)roll(w, w->setting.names);
    uint32_t most_ms = w->setting.max_ttl_ms;
    struct wish wish = program_wish(w, k, name, w->setting.min_ttl_ms);
    handle_wish(w, k, &wish);
    k->work = (struct work){
        .fingerprint = chance(w, 5) ? 2 : 1,
        .keep_ms = (uint32_t)roll_from(w, most_ms, 4 * (uint64_t)most_ms),
    };
    wait_for(w, k);
    if (chance(w, 10))
        handle_look(w, k);
    else
        handle_begin(w, k, waits[roll(w, 4)]);
}

static void told_begun(struct world *w, struct worker *k)
{
    struct work *work = &k->work;
    work->attempt = k->token;
    work->acted = work->told = work->never = work->resolves = false;
    work->tries = TRIES;
    k->holding = true;
    ledger_handed(w, k);
    checker_handed_begin(w, k);
    checker_recorded(w, k);
    go_on_in(w, k, chance(w, 80) ? ttl_ns(k) / 2 : 3 * ttl_ns(k));
}

/* --------------------------------------------------------------------- tell
 */

static void give_up(struct world *w, struct worker *k)
{
    checker_left(w, k->token);
    program_rests(w, k);
}

static void tell(struct world *w, struct worker *k, enum once_state verdict)
{
    k->work.verdict = verdict;
    k->work.never |= verdict == ONCE_FAILED;
    k->work.result = verdict == ONCE_DONE ? 1 + roll(w, NEVER - 1) : 0;
    bool holds = k->holding && verdict == ONCE_CLEAR;
    wait_for(w, k);
    k->holding = holds;
    if (!handle_tell(w, k)) /* CLEAR: the lease is over */
        go_on_in(w, k, ttl_ns(k));
}

/* It says nothing, and lets the lock go, or keeps it as long as it lasts. */
static void part(struct world *w, struct worker *k)
{
    k->work.attempt = 0;
    if (k->work.told) {
        give_up(w, k);
    } else if (chance(w, 40)) {
        program_frees(w, k);
    } else if (chance(w, 60)) {
        program_releases(w, k);
    } else {
        handle_leak(w, k);
        program_rests(w, k);
    }
}

static void act(struct world *w, struct worker *k)
{
    ledger_acts(w, k);
    k->work.acted = true;
}

/* A work that was in doubt when this attempt began: a provider is asked. */
static bool checks(struct world *w, struct worker *k)
{
    const struct work *work = &k->work;
    bool asks = w->setting.work[k->name] == WORK_CHECKS || chance(w, 30);
    if (work->seen.doubts == 0 || work->told || work->acted || !asks)
        return false;
    if (ledger_nothing_done(w, k->name, k->token) && chance(w, 90)) {
        tell(w, k, ONCE_CLEAR);
        return true;
    }
    if (w->setting.work[k->name] == WORK_RETRIES)
        return false;
    tell(w, k, ONCE_DOUBT);
    return true;
}

void work_goes_on(struct world *w, struct worker *k)
{
    struct work *work = &k->work;
    if (checks(w, k))
        return;
    bool checked =
        w->setting.work[k->name] != WORK_CHECKS || work->seen.doubts == 0;
    if (!work->acted && !work->never && checked &&
        chance(w, work->told ? 20 : 70)) {
        act(w, k);
        if (chance(w, 50)) { /* and tells later */
            go_on_in(w, k, ttl_ns(k));
            return;
        }
    }
    uint64_t percent = roll(w, 100);
    if (percent < 12 || (work->told && percent < 20))
        part(w, k);
    else if (work->acted)
        tell(w, k, percent < 90 ? ONCE_DONE : ONCE_DOUBT);
    else
        tell(w, k, percent < 75 ? ONCE_FAILED : ONCE_DOUBT);
}

static void told_verdict(
    struct world *w, struct worker *k, enum life_result result)
{
    struct work *work = &k->work;
    bool clear = work->verdict == ONCE_CLEAR;
    if (result == LIFE_OK)
        checker_recorded(w, k);
    work->told |= !clear;
    if (clear && result == LIFE_OK) {
        work->seen.doubts = 0;
        go_on_in(w, k, ttl_ns(k) / 2);
    } else if (clear) { /* it cannot know, and lets it be */
        tell(w, k, ONCE_DOUBT);
    } else if (result == LIFE_OK && work->verdict == ONCE_DOUBT) {
        go_on_in(w, k, 2 * ttl_ns(k));
    } else if (result == LIFE_OK || result == LIFE_LOST) {
        program_rests(w, k);
    } else if (work->tries-- > 0) {
        k->state = PROGRAM_HOLDS;
        go_on_in(w, k, 500 * MS);
    } else {
        give_up(w, k);
    }
}

/* ------------------------------------------------- what others have left
 */

/* Somebody looks what came of the attempt in doubt. Sometimes he is careless:
 * what he removes may begin again. */
static void resolve(struct world *w, struct worker *k)
{
    uint64_t token = k->work.seen.token;
    bool acted = ledger_acted(w, token), may_act = ledger_may_act(w, token);
    if (chance(w, 5) || (chance(w, 20) && !may_act && !acted)) {
        wait_for(w, k);
        handle_forget(w, k);
    } else if ((acted || !may_act) && chance(w, 50)) {
        k->work.resolves = true;
        k->work.fingerprint = k->work.seen.fingerprint;
        tell(w, k, acted ? ONCE_DONE : ONCE_FAILED);
    } else {
        program_rests(w, k);
    }
}

void work_told(struct world *w, struct worker *k, enum life_result result)
{
    bool begins = k->life.call == CALL_BEGIN;
    bool done = result == LIFE_DONE || result == LIFE_MISMATCH;
    if (begins && result == LIFE_OK) {
        told_begun(w, k);
    } else if (k->life.call == CALL_TELL && !k->work.resolves) {
        told_verdict(w, k, result);
    } else if (k->life.call != CALL_TELL && result == LIFE_DOUBT) {
        resolve(w, k);
    } else if (k->life.call != CALL_TELL && done && chance(w, 5)) {
        wait_for(w, k);
        handle_forget(w, k);
    } else {
        program_rests(w, k);
    }
}
