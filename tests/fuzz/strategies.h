/* SPDX-License-Identifier: MIT */
/*
 * The strategies written down once more, to hold an exchange against: which way
 * follows which, and what each step of each of them sends, to the byte. What
 * the replies mean stands in meaning.h. The strategies of times are not in it:
 * see watcher.h.
 */
#ifndef NXLOCK_TESTS_FUZZ_STRATEGIES_H
#define NXLOCK_TESTS_FUZZ_STRATEGIES_H

#include <stdio.h>

#include "fuzz/fuzz.h"
#include "wire/exchange.h"
#include "wire/script.h"
#include "wire/timestamps/server_clock.h"

#define KEY "key"
#define TOKEN "6f1c9b0e-8a53-4c1d-9e07-2b7f4d1a6c35@db7:41233:backup"
#define TTL "30000"
#define CLIENT "2b1d5f6e-0c7a-4e0b-8f55-9a4f3c1e7d20"
#define CHANNEL "nxl:" CLIENT ":" KEY
#define WINDOW "290"

enum way { SET_NX, SCRIPT, WATCH, GETRANGE, SUBSCRIBE };

static const struct {
    unsigned count;
    enum way way[2];
} ways[VERB_KINDS] = {
    [VERB_ACQUIRE] = {2, {SET_NX, SCRIPT}},
    [VERB_EXTEND] = {2, {SCRIPT, WATCH}},
    [VERB_RELEASE] = {2, {SCRIPT, WATCH}},
    [VERB_INSPECT] = {2, {SCRIPT, GETRANGE}},
    [VERB_RAISE] = {1, {SCRIPT}},
    [VERB_JOIN] = {1, {SCRIPT}},
    [VERB_STAY] = {1, {SCRIPT}},
    [VERB_SUBSCRIBE] = {1, {SUBSCRIBE}},
};

/* A reply that stays: its bytes are the input's. */
struct told {
    struct reply reply, items[REPLY_ITEMS];
};

struct model {
    struct verb verb;
    unsigned at, tried, round; /* tried: as bits */
    unsigned step; /* SCRIPT: by hash, whole. WATCH: read, change, DISCARD */
    struct outcome was;  /* WATCH: what was decided before DISCARD */
    bool odd;            /* or it may have been broken */
    struct outcome told; /* the refusal that would be reported */
    struct outcome outcome;
    bool settled; /* it was not refused in every way */
    bool stuck;   /* a transaction could not be ended */
    bool plain;   /* a release may not hand over, as the server said before */
    bool left; /* it is on a strategy of times, or takes one over: watcher.h */
};

static void model_begin(struct model *m, unsigned at)
{
    struct verb verb = m->verb;

    memset(m, 0, sizeof(*m));
    m->verb = verb;
    m->at = at;
}

static enum way model_way(const struct model *m)
{
    return ways[m->verb.kind].way[m->at];
}

/* ------------------------------------------------------------ what is asked */

/* Those of a lock that is waited for in line. */
static void line_verb(struct verb *verb, char letter)
{
    static const char letters[] = "jJyYlPwWc";
    static const enum verb_kind kinds[] = {VERB_JOIN, VERB_JOIN, VERB_STAY,
        VERB_STAY, VERB_RELEASE, VERB_RELEASE, VERB_RAISE, VERB_RAISE,
        VERB_SUBSCRIBE};
    const char *at = strchr(letters, letter);

    if (!at)
        return;
    verb->kind = kinds[at - letters];
    verb->test_listener = letter == 'J' || letter == 'Y';
    verb->gap_ms = letter == 'P' ? 75 : 0;
    verb->fence = letter == 'W' ? 5 : 0;
    if (verb->kind == VERB_RAISE)
        verb->counter = slice_of("{" KEY "}:f");
    if (letter == 'l' || verb_may_grant(verb->kind)) {
        verb->client = slice_of(CLIENT);
        verb->window = 290;
    }
    if (verb->kind == VERB_SUBSCRIBE) {
        verb->key = slice_of(CHANNEL);
        verb->token.len = 0;
    }
}

static struct verb verb_of(char letter)
{
    struct verb verb = {.kind = VERB_ACQUIRE,
        .key = slice_of(KEY),
        .token = slice_of(TOKEN),
        .ttl_ms = 30000,
        .want_left = letter == 'A' || letter == 'o'};

    if (strchr("eEtqQ", letter))
        verb.kind = VERB_EXTEND;
    else if (strchr("rRfg", letter))
        verb.kind = VERB_RELEASE;
    else if (strchr("iIkK", letter))
        verb.kind = VERB_INSPECT;
    if (letter == 'i' || letter == 'k')
        verb.token.len = 0;
    line_verb(&verb, letter);
    return verb;
}

/* Where locks are times: the strategy of this letter is known, and the clock.
 */
static void dialect_of(
    struct dialect *dialect, char letter, enum verb_kind kind)
{
    static const struct {
        char letter;
        unsigned char strategy;
    } known[] = {{'s', 2}, {'b', 3}, {'t', 2}, {'q', 3}, {'Q', 3}, {'f', 2},
        {'g', 3}, {'k', 2}, {'K', 2}};

    *dialect = (struct dialect){.connection = 7,
        .ttl_in_values = strchr("sbntqQfgkK", letter) != NULL,
        .interop = letter == 'o',
        .max_ttl_ms = 60000,
        .now = UINT64_C(5000000000)};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (letter != known[i].letter)
            continue;
        dialect->preferred[kind] = dialect->preferred_with_value_end[kind] =
            known[i].strategy;
        dialect->stamps.learnt = dialect->stamps.timed = true;
        server_clock_learn(&dialect->stamps.clock, dialect->now, dialect->now,
            INT64_C(2000000000000), 1);
    }
}

/* ------------------------------------------------------------- what is sent */

/* The words of one command, NULL at the end. */
static unsigned say(struct buf *b, const char *const *words)
{
    char head[32];
    unsigned count = 0;

    while (words[count])
        count++;
    snprintf(head, sizeof(head), "*%u\r\n", count);
    CHECK(buf_append(b, head, strlen(head)));
    for (unsigned i = 0; i < count; i++) {
        size_t len = strlen(words[i]);
        snprintf(head, sizeof(head), "$%zu\r\n", len);
        CHECK(buf_append(b, head, strlen(head)));
        CHECK(buf_append(b, words[i], len) && buf_append(b, "\r\n", 2));
    }
    return 1;
}

#define SAY(b, ...) say(b, (const char *const[]){__VA_ARGS__, NULL})

static unsigned say_wait(
    const struct verb *verb, const char *by, const char *script, struct buf *b)
{
    return SAY(b, by, script, "4", KEY, "{" KEY "}:nxl-l", "{" KEY "}:nxl-w",
        "{" KEY "}:nxl-g", TOKEN, TTL, CLIENT, WINDOW,
        verb->kind == VERB_JOIN ? "1" : "0", verb->test_listener ? "1" : NULL);
}

static unsigned say_script(const struct model *m, struct buf *b)
{
    static const enum script_id ids[VERB_KINDS] = {
        [VERB_ACQUIRE] = SCRIPT_ACQUIRE,
        [VERB_EXTEND] = SCRIPT_EXTEND,
        [VERB_RELEASE] = SCRIPT_RELEASE,
        [VERB_INSPECT] = SCRIPT_INSPECT,
        [VERB_RAISE] = SCRIPT_RAISE,
        [VERB_JOIN] = SCRIPT_LINE_WAIT,
        [VERB_STAY] = SCRIPT_LINE_WAIT};
    const struct verb *verb = &m->verb;
    const struct script *script = &scripts[ids[verb->kind]];
    bool whole = m->step == 1 || verb->kind == VERB_ACQUIRE;
    const char *by = whole ? "EVAL" : "EVALSHA";
    const char *text = whole ? script->body.data : script->sha1;
    const char *place = verb->client.len > 0 ? TOKEN " " CLIENT " " TTL
                                                     " " WINDOW
                        : m->plain     ? "-"
                        : verb->gap_ms ? "?75"
                                       : NULL;

    switch (verb->kind) {
    case VERB_JOIN:
    case VERB_STAY:
        return say_wait(verb, by, text, b);
    case VERB_RAISE: /* a counter lasts a day */
        return SAY(b, by, text, "2", KEY, "{" KEY "}:f", TOKEN,
            verb->fence ? "5" : "0", "86400000");
    case VERB_RELEASE:
        return SAY(b, by, text, "1", KEY, TOKEN, place);
    case VERB_INSPECT:
        return SAY(b, by, text, "1", KEY);
    default:
        return SAY(b, by, text, "1", KEY, TOKEN, TTL);
    }
}

static unsigned say_watch(const struct model *m, struct buf *b)
{
    if (m->step == 2)
        return SAY(b, "DISCARD");
    if (m->step == 1)
        return (m->verb.kind == VERB_RELEASE ? SAY(b, "DEL", KEY)
                                             : SAY(b, "PEXPIRE", KEY, TTL)) +
               SAY(b, "EXEC");
    return SAY(b, "WATCH", KEY) + SAY(b, "GETRANGE", KEY, "0", "511") +
           SAY(b, "PTTL", KEY) + SAY(b, "EXISTS", KEY) + SAY(b, "MULTI");
}

/* Appends the present step's commands; returns how many. */
static unsigned model_says(const struct model *m, struct buf *b)
{
    unsigned count;

    switch (model_way(m)) {
    case SET_NX:
        count = SAY(b, "SET", KEY, TOKEN, "NX", "PX", TTL);
        break;
    case SCRIPT:
        count = say_script(m, b);
        break;
    case WATCH:
        return say_watch(m, b);
    case SUBSCRIBE:
        return SAY(b, "SUBSCRIBE", CHANNEL);
    default:
        return SAY(b, "PTTL", KEY) + SAY(b, "GETRANGE", KEY, "0", "511") +
               SAY(b, "EXISTS", KEY);
    }
    return count + (m->verb.want_left ? SAY(b, "PTTL", KEY) : 0);
}

#endif
