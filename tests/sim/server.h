/* SPDX-License-Identifier: MIT */
/*
 * A model of one Redis server: keys with a value and an end by the server's
 * own clock, which is off, runs at its own rate and may be stepped; one
 * process after another, each with a run_id and an uptime; crashes that keep
 * the data, lose it, or bring back what was saved a while ago.
 */
#ifndef NXLOCK_SIM_SERVER_H
#define NXLOCK_SIM_SERVER_H

#include "base/list.h"
#include "model/verb.h"
#include "sim/alarm.h"
#include "sim/holders.h"
#include "sim/queue.h"
#include "sim/record.h"

#define NAMES_MAX 5
#define REPLICAS_MAX 3

struct conn;
struct message;
struct replication;

struct key {
    uint64_t token;   /* 0: free */
    int64_t until_ms; /* by the server's clock */
};

/* The key that remembers since when it has been the primary of a history. */
struct marker {
    uint64_t replid; /* 0: there is none */
    int64_t set_ms;  /* by the server's clock */
    uint64_t age_ms; /* then */
};

struct data {
    struct key key[NAMES_MAX];
    uint64_t fence[NAMES_MAX]; /* the last number given for each name */
    struct queue queue[NAMES_MAX];
    struct holders holders[NAMES_MAX]; /* of a lock that several have */
    struct work_record record[NAMES_MAX];
    struct marker marker;
};

enum restart { RESTART_KEEPING, RESTART_EMPTY, RESTART_REWOUND };

struct model_server {
    unsigned index;
    struct data data, saved; /* saved: what RESTART_REWOUND brings back */
    /* Its clock: what it shows now, and by how many ppm it is too fast. */
    int64_t clock_ns;
    uint64_t clock_at;
    int64_t rate_ppm;
    uint64_t run_id;    /* of the present process */
    int64_t started_ms; /* by its clock */
    bool down;
    enum restart restart;
    uint64_t stopped_until;  /* SIGSTOP: it reads nothing */
    uint64_t slow_until;     /* what it sends and is sent takes long */
    uint64_t refusing_until; /* an error for every command */
    enum fault refusal;      /* ... this; FULL: for those that set a key */
    /* Until then a release may not hand over (DENIED_SET), or nobody may
     * publish, or count listeners. */
    enum { DENIED_SET, DENIED_PUBLISH, DENIED_COUNT } denied;
    uint64_t denied_until;
    uint64_t next_client;
    int64_t stepped_back_ms; /* leases last as much longer */
    uint64_t stepped_at;
    /* When its clock was set back by many seconds; and when it last came up
     * without all its data. 0: never. */
    uint64_t stepped_far_at, forgot_at;
    struct list conns;
    struct alarm up_again;
    /* In a world with failovers, see promotion.h: the history of its data, and
     * the one before (0: none); since when it has been the primary, and had
     * replicas (0: it has none); how many these are; when it was woken after
     * one of them was promoted (0: that has not happened), and when that was;
     * the process that was promoted before; whether the address leads to a
     * replica, which may be the primary that is handing over. */
    uint64_t replid, replid2;
    uint64_t primary_since, replicas_since;
    unsigned replicas;
    uint64_t woken_at, replaced_at;
    uint64_t earlier_run_id;
    bool replica, hands_over, returns, lost;
    struct alarm takes_over;
    /* In a world with replicas that have data, see replication.h: those; the
     * number of its last write, in this epoch, which ends when writes are lost;
     * the scripts that it knows, a bit for each kind of message. And of a
     * former primary, which writes its replicas had, those that were there. */
    struct replication *replication;
    uint64_t offset, epoch;
    unsigned scripts;
    uint64_t had[REPLICAS_MAX];
    unsigned had_count;
    bool former;        /* the address does not lead to it any more */
    struct list others; /* former: of the world */
};

/* s: all zero. */
void server_start(struct world *w, struct model_server *s, unsigned index);
void server_end(struct world *w, struct model_server *s);

int64_t server_clock_us(const struct world *w, struct model_server *s);
/* Whole milliseconds, as it stores and compares times. */
int64_t server_clock_ms(const struct world *w, struct model_server *s);
uint64_t server_uptime_s(const struct world *w, struct model_server *s);
/* ns before (+) or behind the true time of day */
int64_t server_clock_error(const struct world *w, struct model_server *s);
void server_step_clock(struct world *w, struct model_server *s, int64_t by_ns);

/* The token that stands there now; 0: none, or several have the lock. */
uint64_t server_value(
    const struct world *w, struct model_server *s, unsigned name);

/* Does the token stand there, alone or beside others? */
bool server_has(const struct world *w, struct model_server *s, unsigned name,
    uint64_t token);

/* Likewise, but what looks leaves no trace, not even in its clock. */
int64_t server_peek_ms(const struct world *w, const struct model_server *s);
uint64_t server_peek(
    const struct world *w, const struct model_server *s, unsigned name);

/* The key of that name, and nothing if it has expired. */
struct key *server_key(
    const struct world *w, struct model_server *s, unsigned name);
/* Draws the next fencing number of the name: this one at least. */
uint64_t server_next_fence(const struct world *w, struct model_server *s,
    unsigned name, uint64_t least);
/* A program that knows nothing of lines sets a key, if it is free. */
bool server_set_outside(
    struct world *w, struct model_server *s, unsigned name, uint32_t ttl_ms);
/* ... or also if the key is one that a wait in line has brought to work which
 * has not begun. */
bool server_intrude(
    struct world *w, struct model_server *s, unsigned name, uint32_t ttl_ms);

void server_copy_data(struct data *to, const struct data *from);
/* It saves what RESTART_REWOUND brings back. */
void server_save(struct model_server *s);
/* Its data are those that it saved. */
void server_rewind(struct world *w, struct model_server *s);

/* Carries out the command in m and turns it into its reply. */
void server_apply(struct world *w, struct model_server *s, struct message *m);

/* It is stopped no longer, and reads what has come. */
void server_thaw(struct world *w, struct model_server *s);
/* Its end of all connections is gone. */
void server_drop_conns(struct world *w, struct model_server *s);
void server_crash(
    struct world *w, struct model_server *s, enum restart how, uint64_t away);

#endif
