/* SPDX-License-Identifier: MIT */
/*
 * The machines "acquire" and "round" of scenes (unit/scene.h): one vote of all
 * servers, with the calls and values of each.
 */
#ifndef NXLOCK_TESTS_SCENE_VOTES_H
#define NXLOCK_TESTS_SCENE_VOTES_H

#include "unit/scene_parts.h"

static struct acquire acq;
static struct round rnd;

/* Behind the ballots of a vote are another one's: whatever they say changes
 * nothing. */
static void fill_next_ballot(void)
{
    ballots[scene.with.servers] =
        (struct ballot){.part = PART_YES, .why = FAULT_DENIED, .is_void = true};
}

/* ------------------------------------------------------------------ acquire */

/* Its wait and end: 0 and 2000 ms if a scene does not say so. */
static void acq_start(void)
{
    struct acquire_terms terms = {.servers = scene.with.servers,
        .ballots = ballots,
        .ttl_ms = TTL_MS,
        .drift_ppm = 10000,
        .timeout_ns = 2 * NS_PER_S,
        .answer_timeout_ns = 100 * MS,
        .wait_until = deadline_after(T0, scene.with.wait),
        .end = deadline_after(T0, scene.with.end)};
    fill_next_ballot();
    acq = (struct acquire){0};
    backoff_init(&acq.backoff, 10 * MS, 80 * MS, SCENE_SEED);
    acquire_start(&acq, &terms, scene.now);
}

static bool acq_take(void)
{
    struct effect effect;
    if (!acquire_next(&acq, &effect))
        return false;
    add_effect(&effect);
    if (effect.kind == EFFECT_UNDO && scene.with.unsent & 1U << effect.server)
        acquire_withdrawn(&acq, effect.server);
    return true;
}

static void settle_verdict(enum verdict verdict)
{
    if (verdict != scene.said && verdict != VERDICT_OPEN)
        add("%s", verdict_word(verdict));
    scene.said = verdict;
}

static void acq_settle(void)
{
    settle_verdict(acquire_verdict(&acq));
}

/* withdrawn:2: nothing had left for that server. again:gone, again:unknown,
 * again:cancelled, or again:1: so many servers will never raise the counter:
 * the grant was undone for its fencing token. */
static bool acq_call(const char *word, const char *argument)
{
    struct fence f = {.decision = VERDICT_UNKNOWN, .fault = FAULT_TIMEOUT};
    if (is(word, "cancel")) {
        acquire_cancel(&acq);
    } else if (is(word, "withdrawn")) {
        acquire_withdrawn(&acq, number(argument));
    } else if (is(word, "again")) {
        f.permanent = (unsigned char)number(argument);
        if (f.permanent > 0)
            f.fault = FAULT_DENIED;
        if (is(argument, "gone"))
            f.decision = VERDICT_NO;
        if (is(argument, "cancelled"))
            f.decision = VERDICT_CANCELLED;
        acquire_again(&acq, &f, scene.now);
    } else {
        return false;
    }
    return true;
}

static bool acq_show(const char *word)
{
    uint64_t wake = acquire_wake(&acq);
    const struct value_word words[] = {
        {"deadline", &acq.deadline, 0},
        {"wake", &wake, 0},
        {"connect-by", &acq.connect_by, 0},
        {"left", NULL, acq.left_ms},
        {"want-left", NULL, acq.want_left},
        {"may-line-up", NULL, acq.may_line_up},
        {"earlier-token", NULL, acq.earlier_token_left},
    };
    return SHOW_OF(words, word) || show_fault(word, acq.fault);
}

static void acq_answer(
    enum life_track track, unsigned server, const struct outcome *outcome)
{
    (void)track;
    acquire_outcome(&acq, server, outcome, scene.now);
}

static void acq_tick(void)
{
    acquire_tick(&acq, scene.now);
}

static uint64_t acq_wake(enum life_track track)
{
    (void)track;
    return acquire_wake(&acq);
}

static const struct scene_machine acquire_machine = {.name = "acquire",
    .end = 2 * NS_PER_S,
    .start = acq_start,
    .take = acq_take,
    .settle = acq_settle,
    .call = acq_call,
    .show = acq_show,
    .answer = acq_answer,
    .tick = acq_tick,
    .wake = acq_wake};

/* -------------------------------------------------------------------- round */

/* Ends at 2000 ms; option "kind". */
static void rnd_start(void)
{
    struct round_terms terms = {.kind = scene.with.kind,
        .servers = scene.with.servers,
        .ballots = ballots,
        .ttl_ms = TTL_MS,
        .drift_ppm = 10000,
        .end = deadline_after(T0, scene.with.end)};
    fill_next_ballot();
    rnd = (struct round){0};
    backoff_init(&rnd.backoff, 10 * MS, 80 * MS, SCENE_SEED);
    round_start(&rnd, &terms, scene.now);
}

static bool rnd_take(void)
{
    struct effect effect;
    if (!round_next(&rnd, &effect))
        return false;
    add_effect(&effect);
    if (effect.kind != EFFECT_SEND && scene.with.unsent & 1U << effect.server)
        round_withdrawn(&rnd, effect.server);
    return true;
}

static void rnd_settle(void)
{
    settle_verdict(round_verdict(&rnd));
}

static bool rnd_call(const char *word, const char *argument)
{
    if (is(word, "cancel"))
        round_cancel(&rnd);
    else if (is(word, "withdrawn"))
        round_withdrawn(&rnd, number(argument));
    else
        return false;
    return true;
}

static bool rnd_show(const char *word)
{
    uint64_t wake = round_wake(&rnd);
    const struct value_word words[] = {
        {"deadline", &rnd.deadline, 0}, {"wake", &wake, 0}};
    return SHOW_OF(words, word) || show_fault(word, rnd.fault);
}

static void rnd_answer(
    enum life_track track, unsigned server, const struct outcome *outcome)
{
    (void)track;
    round_outcome(&rnd, server, outcome, scene.now);
}

static void rnd_tick(void)
{
    round_tick(&rnd, scene.now);
}

static uint64_t rnd_wake(enum life_track track)
{
    (void)track;
    return round_wake(&rnd);
}

static const struct scene_machine round_machine = {.name = "round",
    .end = 2 * NS_PER_S,
    .start = rnd_start,
    .take = rnd_take,
    .settle = rnd_settle,
    .call = rnd_call,
    .show = rnd_show,
    .answer = rnd_answer,
    .tick = rnd_tick,
    .wake = rnd_wake};

#endif
