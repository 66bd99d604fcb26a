/* SPDX-License-Identifier: MIT */
/* What is known about one server, for server.h and its parts. */
#ifndef NXLOCK_NET_STATE_H
#define NXLOCK_NET_STATE_H

#include "base/backoff.h"
#include "base/redact.h"
#include "net/cleaner.h"
#include "net/dial.h"
#include "wire/exchange.h"

/* Stop sending after a few cancelled commands are unanswered and the oldest
 * unanswered one is older than the server's timeout, or than this time if that
 * is less (no round waits longer for a server). The age matters because a
 * server that merely is not the first to answer also has many cancelled
 * commands, for microseconds. */
#define SERVER_DROPPED_FEW 8
#define SERVER_PATIENCE_MS 500
/* Stop sending at this many in any case. A slot, and the cleaner that may come
 * of it, take less than 1 KB: so this bounds what a server that hangs costs to
 * 8 MB. */
#define SERVER_DROPPED_MOST 8192
/* A connection whose oldest command is unanswered for so long is closed. */
#define SERVER_STALE_MS 2000

struct request {
    struct list node; /* waiting or failed */
    enum {
        REQUEST_IDLE,
        REQUEST_WAITING, /* not a byte of it is formatted */
        REQUEST_SENT,
        REQUEST_FAILED /* in the failed list, with fault and unsure */
    } state;
    enum fault fault;
    unsigned index; /* the server's, among the driver's */
    bool unsure;
    bool cut;      /* unsure, because its answer was lost: it may still come */
    bool prepared; /* it has needed a spare */
    struct exchange exchange;
    uint64_t slot;    /* sent: the number of its present step's first slot */
    uint64_t sent_at; /* before the first byte of its first step left */
    struct cleaner *spare; /* owned; for a cleanup of this request */
    /* The server's; its last acquire was not answered, and may be applied
     * later. See core/cleanup.h, "in use". NULL: there is none */
    struct cleaner *late;
    void *owner; /* the driver's */
};

struct completion {
    struct request *request;
    struct outcome outcome;
};

struct server {
    struct endpoint endpoint;
    struct credentials who;
    const struct secrets *secrets; /* of the whole client; NULL: none */
    bool plain;                    /* one server, no credentials, db 0 */
    bool known; /* it has completed a handshake: it is a Redis server */
    unsigned char hung_up; /* handshakes in a row, closed without an answer */
    /* It answered PING, and closed the connection at CLIENT ID: it is a proxy,
     * until a full handshake succeeds. */
    bool met_proxy;
    /* It answered CLIENT ID after a brief handshake, so it is none, but no full
     * handshake has succeeded since. */
    bool no_proxy;
    enum { SERVER_DOWN, SERVER_DIALLING, SERVER_SHAKING, SERVER_UP } state;
    struct dial dial;
    struct conn conn;
    struct handshake handshake;
    struct facts facts;     /* of the connection that is up, or was last */
    struct dialect dialect; /* likewise: by which commands it is locked */
    struct list waiting, failed, cleaners;
    struct list spares; /* cleaners that no request has reserved */
    struct list due;    /* the cleaners that nothing is under way for */
    bool due_known;     /* false: the two times of them are out of date */
    uint64_t due_next, due_over; /* when the first is to be sent; expires */
    struct backoff reconnect;
    uint64_t not_before;  /* no new connection until then */
    uint64_t connect_by;  /* ... unless something waits: then from here on */
    uint64_t connect_end; /* dialling and handshake have to be done by then */
    uint64_t heard_at;    /* last reply */
    unsigned connections; /* so many have been opened */
    uint64_t cleaned;     /* tokens that a cleanup has removed */
    bool good;            /* a command was answered on this connection */
    enum fault ended;     /* the stream is over behind what the reader has */
    bool elsewhere;       /* it said that it is not the primary: look again */
    struct text why;      /* of the last failure */
    struct text words;    /* of the last completion */
    enum fault why_fault; /* DOWN: its class */
};

/* Puts r, which is in no list, among the failed. */
void request_fail(
    struct server *s, struct request *r, enum fault fault, bool unsure);

/* The same because its lease ended before it was sent. */
void request_fail_late(struct server *s, struct request *r);

/* Of the connection that is up, or is being made. */
static inline const struct facts *facts_now(const struct server *s)
{
    return s->state == SERVER_UP ? &s->facts : &s->handshake.facts;
}

#endif
