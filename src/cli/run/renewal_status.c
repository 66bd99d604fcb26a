/* SPDX-License-Identifier: MIT */
/*
 * Follows the renewals of the session's lock, reports and ends them.
 *
 * Invariant: the deadline is one that the server confirmed, even after the lock
 * was lost. A renewal that fails is reported once, and once when it succeeds
 * again.
 */
#include "cli/run/renewal_status.h"

#include "cli/report/duration.h"
#include "cli/report/event.h"
#include "cli/look/holder.h"
#include "cli/names.h"

void renewal_status_start(
    struct renewal_status *status, struct session *session)
{
    *status = (struct renewal_status){.session = session,
        .deadline = nxl_lock_deadline(session->lock),
        .tries = session->renewal.tries};
}

static void report_renewal(
    struct renewal_status *status, const struct renewal *renewal)
{
    const char *name = status->session->args->shown;
    struct event event = {.left_ms = renewal->left_ms};
    char left[DURATION_ROOM];

    duration_rough(left, renewal->left_ms);
    if (renewal->result != NXL_OK && !status->failing) {
        event.kind = EVENT_NOT_RENEWED;
        event.why = renewal->why;
        event_report(event, "cannot renew '%s': %s; trying again for %s", name,
            renewal->why, left);
    } else if (renewal->result == NXL_OK && status->failing) {
        event.kind = EVENT_RENEWED_AGAIN;
        event_report(event, "renewed '%s' after all, %s to spare", name, left);
    } else if (renewal->result == NXL_OK) {
        event.kind = EVENT_RENEWED;
        event_report(event, "renewed '%s', %s left", name, left);
    }
    status->failing = renewal->result != NXL_OK;
}

/* Several names: was one renewed, and another one not yet? The deadline is the
 * earliest of them. */
static bool is_partial(const struct renewal_status *status, uint64_t deadline)
{
    const struct session *session = status->session;

    return names_several(session->args) && session->renewal.result == NXL_OK &&
           deadline <= status->deadline;
}

void renewal_status_turn(struct renewal_status *status)
{
    struct session *session = status->session;
    nxl_event event;

    while (nxl_client_next_event(session->client, &event)) {
        if (event.operation != NXL_OP_HOLD)
            continue;
        status->lost = true;
        nxl_lock_loss(session->lock, status->why, sizeof(status->why));
    }
    uint64_t deadline = nxl_lock_deadline(session->lock);
    if (session->renewal.tries != status->tries && !status->lost &&
        !is_partial(status, deadline))
        report_renewal(status, &session->renewal);
    status->tries = session->renewal.tries;
    session->renewal.unread = false;
    if (deadline > status->deadline)
        status->deadline = deadline;
}

int renewal_status_end(struct renewal_status *status)
{
    struct session *session = status->session;

    return session_finish(session, nxl_lock_release_start(session->lock));
}

void renewal_status_report_end(
    const struct renewal_status *status, int rc, bool cleared)
{
    const struct session *session = status->session;
    const struct args *args = session->args;
    int64_t held_ms = ms_between(session->granted, nxl_now_ns());
    int64_t more_ms = args->run.at_least_ms - held_ms;
    char text[DURATION_ROOM];

    if (rc != NXL_OK)
        return;
    if (more_ms > 0 && !cleared)
        event_report((struct event){.kind = EVENT_LEFT_HELD,
                         .held_ms = held_ms,
                         .left_ms = more_ms},
            "'%s' %s locked for %s (--at-least %s)", args->shown,
            names_word(args, "stays", "stay"), duration_rough(text, more_ms),
            args->run.at_least);
    else
        event_report((struct event){.kind = EVENT_RELEASED, .held_ms = held_ms},
            "released '%s', held for %s", args->shown,
            duration_rough(text, held_ms));
}

void renewal_status_clear(struct renewal_status *status)
{
    struct session *session = status->session;
    const char *token = nxl_lock_token(session->lock);
    nxl_holder holder = NXL_HOLDER_INIT;

    for (size_t i = 0; i < names_count(session->args); i++) {
        if (session_enter(session, i) == NXL_OK &&
            holder_ask(session, &holder) == NXL_OK &&
            nxl_holder_is(&holder, token))
            (void)session_finish(
                session, nxl_lock_break_start(session->lock, &holder));
        session_leave(session);
    }
}

void renewal_status_give_back(struct session *session)
{
    struct renewal_status status = {.session = session};

    if (!session->lock || !nxl_lock_held(session->lock))
        return;
    int rc = renewal_status_end(&status);
    if (rc == NXL_OK && session->args->run.at_least_ms > 0)
        renewal_status_clear(&status);
    renewal_status_report_end(&status, rc, true);
}
