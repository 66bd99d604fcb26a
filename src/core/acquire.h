/* SPDX-License-Identifier: MIT */
/*
 * Acquires a lock on N >= 1 servers, in rounds. A round sends the verb, ACQUIRE
 * or BEGIN, to all of them at once and ends as soon as its vote is decided
 * either way. A lost round is undone at all servers, and until the wait is over
 * another one follows after a random, growing delay.
 *
 * Invariant: a token is never sent to a server that may have applied it before,
 * so each round has a new one, unless the only server answered "busy" or with
 * an error. VERDICT_YES needs a quorum of grants, and comes before the deadline
 * of the lease. Every server that granted or may have granted in a lost round
 * gets an EFFECT_UNDO.
 */
#ifndef NXLOCK_CORE_ACQUIRE_H
#define NXLOCK_CORE_ACQUIRE_H

#include <stdbool.h>

#include "base/backoff.h"
#include "core/fence.h"
#include "core/witness.h"

struct acquire_terms {
    unsigned servers;       /* 1 ... MAX_SERVERS */
    struct ballot *ballots; /* one a server */
    uint32_t ttl_ms;
    uint32_t drift_ppm;
    uint64_t timeout_ns;        /* of one call */
    uint64_t answer_timeout_ns; /* how long a server may take to answer in one
                                   round */
    uint64_t wait_until; /* no round starts later; NEVER: wait for ever */
    uint64_t end;        /* when the call ends, >= wait_until; or NEVER */
};

struct acquire {
    struct acquire_terms terms;
    struct backoff backoff; /* the driver inits it before acquire_start */
    uint64_t deadline;      /* VERDICT_YES: of the lease */
    int64_t left_ms; /* last round: the shortest TTL that a holder had left */
    enum fault fault : 8; /* the worst fault of the last round that had one */
    enum verdict decision : 8; /* decided, though effects may be left to take */
    enum phase phase : 8;      /* private, as is the next one */
    enum fault round_fault : 8; /* the worst of this round */
    unsigned rounds;            /* started so far */

    /* What the requests of this round say: see struct verb. */
    bool earlier_token_possible : 1; /* an earlier token of this call may be at
                                        a server */
    bool want_left : 1; /* from the second round on; and in the first, if a
                         * long delay would follow */
    bool asks_kind : 1; /* after some rounds that were lost to a holder */
    /* Could this call wait in line for the lock (line.h)? Yes while it waits
     * for another round, if the last one was lost to a holder; but see
     * acquire_leave_line(). The driver clears it once it has decided that. */
    bool may_line_up : 1;
    uint32_t hold_back_ms; /* see lost_to_several */

    /* For acquire.c, and what asks whether the token is held. */
    bool token_spoilt : 1; /* a server that said "busy" has written it, or it
                            * was granted by the line */
    bool token_wanted : 1; /* EFFECT_TOKEN comes before the next EFFECT_SEND */
    bool grant_did_not_last : 1; /* the quorum came after the deadline, or the
                                  * token was gone before the grant was
                                  * complete: see acquire_again() */
    bool was_busy : 1;           /* this round was lost to another holder */
    bool several_hold : 1;       /* this round: a server has said so */
    bool earlier_token_left : 1; /* the token of an earlier round may still be
                                    at a quorum */
    bool had_void_grant : 1; /* a server's grant has not counted, now or before
                              */
    bool line_fails : 1;     /* the line could not be used */
    bool token_is_held : 1;  /* the line has granted the lock to the token of
                              * this round: see acquire_one_more_round() */
    bool recorded : 1;       /* the server has a record of the work */
    /* Servers that said "busy", which an earlier token of this call may
     * explain: see struct outcome. */
    unsigned char doubtful_busy;
    unsigned char permanent; /* servers with a fault that is not transient */
    uint16_t contended;      /* rounds lost to other clients, several servers */
    /* Rounds lost to a holder, with one server too; and those of them that were
     * lost to several who share the lock, of those that asked for that. Unlike
     * contended, which sets the delay, both are counted only up to what
     * matters: ROUNDS_UNASKED and ROUNDS_LOST. One after the other, several
     * holders could keep an exclusive lock away for ever, so then nobody may
     * join them for a while. */
    unsigned char lost_to_holders, lost_to_several;
    unsigned char unanswered; /* servers without an answer at the end of the
                               * round */
    /* The requests of this round: when to connect to a server that was down,
     * whatever its reconnect delay, which is at the latest time of a retry. No
     * other round follows, and a port that refuses answers at once, so the call
     * still ends by wait_until. */
    uint64_t connect_by;
    uint64_t now; /* the latest time handed in */
    uint64_t round_started, round_end;
    /* In ns: how long the servers took in this round, not counting the time
     * before they were tried; and in the slowest round. From the latter follows
     * whether another round can end in time. */
    uint64_t round_took, longest_round;
    uint64_t retry_at;         /* PHASE_WAITING: the next round starts */
    uint64_t round_busy_until; /* this round: the earliest busy_until() */
    uint64_t busy_until; /* of the last round that was lost to a holder, if no
                          * later one contradicts it; or 0 */
};

void acquire_start(
    struct acquire *a, const struct acquire_terms *terms, uint64_t now);
bool acquire_next(struct acquire *a, struct effect *effect);
void acquire_outcome(struct acquire *a, unsigned server,
    const struct outcome *outcome, uint64_t now);
/* After an EFFECT_UNDO: no byte of the request had been sent. */
void acquire_withdrawn(struct acquire *a, unsigned server);
void acquire_tick(struct acquire *a, uint64_t now);
void acquire_cancel(struct acquire *a);
/* The lock was granted, but no quorum has its fencing token, and the driver has
 * undone the grant. Plans another round, as after a lost one, or ends. */
void acquire_again(struct acquire *a, const struct fence *fence, uint64_t now);

static inline uint64_t acquire_wake(const struct acquire *a)
{
    if (a->phase == PHASE_ROUND)
        return a->round_end;
    return a->phase == PHASE_WAITING ? a->retry_at : NEVER;
}

static inline enum verdict acquire_verdict(const struct acquire *a)
{
    return a->phase == PHASE_OVER ? a->decision : VERDICT_OPEN;
}

/* It waits in line from now on, and no round begins. Returns whether the
 * present token is certainly not at the server. */
bool acquire_line_up(struct acquire *a);
/* After acquire_granted(): one more round, with the same token, for what JOIN
 * and STAY do not do: a BEGIN records that the work begins; after a message, an
 * EXTEND is what replicas have to confirm. */
void acquire_one_more_round(struct acquire *a, uint64_t now);
/* The wait in line has ended by a grant, which lasts until deadline. */
void acquire_granted(
    struct acquire *a, uint64_t sent_at, uint64_t deadline, uint64_t now);
/* It has ended with this verdict; the holder had left_ms. */
void acquire_ended(struct acquire *a, enum verdict verdict, enum fault fault,
    int64_t left_ms, uint64_t now);
/* It leaves the line, and another round begins: the line cannot be used (fault)
 * or does not help now. doubt: a token of the line may still be granted;
 * busy_until: until when the answers there prove that the lock is busy. */
void acquire_leave_line(struct acquire *a, enum fault fault, bool doubt,
    uint64_t busy_until, uint64_t now);

/* After a lost round: what is known of the lock. */
struct witness acquire_witness(const struct acquire *a);

#endif
