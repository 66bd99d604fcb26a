/* SPDX-License-Identifier: MIT */
/*
 * Carries out one cleanup (core/cleanup.h) at a server: holds its key and
 * token, formats its commands and reads their replies.
 *
 * It is reserved before the acquire is sent (net/spare.h), so that a cleanup
 * cannot fail for lack of memory. Only a cleanup whose token may be in use is
 * allocated when it is needed; without memory for it, the key expires.
 */
#ifndef NXLOCK_NET_CLEANER_H
#define NXLOCK_NET_CLEANER_H

#include "base/list.h"
#include "core/cleanup.h"
#include "model/verb.h"
#include "net/conn.h"
#include "wire/exchange.h"
#include "wire/handshake.h"

struct cleaner {
    struct list node;      /* in the server's cleaners */
    struct list idle_node; /* and in those of them that are CLEANUP_IDLE */
    struct cleanup cleanup;
    /* The request's pointer to this cleaner (request.acquire_cleaner), which is
     * reset when the cleaner is freed; NULL: there is none. */
    struct cleaner **link;
    struct exchange exchange; /* of the compare-and-delete that was sent */
    struct verb verb; /* RELEASE, or after a BEGIN UNDO_BEGIN; its key and token
                       * are in bytes */
    size_t room;      /* of bytes */
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

/* Begins the cleanup of the token of the verb `of`, from which it takes kind,
 * token, ttl, not_after and the place in line, whose client must outlive the
 * cleaner.
 * Call exchange_inherit() first, and put the cleaner into the server's lists
 * afterwards. */
void cleaner_start(struct cleaner *k, enum cleanup_cause cause,
    const struct verb *of, uint64_t now);

/* Appends the commands that are due to the connection. If there were any, the
 * cleaner leaves the list of those that are idle. False: out of memory, or a
 * transaction is open; it is tried again later. */
bool cleaner_send(struct cleaner *k, struct conn *c, struct dialect *dialect,
    const struct facts *facts, uint64_t now);

/* Take replies in. Afterwards the caller looks at the state of the cleanup: if
 * it is over, frees the cleaner; if it is CLEANUP_IDLE, puts it into the list
 * of those that are idle. While it is CLEANUP_DELETING more replies follow. */
void cleaner_kill_answered(
    struct cleaner *k, const struct reply *reply, uint64_t now);
void cleaner_delete_answered(struct cleaner *k, const struct reply *reply,
    struct conn *c, struct dialect *dialect, uint64_t now);

/* Makes *link point to k until k is freed. */
void cleaner_link(struct cleaner *k, struct cleaner **link);

#endif
