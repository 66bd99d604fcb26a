/* SPDX-License-Identifier: MIT */
/* Counts what a client does, for nxl_client_stats(). All calls need the
 * client's mutex.
 *
 * Invariant: each call, hold, renewal and loss is counted once, and counts
 * never decrease. */
#ifndef NXLOCK_LOCK_STATS_H
#define NXLOCK_LOCK_STATS_H

#include "client/client.h"

/* The longest duration of a bucket of a histogram; 0: it has no limit. */
uint64_t stats_limit_ms(size_t bucket);

/* An acquire is over after ns. waited: it took more than one attempt. */
void stats_acquired(
    struct nxl_client *client, int result, bool waited, uint64_t ns);
/* A lease is over after ns. */
void stats_held(struct nxl_client *client, uint64_t ns);
/* A lease was renewed when left_ms were left of it. */
void stats_renewed(struct nxl_client *client, uint64_t left_ms);
void stats_lost(struct nxl_client *client, enum nxl_loss loss);

#endif
