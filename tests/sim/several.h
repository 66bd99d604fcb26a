/* SPDX-License-Identifier: MIT */
/*
 * Handles of several names, with --work several: a group of workers in one
 * process, the members, that core/several.h makes take their names together, as
 * src/lock/members.c does; and the program that uses the handle. A token of the
 * simulator is of one name, so the members of a group have one each, but each
 * may draw only one in an attempt.
 *
 * Invariant: no set of handles waits for each other in a circle (I6). While the
 * program is told that it holds the handle, each member holds its name.
 */
#ifndef NXLOCK_SIM_SEVERAL_H
#define NXLOCK_SIM_SEVERAL_H

#include "core/several.h"
#include "sim/alarm.h"

#define GROUPS_MAX 2  /* in one process */
#define MEMBERS_MAX 4 /* of a group */

struct process;
struct worker;
struct world;

struct group {
    struct process *process;
    unsigned index;
    struct several several;
    struct worker *workers;             /* MEMBERS_MAX of them */
    struct worker *member[MEMBERS_MAX]; /* in the order of their names */
    enum { GROUP_IDLE, GROUP_ACQUIRES, GROUP_HOLDS, GROUP_RELEASES } state;
    bool busy; /* its actions are being carried out */
    bool renewed;
    bool lost; /* GROUP_HOLDS: one of its names */
    struct alarm alarm;
    uint64_t next_at; /* when its program does the next thing */
};

void groups_start(struct world *w, struct process *p);
void groups_end(struct world *w, struct process *p);

/* Of a member: its call is over; its lease was lost; its caller gives up. */
void group_completed(struct world *w, struct worker *k);
void group_lost(struct world *w, struct worker *k);
void group_cancel(struct world *w, struct worker *k);
/* May it have a token? Only one in each attempt. */
bool group_has_token(struct worker *k);

/* The world ends: no group begins anything any more. */
void groups_stop(struct world *w, struct process *p);

/* Do groups wait for each other in a circle? */
void groups_look(struct world *w);

#endif
