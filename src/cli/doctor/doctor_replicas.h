/* SPDX-License-Identifier: MIT */
/* Whether the replicas are those that wait_replicas needs, and how durable
 * what the server grants is. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_REPLICAS_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_REPLICAS_H

#include <stdint.h>

#include "cli/answer.h"
#include "cli/doctor/doctor_state.h"

/* By the primary's INFO. One is in sync if it is online and has answered
 * lately: WAIT counts it. */
struct replica_count {
    long connected, in_sync;
};

/* replica-priority of the replicas that could be asked. */
struct replica_priorities {
    unsigned known, unknown, never; /* never: priority 0, not promoted */
    int64_t least, most;            /* of known, without those that never are */
};

struct replica_count doctor_replica_count(const struct answer *info);

/* wait_replicas of the URL; -1: the URL does not have it. */
int64_t doctor_wait_replicas(const struct doctor *doctor, size_t server);
/* Is wait_aof=1 in the URL? */
bool doctor_wait_aof(const struct doctor *doctor, size_t server);

/* info: the primary's. */
void doctor_replicas(
    struct doctor *doctor, size_t server, const struct answer *info);
/* replica: a doctor whose server 0 is the replica. */
void doctor_priority(struct doctor *replica, struct replica_priorities *p);
void doctor_priorities(
    struct doctor *doctor, size_t server, const struct replica_priorities *p);
/* In one sentence. info: the primary's. */
void doctor_durability(
    struct doctor *doctor, size_t server, const struct answer *info);

#endif
