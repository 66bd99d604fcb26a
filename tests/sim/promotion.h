/* SPDX-License-Identifier: MIT */
/*
 * Failovers of a model server: another process takes its place at the address,
 * with all of its data or with what had been replicated, while the former one
 * is gone, or stands still with its connections open and answers later. In
 * between the address may lead to a replica.
 */
#ifndef NXLOCK_SIM_PROMOTION_H
#define NXLOCK_SIM_PROMOTION_H

#include <stdbool.h>
#include <stdint.h>

struct message;
struct model_server;
struct world;

void promotion_start(struct world *w, struct model_server *s);
void promotion_end(struct world *w, struct model_server *s);
/* A command leaves for a former process. */
void promotion_asked(struct world *w, struct model_server *s);
/* All former processes are gone. */
void promotions_end(struct world *w);

/* It becomes the primary of another history, after that one. */
void promotion_begins(struct world *w, struct model_server *s, uint64_t second);

/* It comes up after a crash: its data begin a new history, which has a second
 * one if it has read them from an RDB file. */
void promotion_restarted(
    struct world *w, struct model_server *s, bool with_data);

/* A replica takes over with older data. False: it cannot happen now. */
bool promotion_lossy(struct world *w, struct model_server *s);
/* ... with all data, for which the primary has stopped to write. */
bool promotion_hand_over(struct world *w, struct model_server *s);
/* Its replication backlog is freed. */
bool promotion_free_backlog(struct world *w, struct model_server *s);

/* What it says about its history in a handshake, in m. */
void promotion_tell(struct world *w, struct model_server *s, struct message *m);
/* A client sets the marker key. */
void promotion_mark(struct world *w, struct model_server *s, struct message *m);

#endif
