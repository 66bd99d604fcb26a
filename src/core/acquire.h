/* SPDX-License-Identifier: MIT */
/*
 * Acquire over N >= 1 servers: rounds of SET NX PX at all of them at once,
 * each decided as soon as the vote is decided, either way; a round that
 * failed is undone everywhere, and while the wait lasts another follows after
 * a random growing delay.
 *
 * Invariant: a token goes to each server at most once, and is used again only
 * when every server is known not to have applied it (one server answered
 * "busy" or with an error); VERDICT_YES only before the lease's end and with
 * a quorum of grants; every server that granted or may have granted in a
 * round that failed has been named in an ASK_UNDO.
 */
#ifndef NXLOCK_CORE_ACQUIRE_H
#define NXLOCK_CORE_ACQUIRE_H

#include <stdbool.h>

#include "base/backoff.h"
#include "core/fence.h"
#include "core/machine.h"

struct acquire_terms {
    unsigned servers;       /* 1 ... MAX_SERVERS */
    struct ballot *ballots; /* one a server */
    uint32_t ttl_ms;
    uint32_t drift_ppm;
    uint64_t budget_ns;  /* one server's time to answer in one round */
    uint64_t wait_until; /* no round is due after; NEVER: wait for ever */
    uint64_t end;        /* the call ends, >= wait_until; NEVER likewise */
};

struct acquire {
    struct acquire_terms terms;
    struct backoff backoff; /* the driver inits it before acquire_start */
    uint64_t deadline;      /* VERDICT_YES: the lease's */
    int64_t left_ms;  /* last round: the shortest TTL that a holder had left */
    enum fault fault; /* the worst of the last round that met one */
    enum verdict verdict; /* reached, though asks may be left */

    /* private */
    enum phase phase;
    uint64_t now; /* the latest time handed in */
    uint64_t round_started, round_end;
    uint64_t longest_round; /* ns, for "could another round still end?" */
    uint64_t retry_at;      /* PHASE_WAITING: the next round starts */
    unsigned rounds;        /* started so far */
    unsigned silent;        /* servers the round's end found unanswered */
    unsigned lasting;       /* servers with a fault that will not pass */
    enum fault round_fault; /* the worst of this round */
    bool token_spoilt;      /* a server that said "busy" has written it */
    bool token_wanted;      /* ASK_TOKEN comes before the next ASK_SEND */
    bool late;              /* this round had a quorum after its deadline */
    bool was_busy;          /* this round was lost to another holder */
    bool seen_busy;         /* the round before was */
    bool doubt; /* an earlier round's token may stand, not heard of since */
};

void acquire_start(
    struct acquire *a, const struct acquire_terms *terms, uint64_t now);
bool acquire_next(struct acquire *a, struct ask *ask);
void acquire_outcome(struct acquire *a, unsigned server,
    const struct outcome *outcome, uint64_t now);
/* After an ASK_UNDO: not a byte of it had left. */
void acquire_withdrawn(struct acquire *a, unsigned server);
void acquire_tick(struct acquire *a, uint64_t now);
void acquire_cancel(struct acquire *a);
/* VERDICT_YES was reached, but its fencing token was not, and the driver has
 * undone the grant: waits for another round, as after a lost one, or ends. */
void acquire_again(struct acquire *a, const struct fence *fence, uint64_t now);
uint64_t acquire_wake(const struct acquire *a);
/* When a server that was down has to be tried despite its reconnect delay: no
 * other round follows, and the call has to end by wait_until even where the
 * connection is refused at once. */
uint64_t acquire_connect_by(const struct acquire *a);
enum verdict acquire_verdict(const struct acquire *a);

/* A round was lost: a token of this call may have come to a quorum. */
bool acquire_in_doubt(const struct acquire *a);

/* True from the second round on, and in the first where a long delay would
 * follow: the waiter wants to know how long the holder has left
 * (verb.want_left). */
bool acquire_wants_left(const struct acquire *a);

#endif
