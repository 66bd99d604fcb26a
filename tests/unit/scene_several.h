/* SPDX-License-Identifier: MIT */
/*
 * The machine "several" of scenes (unit/scene.h): several names by one handle.
 *
 * Steps: acquire:3 three names, option wait, and option early if they are asked
 * for early; call:extend:2 (release, adopt) of two names; ok:0 the call of
 * member 0 is over, and likewise busy, lost, unknown, fault, cancelled; used:0
 * its token is used; lost-lease:0 it is lost; no-token; settled:1 all are held,
 * settled:0 not; cancel.
 *
 * Words: T a token; B0 member 0 begins, b0 early; C0 its call is cancelled; R0
 * its key is removed; L0 its lease ends and the key stays; S all are granted;
 * then the result of the whole, and of whom: =fault@1.
 */
#ifndef NXLOCK_TESTS_SCENE_SEVERAL_H
#define NXLOCK_TESTS_SCENE_SEVERAL_H

#include "core/several.h"
#include "unit/scene.h"

static struct several several;

static void several_start(void)
{
    several_init(&several, 2);
    scene.ended = true;
}

static bool several_take(void)
{
    struct several_action action;
    if (!several_next(&several, &action, scene.now))
        return false;
    char letter = "TBCRLS"[action.kind];
    if (letter == 'B' && action.early)
        letter = 'b';
    if (letter == 'T' || letter == 'S')
        add("%c", letter);
    else
        add("%c%u", letter, action.member);
    if (letter == 'T' && scene.with.no_token)
        several_no_token(&several);
    return letter != 'S'; /* several_settled() comes first */
}

static void several_settle(void)
{
    if (!several.running && !scene.ended) {
        const char *word = result_word(several.result);
        if (several.member < several.count)
            add("%s@%u", word, several.member);
        else
            add("%s", word);
    }
    scene.ended = !several.running;
}

static void several_begin(const char *argument)
{
    struct backoff backoff;
    scene.ended = false;
    backoff_init(&backoff, 10 * MS, 100 * MS, SCENE_SEED);
    several_init(&several, (unsigned)strtoul(argument, NULL, 10));
    several_acquire(&several, scene.with.wait, 500 * MS, scene.with.early,
        &backoff, scene.now);
}

static void several_call_of(const char *argument)
{
    scene.ended = false;
    several_init(&several, 2);
    several_call(&several, *argument == 'e'   ? CALL_EXTEND
                           : *argument == 'r' ? CALL_RELEASE
                                              : CALL_ADOPT);
}

static bool several_ends(const char *word, unsigned member)
{
    static const enum life_result results[] = {LIFE_OK, LIFE_BUSY, LIFE_LOST,
        LIFE_UNKNOWN, LIFE_FAULT, LIFE_CANCELLED};
    struct several_end end = {.result = LIFE_FAULT, .fault = FAULT_DENIED};
    end.token_is_used = !strcmp(word, "used");
    bool found = end.token_is_used;
    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
        if (strcmp(word, result_word(results[i]) + 1) == 0) {
            end.result = results[i];
            found = true;
        }
    }
    if (found)
        several_over(&several, member, &end, scene.now);
    return found;
}

static bool several_does(const char *word, const char *argument)
{
    unsigned member = argument ? (unsigned)strtoul(argument, NULL, 10) : 0;
    if (!strcmp(word, "acquire"))
        several_begin(argument);
    else if (!strcmp(word, "call"))
        several_call_of(argument);
    else if (!strcmp(word, "lost-lease"))
        several_lost(&several, member, scene.now);
    else if (!strcmp(word, "settled"))
        several_settled(&several, member, scene.now);
    else if (!strcmp(word, "cancel"))
        several_cancel(&several);
    else
        return several_ends(word, member);
    return true;
}

static bool several_show(const char *what)
{
    uint64_t wake = several_wake(&several);
    if (!strcmp(what, "attempts"))
        add("attempts=%u", several.attempts);
    else if (!strcmp(what, "wake"))
        add_time("wake", wake);
    else if (!strcmp(what, "wait-until"))
        add_time("wait-until", several.wait_until);
    else if (!strcmp(what, "end"))
        add_time("end", several.end);
    else if (!strcmp(what, "fault"))
        add("fault=%s", fault_name(several.fault));
    else
        return false;
    return true;
}

static uint64_t several_wakes(enum life_track track)
{
    (void)track;
    return several_wake(&several);
}

static const struct scene_machine several_machine = {.name = "several",
    .start = several_start,
    .take = several_take,
    .settle = several_settle,
    .call = several_does,
    .show = several_show,
    .wake = several_wakes};

#endif
