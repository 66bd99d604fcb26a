/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the deadline is one that the server confirmed, counted from before it
 * was asked; and a lease that was lost is not asked for again.
 */
#include "cli/lease.h"

#include "cli/holder.h"
#include "cli/report.h"

#define NS_PER_MS UINT64_C(1000000)
#define RETRY_MAX_MS 1000

static uint64_t ms_to_ns(int64_t ms)
{
    return (uint64_t)ms * NS_PER_MS;
}

void lease_start(struct lease *lease, struct session *session)
{
    lease->session = session;
    lease->extending = lease->failing = lease->lost = false;
    lease->deadline = lease->renew_at = NEVER;
    if (session->unlocked)
        return;
    lease->deadline = nxl_lock_deadline(session->lock);
    lease->renew_at = nxl_now_ns() + ms_to_ns(session->args->ttl_ms) / 3;
}

static void extend_failed(struct lease *lease, int rc)
{
    const struct session *session = lease->session;
    int64_t retry_ms = session->args->ttl_ms / 10;
    const char *why = nxl_lock_errmsg(session->lock);

    if (retry_ms > RETRY_MAX_MS)
        retry_ms = RETRY_MAX_MS;
    lease->renew_at = nxl_now_ns() + ms_to_ns(retry_ms);
    if (lease->failing)
        return;
    lease->failing = true;
    say("cannot renew '%s': %s; trying again for %lld s",
        session->args->shown, why[0] != '\0' ? why : nxl_strerror(rc),
        (long long)(nxl_lock_remaining_ms(session->lock) / 1000));
}

static void extend_done(struct lease *lease, int rc)
{
    const struct session *session = lease->session;

    if (rc == NXL_LOST) {
        lease->lost = true;
    } else if (rc != NXL_OK) {
        extend_failed(lease, rc);
    } else {
        uint64_t deadline = nxl_lock_deadline(session->lock);
        if (deadline > lease->deadline)
            lease->deadline = deadline;
        if (lease->failing)
            say("renewed '%s' after all, %lld s to spare",
                session->args->shown,
                (long long)(nxl_lock_remaining_ms(session->lock) / 1000));
        lease->failing = false;
    }
}

void lease_turn(struct lease *lease, bool ended)
{
    struct session *session = lease->session;
    uint64_t now = nxl_now_ns();
    nxl_event event;

    while (nxl_client_next_event(session->client, &event)) {
        lease->extending = false;
        if (!ended && !lease->lost)
            extend_done(lease, event.result);
    }
    if (ended || lease->lost || lease->extending || now < lease->renew_at)
        return;
    /* From the start of this one, so that the rate does not depend on how
     * long the answer takes. */
    lease->renew_at = now + ms_to_ns(session->args->ttl_ms) / 3;
    int rc = nxl_lock_extend_start(session->lock, session->args->ttl_ms);
    if (rc == NXL_PENDING)
        lease->extending = true;
    else
        extend_done(lease, rc);
}

uint64_t lease_wake(const struct lease *lease)
{
    return lease->lost || lease->extending ? NEVER : lease->renew_at;
}

int lease_end(struct lease *lease)
{
    struct session *session = lease->session;

    if (session->unlocked)
        return NXL_OK;
    if (lease->extending) {
        nxl_lock_cancel(session->lock);
        (void)session_finish(session, NXL_PENDING);
    }
    lease->extending = false;
    return session_finish(session, nxl_lock_release_start(session->lock));
}

void lease_clear(struct lease *lease)
{
    struct session *session = lease->session;
    nxl_holder holder;

    if (session->unlocked || holder_ask(session, &holder) != NXL_OK ||
        !nxl_holder_is(&holder, nxl_lock_token(session->lock)))
        return;
    (void)session_finish(
        session, nxl_lock_break_start(session->lock, &holder));
}
