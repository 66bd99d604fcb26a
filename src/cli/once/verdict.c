/* SPDX-License-Identifier: MIT */
/*
 * Records the outcome of the work of once.
 *
 * Invariant: a verdict is given up only when --keep-trying is over, or after a
 * signal; and that is always reported, because the next run will find a doubt.
 */
#include "cli/once/verdict.h"

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/report/report.h"

/* The pause between two attempts; doubled each time. */
#define PAUSE_MIN (100 * NS_PER_MS)
#define PAUSE_MAX (2 * NS_PER_S)

/* A signal ends the repetitions, but no request: its answer may be the good
 * one. */
static int tell(
    struct session *session, const struct verdict *verdict, bool *signalled)
{
    int rc = nxl_once_tell_start(session->lock, verdict->kind, verdict->code,
        verdict->data, verdict->length);

    return session_await(session, rc, signalled);
}

static void pause_until(struct session *session, uint64_t time, bool *signalled)
{
    while (!*signalled && nxl_now_ns() < time) {
        if (session_turn(session, time) != NXL_OK)
            return;
        *signalled = session_signal_ending(session) != 0;
    }
}

/* Another attempt cannot succeed. */
static bool is_final(int rc)
{
    return rc == NXL_OK || rc == NXL_LOST || rc == NXL_E_INVALID ||
           rc == NXL_E_DENIED || rc == NXL_E_UNSUPPORTED;
}

static const char *reason(const struct session *session, int rc)
{
    return failure_words(nxl_lock_errmsg(session->lock), rc);
}

int verdict_tell(struct session *session, const struct verdict *verdict)
{
    const struct args *args = session->args;
    uint64_t pause = PAUSE_MIN;
    uint64_t end =
        nxl_now_ns() + (uint64_t)args->work.keep_trying_ms * NS_PER_MS;
    bool signalled = false;
    char text[DURATION_ROOM];
    int rc = tell(session, verdict, &signalled);

    if (!is_final(rc) && !signalled && nxl_now_ns() < end)
        event_report((struct event){.kind = event_of_failure(rc),
                         .why = reason(session, rc)},
            "cannot record the outcome of '%s': %s; trying again for %s",
            args->shown, reason(session, rc),
            duration_text(text, args->work.keep_trying_ms));
    while (!is_final(rc) && !signalled && nxl_now_ns() + pause < end) {
        pause_until(session, nxl_now_ns() + pause, &signalled);
        pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
        rc = tell(session, verdict, &signalled);
    }
    if (rc != NXL_OK)
        event_report(
            (struct event){.kind = EVENT_DOUBT, .why = reason(session, rc)},
            "the outcome of '%s' is not on record: %s; find out whether it was "
            "done, then see: nxlock once show %s",
            args->shown, reason(session, rc), args->pasted);
    return rc;
}
