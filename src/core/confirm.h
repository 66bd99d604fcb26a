/* SPDX-License-Identifier: MIT */
/*
 * Which server is the primary of a service, as its Sentinels say, and who else
 * has to say so. A Sentinel that is cut off together with a former primary goes
 * on naming it while the others have promoted another server. So what a primary
 * says counts only if a majority of the Sentinels has named it not long before
 * it was asked.
 *
 * Invariant: a Sentinel counts once, by its run_id, under however many
 * addresses it is listed; a majority is one of all Sentinels of the service, of
 * those that are listed and of those that any of them knows. Two addresses
 * never have a majority at the same time.
 */
#ifndef NXLOCK_CORE_CONFIRM_H
#define NXLOCK_CORE_CONFIRM_H

#include <stdbool.h>
#include <stdint.h>

#include "model/guard.h"

#define CONFIRM_SENTINELS 32 /* at most */
#define CONFIRM_ID 41
#define CONFIRM_HOST 254

/* A request counts if a majority has named its server at most this long before
 * the request was sent, or later. */
#define CONFIRM_VALID_MS 2000

/* What one Sentinel has said last. */
struct sentinel_view {
    char id[CONFIRM_ID]; /* its run_id; "": it has not answered yet */
    char host[CONFIRM_HOST];
    uint16_t port;
    /* The time before the question was sent whose answer is this view; 0: there
     * is none that names a server. */
    uint64_t asked_at;
    uint64_t since; /* it has named that address since then at least */
    unsigned
        others; /* Sentinels of the service that it knows, without itself */
};

struct sentinel_views {
    unsigned listed; /* Sentinels in the URL: there may be more */
    unsigned count;  /* of the views */
    struct sentinel_view views[CONFIRM_SENTINELS];
};

/* How many have to name a primary. */
unsigned confirm_needed(const struct sentinel_views *c);

/* How many have answered so far, each counted once. */
unsigned confirm_answered(const struct sentinel_views *c);

/* Has the same Sentinel been asked later, as another view? */
bool confirm_is_repeated(const struct sentinel_views *c, unsigned view);

/* The primary that a majority names, all at the same time. Of *named: host and
 * port; asked_at, which is that time; and since, from which on a majority has
 * named it. False: there is none. */
bool confirm_primary(
    const struct sentinel_views *c, struct sentinel_view *named);

/* How many name that address, of those that were asked at asked_from or later.
 */
unsigned confirm_count(const struct sentinel_views *c, const char *host,
    uint16_t port, uint64_t asked_from);

/* Those that were asked before that, 2 s before the one that was asked last, no
 * longer answer. */
uint64_t confirm_current_from(const struct sentinel_views *c);
/* Does it name an address, and still answer? */
bool confirm_is_current(const struct sentinel_view *v, uint64_t current_from);

/* The same count, of those that still answer. */
unsigned confirm_count_current(
    const struct sentinel_views *c, const char *host, uint16_t port);

/* Replaces what a Sentinel has said by what it says now. */
void confirm_take(struct sentinel_view *v, const struct sentinel_view *seen);

/* Since when a Sentinel has named its primary: when its answer came, less the
 * time that it reported. It may have been asked long before that, and have
 * named another one then. */
uint64_t confirm_since(uint64_t heard_at, uint64_t for_ns);

/* Does what was sent at sent_at count, if a majority has named the server at
 * confirmed_at (0: never)? */
bool confirm_covers(uint64_t confirmed_at, uint64_t sent_at);

/* Is it time to ask the Sentinels again, so that nothing has to wait for their
 * answers? */
bool confirm_is_old(uint64_t confirmed_at, uint64_t now);

#endif
