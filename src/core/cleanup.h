/* SPDX-License-Identifier: MIT */
/*
 * Removes one token from one server when it is no longer wanted: after an
 * acquire that was cancelled, or a release without an answer. (After a BEGIN it
 * sends UNDO_BEGIN, which also records that nothing happened, and not a
 * compare-and-delete.) It does no input or output: its driver (net/cancel.c,
 * net/cleaner.c) reports what happened; it says what to send now and when to
 * call again.
 *
 * Invariant: a cleanup is done only when its token cannot be at the server and
 * cannot appear there later. That is proved by a compare-and-delete which came
 * after everything that could still set the key:
 *
 *   - on the connection of the acquire, behind it: by order;
 *   - else if it deleted something, or if CLIENT KILL of the old connection was
 *     acknowledged before: what was still in that connection is discarded;
 *   - else it is repeated at growing intervals until ttl after the loss of the
 *     old connection, when the key would have expired.
 *
 * Where it could not take the token out of its line, it proves that only if it
 * deleted the key, and is repeated as in the last case.
 *
 * With several servers a lock can be granted while one of them has not answered
 * the acquire. The token is then in use, by its holder or by a program that
 * adopted it, and must not be deleted. Such a cleanup only sends CLIENT KILL,
 * and only after this client's end of the connection was lost: the server then
 * drops its end with what is still in it, so the acquire cannot be applied
 * after the release.
 */
#ifndef NXLOCK_CORE_CLEANUP_H
#define NXLOCK_CORE_CLEANUP_H

#include <stdbool.h>
#include <stdint.h>

#include "model/verb.h"

#define CLEANUP_RUN_ID 41

/* ------------------------------------------------ cancelling a request */

enum cancel_stage {
    CANCEL_UNSENT, /* no byte of its current step has been sent */
    CANCEL_SENT,   /* its current step was sent and is unanswered */
    CANCEL_LOST,   /* its connection was lost; its caller may go on */
    CANCEL_ENDED   /* it was answered, or has failed */
};

/* A request that no caller waits for. */
struct cancelled {
    enum verb_kind verb;
    enum cancel_stage stage;
    bool undo;     /* its token is to be removed; else it may be in use */
    bool may_hold; /* the key may hold its token, whether or not it was sent */
    bool never_undo; /* deleting the key could end another client's lock */
    bool writes;     /* SENT, an acquire: what sets the key is unanswered */
    bool compares;   /* SENT, a release: one command compares and deletes */
    bool never_sent; /* ENDED: no byte of it had been sent */
    bool unsure;     /* ENDED: it was applied, or may have been */
    /* ENDED, an acquire: the cleanup which is under way for it, or NULL. */
    const struct cleanup *cleanup;
};

/* Why a cleanup is needed: how its token may have come to the server. */
enum cleanup_cause {
    CLEANUP_NONE, /* none is needed */
    /* The key may be set, and cannot be set later. (What deletes it may come
     * later, over a connection that was lost: so the token is never used
     * again.)
     */
    CLEANUP_TOKEN,
    CLEANUP_RELEASE_SENT,   /* likewise; a compare-and-delete was sent */
    CLEANUP_ACQUIRE_SENT,   /* its acquire is unanswered */
    CLEANUP_ACQUIRE_IN_USE, /* its acquire is unanswered, and the token may be
                               in use */
    CLEANUP_ACQUIRE_LOST /* its acquire was unanswered when the connection was
                            lost */
};

struct cancellation {
    enum cleanup_cause cause;
    bool ends_use;        /* the use of the token: tell that cleanup */
    bool changed_nothing; /* the request: that is certain */
};

/* Decides what cancelling r requires. */
struct cancellation cancel_request(const struct cancelled *r);

/* ------------------------------------------------------------ the machine */

enum cleanup_state {
    CLEANUP_IDLE,          /* nothing is under way; see next_try */
    CLEANUP_DELETING,      /* the compare-and-delete has been sent */
    CLEANUP_KILLING,       /* CLIENT KILL has been sent */
    CLEANUP_KILL_DELETING, /* CLIENT KILL, then the compare-and-delete */
    CLEANUP_WATCHING,      /* only waiting for the answer to the acquire */
    CLEANUP_DONE,          /* the token can no longer appear */
    CLEANUP_GIVEN_UP       /* given up: by now the key has expired */
};

/* The acquire of the token, as far as it can still set the key. */
enum cleanup_acquire {
    ACQUIRE_OVER,  /* it cannot */
    ACQUIRE_AHEAD, /* it is unanswered on the present connection */
    ACQUIRE_STRAY  /* its connection was lost, unanswered */
};

struct cleanup {
    enum cleanup_state state;
    enum cleanup_acquire acquire;
    bool in_use; /* the token must not be deleted */
    bool lost;   /* a connection was lost while it was under way */
    char run_id[CLEANUP_RUN_ID]; /* STRAY: the process that gave client_id */
    int64_t client_id; /* STRAY: CLIENT ID of that connection; 0: unknown */
    uint64_t ttl_ns;
    /* From this time on a program may have adopted the token and rely on it, so
     * nothing is deleted; 0: no limit. */
    uint64_t not_after;
    uint64_t next_try, interval; /* if idle; NEVER: until something happens */
    uint64_t until; /* by then the key has expired; NEVER: unknown so far */
};

/* ttl_ns: the longest that the key can live after it was set. */
void cleanup_start(struct cleanup *c, enum cleanup_cause cause, uint64_t ttl_ns,
    uint64_t not_after, uint64_t now);

/* In state CLEANUP_IDLE: returns what to send now, CLIENT KILL of client_id
 * first, and sets the state as if it had been sent; cleanup_put_off() takes
 * that back. run_id: of the server's process now, or "" if unknown. */
#define CLEANUP_SEND_KILL 1U
#define CLEANUP_SEND_DELETE 2U
unsigned cleanup_next(struct cleanup *c, const char *run_id, uint64_t now);

/* It could not be sent, or the compare-and-delete got no further than a
 * first step: it is tried again later. */
void cleanup_put_off(struct cleanup *c, uint64_t now);
/* The compare-and-delete was taken back before it left. */
void cleanup_withdrawn(struct cleanup *c, uint64_t now);
bool cleanup_too_late(const struct cleanup *c, uint64_t now);

/* Answers. acknowledged: the server no longer has such a connection. */
void cleanup_kill_answered(struct cleanup *c, bool acknowledged, uint64_t now);
void cleanup_delete_answered(
    struct cleanup *c, const struct outcome *outcome, uint64_t now);
/* The acquire itself was answered. not_applied: it set nothing. */
void cleanup_acquire_answered(
    struct cleanup *c, bool not_applied, uint64_t now);

/* The connection with an unanswered command of the cleanup was lost. Called
 * once for each such command; all commands on the same connection count as one
 * failure. */
void cleanup_connection_lost(
    struct cleanup *c, int64_t client_id, const char *run_id, uint64_t now);

/* The token is no longer in use; but see not_after. */
void cleanup_not_in_use(struct cleanup *c, uint64_t not_after, uint64_t now);

/* A release request of the token was answered. The release must delete the key
 * before this cleanup does, because its answer tells whether the lock was still
 * there. So for the cleanup the use of the token ends only with that answer;
 * after a fault the release is repeated or cancelled. */
void cleanup_release_answered(struct cleanup *c, const struct outcome *outcome,
    uint64_t not_after, uint64_t now);

/* The token is adopted. First all cleanups of it, at every server, are asked
 * whether that is possible: false if its deletion may be on the way. Then each
 * is cancelled, or only keeps its acquire from being applied later. applied:
 * this server has said that it has the token. */
bool cleanup_can_cancel(const struct cleanup *c);
void cleanup_cancel(struct cleanup *c, bool applied);

/* If idle: expires if its time has come. */
void cleanup_tick(struct cleanup *c, uint64_t now);

static inline bool cleanup_over(const struct cleanup *c)
{
    return c->state == CLEANUP_DONE || c->state == CLEANUP_GIVEN_UP;
}

#endif
