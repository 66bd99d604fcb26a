/* SPDX-License-Identifier: MIT */
/* What a failover of a primary would do. */
#ifndef NXLOCK_CLI_DOCTOR_DOCTOR_FAILOVER_H
#define NXLOCK_CLI_DOCTOR_DOCTOR_FAILOVER_H

#include "cli/doctor/doctor_state.h"

/* info: the server's, or NULL. */
void doctor_failover(
    struct doctor *doctor, size_t server, const struct answer *info);

#endif
