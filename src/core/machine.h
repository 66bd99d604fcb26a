/* SPDX-License-Identifier: MIT */
/*
 * What all machines of the core have in common. A machine decides and does
 * nothing: no socket, no clock, no memory. Its driver
 *
 *   starts it, then until the verdict is not VERDICT_OPEN
 *   - takes effects (.._next until false) and carries them out,
 *   - hands in outcomes (.._outcome) as they come, with the time now,
 *   - calls .._tick when now >= .wake.
 *
 * Each call may produce new effects. One lock on one server is a quorum of one.
 * A machine's terms are the parameters that it is started with; they stay the
 * same while it runs.
 *
 * What passes between the layers, on the way down and back up:
 *   effect   a machine orders something at one server
 *   action   the lock's machine orders the same of its driver (core/state.h)
 *   verb     the driver's request to that server (model/verb.h)
 *   outcome  what that server's answer means (model/verb.h)
 *   verdict  what a machine concludes from the outcomes of all servers
 *   result   what the lock's machine concludes from the verdict (life.result)
 *   event    the lock's machine reports the result, or a renewal or loss
 */
#ifndef NXLOCK_CORE_MACHINE_H
#define NXLOCK_CORE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/verb.h"

#define MAX_SERVERS 15

enum effect_kind {
    EFFECT_TOKEN, /* put a fresh random token into the verb */
    EFFECT_SEND,  /* send the verb to server */
    /* Nothing of this token may stay at server: withdraw the verb if it has
     * not left (then call .._withdrawn), else compare-and-delete after it. */
    EFFECT_UNDO,
    EFFECT_ABANDON /* stop waiting for server; a late answer does no harm */
};

enum verdict {
    /* Not decided yet. .._verdict() says so too while effects are left to take,
     * though the machine has decided. */
    VERDICT_OPEN,
    VERDICT_YES,
    /* acquire: busy. extend, release, adopt: not ours. inspect: free */
    VERDICT_NO,
    VERDICT_RECORDED, /* begin: the record says that there is nothing to do */
    VERDICT_EXPIRED,  /* acquire: granted, but the lease had expired; undone */
    VERDICT_UNKNOWN,  /* it may or may not have been applied */
    VERDICT_FAULT,    /* no quorum has applied it, for certain; see .fault */
    VERDICT_CANCELLED
};

/* What .._next() says: an effect, if it returned true; else how things stand.
 */
struct effect {
    /* It returned true: */
    enum effect_kind kind;
    unsigned server;
    /* It returned false, because no effect is left: */
    enum verdict verdict;
    enum fault fault; /* the worst; of some verdicts, see the machine */
    uint64_t wake;    /* VERDICT_OPEN: when .._tick has to be called */
    uint64_t fence;   /* vote.h: VERDICT_YES of an acquire: its fencing token;
                       * 0: none */
};

/* The state of a machine; zero when it has just been started. */
enum phase {
    PHASE_ROUND,   /* a round runs */
    PHASE_ENDING,  /* a round is decided, its last effects are being taken */
    PHASE_WAITING, /* acquire: until the next round */
    PHASE_OVER     /* the verdict is final */
};

/* A server's part in the present round. */
enum part {
    PART_IDLE,
    PART_TO_SEND, /* EFFECT_SEND is to be taken */
    PART_SENT,    /* no answer yet */
    PART_YES,
    PART_NO,
    PART_FAULT,      /* certainly not applied */
    PART_UNSURE,     /* a fault, but the request may have been applied */
    PART_TO_UNDO,    /* EFFECT_UNDO is to be taken */
    PART_TO_ABANDON, /* EFFECT_ABANDON is to be taken */
    PARTS
};

/* What a machine knows of one server in the present round. A machine is given
 * one for each server, in its driver's memory. */
struct ballot {
    enum part part : 8; /* PART_IDLE, in round.h: to be asked at again_at */
    enum part next_part : 8; /* PHASE_ENDING: what part becomes once its effect
                                is taken */
    /* round.h */
    enum fault why : 8; /* of the last try */
    uint8_t tries;
    bool was_unsure;   /* an earlier try may have been applied */
    bool has_answered; /* whether it has the token */
    bool is_void;      /* acquire.h: it has granted it, which does not count */
    uint64_t until;    /* EXTEND, ADOPT: deadline by a MINE */
    uint64_t again_at; /* PART_IDLE */
    /* acquire.h: of the servers that said yes. round.h: when the first
     * request was sent, 0: not yet */
    uint64_t sent_at;
    uint64_t fence; /* fence.h: as granted by it; 0: no grant counted */
};

/* How many servers are in which part. */
struct tally {
    unsigned servers, quorum;
    unsigned yes, no, fault, unsure, open; /* open: to send or sent */
};

struct tally tally_of(const struct ballot *ballots, unsigned servers);

/* floor(servers / 2) + 1 */
unsigned quorum_of(unsigned servers);

/* The first server with that part; false: none has it. Here, because each step
 * of each call asks several times. */
static inline bool part_find(const struct ballot *ballots, unsigned servers,
    enum part wanted, unsigned *found)
{
    for (unsigned i = 0; i < servers; i++) {
        if (ballots[i].part == wanted) {
            *found = i;
            return true;
        }
    }
    return false;
}

/* Are there effects left to take? */
bool parts_pending(const struct ballot *ballots, unsigned servers);

#endif
