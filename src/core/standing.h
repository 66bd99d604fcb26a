/* SPDX-License-Identifier: MIT */
/*
 * May a server vote? One of several that restarted may have forgotten locks
 * that others still count on it for; so it has no vote until every lock that
 * it may have granted before is over. What it tells of itself at each new
 * connection is judged here, against what was known of it before.
 *
 * Keeps: a server whose process cannot be shown to be older than max_ttl and
 * its drift has no vote before that time has passed since it was first seen;
 * one whose process changed under a living client has none for that time from
 * then on, for it may be another server in the old one's place.
 */
#ifndef NXLOCK_CORE_STANDING_H
#define NXLOCK_CORE_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/text.h"

#define STANDING_ID 41

/* What a server told at a handshake. */
struct told {
    const char *run_id; /* "": it did not tell */
    const char *role;   /* likewise */
    int64_t uptime_s;   /* -1: it did not tell */
    bool refused;       /* INFO was */
    bool no_aof;
    bool set_back; /* the uptime was negative, and counts as 0 */
};

struct standing_terms {
    uint32_t max_ttl_ms, drift_ppm;
    bool guard;   /* against restarts */
    bool durable; /* it forgets nothing, says the URL */
};

/* What bars it until somebody mends it. */
enum standing_bar {
    STANDING_FREE,
    STANDING_UNTOLD, /* INFO is refused, or says too little */
    STANDING_REPLICA,
    STANDING_FORGETS, /* durable, but it has no AOF */
    STANDING_TWIN     /* another of the list is the same server */
};

struct standing {
    enum standing_bar bar;
    char run_id[STANDING_ID]; /* the latest that was told */
    /* The quarantine, apart from the bar, which may come and go in it. */
    uint64_t votes_at; /* only ever put off */
    uint64_t since;    /* about its process's start; changed: seen then */
    bool changed;      /* it was another process than before */
    bool set_back;     /* told as it was judged last */
};

/* Judges anew; *s is what was known before, of zeros at first. twin: another
 * server of the list has told this run_id. */
void standing_judge(struct standing *s, const struct told *told,
    const struct standing_terms *terms, bool twin, uint64_t now);

/* Does what is sent to it now count? */
bool standing_votes(const struct standing *s, uint64_t now);

/* Why not: FAULT_NONE when it votes. */
enum fault standing_fault(const struct standing *s, uint64_t now);

/* That it holds a token counts for extending: it held it all the time since we
 * set it, whatever it has forgotten before. Not for adopting: it may have
 * forgotten that the token was released. */
bool standing_proves(const struct standing *s);

/* Adds why it does not vote, since when, and when it does again. */
void standing_words(
    const struct standing *s, uint64_t now, struct text *text);

#endif
