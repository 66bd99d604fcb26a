/* SPDX-License-Identifier: MIT */
/*
 * What one Sentinel says of the service of the URL.
 */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_SENTINEL_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_SENTINEL_H

#include "cli/doctor/doctor_state.h"

#define SENTINEL_AT 320
#define SENTINEL_WHY 512

struct doctor_sentinel {
    char at[SENTINEL_AT]; /* host and port, as the URL lists them */
    bool answered;
    /* If not: the result of the query that failed, and why; and whether only a
     * permission is missing. */
    int result;
    bool denied;
    bool in_clear; /* a password was sent to another machine without TLS */
    char why[SENTINEL_WHY];
    char user[DOCTOR_FIELD]; /* that the URL has for it; "default": none */
    char id[DOCTOR_FIELD];   /* its run_id; "": unknown */
    char primary[2 * DOCTOR_FIELD]; /* that it names: host and port */
    /* Each -1: unknown. Since the primary has answered it last; the other
     * Sentinels that it knows; its quorum; the number of the latest failover
     * that it knows of. */
    int64_t heard_ms, others, quorum, epoch;
    bool suspects;        /* it takes the primary for down, or is cut off */
    struct answer *known; /* the other Sentinels; owned; NULL: unknown */
};

/* Queries Sentinel number i of the URL, at the nth address of its host, 0: at
 * any. Returns how many addresses the host has; 0: unknown. */
size_t doctor_sentinel_ask(
    struct doctor *doctor, size_t i, unsigned nth, struct doctor_sentinel *s);
void doctor_sentinel_free(struct doctor_sentinel *s);

/* Writes the address of the other Sentinel number i that it knows into out.
 * False: there is none. */
bool doctor_sentinel_other(
    const struct doctor_sentinel *s, size_t i, char out[SENTINEL_AT]);

#endif
