/* SPDX-License-Identifier: MIT */
/*
 * The parts of doctor: what one server is like, what it permits, and what all
 * of them do together when a lock is taken.
 */
#ifndef NXLOCK_CLI_DOCTOR_H
#define NXLOCK_CLI_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include <nxlock.h>

#include "cli/finding.h"

struct doctor {
    nxl_client *client;
    struct findings findings;
    size_t servers, reached;
    const char *name; /* of a lock, or NULL */
    char *key;        /* that lock's; owned, or NULL */
    char *counter;    /* and that of its fencing numbers; likewise */
};

/* All that it is asked for. */
void doctor_server(struct doctor *doctor, size_t server);

/* What the user may do there, as far as it is about the lock's keys. */
void doctor_rights(struct doctor *doctor, size_t server);

/* nxl_client_ask() with words up to NULL. */
int doctor_ask(struct doctor *doctor, size_t server, nxl_answer **answer, ...)
    __attribute__((sentinel));

#endif
