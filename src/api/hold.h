/* SPDX-License-Identifier: MIT */
/*
 * Locks that are kept alive (options.renew). The renewals of a lock are
 * operations of a second handle, its agent, which has the same token but a
 * message and requests of its own: so they come in nobody's way, and a call on
 * the lock is never in theirs. All calls need the client's mutex.
 */
#ifndef NXLOCK_API_HOLD_H
#define NXLOCK_API_HOLD_H

#include "api/client.h"
#include "core/holding.h"

struct hold {
    struct nxl_lock *owner, *agent;
    enum { HOLD_OFF, HOLD_ON, HOLD_LOOKING } state;
    struct holding machine;
    struct timer timer; /* in client->holds */
    struct list lost;   /* in client->losses until the event is taken */
    enum nxl_loss loss;
    struct text why;    /* of that */
};

/* For lock, whose options ask for it; agent is its own from then on. */
bool hold_make(struct nxl_lock *lock, struct nxl_lock *agent);
/* Forgets it all; gives back the agent, whose memory is the caller's; NULL. */
struct nxl_lock *hold_free(struct nxl_lock *lock);

/* The lock is held from now on; its lease was prolonged by a call; a call was
 * told that the token does not stand any more; the token is not to be renewed
 * any more. Nothing when it is not kept alive. */
void hold_begin(struct nxl_lock *lock, uint64_t now);
void hold_prolonged(struct nxl_lock *lock, uint64_t now);
void hold_refuted(struct nxl_lock *lock, uint64_t now);
void hold_end(struct nxl_lock *lock, uint64_t now);

/* Its timer is due; an operation of its agent is over. */
void hold_tick(struct hold *hold, uint64_t now);
void hold_answered(struct hold *hold, uint64_t now);

/* The next loss that nobody was told of; NULL. */
struct nxl_lock *hold_take_loss(struct nxl_client *client);

#endif
