/* SPDX-License-Identifier: MIT */
/*
 * A scene drives one of core's state machines by a line of words, and compares
 * what the machine does, as words too. test_scenes.c plays
 * the files of unit/scenes; tests with loops play words of their own. This is
 * the language.
 *
 * A file:
 *
 *   machine life            what the next scenes drive: life (one lock, by the
 *                           interface that the simulator uses) and line
 *                           (unit/scene_parts.h), acquire and round
 *                           (scene_votes.h), several names (scene_several.h),
 *                           server (scene_server.h), eligibility
 *                           (scene_eligibility.h), cleanup (scene_cleanup.h)
 *   options servers=3       options of all scenes up to the next "options"
 *   NAME | STEPS | DOES | OPTIONS
 *                           one scene; the last column may be missing; a line
 *                           that begins with a blank continues the one before
 *   # comment
 *
 * Steps, one after the other, from 0 ms on:
 *
 *   g 2g* g2 g2:600         an answer, by one letter: of the only server, of
 *                           all, of server 2; rg: to the renewal's request.
 *                           :600 left of the holder's TTL, in ms; ^5 sent at
 *                           5 ms; #8 fencing token; ~5 tried at 5 ms
 *   @20, @20s               it is 20 ms, or 20 s
 *   wake, rwake             the time comes for which the call, or the renewal,
 *                           asked to be woken; wake:5-10 if that is between
 *   tick                    the machine looks at the time
 *   hold:2 ... go           only 2 effects are taken in between; option take=2:
 *                           the same from the start
 *   unsent:7                from now on nothing leaves for the servers 0, 1, 2
 *                           (bits); also an option
 *   ?deadline               writes a value: see the machine
 *   mentions:a_word         the message has that in it (_ for a blank)
 *   acquire, cancel, ...    calls: see the machine
 *
 * Answers: g granted; b busy, time left unknown; w the same, in line behind
 * another one, with 600 ms left; F first in line; i busy, never expires; h busy
 * with several holders; k busy, perhaps by an earlier token; m mine; n not
 * mine; y not mine, in progress; s seen; e free. Of records: D done, O in
 * doubt, M another fingerprint, Y in progress. Faults: f transient; x lasting
 * (no permission); X lasting (not logged in); c no connection; u connection
 * lost, perhaps applied; d may have been applied, and is final; z timeout, not
 * applied; Z timeout, perhaps applied; v applied, but void (too few replicas);
 * 0 not decided.
 *
 * What is done: T a token; S send (with the verb's letter: see add_verb() in
 * unit/scene_parts.h), U undo, L leave, K skip, C clean, A claim, M adopt, ?
 * the line is offered: each followed by the server if there are several, and r
 * before it if it is the renewal's. =ok, =yes, ...: the call's result or the
 * machine's verdict.
 */
#ifndef NXLOCK_TESTS_SCENE_H
#define NXLOCK_TESTS_SCENE_H

#include "support/test.h"

#include "core/calls.h"
#include "core/life.h"
#include "core/several.h"
#include "unit/fault_names.h"

#define MS NS_PER_MS
#define T0 (UINT64_C(5000) * MS)
#define SCENE_SEED 7

struct scene_options {
    unsigned servers, unsent; /* unsent: servers for which nothing leaves, by
                               * bits */
    uint32_t min_hold_ms;
    uint64_t max_hold, wait, end, copies; /* ns; wait, end: from the start */
    bool queues, renewed, fenced, no_token, not_claimed, asked, doubt, several,
        shaken, early, scripted;
    const char *messages;
    char url[64]; /* of a server: its parameters */
    enum round_kind kind;
};

/* A machine may lack a function that no step of its scenes needs. */
struct scene_machine {
    const char *name;
    uint64_t wait, end; /* if the options do not say it */
    void (*start)(void);
    void (*stop)(void);
    bool (*take)(void);   /* an effect; false: there is none */
    void (*settle)(void); /* all were taken: what is decided */
    bool (*call)(const char *word, const char *argument);
    bool (*show)(const char *what); /* "?what"; false: there is no such value */
    void (*answer)(
        enum life_track track, unsigned server, const struct outcome *outcome);
    void (*tick)(void);
    uint64_t (*wake)(enum life_track track);
    const char *(*text)(void); /* its latest message */
};

static struct {
    const struct scene_machine *machine;
    struct scene_options with;
    uint64_t now, sent_at[TRACKS][MAX_SERVERS];
    bool draws[MAX_SERVERS]; /* what was sent may draw a fencing token */
    unsigned may_take;       /* effects */
    enum verdict said;
    bool ended; /* a wait in line: how was said */
    char trace[2048];
} scene;

/* ----------------------------------------------------------------- outputs */

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    size_t len = strlen(scene.trace), room = sizeof(scene.trace) - len;
    va_list list;
    if (len > 0)
        scene.trace[len++] = ' ', room--;
    va_start(list, format);
    int more = vsnprintf(scene.trace + len, room, format, list);
    va_end(list);
    if (more < 0 || (size_t)more >= room)
        fail_msg("it does more than a scene has room for: without end?");
}

static inline void add_at(
    const char *letters, unsigned server, const char *suffix)
{
    if (scene.with.servers > 1)
        add("%s%u%s", letters, server, suffix);
    else
        add("%s%s", letters, suffix);
}

static inline void add_time(const char *name, uint64_t at)
{
    if (at == NEVER)
        add("%s=never", name);
    else if (at == 0)
        add("%s=none", name);
    else
        add("%s=%.10g", name, ((double)at - (double)T0) / (double)MS);
}

static inline void add_effect(const struct effect *effect)
{
    static const char *const letters[] = {[EFFECT_TOKEN] = "T",
        [EFFECT_SEND] = "S",
        [EFFECT_UNDO] = "U",
        [EFFECT_ABANDON] = "L"};
    if (effect->kind == EFFECT_TOKEN)
        add("T");
    else
        add_at(letters[effect->kind], effect->server, "");
    if (effect->kind == EFFECT_SEND)
        scene.sent_at[TRACK_CALL][effect->server] = scene.now;
}

static inline const char *verdict_word(enum verdict verdict)
{
    static const char *const words[] = {
        [VERDICT_YES] = "=yes",
        [VERDICT_NO] = "=no",
        [VERDICT_RECORDED] = "=recorded",
        [VERDICT_EXPIRED] = "=expired",
        [VERDICT_UNKNOWN] = "=unknown",
        [VERDICT_FAULT] = "=fault",
        [VERDICT_CANCELLED] = "=cancelled",
    };
    return words[verdict];
}

static inline const char *result_word(enum life_result result)
{
    static const char *const words[] = {
        [LIFE_OK] = "=ok",
        [LIFE_BUSY] = "=busy",
        [LIFE_FREE] = "=free",
        [LIFE_DONE] = "=done",
        [LIFE_DOUBT] = "=doubt",
        [LIFE_MISMATCH] = "=mismatch",
        [LIFE_LOST] = "=lost",
        [LIFE_UNKNOWN] = "=unknown",
        [LIFE_FAULT] = "=fault",
        [LIFE_CANCELLED] = "=cancelled",
    };
    return words[result];
}

static void drain(void)
{
    while (scene.may_take > 0 && scene.machine->take && scene.machine->take())
        scene.may_take -= scene.may_take < UINT32_MAX;
    if (scene.may_take > 0 && scene.machine->settle)
        scene.machine->settle();
}

/* ------------------------------------------------------------------ inputs */

static const struct scene_answer {
    char letter;
    struct outcome outcome;
} scene_answers[] = {
    {'0', {.kind = OUTCOME_NONE}},
    {'g', {.kind = OUTCOME_GRANTED}},
    {'b', {.kind = OUTCOME_BUSY, .left_ms = LEFT_UNKNOWN}},
    {'w', {.kind = OUTCOME_BUSY, .left_ms = 600, .ahead = 1}},
    {'F', {.kind = OUTCOME_BUSY, .left_ms = 600}},
    {'i', {.kind = OUTCOME_BUSY, .left_ms = LEFT_FOREVER}},
    {'h', {.kind = OUTCOME_BUSY,
              .left_ms = LEFT_UNKNOWN,
              .several_holders = true}},
    {'k', {.kind = OUTCOME_BUSY,
              .left_ms = 600,
              .earlier_token_may_remain = true}},
    {'m', {.kind = OUTCOME_MINE, .left_ms = 1000, .fence = 12}},
    {'n', {.kind = OUTCOME_NOT_MINE}},
    {'y', {.kind = OUTCOME_NOT_MINE, .found = FOUND_BUSY}},
    {'s', {.kind = OUTCOME_SEEN}},
    {'e', {.kind = OUTCOME_FREE}},
    {'D', {.kind = OUTCOME_RECORDED, .found = FOUND_DONE}},
    {'O', {.kind = OUTCOME_RECORDED, .found = FOUND_DOUBT}},
    {'M', {.kind = OUTCOME_RECORDED, .found = FOUND_MISMATCH}},
    {'Y', {.kind = OUTCOME_RECORDED, .found = FOUND_BUSY}},
    {'f', {.kind = OUTCOME_FAULT, .fault = FAULT_RETRY}},
    {'x', {.kind = OUTCOME_FAULT, .fault = FAULT_NO_PERMISSION}},
    {'X', {.kind = OUTCOME_FAULT, .fault = FAULT_DENIED}},
    {'c', {.kind = OUTCOME_FAULT, .fault = FAULT_UNREACHABLE}},
    {'u', {.kind = OUTCOME_FAULT, .fault = FAULT_UNREACHABLE, .unsure = true}},
    {'d', {.kind = OUTCOME_FAULT, .fault = FAULT_SERVER, .unsure = true}},
    {'z', {.kind = OUTCOME_FAULT, .fault = FAULT_TIMEOUT}},
    {'Z', {.kind = OUTCOME_FAULT, .fault = FAULT_TIMEOUT, .unsure = true}},
    {'v', {.kind = OUTCOME_FAULT,
              .fault = FAULT_COPIES,
              .unsure = true,
              .applied = true}},
};

/* "20", "-0.5", "2s" or "never": ms since the start. */
static uint64_t scene_time(const char *text, char **rest)
{
    if (!strncmp(text, "never", 5)) {
        if (rest)
            *rest = (char *)text + 5;
        return NEVER;
    }
    char *end = NULL;
    double ns = strtod(text, &end) * (double)MS;
    if (*end == 's') {
        ns *= 1000;
        end++;
    }
    if (rest)
        *rest = end;
    return T0 + (uint64_t)(int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

/* What stands behind the letter and the server. False: something else. */
static bool answer_details(struct outcome *o, char *text)
{
    while (*text) {
        char what = *text++;
        if (what == ':')
            o->left_ms = strtoll(text, &text, 10);
        else if (what == '#')
            o->fence = strtoull(text, &text, 10);
        else if (what == '^')
            o->sent_at = scene_time(text, &text);
        else if (what == '~')
            o->tried_at = scene_time(text, &text);
        else
            return false;
    }
    return true;
}

static bool say(enum life_track track, const struct scene_answer *answer,
    unsigned server, char *details)
{
    struct outcome o = answer->outcome;
    unsigned known = server < MAX_SERVERS ? server : 0;
    o.sent_at = scene.sent_at[track][known];
    o.connection = o.kind == OUTCOME_FAULT ? 0 : 1;
    if (o.kind == OUTCOME_GRANTED && scene.draws[known])
        o.fence = 10 + server;
    if (!answer_details(&o, details))
        return false;
    scene.machine->answer(track, server, &o);
    return true;
}

static bool answer(const char *word)
{
    enum life_track track = *word == 'r' ? TRACK_RENEWAL : TRACK_CALL;
    word += *word == 'r';
    const struct scene_answer *found = NULL;
    for (size_t i = 0; i < sizeof(scene_answers) / sizeof(*scene_answers); i++)
        if (*word == scene_answers[i].letter)
            found = &scene_answers[i];
    if (!found)
        return false;
    char *details = NULL;
    unsigned server = (unsigned)strtoul(word + 1, &details, 10);
    if (*details != '*')
        return say(track, found, server, details);
    for (server = 0; server < scene.with.servers; server++)
        if (!say(track, found, server, details + 1))
            return false;
    return true;
}

static void tick(void)
{
    if (scene.machine->tick)
        scene.machine->tick();
}

static void wake(enum life_track track, const char *range)
{
    uint64_t at = scene.machine->wake(track);
    if (at == NEVER) {
        add("wake=never");
        return;
    }
    if (range) {
        char *high = NULL;
        uint64_t least = scene_time(range, &high);
        uint64_t most = scene_time(high + 1, NULL);
        if (at < least || at > most)
            add_time("wake", at);
    }
    scene.now = at > scene.now ? at : scene.now;
    tick();
}

/* The message has that in it, _ for a blank; else it is shown. */
static void mentions(char *part)
{
    const char *text = scene.machine->text();
    for (char *c = part; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    if (!strstr(text, part))
        add("\"%s\"", text);
}

static void step(const char *text)
{
    char word[64];
    snprintf(word, sizeof(word), "%s", text);
    char *argument = strchr(word, ':');
    if (argument)
        *argument++ = '\0';
    if (*word == '@')
        scene.now = scene_time(word + 1, NULL);
    else if (*word == '?' && !scene.machine->show(word + 1))
        fail_msg("no such value: %s", text);
    else if (*word == '?')
        return;
    else if (!strcmp(word, "wake") || !strcmp(word, "rwake"))
        wake(*word == 'r' ? TRACK_RENEWAL : TRACK_CALL, argument);
    else if (!strcmp(word, "mentions"))
        mentions(argument);
    else if (!strcmp(word, "tick"))
        tick();
    else if (!strcmp(word, "unsent"))
        scene.with.unsent = (unsigned)strtoul(argument, NULL, 16);
    else if (!strcmp(word, "hold"))
        scene.may_take = (unsigned)strtoul(argument, NULL, 10);
    else if (!strcmp(word, "go"))
        scene.may_take = UINT32_MAX;
    else if (!scene.machine->call(word, argument) && !answer(text))
        fail_msg("no such step: %s", text);
    drain();
}

/* ------------------------------------------------------------------- scenes */

static uint64_t option_ms(const char *value)
{
    return strcmp(value, "never") ? scene_time(value, NULL) - T0 : NEVER;
}

static const char *const scene_kinds[] = {[ROUND_EXTEND] = "extend",
    [ROUND_RELEASE] = "release",
    [ROUND_CAP] = "cap",
    [ROUND_ADOPT] = "adopt",
    [ROUND_INSPECT] = "inspect",
    [ROUND_TELL] = "tell",
    [ROUND_TELL_OPEN] = "tell-open"};

static void set_flag(const char *name)
{
    struct scene_options *o = &scene.with;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"queues", &o->queues}, {"renewed", &o->renewed},
        {"fenced", &o->fenced}, {"no-token", &o->no_token},
        {"not-claimed", &o->not_claimed}, {"asked", &o->asked},
        {"doubt", &o->doubt}, {"early", &o->early}, {"several", &o->several},
        {"scripted", &o->scripted}, {"shaken", &o->shaken}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        if (!strcmp(name, flags[i].name)) {
            *flags[i].flag = true;
            return;
        }
    }
    fail_msg("no such option: %s", name);
}

static void set_option(char *word)
{
    struct scene_options *o = &scene.with;
    char *value = strchr(word, '=');
    if (!value) {
        set_flag(word);
        return;
    }
    *value++ = '\0';
    if (!strcmp(word, "servers"))
        o->servers = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(word, "unsent"))
        o->unsent = (unsigned)strtoul(value, NULL, 16);
    else if (!strcmp(word, "url"))
        snprintf(o->url, sizeof(o->url), "%s", value);
    else if (!strcmp(word, "messages"))
        o->messages = *value == 'n' ? "none" : "coming";
    else if (!strcmp(word, "take"))
        scene.may_take = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(word, "min-hold"))
        o->min_hold_ms = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(word, "max-hold"))
        o->max_hold = option_ms(value);
    else if (!strcmp(word, "copies"))
        o->copies = option_ms(value);
    else if (!strcmp(word, "wait"))
        o->wait = option_ms(value);
    else if (!strcmp(word, "end"))
        o->end = option_ms(value);
    else if (!strcmp(word, "kind"))
        for (unsigned i = 0; i < sizeof(scene_kinds) / sizeof(char *); i++)
            o->kind = strcmp(value, scene_kinds[i]) ? o->kind : i;
    else
        fail_msg("no such option: %s=%s", word, value);
}

/* Each word of the text; the text is copied. */
static void each_word(const char *text, void (*use)(char *word))
{
    char copy[512], *rest = NULL;
    assert_true(strlen(text) < sizeof(copy));
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        use(word);
}

/* The machine at the beginning of a scene. */
static void scene_begin(const struct scene_machine *machine, const char *with)
{
    memset(&scene, 0, sizeof(scene));
    scene.machine = machine;
    scene.now = T0;
    scene.may_take = UINT32_MAX;
    scene.with = (struct scene_options){.servers = 1,
        .max_hold = NEVER,
        .wait = machine->wait,
        .end = machine->end};
    each_word(with, set_option);
    machine->start();
    drain();
}

static inline void scene_step(char *word)
{
    step(word);
}

static inline void scene_play(const char *steps)
{
    each_word(steps, scene_step);
}

#endif
