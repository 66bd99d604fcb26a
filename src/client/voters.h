/* SPDX-License-Identifier: MIT */
/*
 * Which of the client's servers have a vote now. Each new connection is
 * judged before an acquire goes on it. All calls need the client's mutex.
 */
#ifndef NXLOCK_CLIENT_VOTERS_H
#define NXLOCK_CLIENT_VOTERS_H

#include "client/client.h"

/* Does this client check eligibility at all? */
static inline bool voters_matter(const struct nxl_client *client)
{
    return client->server_count > 1 || client->guard;
}

/* After replies were taken in: a handshake that has just ended is judged, and
 * acquires that wait for a server without a vote fail. True: they may have, and
 * server_next() has them. */
bool voters_judge(struct nxl_client *client, unsigned server, uint64_t now);

/* May an acquire be sent to server? False: *refusal says why not; its text
 * lives in *words. */
bool voters_ask(struct nxl_client *client, unsigned server, uint64_t now,
    struct outcome *refusal, struct text *words);

/* The outcome as it counts: *outcome, or *other if the server has no vote on
 * it (its text lives in *words). */
const struct outcome *voters_weigh(struct nxl_client *client, unsigned server,
    enum verb_kind verb, const struct outcome *outcome, uint64_t now,
    struct outcome *other, struct text *words);

/* Adds why server has no vote now, or nothing. */
void voters_words(const struct nxl_client *client, unsigned server,
    uint64_t now, struct text *text);

#endif
