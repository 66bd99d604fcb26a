/* SPDX-License-Identifier: MIT */
/*
 * The interface between decisions and transport: a verb is what the core wants
 * from one server, an outcome is the result. All layers, and the servers of the
 * simulator, share these types.
 *
 * On its way down, a call of the API (an NXL_OP_...) becomes rounds of one verb
 * (core); an operation carries a round's verb to all servers (client), a
 * request to one of them (net), and an exchange makes commands of it, step by
 * step (wire). So an operation is less than what enum nxl_operation counts: a
 * call may take several.
 */
#ifndef NXLOCK_MODEL_VERB_H
#define NXLOCK_MODEL_VERB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"
#include "base/reply_values.h"
#include "base/slice.h"
#include "model/verb_kind.h"
#include "model/fault.h"

#define CLUSTER_SLOTS 16384 /* of every Redis Cluster */

#define WINDOW_TICKS 32 /* of a window, per second */

/* The state of work: BEGUN to FAILED stand in its record, DOUBT to CLEAR can be
 * told of it. The numbers are those of enum nxl_once_state. */
enum once_state {
    ONCE_NONE,
    ONCE_BEGUN,
    ONCE_DOUBT,
    ONCE_DONE,
    ONCE_FAILED,
    ONCE_CLEAR
};

/* What a record is asked or told. */
struct once_terms {
    bool retries;             /* BEGIN: also what is in doubt */
    struct slice fingerprint; /* BEGIN, READ_RECORD; empty: none */
    uint64_t keep_ms;         /* BEGIN; TELL where there is no record */
    /* TELL */
    enum once_state reported; /* how the work ended */
    int code;
    struct slice result;
    bool result_omitted; /* there is a result, but too long to be kept */
    /* FORGET: the first line of the record that was seen */
    struct slice line;
};

struct verb {
    enum verb_kind kind;
    uint32_t ttl_ms; /* TELL: the key stays for so long; 0: it is deleted */
    bool want_left;  /* ACQUIRE: when busy, say how long the holder has left */
    bool may_wait;   /* ACQUIRE: if the lock is busy, its caller waits for it */
    /* ACQUIRE with want_left, of an exclusive lock: say whether several hold it
     * (outcome.several_holders) */
    bool asks_kind;
    /* BEGIN, EXTEND of an acquire: the key may hold the token, by a wait in
     * line */
    bool may_hold_token;
    /* ACQUIRE, BEGIN, JOIN, STAY: the key may hold an earlier token of the same
     * call: say so (outcome.earlier_token_may_remain) */
    bool earlier_token_possible;
    /* QUERY: the command changes something, and says so by 1, or by 0 that
     * there was nothing to change. Else it only reads. */
    bool changes;
    /* RELEASE: the token is a value that was seen, of another holder. How the
     * caller's own token was written says nothing about it. */
    bool of_other_holder;
    bool test_listener;      /* JOIN, STAY: say whether the client listens */
    bool has_waiters_behind; /* RELEASE, TELL: somebody is probably in line
                              * behind it
                              */
    struct slice key;
    /* ACQUIRE, EXTEND, RELEASE, CAP_TTL: the whole value. INSPECT: empty, or
     * the token to compare with (then the outcome is MINE or NOT_MINE). */
    struct slice token;
    /* How the token waits in line: JOIN, STAY, and RELEASE of a token that may
     * be in line (else the client is empty). ttl_ms belongs to it too, and all
     * three stay the same as long as the token waits. */
    struct slice client; /* which is told, by its UUID; "-": it is not told */
    /* So long it counts as alive after each STAY, in ticks; 0: other verbs */
    uint32_t window;
    union {
        /* RELEASE, TELL: for so long nobody in line is granted the lock; 0: it
         * is handed over at once */
        uint32_t gap_ms;
        /* ACQUIRE with asks_kind: if several hold the lock, nobody joins them
         * for so long */
        uint32_t hold_back_ms;
    };
    /* RELEASE, CAP_TTL: from this time on another process may own the token, so
     * the verb is no longer sent; 0: no limit. TELL: leaves the key alone then.
     */
    uint64_t not_after;
    /* ACQUIRE, BEGIN, JOIN, STAY: if it still waits for the reconnect delay at
     * this time, one attempt to connect is made; 0: not before the delay is
     * over */
    uint64_t connect_by;
    /* The key of the fencing counter. ACQUIRE: draw a fencing token from it in
     * the same step; empty: draw none. */
    struct slice counter; /* RAISE too */
    union {
        uint64_t fence;   /* RAISE */
        size_t arg_count; /* QUERY */
    };
    union {
        const struct once_terms *once; /* BEGIN, READ_RECORD, TELL, FORGET */
        /* ACQUIRE of an exclusive lock, one of several: only if this key holds
         * the token; otherwise the lock counts as busy. NULL: it is alone */
        const struct slice *after;
        const struct slice *args; /* QUERY */
    };
    /* QUERY: the answer. BEGIN, READ_RECORD, TELL: the record's first line, and
     * its result, as they are now; neither, if there is no record. INSPECT: of
     * several holders, in turn their tokens and how many ms each has left;
     * NULL: one is enough */
    struct reply_values *values;
};

enum outcome_kind {
    OUTCOME_NONE, /* not decided yet: never handed to a machine */
    /* ACQUIRE, BEGIN: set by this very command. JOIN, STAY: the key holds the
     * token. For ttl_ms from now on or longer */
    OUTCOME_GRANTED,
    /* ACQUIRE, BEGIN: the key holds another value; left_ms. JOIN, STAY: the
     * token is in line; left_ms, ahead, no_listener */
    OUTCOME_BUSY,
    OUTCOME_MINE,     /* EXTEND, CAP_TTL, INSPECT with token: left_ms; RELEASE;
                       * SUBSCRIBE; TELL, FORGET, UNDO_BEGIN, QUERY: done */
    OUTCOME_NOT_MINE, /* the key does not hold the token. STAY: nor is it in
                       * line. TELL: somebody else has begun. FORGET: see found.
                       * UNDO_BEGIN: the token had not begun. QUERY that
                       * changes: there was nothing to change */
    OUTCOME_SEEN,     /* INSPECT without token: value, left_ms */
    OUTCOME_FREE, /* INSPECT without token: no such key. READ_RECORD: may begin
                   */
    /* BEGIN: there is nothing to begin (found), and the key does not hold the
     * token. READ_RECORD: found */
    OUTCOME_RECORDED,
    OUTCOME_FAULT /* no decision: fault, text, unsure */
};

/* What keeps work from being begun. The numbers are those with which the begin
 * script replies. */
enum once_found {
    FOUND_NOTHING,
    FOUND_BEGUN, /* now, by this request */
    FOUND_DONE,
    FOUND_DOUBT,
    FOUND_MISMATCH, /* of the fingerprint */
    FOUND_BUSY /* READ_RECORD, FORGET: the work is in progress, or the key is
                  taken */
};

#define LEFT_FOREVER (-1) /* the key never expires */
#define LEFT_UNKNOWN (-2) /* not asked, or the server cannot tell */

/* May another process own the token by now? */
static inline bool verb_past_use(const struct verb *verb, uint64_t now)
{
    return limit_passed(verb->not_after, now);
}

/* Is it too late to send the verb? */
static inline bool verb_too_late(const struct verb *verb, uint64_t now)
{
    return !verb_traits[verb->kind].may_be_late && verb_past_use(verb, now);
}

/* Is it the acquire of one of several names, after another one? */
static inline bool verb_asks_after(const struct verb *verb)
{
    return verb_traits[verb->kind].asks_after && verb->after;
}

/* Does the token's use end when the server has carried the verb out? */
static inline bool verb_ends_use(const struct verb *verb)
{
    enum verb_use use = verb_traits[verb->kind].use;
    return use == USE_ENDS ||
           (use == USE_ENDS_UNLESS_CLEAR && verb->once->reported != ONCE_CLEAR);
}

/* Where a write is besides the server's memory, as WAIT or WAITAOF has said. */
struct copies {
    bool known;  /* it was asked */
    bool synced; /* WAITAOF: in its append-only file, by fsync() */
    uint16_t replicas;
};

struct outcome {
    enum outcome_kind kind;
    enum fault fault : 8; /* FAULT_NONE unless kind is OUTCOME_FAULT */
    /* The token may be at the server nonetheless. FAULT: the command may have
     * been applied. BUSY: the token was written before the lock was found to be
     * busy, and must not be used again. NOT_MINE after RELEASE: it may still be
     * in line. */
    bool unsure;
    /* FAULT: the server has certainly carried it out, but that does not count:
     * a grant is void and has to be undone. */
    bool applied;
    bool left_line; /* MINE after RELEASE: it held nothing, but was in line */
    enum once_found found : 8; /* RECORDED; NOT_MINE after FORGET */
    /* BUSY, with verb.earlier_token_possible: what removes the earlier token is
     * not done, or was given up, so it may be this token that keeps the lock
     * busy. */
    bool earlier_token_may_remain;
    bool several_holders; /* BUSY, with verb.asks_kind: several hold the lock */
    bool no_listener; /* BUSY in line, with verb.test_listener: the channel has
                         no listener */
    /* The number of the server's connection over which it was answered; 0: it
     * was not. */
    unsigned connection;
    /* BUSY in line: members of the line before this one that a message can
     * reach. 0: there is none, so this one has to look after the lock; members
     * that are dead, or have no channel, may be before it. */
    unsigned ahead;
    struct copies copies; /* GRANTED, MINE of what needs_copies */
    int64_t left_ms;
    uint64_t fence;   /* GRANTED with a counter, or by BEGIN: the fencing token.
                       * MINE after RAISE: the counter now */
    uint64_t sent_at; /* the time before its first byte was sent; 0: never */
    /* FAULT, never sent: when the attempt to connect that failed has begun; 0:
     * there was none. */
    uint64_t tried_at;
    struct slice value; /* SEEN: up to 512 bytes; valid until the next step */
    /* FAULT: the server's words or ours; valid as long as value. Above net it
     * is printable and free of the client's secrets. */
    struct slice text;
};

/* Has a verb that writes written? */
static inline bool outcome_wrote(const struct outcome *o)
{
    return o->kind == OUTCOME_GRANTED || o->kind == OUTCOME_MINE;
}

#endif
