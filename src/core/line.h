/* SPDX-License-Identifier: MIT */
/*
 * Waits in line for a lock on one server. A token joins the line once (JOIN)
 * and then shows at intervals that it still waits (STAY). Whoever releases the
 * lock hands it over to the first token in line and tells its client by a
 * message; an answer to JOIN or STAY may grant it too. docs/wire.md has the
 * line's keys and scripts.
 *
 * Why the deadline comes before the server's end of the lease:
 * - The token enters the line only by its one JOIN, and the script that grants
 *   it the lock takes it out of the line. So the line grants it once at most.
 * - A JOIN or STAY that was answered with "it waits" was carried out before
 * that grant, and the lease begins with the grant and is never shortened.
 * - So the lease is counted from when the last of these requests was sent. That
 *   is early enough, and a message need not say when it was sent.
 * In a long line that request may be older than a lease: then a STAY extends
 * the lease of the token that has the lock, or finds that it has expired.
 * Only a server that went back in time, after a restart from an older file,
 * could answer "it waits" after a grant; its connections are new, so a message
 * is believed only if both connections, for commands and for messages, are
 * those with which the token joined. Otherwise the answer to a STAY decides.
 *
 * Invariant: a token is in one JOIN only. VERDICT_YES comes with a deadline of
 * which at least LEASE_USABLE_MS are left. With any other end, an EFFECT_UNDO
 * is issued for each token that may be in line or hold the lock.
 */
#ifndef NXLOCK_CORE_LINE_H
#define NXLOCK_CORE_LINE_H

#include "base/backoff.h"
#include "core/witness.h"

/* How a client is told that a lock was handed over to one of its tokens. */
struct messages {
    enum {
        MESSAGES_NONE,   /* it is not told: its tokens ask */
        MESSAGES_COMING, /* the subscription is being made */
        MESSAGES_UP
    } state;
    unsigned number; /* of subscriptions that were made so far */
};

struct line_terms {
    uint32_t ttl_ms;     /* of the lease that is wanted */
    uint32_t max_ttl_ms; /* limits the lease that is asked for */
    uint32_t drift_ppm;
    uint64_t timeout_ns;        /* of one call */
    uint64_t answer_timeout_ns; /* how long to wait for an answer */
    uint64_t wait_until;        /* when the wait ends; NEVER: it does not */
    uint64_t end; /* when the call ends, >= wait_until; or NEVER */
    /* When the lock itself was asked for: see struct witness. */
    bool doubt;
    uint64_t busy_until;
    const struct messages *messages; /* kept current by the driver */
};

enum line_verdict {
    LINE_OPEN,
    LINE_YES,
    LINE_NO,          /* the wait is over, the lock is taken */
    LINE_EXPIRED,     /* granted, but the lease had expired; undone */
    LINE_MAY_GRANT,   /* the wait is over; the server may grant it yet */
    LINE_DID_NOTHING, /* the wait is over; the server did nothing */
    LINE_CANCELLED,
    /* The line cannot be used here, or a key that never expires blocks it: ask
     * for the lock itself, with a fresh token. Nothing is left behind, so a
     * token that joins again after that is the last in line. */
    LINE_UNUSABLE
};

/* Four flags say where a token may be:
 * - in_line: the present one may be in line, or hold the lock;
 * - vanished_from_line: one that was in line is not there any more; it may have
 *   been granted the lock meanwhile;
 * - late_grant_possible: the server may grant, or has granted, one that was
 *   given up, whose undo may not have been carried out yet;
 * - late_grant_was_possible: the same before the last one was given up, for the
 *   case that its undo finds it unsent. */
struct line {
    struct line_terms terms;
    uint64_t deadline;   /* YES: of the lease */
    uint64_t sent_at;    /* of the last request that was answered */
    int64_t left_ms;     /* of the holder's TTL, as last answered */
    uint64_t busy_until; /* how long left_ms proves "busy": see witness.h */
    enum fault fault;    /* of the last request, if it failed */
    bool has_waited;     /* a JOIN was answered with "it waits" */
    bool late_grant_possible; /* the server may grant, or has granted, a token
                               * that was given up */
    bool by_message; /* the token's place has the client's channel; else "-" */

    /* private */
    struct backoff backoff;
    /* Decided, though effects may be left to take. */
    enum line_verdict decision;
    uint64_t now; /* the latest time handed in */
    /* The next request is due; or if one is under way, the time for its
     * answer ends. */
    uint64_t act_at;
    /* When a key without a TTL has ended the wait last. */
    uint64_t value_checked_at;
    unsigned joined_on;    /* connection over which the JOIN was answered */
    unsigned subscription; /* the number of the one that it joined with */
    bool joins;            /* the next request, or the one under way, is JOIN */
    bool late_grant_was_possible; /* the same without the token that was given
                                     up last */
    bool in_flight;               /* a request is under way */
    bool in_line;            /* the token may be in line, or hold the lock */
    bool vanished_from_line; /* a token that was in line is not there any more,
                              * and may have been granted meanwhile */
    bool reconnected;        /* an answer came over another connection */
    bool hint_pending;       /* a hint has come while a request is under way */
    bool message_came;       /* while JOIN is unanswered */
    unsigned ahead;          /* members of the line before it that a message can
                              * reach: see struct outcome */
    bool granted_too_late;   /* the last grant was: too little of its lease is
                                left */
    bool stay_at_once;       /* STAY at once when this request is answered */
    bool token_due, send_due, undo_due, abandon_due; /* effects to be taken */
};

/* token_is_fresh: the key is known not to hold the present token, which has
 * never been in line. False: a fresh one is needed. Keeps value_checked_at. */
void line_start(struct line *l, const struct line_terms *terms,
    bool token_is_fresh, uint64_t seed, uint64_t now);

/* As in machine.h; EFFECT_SEND sends what line_joins() says, to server 0. */
bool line_next(struct line *l, struct effect *effect);
bool line_joins(const struct line *l);
void line_outcome(struct line *l, const struct outcome *outcome, uint64_t now);
/* After an EFFECT_UNDO: no byte of the request had been sent. */
void line_withdrawn(struct line *l);
void line_tick(struct line *l, uint64_t now);
void line_cancel(struct line *l);
uint64_t line_wake(const struct line *l);
enum line_verdict line_verdict(const struct line *l);

/* A message has come: the lock was handed over to the present token.
 * connection: the number of the one to the server that is up; 0: none is. */
void line_on_granted(struct line *l, unsigned connection, uint64_t now);
/* A message has come: the lock was released, but not handed over, and the
 * present token is the first in line. It asks (STAY) in 50 to 100 ms, so that
 * programs outside the line have a chance before. */
void line_on_first(struct line *l, uint64_t now);
/* A message has come that is not understood. The token asks (STAY) at once. */
void line_on_unknown(struct line *l, uint64_t now);
/* The state of the messages has changed. */
void line_messages_changed(struct line *l, uint64_t now);

/* When the last JOIN or STAY that was answered was sent; while JOIN itself is
 * unanswered: sent_at, when that was sent. */
static inline uint64_t line_last_sent_at(const struct line *l, uint64_t sent_at)
{
    return l->joins ? sent_at : l->sent_at;
}

/* The lease that JOIN and STAY ask for, and the window of time, in ticks of
 * WINDOW_TICKS per second, for which a token counts as alive after each. */
uint32_t line_lease_ms(const struct line_terms *terms);
uint32_t line_window(const struct line_terms *terms);

#endif
