/* SPDX-License-Identifier: MIT */
/*
 * Which nodes of a client have a vote now. Each new connection is judged
 * before an acquire is sent on it. All functions need the client's mutex.
 */
#ifndef NXLOCK_CLIENT_VOTERS_H
#define NXLOCK_CLIENT_VOTERS_H

#include "client/client.h"

/* What is demanded of a server. */
struct eligibility_terms voters_terms(const struct node *n);

/* Judges a server whose handshake has just ended. */
bool voters_judge_new(struct node *n, uint64_t now);

/* Call it after replies were read. If a server has no vote that was judged now,
 * the acquires that wait for it fail. True: it was judged, so some may have
 * failed, and server_next() returns them. (What was judged: eligibility.) */
static inline bool voters_judge(struct node *n, uint64_t now)
{
    const struct server *s = &n->server;
    return s->state == SERVER_UP && n->voter.judged != s->connections &&
           voters_judge_new(n, now);
}

/* As weigh_may_send(): may verb be sent there? False: *refusal says why not;
 * its text lives in *words. */
bool voters_may_send(struct node *n, enum verb_kind verb, uint64_t now,
    struct outcome *refusal, struct text *words);

/* As weigh_outcome() and the others; deadline: of the lease that the lock has,
 * if it has one. Returns the outcome to count: outcome itself, or *other, whose
 * text is in *words. */
const struct outcome *voters_weigh(struct node *n, enum verb_kind verb,
    const struct outcome *outcome, uint64_t deadline, uint64_t now,
    struct outcome *other, struct text *words);

/* Another holder's key at the server expires in left_ms. True: a lease that is
 * longer than max_ttl_ms, and than all before: it takes part in how long
 * servers have no vote from now on. */
bool voters_note_longer_lease(struct node *n, int64_t left_ms, uint64_t now);

/* As weigh_message(). */
bool voters_believe(struct node *n, uint64_t sent_at, uint64_t now);

/* Adds why it has no vote now, or nothing. */
void voters_explain(const struct node *n, uint64_t now, struct text *text);

/* A failover there that the program has not been warned of: replaces *text by
 * the warning. False: there is none. */
bool voters_take_failover(struct node *n, uint64_t now, struct text *text);

/* How long it has no vote yet because it restarted or was promoted, rounded up;
 * 0: it has one, or lacks it for another reason. */
uint64_t voters_quarantine_ms(const struct node *n, uint64_t now);

#endif
