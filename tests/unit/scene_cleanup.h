/* SPDX-License-Identifier: MIT */
/*
 * The machine "cleanup" of scenes (unit/scene.h): the removal of one token from
 * one server, whose key lives for 3 s.
 *
 * Steps: start:CAUSE begins it, for token, release-sent, acquire-sent, in-use
 * or lost; start:token:10 with a limit at 10 ms. next asks what to send to the
 * process of the first connection, next:b to another one, next:- to one that is
 * unknown. m, n and x answer the deletion, g and b the acquire; in-line: the
 * token may still be in its line. killed, kill-refused; cut loses the
 * connection with a command (cut:9 that of client 9, not of 7); withdrawn;
 * unused:10 the token is no longer in use, with a limit. adopt the token, or
 * adopt:applied. expires: nothing happens until its end.
 *
 * Words: what is sent; the new state, if it has another one; kept by an
 * adoption, or cannot.
 */
#ifndef NXLOCK_TESTS_SCENE_CLEANUP_H
#define NXLOCK_TESTS_SCENE_CLEANUP_H

#include "core/cleanup.h"
#include "unit/scene.h"

#define RUN_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RUN_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct cleanup removal;
static enum cleanup_state removal_said;

static void removal_start(void)
{
    removal = (struct cleanup){.state = CLEANUP_IDLE};
    removal_said = CLEANUP_IDLE;
}

static void removal_settle(void)
{
    static const char *const states[] = {[CLEANUP_IDLE] = "idle",
        [CLEANUP_DELETING] = "deleting",
        [CLEANUP_KILLING] = "killing",
        [CLEANUP_KILL_DELETING] = "kill-deleting",
        [CLEANUP_WATCHING] = "watching",
        [CLEANUP_DONE] = "done",
        [CLEANUP_GIVEN_UP] = "given-up"};
    if (removal.state != removal_said)
        add("%s", states[removal.state]);
    removal_said = removal.state;
}

/* A limit in ms, behind a ':'; 0: there is none. */
static uint64_t removal_limit(const char *text)
{
    return text ? scene_time(text, NULL) : 0;
}

static void removal_begin(const char *cause)
{
    static const char *const causes[] = {[CLEANUP_TOKEN] = "token",
        [CLEANUP_RELEASE_SENT] = "release-sent",
        [CLEANUP_ACQUIRE_SENT] = "acquire-sent",
        [CLEANUP_ACQUIRE_IN_USE] = "in-use",
        [CLEANUP_ACQUIRE_LOST] = "lost"};
    size_t len = strcspn(cause, ":");
    for (int i = CLEANUP_TOKEN; i <= CLEANUP_ACQUIRE_LOST; i++)
        if (strlen(causes[i]) == len && !strncmp(cause, causes[i], len))
            cleanup_start(&removal, (enum cleanup_cause)i, 3 * NS_PER_S,
                removal_limit(cause[len] ? cause + len + 1 : NULL), scene.now);
}

static void removal_sends(const char *run_id)
{
    static const char *const words[] = {
        "nothing", "kill", "delete", "kill+delete"};
    static const enum cleanup_state states[] = {
        CLEANUP_IDLE, CLEANUP_KILLING, CLEANUP_DELETING, CLEANUP_KILL_DELETING};
    unsigned sent = cleanup_next(&removal, run_id, scene.now);
    add("%s", words[sent]);
    removal_said = states[sent];
}

static void removal_adopts(bool applied)
{
    if (!cleanup_can_cancel(&removal)) {
        add("cannot");
        return;
    }
    cleanup_cancel(&removal, applied);
    if (!cleanup_over(&removal))
        add(removal.in_use ? "kept" : "kept-unused");
}

static void removal_expires(void)
{
    uint64_t until = removal.until;
    add_time("until", until);
    cleanup_tick(&removal, until - 1);
    assert_int_equal(removal.state, CLEANUP_IDLE);
    cleanup_tick(&removal, until);
}

static bool removal_call(const char *word, const char *argument)
{
    const struct outcome in_line = {.kind = OUTCOME_NOT_MINE, .unsure = true};
    if (!strcmp(word, "start"))
        removal_begin(argument);
    else if (!strcmp(word, "next"))
        removal_sends(!argument ? RUN_A : *argument == 'b' ? RUN_B : "");
    else if (!strcmp(word, "in-line"))
        cleanup_delete_answered(&removal, &in_line, scene.now);
    else if (!strcmp(word, "killed") || !strcmp(word, "kill-refused"))
        cleanup_kill_answered(&removal, word[4] == 'e', scene.now);
    else if (!strcmp(word, "cut"))
        cleanup_connection_lost(&removal,
            argument ? strtol(argument, NULL, 10) : 7, RUN_A, scene.now);
    else if (!strcmp(word, "withdrawn"))
        cleanup_withdrawn(&removal, scene.now);
    else if (!strcmp(word, "unused"))
        cleanup_not_in_use(&removal, removal_limit(argument), scene.now);
    else if (!strcmp(word, "adopt"))
        removal_adopts(argument != NULL);
    else if (!strcmp(word, "expires"))
        removal_expires();
    else
        return false;
    return true;
}

static bool removal_show(const char *what)
{
    if (!strcmp(what, "until"))
        add_time("until", removal.until);
    else if (!strcmp(what, "next"))
        add_time("next", removal.next_try);
    else if (!strcmp(what, "client"))
        add("client=%d", (int)removal.client_id);
    else if (!strcmp(what, "late"))
        add("late=%d", cleanup_too_late(&removal, scene.now));
    else
        return false;
    return true;
}

static void removal_answer(
    enum life_track track, unsigned server, const struct outcome *outcome)
{
    (void)track, (void)server;
    if (outcome->kind == OUTCOME_GRANTED || outcome->kind == OUTCOME_BUSY)
        cleanup_acquire_answered(
            &removal, outcome->kind == OUTCOME_BUSY, scene.now);
    else
        cleanup_delete_answered(&removal, outcome, scene.now);
}

static void removal_tick(void)
{
    cleanup_tick(&removal, scene.now);
}

static const struct scene_machine cleanup_machine = {.name = "cleanup",
    .start = removal_start,
    .settle = removal_settle,
    .call = removal_call,
    .show = removal_show,
    .answer = removal_answer,
    .tick = removal_tick};

#endif
