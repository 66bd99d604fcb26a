/* SPDX-License-Identifier: MIT */
/*
 * The line of a name at a model server, and the scripts that use it: in the
 * order of steps of src/wire/scripts (line_wait.lua, hand_over.lua, serve.lua).
 *
 * Invariant: a token leaves the line before it is granted, and is granted
 * before anybody is told.
 */
#ifndef NXLOCK_SIM_QUEUE_H
#define NXLOCK_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/holders.h"

struct message;
struct model_server;
struct world;

#define QUEUE_MAX 512
#define QUEUE_LASTS_MS 15000 /* after the last JOIN or STAY */

#define GAP_MS 100
#define GAP_EVERY_MS 7400
#define GAP_MOST_MS 1000

#define CHANNEL_NONE UINT64_C(1) /* "-": it is not told */

struct place {
    uint64_t token, channel;
    uint32_t lease_ms, window, ticket;
    bool later;   /* of a version that this one does not know */
    int64_t seen; /* tick of its last sign of life, modulo 2^22 */
};

struct queue {
    /* When the line and the mark "somebody waits" expire, by the server's
     * clock. marked_until_ms 0: there is no mark. */
    int64_t until_ms, marked_until_ms;
    /* What the mark says: until then, by that clock, nobody joins the holders
     * of the lock; 0: that somebody waits in line. */
    int64_t held_back_until_ms;
    /* Until GAP_EVERY_MS before, nobody in it is granted the name; until then,
     * no release has to begin another gap. */
    int64_t paced_until_ms;
    unsigned count;
    struct place place[QUEUE_MAX]; /* by tickets; last, see server_save() */
};

/* JOIN and STAY. */
void queue_wait(struct world *w, struct model_server *s, struct message *m);
/* A release, m, has deleted the key, or other holders are left in it: the first
 * in line that fit get it, if there is the mark, or somebody is expected there.
 */
void queue_hand_over(struct world *w, struct model_server *s,
    const struct message *m, const struct state *state);

/* Who is granted the lock from the front of a line: serve.lua. */
struct serving {
    struct state state;            /* of the key, before and after */
    struct message *me;            /* JOIN or STAY that asks; NULL: none */
    const struct message *release; /* that hands over; NULL: none */
    bool denied;                   /* whoever asks may not set a key */
    unsigned granted;
    bool mine;       /* ... to me */
    bool stopped;    /* at somebody who does not fit, or is one too many */
    struct place at; /* ... that one, or who was granted it last */
    bool at_me;      /* ... which is me */
    bool stay;       /* at the end of the line, and some keep their place */
};
void queue_serve(
    struct world *w, struct model_server *s, unsigned name, struct serving *by);
/* A RELEASE of a token that does not hold the key. False: it is not in line. */
bool queue_leave(
    struct world *w, struct model_server *s, const struct message *m);

/* The line, or the mark, or the gap, as it is now. */
unsigned queue_length(
    const struct world *w, struct model_server *s, unsigned name);
bool queue_marked(const struct world *w, struct model_server *s, unsigned name);
bool queue_in_gap(const struct world *w, struct model_server *s, unsigned name);
/* The script hold_back, for an ACQUIRE that has found several holders. */
void queue_hold_back(
    struct world *w, struct model_server *s, const struct message *m);
/* Does it hold others back? That leaves no trace. */
bool queue_holds_back(
    const struct world *w, const struct model_server *s, unsigned name);
/* For how many ms still nobody joins the holders; 0: they may. */
int64_t queue_held_back_ms(
    const struct world *w, struct model_server *s, unsigned name);
/* The key that makes gaps is there; and the gap lasts so long still. */
bool queue_is_paced(
    const struct world *w, struct model_server *s, unsigned name);
int64_t queue_gap_ms(
    const struct world *w, struct model_server *s, unsigned name);

#endif
