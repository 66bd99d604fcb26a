/* SPDX-License-Identifier: MIT */
/* The state of one lock, which the machine in life.h and its parts share. */
#ifndef NXLOCK_CORE_STATE_H
#define NXLOCK_CORE_STATE_H

#include "core/lease.h"
#include "core/renewal.h"
#include "core/vote.h"

/* What the core knows of a server besides its answers: the state of its
 * connection. Other layers have more of it: a URL is an endpoint
 * (config/url.h), what a connection needs of that is a target, one connection
 * to a target is a server (net/state.h), and a node (client/nodes.h) is a
 * server together with its vote. */
struct peer {
    enum { PEER_DOWN, PEER_CONNECTING, PEER_UP } link;
    uint64_t since; /* CONNECTING */
};

struct life_terms {
    unsigned servers;
    bool fenced;              /* acquires draw a fencing token */
    bool renewed;             /* leases are; life.renewal is set then */
    const struct peer *peers; /* one a server, kept current by the driver */
    uint32_t ttl_ms, min_hold_ms, max_ttl_ms, drift_ppm;
    uint64_t max_hold_ns; /* NEVER: no limit */
    uint64_t timeout_ns;  /* of one call */
    /* wait_replicas, wait_aof (CONDITION_COPIES): how long WAIT may take; 0:
     * neither is set. */
    uint64_t copies_ns;
    uint64_t retry_first_ns, retry_max_ns;
};

enum life_call {
    CALL_NONE,
    CALL_ACQUIRE,
    CALL_EXTEND,
    CALL_RELEASE,
    CALL_ADOPT,
    CALL_INSPECT,
    CALL_BREAK,
    CALL_BEGIN, /* as ACQUIRE, and records that the work has begun */
    CALL_READ_RECORD,
    CALL_TELL,
    CALL_FORGET,
    CALL_KINDS
};

enum life_result {
    LIFE_OK,
    LIFE_BUSY, /* ACQUIRE, BEGIN, READ_RECORD, FORGET */
    LIFE_FREE, /* INSPECT, BREAK, READ_RECORD, FORGET */
    LIFE_DONE, /* BEGIN, READ_RECORD: what the record says */
    LIFE_DOUBT,
    LIFE_MISMATCH,
    LIFE_LOST,
    LIFE_UNKNOWN,
    LIFE_FAULT, /* see life.fault */
    LIFE_CANCELLED
};

/* Whose token the requests of a call have. */
enum call_token {
    TOKEN_OF_LOCK,
    TOKEN_OF_NOBODY, /* none: it is about whoever holds the name */
    TOKEN_OF_TARGET, /* of the holder that was seen */
    TOKEN_OF_WORK    /* of who began the work, if it was not this lock */
};

/* For which servers a call that is decided still waits a little. */
enum call_stragglers {
    STRAGGLERS_NONE,
    STRAGGLERS_CONNECTING, /* they connect: soon they may be part of the quorum
                            */
    STRAGGLERS_ALL         /* its caller wants to know what they say */
};

/* How the kinds of calls differ in the state machine; one row for each. Their
 * functions are in lock/call_type.h. */
struct call_traits {
    enum verb_kind verb : 8;
    bool acquires : 1;         /* it may begin a lease, and wait for that */
    bool adopts : 1;           /* success makes the token the lock's own */
    enum round_kind round : 8; /* of all that do not acquire */
    enum call_token token : 8;
    enum call_stragglers stragglers : 8;
    enum life_result no : 8; /* the result of VERDICT_NO */
    bool cleans_up : 1;      /* what it leaves is removed in the background */
    bool skips_without_token : 1; /* servers that cannot have the token are
                                     skipped */
    bool relies : 1; /* success promises a lease, which must not have expired
                      * when the result is returned */
    /* A request that is withdrawn before it was sent counts as one that has
     * changed nothing, so the result can be FAULT instead of UNKNOWN. RELEASE
     * has the same by ACTION_UNDO; the others have no need of it, because they
     * change nothing or only extend a lease. */
    bool unsent_is_certain : 1;
};
extern const struct call_traits call_traits[CALL_KINDS];

enum life_track { TRACK_CALL, TRACK_RENEWAL, TRACKS };

/* An action of TOKEN, SEND, UNDO or ABANDON is an effect of the call's or the
 * renewal's machine (core/machine.h) with its track added, and the verb to
 * send. The others are decided outside these machines. */
enum action_kind {
    /* ACQUIRE, BEGIN: make a fresh random token; if that fails, call
     * life_no_token(). ADOPT: make the adopted token the lock's own. */
    ACTION_TOKEN,
    ACTION_SEND, /* .verb to server; then life_outcome() */
    /* The server is not asked, because the token cannot be there: it has been
     * counted as "not mine". */
    ACTION_SKIP,
    /* Nothing of this token may stay at server: withdraw the request if it has
     * not been sent (then call life_withdrawn), else compare-and-delete after
     * it. */
    ACTION_UNDO,
    /* Stop waiting for the request at server (if it had not been sent, call
     * life_withdrawn); a late answer does no harm. */
    ACTION_ABANDON,
    /* No request is left, but the key may be there: compare-and-delete it in
     * the background, until life.clean_until; or, if life.clean_begun, take
     * back that its work was begun. */
    ACTION_CLEAN,
    /* ACQUIRE, BEGIN: the lock is taken. To wait in line, call life_line_up();
     * else it polls. */
    ACTION_LINE,
    /* ADOPT: check that server is not deleting the token. If its deletion may
     * be on the way, call life_not_claimed(). */
    ACTION_CLAIM,
    /* ADOPT: no server is deleting the token: cancel its background cleanups at
     * this one. */
    ACTION_ADOPT
};

struct action {
    enum action_kind kind;
    enum life_track track;
    unsigned server;
    /* SEND; and UNDO, because the request may not have been sent: what it
     * says, except for the key, the token (INSPECT: none; BREAK: the value to
     * remove), the counter, the client of JOIN and STAY, and what belongs to a
     * record. These are the driver's. */
    struct verb verb;
};

enum life_event {
    LIFE_NOTHING,
    LIFE_CALL_OVER, /* see life.call, life.result */
    LIFE_RENEWED,   /* .left_ms: what was left of the lease */
    LIFE_RENEWAL_FAILED,
    LIFE_LEASE_LOST /* see life.renewal.loss */
};
#define LIFE_EVENTS 4

/* The state machine of one lock: its call, its renewal and its lease. */
struct life {
    struct life_terms terms;
    struct lease lease;
    struct vote vote;        /* of the call */
    struct renewal *renewal; /* NULL: no lease is renewed */
    enum life_call call : 8; /* the present one, or the last one */
    enum life_result result : 8;
    enum fault fault : 8;      /* result FAULT, UNKNOWN */
    enum once_found found : 8; /* BEGIN, READ_RECORD, FORGET */
    /* BEGIN: it was granted, but its caller does not know it yet. So nobody
     * relies on the lease, or can have adopted the token, and nothing was done.
     * Read without any mutex */
    _Atomic bool unseen;
    unsigned char event_count; /* private: of events */
    bool clean_begun : 1;      /* ACTION_CLEAN */
    bool running : 1;          /* private, as are the next ones */
    bool was_over : 1;  /* RELEASE: the lease had expired when it began */
    bool min_hold : 1;  /* RELEASE: the key stays for the minimum hold */
    bool abandoned : 1; /* RELEASE: the handle is freed, it goes on */
    bool cancelled : 1;
    bool handed_over : 1; /* the lease began with a hand-over */
    bool line_due : 1;    /* ACTION_LINE is to be taken */
    bool token_due : 1;   /* ADOPT: ACTION_TOKEN comes first: the adopted token
                           * becomes the lock's own */
    bool claim_asked : 1; /* ADOPT: ACTION_CLAIM has been asked for */
    bool adopt_asked : 1; /* ADOPT: ACTION_ADOPT has been asked for */
    bool no_token : 1;    /* life_no_token() was called */
    bool not_claimed : 1; /* life_not_claimed() was called */
    bool not_own : 1;     /* BREAK: of another holder's value */
    uint64_t clean_until; /* ACTION_CLEAN; NEVER: no limit */
    uint64_t left_ms;     /* LIFE_RENEWED */
    uint64_t fence; /* ACQUIRE, BEGIN that was granted: the fencing token; 0:
                     * none */
    /* When life_tick() has to be called for the call, as life_next() left it.
     * For the renewal: renewal_wake(). */
    uint64_t wake;

    /* private */
    uint64_t usable_ns; /* what the drift leaves of terms.ttl_ms */
    uint64_t not_after;
    uint64_t seed;
    uint64_t stragglers_until;
    uint32_t gap_ms;              /* RELEASE, TELL: see verb.h */
    uint32_t request_ttl_ms;      /* the TTL to ask for */
    unsigned may_have_token;      /* servers, by bits */
    unsigned requested, answered; /* of the present round of an acquire */
    unsigned stragglers; /* servers still waited for after the verdict */
    unsigned to_undo, to_abandon, to_clean, to_claim, to_adopt;
    unsigned char events[LIFE_EVENTS]; /* enum life_event */
};

#endif
