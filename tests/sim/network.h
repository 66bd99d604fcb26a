/* SPDX-License-Identifier: MIT */
/*
 * The network: connections made of two pipes in which nothing overtakes and
 * everything takes its time. Either end may be gone while the other does not
 * know yet: what a client has sent may be applied after it was told that the
 * connection is lost, and what it sends to an end that is gone is not. So it is
 * with commands that are encrypted, and thus sent, but held by the client: they
 * arrive late, or never, or without those behind them. On every other
 * connection they are also held as long as the client stands still.
 */
#ifndef NXLOCK_SIM_NETWORK_H
#define NXLOCK_SIM_NETWORK_H

#include "base/list.h"
#include "model/verb.h"
#include "sim/alarm.h"
#include "sim/record.h"

struct link;
struct model_server;
struct process;

enum message_kind {
    MESSAGE_HELLO,   /* the handshake: AUTH, CLIENT ID, INFO */
    MESSAGE_ACQUIRE, /* SET NX PX, and the name's next fencing number */
    MESSAGE_EXTEND,
    MESSAGE_RELEASE, /* compare-and-delete */
    MESSAGE_LOOK,    /* GET, compared, and PTTL */
    MESSAGE_INSPECT, /* GET and PTTL */
    MESSAGE_CAP,     /* if the token stands: PEXPIRE, also if that is less */
    MESSAGE_KILL,    /* CLIENT KILL ID number */
    MESSAGE_RAISE,   /* if the token stands: fence = max(fence, number), or the
                      * next one if number is 0 */
    MESSAGE_JOIN,    /* the scripts of a line, see queue.h */
    MESSAGE_STAY,
    MESSAGE_SUBSCRIBE,
    MESSAGE_BEGIN, /* the scripts of a record, see record.h */
    MESSAGE_LOOK_ONCE,
    MESSAGE_TELL,
    MESSAGE_FORGET,
    MESSAGE_UNBEGIN,
    MESSAGE_ALIVE, /* INFO, after a silence */
    MESSAGE_MARK,  /* the marker key is set */
    MESSAGE_WAIT,  /* for number replicas, and ttl_ms */
    MESSAGE_GRANT, /* from the server: the name was handed over to the token */
    MESSAGE_HINT,  /* ... : it was not, and the token is the first in line */
    MESSAGE_ASK,   /* ... : the token is to ask, and to serve the line */
    MESSAGE_TAKE   /* the script take, of a token that shares its lock */
};

/* A command on its way there, and its reply on the way back. */
struct message {
    struct list node;
    uint64_t arrives;
    enum message_kind kind;
    unsigned name;
    uint64_t token;
    uint32_t ttl_ms;
    uint64_t sent_at; /* the client's reading before it left */
    uint64_t number;
    /* RELEASE: not to be sent from then on (0: no limit), as the client sees
     * it; and the deadline that its handle was promised, as the checker does
     * (0: none was). */
    uint64_t not_after, promised;
    bool want_left; /* ACQUIRE: when busy, say how long still */
    /* ... by the script hold_back: say whether several hold the lock, and if
     * they do, nobody joins them for so many ms. */
    bool asks_kind;
    uint32_t hold_back_ms;
    bool kind_by_name; /* ... by EVALSHA; the reply: it does not know it */
    bool kind_unknown;
    bool may_wait; /* TAKE: its caller waits for the lock */
    bool served;   /* TAKE: it has granted the lock to some who wait in line */
    /* The reply "busy": what stood there, and until when it could stand. */
    uint64_t stood, stood_until;
    bool gap;       /* ... nothing, and it is left free for others until then */
    bool held_back; /* TAKE: ... until then nobody joins the holders */
    /* JOIN, STAY, and RELEASE of a token that may be in line: its place there,
     * with ttl_ms. RELEASE of any other token: channel is 0. */
    uint64_t channel; /* SUBSCRIBE too */
    uint32_t window;
    bool test;       /* JOIN, STAY: has the channel no listener? */
    bool plain;      /* RELEASE: it knows nothing of the line */
    unsigned gap_ms; /* RELEASE: so long nobody in line is granted the name */
    bool followed;   /* RELEASE: somebody is probably in line */
    bool held;       /* BEGIN: the key may hold the token */
    bool earlier_token_possible; /* it may hold an earlier token of the same
                                    call */
    bool doubled; /* it arrived before, and nobody waits for an answer */
    struct once_part once;     /* BEGIN ... FORGET */
    struct outcome outcome;    /* the reply */
    uint64_t run_id, uptime_s; /* HELLO: likewise */
    /* HELLO, ALIVE, in a world with failovers: the history that the client
     * knows, and up to what age as a primary it asks; the reply. MARK: replid.
     */
    uint64_t known, needed_s;
    bool replica;
    uint64_t replid, replid2;
    int64_t primary_s, clock_ns;
    unsigned replicas; /* that it takes for connected */
    /* EVAL, not EVALSHA. The reply: the script is not known; and the offset of
     * what it has written, in which epoch (0: nothing). */
    bool evals, no_script;
    uint64_t wrote, epoch;
};

struct pipe {
    struct list messages;
    uint64_t last; /* arrival of the latest: nothing overtakes it */
    struct alarm alarm;
};

struct conn {
    struct list node; /* among the server's */
    struct model_server *server;
    struct process *process;      /* NULL: the client's end is gone */
    const struct process *client; /* whose it is, or was */
    struct link *link; /* NULL: it is for messages (subscription.c) */
    bool served;       /* false: the server's end is gone */
    uint64_t channel;  /* it is subscribed to that; 0: to none */
    /* It encrypts, and what counts as sent stays with the client while that
     * stands still. */
    bool holds, held;    /* held: it has just happened */
    uint64_t id, run_id; /* CLIENT ID, and whose */
    struct pipe up, down;
    uint64_t wrote;         /* the offset of the last write over it */
    uint64_t waits_until;   /* WAIT blocks it; 0: none does */
    uint64_t held_up_until; /* what comes down stays on its way */
    struct alarm breaks;    /* the client is told that it is lost */
    struct alarm gone;      /* the server finds out that the client is gone */
};

const char *message_name(enum message_kind kind);
/* Of a command of a lock. */
enum verb_kind message_verb(enum message_kind kind);

/* How long a message takes to or from s. */
uint64_t travel(struct world *w, const struct model_server *s);

/* link NULL: for messages. */
struct conn *conn_open(struct world *w, struct model_server *s,
    struct process *process, struct link *link);

/* A copy of m leaves the client. */
void conn_send(struct world *w, struct conn *c, const struct message *m);

/* The server sends a message to whoever listens to the channel. */
void conn_publish(
    struct world *w, struct model_server *s, const struct message *message);
/* How many it takes for listeners. */
unsigned conn_listeners(const struct model_server *s, uint64_t channel);

/* The client's end is gone. What it sent arrives all the same until linger has
 * passed. */
void conn_leave(struct world *w, struct conn *c, uint64_t linger);

/* The server's end is gone, with what had not arrived. The client is told
 * after its replies (clean), or sooner and without them. */
void conn_drop(struct world *w, struct conn *c, bool clean);

/* At the end of a world. */
void conn_free(struct world *w, struct conn *c);

#endif
