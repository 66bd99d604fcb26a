/* SPDX-License-Identifier: MIT */
/*
 * The machines that a scene can drive (unit/scene.h), with the calls and values
 * that each of them has.
 */
#ifndef NXLOCK_TESTS_SCENE_PARTS_H
#define NXLOCK_TESTS_SCENE_PARTS_H

#include "unit/scene.h"

#define TTL_MS 1000

static struct life life;
static struct line line;
static struct messages messages;
static struct renewal renewal;
static struct peer peers[MAX_SERVERS];
static struct ballot ballots[LIFE_BALLOTS * MAX_SERVERS];

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static unsigned number(const char *argument)
{
    return (unsigned)strtoul(argument, NULL, 10);
}

struct value_word {
    const char *word;
    const uint64_t *time;
    int64_t value; /* if it is no time */
};

static bool show_of(
    const struct value_word *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i].word) != 0)
            continue;
        if (words[i].time)
            add_time(word, *words[i].time);
        else
            add("%s=%lld", word, (long long)words[i].value);
        return true;
    }
    return false;
}

#define SHOW_OF(words, word)                                                   \
    show_of(words, sizeof(words) / sizeof(*(words)), word)

static bool show_fault(const char *word, enum fault fault)
{
    if (strcmp(word, "fault") != 0)
        return false;
    add("fault=%s", fault_name(fault));
    return true;
}

/* --------------------------------------------------------------------- life */

/* a ACQUIRE, e EXTEND, r RELEASE (o: of another holder's value), i INSPECT, c
 * CAP_TTL, f RAISE, j JOIN, s STAY, b BEGIN (B: the key may hold the token), l
 * READ_RECORD, t TELL (k: which keeps the key), F FORGET. Behind it: - it may
 * be late by now; +200 the gap in ms; > others are probably in line behind. */
static void add_verb(const struct action *action)
{
    static const char letters[] = {[VERB_ACQUIRE] = 'a',
        [VERB_EXTEND] = 'e',
        [VERB_RELEASE] = 'r',
        [VERB_INSPECT] = 'i',
        [VERB_CAP_TTL] = 'c',
        [VERB_RAISE] = 'f',
        [VERB_JOIN] = 'j',
        [VERB_STAY] = 's',
        [VERB_BEGIN] = 'b',
        [VERB_READ_RECORD] = 'l',
        [VERB_TELL] = 't',
        [VERB_FORGET] = 'F'};
    const struct verb *verb = &action->verb;
    bool tells = verb->kind == VERB_TELL;
    char word[8], suffix[32] = "";
    char letter = verb->of_other_holder ? 'o' : letters[verb->kind];
    if (verb->kind == VERB_BEGIN && verb->may_hold_token)
        letter = 'B';
    if (tells && verb->ttl_ms > 0)
        letter = 'k';
    if (verb->kind == VERB_JOIN || verb->kind == VERB_STAY) {
        assert_int_equal(verb->ttl_ms, 1100);
        assert_int_equal(verb->window, 11);
    } else {
        snprintf(suffix, sizeof(suffix), "%s",
            tells && verb_past_use(verb, scene.now) ? "-" : "");
        if (verb->gap_ms)
            snprintf(suffix, sizeof(suffix), "+%u", verb->gap_ms);
    }
    if (verb->kind == VERB_BEGIN)
        assert_int_equal(verb->ttl_ms, TTL_MS);
    assert_false(tells && verb_too_late(verb, scene.now));
    if (verb->kind == VERB_RAISE && verb->fence)
        snprintf(suffix, sizeof(suffix), "#%u", (unsigned)verb->fence);
    if (verb->has_waiters_behind)
        strcat(suffix, ">");
    snprintf(word, sizeof(word), "%sS%c",
        action->track == TRACK_RENEWAL ? "r" : "", letter);
    add_at(word, action->server, suffix);
    scene.draws[action->server] =
        verb->kind == VERB_ACQUIRE || verb->kind == VERB_BEGIN;
    scene.sent_at[action->track][action->server] = scene.now;
}

static bool life_take(void)
{
    static const char kinds[] = {[ACTION_SKIP] = 'K',
        [ACTION_UNDO] = 'U',
        [ACTION_ABANDON] = 'L',
        [ACTION_CLEAN] = 'C',
        [ACTION_CLAIM] = 'A',
        [ACTION_ADOPT] = 'M'};
    struct action action;
    if (!life_next(&life, &action, scene.now))
        return false;
    const char *track = action.track == TRACK_RENEWAL ? "r" : "";
    char word[] = {*track, kinds[action.kind], '\0', '\0'};
    if (action.kind == ACTION_SEND)
        add_verb(&action);
    else if (action.kind == ACTION_TOKEN)
        add("T");
    else if (action.kind == ACTION_LINE)
        add("?");
    else if (action.kind == ACTION_CLEAN && life.clean_begun)
        add(life.clean_until == NEVER ? "CB" : "CB!");
    else
        add_at(*track ? word : word + 1, action.server, "");
    if (action.kind == ACTION_LINE && scene.with.queues)
        life_line_up(&life, &line, &messages, scene.now);
    if (action.kind == ACTION_TOKEN && scene.with.no_token)
        life_no_token(&life);
    if (action.kind == ACTION_CLAIM && scene.with.not_claimed)
        life_not_claimed(&life);
    if ((action.kind == ACTION_UNDO || action.kind == ACTION_ABANDON) &&
        scene.with.unsent & 1U << action.server)
        life_withdrawn(&life, &action);
    return true;
}

static const char *loss_word(void)
{
    static const char *const words[] = {
        [LOSS_NO_ANSWER] = "loss:unheard",
        [LOSS_MAX_HOLD] = "loss:max_hold",
        [LOSS_STOPPED] = "loss:stopped",
        [LOSS_TOKEN_GONE] = "loss:refuted",
    };
    if (renewal.loss == LOSS_TOKEN_GONE &&
        renewal.inspect_verdict == VERDICT_YES)
        return "loss:taken";
    if (renewal.loss == LOSS_TOKEN_GONE &&
        renewal.inspect_verdict == VERDICT_NO)
        return "loss:removed";
    return words[renewal.loss];
}

static void life_settled(void)
{
    enum life_event event;
    while ((event = life_event(&life)) != LIFE_NOTHING)
        add("%s", event == LIFE_CALL_OVER    ? result_word(life.result)
                  : event == LIFE_RENEWED    ? "renewed"
                  : event == LIFE_LEASE_LOST ? loss_word()
                                             : "failed");
}

static void life_start(void)
{
    struct life_terms terms = {.servers = scene.with.servers,
        .peers = peers,
        .ttl_ms = TTL_MS,
        .min_hold_ms = scene.with.min_hold_ms,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .max_hold_ns = scene.with.max_hold,
        .timeout_ns = 2 * NS_PER_S,
        .copies_ns = scene.with.copies,
        .retry_first_ns = 10 * MS,
        .retry_max_ns = 100 * MS,
        .fenced = scene.with.fenced,
        .renewed = scene.with.renewed};
    for (unsigned i = 0; i < MAX_SERVERS; i++)
        peers[i] = (struct peer){PEER_UP, 0};
    memset(ballots, 0, sizeof(ballots));
    messages = (struct messages){MESSAGES_UP, 1};
    line = (struct line){0};
    renewal = (struct renewal){0};
    life = (struct life){0};
    life_init(&life, &terms, ballots, scene.with.renewed ? &renewal : NULL);
}

/* Calls of the lock. lineup: an acquire that does not ask for it first.
 * tell:done, tell:failed, tell:clear; tell:found: what was in doubt is done.
 * adopt:own, break:own: the token that it has. */
static bool life_begins(const char *word, const char *argument)
{
    static const unsigned seed = SCENE_SEED;
    uint64_t wait = scene.with.wait, now = scene.now;
    bool begun = true;
    if (is(word, "acquire") || is(word, "lineup"))
        life_acquire(&life, wait, seed, now);
    else if (is(word, "begin"))
        life_begin(&life, wait, seed, now);
    else if (is(word, "look"))
        life_query(&life, CALL_READ_RECORD, seed, now);
    else if (is(word, "forget"))
        life_query(&life, CALL_FORGET, seed, now);
    else if (is(word, "inspect"))
        life_query(&life, CALL_INSPECT, seed, now);
    else if (is(word, "tell") && is(argument, "failed"))
        begun = life_tell(&life, ONCE_FAILED, true, seed, now);
    else if (is(word, "tell") && is(argument, "clear"))
        begun = life_tell(&life, ONCE_CLEAR, true, seed, now);
    else if (is(word, "tell"))
        begun = life_tell(&life, ONCE_DONE, is(argument, "done"), seed, now);
    else if (is(word, "extend"))
        begun = life_extend(&life, TTL_MS, seed, now);
    else if (is(word, "release"))
        begun = life_release(&life, seed, now);
    else if (is(word, "adopt"))
        life_adopt(&life, argument, seed, now);
    else if (is(word, "break"))
        begun = life_break(&life, argument, seed, now);
    else
        return false;
    if (is(word, "lineup"))
        life_line_up(&life, &line, &messages, now);
    if (!begun)
        add("over"); /* the lease */
    return true;
}

/* result: its caller gets it. end: of the lease, with its handle. all:900: the
 * handle's other names are granted, and may be held for 900 ms. held:5000: so
 * long, in ms. down:2, dial:2: that server is down, or begins to connect.
 * message: it was handed over. none: no message will come. silence: no answer
 * until the call is over. */
static bool life_call(const char *word, const char *argument)
{
    if (life_begins(word, argument))
        return true;
    if (is(word, "cancel")) {
        life_cancel(&life);
    } else if (is(word, "discard")) {
        life_discard(&life);
    } else if (is(word, "end")) {
        life_end_lease(&life, scene.now);
    } else if (is(word, "result")) {
        if (life_grant_expired(&life, scene.now))
            life_drop_expired(&life, scene.now);
        else
            life_seen(&life);
        add("%s", result_word(life.result));
    } else if (is(word, "all")) {
        life_all_granted(&life, true, option_ms(argument), scene.now);
    } else if (is(word, "held")) {
        scene.now = life.lease.granted_at + option_ms(argument);
        lease_extend(&life.lease, scene.now + NS_PER_S);
    } else if (is(word, "down")) {
        peers[number(argument)].link = PEER_DOWN;
    } else if (is(word, "dial")) {
        peers[number(argument)] = (struct peer){PEER_CONNECTING, scene.now};
    } else if (is(word, "message")) {
        if (life_in_line(&life))
            line_on_granted(&line, 1, scene.now);
    } else if (is(word, "silence")) {
        for (int i = 0; life.running && i < 100; i++) {
            scene.now = later(scene.now, life.wake);
            life_tick(&life, scene.now);
            drain();
        }
    } else if (is(word, "none")) {
        messages.state = MESSAGES_NONE;
        if (life_in_line(&life))
            line_messages_changed(&line, scene.now);
    } else {
        return false;
    }
    return true;
}

static bool life_show(const char *word)
{
    uint64_t lasts = life_lasts_until(&life);
    uint64_t granted = life.lease.granted_at, deadline = life.lease.deadline;
    const struct value_word words[] = {
        {"held", NULL, lease_held(&life.lease, scene.now)},
        {"deadline", &deadline, 0},
        {"granted", &granted, 0},
        {"lasts", &lasts, 0},
        {"fence", NULL, (int64_t)life.fence},
        {"running", NULL, life.running},
        {"unheard", NULL, (int64_t)(renewal.unheard_ns / MS)},
        {"lost", NULL, lease_state(&life.lease, scene.now) == LEASE_LOST},
    };
    return SHOW_OF(words, word) || show_fault(word, life.fault);
}

static void life_answer(
    enum life_track track, unsigned server, const struct outcome *outcome)
{
    life_outcome(&life, track, server, outcome, scene.now);
}

static void life_ticks(void)
{
    life_tick(&life, scene.now);
}

static uint64_t life_wakes(enum life_track track)
{
    return track == TRACK_CALL ? life.wake : renewal_wake(life.renewal);
}

static const struct scene_machine life_machine = {.name = "life",
    .start = life_start,
    .take = life_take,
    .settle = life_settled,
    .call = life_call,
    .show = life_show,
    .answer = life_answer,
    .tick = life_ticks,
    .wake = life_wakes};

/* --------------------------------------------------------------------- line */

/* Its lease counts from the request that the last word names: =yes:j the JOIN,
 * =yes:s a STAY. Option "asked": the lock itself was asked for before, with
 * this token. */
#define LINE_LEASE                                                             \
    (1087 * MS) /* of a TTL of 1000: 1100 ms, less 1 % and 2 ms */

static struct {
    uint64_t joined_at, stayed_at;
    unsigned connection;
} place;

static struct line_terms line_terms(void)
{
    return (struct line_terms){.ttl_ms = TTL_MS,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .timeout_ns = 2 * NS_PER_S,
        .answer_timeout_ns = 300 * MS,
        .wait_until = deadline_after(T0, scene.with.wait),
        .end = deadline_after(T0, scene.with.end),
        .doubt = scene.with.doubt,
        .messages = &messages};
}

static int messages_state(const char *name)
{
    return is(name, "none")     ? MESSAGES_NONE
           : is(name, "coming") ? MESSAGES_COMING
                                : MESSAGES_UP;
}

static void set_messages(const char *name)
{
    messages.state = (__typeof__(messages.state))messages_state(name);
    messages.number += messages.state == MESSAGES_UP;
}

static void place_start(void)
{
    struct line_terms terms = line_terms();
    messages = (struct messages){MESSAGES_UP, 1};
    if (scene.with.messages)
        set_messages(scene.with.messages);
    place.joined_at = place.stayed_at = 0;
    place.connection = 1;
    line = (struct line){0};
    line_start(&line, &terms, scene.with.asked, SCENE_SEED, scene.now);
}

static bool place_take(void)
{
    struct effect effect;
    if (!line_next(&line, &effect))
        return false;
    bool joins = line_joins(&line);
    if (effect.kind == EFFECT_SEND) {
        *(joins ? &place.joined_at : &place.stayed_at) = scene.now;
        scene.sent_at[TRACK_CALL][0] = scene.now;
        add(joins ? "Sj" : "Ss");
    } else {
        add_effect(&effect);
    }
    if (effect.kind == EFFECT_UNDO && scene.with.unsent)
        line_withdrawn(&line);
    return true;
}

static void place_settle(void)
{
    static const char *const ends[] = {
        [LINE_NO] = "=no",
        [LINE_EXPIRED] = "=late",
        [LINE_MAY_GRANT] = "=unknown",
        [LINE_DID_NOTHING] = "=fault",
        [LINE_CANCELLED] = "=cancelled",
        [LINE_UNUSABLE] = "=poll",
    };
    enum line_verdict verdict = line_verdict(&line);
    if (verdict == LINE_OPEN || scene.ended)
        return;
    scene.ended = true;
    assert_true(line_wake(&line) == NEVER);
    if (verdict != LINE_YES)
        add("%s", ends[verdict]);
    else if (line.deadline == place.joined_at + LINE_LEASE)
        add("=yes:j");
    else
        add(line.deadline == place.stayed_at + LINE_LEASE ? "=yes:s"
                                                          : "=yes:?");
}

/* The wait goes on without any answer until it is over. */
static void place_silence(void)
{
    for (int i = 0; line_verdict(&line) == LINE_OPEN; i++) {
        assert_true(i < 100);
        scene.now = later(scene.now, line_wake(&line));
        line_tick(&line, scene.now);
        drain();
    }
}

/* conn:2: the connection that is up; 0: none is. message: it was handed over.
 * first: a hint that it is the first. messages:none, messages:coming,
 * messages:up. silence: see above. */
static bool place_call(const char *word, const char *argument)
{
    if (is(word, "messages")) {
        set_messages(argument);
        line_messages_changed(&line, scene.now);
    } else if (is(word, "cancel"))
        line_cancel(&line);
    else if (is(word, "conn"))
        place.connection = number(argument);
    else if (is(word, "message"))
        line_on_granted(&line, place.connection, scene.now);
    else if (is(word, "first"))
        line_on_first(&line, scene.now);
    else if (is(word, "silence"))
        place_silence();
    else
        return false;
    return true;
}

static bool place_show(const char *word)
{
    uint64_t wake = line_wake(&line);
    const struct value_word words[] = {
        {"wake", &wake, 0},
        {"doubt", NULL, line.late_grant_possible},
        {"ahead", NULL, line.ahead},
        {"by-message", NULL, line.by_message},
    };
    return SHOW_OF(words, word) || show_fault(word, line.fault);
}

static void place_answer(
    enum life_track track, unsigned server, const struct outcome *outcome)
{
    struct outcome o = *outcome;
    (void)track, (void)server;
    o.sent_at = line_joins(&line) ? place.joined_at : place.stayed_at;
    o.connection = place.connection;
    line_outcome(&line, &o, scene.now);
}

static void place_tick(void)
{
    line_tick(&line, scene.now);
}

static uint64_t place_wake(enum life_track track)
{
    (void)track;
    return line_wake(&line);
}

static const struct scene_machine line_machine = {.name = "line",
    .wait = NEVER,
    .end = NEVER,
    .start = place_start,
    .take = place_take,
    .settle = place_settle,
    .call = place_call,
    .show = place_show,
    .answer = place_answer,
    .tick = place_tick,
    .wake = place_wake};

#endif
