/* SPDX-License-Identifier: MIT */
/*
 * A lock on one server that waits in line, driven by scripts: each call, answer
 * and moment is a word, and so is what the machine does.
 */
#ifndef NXLOCK_TESTS_LIFE_LINE_RIG_H
#define NXLOCK_TESTS_LIFE_LINE_RIG_H

#include "support/test.h"

#include "core/life.h"
#include "unit/core_rig.h"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define TTL_MS 1000
#define JOINED (1087 * MS) /* what is relied on of a lease of 1100 ms */
static struct life l;
static struct line line;
static struct messages messages;
static struct renewal renewal;
static struct peer peer;
static struct ballot ballots[LIFE_BALLOTS];
static uint64_t now, sent_at[TRACKS];
static bool queues, no_token, unsent;
static bool draws;         /* what was sent last may draw a fencing token */
static uint64_t raised_to; /* what the last RAISE asked for */
static char trace[1024];

static inline void add(const char *word)
{
    size_t len = strlen(trace);
    assert_true(len + strlen(word) + 2 < sizeof(trace));
    snprintf(trace + len, sizeof(trace) - len, "%s%s", len ? " " : "", word);
}

/* Sa: ACQUIRE is sent; j JOIN, s STAY, e extend, r release, p release without a
 * hand-over, c cap, f fence. */
static inline void add_send(const struct action *action)
{
    static const char letters[] = {[VERB_ACQUIRE] = 'a',
        [VERB_EXTEND] = 'e',
        [VERB_RELEASE] = 'r',
        [VERB_INSPECT] = 'i',
        [VERB_CAP_TTL] = 'c',
        [VERB_RAISE] = 'f',
        [VERB_JOIN] = 'j',
        [VERB_STAY] = 's'};
    struct verb verb = action->verb;
    if (verb.kind == VERB_JOIN || verb.kind == VERB_STAY) {
        assert_int_equal(verb.ttl_ms, 1100);
        assert_int_equal(verb.window, 11);
    }
    assert_true(!verb.gap_ms || verb.kind == VERB_RELEASE);
    if (verb.kind == VERB_RAISE)
        raised_to = verb.fence;
    char letter = verb.gap_ms ? 'p' : letters[verb.kind];
    add((char[]){'S', letter, '\0'});
    draws = verb.kind == VERB_ACQUIRE;
    sent_at[action->track] = now;
}

static inline void carry_out(const struct action *action)
{
    static const char *const words[] = {
        [ACTION_TOKEN] = "T",
        [ACTION_SKIP] = "K",
        [ACTION_UNDO] = "U",
        [ACTION_ABANDON] = "L",
        [ACTION_CLEAN] = "C",
        [ACTION_LINE] = "?",
        [ACTION_CLAIM] = "A",
        [ACTION_ADOPT] = "M",
    };
    if (action->kind == ACTION_SEND)
        add_send(action);
    else
        add(words[action->kind]);
    if (action->kind == ACTION_LINE && queues)
        life_line_up(&l, &line, &messages, now);
    if (action->kind == ACTION_TOKEN && no_token)
        life_no_token(&l);
    if (action->kind == ACTION_UNDO && unsent)
        life_withdrawn(&l, action);
}

static inline void drain(void)
{
    static const char *const results[] = {
        [LIFE_OK] = "=ok",
        [LIFE_BUSY] = "=busy",
        [LIFE_LOST] = "=lost",
        [LIFE_UNKNOWN] = "=unknown",
        [LIFE_FAULT] = "=fault",
        [LIFE_CANCELLED] = "=cancelled",
    };
    struct action action;
    enum life_event event;
    while (life_next(&l, &action, now))
        carry_out(&action);
    while ((event = life_event(&l)) != LIFE_NOTHING)
        add(event == LIFE_CALL_OVER ? results[l.result]
            : event == LIFE_RENEWED ? "renewed"
                                    : "lost");
}

/* g granted, w busy or waits, x not mine, m mine, z a fault that passes, D a
 * lasting one, E a lasting doubt; with r before it of a renewal. */
static inline bool answer(const char *word)
{
    static const struct {
        char letter;
        struct outcome outcome;
    } all[] = {
        {'g', {.kind = OUTCOME_GRANTED}},
        {'w', {.kind = OUTCOME_BUSY,
                  .left_ms = 600,
                  .ahead = 1,
                  .connection = 1}},
        {'i', {.kind = OUTCOME_BUSY, .left_ms = LEFT_FOREVER, .connection = 1}},
        {'x', {.kind = OUTCOME_NOT_MINE}},
        {'m', {.kind = OUTCOME_MINE, .left_ms = TTL_MS, .fence = 12}},
        {'z', {.kind = OUTCOME_FAULT, .fault = FAULT_REFUSING}},
        {'D', {.kind = OUTCOME_FAULT, .fault = FAULT_NO_PERMISSION}},
        {'E', {.kind = OUTCOME_FAULT, .fault = FAULT_SERVER, .unsure = true}},
    };
    enum life_track track = *word == 'r' ? TRACK_RENEWAL : TRACK_CALL;
    word += *word == 'r';
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (*word != all[i].letter || word[1] != '\0')
            continue;
        struct outcome o = all[i].outcome;
        o.sent_at = sent_at[track];
        if (o.kind == OUTCOME_GRANTED && draws)
            o.fence = 8;
        life_outcome(&l, track, 0, &o, now);
        return true;
    }
    return false;
}

static inline void told(void)
{
    if (life_in_line(&l))
        line_on_granted(&line, 1, now);
}

static inline void wake(enum life_track track)
{
    uint64_t at = track == TRACK_CALL ? l.wake : renewal_wake(l.renewal);
    assert_true(at != NEVER);
    now = later(now, at);
    life_tick(&l, now);
}

static inline void step(const char *word)
{
    if (answer(word))
        ;
    else if (*word == '@') /* ms since the start */
        now = T0 + strtoull(word + 1, NULL, 10) * MS;
    else if (!strcmp(word, "acquire"))
        life_acquire(&l, 2 * NS_PER_S, 7, now);
    else if (!strcmp(word, "lineup")) {
        life_acquire(&l, 2 * NS_PER_S, 7, now);
        life_line_up(&l, &line, &messages, now);
    } else if (!strcmp(word, "told"))
        told();
    else if (!strcmp(word, "none")) {
        messages.state = MESSAGES_NONE;
        if (life_in_line(&l))
            line_messages_changed(&line, now);
    } else if (!strcmp(word, "wake"))
        wake(TRACK_CALL);
    else if (!strcmp(word, "rwake"))
        wake(TRACK_RENEWAL);
    else if (!strcmp(word, "release"))
        assert_true(life_release(&l, 7, now));
    else if (!strcmp(word, "extend"))
        assert_true(life_extend(&l, TTL_MS, 7, now));
    else if (!strcmp(word, "adopt"))
        life_adopt(&l, false, 7, now);
    else if (!strcmp(word, "cancel"))
        life_cancel(&l);
    else if (!strcmp(word, "discard"))
        life_discard(&l);
    else if (!strcmp(word, "part"))
        life_end_lease(&l, now);
    else
        fail_msg("no such step: %s", word);
    drain();
}

struct scene {
    const char *name, *steps, *does;
    bool polls, fenced, renewed, no_token, unsent;
    uint32_t min_hold_ms;
};

static inline void begin(const struct scene *s)
{
    struct life_terms terms = {.servers = 1,
        .peers = &peer,
        .ttl_ms = TTL_MS,
        .min_hold_ms = s->min_hold_ms,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .max_hold_ns = NEVER,
        .timeout_ns = 2 * NS_PER_S,
        .retry_first_ns = 10 * MS,
        .retry_max_ns = 100 * MS,
        .fenced = s->fenced,
        .renewed = s->renewed};
    now = T0;
    queues = !s->polls;
    no_token = s->no_token;
    unsent = s->unsent;
    peer = (struct peer){PEER_UP, 0};
    messages = (struct messages){MESSAGES_UP, 1};
    line = (struct line){0};
    memset(ballots, 0, sizeof(ballots));
    renewal = (struct renewal){0};
    l = (struct life){0};
    life_init(&l, &terms, ballots, s->renewed ? &renewal : NULL);
}

static inline void play(const struct scene *s)
{
    char steps[256], *rest = NULL;
    begin(s);
    trace[0] = '\0';
    snprintf(steps, sizeof(steps), "%s", s->steps);
    for (char *word = strtok_r(steps, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        step(word);
}

static inline void play_all(const struct scene *scenes, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        play(&scenes[i]);
        bool same = !strcmp(trace, scenes[i].does);
        if (!same)
            print_error("%s (%s):\n  does  %s\n  wants %s\n", scenes[i].name,
                scenes[i].steps, trace, scenes[i].does);
        wrong += !same;
    }
    assert_int_equal(wrong, 0);
}

#define PLAY(scenes) play_all(scenes, sizeof(scenes) / sizeof(*(scenes)))

#endif
