/* SPDX-License-Identifier: MIT */
/*
 * Asks the former primary whether it has handed over all its data, when the
 * Sentinels name another one: after SENTINEL FAILOVER ... COORDINATED it has,
 * and locks need not pause at the new primary (LINEAGE_COORDINATED).
 *
 * Invariant: it is sent a handshake and a PING, and is waited for at most for
 * FORMER_PRIMARY_PATIENCE_MS, or twice that if nobody drove the client
 * meanwhile. If it does not answer, it has not handed over.
 */
#ifndef NXLOCK_CLIENT_FORMER_PRIMARY_H
#define NXLOCK_CLIENT_FORMER_PRIMARY_H

#include "client/nodes.h"

#define FORMER_PRIMARY_PATIENCE_MS 300

struct former_primary {
    struct server server;
    struct source source;
    struct server_address address; /* its own */
    struct request request;
    struct verb verb;
    struct slice word;
    struct reply_values values;
    uint64_t until; /* 0: it is not asked */
    bool again;     /* until was put off */
};

/* For the only node, whose server guards against failovers and has the address
 * in endpoint. */
void former_primary_init(struct former_primary *f, struct nodes *nodes,
    const struct endpoint *endpoint);
/* As server_stop(). */
struct job *former_primary_stop(struct former_primary *f);
void former_primary_free(struct former_primary *f);

/* Asks the server at that address. host is owned from then on. */
void former_primary_ask(struct former_primary *f, char *host, uint16_t port,
    const struct text *name, uint64_t now);

static inline bool former_primary_is_asked(const struct former_primary *f)
{
    return f->until != 0;
}

/* True once: it has answered, and server.facts say what, or it has not in
 * time. *answered: which. */
bool former_primary_process(
    struct former_primary *f, bool *answered, uint64_t now);
uint64_t former_primary_deadline(struct former_primary *f);

#endif
