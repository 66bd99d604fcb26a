/* SPDX-License-Identifier: MIT */
/*
 * The command wait: polls until a lock is free.
 *
 * Invariant: nothing is acquired, so waiting does not disturb other clients.
 * Several names were free one after the other, when each was looked at.
 * The server is polled less and less often, but never later than when the lease
 * that it reported ends.
 */
#include "cli/commands.h"

#include <poll.h>
#include <unistd.h>

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/look/holders.h"
#include "cli/names.h"
#include "cli/report/outbox.h"
#include "cli/look/partial.h"
#include "cli/report/report.h"
#include "cli/run/waiting.h"

#define DELAY_FIRST_MS 50
#define DELAY_MOST_MS 2000
/* How long after the end of a lease to ask again: the server frees a name in
 * the millisecond after it. */
#define AFTER_LEASE_MS 5

struct waiter {
    struct session session;
    struct waiting waiting;
    uint64_t until; /* of nxl_now_ns(); NEVER */
    uint64_t delay_ms;
    uint64_t random;
    size_t name; /* the number of the one that is looked at */
};

/* Draws a delay from the upper half of ms, so that many waiters do not poll at
 * the same time. */
static uint64_t jittered(struct waiter *waiter, uint64_t ms)
{
    waiter->random ^= waiter->random << 13;
    waiter->random ^= waiter->random >> 7;
    waiter->random ^= waiter->random << 17;
    return ms - waiter->random % (ms / 2 + 1);
}

static uint64_t smaller_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Sleeps until the next poll; left_ms: what is left of the holder's lease, or
 * below 0. False: -w has expired. */
static bool pause_for(struct waiter *waiter, int64_t left_ms)
{
    uint64_t now = nxl_now_ns();
    uint64_t ms = jittered(waiter, waiter->delay_ms);

    if (now >= waiter->until)
        return false;
    if (left_ms >= 0)
        ms = smaller_of(ms, (uint64_t)left_ms + AFTER_LEASE_MS);
    if (waiter->until != NEVER)
        ms = smaller_of(ms, (waiter->until - now) / NS_PER_MS + 1);
    waiter->delay_ms = smaller_of(2 * waiter->delay_ms, DELAY_MOST_MS);
    (void)poll(NULL, 0, (int)ms);
    outbox_turn();
    return true;
}

/* Is waiting useless, because the key will never be free? Then an exit code,
 * after reporting why; otherwise 0. */
static int report_hopeless(
    const struct waiter *waiter, const struct holders *holders)
{
    const struct args *args = waiter->session.args;
    int code = waiting_for_data(&waiter->waiting, "wait for", &holders->first);

    if (code == 0 && args->wait_ms == NXL_FOREVER &&
        holders_around(holders, holders_wanted(args)))
        code = waiting_for_enclosing(
            &waiter->waiting, "wait outside of it, or with -w");
    return code;
}

/* Reports that it is free, or that holders leave room for what is wanted. */
static void report_free(
    const struct waiter *waiter, const struct holders *holders)
{
    const struct args *args = waiter->session.args;
    const struct args *all = waiter->session.all ? waiter->session.all : args;
    char words[HOLDER_WORDS];
    int64_t ms = waiting_ms(&waiter->waiting);
    char waited[DURATION_ROOM];
    bool is_free = holders->held.count == 0 || holder_is_over(&holders->first);
    struct event event = {.kind = EVENT_FREE, .waited_ms = ms};

    duration_rough(waited, ms);
    if (names_several(all))
        event_report(event, "'%s' are free%s; waited %s", all->shown,
            args_share(args) ? ", or have room" : "", waited);
    else
        event_report(event, "'%s' is %s; waited %s", args->shown,
            is_free ? "free" : holders_words(words, holders), waited);
}

/* Takes the result of an inspection. True: go on waiting; otherwise *code is
 * the exit code. */
static bool take_inspection(
    struct waiter *waiter, int rc, const struct holders *holders, int *code)
{
    struct session *session = &waiter->session;
    bool held = rc == NXL_OK &&
                !holders_leave_room(holders, holders_wanted(session->args));

    if (rc == NXL_FREE || (rc == NXL_OK && !held)) {
        if (!waiting_is_last(&waiter->waiting, waiter->name)) {
            waiter->name++;
            return true;
        }
        partial_say(session->client);
        report_free(waiter, holders);
        *code = EXIT_DONE;
        return false;
    }
    if (!held && !result_may_pass(rc)) {
        *code = session_failed(session, "look at", rc);
        return false;
    }
    *code = held ? report_hopeless(waiter, holders) : 0;
    if (*code != 0)
        return false;
    waiting_noted(&waiter->waiting, rc, session->lock);
    if (held)
        waiting_for_holder(&waiter->waiting, waiter->name, holders, "");
    waiter->name = 0;
    if (pause_for(waiter, held ? holders->least_ms : -1))
        return true;
    *code = held ? waiting_was_busy(&waiter->waiting, holders)
                 : session_failed(session, "look at", rc);
    return false;
}

static int wait_for(struct waiter *waiter)
{
    struct session *session = &waiter->session;
    int code = 0;
    bool again;

    do {
        struct holders holders = {.first = NXL_HOLDER_INIT};
        int rc = session_enter(session, waiter->name);
        if (rc == NXL_OK)
            rc = holders_look(session, &holders);
        again = take_inspection(waiter, rc, &holders, &code);
        holders_free(&holders);
        session_leave(session);
    } while (again);
    return code;
}

int subcommand_wait(const struct args *args)
{
    struct waiter waiter = {.until = NEVER, .delay_ms = DELAY_FIRST_MS};
    int code = session_open_plain(&waiter.session, args);
    uint64_t now = nxl_now_ns();

    waiter.waiting = (struct waiting){.session = &waiter.session, .since = now};
    waiter.random = (now ^ (uint64_t)getpid() << 32) | 1;
    if (args->wait_ms != NXL_FOREVER)
        waiter.until = now + (uint64_t)args->wait_ms * NS_PER_MS;
    if (code == 0)
        code = wait_for(&waiter);
    session_close(&waiter.session);
    return code;
}
