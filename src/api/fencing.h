/* SPDX-License-Identifier: MIT */
/*
 * The second part of an acquire that draws a fencing number: once it is
 * granted, core/fence.h makes a quorum of servers have that number, or else
 * the acquire goes on. With one server it is over at once.
 */
#ifndef NXLOCK_API_FENCING_H
#define NXLOCK_API_FENCING_H

#include "api/client.h"

/* The acquire was granted. False: it draws no number, or this was done. */
bool fencing_begin(struct operation *op, uint64_t now);

/* The second part is over with verdict. False: the number is good. Else the
 * grant is undone, and the first part goes on: its verdict is the call's. */
bool fencing_undo(struct operation *op, enum verdict verdict, uint64_t now);

#endif
