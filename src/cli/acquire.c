/* SPDX-License-Identifier: MIT */
/*
 * Keeps: a lock is left held only after its token was printed; every other
 * way out of acquire releases it. And nobody waits in silence for what will
 * never come: a wait of some length is looked at.
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/holder.h"
#include "cli/label.h"
#include "cli/report.h"

/* A wait shorter than that is not worth a word. */
#define LOOK_AFTER NS_PER_S
/* Enough to ask twice. */
#define TAKE_OVER_MS 2000
#define LOOK_AGAIN (10 * NS_PER_S)

/* A wait, and a second handle that asks meanwhile what it is for. */
struct wait {
    struct session *session;
    uint64_t since;
    nxl_lock *looker; /* NULL: it has not looked yet */
    uint64_t look_at; /* NEVER: it is looking */
    bool told_fault;  /* that the server cannot be asked */
    bool told_holder;
    int code;         /* exit code that ends the wait; 0: it goes on */
};

/* The key holds a list or the like: not a lock, and no skipped run either. */
static int in_other_use(struct session *session, const nxl_lock *asker)
{
    say("cannot acquire '%s': %s", session->args->shown,
        nxl_lock_errmsg(asker));
    return EXIT_UNAVAILABLE;
}

/* Nobody will release that, so it is neither a skipped run nor worth a wait. */
static int holds_data(struct session *session, const nxl_holder *holder)
{
    char words[HOLDER_WORDS];

    say("cannot acquire '%s': the key %s; " HOLDER_DATA_REMEDY,
        session->args->shown, holder_data_words(words, holder));
    return EXIT_UNAVAILABLE;
}

/* It ends only after us, unless we are in its background; so who limits the
 * wait may wait. */
static bool is_around(const struct session *session, const nxl_holder *holder)
{
    return session->args->wait_ms == NXL_FOREVER && holder_is_around(holder);
}

static int held_around(const struct session *session)
{
    say("'%s' is held by the 'nxlock run' around this one, which waits for "
        "this to end; run it without nxlock, under another name, or with -w",
        session->args->shown);
    return EXIT_USAGE;
}

/* The time of a dead program: who draws a number does not take it over, so it
 * is removed, if it still stands. */
static bool clears(const struct session *session, const nxl_holder *holder)
{
    return session->fenced && holder_is_over(holder);
}

static void clear(struct wait *wait, const nxl_holder *holder)
{
    if (nxl_lock_break_start(wait->looker, holder) == NXL_PENDING)
        wait->look_at = NEVER;
}

/* What the looker found. */
static void looked(struct wait *wait, int result)
{
    struct session *session = wait->session;
    char words[HOLDER_WORDS];
    nxl_holder holder;

    wait->look_at = nxl_now_ns() + LOOK_AGAIN;
    if (result == NXL_OK)
        result = nxl_lock_holder(wait->looker, &holder);
    if (result == NXL_E_WRONG_TYPE) {
        wait->code = in_other_use(session, wait->looker);
    } else if (result == NXL_OK && holder_is_data(&holder)) {
        wait->code = holds_data(session, &holder);
    } else if (result == NXL_OK && is_around(session, &holder)) {
        wait->code = held_around(session);
    } else if (result == NXL_OK && clears(session, &holder)) {
        clear(wait, &holder);
    } else if (result == NXL_OK) {
        if (!wait->told_holder && session_talks(session))
            say("waiting for '%s': %s", session->args->shown,
                holder_words(words, &holder));
        wait->told_holder = true;
    } else {
        /* No normal course of things, so said even where nobody looks. */
        if (result != NXL_FREE && !wait->told_fault) {
            wait->told_fault = true;
            say("waiting for '%s': %s", session->args->shown,
                nxl_lock_errmsg(wait->looker));
        }
    }
    if (wait->code != 0)
        nxl_lock_cancel(session->lock);
}

static void look(struct wait *wait)
{
    const struct args *args = wait->session->args;

    wait->look_at = NEVER;
    if (wait->looker == NULL &&
        nxl_lock_new(&wait->looker, wait->session->client, args->name, NULL) !=
            NXL_OK)
        return;
    int rc = nxl_lock_inspect_start(wait->looker);
    if (rc != NXL_PENDING)
        looked(wait, rc);
}

/* The result of the acquire that was started. */
static int wait_for_it(struct wait *wait)
{
    struct session *session = wait->session;

    for (;;) {
        nxl_event event;
        while (nxl_client_next_event(session->client, &event)) {
            if (event.lock == session->lock)
                return event.result;
            if (event.operation == NXL_OP_BREAK)
                wait->look_at = nxl_now_ns() + LOOK_AGAIN;
            else
                looked(wait, event.result);
        }
        if (wait->look_at <= nxl_now_ns())
            look(wait);
        int rc = session_turn(session, wait->look_at);
        if (rc != NXL_OK)
            return rc;
        session_cancel_on_signal(session);
    }
}

/* The wait, if there was one, is over. */
static int busy(struct session *session)
{
    char words[HOLDER_WORDS];
    nxl_holder holder;
    int rc = holder_ask(session, &holder);

    if (session->caught != 0)
        return session_interrupted(session);
    if (rc == NXL_E_WRONG_TYPE)
        return in_other_use(session, session->lock);
    if (rc == NXL_OK && holder_is_data(&holder))
        return holds_data(session, &holder);
    if (session_talks(session))
        say("'%s' is %s", session->args->shown,
            rc == NXL_OK ? holder_words(words, &holder)
                         : "held by somebody else");
    return session->args->busy_code;
}

/* Of a result: a try without a wait does not ask what stands there. If it is
 * the time of a dead program, only who waits a little takes it over. */
static bool is_over(struct session *session)
{
    nxl_holder holder;

    if (holder_ask(session, &holder) != NXL_OK || session->caught != 0 ||
        !holder_is_over(&holder))
        return false;
    return !clears(session, &holder) ||
           session_finish(session,
               nxl_lock_break_start(session->lock, &holder)) == NXL_OK;
}

static int attempt(struct wait *wait, int64_t wait_ms)
{
    int rc = nxl_lock_acquire_start(wait->session->lock, wait_ms);

    return rc == NXL_PENDING ? wait_for_it(wait) : rc;
}

/* What is left of the wait. */
static int64_t left_of(const struct wait *wait)
{
    int64_t wait_ms = wait->session->args->wait_ms;

    if (wait_ms <= 0)
        return wait_ms;
    int64_t gone = (int64_t)((nxl_now_ns() - wait->since) / NS_PER_MS);
    return gone < wait_ms ? wait_ms - gone : 0;
}

/* Without a number, if the server cannot draw one and none is insisted on. */
static int without_fence(struct wait *wait, int rc)
{
    struct session *session = wait->session;
    char why[512];

    snprintf(why, sizeof(why), "%s", nxl_lock_errmsg(session->lock));
    int made = session_drop_fence(session);
    if (made != NXL_OK)
        return rc;
    rc = attempt(wait, left_of(wait));
    if (rc == NXL_OK && session->args->verbose)
        say("'%s' has no fencing number: %s", session->args->shown, why);
    return rc;
}

static int try_for(struct session *session, struct wait *wait)
{
    int rc = attempt(wait, session->args->wait_ms);

    if (session->fenced && session->args->run.fence == FENCE_IF_CAN &&
        (rc == NXL_E_UNSUPPORTED || rc == NXL_E_DENIED))
        rc = without_fence(wait, rc);
    bool looks = session->args->wait_ms == 0 || session->fenced;
    if (rc != NXL_BUSY || !looks || !is_over(session))
        return rc;
    return attempt(wait, TAKE_OVER_MS);
}

/* Nobody could say yes or no, but somebody may in a while. */
static bool is_down(int rc)
{
    return rc == NXL_E_UNREACHABLE || rc == NXL_E_REFUSED || rc == NXL_UNKNOWN;
}

bool acquire_for(struct session *session, int *code)
{
    uint64_t now = nxl_now_ns();
    struct wait wait = {
        .session = session, .since = now, .look_at = now + LOOK_AFTER};
    int rc = try_for(session, &wait);

    nxl_lock_free(wait.looker);
    if (session->caught != 0) {
        *code = session_interrupted(session);
    } else if (wait.code != 0) {
        *code = wait.code;
    } else if (rc == NXL_OK && nxl_lock_held(session->lock)) {
        return true;
    } else if (rc == NXL_BUSY) {
        *code = busy(session);
    } else if (rc == NXL_OK || rc == NXL_LOST) {
        say("cannot acquire '%s': it was granted too late, its lease was "
            "over on arrival", session->args->shown);
        *code = EXIT_UNAVAILABLE;
    } else {
        session_complain(session, "acquire", rc);
        session->down = is_down(rc);
        *code = exit_code_for(rc, session->args->busy_code);
    }
    return false;
}

/* False: nobody has the token, so the lock must not stay. */
static bool print_token(struct session *session, int *code)
{
    const char *name = session->args->shown;

    if (!session_can_print(session, nxl_lock_deadline(session->lock))) {
        *code = session_interrupted(session);
        if (*code != 0)
            return false;
        say("nobody took the token of '%s' in the time of its lease; released",
            name);
    } else if (puts(nxl_lock_token(session->lock)) >= 0 &&
               fflush(stdout) == 0) {
        return true;
    } else {
        say("cannot print the token of '%s': %s; released", name,
            strerror(errno));
    }
    *code = EXIT_INTERNAL;
    return false;
}

int command_acquire(const struct args *args)
{
    struct session session;
    char label[LABEL_ROOM];
    int code = session_open(&session, args, label_of_caller(label));

    if (code == 0 && acquire_for(&session, &code) &&
        print_token(&session, &code))
        session_leave_held(EXIT_DONE);
    session_close(&session);
    return code;
}
