/* SPDX-License-Identifier: MIT */
/*
 * Keeps: the deadline is one that the server confirmed, also after the lock
 * was lost; a renewal that fails is told once, and once that it came after all.
 */
#include "cli/lease.h"

#include "cli/holder.h"
#include "cli/report.h"

void lease_start(struct lease *lease, struct session *session)
{
    *lease = (struct lease){.session = session,
        .deadline = session->unlocked ? NEVER
                                      : nxl_lock_deadline(session->lock),
        .tries = session->renewal.tries};
}

static void tell(struct lease *lease, const struct renewal *renewal)
{
    const char *name = lease->session->args->shown;
    long long left_s = (long long)(renewal->left_ms / 1000);

    if (renewal->result != NXL_OK && !lease->failing)
        say("cannot renew '%s': %s; trying again for %lld s", name,
            renewal->why, left_s);
    else if (renewal->result == NXL_OK && lease->failing)
        say("renewed '%s' after all, %lld s to spare", name, left_s);
    lease->failing = renewal->result != NXL_OK;
}

void lease_turn(struct lease *lease)
{
    struct session *session = lease->session;
    nxl_event event;

    if (session->unlocked)
        return;
    while (nxl_client_next_event(session->client, &event)) {
        if (event.operation != NXL_OP_HOLD)
            continue;
        lease->lost = true;
        nxl_lock_loss(session->lock, lease->why, sizeof(lease->why));
    }
    if (session->renewal.tries != lease->tries && !lease->lost)
        tell(lease, &session->renewal);
    lease->tries = session->renewal.tries;
    uint64_t deadline = nxl_lock_deadline(session->lock);
    if (deadline > lease->deadline)
        lease->deadline = deadline;
}

int lease_end(struct lease *lease)
{
    struct session *session = lease->session;

    if (session->unlocked)
        return NXL_OK;
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

void lease_give_back(struct session *session)
{
    struct lease lease = {.session = session};

    if (session->unlocked || session->lock == NULL ||
        !nxl_lock_held(session->lock))
        return;
    if (lease_end(&lease) == NXL_OK && session->args->run.at_least_ms > 0)
        lease_clear(&lease);
}
