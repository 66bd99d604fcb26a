/* SPDX-License-Identifier: MIT */
/*
 * One server: where it is, the connection to it, the requests under way, and
 * the debts. The driver submits requests, lets the server push bytes, hands
 * in poll events and the time, and takes completions out one by one; nothing
 * here blocks or calls back.
 *
 * The connection is made when something wants to be sent, and after a loss
 * again at once if it had been good, else with growing delays. Good is one
 * on which a command was answered; a handshake alone proves little.
 */
#ifndef NXLOCK_NET_SERVER_H
#define NXLOCK_NET_SERVER_H

#include <poll.h>

#include "base/backoff.h"
#include "net/debt.h"
#include "net/dial.h"
#include "wire/exchange.h"

/* A server that hangs is sent nothing more when there are a few commands that
 * were given up and are unanswered, and the oldest that is unanswered has been
 * for the server's time-out, or for this time if that is less: no round gives a
 * server more. Time, for a server that is merely not the first to answer has
 * many such commands, for microseconds. */
#define SERVER_DROPPED_FEW 8
#define SERVER_PATIENCE_MS 500
/* ... and in no case with so many. A slot, and the debt that may come of it,
 * take about 2 KB: so this bounds what a server that hangs costs to 16 MB. */
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
    struct exchange exchange;
    uint64_t slot;    /* sent: the number of its present step's first slot */
    uint64_t sent_at; /* before the first byte of its first step left */
    enum fault fault;
    bool unsure;
    bool cut; /* unsure, because its answer was lost: it may still come */
    /* The connection it was lost with. */
    int64_t cut_client;
    char cut_run_id[41];
    struct debt *spare; /* owned; to run into debt with */
    void *owner;        /* the driver's */
    unsigned index;     /* the server's, among the driver's */
};

struct completion {
    struct request *request;
    struct outcome outcome;
};

struct server {
    struct endpoint endpoint;
    struct credentials who;
    bool plain; /* one server, no credentials, db 0 */
    bool known; /* it has completed a handshake: it is a Redis server */
    enum { SERVER_DOWN, SERVER_DIALLING, SERVER_SHAKING, SERVER_UP } state;
    struct dial dial;
    struct conn conn;
    struct handshake handshake;
    struct facts facts; /* of the connection that is up, or was last */
    struct ladder ladder; /* likewise: by which commands it is locked */
    struct list waiting, failed, debts;
    struct list owed; /* the debts that nothing is under way for */
    bool owed_known;  /* false: the two times of them are out of date */
    uint64_t owed_next, owed_over; /* when the first is to be sent; is over */
    struct backoff reconnect;
    uint64_t not_before;  /* no new connection until then */
    uint64_t connect_end; /* dialling and handshake have to be done by then */
    uint64_t heard_at;    /* last reply */
    unsigned connections; /* so many have been opened */
    uint64_t cleaned;     /* tokens that a debt has removed */
    bool good;            /* a command was answered on this connection */
    enum fault ended;     /* the stream is over behind what the reader has */
    bool elsewhere;       /* it said that it is not the primary: look again */
    struct text why;      /* of the last failure */
    enum fault why_fault; /* DOWN: its class */
};

/* Takes endpoint over. sole: it is the only server (see plain), and no vote
 * is taken; of others INFO has to be known. */
void server_init(struct server *s, const struct endpoint *endpoint, bool sole,
    uint64_t seed);
/* Its descriptors are in watch under key from now on; before any use. */
void server_watch(struct server *s, const struct watch *watch, unsigned key);
/* Closes and frees; sends nothing, so it is right in a fork()ed child too. */
void server_free(struct server *s);

/* Queues verb. kept may be NULL; verb and kept live until completion. */
void server_submit(struct server *s, struct request *r,
    const struct verb *verb, struct kept_commands *kept, uint64_t now);

/* Nobody waits for r any more. undo: nothing of its token may stay. Returns
 * true when not a byte of it had left. A request that is idle (completed)
 * may be undone too: then a debt is left. */
bool server_abandon(
    struct server *s, struct request *r, bool undo, uint64_t now);

/* Leaves a debt for token without a request: a release nobody waits for.
 * Takes debt over. */
void server_owe(struct server *s, struct debt *debt, struct slice token,
    uint32_t ttl_ms, uint64_t now);

/* The token is wanted again: what is owed for it and has not been sent is not
 * owed any more. False: something of it is on its way, which may delete the
 * token after it was seen. */
bool server_forgive(struct server *s, struct slice key, struct slice token);

/* The acquires of which not a byte is formatted fail with that: it is not to
 * have them. */
void server_refuse(
    struct server *s, enum fault fault, const struct text *words);
/* What it told of itself may have changed: before the next request there is
 * to be a new connection, unless one is being made. */
void server_look_again(struct server *s);

/* Connects if something wants to go, formats, sends. */
void server_push(struct server *s, uint64_t now);
/* What the watch reported for its key, as events of poll(). */
void server_ready(struct server *s, short revents, uint64_t now);
/* The clock has moved: time-outs. */
void server_tick(struct server *s, uint64_t now);
/* The next completion; false when there is none now. */
bool server_next(struct server *s, struct completion *c, uint64_t now);

/* When server_tick or server_push has something to do without an event. */
uint64_t server_deadline(struct server *s);

/* Commands or debts are unanswered or unsent. */
bool server_owes(const struct server *s);

#endif
