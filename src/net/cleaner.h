/* SPDX-License-Identifier: MIT */
/*
 * Carries out one cleanup (core/cleanup.h) at a server: has its key and token,
 * formats its commands on the connection and reads their replies.
 *
 * Its record is reserved before the acquire is sent, so that a cleanup cannot
 * fail for want of memory. Only one whose token may be in use gets its record
 * when it is needed; without memory for it the key expires.
 */
#ifndef NXLOCK_NET_CLEANER_H
#define NXLOCK_NET_CLEANER_H

#include "base/list.h"
#include "base/verb.h"
#include "core/cleanup.h"
#include "net/conn.h"
#include "wire/exchange.h"
#include "wire/handshake.h"

struct cleaner {
    struct list node; /* in the server's cleaners */
    struct list due;  /* and in those of them that are CLEANUP_DUE */
    struct cleanup cleanup;
    /* The pointer to this one in the request that acquired its token, which is
     * reset when the cleaner is freed; NULL: no request has one. */
    struct cleaner **link;
    struct exchange exchange; /* of the compare-and-delete on its way */
    struct verb verb;         /* RELEASE of key and token, which follow here */
    size_t room;              /* for them */
    char bytes[];
};

/* Room for this key and a token of up to token_room bytes. NULL: no memory */
struct cleaner *cleaner_new(struct slice key, size_t token_room);
/* The same from k, which was not started or is NULL. */
struct cleaner *cleaner_reuse(
    struct cleaner *k, struct slice key, size_t token_room);
void cleaner_free(struct cleaner *k);
/* All that are in a list by their node. */
void cleaners_free(struct list *list);

/* Begins the cleanup of token; after exchange_inherit(). The caller then
 * puts it into the server's lists. */
void cleaner_start(struct cleaner *k, enum cleanup_cause cause,
    struct slice token, uint32_t ttl_ms, uint64_t not_after, uint64_t now);

/* Appends what is due to the connection and its slots; if that is anything, it
 * leaves the list of those that are due. Returns false when memory ran out, or
 * another transaction is open; it is then tried again later. */
bool cleaner_send(struct cleaner *k, struct conn *c, struct dialect *dialect,
    const struct facts *facts, uint64_t now);

/* Replies. The state of the cleanup says what follows: if it is over the
 * caller frees it, and puts it among the due if it is that again. While it is
 * CLEANUP_DELETING more replies are to come. */
void cleaner_kill_answered(
    struct cleaner *k, const struct reply *reply, uint64_t now);
void cleaner_delete_answered(struct cleaner *k, const struct reply *reply,
    struct conn *c, struct dialect *dialect, uint64_t now);

/* *link points to k from now on. */
void cleaner_link(struct cleaner *k, struct cleaner **link);

#endif
