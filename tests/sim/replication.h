/* SPDX-License-Identifier: MIT */
/*
 * The replicas of a model server. Each gets the primary's writes in their order
 * and after a while; it may lag for long, be gone, and take over. WAIT asks how
 * many have what a connection has written.
 *
 * A write has a number, its offset. A replica has all writes up to an offset,
 * and the data as they were then.
 */
#ifndef NXLOCK_SIM_REPLICATION_H
#define NXLOCK_SIM_REPLICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/alarm.h"
#include "sim/server.h"

struct conn;
struct message;
struct world;

struct replica {
    enum {
        REPLICA_FOLLOWS,
        REPLICA_LAGS, /* it is connected, and nothing reaches it */
        REPLICA_GONE  /* or not connected yet: it cannot take over */
    } state;
    struct model_server *primary;
    uint64_t offset;
    struct data data;
    uint64_t delay_ns;  /* of a write, at most */
    bool due;           /* FOLLOWS: writes are on their way to it */
    struct alarm alarm; /* they arrive; LAGS, GONE: that is over */
};

/* A write that a client may be told of when enough replicas have it. */
struct logged_write {
    uint64_t offset, token;
    uint64_t deadline; /* that it allows; 0: it is about a record */
};

struct replication {
    unsigned count; /* of replicas */
    struct replica replica[REPLICAS_MAX];
    struct logged_write *log; /* what too few of them have */
    size_t logged, room;
    uint64_t enough_since; /* so many follow as the clients want; 0: fewer */
};

void replication_start(struct world *w, struct model_server *s);
void replication_end(struct world *w, struct model_server *s);

/* How many are connected, as far as it knows. */
unsigned replication_connected(
    const struct world *w, const struct model_server *s);
/* A command is carried out that lets the token rely on its key until deadline,
 * and writes that. */
void replication_promises(
    struct world *w, struct model_server *s, uint64_t token, uint64_t deadline);
/* m has been carried out, and has written. */
void replication_wrote(
    struct world *w, struct model_server *s, struct message *m);
/* Does the WAIT m, which has arrived on c, have to wait until *until? */
bool replication_must_wait(const struct world *w, struct conn *c,
    const struct message *m, uint64_t *until);
/* How many have what was written over c. */
unsigned replication_copies(const struct world *w, const struct conn *c);
/* WAITs go on: what they wait for may have come. */
void replication_goes_on(struct world *w, struct model_server *s);

/* The replicas have lost the primary, and come back after a while; lost: its
 * latest writes are gone. */
void replication_cut(struct world *w, struct model_server *s, bool lost);
/* Can one of the replicas take over, and does the world allow it? */
bool replication_can_elect(const struct world *w, const struct model_server *s);
/* It does, and s has its data. */
void replication_elect(struct world *w, struct model_server *s);
/* May one take over that has everything? */
bool replication_complete(const struct model_server *s);
/* s goes on as another server; former is what is left of it, and remembers what
 * its replicas had. */
void replication_leave(
    const struct model_server *s, struct model_server *former);
/* Something happens to one of its replicas, or its scripts are forgotten. */
bool replication_trouble(struct world *w, struct model_server *s);
/* Those that lag or are gone come back at once. */
void replication_heal(struct world *w, struct model_server *s);

#endif
