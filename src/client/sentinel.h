/* SPDX-License-Identifier: MIT */
/*
 * One Sentinel: the connection to it, the questions that it is asked, and what
 * its answers say. Who is asked when, and what follows of it: sentinel_watch.h.
 *
 * Invariant: a view is complete: all of it is from answers of one Sentinel,
 * none of which was asked for before view.asked_at.
 */
#ifndef NXLOCK_CLIENT_SENTINEL_H
#define NXLOCK_CLIENT_SENTINEL_H

#include "client/nodes.h"
#include "core/confirm.h"

/* The first two are asked in each poll. */
enum sentinel_question { ASK_ADDRESS, ASK_DETAILS, ASK_OTHERS, QUESTIONS };

struct sentinel {
    const struct endpoint *endpoint;
    unsigned host_index;      /* of its host in the URL */
    unsigned address_index;   /* of the host, from 1; 0: any that answers */
    unsigned tried_addresses; /* addresses that led to another one's Sentinel */
    struct server server;
    struct source source;
    struct settings settings; /* owns nothing */
    struct question {
        struct request request;
        struct verb verb;
        struct slice words[3];
        struct reply_values values;
        bool pending;
    } questions[QUESTIONS];
    uint64_t asked_at; /* when it was asked last */
    bool failed;       /* its last answer names nobody, for this reason: */
    enum fault fault;
    struct text why;
};

/* The nth address (see struct target) of that host in the URL of endpoint,
 * which outlives it. NULL: no memory. */
struct sentinel *sentinel_new(struct nodes *nodes,
    const struct endpoint *endpoint, unsigned listed, unsigned nth);
void sentinel_free(struct sentinel *st);

/* Is an answer to come? */
static inline bool sentinel_is_pending(const struct sentinel *st)
{
    return st->questions[ASK_ADDRESS].pending ||
           st->questions[ASK_DETAILS].pending ||
           st->questions[ASK_OTHERS].pending;
}

/* Asks for the primary; or for the other Sentinels. Nothing is pending. */
void sentinel_ask(struct sentinel *st, uint64_t now);
void sentinel_ask_others(struct sentinel *st, uint64_t now);

/* Takes the outcome of request, and updates *view, which is its own. */
void sentinel_take(struct sentinel *st, const struct request *request,
    const struct outcome *outcome, struct sentinel_view *view, uint64_t now);

/* Why it names nobody now, for people; NULL: it does. */
const char *sentinel_reason(const struct sentinel *st);
/* Adds "; 10.0.0.7:26379 knows 10.0.0.8:26379, 10.0.0.9:26379", if it was asked
 * for the others and has answered. */
void sentinel_add_others(const struct sentinel *st, struct text *text);

#endif
