/* SPDX-License-Identifier: MIT */
/*
 * The interface between decisions and transport: a verb is what the core wants
 * from one server, an outcome is the result. core, wire, net and the tests'
 * model servers share these types and nothing else.
 */
#ifndef NXLOCK_BASE_VERB_H
#define NXLOCK_BASE_VERB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"
#include "base/fault.h"
#include "base/leaves.h"
#include "base/slice.h"

enum verb_kind {
    VERB_ACQUIRE, /* set key to token with ttl if the key is free */
    VERB_EXTEND,  /* if key is token: let it stand for ttl_ms at least */
    VERB_RELEASE, /* if key is token: delete it */
    VERB_INSPECT, /* what stands there, and for how long */
    VERB_KEEP,    /* if key is token: let it stand for ttl_ms, no longer */
    VERB_RAISE,   /* the counter to at least .fence, while the token stands */
    VERB_ASK,     /* any command that only reads: .words, answered in .leaves */
    VERB_KINDS
};

struct verb {
    enum verb_kind kind;
    uint32_t ttl_ms;
    /* EXTEND: the most that any extend of this token may ask for, by whichever
     * process; 0: unknown. */
    uint32_t most_ttl_ms;
    bool want_left; /* ACQUIRE: when busy, say how long the holder has left */
    struct slice key;
    /* ACQUIRE, EXTEND, RELEASE, KEEP: the whole value. INSPECT: empty, or the
     * token to compare with (then the outcome is MINE or NOT_MINE). */
    struct slice token;
    /* RELEASE, KEEP: from then on the token may be another owner's, so nothing
     * of this verb is sent any more; 0: no limit. */
    uint64_t not_after;
    /* ACQUIRE: the key of the counter from which a fencing number is drawn in
     * the same step; empty: none is. */
    struct slice counter; /* RAISE too */
    uint64_t fence;       /* RAISE */
    /* ASK */
    const struct slice *words;
    size_t word_count;
    struct leaves *leaves;
};

enum outcome_kind {
    OUTCOME_GRANTED,  /* ACQUIRE: set by this very command */
    OUTCOME_BUSY,     /* ACQUIRE: another value stands; left_ms */
    OUTCOME_MINE,     /* EXTEND, KEEP, INSPECT with token: left_ms; RELEASE */
    OUTCOME_NOT_MINE, /* the token does not stand there */
    OUTCOME_SEEN,     /* INSPECT without token: value, left_ms */
    OUTCOME_FREE,     /* INSPECT without token: no such key */
    OUTCOME_FAULT     /* no decision: fault, text, unsure */
};

#define LEFT_FOREVER (-1) /* the key has no end */
#define LEFT_UNKNOWN (-2) /* not asked, or the server cannot tell */

/* The time at which a verb may not be sent any more has come. */
static inline bool verb_too_late(const struct verb *verb, uint64_t now)
{
    return limit_passed(verb->not_after, now);
}

struct outcome {
    enum outcome_kind kind;
    enum fault fault; /* FAULT_NONE unless kind is OUTCOME_FAULT */
    /* FAULT: the server may have applied it all the same. BUSY: the token was
     * written nevertheless, and must not be used again. */
    bool unsure;
    int64_t left_ms;
    uint64_t fence;     /* GRANTED with a counter: the number. RAISE, MINE:
                         * the counter now */
    uint64_t sent_at;   /* clock before its first byte left; 0: none did */
    struct slice value; /* SEEN: up to 512 bytes; valid until the next step */
    /* FAULT: the server's words or ours; likewise. Above net it is printable
     * and without the client's secrets. */
    struct slice text;
};

#endif
