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
#include "cli/date.h"
#include "cli/duration.h"
#include "cli/event.h"
#include "cli/foreign.h"
#include "cli/holders.h"
#include "cli/label.h"
#include "cli/line.h"
#include "cli/outage.h"
#include "cli/report.h"

/* When a wait is long enough to report who holds the lock. */
#define LOOK_AFTER NS_PER_S
/* How long -n waits for an expired timestamp: enough for two attempts. */
#define TAKE_OVER_MS 2000
#define LOOK_AGAIN (10 * NS_PER_S)

/* A wait, and a second handle that inspects the lock in the meantime. */
struct wait {
    struct session *session;
    const nxl_once_options *once; /* begin a record too; NULL: only acquire */
    uint64_t since;
    nxl_lock *looker; /* the second handle; NULL: not needed so far */
    uint64_t look_at; /* when to inspect; NEVER: an inspection is running */
    struct outage outage;
    bool reported_holder, reported_refusal;
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

/* The key holds data that nobody will release: waiting for it is useless, and
 * reporting it as busy would hide the mistake. */
static int report_data(struct session *session, const nxl_holder *holder)
{
    char words[HOLDER_WORDS];

    event_report((struct event){.kind = EVENT_FAILED,
                     .why = holder_data_words(words, holder)},
        "cannot acquire '%s': the key %s; " HOLDER_DATA_REMEDY,
        session->args->shown, words);
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

static int report_deadlock(const struct session *session)
{
    event_report((struct event){.kind = EVENT_FAILED},
        HOLDER_DEADLOCK "; run it without nxlock, under another name, or with "
                        "-w",
        session->args->shown);
    return EXIT_USAGE;
}

static int64_t waited_ms(const struct wait *wait)
{
    return ms_between(wait->since, nxl_now_ns());
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
    char words[HOLDER_WORDS], polls[LINE_POLLS] = "", who[HOLDER_WHO];
    struct event event = {.kind = EVENT_WAITING,
        .holder = holders_who(who, holders),
        .left_ms = holders->first.left_ms};

    /* It may be this process: a grant that does not count, or on some of
     * several servers. */
    if (nxl_holder_is(&holders->first, nxl_lock_token(session->lock))) {
        report_refusal(wait);
        return;
    }
    if (wait->reported_holder)
        return;
    wait->reported_holder = true;
    if (session->args->verbose)
        line_polls(polls, session);
    event_report(event, "waiting for '%s': %s%s", session->args->shown,
        holders_words(words, holders), polls);
}

/* Takes the result of the inspection. */
static void take_inspection(struct wait *wait, int result)
{
    struct session *session = wait->session;
    struct holders holders = {.first = NXL_HOLDER_INIT};

    wait->look_at = nxl_now_ns() + LOOK_AGAIN;
    result = holders_take(&holders, session, wait->looker, result);
    if (result == NXL_OK || result == NXL_FREE)
        outage_ended(&wait->outage, session->args, waited_ms(wait));
    if (result == NXL_E_WRONG_TYPE) {
        wait->code = report_wrong_type(session, wait->looker);
    } else if (result == NXL_OK && holder_is_data(&holders.first)) {
        wait->code = report_data(session, &holders.first);
    } else if (result == NXL_OK && waits_for_enclosing(session, &holders)) {
        wait->code = report_deadlock(session);
    } else if (result == NXL_OK) {
        report_waiting(wait, &holders);
    } else if (result == NXL_FREE) {
        report_refusal(wait);
    } else if (!holders.hidden) {
        outage_began(
            &wait->outage, session, result, nxl_lock_errmsg(wait->looker));
    }
    holders_free(&holders);
    if (wait->code != 0)
        nxl_lock_cancel(session->lock);
}

static void start_inspection(struct wait *wait)
{
    const struct args *args = wait->session->args;

    wait->look_at = NEVER;
    if (!wait->looker && nxl_lock_new(&wait->looker, wait->session->client,
                             args->name, NULL) != NXL_OK)
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

/* Reports that the lock stayed busy; returns the exit code. */
static int report_busy(struct wait *wait)
{
    struct session *session = wait->session;
    struct event event = {
        .kind = EVENT_SKIPPED, .skip = SKIP_BUSY, .waited_ms = waited_ms(wait)};
    char words[HOLDER_WORDS], who[HOLDER_WHO];
    struct holders holders;
    int rc = holders_ask(session, &holders);
    int code = session->args->busy_code;

    if (session->caught != 0) {
        code = session_interrupted(session);
    } else if (rc == NXL_E_WRONG_TYPE) {
        code = report_wrong_type(session, session->lock);
    } else if (rc == NXL_OK && holder_is_data(&holders.first)) {
        code = report_data(session, &holders.first);
    } else {
        if (rc == NXL_OK)
            event.holder = holders_who(who, &holders);
        event_report(event, "'%s' is %s", session->args->shown,
            rc == NXL_OK ? holders_words(words, &holders)
                         : "held by another process");
    }
    holders_free(&holders);
    return code;
}

/* Did a dead program of the timestamp scheme leave the key? An acquire without
 * a wait does not read the old value; one that waits takes it over. */
static bool is_left_over(struct session *session)
{
    nxl_holder holder = NXL_HOLDER_INIT;

    return holder_ask(session, &holder) == NXL_OK && session->caught == 0 &&
           holder_is_over(&holder);
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
    int64_t gone = waited_ms(wait);
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
    uint64_t fence = nxl_lock_fence(session->lock);
    char ttl[DURATION_ROOM], text[DURATION_ROOM];
    char waited[64] = "at once", number[64] = "";

    if (took_ms >= AT_ONCE_MS)
        snprintf(waited, sizeof(waited), "after waiting %s",
            duration_rough(text, took_ms));
    if (fence != 0)
        snprintf(number, sizeof(number), ", fencing token %llu",
            (unsigned long long)fence);
    event_report((struct event){.kind = EVENT_ACQUIRED,
                     .waited_ms = took_ms,
                     .left_ms = nxl_lock_remaining_ms(session->lock),
                     .fence = fence},
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
        outage_ended(&wait->outage, session->args, waited_ms(wait));
        report_grant(session, wait->since);
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
        session->down = result_may_pass(rc);
        *code = exit_code_for(rc, session->args->busy_code);
    }
    return false;
}

bool acquire_for(struct session *session, int *code)
{
    uint64_t now = nxl_now_ns();
    struct wait wait = {
        .session = session, .since = now, .look_at = now + LOOK_AFTER};
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
    uint64_t now = nxl_now_ns();
    nxl_once_options options = beginning->options;
    struct wait wait = {.session = session,
        .once = &options,
        .since = now,
        .look_at = now + LOOK_AFTER};

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
            "left '%s' held: its lease ends in %s unless it is renewed",
            args->shown, duration_rough(text, left_ms));
        session_leave_held(&session, EXIT_DONE);
    }
    session_close(&session);
    return code;
}
