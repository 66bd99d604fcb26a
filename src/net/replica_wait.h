/* SPDX-License-Identifier: MIT */
/*
 * wait_replicas and wait_aof: a write counts only when the server says how many
 * replicas have it. After the writes that leave together one WAIT or WAITAOF is
 * sent, behind them on the same connection, and no other lock command until it
 * is answered, because it blocks the connection. A request whose write was
 * answered is kept until then, and completes with the numbers in
 * outcome.copies; core/weigh.h decides whether they are enough.
 *
 * Only WAIT behind the write proves something: on another connection, or behind
 * an EVALSHA that was answered NOSCRIPT, the server counts replicas that have
 * nothing of it.
 */
#ifndef NXLOCK_NET_REPLICA_WAIT_H
#define NXLOCK_NET_REPLICA_WAIT_H

#include "base/list.h"
#include "model/verb.h"
#include "net/conn.h"

/* The longest WAIT where the client guards against failovers: a grant counts
 * only within a second of a sign of life (core/lineage.h). */
#define GUARDED_WAIT_MS 500

struct replica_wait {
    unsigned wanted;  /* replicas that WAIT waits for */
    bool aof;         /* WAITAOF: and for the server's own append-only file */
    bool in_use;      /* WAIT or WAITAOF is sent */
    uint32_t ms;      /* for so long; 0: by the ttls in use */
    uint32_t most_ms; /* by these at most: the answer has to come in time */
    bool several_servers; /* it is one of several servers */

    /* Of the present connection. */
    bool due;             /* a write was formatted that no WAIT is behind yet */
    unsigned under_way;   /* how many WAITs are not answered */
    uint32_t asked_ms;    /* for how long the last one waits */
    struct list awaiting; /* requests that are answered, except their WAIT */
    struct list ready;    /* requests that are complete */
    /* The shortest ttl in use, until it has passed without being used again. */
    uint32_t shortest_ms;
    uint64_t shortest_until;
};

void replica_wait_init(struct replica_wait *r);

/* How long WAIT waits at most for locks of that ttl; 0: none is sent. */
uint32_t replica_wait_ms(const struct replica_wait *r, uint32_t ttl_ms);

/* A command of verb has been formatted. */
void replica_wait_note(
    struct replica_wait *r, const struct verb *verb, uint64_t now);

/* Appends the WAIT that is due; not inside a transaction. False: no memory. */
bool replica_wait_ask(struct replica_wait *r, struct conn *c, uint64_t now);

/* Has the outcome of verb to be kept until the WAIT behind it is answered? */
static inline bool replica_wait_is_needed(
    const struct verb *verb, const struct outcome *outcome)
{
    return verb_traits[verb->kind].needs_copies && outcome_wrote(outcome);
}

/* Takes the answer to a WAIT. False: it is an error, or none of WAIT's. */
bool replica_wait_answered(
    struct replica_wait *r, const struct reply *reply, struct copies *copies);

/* The connection has ended. */
void replica_wait_cut_off(struct replica_wait *r);

#endif
