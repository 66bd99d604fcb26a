/* SPDX-License-Identifier: MIT */
/*
 * Locks that wait in line: which of them may, how they are told that a lock was
 * handed over to them, and when the client's subscription is needed.
 * core/line.h decides all else. All functions need the client's mutex.
 */
#ifndef NXLOCK_LOCK_WAITING_H
#define NXLOCK_LOCK_WAITING_H

#include "lock/handle.h"

/* A lock that has waited in line has this too. */
struct waiting {
    struct line line;
    struct channel *channel;   /* of its name; NULL: it is never told */
    struct list node;          /* in channel->waiters while it is in line */
    struct index_entry joined; /* from its first JOIN, by its token */
    struct slice client;       /* the client's word in its member of the line */
    unsigned tested_with;      /* the second connection that is being tested */
    struct nxl_lock *lock;
};

/* The number of the client's connection for commands; 0: it is not up. */
unsigned waiting_connection(const struct nxl_lock *lock);

/* An acquire has just begun: if the last one had to wait, this one begins in
 * line, which saves it a request. */
void waiting_begin(struct nxl_lock *lock, uint64_t now);
/* The lock is taken: waits in line if possible. */
void waiting_line_up(struct nxl_lock *lock, uint64_t now);

/* Completes a JOIN or STAY that is about to be sent. */
void waiting_complete(struct nxl_lock *lock, struct verb *verb);
/* One with verb.test_listener was answered. */
void waiting_answered(
    struct nxl_lock *lock, const struct outcome *outcome, uint64_t now);
/* After the state machine of a lock that has waited ran: it may have left the
 * line. */
void waiting_update(struct nxl_lock *lock, uint64_t now);

/* The lock is freed. NULL: it has never waited. */
void waiting_free(struct waiting *w);

/* Adds how the client's locks wait, for people: "in line", "by polling
 * (poll=1)". False: they poll. */
bool waiting_describe(const struct node *node, struct text *text);

#endif
