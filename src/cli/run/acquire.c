/* SPDX-License-Identifier: MIT */
/*
 * Acquires the lock for run, once and acquire: tries, waits, reports who holds
 * it, and explains a failure.
 *
 * Invariant: a lock is left held only after its token was printed; every other
 * path out of acquire releases it. A wait of any length checks whether it can
 * end at all: what holds the key may be no lock, or an enclosing run.
 */
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/clock.h"
#include "cli/report/date.h"
#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/look/foreign.h"
#include "cli/look/holders.h"
#include "cli/run/label.h"
#include "cli/look/line.h"
#include "cli/names.h"
#include "cli/run/waiting.h"
#include "cli/report/report.h"

/* When a wait is long enough to report who holds the lock. */
#define LOOK_AFTER NS_PER_S
/* How long -n waits for an expired timestamp: enough for two attempts. */
#define TAKE_OVER_MS 2000
#define LOOK_AGAIN (10 * NS_PER_S)

/* A wait, and a second handle that inspects the lock in the meantime. Several
 * names are inspected one after the other, in the order of the wait: it is for
 * the first one that another has. */
struct wait {
    struct waiting waiting;
    struct session *session;
    const nxl_once_options *once; /* begin a record too; NULL: only acquire */
    nxl_lock *looker; /* the second handle; NULL: not needed so far */
    uint64_t look_at; /* when to inspect; NEVER: an inspection is running */
    size_t order[NXL_NAMES_MAX]; /* the numbers of the names, sorted */
    size_t place;                /* in order: of the name that is inspected */
    bool blocked;                /* an earlier name is held by another */
    bool reported_refusal;
    int code; /* exit code that ends the wait; 0: it goes on */
};

/* The key holds a list or the like: not a lock, and no skipped run either. */
static int report_wrong_type(struct session *session, const nxl_lock *asker)
{
    struct event event = {.kind = EVENT_FAILED, .why = nxl_lock_errmsg(asker)};

    event_report(
        event, "cannot acquire '%s': %s", session->args->shown, event.why);
    return EXIT_UNAVAILABLE;
}

/* Does a waiter that is before us in line have no room beside an enclosing run?
 * That run waits for us, and nobody passes the waiter. */
static bool waits_behind_blocked(
    struct session *session, const struct holders *holders)
{
    struct line line;

    line_read(session, &line);
    for (size_t i = 0; i < line.shown; i++) {
        const struct line_waiter *waiter = &line.list[i];
        struct share share = {
            (uint32_t)waiter->who.weight, (uint32_t)waiter->who.permits};
        if (nxl_holder_is(&waiter->who, nxl_lock_token(session->lock)))
            break;
        if (!waiter->dead && holders_around(holders, share))
            return true;
    }
    return false;
}

/* Would the wait deadlock? The enclosing run waits for us, unless we are in its
 * background, so only an unlimited wait is refused. */
static bool waits_for_enclosing(
    struct session *session, const struct holders *holders)
{
    struct share none = {0, 0};

    /* Is there any enclosing run among them? */
    if (session->args->wait_ms != NXL_FOREVER || !holders_around(holders, none))
        return false;
    return holders_around(holders, holders_wanted(session->args)) ||
           waits_behind_blocked(session, holders);
}

/* Nobody holds the lock, but the attempts to acquire it fail. */
static void report_refusal(struct wait *wait)
{
    const char *why = wait->session->refused;

    if (wait->reported_refusal || !*why)
        return;
    wait->reported_refusal = true;
    event_report((struct event){.kind = EVENT_WAITING, .why = why},
        "waiting for '%s', which is not held: %s", wait->session->args->shown,
        why);
}

static void report_waiting(struct wait *wait, const struct holders *holders)
{
    struct session *session = wait->session;
    char polls[LINE_POLLS] = "";

    if (wait->blocked)
        return;
    /* It may be this process: a grant that does not count, or on some of
     * several servers; or a name that is held while others are waited for. */
    if (nxl_holder_is(&holders->first, nxl_lock_token(session->lock))) {
        if (waiting_is_last(&wait->waiting, wait->place))
            report_refusal(wait);
        return;
    }
    wait->blocked = true;
    if (session->args->verbose)
        line_polls(polls, session);
    waiting_for_holder(
        &wait->waiting, wait->order[wait->place], holders, polls);
}

/* After the inspection of a name: that of the next one, at once; after the last
 * one, from the first one later. */
static void look_at_next(struct wait *wait)
{
    bool last = waiting_is_last(&wait->waiting, wait->place);

    wait->look_at = nxl_now_ns() + (last ? LOOK_AGAIN : 0);
    wait->blocked = wait->blocked && !last;
    if (names_several(wait->session->all)) {
        nxl_lock_free(wait->looker);
        wait->looker = NULL;
    }
    wait->place = last ? 0 : wait->place + 1;
}

/* Can the wait end? Reports who holds the lock, and returns 0; or an exit code,
 * after reporting why not. */
static int judge_holders(struct wait *wait, const struct holders *holders)
{
    int code = waiting_for_data(&wait->waiting, "acquire", &holders->first);

    if (code != 0)
        return code;
    if (waits_for_enclosing(wait->session, holders))
        return waiting_for_enclosing(&wait->waiting,
            "run it without nxlock, under another name, or with -w");
    report_waiting(wait, holders);
    return 0;
}

/* Takes the result of the inspection. */
static void take_inspection(struct wait *wait, int result)
{
    struct session *session = wait->session;
    struct holders holders = {.first = NXL_HOLDER_INIT};

    session_about(session, wait->order[wait->place]);
    result = holders_take(&holders, session, wait->looker, result);
    if (result != NXL_E_WRONG_TYPE)
        waiting_noted(&wait->waiting, result, wait->looker);
    if (result == NXL_E_WRONG_TYPE)
        wait->code = report_wrong_type(session, wait->looker);
    else if (result == NXL_OK)
        wait->code = judge_holders(wait, &holders);
    else if (result == NXL_FREE && !wait->blocked &&
             waiting_is_last(&wait->waiting, wait->place))
        report_refusal(wait);
    holders_free(&holders);
    look_at_next(wait);
    session_about_all(session);
    if (wait->code != 0)
        nxl_lock_cancel(session->lock);
}

static void start_inspection(struct wait *wait)
{
    struct session *session = wait->session;
    size_t i = wait->order[wait->place];

    wait->look_at = NEVER;
    if (!wait->looker && nxl_lock_new(&wait->looker, session->client,
                             names_at(session->args, i), NULL) != NXL_OK)
        return;
    int rc = nxl_lock_inspect_start(wait->looker);
    if (rc != NXL_PENDING)
        take_inspection(wait, rc);
}

/* The result of the acquire that was started. */
static int finish_acquire(struct wait *wait)
{
    struct session *session = wait->session;

    for (;;) {
        nxl_event event;
        while (nxl_client_next_event(session->client, &event)) {
            if (event.lock == session->lock)
                return event.result;
            take_inspection(wait, event.result);
        }
        if (wait->look_at <= nxl_now_ns())
            start_inspection(wait);
        int rc = session_turn(session, wait->look_at);
        if (rc != NXL_OK)
            return rc;
        session_cancel_on_signal(session);
    }
}

/* Reports, after an inspection with that result, that the session's one name
 * stayed busy; returns the exit code. */
static int report_busy_name(
    struct wait *wait, int rc, const struct holders *holders)
{
    struct session *session = wait->session;
    int code = 0;

    if (session->caught != 0)
        return session_interrupted(session);
    if (rc == NXL_E_WRONG_TYPE)
        return report_wrong_type(session, session->lock);
    if (rc == NXL_OK)
        code = waiting_for_data(&wait->waiting, "acquire", &holders->first);
    return code != 0 ? code
                     : waiting_was_busy(
                           &wait->waiting, rc == NXL_OK ? holders : NULL);
}

/* Does what was found keep the session's name from being acquired? */
static bool keeps_out(
    const struct session *session, int rc, const struct holders *holders)
{
    return session->caught != 0 || rc == NXL_E_WRONG_TYPE ||
           (rc == NXL_OK &&
               !holders_leave_room(holders, holders_wanted(session->args)));
}

/* The names may have become free since. */
static int report_busy_before(struct wait *wait)
{
    struct session *session = wait->session;

    event_report((struct event){.kind = EVENT_SKIPPED,
                     .result = RESULT_BUSY,
                     .waited_ms = waiting_ms(&wait->waiting)},
        "one of '%s' was held by another process", session->args->shown);
    return session->args->busy_code;
}

/* Reports that the lock stayed busy, or the first of several names that did;
 * returns the exit code. */
static int report_busy(struct wait *wait)
{
    struct session *session = wait->session;
    size_t count = names_count(session->args);
    bool found = false;
    int code = 0;

    for (size_t i = 0; !found && i < count; i++) {
        struct holders holders = {.first = NXL_HOLDER_INIT};
        int rc = session_enter(session, wait->order[i]);
        if (rc == NXL_OK)
            rc = holders_ask(session, &holders);
        found = count == 1 || keeps_out(session, rc, &holders);
        if (found)
            code = report_busy_name(wait, rc, &holders);
        holders_free(&holders);
        session_leave(session);
    }
    return found ? code : report_busy_before(wait);
}

/* Did a dead program of the timestamp scheme leave the key, and is no other
 * name held? An acquire without a wait does not read the old value; one that
 * waits takes it over. */
static bool is_left_over(struct session *session)
{
    size_t count = names_count(session->args), over = 0, held = 0;

    for (size_t i = 0; held == 0 && session->caught == 0 && i < count; i++) {
        nxl_holder holder = NXL_HOLDER_INIT;
        if (session_enter(session, i) == NXL_OK &&
            holder_ask(session, &holder) == NXL_OK)
            *(holder_is_over(&holder) ? &over : &held) += 1;
        session_leave(session);
    }
    return over > 0 && held == 0 && session->caught == 0;
}

static int attempt(struct wait *wait, int64_t wait_ms)
{
    nxl_lock *lock = wait->session->lock;
    int rc = wait->once ? nxl_once_begin_start(lock, wait->once, wait_ms)
                        : nxl_lock_acquire_start(lock, wait_ms);

    return rc == NXL_PENDING ? finish_acquire(wait) : rc;
}

/* What is left of the wait. */
static int64_t wait_left(const struct wait *wait)
{
    int64_t wait_ms = wait->session->args->wait_ms;

    if (wait_ms <= 0)
        return wait_ms;
    int64_t gone = waiting_ms(&wait->waiting);
    return gone < wait_ms ? wait_ms - gone : 0;
}

/* Acquires without a fencing token, because the server cannot create one. */
static int acquire_without_fence(struct wait *wait, int rc)
{
    struct session *session = wait->session;
    int made = session_drop_fence(session, nxl_lock_errmsg(session->lock));

    return made == NXL_OK ? attempt(wait, wait_left(wait)) : rc;
}

static int acquire_with_fallbacks(struct session *session, struct wait *wait)
{
    int rc = attempt(wait, session->args->wait_ms);

    if (session->fenced && (rc == NXL_E_UNSUPPORTED || rc == NXL_E_DENIED))
        rc = acquire_without_fence(wait, rc);
    if (rc != NXL_BUSY || session->args->wait_ms != 0 || !is_left_over(session))
        return rc;
    return attempt(wait, TAKE_OVER_MS);
}

/* A shorter time is reported as "at once": the request itself takes that. */
#define AT_ONCE_MS 250

static void report_grant(struct session *session, uint64_t since)
{
    const struct args *args = session->args;
    int64_t took_ms = ms_between(since, session->granted);
    uint64_t fence = nxl_lock_fence(session->lock), fences[NXL_NAMES_MAX];
    char ttl[DURATION_ROOM], text[DURATION_ROOM];
    char waited[64] = "at once", number[64] = "";

    for (size_t i = 0; i < names_count(args); i++)
        fences[i] = nxl_lock_fence_of(session->lock, i);

    if (took_ms >= AT_ONCE_MS)
        snprintf(waited, sizeof(waited), "after waiting %s",
            duration_rough(text, took_ms));
    if (fence != 0)
        snprintf(number, sizeof(number), ", fencing token %llu",
            (unsigned long long)fence);
    event_report((struct event){.kind = EVENT_ACQUIRED,
                     .waited_ms = took_ms,
                     .left_ms = nxl_lock_remaining_ms(session->lock),
                     .fence = fence,
                     .fences = fences},
        "acquired '%s' %s, for %s%s", args->shown, waited,
        duration_text(ttl, args->ttl_ms), number);
}

/* Is the lock held, now that an attempt ended with rc? False: *code is set. */
static bool take_result(struct wait *wait, int rc, int *code)
{
    struct session *session = wait->session;

    if (session->caught != 0) {
        *code = session_interrupted(session);
    } else if (wait->code != 0) {
        *code = wait->code;
    } else if (rc == NXL_OK && nxl_lock_held(session->lock)) {
        session->granted = nxl_now_ns();
        waiting_noted(&wait->waiting, NXL_OK, session->lock);
        report_grant(session, wait->waiting.since);
        return true;
    } else if (rc == NXL_BUSY) {
        *code = report_busy(wait);
    } else if (rc == NXL_OK || rc == NXL_LOST) {
        event_report((struct event){.kind = EVENT_FAILED},
            "cannot acquire '%s': the answer arrived after the lease "
            "had expired",
            session->args->shown);
        *code = EXIT_UNAVAILABLE;
    } else {
        session_complain(session, "acquire", rc);
        *code = exit_code_for(rc, session->args->busy_code);
    }
    return false;
}

static struct wait wait_for(
    struct session *session, const nxl_once_options *once)
{
    uint64_t now = nxl_now_ns();

    return (struct wait){.session = session,
        .waiting = {.session = session, .since = now},
        .once = once,
        .look_at = now + LOOK_AFTER};
}

bool acquire_for(struct session *session, int *code)
{
    struct wait wait = wait_for(session, NULL);

    names_order(session->args, wait.order);
    int rc = acquire_with_fallbacks(session, &wait);

    nxl_lock_free(wait.looker);
    return take_result(&wait, rc, code);
}

/* Notes the attempt that is in doubt. */
static void note_doubt(struct session *session, struct attempt *attempt)
{
    nxl_record record = NXL_RECORD_INIT;

    if (nxl_once_record(session->lock, &record) != NXL_OK)
        return;
    attempt->number = record.attempt;
    snprintf(attempt->by, sizeof(attempt->by), "%s", foreign(record.label));
}

/* Notes which attempt was begun, and since when there is a doubt: from the
 * first attempt on, as the charge may be that one's. The holder that was noted
 * is left out if others have begun in between. */
static void note_attempt(struct session *session, struct attempt *attempt)
{
    nxl_record record = NXL_RECORD_INIT;
    int64_t doubtful = attempt->number;

    if (nxl_once_record(session->lock, &record) != NXL_OK)
        return;
    attempt->number = record.attempt;
    attempt->doubts = record.doubts;
    attempt->since[0] = '\0';
    if (record.doubts > 0)
        date_rfc3339(attempt->since, record.first_ms / MS_PER_S);
    if (record.doubts == 0 || record.attempt != doubtful + 1)
        attempt->by[0] = '\0';
}

bool acquire_once(
    struct session *session, struct beginning *beginning, int *code)
{
    nxl_once_options options = beginning->options;
    struct wait wait = wait_for(session, &options);

    /* First without, to learn who is in doubt. */
    options.mode = NXL_ONCE_HALT;
    int rc = attempt(&wait, session->args->wait_ms);
    if (rc == NXL_DOUBT && beginning->options.mode == NXL_ONCE_RETRY &&
        session->caught == 0) {
        note_doubt(session, &beginning->attempt);
        options.mode = NXL_ONCE_RETRY;
        rc = attempt(&wait, wait_left(&wait));
    }
    nxl_lock_free(wait.looker);
    beginning->result = rc;
    beginning->begun = rc == NXL_OK;
    if (rc == NXL_OK)
        note_attempt(session, &beginning->attempt);
    if (session->caught == 0 && wait.code == 0 &&
        (rc == NXL_DONE || rc == NXL_DOUBT || rc == NXL_MISMATCH))
        return true;
    return take_result(&wait, rc, code);
}

/* The caller has no token, so nobody could release the lock. */
static void release_unprinted(struct session *session, const char *why)
{
    const char *name = session->args->shown;
    int rc = session_finish(session, nxl_lock_release_start(session->lock));
    char left[DURATION_ROOM];

    if (rc == NXL_OK) {
        event_report(
            (struct event){.kind = EVENT_RELEASED}, "released '%s'", name);
        event_report((struct event){.kind = EVENT_FAILED, .why = why},
            "cannot print the token of '%s': %s; released", name, why);
    } else {
        event_report((struct event){.kind = EVENT_FAILED, .why = why},
            "cannot print the token of '%s': %s; cannot release it: %s; it "
            "expires within %s",
            name, why, failure_words(nxl_lock_errmsg(session->lock), rc),
            duration_text(left, session->args->ttl_ms));
    }
}

/* False: the caller did not get the token, and the lock is not held. */
static bool print_token(struct session *session, int *code)
{
    if (!session_can_print(session, nxl_lock_deadline(session->lock))) {
        *code = session_interrupted(session);
        if (*code != 0)
            return false;
        event_report((struct event){.kind = EVENT_LOST},
            "the token of '%s' was not read before its lease expired",
            session->args->shown);
    } else if (puts(nxl_lock_token(session->lock)) >= 0 &&
               fflush(stdout) == 0) {
        return true;
    } else {
        release_unprinted(session, strerror(errno));
    }
    *code = EXIT_INTERNAL;
    return false;
}

int subcommand_acquire(const struct args *args)
{
    struct session session;
    char label[LABEL_ROOM], text[DURATION_ROOM];
    int code = session_open(&session, args, label_of_caller(label));

    if (code == 0 && acquire_for(&session, &code) &&
        print_token(&session, &code)) {
        int64_t left_ms = nxl_lock_remaining_ms(session.lock);
        event_report(
            (struct event){.kind = EVENT_LEFT_HELD, .left_ms = left_ms},
            "left '%s' held: %s in %s unless it is renewed", args->shown,
            names_word(args, "its lease ends", "their leases end"),
            duration_rough(text, left_ms));
        session_leave_held(&session, EXIT_DONE);
    }
    session_close(&session);
    return code;
}
