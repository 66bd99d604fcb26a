/* SPDX-License-Identifier: MIT */
/* The state of one server, which server.h and its parts share: how it begins
 * and ends. */
#ifndef NXLOCK_NET_STATE_H
#define NXLOCK_NET_STATE_H

#include "base/backoff.h"
#include "base/redact.h"
#include "core/lineage.h"
#include "net/cleaner.h"
#include "net/dial.h"
#include "net/login.h"
#include "net/name_check.h"
#include "net/replica_wait.h"
#include "wire/exchange.h"

/* Stop sending when this many cancelled commands are unanswered and the oldest
 * unanswered command is older than the server's timeout, or than this time if
 * that is shorter (with several servers no round waits longer for one of them).
 * The age matters because a server that is merely not the first to answer also
 * has many cancelled commands, for microseconds. */
#define SERVER_DROPPED_FEW 8
#define SERVER_PATIENCE_MS 500
/* Stop sending at this many in any case. A slot and its cleaner take less than
 * 1 KB, so a server that hangs costs at most 8 MB. */
#define SERVER_DROPPED_MAX 8192
/* A connection whose oldest command is unanswered for this long, or for twice
 * the timeout if that is longer, is closed. */
#define SERVER_STALE_MS 2000

struct request {
    struct server *server; /* set once, before anything else */
    struct list node;      /* queued or failed */
    enum {
        REQUEST_IDLE,
        REQUEST_QUEUED, /* nothing of it is formatted */
        REQUEST_SENT,
        REQUEST_AWAITS_REPLICAS, /* answered, but for the WAIT behind it;
                                    replicas.h */
        REQUEST_FAILED           /* in the failed list; see fault and unsure */
    } state : 8;
    enum fault fault : 8;
    uint8_t index; /* among the driver's requests */
    bool unsure : 1;
    bool answer_lost : 1; /* unsure, for its answer was lost: it may still come
                           */
    bool applied : 1;     /* failed, but applied: outcome.applied */
    bool too_late : 1; /* failed, because the lease ended before it was sent */
    bool counts_a_spare : 1; /* it has needed a spare */
    /* The server's given_up, before the first token of its call was sent. */
    unsigned given_up;
    struct exchange exchange;
    uint64_t slot;    /* sent: the number of its present step's first slot */
    uint64_t sent_at; /* before the first byte of its first step left */
    struct cleaner *spare; /* owned; for a cleanup of this request */
    /* Not owned: the cleaner of its last acquire, which is unanswered and may
     * be applied later. See core/cleanup.h, "in use". NULL: none */
    struct cleaner *acquire_cleaner;
    void *owner; /* the driver's */
};

struct completion {
    struct request *request; /* NULL: a message, see subscription.h */
    struct outcome outcome;
};

struct server {
    struct target to; /* where it is, and how to talk to it */
    struct handshake_terms handshake_terms;
    const struct secrets *secrets; /* of the whole client; NULL: none */
    bool listens;                  /* to channels: see subscription.h */
    bool may_send_early;           /* one server, no credentials, db 0 */
    bool completed_handshake;      /* so: it is a Redis server */
    enum { SERVER_DOWN, SERVER_CONNECTING, SERVER_SHAKING, SERVER_UP } state;
    struct login login;
    struct dial dial;
    struct conn conn;
    short ready; /* what the poller reported for the source, as events of
                  * poll(), and server_next() has not taken */
    struct handshake handshake;
    struct facts facts;     /* of the connection that is up, or was last */
    struct dialect dialect; /* likewise: which commands it is locked with */
    struct list queued, failed, cleaners;
    /* Cleaners that no request has reserved. They fit any server: the list
     * belongs to whoever has the servers, and is set before the first
     * spare_reserve(). */
    struct list *spares;
    struct list idle_cleaners; /* those with nothing under way */
    bool cleanup_times_known;  /* false: the two times below are out of date */
    uint64_t cleanup_next_at;  /* when to send the first of them */
    uint64_t cleanup_expires_at; /* when the first of them expires */
    struct backoff reconnect;
    uint64_t not_before; /* no new connection until then */
    uint64_t connect_by; /* but if a request waits, from this time on */
    /* When the dialling must be done. The handshake of Redis that follows may
     * take longer: it ends as any unanswered command, see SERVER_STALE_MS. */
    uint64_t connect_end;
    bool trying; /* an attempt to connect goes on, perhaps at another address */
    uint64_t tried_at; /* when the first of its connections was begun */
    uint64_t heard_at; /* last reply */
    /* Only where the client guards against failovers, and handshake_terms.age
     * is set: the time of the latest sign of life that has come on this
     * connection (lineage_alive_at()), and of the one that is under way, if
     * there is one; requests wait for it. */
    uint64_t alive_at, sign_at;
    bool asks_alive, awaits_sign;
    struct age_terms age;
    /* Only where Sentinels say where it is; see server_use_sentinels(). */
    bool uses_sentinels;
    bool unlocated;   /* they are to be asked before a connection is made, */
    uint64_t lost_at; /* since then */
    /* When they have named it (struct eligibility). NULL: that does not matter.
     * awaits_sentinels: of what waits, nothing may be sent before they do so
     * again. */
    const uint64_t *confirmed_at;
    bool awaits_sentinels;
    /* Only where the client guards against failovers, and neither for a unix
     * socket nor with Sentinels. */
    struct name_check name_check;
    struct replica_wait replica_wait;
    uint64_t silence_checked_at; /* last check of a silent connection */
    unsigned connections;        /* how many have been opened */
    uint64_t cleaned;            /* tokens that a cleanup has removed */
    unsigned given_up; /* cleanups that proved nothing before they expired */
    bool logged_in; /* of this connection or the last: AUTH was accepted if it
                     * was sent, and the server demands none */
    bool has_answered;    /* a command, on this connection */
    enum fault end_fault; /* why the stream ended; replies that the reader has
                          come first */
    bool must_reconnect;  /* not the primary, or not where its name leads to:
                           * reconnect before a request */
    struct text why;      /* of the last failure */
    struct text words;    /* of the last completion */
    enum fault why_fault; /* DOWN: its class */
};

/* sole: it is the only server and needs no vote, so INFO is not needed; see
 * server.may_send_early. */
void server_init(
    struct server *s, const struct target *to, bool sole, uint64_t seed);
/* A server may repeat what another one was sent, if one proxy leads to both:
 * all servers of a client share their passwords, which are in no message. */
void server_share_secrets(struct server *s, struct secrets *secrets);
/* What the server has said about itself on the connection that is up, or was
 * last. It refers to s. */
struct server_info server_info_of(const struct server *s);
/* Call it before any use: from then on its descriptors are in poller, as
 * source. */
void server_set_poller(
    struct server *s, const struct poller *poller, struct source *source);
/* Before any use, if the client guards against failovers: the server's age as a
 * primary is found out, up to needed_s, with the key marker, which must outlive
 * it; after a silence the server has to give a sign of life first; and (without
 * Sentinels) its host name is looked up again while it is used. */
void server_guard_failover(
    struct server *s, struct slice marker, uint64_t needed_s);
/* Before any use: where it is will be told by server_located(), and again after
 * each connection. confirmed_at as in the struct. */
void server_use_sentinels(struct server *s, const uint64_t *confirmed_at);
/* Closes the connection; sends no command, and server_push() must not follow.
 * Returns the job of a callback for credentials that is still running, which
 * the caller waits for and drops; NULL: there is none. */
struct job *server_stop(struct server *s);
/* Closes and frees; sends no command. */
void server_free(struct server *s);
/* In a fork()ed child: closes the descriptors and leaves the rest alone. */
void server_close_in_child(struct server *s);

/* Puts r, which must be in no list, into the failed list. */
void request_fail(
    struct server *s, struct request *r, enum fault fault, bool unsure);

/* The same, because the lease ended before r was sent. */
void request_fail_late(struct server *s, struct request *r);

/* The facts of the connection that is up, or is being made. */
static inline const struct facts *facts_now(const struct server *s)
{
    return s->state == SERVER_UP ? &s->facts : &s->handshake.facts;
}

#endif
