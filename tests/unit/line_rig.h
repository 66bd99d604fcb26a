/* SPDX-License-Identifier: MIT */
/*
 * A wait in line, driven by scripts of words. What it asks for is written as
 * words too: "T" token, "J" JOIN, "Y" STAY, "U" undo, "L" leave, and its end:
 * "=yes:J" is granted with a lease that counts from the JOIN, "=yes:Y" from the
 * last STAY.
 */
#ifndef NXLOCK_TESTS_LINE_RIG_H
#define NXLOCK_TESTS_LINE_RIG_H

#include "support/test.h"

#include "core/line.h"
#include "unit/core_rig.h"

#define LEASE (1087 * MS) /* of a TTL of 1000: 1100 ms, less 1 % and 2 ms */
#define PATIENCE (300 * MS)
#define LINE_SEED 7

static struct line line;
static struct messages messages;
static uint64_t now, joined_at, stayed_at;
static unsigned connection;
static bool unsent; /* nothing of an undone request had left */
static char trace[WORDS_MAX];

static inline struct line_terms line_terms(uint64_t wait, uint64_t end)
{
    return (struct line_terms){.ttl_ms = 1000,
        .max_ttl_ms = 60000,
        .drift_ppm = 10000,
        .timeout_ns = 2 * NS_PER_S,
        .answer_timeout_ns = PATIENCE,
        .wait_until = deadline_after(T0, wait),
        .end = deadline_after(T0, end),
        .messages = &messages};
}

static inline void add(const char *word)
{
    size_t len = strlen(trace);
    assert_true(len + strlen(word) + 2 < sizeof(trace));
    snprintf(trace + len, sizeof(trace) - len, "%s%s", len ? " " : "", word);
}

static inline void add_line_ask(const struct effect *effect)
{
    bool joins = line_joins(&line);
    switch (effect->kind) {
    case EFFECT_TOKEN:
        add("T");
        break;
    case EFFECT_SEND:
        *(joins ? &joined_at : &stayed_at) = now;
        add(joins ? "J" : "Y");
        break;
    case EFFECT_UNDO:
        add("U");
        if (unsent)
            line_withdrawn(&line);
        break;
    case EFFECT_ABANDON:
        add("L");
        break;
    }
}

static inline const char *grant_word(void)
{
    if (line.deadline == joined_at + LEASE)
        return "=yes:J";
    return line.deadline == stayed_at + LEASE ? "=yes:Y" : "=yes:?";
}

static inline void drain(void)
{
    static const char *const ends[] = {
        [LINE_NO] = "=no",
        [LINE_EXPIRED] = "=late",
        [LINE_MAY_GRANT] = "=unknown",
        [LINE_DID_NOTHING] = "=fault",
        [LINE_CANCELLED] = "=cancelled",
        [LINE_UNUSABLE] = "=poll",
    };
    struct effect effect;
    while (line_next(&line, &effect))
        add_line_ask(&effect);
    enum line_verdict verdict = line_verdict(&line);
    if (verdict == LINE_OPEN || strchr(trace, '='))
        return;
    add(verdict == LINE_YES ? grant_word() : ends[verdict]);
    assert_true(line_wake(&line) == NEVER);
}

/* Starts at T0; wait and end: ns after T0, or NEVER. */
static inline void start_with(const struct line_terms *terms, bool token)
{
    now = T0;
    joined_at = stayed_at = 0;
    connection = 1;
    trace[0] = '\0';
    line = (struct line){0};
    line_start(&line, terms, token, LINE_SEED, now);
    drain();
}

static inline void start(bool token, uint64_t wait, uint64_t end)
{
    struct line_terms terms = line_terms(wait, end);
    start_with(&terms, token);
}

static inline void say(struct outcome outcome)
{
    outcome.sent_at = line_joins(&line) ? joined_at : stayed_at;
    outcome.connection = connection;
    line_outcome(&line, &outcome, now);
    drain();
}

static inline void set_messages(int state)
{
    messages.state = (__typeof__(messages.state))state;
    messages.number += state == MESSAGES_UP;
    line_messages_changed(&line, now);
}

static inline void wake(void)
{
    assert_true(line_wake(&line) != NEVER);
    now = later(now, line_wake(&line));
    line_tick(&line, now);
}

/* Answers: g granted, w waits, f waits as the first, x not in line; faults
 * that pass: z, or u if it may have been applied; lasting ones: D, E. ?: an
 * answer to another verb; silence: until patience is over. */
static inline bool line_answer(const char *word)
{
    static const struct {
        char letter;
        struct outcome outcome;
    } all[] = {
        {'g', {.kind = OUTCOME_GRANTED}},
        {'w', {.kind = OUTCOME_BUSY, .left_ms = 600, .ahead = 1}},
        {'f', {.kind = OUTCOME_BUSY, .left_ms = 600}},
        {'x', {.kind = OUTCOME_NOT_MINE}},
        {'z', {.kind = OUTCOME_FAULT, .fault = FAULT_RETRY}},
        {'u', {.kind = OUTCOME_FAULT,
                  .fault = FAULT_UNREACHABLE,
                  .unsure = true}},
        {'D', {.kind = OUTCOME_FAULT, .fault = FAULT_NO_PERMISSION}},
        {'E', {.kind = OUTCOME_FAULT, .fault = FAULT_SERVER, .unsure = true}},
        {'?', {.kind = OUTCOME_MINE}},
    };
    for (size_t i = 0; word[1] == '\0' && i < sizeof(all) / sizeof(*all); i++) {
        if (*word != all[i].letter)
            continue;
        say(all[i].outcome);
        return true;
    }
    return false;
}

static inline void line_step(const char *word)
{
    if (line_answer(word))
        return;
    if (*word == '@') /* ms since the start */
        now = T0 + strtoull(word + 1, NULL, 10) * MS;
    else if (!strncmp(word, "conn", 4)) /* to the server; 0: none is up */
        connection = (unsigned)(word[4] - '0');
    else if (!strcmp(word, "told"))
        line_on_granted(&line, connection, now);
    else if (!strcmp(word, "tick"))
        line_tick(&line, now);
    else if (!strcmp(word, "wake") || !strcmp(word, "silence"))
        wake();
    else if (!strcmp(word, "cancel"))
        line_cancel(&line);
    else if (!strcmp(word, "none"))
        set_messages(MESSAGES_NONE);
    else if (!strcmp(word, "coming"))
        set_messages(MESSAGES_COMING);
    else if (!strcmp(word, "up"))
        set_messages(MESSAGES_UP);
    else
        fail_msg("no such step: %s", word);
    drain();
}

static inline void line_play(const char *steps)
{
    char copy[WORDS_MAX], *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", steps);
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        line_step(word);
}

/* Goes from one time to the next until the wait is over. */
static inline void line_run(void)
{
    for (int i = 0; line_verdict(&line) == LINE_OPEN; i++) {
        assert_true(i < 100);
        line_step("wake");
    }
}

static inline bool line_did(const char *name, const char *wanted)
{
    if (!strcmp(trace, wanted))
        return true;
    print_error("%s:\n  does  %s\n  wants %s\n", name, trace, wanted);
    return false;
}

#endif
