/* SPDX-License-Identifier: MIT */
/* Whether a server suits the records of nxlock once. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_ONCE_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_ONCE_H

#include "cli/doctor/doctor_state.h"

/* --once: how long does the server remember what was done, and can it refuse
 * to? info: the answer to INFO, or NULL. */
void doctor_once(
    struct doctor *doctor, size_t server, const struct answer *info);

/* --once with several servers, which keep no records: says so. */
void doctor_once_servers(struct doctor *doctor);

#endif
